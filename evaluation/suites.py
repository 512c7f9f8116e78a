"""Runs named encoders on benchmarks, and writes the scores with everything needed to reproduce them.

``results.json`` in the output folder contains versions, digests of data and encoders, protocols with their seeds, the
command and every score; ``results.md`` shows them as tables. If a benchmark or an encoder fails, its error is recorded
and the others still run.
"""

import contextlib
import dataclasses
import datetime
import importlib.metadata
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError, reading
from ..formats.command_line import without_secrets
from ..formats.files import write_whole
from .benchmark import Benchmark, Result, Results, Score
from .encoders import Encoder, encode_checked
from .files import digest
from .table import report, shots_plot

RESULTS_FILE: Final = "results.json"
TABLE_FILE: Final = "results.md"
SHOTS_FILE: Final = "shots.svg"
_PACKAGES: Final = str.split(
    "newsembed numpy scipy scikit-learn jax jaxlib flax tensorflow tensorflow-text sentence-transformers"
)

_logger = logging.getLogger(__name__)

EncoderFactory = Callable[[], Encoder]


def run_suites(
    encoders: Mapping[str, EncoderFactory],
    benchmarks: Sequence[Benchmark],
    *,
    cache: str | None = None,
    specs: Mapping[str, str] | None = None,
    on_result: Callable[[Result], None] = lambda _result: None,
    facts: Mapping[str, Any] | None = None,
) -> Results:
    """Runs every encoder on every benchmark; one encoder is in memory at a time.

    Args:
      encoders: factories by name; each is called just before its runs, so a broken model folder fails only its own
        rows.
      benchmarks: benchmarks with distinct names.
      cache: folder of embeddings by content; ``None`` always embeds.
      specs: the SPEC of each encoder on the command line, for the manifest.
      on_result: called after each result, for progress.
      facts: further entries of the manifest, JSON values.
    """
    if not encoders or not benchmarks:
        raise InputError("nothing to run", remedy="give at least one encoder and one benchmark")
    names = [benchmark.name for benchmark in benchmarks]
    if len(set(names)) < len(names):
        raise InputError(f"two benchmarks share a name: {', '.join(names)}", remedy="give each its own name")
    results: list[Result] = []
    digests: dict[str, Any] = {}
    for name, factory in encoders.items():
        encoder, spec = None, (specs or {}).get(name, name)
        try:
            encoder = factory()
            digests[name] = {"spec": spec, "digest": encoder.digest}
        except Exception as error:  # noqa: BLE001 - the table shows the error; the other encoders still run
            digests[name] = {"spec": spec, "error": _reason(error)}
        for benchmark in benchmarks:
            if "error" in digests[name] or encoder is None:
                results.append(Result(name, benchmark.name, "failed", error=digests[name]["error"]))
            else:
                results.append(_run_one(name, encoder, benchmark, cache))
            on_result(results[-1])
    return Results(tuple(results), {**run_manifest(benchmarks, digests), **(facts or {})})


def _run_one(name: str, encoder: Encoder, benchmark: Benchmark, cache: str | None) -> Result:
    """Runs one encoder on one benchmark; any exception becomes a failed result."""
    try:
        encoded = encode_checked(encoder, benchmark.documents(), cache)
        print(f"{name} on {benchmark.name}: scoring", file=sys.stderr)  # heads take minutes
        started, (texts, dimensions) = time.perf_counter(), map(int, encoded.embeddings.shape)
        scores = tuple(benchmark.score(encoded.embeddings))
        return Result(
            *(name, benchmark.name, "ok", scores),
            texts=texts,
            dimensions=dimensions,
            seconds=encoded.seconds,
            scoring_seconds=time.perf_counter() - started,
            from_cache=encoded.from_cache,
        )
    except Exception as error:  # noqa: BLE001 - a benchmark that fails is a row of the table, not the end of the run
        return Result(name, benchmark.name, "failed", error=_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    _logger.warning("a benchmark failed", exc_info=error)
    return f"{type(error).__name__}: {error}"


def write_results(results: Results, output: str) -> None:
    """Writes ``results.json``, ``results.md`` and, for scores by shots, ``shots.svg``, each of them atomically.

    Scores without intervals, folds and draws do not mention them.
    """
    rows = [dataclasses.asdict(row) | {"texts_per_second": row.texts_per_second} for row in results.results]
    for row in rows:
        for score in row["scores"]:
            for name in ("low", "high", "folds", "draws"):
                if score[name] in (None, ()):
                    del score[name]
    text = json.dumps({**results.manifest, "results": rows}, indent=2, ensure_ascii=False, allow_nan=False)
    plot = shots_plot(results)
    files = {RESULTS_FILE: text, TABLE_FILE: report(results)} | ({SHOTS_FILE: plot} if plot else {})
    for name, content in files.items():
        write_whole(os.path.join(output, name), f"{content}\n".encode())


def read_results(output: str) -> Results:
    """Reads the results that :func:`write_results` wrote."""
    path = os.path.join(output, RESULTS_FILE)
    with reading(path, "run newsembed evaluate, or finetune", OSError), open(path, encoding="utf-8") as file:
        manifest = json.load(file)
        rows = manifest.pop("results")
        for row in rows:
            del row["texts_per_second"]
            row["scores"] = tuple(map(_score, row["scores"]))
        return Results(tuple(Result(**row) for row in rows), manifest)


def _score(values: dict[str, Any]) -> Score:
    """A score from its JSON values, in which a tuple is a list."""
    lists = {name: tuple(one) for name, one in values.items() if isinstance(one, list)}
    return Score(**{**values, **lists})


def run_manifest(benchmarks: Sequence[Benchmark], encoders: Mapping[str, Any]) -> dict[str, Any]:
    """Time, command line, platform, versions, encoders and data of a run as JSON values."""
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "written_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": ["newsembed", *without_secrets(sys.argv[1:])],
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
        "encoders": dict(encoders),
        "benchmarks": benchmark_facts(benchmarks),
    }


def benchmark_facts(benchmarks: Sequence[Benchmark]) -> dict[str, Any]:
    """The protocol and the digests of the data of each benchmark; equal facts and vectors give equal scores."""
    return {
        benchmark.name: {
            "protocol": dict(benchmark.protocol),
            "data": [{"path": path, "sha256": _file_digest(path)} for path in benchmark.paths],
        }
        for benchmark in benchmarks
    }


def _file_digest(path: str) -> str | None:
    with contextlib.suppress(OSError):
        return digest(path)
    return None
