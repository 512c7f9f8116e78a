"""Early checks of Beam's options for Dataflow, whose own errors come late, one at a time, or as tracebacks."""

import os
from collections.abc import Mapping, Sequence

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator

from ..errors import InputError

RUNNER = "DataflowRunner"


def names_dataflow(options: PipelineOptions) -> bool:
    """Returns whether the options choose Dataflow."""
    return (options.view_as(StandardOptions).runner or "").rpartition(".")[2] == RUNNER


def check_options(options: PipelineOptions) -> None:
    """Checks project, region, paths, names and how workers get this package, without using the network.

    Raises:
      InputError: if an option is missing or wrong; lists all problems.
    """
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner

    validator = PipelineOptionsValidator(options, DataflowRunner())
    cloud = options.view_as(GoogleCloudOptions)
    problems = [
        *validator.validate_cloud_options(cloud),
        *validator.validate_gcs_path(cloud, "temp_location"),
        *(validator.validate_gcs_path(cloud, "staging_location") if cloud.staging_location else ()),
        *validator.validate_num_workers(options.view_as(WorkerOptions)),
        *_package_problems(options),
    ]
    if problems:
        raise InputError(
            "Dataflow cannot run this: " + " ".join(problems),
            field=f"--runner={RUNNER}",
            remedy="give at least --project=P --region=R --temp_location=gs://BUCKET/tmp --setup_file=./setup.py",
        )


def check_installed() -> None:
    """Checks that jobs can be submitted from this environment.

    Raises:
      InputError: if Beam's Google Cloud support is not installed.
    """
    if not is_installed():
        raise InputError(
            "Beam's Google Cloud support is not installed",
            field=f"--runner={RUNNER}",
            remedy="pip install 'newsembed[gcp]'; --dry_run checks the options and builds the job without it",
        )


def is_installed() -> bool:
    """Returns whether Beam's Dataflow client can be imported."""
    try:
        from apache_beam.runners.dataflow.internal import apiclient  # noqa: F401 - only the import is tested
    except ImportError:
        return False
    return True


def refuse_local_paths(output: str, inputs: Mapping[str, Sequence[str]], beam_args: Sequence[str]) -> None:
    """Checks the paths of a job, if it is to run on Dataflow, before anything is submitted, see :func:`check_paths`.

    Raises:
      InputError: if workers could not read an input, or not write the output.
    """
    if names_dataflow(PipelineOptions(list(beam_args))):
        check_paths(output, inputs)


def check_paths(output: str, inputs: Mapping[str, Sequence[str]]) -> None:
    """Checks that the workers of Dataflow can read the inputs of a job and write its output.

    Args:
      output: folder of the job.
      inputs: what workers read, by the name of the option. Encoders may have their kind in front (``model:DIR``).

    Raises:
      InputError: if the output folder is not on Google Cloud Storage, or an input is on the local disk.
    """
    if not output.startswith("gs://"):
        raise InputError(
            "got a local path, where workers cannot write",
            path=output,
            field="--output",
            remedy="give a folder on gs://",
        )
    for name, paths in inputs.items():
        for path in filter(is_local, paths):
            raise InputError(
                "got a local path, which workers cannot read",
                path=path,
                field=f"--{name}",
                remedy="copy it to gs:// and name it there",
            )


def is_local(path: str) -> bool:
    """Returns whether a path, or the folder of an encoder such as ``model:DIR@STEP``, is on the local disk."""
    folder = path.rpartition("=")[2].partition(":")[2].rpartition("@")
    return "://" not in path and any(os.path.exists(one) for one in (path, folder[0] or folder[2]))


def _package_problems(options: PipelineOptions) -> list[str]:
    setup = options.view_as(SetupOptions)
    if setup.setup_file:
        if os.path.basename(setup.setup_file) != "setup.py" or not os.path.isfile(setup.setup_file):
            return [f"--setup_file: no setup.py at {setup.setup_file!r}."]
        return []
    if options.view_as(WorkerOptions).sdk_container_image or setup.extra_packages:
        return []
    return [
        "Workers would not have this package: give --setup_file=./setup.py, --extra_package or --sdk_container_image."
    ]
