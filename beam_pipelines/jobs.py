"""What every job has in common: options, skipping finished work, phases, accounting, publishing with a manifest last.

A job reads folders that have a manifest (or raw files) and works in ``<output>/.work-<digest>``. It publishes by moving
its streams to the output, and writes the manifest last. The digest covers job, code version, options and inputs. A
finished job with the same digest is skipped, an unfinished one is resumed with the shards that it lacks, and any other
starts from the beginning.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from .. import __version__
from ..errors import InputError, counted
from ..formats import files, parquet, stores
from ..formats.digests import file_sha256
from ..formats.folders import locked
from ..formats.manifest import (
    MANIFEST,
    Manifest,
    has_manifest,
    read_manifest,
    read_seconds,
    write_manifest,
)
from . import dataflow, failures, workers
from .graph import Graph, Parts, Progress, Rows
from .output_folder import (
    PUBLISH,
    check_input,
    clear,
    discard_damaged,
    missing_files,
    publish,
    published_files,
    refuse_overlaps,
    result_folders,
)
from .shards import Counts, Phase, add_counts, chain_counts, process_shards

_log = logging.getLogger(__name__)


class InputSpec(NamedTuple):
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


def optional(name: str, help_text: str, **more: Any) -> InputSpec:
    """Returns an input without which the job can run."""
    return InputSpec(name, help_text, required=False, **more)


ARTICLES: Final = InputSpec("articles", "folder that `newsembed clean` wrote")


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as the command line and the build see it.

    Attributes:
      name: command and folder name.
      example: a command that works.
      inputs: what it reads.
      options: frozen dataclass of options; each field is an `option` of `formats.command_line`. ``lasting_folder=True``
        marks a folder that is kept when the output is replaced, so it must not be in the output.
      run: the pipeline; gets a `JobRun`.
      switches: by the name of a rejection, the option and value that turn its rule off.
    """

    name: str
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
      folders: of the folders in the output that get a manifest of their own: the number of their records, and further
        entries, such as ``"examples"``.
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
        self.folders: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self._beam_args = beam_args
        self._progress = progress
        self._phases: dict[str, tuple[Phase, str]] = {}
        self._reports: dict[str, list[dict[str, Any]]] = {}  # by phase; a cache of functools cannot be sent to workers
        self._graph: Graph | None = None  # the open one

    def input(self, name: str) -> str:
        """The one path of a required input."""
        return self.inputs[name][0]

    def shards(self, name: str) -> list[str]:
        """The shards of the stream of a required input that has the input's name, such as ``articles``."""
        return parquet.shard_paths(f"{self.input(name)}/{name}")

    def phase(self, name: str, shard_count: int, *, accounted: bool = True, beside: bool = False) -> Phase:
        """Declares a phase. Accounted phases form a chain: each passes on the records that the next reads.

        Records of a phase ``beside`` the chain are added to those of the job.
        """
        phase = Phase(self.workspace, name, shard_count)
        self._phases[name] = (phase, "beside" if beside else "chained" if accounted else "")
        return phase

    def map_shards(
        self,
        name: str,
        function: Callable[..., None],
        payloads: Sequence[Any],
        *,
        accounted: bool = True,
        parts: Parts | None = None,
        **options: Any,
    ) -> None:
        """Runs ``function(shard, payloads[shard.index], **options)`` for each shard.

        Inside :meth:`graph` the phase runs together with the others of the graph, else at once.

        Args:
          name: of the phase.
          function: of a shard.
          payloads: one for each shard.
          accounted: see :meth:`phase`.
          parts: what progress counts; the shards by default.
          options: what all shards get.
        """
        phase = self.phase(name, len(payloads), accounted=accounted)
        process = process_shards(functools.partial(function, **options), phase)
        with self.graph(len(payloads)) as graph:
            graph.add(phase, lambda: graph.start(name, enumerate(payloads)) | process, parts)

    def map_rows(
        self,
        name: str,
        function: Callable[..., None],
        payloads: Sequence[Any],
        streams: Sequence[tuple[str, Rows]],
        *,
        accounted: bool = True,
        **options: Any,
    ) -> None:
        """Inside :meth:`graph`, adds a phase whose shards get rows of earlier phases.

        Args:
          name: of the phase.
          function: called with the shard, its :class:`.graph.Received`, and the options.
          payloads: one for each shard.
          streams: names of the phases that send, and what.
          accounted: see :meth:`phase`.
          options: what all shards get.
        """
        senders = [(self._phases[sender][0], rows) for sender, rows in streams]
        phase = self.phase(name, len(payloads), accounted=accounted)
        process = process_shards(functools.partial(function, **options), phase)
        with self.graph(len(payloads)) as graph:
            graph.add(phase, lambda: graph.gathered(phase, payloads, senders) | process)

    @contextlib.contextmanager
    def graph(self, shard_count: int) -> Iterator[Graph]:
        """Phases that run as one Beam pipeline, on leaving the context; inside of another one they run with it.

        The code between the phases runs before any of them: it must not read what they write, nor their counts.

        Args:
          shard_count: of the phase with the most shards.

        Yields the graph, for phases that neither :meth:`map_shards` nor :meth:`map_rows` adds.
        """
        if self._graph is not None:
            yield self._graph
            return
        self._graph = graph = Graph(workers.make_pipeline(self._beam_args, shard_count))
        try:
            yield graph
        finally:
            self._graph = None
        if graph.waiting:
            with self._watched(graph), failures.named(self.workspace):
                workers.run(graph.pipeline)
        else:  # what was made with the pipeline; running it deletes it
            files.delete([graph.pipeline.local_tempdir])
        for phase, parts in graph.phases:
            _, total, grown = parts.progress()
            self._progress(phase.name, total, total, grown)

    @contextlib.contextmanager
    def _watched(self, graph: Graph) -> Iterator[None]:
        """Reports progress by the parts that appear, from a thread: the runner says nothing until it is done."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(0.5):
                for state in graph.progress():
                    self._progress(*state)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()

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
        written, names = self._reported("sha256"), published_files(self.workspace)
        return {name: written.get(name) or file_sha256(f"{self.workspace}/{name}") for name in names}

    def blocks(self, below: str) -> dict[str, dict[str, list[int]]]:
        """The manifest's entry ``"blocks"`` of a folder ("" or "held_out/"); none where there are no training data."""
        every = sorted(self._reported("blocks").items())
        found = {name.removeprefix(below): places for name, places in every if name.startswith(f"{below}task=")}
        return {"blocks": found} if found else {}

    def _reported(self, what: str) -> dict[str, Any]:
        """What the reports of all shards say of the files that they wrote, by name."""
        reports = (report for phase in self._phases for report in self._reports_of(phase))
        return dict(item for report in reports for item in report[what].items())

    def all_counts(self) -> tuple[Counts, dict[str, Counts]]:
        """Counts of the job (its accounted phases chained) and of every phase that counted something.

        Raises:
          RuntimeError: if a phase reads other records than the one before passed on.
        """
        every = {name: self.counts_of(name) for name in self._phases}
        known = [(every[name], how) for name, (_, how) in self._phases.items()]
        chain, beside = ([counts for counts, how in known if how == wanted] for wanted in ("chained", "beside"))
        for earlier, later in itertools.pairwise(chain):
            if earlier.written != later.read:
                what = f"a phase passed on {earlier.written} records, the next read {later.read}"
                raise RuntimeError(f"{self.job.name}: {what}")
        listed = {name: counts for name, counts in every.items() if counts != Counts()}
        return add_counts([chain_counts(chain), *beside]), listed


class Outcome(NamedTuple):
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
    """
    started = time.monotonic()
    options = job.options() if options is None else options
    stores.use_options(beam_args)
    stores.check_reachable([output, *itertools.chain.from_iterable(inputs.values())])
    resolved = resolve_inputs(job, inputs)
    dataflow.check_paths(beam_args, output, job.read_by_workers(resolved))
    identity = _identity(job, options, resolved)
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    output = output.rstrip("/")
    refuse_overlaps(output, options, resolved)
    if finished := _finished(output, digest):
        return finished
    with failures.named(output), locked(output):
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
            run = JobRun(job, options, resolved, workspace, dataflow.staged(beam_args, resolved), progress)
            with workers.outside_of_notebooks():
                job.run(run)
            _write_manifests(run, digest, identity)
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


def _write_manifests(run: JobRun, digest: str, identity: Mapping[str, Any]) -> None:
    """Writes the manifests of folders in the output, and that of the job, which becomes valid on publication."""
    about = (identity["options"], identity["inputs"])
    for name, (records, own) in run.folders.items():
        folder = f"{run.workspace}/{name}"
        listed = {path: size for path, size in published_files(folder).items() if path != MANIFEST}
        counts, extra = Counts(records, records), {**own, **run.blocks(f"{name}/")}
        facts: tuple[Any, ...] = (f"{digest}/{name}", *about, counts.to_json(), {}, extra, listed)
        write_manifest(folder, Manifest(run.job.name, __version__, *facts).to_json())
    counts, phases = run.all_counts()
    of_phases = {name: phase.to_json() for name, phase in phases.items()}
    extra = {**run.extra, **run.blocks("")}
    facts = (digest, *about, counts.to_json(), of_phases, extra, published_files(run.workspace))
    manifest = Manifest(run.job.name, __version__, *facts, run.digests())
    files.write_json(f"{run.workspace}/{PUBLISH}", manifest.to_json())


def _identity(job: Job, options: Any, inputs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the digest of a job covers."""
    digests = {spec.name: list(map(spec.digest or input_digest, inputs[spec.name])) for spec in job.inputs}
    facts = {"job": job.name, "code_version": __version__, "options": plain_options(options)}
    return {**facts, "inputs": digests}


def input_digest(path: str) -> str:
    """The digest of an input: that in its manifest (of the folder or its parent) or, for raw files, of the file.

    Raises:
      InputError: if there is no such path, or a folder has no manifest and so is not a result.
    """
    if folder := next(filter(has_manifest, result_folders(path)), None):
        return str(read_manifest(folder)["digest"])
    if not files.exists(path):
        raise InputError("no such file or folder", path=path, remedy="check the path, or run the job that writes it")
    if files.list_files("**", path):
        remedy = f"run the job that writes it to its end; name files of your own: '{path.rstrip('/')}/*'"
        raise InputError(f"a folder without {MANIFEST} is not a result", path=path, remedy=remedy)
    keys = f"{path[:-4]}.tsv"  # of an embedding table, see entities.tables
    if path.endswith(".npy") and files.exists(keys):
        return f"{files.file_digest(path)} {files.file_digest(keys)}"
    return files.file_digest(path)


def resolve_inputs(job: Job, inputs: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The paths of each input, patterns expanded; ``()`` where an optional input is not given.

    Raises:
      InputError: if a required input is not given, a pattern matches nothing, or matches several where one is expected.
    """
    resolved = {}
    for spec in job.inputs:
        field, paths = f"--{spec.name}", list[str]()
        for pattern in inputs.get(spec.name, ()):
            is_pattern = any(sign in pattern for sign in "*?[") and not files.exists(pattern)
            matched = files.list_files(pattern) if is_pattern else [pattern]
            if not matched:
                remedy = "check the pattern and quote it against the shell"
                raise InputError("no file matches", path=pattern, field=field, remedy=remedy)
            paths += [path.rstrip("/") for path in matched]
        if spec.required and not paths:
            raise InputError("not given", field=field, remedy=f"see `newsembed {job.name} --help`")
        if len(paths) > 1 and not spec.many:
            raise InputError(f"got {len(paths)} paths, expected one", field=field, remedy="name one folder")
        resolved[spec.name] = tuple(paths)
    return resolved


def plain_options(options: Any) -> dict[str, Any]:
    """Options as the manifest has them, so that digests do not depend on Python types."""
    return json.loads(json.dumps(dataclasses.asdict(options), default=str))
