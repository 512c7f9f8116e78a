r"""Evaluators that gin files name for ``HeldOut.evaluate``: benchmarks of ``evaluation`` on a model in training.

Examples::

    newsembed train … --gin.EVAL_PERIOD=500 --gin.EVALUATOR="@SameEventEvaluator()" \
        --gin.SameEventEvaluator.path=\"heldout.jsonl\" --gin.KEEP_BEST=\"eval/events/mAP\" --gin.KEEP_BEST_MODE=\"max\"
    newsembed train … --gin.EVAL_PERIOD=500 --gin.EVALUATOR="@MlDocEvaluator()" \
        --gin.MlDocEvaluator.path=\"mldoc\" --gin.KEEP_BEST=\"eval/mldoc_dev/Cross\" --gin.KEEP_BEST_MODE=\"max\"
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import gin
import numpy as np

from ..errors import InputError

if TYPE_CHECKING:  # importing them takes seconds, and TensorFlow is only needed where the evaluator is used
    from ..evaluation.benchmark import Benchmark, Score
    from ..training.held_out import Snapshot


class _OnSnapshots:
    """Scores of a benchmark on a model in training; its documents are read and tokenized once, at the first evaluation.

    Args:
      make_benchmark: makes the benchmark.
      max_length: tokens of each document; None for as many as the run trains on.
      tokens_per_batch: tokens embedded at once, over all devices.
    """

    def __init__(
        self, make_benchmark: "Callable[[], Benchmark]", max_length: int | None, tokens_per_batch: int
    ) -> None:
        self._make_benchmark, self._max_length, self._tokens_per_batch = make_benchmark, max_length, tokens_per_batch
        self._rows: list[np.ndarray] = []
        self._benchmark: Benchmark | None = None

    def scores(self, snapshot: "Snapshot") -> "list[Score]":
        """The benchmark's scores of the current parameters.

        Raises:
          InputError: for an unreadable file or vocabulary.
        """
        from ..evaluation.encoders import normalised
        from ..serving.shapes import batches, by_bucket, length_buckets
        from ..tasks.vocabulary import Vocabulary

        length = min(self._max_length or snapshot.text_length, snapshot.config.max_length)
        if self._benchmark is None:
            benchmark = self._make_benchmark()
            documents = benchmark.documents()
            titles, bodies = [document.title for document in documents], [document.body for document in documents]
            self._rows = Vocabulary.load(snapshot.vocabulary_path).encode_documents(titles, bodies, length)
            self._benchmark = benchmark
        embeddings = np.zeros((len(self._rows), snapshot.config.embedding_size), np.float32)
        lengths, buckets = [len(row) for row in self._rows], length_buckets(length)
        planned = by_bucket(lengths, buckets, self._tokens_per_batch, multiple=snapshot.rows_multiple)
        for numbers, tokens in batches(self._rows, planned):
            embeddings[numbers] = snapshot.embed(tokens)[: len(numbers)]
        return self._benchmark.score(normalised(embeddings))


@gin.register
class SameEventEvaluator:
    """Same-event retrieval (``evaluation.retrieval``) on held-out articles: ``events/mAP`` and ``events/hit@1``.

    The scores by language are included. The articles are tokenized once, at the first evaluation, which needs
    TensorFlow Text; hosts without it evaluate the loss only.

    Args:
      path: JSONL file of articles with events, see ``evaluation.events``.
      max_length: tokens of each article; None for as many as the run trains on.
      cross_publisher: whether to leave out candidates of the query's publisher.
      tokens_per_batch: tokens embedded at once, over all devices.

    Raises:
      InputError: when called, for an unreadable file or vocabulary.
    """

    def __init__(
        self,
        path: str = gin.REQUIRED,
        max_length: int | None = None,
        *,
        cross_publisher: bool = False,
        tokens_per_batch: int = 16_384,
    ) -> None:
        def make() -> "Benchmark":
            from ..evaluation.retrieval import SameEventRetrieval

            return SameEventRetrieval(path, cross_publisher=cross_publisher)

        self._snapshots = _OnSnapshots(make, max_length, tokens_per_batch)

    def __call__(self, snapshot: "Snapshot") -> dict[str, float]:
        """The scores of the current parameters, by name."""
        scores = self._snapshots.scores(snapshot)
        return {
            f"events/{score.metric}" + ("" if score.part == "all" else f"/{score.part}"): score.value
            for score in scores
        }


@gin.register
class MlDocEvaluator:
    """LASER's classifier across languages, on the dev parts of MLDoc: ``mldoc_dev/Cross``, ``Same`` and ``All``.

    T-MDE keeps the checkpoint with the best Cross. So labels of all languages choose it: report what you choose on the
    test parts, which are not read here. The classifier is trained for each language at each evaluation, by
    ``evaluation.mldoc``.

    Args:
      path: folder with ``LANGUAGE.train.1000`` and ``LANGUAGE.dev``.
      languages: at least two of the folder; empty takes all.
      max_length: tokens of each document; None for as many as the run trains on.
      svm: whether a linear support vector machine, which trains in less time, takes the place of LASER's classifier.
      seeds: of the classifier; the accuracies are means over them.
      tokens_per_batch: tokens embedded at once, over all devices.

    Raises:
      InputError: when called, for an unreadable file or vocabulary.
    """

    def __init__(
        self,
        path: str = gin.REQUIRED,
        languages: tuple[str, ...] = (),
        max_length: int | None = None,
        *,
        svm: bool = False,
        seeds: tuple[int, ...] = (0,),
        tokens_per_batch: int = 16_384,
    ) -> None:
        def make() -> "Benchmark":
            from ..evaluation.mldoc import LinearSvm, MlDoc
            from ..evaluation.perceptron import Perceptron

            head = LinearSvm() if svm else Perceptron()
            return MlDoc(path, "mldoc_dev", tuple(languages), seeds=tuple(seeds), head=head, on_dev=True)

        self._path = path
        self._snapshots = _OnSnapshots(make, max_length, tokens_per_batch)

    def __call__(self, snapshot: "Snapshot") -> dict[str, float]:
        """The accuracies of the current parameters, by name.

        Raises:
          InputError: if there is only one language.
        """
        from ..evaluation.crosslingual import AVERAGES

        scores = {score.part: score.value for score in self._snapshots.scores(snapshot) if score.part in AVERAGES}
        if "Cross" not in scores:
            raise InputError(
                "found 1 language, expected at least 2",
                path=self._path,
                field="MlDocEvaluator.languages",
                remedy="give files of two languages",
            )
        return {f"mldoc_dev/{part}": value for part, value in scores.items()}
