"""Gin files of T5X for our trainer: names that mean the same are translated, the others are left out and listed.

A file of T5X follows a run file of ours, which has the architecture and the objectives::

    newsembed train --gin_file=runs/train_small.gin --gin_file=their_run.gin …
"""

import dataclasses
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

from gin import config_parser

# Names as those of imported modules, a module of T5X, or one of its own gin files.
_OF_T5X: Final = re.compile(
    r"""^(?:from __gin__ import dynamic_registration|(?:from|import)\s+t5x\b"""
    r"""|include\s+["']t5x/(?:configs|examples|contrib)/)""",
    re.MULTILINE,
)
_T5X_MODULES: Final = ("t5x", "t5", "seqio", "airio", "__main__", "__gin__", "gin")
_T5X_INCLUDES: Final = ("t5x/configs/", "t5x/examples/", "t5x/contrib/")
_MACRO: Final = re.compile(r"%(\w+)")

# T5X's [scope/]class.argument, and the macro of ours. A macro takes the place of the run file's value; a value for what
# the macro configures would leave the run file's macro without use, which is an error.
KEYS: Final = {
    "train.model_dir": "MODEL_DIR",
    "train.total_steps": "TRAIN_STEPS",
    "train.stats_period": "LOG_PERIOD",
    "train.random_seed": "SEED",
    "train.eval_period": "EVAL_PERIOD",
    "train.eval_steps": "EVAL_BATCHES",
    "train/DatasetConfig.mixture_or_task_name": "MIXTURE_OR_TASK_NAME",
    "train/DatasetConfig.task_feature_lengths": "TASK_FEATURE_LENGTHS",
    "train/DatasetConfig.batch_size": "BATCH_SIZE",
    "SaveCheckpointConfig.period": "CHECKPOINT_PERIOD",
    "SaveCheckpointConfig.keep": "KEEP_CHECKPOINTS",
    "SaveBestCheckpointer.force_keep_period": "KEEP_PERIOD",
    "RestoreCheckpointConfig.path": "INITIAL_CHECKPOINT_PATH",
    "PjitPartitioner.num_partitions": "MODEL_PARALLEL",
}
MACROS: Final = {"RANDOM_SEED": "SEED", "EVAL_STEPS": "EVAL_BATCHES", "STATS_PERIOD": "LOG_PERIOD"}
# What only connects T5X's own parts with each other.
_WIRING: Final = frozenset(
    {
        "train.model",
        "train.train_dataset_cfg",
        "train.checkpoint_cfg",
        "train.partitioner",
        "train.trainer_cls",
        "train.summarize_config_fn",
        "train.get_dataset_fn",
        "train.train_eval_get_dataset_fn",
        "train.inference_evaluator_cls",
        "CheckpointConfig.save",
        "CheckpointConfig.restore",
        "Trainer.learning_rate_fn",
        "PjitPartitioner.logical_axis_rules",
        "EmbeddingModel.model",
        "EmbeddingModel.data",
        "EmbeddingModel.optimizer_def",
        "summarize_config.model",
    }
)
_NEVER_NONE: Final = ("KEEP_CHECKPOINTS", "SEED")  # T5X keeps all checkpoints then, or takes any seed
_PATH: Final = "INITIAL_CHECKPOINT_PATH"


class Translated(NamedTuple):
    """A gin file of T5X in our names.

    Attributes:
      text: gin, each statement on its line.
      unknown: the names that were left out, as written.
    """

    text: str
    unknown: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Reference:
    """A reference in a value, which gin's parser puts in its place."""

    text: str

    def __repr__(self) -> str:
        return self.text


class _Delegate(config_parser.ParserDelegate):
    """Writes references as we name them: "@adam()" for "@optimizers.adam()"."""

    def configurable_reference(self, scoped_configurable_name: str, evaluate: bool) -> _Reference:
        name = scoped_configurable_name.rsplit("/", maxsplit=1)[-1].rsplit(".", maxsplit=1)[-1]
        return _Reference(f"@{name}{'()' if evaluate else ''}")

    def macro(self, macro_name: str) -> _Reference:
        return _Reference(f"%{MACROS.get(macro_name, macro_name)}")


class _Line(NamedTuple):
    number: int
    key: str
    value: str
    written: str

    @property
    def text(self) -> str:
        return f"{self.key} = {self.value}" if self.value else self.key


def is_of_t5x(text: str) -> bool:
    """Returns whether a gin file is one of T5X.

    >>> is_of_t5x("include 't5x/configs/runs/pretrain.gin'"), is_of_t5x("include 'models/pretrain.gin'")
    (True, False)
    """
    return bool(_OF_T5X.search(text))


def translated(text: str, configurables: Collection[str], macros: Collection[str]) -> Translated:
    r"""Returns a gin file of T5X in our names.

    >>> text = "from __gin__ import dynamic_registration\nutils.SaveCheckpointConfig.period = 5"
    >>> translated(text, [], ["CHECKPOINT_PERIOD"]).text
    '\nCHECKPOINT_PERIOD = 5'

    Args:
      text: of the file.
      configurables: names that our gin files may configure.
      macros: names of the macros that our gin files read.

    Raises:
      SyntaxError: for what gin cannot read.
    """
    lines: list[_Line] = []
    unknown: list[_Line] = []
    for statement in config_parser.ConfigParser(text, _Delegate()):
        for line, is_known in _lines_of(statement, configurables):
            (lines if is_known else unknown).append(line)
    used = set(macros)
    while True:  # a macro of the file is known where a known line reads it
        found = {name for line in lines if _is_known(line, used) for name in _MACRO.findall(line.value)} - used
        if not found:
            break
        used |= found
    kept = [line for line in lines if _is_known(line, used)]
    left_out = [line.written for line in (*unknown, *(line for line in lines if line not in kept))]
    by_number: dict[int, list[str]] = {}
    for line in kept:
        by_number.setdefault(line.number, []).append(line.text)
    last = max(by_number, default=0)
    return Translated(
        "\n".join("\n".join(by_number.get(number, [""])) for number in range(1, last + 1)),
        tuple(dict.fromkeys(left_out)),
    )


def _is_known(line: _Line, macros: Collection[str]) -> bool:
    return "." in line.key or " " in line.key or line.key in macros


def _lines_of(statement: Any, configurables: Collection[str]) -> Iterator[tuple[_Line, bool]]:
    """The statement in our names, if it has a meaning here, and whether it is known."""
    if isinstance(statement, config_parser.ImportStatement):
        if statement.module.split(".")[0] not in (*_T5X_MODULES, "newsembed"):
            yield _Line(statement.location.line_num, f"import {statement.module}", "", ""), True
    elif isinstance(statement, config_parser.IncludeStatement):
        written = f"include {statement.filename!r}"
        is_known = not statement.filename.startswith(_T5X_INCLUDES)
        yield _Line(statement.location.line_num, written, "", written), is_known
    elif isinstance(statement, config_parser.BindingStatement):
        yield from _binding(statement, configurables)


def _binding(statement: Any, configurables: Collection[str]) -> Iterator[tuple[_Line, bool]]:
    number, value = statement.location.line_num, statement.value
    scope = f"{statement.scope}/" if statement.scope else ""
    written = f"{scope}{statement.selector}" + (f".{statement.arg_name}" if statement.arg_name else "")
    owner = statement.selector.rsplit(".", maxsplit=1)[-1]
    name = f"{scope}{owner}.{statement.arg_name}"
    if name in _WIRING:
        return
    if not statement.arg_name:
        key: str | None = MACROS.get(written, written)
    else:
        key = KEYS.get(name) or (name if owner in configurables and owner != "train" else None)
    if key is None or (value is None and key in _NEVER_NONE):
        yield _Line(number, written, "", written), False
        return
    text = "None" if key == _PATH and value in ([], ()) else repr(value)
    if text != f"%{key}":  # the macro has its value elsewhere
        yield _Line(number, key, text, written), True
