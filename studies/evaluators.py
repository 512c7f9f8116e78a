r"""Evaluators that gin files name for ``HeldOut.evaluate``: benchmarks of ``evaluation`` on a model in training.

Examples::

    newsembed train … --gin.EVAL_PERIOD=500 --gin.EVALUATOR="@SameEventEvaluator()" \
        --gin.SameEventEvaluator.path=\"heldout.jsonl\" --gin.KEEP_BEST=\"eval/events/mAP\" --gin.KEEP_BEST_MODE=\"max\"
    newsembed train … --gin.EVAL_PERIOD=500 --gin.EVALUATOR="@MlDocEvaluator()" \
        --gin.MlDocEvaluator.path=\"mldoc\" --gin.KEEP_BEST=\"eval/mldoc_dev/Cross\" --gin.KEEP_BEST_MODE=\"max\"
"""

from typing import TYPE_CHECKING, Final

import gin
import numpy as np

from ..errors import InputError

if TYPE_CHECKING:  # importing them takes seconds, and TensorFlow is only needed where the evaluator is used
    from ..evaluation.benchmark import Benchmark, Score
    from ..training.held_out import Snapshot


_TOKENS_PER_BATCH: Final = 16_384  # over all devices


class _Evaluator:
    """Scores of a benchmark on a model in training; its documents are tokenized once, at the first evaluation.

    Args:
      benchmark: whose files are read now, so that a run does not train for hours before it says that they are missing.
        A document has at most as many tokens as the run trains on.

    Raises:
      InputError: if they cannot be read.
    """

    def __init__(self, benchmark: "Benchmark") -> None:
        self._benchmark, self._documents = benchmark, benchmark.documents()
        self.rows: list[np.ndarray] = []

    def scores(self, snapshot: "Snapshot") -> "list[Score]":
        """The benchmark's scores of the current parameters."""
        from ..evaluation.encoders import normalised
        from ..serving.rows import batches, by_bucket, length_buckets
        from ..tasks.vocabulary import Vocabulary

        length = min(snapshot.text_length, snapshot.config.max_length)
        if not self.rows:
            titles, bodies = [one.title for one in self._documents], [one.body for one in self._documents]
            self.rows = Vocabulary.load(snapshot.vocabulary_path).encode_documents(titles, bodies, length)
        embeddings = np.zeros((len(self.rows), snapshot.config.embedding_size), np.float32)
        lengths = [len(row) for row in self.rows]
        planned = by_bucket(lengths, length_buckets(length), _TOKENS_PER_BATCH, multiple=snapshot.rows_multiple)
        for numbers, tokens in batches(self.rows, planned):
            embeddings[numbers] = snapshot.embed(tokens)[: len(numbers)]
        return self._benchmark.score(normalised(embeddings))


@gin.register
class SameEventEvaluator(_Evaluator):
    """Same-event retrieval (``benchmarks.retrieval``) on held-out articles: ``events/mAP`` and ``events/hit@1``.

    The scores by language are included. The articles are tokenized once, at the first evaluation, which needs
    TensorFlow Text; hosts without it evaluate the loss only.

    Args:
      path: JSONL file of articles with events, see ``evaluation.events``.
      cross_publisher: whether to leave out candidates of the query's publisher.
    """

    def __init__(self, path: str = gin.REQUIRED, *, cross_publisher: bool = False) -> None:
        from ..evaluation.benchmarks.retrieval import SameEventRetrieval

        super().__init__(SameEventRetrieval(path, cross_publisher=cross_publisher))

    def __call__(self, snapshot: "Snapshot") -> dict[str, float]:
        """The scores of the current parameters, by name."""
        scores = self.scores(snapshot)
        return {f"events/{one.metric}{'' if one.part == 'all' else '/' + one.part}": one.value for one in scores}


@gin.register
class MlDocEvaluator(_Evaluator):
    """LASER's classifier across languages, on the dev parts of MLDoc: ``mldoc_dev/Cross``, ``Same`` and ``All``.

    T-MDE keeps the checkpoint with the best Cross. So labels of all languages choose it: report what you choose on the
    test parts, which are not read here. The classifier is trained for each language at each evaluation, by
    ``evaluation.benchmarks.mldoc``.

    Args:
      path: folder with ``LANGUAGE.train.1000`` and ``LANGUAGE.dev``.
      languages: at least two of the folder; empty takes all.
      svm: whether a linear support vector machine, which trains in less time, takes the place of LASER's classifier.
      seeds: runs of the classifier; the accuracies are means over them.
    """

    def __init__(
        self,
        path: str = gin.REQUIRED,
        languages: tuple[str, ...] = (),
        *,
        svm: bool = False,
        seeds: int = 1,
    ) -> None:
        from ..evaluation.benchmarks.mldoc import MlDoc
        from ..evaluation.heads import Perceptron

        head = None if svm else Perceptron()
        benchmark = MlDoc(path, "mldoc_dev", languages=tuple(languages), seeds=seeds, head=head, on_dev=True)
        super().__init__(benchmark)

    def __call__(self, snapshot: "Snapshot") -> dict[str, float]:
        """The accuracies of the current parameters, by name."""
        from ..evaluation.benchmark import AVERAGES

        scores = {f"mldoc_dev/{one.part}": one.value for one in self.scores(snapshot) if one.part in AVERAGES}
        if "mldoc_dev/Cross" not in scores:
            problem, field = "found 1 language, expected at least 2", "MlDocEvaluator.languages"
            raise InputError(problem, path=self._benchmark.path, field=field, remedy="give files of two languages")
        return scores


@gin.register
class XtremeEvaluator:
    """XTREME's metrics of a model with a head on the English dev part: ``dev/accuracy``, ``dev/F1``.

    Args:
      task: of pairs or words.
      data: the folder of all tasks, see ``evaluation.xtreme``.
    """

    def __init__(self, task: str = gin.REQUIRED, data: str = gin.REQUIRED) -> None:
        from ..evaluation.xtreme import TASKS, read_part

        self._task = TASKS[task]
        self._part = read_part(self._task, data, "dev")

    def __call__(self, snapshot: "Snapshot") -> dict[str, float]:
        """The scores of the current parameters, by name."""
        from ..evaluation.xtreme import scores
        from ..tasks.vocabulary import Vocabulary
        from .finetune.rows import RowMaker

        rows = RowMaker(self._task, Vocabulary.load(snapshot.vocabulary_path), snapshot.text_length)
        sizes = {"tokens_per_batch": _TOKENS_PER_BATCH, "multiple": snapshot.rows_multiple}
        found = rows.predictions(self._part, lambda tokens: snapshot.apply("label_logits", tokens), **sizes)
        return {f"dev/{name}": value for name, value in scores(self._task, "en", self._part.gold, found).items()}
