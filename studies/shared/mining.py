"""Mines training data again with some options changed; the output of unaffected jobs is reused."""

import dataclasses
import datetime
import enum
import os
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...beam_pipelines.jobs import Job
from ...beam_pipelines.workflow import STEPS, build, load_job
from ...errors import InputError
from ...formats.manifest import MANIFEST, has_manifest, manifest_path, read_manifest

Changes = Mapping[str, Mapping[str, Any]]  # values of options by job, see `options_of`


def build_folder(path: str, jobs: Collection[str] | None = None) -> str:
    """The work folder of a build, from itself or from its ``clean`` folder.

    Args:
      path: of one of them.
      jobs: those that must be finished; None for all.
    """
    work = path.rstrip("/")
    if not has_manifest(f"{work}/clean") and has_manifest(work):
        work = os.path.dirname(work) or "."
    needed = [step.job for step in STEPS if (not step.only_with if jobs is None else step.job in jobs)]
    if missing := [job for job in needed if not has_manifest(f"{work}/{job}")]:
        problem = f"no finished build: no {MANIFEST} in {', '.join(missing)}"
        remedy = "name a folder that `newsembed build` finished, such as demo-output/work"
        raise InputError(problem, path=path, remedy=remedy)
    return work


def options_of(job: Job, values: Mapping[str, Any], base: Any = None, path: str = "") -> Any:
    """Options of a job with some values, as JSON or TOML have them.

    Args:
      job: the job.
      values: by name; ``name.N`` is item N of a tuple.
      base: the options that they change; by default the job's defaults.
      path: of the file of the values, for errors.
    """
    hints, found = typing.get_type_hints(job.options), dict[str, Any]()
    base = job.options() if base is None else base
    for key, value in values.items():
        name, _, place = key.partition(".")
        if name not in hints:
            raise InputError(f"got an option that {job.name} does not have: {name}", path=path, remedy="build again")
        if place:
            items = list(found.get(name, getattr(base, name)))
            items[int(place)] = value
            value = items  # noqa: PLW2901 - the whole tuple
        found[name] = _typed(hints[name], value)
    return dataclasses.replace(base, **found)


def _typed(hint: Any, value: Any) -> Any:
    """Converts a JSON value to the declared type of a field."""
    arguments = typing.get_args(hint)
    if value is None:
        return None
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _typed(next(argument for argument in arguments if argument is not type(None)), value)
    if typing.get_origin(hint) is tuple:
        return tuple(_typed(arguments[0], item) for item in value)
    if hint is datetime.date and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    return hint(value) if isinstance(hint, type) and issubclass(hint, enum.Enum) else value


def built_options(work: str, job: str, changes: Mapping[str, Any]) -> Any:
    """The options that a finished job of a build ran with, with some changes, see :func:`options_of`."""
    folder, loaded = f"{work}/{job}", load_job(job)
    ran_with = options_of(loaded, read_manifest(folder)["options"], path=manifest_path(folder))
    return options_of(loaded, changes, ran_with)


def affected(changed: Collection[str], keeps: Collection[str] = ()) -> list[str]:
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

    Without one of them the new data would differ in more than the changed options.
    """
    ran = jobs_that_ran(work)
    for step in (step for step in STEPS if step.job in jobs and step.job in ran):
        inputs = read_manifest(f"{work}/{step.job}")["inputs"]
        for name, source in step.inputs.items():
            parts = source.split("+")
            # An input that an earlier job may give, too, is one more digest than that job's.
            is_theirs = len(inputs.get(name) or ()) > sum(part in ran for part in parts)
            for own in (part[1:] for part in parts if part.startswith("@")):
                if is_theirs and not given.get(own) and name not in exempt:
                    problem = f"the {step.job} job of the build had this input, so mining again needs it too"
                    raise InputError(problem, path=work, field=f"--{own}", remedy="give it")


def jobs_that_ran(work: str) -> list[str]:
    """The jobs of a build that it did not leave out."""
    return [step.job for step in STEPS if not step.only_with or has_manifest(f"{work}/{step.job}")]


def mine_again(
    work: str,
    output: str,
    changes: Changes,
    given: Mapping[str, Sequence[str]] | None = None,
    beam_args: Sequence[str] = (),
    keeps: Collection[str] = (),
) -> dict[str, str]:
    """Runs the jobs that ``changes`` affect, with the build's other options unchanged; finished ones are skipped.

    Args:
      work: a finished build.
      output: folder that gets a folder for each job that runs.
      changes: new values of options, by job.
      given: the user's inputs by name, see ``workflow.USER_INPUTS``.
      beam_args: Beam's own options.
      keeps: jobs whose output stays the build's, although a change affects them.

    Returns:
      The folder of every job: the new one, or the build's.
    """
    ran = jobs_that_ran(work)
    again = [job for job in affected(changes, keeps) if job in ran]
    kept = {job: f"{work}/{job}" for job in ran if job not in again}
    options = {job: built_options(work, job, changes.get(job, {})) for job in again}
    left_out = {step.only_with for step in STEPS if step.job not in ran}  # and stay so
    own = {name: paths for name, paths in (given or {}).items() if name not in left_out}
    build(own, output, options, beam_args, reused=kept)
    return kept | {job: f"{output}/{job}" for job in again}


def count(folder: str, section: str, prefix: str) -> int:
    """The sum of a manifest's counts whose names start with ``prefix``, in ``"examples"`` or in ``"tallies"``."""
    manifest = read_manifest(folder)
    counts: Mapping[str, int] = (manifest if section == "examples" else manifest["counts"]).get(section, {})
    return sum(number for name, number in counts.items() if name.startswith(prefix))
