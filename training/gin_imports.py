"""Which modules a gin file may import: importing a module runs its code, and gin files come from others, too."""

import os
from collections.abc import Collection
from typing import Any, Final

from gin import config_parser

from ..errors import InputError

_OWN: Final = (__package__ or "").partition(".")[0]
# What gin files of newsembed and of T5X name; their modules only define things when they are imported.
ALLOWED: Final = (_OWN, "flax", "jax", "optax", "seqio", "t5x")
ENVIRONMENT: Final = "NEWSEMBED_IMPORT"  # names the modules of `newsembed --import`, separated by commas


def check_import(module: str, place: str, allowed: Collection[str]) -> None:
    """Checks that a gin file may import a module.

    Args:
      module: as the file names it.
      place: "file:line" or the option.
      allowed: further modules, with those below them. Modules that `newsembed --import` imports are allowed, too.

    Raises:
      InputError: for any other module; names file, line, module and the option that allows it.
    """
    named = [name for name in os.environ.get(ENVIRONMENT, "").split(",") if name]
    if not any(module == name or module.startswith(f"{name}.") for name in (*ALLOWED, *named, *allowed)):
        raise InputError(
            "a gin file may not import this module, because that runs its code",
            path=place,
            field=f"import {module}",
            remedy=f"If you trust this module, add --allow_import {module.partition('.')[0]}; otherwise do not use "
            "the file.",
        )


class _Silent(config_parser.ParserDelegate):
    """Reads values without keeping them."""

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> None:
        del scoped_configurable_name, evaluate

    def macro(self, macro_name: str) -> None:
        del macro_name


def check_expanded(texts: Collection[str], allowed: Collection[str]) -> None:
    """Checks the texts that gin gets, whose includes are in place: gin imports and includes what it finds in them.

    Args:
      texts: gin files with their includes, and bindings.
      allowed: see :func:`check_import`.

    Raises:
      InputError: if one imports another module, or includes a file that has not been read yet.
      SyntaxError: from gin's parser.
    """
    for text in texts:
        for statement in config_parser.ConfigParser(text, _Silent()):
            check_statement(statement, allowed)


def check_statement(statement: Any, allowed: Collection[str]) -> None:
    """Checks a statement of an expanded text; see :func:`check_expanded`.

    Raises:
      InputError: for an import that is not allowed, or an include.
    """
    if isinstance(statement, config_parser.ImportStatement):
        check_import(statement.module, "--gin_file", allowed)
    elif isinstance(statement, config_parser.IncludeStatement):
        raise InputError(
            f'got an include of {statement.filename!r} in an unusual form, expected include "FILE" on its own line',
            field="--gin_file",
            remedy="Write it on one line, without brackets and comments before it.",
        )
