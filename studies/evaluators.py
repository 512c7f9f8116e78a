r"""Evaluators that gin files name for ``HeldOut.evaluate``: benchmarks of ``evaluation`` on a model in training.

Example::

    newsembed train … --gin.EVAL_PERIOD=500 --gin.EVALUATOR="@SameEventEvaluator()" \
        --gin.SameEventEvaluator.path=\"heldout.jsonl\" --gin.KEEP_BEST=\"eval/events/mAP\" --gin.KEEP_BEST_MODE=\"max\"
"""

from typing import TYPE_CHECKING

import gin
import numpy as np

if TYPE_CHECKING:  # importing them takes seconds, and TensorFlow is only needed where the evaluator is used
    from ..evaluation.retrieval import SameEventRetrieval
    from ..training.held_out import Snapshot


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
        self._path = path
        self._max_length = max_length
        self._cross_publisher = cross_publisher
        self._tokens_per_batch = tokens_per_batch
        self._rows: list[np.ndarray] = []
        self._benchmark: SameEventRetrieval | None = None

    def __call__(self, snapshot: "Snapshot") -> dict[str, float]:
        """The scores of the current parameters, by name."""
        from ..evaluation.encoders import normalised
        from ..evaluation.retrieval import SameEventRetrieval
        from ..serving.shapes import batches, by_bucket, length_buckets
        from ..tasks.vocabulary import Vocabulary

        length = min(self._max_length or snapshot.text_length, snapshot.config.max_length)
        if self._benchmark is None:
            benchmark = SameEventRetrieval(self._path, cross_publisher=self._cross_publisher)
            documents = benchmark.documents()
            titles, bodies = [document.title for document in documents], [document.body for document in documents]
            self._rows = Vocabulary.load(snapshot.vocabulary_path).encode_documents(titles, bodies, length)
            self._benchmark = benchmark
        embeddings = np.zeros((len(self._rows), snapshot.config.embedding_size), np.float32)
        lengths, buckets = [len(row) for row in self._rows], length_buckets(length)
        planned = by_bucket(lengths, buckets, self._tokens_per_batch, multiple=snapshot.rows_multiple)
        for numbers, tokens in batches(self._rows, planned):
            embeddings[numbers] = snapshot.embed(tokens)[: len(numbers)]
        scores = self._benchmark.score(normalised(embeddings))
        return {
            f"{self._benchmark.name}/{score.metric}" + ("" if score.part == "all" else f"/{score.part}"): score.value
            for score in scores
        }
