"""Mines training data again with some options changed; the output of unaffected jobs is reused."""

import dataclasses
import datetime
import enum
import os
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from ...beam_pipelines.jobs import Job
from ...beam_pipelines.workflow import STEPS, Step, build, load_job
from ...errors import InputError
from ...formats.manifest import MANIFEST, has_manifest, manifest_path, read_manifest

Change = Callable[[Any], Any]  # options of a job to other options of it
_REMEDY: Final = "name a folder that `newsembed build` finished, such as demo-output/work"


def build_folder(path: str, jobs: Collection[str] | None = None) -> str:
    """The work folder of a build, from itself or from its ``clean`` folder.

    Args:
      path: of one of them.
      jobs: those that must be finished; None for all.

    Raises:
      InputError: if one of them is not finished.
    """
    work = path.rstrip("/")
    if not has_manifest(f"{work}/clean") and has_manifest(work):
        work = os.path.dirname(work) or "."
    needed = [step.job for step in STEPS if (not step.only_with if jobs is None else step.job in jobs)]
    missing = [job for job in needed if not has_manifest(f"{work}/{job}")]
    if missing:
        raise InputError(f"no finished build: {', '.join(missing)} have no {MANIFEST}", path=path, remedy=_REMEDY)
    return work


def manifest_of(work: str, job: str) -> Mapping[str, Any]:
    """The manifest of one job of a build."""
    return read_manifest(f"{work}/{job}")


def options_of(work: str, job: str) -> Any:
    """The options that a finished job of a build ran with, as its options dataclass.

    Raises:
      InputError: if the manifest has an option that this version does not know.
    """
    return options_from_json(load_job(job), manifest_of(work, job)["options"], manifest_path(f"{work}/{job}"))


def options_from_json(job: Job, values: Mapping[str, Any], path: str) -> Any:
    """Options from a manifest; options that are newer than the manifest have their defaults.

    Raises:
      InputError: if the manifest has an option that this version does not know.
    """
    hints = typing.get_type_hints(job.options)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise InputError(
            f"got options that {job.name} does not have: {', '.join(unknown)}", path=path, remedy="build again"
        )
    return job.options(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    """Converts a JSON value to the declared type of a field."""
    arguments = typing.get_args(hint)
    if value is None:
        return None
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _value(next(argument for argument in arguments if argument is not type(None)), value)
    if typing.get_origin(hint) is tuple:
        return tuple(_value(arguments[0], item) for item in value)
    if hint is datetime.date:
        return datetime.date.fromisoformat(value)
    return hint(value) if isinstance(hint, type) and issubclass(hint, enum.Enum) else value


def affected(changed: Sequence[str], keeps: Collection[str] = ()) -> list[str]:
    """The jobs to run again, in order: the changed ones and all that read them, directly or indirectly.

    Args:
      changed: jobs with other options.
      keeps: jobs that do not run again, nor those that would only because of them.
    """
    found = set(changed)
    for step in STEPS:
        if found & step.sources() and step.job not in keeps:
            found.add(step.job)
    return [step.job for step in STEPS if step.job in found]


def missing_inputs(work: str, jobs: Sequence[str], given: Mapping[str, Sequence[str]], exempt: Sequence[str]) -> None:
    """Checks that the user's inputs to these jobs of the build are given again.

    Raises:
      InputError: for the first one that is not; without it the new data would differ in more than the changed options.
    """
    for step in STEPS:
        if step.job not in jobs or not _has_run(work, step):
            continue
        for name, source in step.inputs.items():
            own = next((part[1:] for part in source.split("+") if part.startswith("@")), None)
            had = manifest_of(work, step.job)["inputs"].get(name) if own else None
            # An input that an earlier job may give, too, is one more digest than that job's.
            is_theirs = had and len(had) > sum(part in jobs_that_ran(work) for part in source.split("+"))
            if own and is_theirs and not given.get(own) and name not in exempt:
                raise InputError(
                    f"the {step.job} job of the build had this input, so mining again needs it too",
                    path=work,
                    field=f"--{own}",
                    remedy="give it",
                )


def jobs_that_ran(work: str) -> list[str]:
    """The jobs of a build that it did not leave out."""
    return [step.job for step in STEPS if _has_run(work, step)]


def _has_run(work: str, step: Step) -> bool:
    return not step.only_with or has_manifest(f"{work}/{step.job}")


def mine_again(
    work: str,
    output: str,
    changes: Mapping[str, Change],
    given: Mapping[str, Sequence[str]] | None = None,
    beam_args: Sequence[str] = (),
    keeps: Collection[str] = (),
) -> dict[str, str]:
    """Runs the jobs that ``changes`` affect, with the build's other options unchanged; finished ones are skipped.

    Args:
      work: a finished build.
      output: folder that gets a folder for each job that runs.
      changes: functions from the build's options to the new ones, by job.
      given: the user's inputs by name, see ``workflow.USER_INPUTS``.
      beam_args: Beam's own options.
      keeps: jobs whose output stays the build's, although a change affects them.

    Returns:
      The folder of every job: the new one, or the build's.

    Raises:
      InputError: from the first job that fails.
    """
    ran = jobs_that_ran(work)
    again = [job for job in affected(list(changes), keeps) if job in ran]
    kept = {job: f"{work}/{job}" for job in ran if job not in again}
    options = {job: changes.get(job, _same)(options_of(work, job)) for job in again}
    left_out = {step.only_with for step in STEPS if step.job not in ran}  # and stay so
    own = {name: paths for name, paths in (given or {}).items() if name not in left_out}
    build(own, output, options, beam_args, reused=kept)
    return kept | {job: f"{output}/{job}" for job in again}


def _same(options: Any) -> Any:
    return options


def changed(**values: Any) -> Change:
    """The change that sets these options."""
    return lambda options: dataclasses.replace(options, **values)


same: Final[Change] = _same


def count(work: str, job: str, section: str, prefix: str) -> int:
    """The sum of a manifest's counts whose names start with ``prefix``, in ``"examples"`` or in ``"tallies"``."""
    manifest = manifest_of(work, job)
    counts: Mapping[str, int] = (
        manifest.get("examples", {}) if section == "examples" else manifest["counts"].get("tallies", {})
    )
    return sum(number for name, number in counts.items() if name.startswith(prefix))
