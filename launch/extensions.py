"""Modules of users that register architectures, objectives and tasks: ``newsembed --import MODULE COMMAND …``.

A model folder names the kind of its architecture and never code, so the user says what is imported. The environment
variable NEWSEMBED_IMPORT names modules too, separated by commas; processes that a command starts inherit them.
"""

import importlib
import os
from collections.abc import Sequence
from typing import Final

from ..errors import InputError

OPTION: Final = "--import"
ENVIRONMENT: Final = "NEWSEMBED_IMPORT"


def split_imports(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The modules that options before the command name, and the other arguments.

    >>> split_imports(["--import", "star", "--import=tree", "embed", "--model", "m"])
    (['star', 'tree'], ['embed', '--model', 'm'])

    Raises:
      InputError: for an option without a module.
    """
    modules, rest = [], list(arguments)
    while rest and rest[0].partition("=")[0] == OPTION:
        option, equals, module = rest.pop(0).partition("=")
        if not equals and rest:
            module = rest.pop(0)
        if not module:
            raise InputError("got no module", field=option, remedy="Write newsembed --import MODULE COMMAND …")
        modules.append(module)
    return modules, rest


def import_modules(modules: Sequence[str]) -> None:
    """Imports these modules and those that the environment names, and tells child processes to do so.

    Raises:
      InputError: for a module that cannot be imported.
    """
    inherited = [module for module in os.environ.get(ENVIRONMENT, "").split(",") if module]
    wanted = list(dict.fromkeys([*inherited, *modules]))
    for module in wanted:
        try:
            importlib.import_module(module)
        except ImportError as error:
            remedy = "Install the module, or add its folder to PYTHONPATH."
            raise InputError(f"cannot import {module}: {error}", field=OPTION, remedy=remedy) from error
    if wanted:
        os.environ[ENVIRONMENT] = ",".join(wanted)
