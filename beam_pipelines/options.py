"""Beam's options, with defaults that are right on one machine."""

from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions

from .shards import available_cores


def pipeline_options(beam_args: Sequence[str]) -> PipelineOptions:
    """Pipeline options from the command line.

    Without ``--runner`` the work runs on this machine: on the in-memory FnApiRunner, since DirectRunner first tries to
    download another runner, and in one process per core, since its threaded mode loses records.
    """
    arguments = list(beam_args)
    if not any(argument.startswith("--runner") for argument in arguments):
        arguments.append("--runner=FnApiRunner")
    local = any(argument == "--runner=FnApiRunner" for argument in arguments)
    if local and not any(argument.startswith("--direct_num_workers") for argument in arguments):
        arguments.append(f"--direct_num_workers={available_cores()}")
    if local and not any(argument.startswith("--direct_running_mode") for argument in arguments):
        workers = next(int(argument.partition("=")[2]) for argument in arguments if argument.startswith("--direct_num_workers="))
        arguments.append(f"--direct_running_mode={'multi_processing' if workers > 1 else 'in_memory'}")
    return PipelineOptions(arguments)
