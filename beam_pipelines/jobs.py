"""What every job has in common: options, skipping finished work, phases, accounting, publishing with a manifest last.

A job reads folders that have a manifest (or raw files) and works in ``<output>/.work-<digest>``. It publishes by moving
its streams to the output, and writes the manifest last. The digest covers job, code version, options and inputs. A
finished job with the same digest is skipped, an unfinished one is resumed with the shards that it lacks, and any other
starts from the beginning.
"""

import contextlib
import dataclasses
import datetime
import enum
import hashlib
import itertools
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam

from .. import __version__
from ..errors import InputError, counted
from ..formats import files, object_stores
from ..formats.digests import file_sha256
from ..formats.manifest import (
    MANIFEST,
    Manifest,
    has_manifest,
    read_manifest,
    read_seconds,
    write_manifest,
)
from . import dataflow, failures, metrics
from .accounting import Counts, add_counts, chain_counts
from .forecast import Announce, announced
from .graph import Graph, Parts, Progress
from .options import make_pipeline, noticing_dead_workers
from .output_folder import (
    PUBLISH,
    check_input,
    clear,
    discard_damaged,
    missing_files,
    publish,
    published_files,
    refuse_overlaps,
)
from .output_lock import locked
from .shards import Phase, ShardFunction
from .shuffle import Rows
from .worker_forks import FORKS

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class OwnManifest:
    """The manifest of a folder in the output that is read on its own.

    Attributes:
      counts: of the records in it.
      extra: further entries, such as ``"examples"``.
    """

    counts: Counts
    extra: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """One input of a job: a folder with a manifest, or raw files, given as ``--<name>``.

    Attributes:
      name: of the option.
      help: one line for ``--help``.
      required: whether the job cannot run without it.
      many: whether several paths may be given.
      digest: of a path that is neither a result nor a raw file; ``None`` for `input_digest`.
      for_workers: whether workers read a path. Others are read only where the job is launched, so they may be local.
    """

    name: str
    help: str
    required: bool = True
    many: bool = False
    digest: Callable[[str], str] | None = None
    for_workers: Callable[[str], bool] = lambda _: True


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as the command line and the build see it.

    Attributes:
      name: command and folder name.
      summary: one line for ``--help``.
      example: a command that works.
      inputs: what it reads.
      options: frozen dataclass of options; each field is an `option` of `formats.command_line`. ``lasting_folder=True``
        marks a folder that is kept when the output is replaced, so it must not be in the output.
      run: the pipeline; gets a `JobRun`.
      switches: by the name of a rejection, the option and value that turn its rule off.
    """

    name: str
    summary: str
    example: str
    inputs: tuple[InputSpec, ...]
    options: type
    run: Callable[["JobRun"], None]
    switches: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def read_by_workers(self, inputs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """The paths of each input that workers read, of those that :func:`resolve_inputs` returned."""
        return {spec.name: list(filter(spec.for_workers, inputs[spec.name])) for spec in self.inputs}


class JobRun:
    """One execution of a job: its options and inputs, and the means to run phases.

    Attributes:
      options: an instance of the job's options dataclass.
      inputs: paths by input name, ``()`` where an optional input is not given.
      workspace: temporary folder; streams written here are published unless their name starts with "_".
      extra: further manifest entries that the job adds (``"examples"`` counts of TFRecord sets, …).
      folders: folders in the output that get a manifest of their own, by name.
    """

    def __init__(
        self,
        job: Job,
        options: Any,
        inputs: Mapping[str, tuple[str, ...]],
        workspace: str,
        beam_args: Sequence[str],
        progress: Progress,
    ) -> None:
        self.job = job
        self.options = options
        self.inputs = inputs
        self.workspace = workspace
        self.extra: dict[str, Any] = {}
        self.folders: dict[str, OwnManifest] = {}
        self._beam_args = beam_args
        self._progress = progress
        self._phases: dict[str, tuple[Phase, str]] = {}
        self._reports: dict[str, list[dict[str, Any]]] = {}  # by phase
        self._graph: Graph | None = None  # the open one

    def input(self, name: str) -> str:
        """The one path of a required input."""
        return self.inputs[name][0]

    def phase(
        self, name: str, shard_count: int, *, accounted: bool = True, beside: bool = False, listed: bool = True
    ) -> Phase:
        """Declares a phase. Accounted phases form a chain: each passes on the records that the next reads.

        Records of a phase ``beside`` the chain are added to those of the job; ``listed`` as in :meth:`map_shards`.
        """
        phase = Phase(self.workspace, name, shard_count)
        self._phases[name] = (phase, "beside" if beside else "chained" if accounted else "" if listed else "unlisted")
        return phase

    def map_shards(
        self,
        name: str,
        function: ShardFunction,
        payloads: Sequence[Any],
        *,
        accounted: bool = True,
        listed: bool = True,
        parts: Parts | None = None,
    ) -> None:
        """Runs ``function(shard, payloads[shard.index])`` for each shard; progress counts shards or ``parts``.

        Inside :meth:`graph` the phase runs together with the others of the graph, else at once. The manifest has no
        counts of a phase that is not ``listed``: one that only sends or sorts rows.
        """
        phase = self.phase(name, len(payloads), accounted=accounted, listed=listed)
        if self._graph is not None:
            self._graph.map_shards(phase, function, payloads, parts)
            return
        with self.graph(name, len(payloads)) as graph:
            graph.map_shards(phase, function, payloads, parts)

    def map_rows(
        self,
        name: str,
        function: ShardFunction,
        payloads: Sequence[Any],
        streams: Sequence[tuple[str, Rows]],
        *,
        accounted: bool = True,
        listed: bool = True,
    ) -> None:
        """Inside :meth:`graph`, adds a phase whose shards get rows of earlier phases.

        Args:
          name: of the phase.
          function: called with the shard and its :class:`.shuffle.Received`.
          payloads: one for each shard.
          streams: names of the phases that send, and what.
          accounted: see :meth:`phase`.
          listed: see :meth:`map_shards`.

        Raises:
          RuntimeError: outside of a graph.
        """
        if self._graph is None:
            raise RuntimeError(f"{self.job.name}: phase {name} outside of a graph")
        senders = [(self._phases[sender][0], rows) for sender, rows in streams]
        phase = self.phase(name, len(payloads), accounted=accounted, listed=listed)
        self._graph.map_rows(phase, function, payloads, senders)

    @contextlib.contextmanager
    def graph(self, name: str, shard_count: int) -> Iterator[Graph]:
        """Phases that run as one Beam pipeline, on leaving the context.

        The code between the phases runs before any of them: it must not read what they write, nor their counts.

        Args:
          name: of the pipeline in a dry run.
          shard_count: of the phase with the most shards.

        Yields the graph, for phases other than :meth:`map_shards`.

        Raises:
          RuntimeError: inside another graph.
        """
        if self._graph is not None:
            raise RuntimeError(f"{self.job.name}: graph {name} inside of another graph")
        self._graph = graph = self._empty_graph(shard_count)
        try:
            yield graph
        finally:
            self._graph = None
        self._run(graph, name)

    @contextlib.contextmanager
    def pipeline(self, phase: Phase, parts: Parts | None = None) -> Iterator[beam.Pipeline]:
        """A Beam pipeline for one phase, run on leaving the context, skipped if all of its shards are complete.

        Yields a pipeline to which the job attaches its transforms; the last is a `ProcessShards` of ``phase``.
        """
        with self.graph(phase.name, phase.shard_count) as graph:
            yield graph.pipeline
            graph.add(phase, lambda: None, parts)

    def _empty_graph(self, shard_count: int) -> Graph:
        return Graph(make_pipeline(self._beam_args, shard_count))

    def _run(self, graph: Graph, name: str) -> None:  # noqa: ARG002 - the dry run names files by it
        """Runs a graph, unless all of its phases are complete."""
        if graph.phases:
            with graph.watched(self._progress), failures.named(self.workspace), noticing_dead_workers():
                result = graph.pipeline.run()
                result.wait_until_finish()
            metrics.check(result, ((phase.name, self.counts_of(phase.name)) for phase, _ in graph.phases))
        else:
            # Made with the pipeline; running it deletes it.
            shutil.rmtree(graph.pipeline.local_tempdir, ignore_errors=True)
        for phase in self._phases:
            for ended, parts in (*graph.complete, *graph.phases):
                if ended.name == phase:
                    _, total, grown = parts.progress()
                    self._progress(phase, total, total, grown)

    def counts_of(self, name: str) -> Counts:
        """Counts of a phase that has run."""
        return add_counts(map(Counts.from_json, self._reports_of(name)))

    def _reports_of(self, name: str) -> list[dict[str, Any]]:
        """The reports of the shards of a phase that has run; each is read once."""
        if name not in self._reports:
            phase, _ = self._phases[name]
            self._reports[name] = [files.read_json(phase.report_path(index)) for index in range(phase.shard_count)]
        return self._reports[name]

    def digests(self) -> dict[str, str]:
        """SHA-256 of every published file: as the shard that wrote it computed it, or from the file."""
        written: dict[str, str] = {}
        for phase in self._phases:
            for report in self._reports_of(phase):
                written |= report.get("sha256", {})  # absent from older programs'
        return {
            name: written.get(name) or file_sha256(f"{self.workspace}/{name}")
            for name in published_files(self.workspace)
        }

    def all_counts(self) -> tuple[Counts, dict[str, Counts]]:
        """Counts of the job (its accounted phases chained) and of every phase that is listed.

        Raises:
          RuntimeError: if a phase reads other records than the one before passed on.
        """
        every = {name: self.counts_of(name) for name in self._phases}
        chain = [every[name] for name, (_, accounting) in self._phases.items() if accounting == "chained"]
        beside = [every[name] for name, (_, accounting) in self._phases.items() if accounting == "beside"]
        for earlier, later in itertools.pairwise(chain):
            if earlier.written != later.read:
                raise RuntimeError(
                    f"{self.job.name}: a phase passed on {earlier.written} records, the next read {later.read}"
                )
        listed = {name: counts for name, counts in every.items() if self._phases[name][1] != "unlisted"}
        return add_counts([chain_counts(chain), *beside]), listed


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A finished job: its manifest as on disk, whether it was there already, and the seconds it took."""

    manifest: Mapping[str, Any]
    skipped: bool
    seconds: float


def execute(
    job: Job,
    inputs: Mapping[str, Sequence[str]],
    output: str,
    options: Any = None,
    beam_args: Sequence[str] = (),
    progress: Progress = lambda *_: None,
    announce: Announce | None = None,
) -> Outcome:
    """Runs a job, unless the output already has its result.

    Args:
      job: what to run.
      inputs: paths or glob patterns by input name.
      output: the folder to publish into; a result of other options or inputs there is replaced. It is locked while the
        job runs.
      options: an instance of ``job.options``; the defaults if absent.
      beam_args: Beam's own options (``--runner=…``).
      progress: called with (phase, complete shards or other parts, number of parts, what else grows).
      announce: called with a sentence on how much the job reads, and on what a long phase still needs.

    Raises:
      InputError: if an object store cannot be reached; if an input is missing, is not a result, is in the output
        folder or differs from its manifest; if the job is for Dataflow and a path that its workers need is local; if
        the output folder holds other files than a result, cannot be written, or another run writes to it; or if the
        job cannot read its inputs.
    """
    started = time.monotonic()
    options = job.options() if options is None else options
    files.use_options(beam_args)
    object_stores.check_reachable([output, *itertools.chain.from_iterable(inputs.values())], beam_args)
    resolved = resolve_inputs(job, inputs)
    dataflow.refuse_local_paths(output, job.read_by_workers(resolved), beam_args)
    identity = _identity(job, options, resolved)
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    output = output.rstrip("/")
    refuse_overlaps(output, options, resolved)
    if finished := _finished(output, digest):
        return finished
    with failures.named(output), locked(output), FORKS.kept():
        if finished := _finished(output, digest):  # by a run that ended in between
            return finished
        workspace = f"{output}/.work-{digest}"
        if has_manifest(output) and read_manifest(output).get("digest") == digest:  # incomplete, see _finished
            files.delete([workspace])  # a killed run has published it: its streams are no longer in it
        if not files.exists(f"{workspace}/{PUBLISH}"):
            discard_damaged(workspace)
            for name, paths in resolved.items():
                for path in paths:
                    check_input(path, f"--{name}")
            clear(output, keep=workspace)
            told = announced(job.name, resolved, workspace, progress, announce)
            run = JobRun(job, options, resolved, workspace, beam_args, told)
            job.run(run)
            for name, own in run.folders.items():
                _write_own_manifest(run, name, own, digest, identity)
            files.write_json(f"{workspace}/{PUBLISH}", _manifest(run, digest, identity).to_json())
        seconds = time.monotonic() - started
        publish(workspace, output, seconds)
        return Outcome(read_manifest(output), skipped=False, seconds=seconds)


def _finished(output: str, digest: str) -> Outcome | None:
    """The result in the output, if it is that of this job and all of its files are there."""
    if not has_manifest(output) or (found := read_manifest(output)).get("digest") != digest:
        return None
    if missing := missing_files(output, found):
        what = counted(len(missing), "file")
        _log.warning("%s: %s missing or changed, first %s; the job runs again", output, what, missing[0])
        return None
    return Outcome(found, skipped=True, seconds=read_seconds(output))


def _manifest(run: JobRun, digest: str, identity: Mapping[str, Any]) -> Manifest:
    counts, phases = run.all_counts()
    return Manifest(
        run.job.name,
        __version__,
        digest,
        identity["options"],
        identity["inputs"],
        counts.to_json(),
        {name: phase.to_json() for name, phase in phases.items()},
        run.extra,
        published_files(run.workspace),
        run.digests(),
    )


def _write_own_manifest(run: JobRun, name: str, own: OwnManifest, digest: str, identity: Mapping[str, Any]) -> None:
    folder = f"{run.workspace}/{name}"
    manifest = Manifest(
        run.job.name,
        __version__,
        f"{digest}/{name}",
        identity["options"],
        identity["inputs"],
        own.counts.to_json(),
        {},
        own.extra,
        {path: size for path, size in published_files(folder).items() if path != MANIFEST},
    )
    write_manifest(folder, manifest.to_json())


def _identity(job: Job, options: Any, inputs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the digest of a job covers."""
    return {
        "job": job.name,
        "code_version": __version__,
        "options": _plain(dataclasses.asdict(options)),
        "inputs": {
            spec.name: [(spec.digest or input_digest)(path) for path in inputs[spec.name]] for spec in job.inputs
        },
    }


def input_digest(path: str) -> str:
    """The digest of an input: that in its manifest (of the folder or its parent) or, for raw files, of the file.

    Raises:
      InputError: if there is no such path, or a folder has no manifest and so is not a result.
    """
    for folder in (path, path.rstrip("/").rpartition("/")[0]):
        if has_manifest(folder):
            return str(read_manifest(folder)["digest"])
    if not files.exists(path):
        raise InputError("no such file or folder", path=path, remedy="check the path, or run the job that writes it")
    if files.list_files(f"{path.rstrip('/')}/**"):
        raise InputError(
            f"a folder without {MANIFEST} is not a result",
            path=path,
            remedy=f"run the job that writes it to its end; name files of your own: '{path.rstrip('/')}/*'",
        )
    keys = f"{path[:-4]}.tsv"  # of an embedding table, see entities.tables
    if path.endswith(".npy") and files.exists(keys):
        return f"{files.file_digest(path)} {files.file_digest(keys)}"
    return files.file_digest(path)


def resolve_inputs(job: Job, inputs: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The paths of each input, patterns expanded; ``()`` where an optional input is not given.

    Raises:
      InputError: if a required input is not given, a pattern matches nothing, or matches several where one is expected.
    """
    return {spec.name: _resolve(job, spec, inputs.get(spec.name, ())) for spec in job.inputs}


def _resolve(job: Job, spec: InputSpec, given: Sequence[str]) -> tuple[str, ...]:
    paths: list[str] = []
    for pattern in given:
        matched = files.list_files(pattern) if any(sign in pattern for sign in "*?[") else [pattern]
        if not matched:
            raise InputError(
                "no file matches",
                path=pattern,
                field=f"--{spec.name}",
                remedy="check the pattern and quote it against the shell",
            )
        paths.extend(path.rstrip("/") for path in matched)
    if spec.required and not paths:
        raise InputError("not given", field=f"--{spec.name}", remedy=f"see `newsembed {job.name} --help`")
    if len(paths) > 1 and not spec.many:
        raise InputError(f"got {len(paths)} paths, expected one", field=f"--{spec.name}", remedy="name one folder")
    return tuple(paths)


def _plain(value: Any) -> Any:
    """Options as JSON would hold them, so that digests do not depend on Python types."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
