"""Dry run of a job: checks options, resolves inputs, builds pipelines and packages as for a cluster, and runs nothing.

The network is not used.
"""

import dataclasses
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, WorkerOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.pipeline_utils import group_by_key_input_visitor
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms import environments

from ..errors import InputError
from ..formats import files
from . import dataflow
from .accounting import Counts
from .graph import Graph
from .jobs import Job, JobRun, resolve_inputs
from .shards import Phase

_IMAGE = "apache/beam_python{major}.{minor}_sdk:{version}"


@dataclasses.dataclass(frozen=True)
class PlannedPipeline:
    """One pipeline of a job.

    Attributes:
      name: of its files.
      phases: (name, number of shards) in order.
      transforms: in order, as "name  urn".
      stages: number of fused stages; a runner runs each of them as a whole.
      shuffles: number of GroupByKeys, those that only distribute shards over workers included.
    """

    name: str
    phases: tuple[tuple[str, int], ...]
    transforms: tuple[str, ...]
    stages: int
    shuffles: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """The plan of a job.

    Attributes:
      pipelines: in the order in which they would run.
      staged: names of the files that would be sent to workers.
      files: written files: a proto (.pb) and its transforms (.txt) for each pipeline, and the staged files.
      remarks: notes on what cannot be known or done in this environment.
    """

    pipelines: tuple[PlannedPipeline, ...]
    staged: tuple[str, ...]
    files: tuple[str, ...]
    remarks: tuple[str, ...]


def plan(
    job: Job, inputs: Mapping[str, Sequence[str]], output: str, options: Any, beam_args: Sequence[str], folder: str
) -> Plan:
    """Builds the pipelines of a job as far as possible before any of them has run, and writes them to a local folder.

    Args:
      job: the job.
      inputs: paths or glob patterns by input name; they are resolved.
      output: the folder that would be published; nothing is read or written there.
      options: an instance of ``job.options``.
      beam_args: Beam's own options.
      folder: local folder for protos, graphs and packages.

    Raises:
      InputError: if the runner would refuse the options, an input is missing, or the job refuses its data before its
        first phase.
    """
    beam_options = PipelineOptions(list(beam_args))
    files.use_options(beam_args)
    resolved = resolve_inputs(job, inputs)
    remarks: list[str] = []
    if dataflow.names_dataflow(beam_options):
        dataflow.check_options(beam_options)
        read_by_workers = job.read_by_workers(resolved)
        dataflow.check_paths(output, read_by_workers)
        remarks += [
            f"{path} is a local path: only the launching process reads it"
            for name, paths in resolved.items()
            for path in paths
            if path not in read_by_workers[name] and dataflow.is_local(path)
        ]
        if not dataflow.is_installed():
            remarks.append(
                "Beam's Google Cloud support is not installed: run `pip install 'newsembed[gcp]'` before you submit"
            )
    folder = os.path.abspath(folder)  # Beam changes the working directory to build the package
    os.makedirs(folder, exist_ok=True)
    artifacts = _stage(beam_options, f"{folder}/staged")
    run = _DryRun(
        job, options, resolved, f"{output.rstrip('/')}/.work-dry-run", _environment(beam_options, artifacts), folder
    )
    try:
        job.run(run)
    except InputError:
        if not run.planned:
            raise
        # Jobs check their inputs before their first phase. Later errors come from results, which do not exist here.
        remarks.append(f"what follows {run.planned[-1].name} needs its results: phases after it, if any, are not shown")
    written = [f"{folder}/{one.name}.{ending}" for one in run.planned for ending in ("pb", "txt")]
    written += sorted(os.path.join(f"{folder}/staged", name) for name in os.listdir(f"{folder}/staged"))
    return Plan(tuple(run.planned), tuple(map(_staged_name, artifacts)), tuple(written), tuple(remarks))


class _DryGraph(Graph):
    """A graph of which nothing has run; its workspace is not looked at."""

    def is_complete(self, phase: Phase) -> bool:  # noqa: ARG002 - true of every phase
        """Whether all shards of a phase have been written: no."""
        return False


class _DryRun(JobRun):
    """A run that writes its pipelines to files instead of running them, and whose phases have empty counts."""

    def __init__(
        self,
        job: Job,
        options: Any,
        inputs: Mapping[str, tuple[str, ...]],
        workspace: str,
        environment: environments.Environment,
        folder: str,
    ) -> None:
        super().__init__(job, options, inputs, workspace, (), lambda *_: None)
        self.planned: list[PlannedPipeline] = []
        self._environment = environment
        self._folder = folder

    def _empty_graph(self, shard_count: int) -> Graph:  # noqa: ARG002 - Dataflow chooses its workers
        return _DryGraph(beam.Pipeline(options=PipelineOptions(["--pickle_library=cloudpickle"])))  # Dataflow's choice

    def _run(self, graph: Graph, name: str) -> None:
        """Writes a graph to the folder."""
        try:
            # Dataflow requires of a GroupByKey: pairs, with deterministic key coders.
            graph.pipeline.visit(group_by_key_input_visitor(True))
            proto = graph.pipeline.to_runner_api(default_environment=self._environment)
        finally:
            shutil.rmtree(graph.pipeline.local_tempdir, ignore_errors=True)  # Beam does so only after a run
        leaves = list(_leaves(proto, proto.root_transform_ids))
        transforms = tuple(f"{one.unique_name}  {one.spec.urn}" for one in leaves)
        with open(f"{self._folder}/{name}.pb", "wb") as sink:
            sink.write(proto.SerializeToString())
        with open(f"{self._folder}/{name}.txt", "w", encoding="utf-8") as sink:
            sink.write("\n".join(transforms) + "\n")
        phases = tuple((phase.name, phase.shard_count) for phase, _ in graph.phases)
        self.planned.append(PlannedPipeline(name, phases, transforms, *stages_and_shuffles(proto)))

    def counts_of(self, name: str) -> Counts:  # noqa: ARG002 - nothing has been counted
        """Returns empty counts."""
        return Counts()


def _stage(options: PipelineOptions, folder: str) -> list[Any]:
    """Builds the artifacts for workers as Beam does: the sdist of ``--setup_file`` and extra packages.

    Raises:
      InputError: if ``--requirements_file`` is given, or the package cannot be built.
    """
    os.makedirs(folder, exist_ok=True)
    setup = options.view_as(SetupOptions)
    if setup.requirements_file:
        raise InputError(
            "got a file whose packages would have to be downloaded",
            field="--requirements_file",
            remedy="give --setup_file=./setup.py, which lists them too",
        )
    try:
        return list(environments.python_sdk_dependencies(options, tmp_dir=folder))
    except (RuntimeError, OSError) as error:
        raise InputError(
            f"the package for workers was not built: {error}",
            path=setup.setup_file,
            field="--setup_file",
            remedy="run `make wheel`",
        ) from error


def _environment(options: PipelineOptions, artifacts: list[Any]) -> environments.Environment:
    image = options.view_as(WorkerOptions).sdk_container_image or _IMAGE.format(
        major=sys.version_info.major, minor=sys.version_info.minor, version=beam.version.__version__
    )
    return environments.DockerEnvironment.from_container_image(image, artifacts=tuple(artifacts))


def _leaves(proto: beam_runner_api_pb2.Pipeline, names: Iterable[str]) -> Iterator[Any]:
    """Yields the primitive transforms in the order in which the job applied them; composite ones are expanded."""
    for name in names:
        transform = proto.components.transforms[name]
        if transform.subtransforms:
            yield from _leaves(proto, transform.subtransforms)
        elif transform.spec.urn:
            yield transform


def stages_and_shuffles(proto: beam_runner_api_pb2.Pipeline) -> tuple[int, int]:
    """The number of stages after Beam's own fusion (Dataflow's may differ a little), and of GroupByKeys."""
    group = common_urns.primitives.GROUP_BY_KEY.urn
    shuffles = sum(one.spec.urn == group for one in _leaves(proto, proto.root_transform_ids))
    _, stages = FnApiRunner().create_stages(proto)
    return len(stages), shuffles


def _staged_name(artifact: Any) -> str:
    role = beam_runner_api_pb2.ArtifactStagingToRolePayload()
    role.ParseFromString(artifact.role_payload)
    return str(role.staged_name)
