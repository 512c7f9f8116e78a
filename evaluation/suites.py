"""Runs named encoders on benchmarks, and writes the scores with everything needed to reproduce them.

``results.json`` in the output folder contains versions, digests of data and encoders, protocols with their seeds, the
command and every score; ``results.md`` shows them as tables. If a benchmark or an encoder fails, its error is recorded
and the others still run.
"""

import datetime
import importlib.metadata
import json
import logging
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import InputError
from ..formats.whole import replacing
from .benchmark import Benchmark, Score
from .encoders import Encoder, encode_checked
from .files import digest
from .results import Result, Results
from .shots import shots_plot
from .table import report

RESULTS_FILE: Final = "results.json"
TABLE_FILE: Final = "results.md"
SHOTS_FILE: Final = "shots.svg"
_PACKAGES: Final = (
    "newsembed",
    "numpy",
    "scipy",
    "scikit-learn",
    "jax",
    "jaxlib",
    "flax",
    "tensorflow",
    "tensorflow-text",
    "sentence-transformers",
)

_logger = logging.getLogger(__name__)

EncoderFactory = Callable[[], Encoder]


def run_suites(
    encoders: Mapping[str, EncoderFactory],
    benchmarks: Sequence[Benchmark],
    *,
    cache: str | None = None,
    command: Sequence[str] = (),
    specs: Mapping[str, str] | None = None,
    on_result: Callable[[Result], None] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Results:
    """Runs every encoder on every benchmark; one encoder is in memory at a time.

    Args:
      encoders: factories by name; each is called just before its runs, so a broken model folder fails only its own
        rows.
      benchmarks: benchmarks with distinct names.
      cache: folder of embeddings by content; ``None`` always embeds.
      command: the command line, for the manifest.
      specs: the SPEC of each encoder on the command line, for the manifest.
      on_result: called after each result, for progress.
      facts: further entries of the manifest, JSON values.

    Raises:
      InputError: if there is nothing to run or two benchmarks share a name.
    """
    _check_names(encoders, benchmarks)
    results: list[Result] = []
    digests: dict[str, Any] = {}
    for name, factory in encoders.items():
        encoder, reason = None, ""
        try:
            encoder = factory()
            digests[name] = {"spec": (specs or {}).get(name, name), "digest": encoder.digest}
        except Exception as error:  # noqa: BLE001 - the table shows the error; the other encoders still run
            reason = _reason(error)
            digests[name] = {"spec": (specs or {}).get(name, name), "error": reason}
        for benchmark in benchmarks:
            failed = Result(name, benchmark.name, "failed", error=reason)
            results.append(failed if encoder is None else run_one(name, encoder, benchmark, cache))
            if on_result is not None:
                on_result(results[-1])
    return Results(tuple(results), {**run_manifest(benchmarks, digests, command), **(facts or {})})


def run_one(name: str, encoder: Encoder, benchmark: Benchmark, cache: str | None) -> Result:
    """Runs one encoder on one benchmark; any exception becomes a failed result."""
    try:
        encoded = encode_checked(encoder, benchmark.documents(), cache)
        started = time.perf_counter()
        scores = tuple(benchmark.score(encoded.embeddings))
        return Result(
            name,
            benchmark.name,
            "ok",
            scores,
            texts=encoded.texts,
            dimensions=int(encoded.embeddings.shape[1]),
            seconds=encoded.seconds,
            scoring_seconds=time.perf_counter() - started,
            from_cache=encoded.from_cache,
        )
    except Exception as error:  # noqa: BLE001 - a benchmark that fails is a row of the table, not the end of the run
        return Result(name, benchmark.name, "failed", error=_reason(error))


def write_results(results: Results, output: str) -> None:
    """Writes ``results.json``, ``results.md`` and, for scores by shots, ``shots.svg``, each of them atomically."""
    os.makedirs(output, exist_ok=True)
    text = json.dumps(results.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    plot = shots_plot(results)
    files = {RESULTS_FILE: text, TABLE_FILE: report(results)} | ({SHOTS_FILE: plot} if plot else {})
    for name, content in files.items():
        with replacing(os.path.join(output, name)) as temporary, open(temporary, "w", encoding="utf-8") as file:
            file.write(content + "\n")


def read_results(output: str) -> Results:
    """Reads the results that :func:`write_results` wrote.

    Raises:
      InputError: if there is no readable ``results.json``.
    """
    path = os.path.join(output, RESULTS_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
        rows = manifest.pop("results")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"no readable results: {error}", path=path, remedy="run newsembed evaluate") from error
    for row in rows:
        row.pop("texts_per_second")
        row["scores"] = tuple(map(_score, row["scores"]))
    return Results(tuple(Result(**row) for row in rows), manifest)


def _score(values: Mapping[str, Any]) -> Score:
    """A score from its JSON values, in which a tuple is a list."""
    given: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in values.items()}
    return Score(**given)


def _check_names(encoders: Mapping[str, EncoderFactory], benchmarks: Sequence[Benchmark]) -> None:
    if not encoders or not benchmarks:
        raise InputError("nothing to run", remedy="give at least one encoder and one benchmark")
    names = [benchmark.name for benchmark in benchmarks]
    if len(set(names)) < len(names):
        raise InputError(f"two benchmarks share a name: {', '.join(names)}", remedy="give each its own name")


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    _logger.warning("a benchmark failed", exc_info=error)
    return f"{type(error).__name__}: {error}"


def run_manifest(
    benchmarks: Sequence[Benchmark], encoders: Mapping[str, Any], command: Sequence[str]
) -> dict[str, Any]:
    """Returns time, command, platform, versions, encoders and data of a run as JSON values."""
    return {
        "written_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": list(command),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions(),
        "encoders": dict(encoders),
        "benchmarks": benchmark_facts(benchmarks),
    }


def benchmark_facts(benchmarks: Sequence[Benchmark]) -> dict[str, Any]:
    """Returns the protocol and the digests of the data of each benchmark; equal facts and vectors give equal scores."""
    return {
        benchmark.name: {
            "protocol": dict(benchmark.protocol),
            "data": [{"path": path, "sha256": _file_digest(path)} for path in benchmark.paths],
        }
        for benchmark in benchmarks
    }


def versions() -> dict[str, str]:
    """Returns the versions of the installed packages that scores may depend on."""
    return {package: version for package in _PACKAGES if (version := _version(package))}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _file_digest(path: str) -> str | None:
    try:
        return digest(path)
    except OSError:
        return None
