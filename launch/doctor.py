"""``newsembed doctor``: what this machine has, which extras are installed, and which versions do not fit together.

Example::

    newsembed doctor

It imports none of the libraries, and no network is used. The exit code is 1 if installed versions conflict.
"""

import argparse
import glob
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from typing import Any, Final

from .. import __version__
from ..formats.huggingface.packaged import PACKAGED_MODELS
from .extras import EXTRAS, is_there

_GIB: Final = 1 << 30
_DEVICES: Final = (("NVIDIA GPU", "/dev/nvidia[0-9]*"), ("TPU", "/dev/accel[0-9]*"), ("TPU", "/dev/vfio/[0-9]*"))
_PLUGINS: Final = {"NVIDIA GPU": ("jax_cuda13_plugin", "jax_cuda12_plugin"), "TPU": ("libtpu",)}
_GPU_EXTRAS: Final = {"NVIDIA GPU": "gpu", "TPU": "tpu"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds no options."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    del args
    import rich
    from rich.markup import escape
    from rich.table import Table

    for name, value in machine().items():
        rich.print(f"{name:<13}{escape(value)}")
    table = Table("extra", "installed", "what it is for", title="Parts of newsembed")
    for name, extra in EXTRAS.items():
        lacking = [module for module in extra.modules if not is_there(module)]
        state = "yes" if not lacking else "no" if lacking[0] == extra.modules[0] else f"lacks {', '.join(lacking)}"
        table.add_row(name, state, escape(extra.purpose))
    rich.print(table)
    rich.print("embed, index and search need none of them for models without layers.")
    rich.print(escape("To add one: pip install 'newsembed[NAME]'"))
    rich.print(escape("newsembed[all] has all but translate, tags and umap."))
    for name, model in PACKAGED_MODELS.items():
        state = "installed" if is_there(model.module) else f"not installed; to add it: {model.command}"
        rich.print(escape(f"{name} ({model.title}), a start for import-hf and lift: {state}"))
    found = sorted(set(conflicts()))
    for line in found:
        print(f"conflict: {line}")
    if not found:
        print("no version conflicts")
    return 1 if found else 0


def machine() -> dict[str, str]:
    """What the machine has, in words, by name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "newsembed": __version__,
        "Python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(cores),
        "memory": f"{memory / _GIB:.1f} GiB",
        "free disk": f"{shutil.disk_usage('.').free / _GIB:.1f} GiB here",
        "accelerators": ", ".join(_accelerators()) or "none: training and layers run on the CPU",
        "Java": "not needed",
    }


def _accelerators() -> Iterator[str]:
    for kind, pattern in _DEVICES:
        count = len(glob.glob(pattern))
        if count and any(map(is_there, _PLUGINS[kind])):
            yield f"{count} x {kind}"
        elif count:
            yield f"{count} x {kind}, which JAX cannot use: pip install 'newsembed[{_GPU_EXTRAS[kind]}]'"


def conflicts() -> Iterator[str]:
    """Requirements of installed packages that the installed versions do not meet; a line each.

    A package that is not installed is not a conflict: extras are optional.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    versions = {_plain(found.name): found.version for found in importlib.metadata.distributions()}
    for distribution in importlib.metadata.distributions():
        for text in distribution.requires or ():
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue  # in no syntax that packaging knows: pip could not compare it either
            version = versions.get(_plain(requirement.name))
            if version is None or not _applies(requirement, own=distribution.name == "newsembed"):
                continue
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"{distribution.name} {distribution.version} needs {requirement}, {version} is installed"


def _applies(requirement: Any, *, own: bool) -> bool:
    """Whether a requirement holds here; of our own extras all do, as far as their packages are installed."""
    if requirement.marker is None:
        return True
    names = EXTRAS if own else ("",)
    return any(requirement.marker.evaluate({"extra": name}) for name in names)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")
