"""Our benchmark suites as an inference evaluator of T5X, while it trains (`t5x.train`) and afterwards (`t5x.eval`)."""

import concurrent.futures
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..evaluation.benchmark import ALL, Benchmark
from ..evaluation.benchmark import suites as known_suites
from ..evaluation.encoders import Embeddings, normalised
from ..serving.rows import batches, length_buckets
from ..tasks.vocabulary import Vocabulary
from .recipe import Recipe
from .rows import TOKENS

# Rows of one length as an enumerated `tf.data.Dataset` to (number, embedding) pairs; T5X's `predict_fn`.
Predict = Callable[[Any], Sequence[tuple[int, Sequence[float]]]]


class SuiteEvaluator:
    """Embeds the documents of benchmarks by T5X and scores them; `inference_evaluator_cls` of T5X.

    T5X makes it with the arguments that seqio's evaluator has. Those that say which seqio task to read are not used:
    the benchmarks are `suites`.

    Args:
      mixture_or_task_name: not used.
      feature_converter: of the model; has its vocabulary and architecture.
      eval_split: not used.
      log_dir: where the scores go: TensorBoard, and `<benchmark>-metrics.jsonl`.
      logger_cls: loggers of seqio in place of these; () logs nothing.
      suites: the suite of each benchmark and its file or folder, such as {"events": "heldout.jsonl"}; the names are
        those of `newsembed evaluate --suite`.
      max_length: tokens of each document; None for as many as the model trained on.
      **options: not used.

    Raises:
      InputError: for a suite that does not exist, or none.
    """

    def __init__(
        self,
        mixture_or_task_name: Any,
        feature_converter: Any,
        eval_split: str = "test",
        *,
        log_dir: str | None = None,
        logger_cls: Sequence[Any] | None = None,
        suites: Mapping[str, str] | None = None,
        max_length: int | None = None,
        **options: Any,
    ) -> None:
        del mixture_or_task_name, eval_split, options
        self._recipe: Recipe = feature_converter.recipe
        self._max_length = max_length
        self._benchmarks = _benchmarks(suites or {})
        kinds = _default_loggers() if logger_cls is None else logger_cls
        self._loggers = [kind(output_dir=log_dir) for kind in kinds] if log_dir is not None else []
        self._rows: dict[str, list[np.ndarray]] = {}

    @property
    def eval_tasks(self) -> list[str]:
        """The names of the benchmarks."""
        return [benchmark.name for benchmark in self._benchmarks]

    @property
    def model_feature_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of the longest row."""
        return {TOKENS: (self._length,)}

    def close(self) -> None:
        """Nothing is left open."""

    def evaluate(
        self,
        *,
        compute_metrics: bool,
        step: int | None = None,
        predict_fn: Predict,
        score_fn: Any = None,
        predict_with_aux_fn: Any = None,
    ) -> tuple["concurrent.futures.Future[dict[str, dict[str, Any]]]", None]:
        """Embeds and scores all benchmarks; every process calls it.

        Args:
          compute_metrics: True on the process that scores.
          step: of the model.
          predict_fn: T5X's.
          score_fn: not used.
          predict_with_aux_fn: not used.

        Returns:
          The scores by benchmark, "<metric>" or "<metric>/<part>" to seqio's `Scalar`, as a future that is done.

        Raises:
          InputError: for a file of a benchmark that cannot be read.
        """
        del score_fn, predict_with_aux_fn
        found: dict[str, dict[str, Any]] = {}
        for benchmark in self._benchmarks:
            embeddings = self._embed(benchmark, predict_fn)
            if compute_metrics:
                found[benchmark.name] = _scores(benchmark, embeddings)
                for logger in self._loggers:
                    logger(benchmark.name, step, found[benchmark.name], None, None, None)
        future: concurrent.futures.Future[dict[str, dict[str, Any]]] = concurrent.futures.Future()
        future.set_result(found)
        return future, None

    @property
    def _length(self) -> int:
        config = self._recipe.objectives.model.config
        return min(self._max_length or self._recipe.text_length or config.max_length, config.max_length)

    def _embed(self, benchmark: Benchmark, predict_fn: Predict) -> np.ndarray:
        """Embeddings float32 [N, D] of length 1; rows of few lengths, because each length compiles."""
        import tensorflow as tf

        if benchmark.name not in self._rows:
            documents = benchmark.documents()
            titles, bodies = [document.title for document in documents], [document.body for document in documents]
            vocabulary = Vocabulary.load(self._recipe.vocabulary.path)
            self._rows[benchmark.name] = vocabulary.encode_documents(titles, bodies, self._length)
        rows, buckets = self._rows[benchmark.name], length_buckets(self._length)
        bucket_of = np.searchsorted(buckets, [len(row) for row in rows])
        embeddings = np.zeros((len(rows), self._recipe.objectives.model.config.embedding_size), np.float32)
        members = [np.flatnonzero(bucket_of == number) for number in range(len(buckets))]
        planned = [(own, (len(own), length)) for own, length in zip(members, buckets, strict=True) if len(own)]
        for numbers, tokens in batches(rows, planned):
            for place, vector in predict_fn(tf.data.Dataset.from_tensor_slices({TOKENS: tokens}).enumerate()):
                embeddings[numbers[place]] = vector
        return np.asarray(normalised(embeddings))


def _benchmarks(suites: Mapping[str, str]) -> list[Benchmark]:
    """The benchmarks of the suites.

    Raises:
      InputError: for a suite that does not exist, or none.
    """
    unknown = sorted(set(suites) - set(known_suites()))
    if unknown or not suites:
        raise InputError(
            f"got {', '.join(unknown) or 'no suites'}, expected some of {', '.join(known_suites())}",
            field="SuiteEvaluator.suites",
            remedy='Write SUITES = {"events": "heldout.jsonl"}, a suite and its file or folder.',
        )
    return [known_suites()[suite].make(path, suite) for suite, path in suites.items()]


def _scores(benchmark: Benchmark, embeddings: Embeddings) -> dict[str, Any]:
    from seqio import metrics

    return {
        score.metric if score.part == ALL else f"{score.metric}/{score.part}": metrics.Scalar(score.value)
        for score in benchmark.score(embeddings)
    }


def _default_loggers() -> list[Any]:
    import seqio

    def json_logger(output_dir: str) -> Any:
        os.makedirs(output_dir, exist_ok=True)
        return seqio.JSONLogger(output_dir, write_n_results=0)

    return [seqio.TensorBoardLogger, json_logger]
