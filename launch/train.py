r"""Pretrain an encoder (MLM, TLM) or train it by weak supervision (InfoNCE, topics), from gin files.

names of T5X that every run file understands, as --gin.NAME=value (texts in quotes):
  MODEL_DIR, DATA_DIR, VOCABULARY_PATH, MIXTURE_OR_TASK_NAME, TASK_FEATURE_LENGTHS, TRAIN_STEPS, BATCH_SIZE,
  INITIAL_CHECKPOINT_PATH, VOCAB_SIZE
a whole gin file of T5X may follow a run file; names without a meaning here are listed and left out (docs/t5x.md)

Example::

  newsembed train --gin_file=runs/pretrain_demo.gin --gin.MODEL_DIR=\"work/pretrained\" \
      --gin.DATA_DIR=\"work/pack\" --gin.VOCABULARY_PATH=\"work/vocabulary/vocab.txt\" --gin.TRAIN_STEPS=200

several processes, the same command in each (no options on Slurm; --detect_processes on TPU VMs):
  newsembed train --gin_file=… --coordinator_address=host0:9000 --num_processes=2 --process_id=0

--dry_run shows what a run would train, on what, and what it lacks, also for devices that are not here: --devices=256

The same command continues a run that was stopped or killed. SIGTERM to any process saves a checkpoint and ends all of
them with exit code 143. So does Ctrl-C, with exit code 130; a second Ctrl-C stops at once without saving.
"""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Final

from ..errors import InputError, Terminated, exit_code_of
from ..formats.command_line import Options, option, required
from .parsing import Parser

_BINDING: Final = "--gin."


def _check_bindings(others: Sequence[str], parser: Parser) -> None:
    if unknown := [other for other in others if not other.startswith(_BINDING)]:
        parser.error(f"unknown options {' '.join(unknown)}; gin values are written --gin.NAME=value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """What is trained, and by which processes."""

    gin_file: tuple[str, ...] = required(
        "a gin file, such as runs/pretrain_demo.gin; more than one may be given, later ones win",
        repeated=True,
        metavar="FILE",
    )
    gin_search_paths: tuple[str, ...] = option(
        (), "comma-separated folders of gin files; the package's own are always found", metavar="DIRS"
    )
    allow_import: tuple[str, ...] = option(
        (),
        "a module that gin files may import, with those below it; importing a module runs its code",
        repeated=True,
        metavar="MODULE",
    )
    coordinator_address: str | None = option(
        None, "several processes: where process 0 listens, for hosts that cannot find each other", metavar="HOST:PORT"
    )
    num_processes: int | None = option(None, "how many processes there are")
    process_id: int | None = option(None, "the number of this process, from 0", metavar="I")
    detect_processes: bool = option(False, "there are several processes, let JAX find them (TPU VMs)")
    dry_run: bool = option(
        False, "show the configuration, the data, the model and its layout, and what is missing; compile nothing"
    )
    devices: int | None = option(None, "--dry_run: as many devices (default: those here)", ge=1)
    bindings: tuple[str, ...] = dataclasses.field(default=(), metadata={"unknown": _check_bindings})

    @property
    def gin(self) -> tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]:
        """The arguments of ``gin_files.check_files`` and ``gin_config.load_gin``."""
        bindings = [binding.removeprefix(_BINDING) for binding in self.bindings]
        return self.gin_file, bindings, self.gin_search_paths, self.allow_import


OPTIONS = TrainOptions


def run(options: TrainOptions) -> int:
    """Trains; returns the exit code.

    Returns:
      0, 2 for input that the user can correct (--dry_run: if something is missing), 130 for Ctrl-C, 143 for SIGTERM.
    """
    import gin

    from ..training.gin_files import check_files

    check_files(*options.gin)  # before seconds of imports
    with gin.unlock_config():  # a run in this process may have locked it
        from ..studies import evaluators  # noqa: F401 - gin files name them
    from ..training.dry_run import dry_run
    from ..training.gin_config import load_gin, run_training
    from ..training.processes import join_processes

    if options.dry_run:
        load_gin(*options.gin)
        lines, missing = dry_run(options.devices)
        print("\n".join([*lines, "" if missing else "nothing is missing"]), flush=True)
        for error in missing:
            print(f"missing: {error}", file=sys.stderr)
        return 2 if missing else 0
    are_several = join_processes(
        options.coordinator_address, options.num_processes, options.process_id, detect=options.detect_processes
    )
    try:
        result = run_training(*options.gin)
    except InputError as error:
        if not are_several:
            raise
        print(f"newsembed train: error: {error}", file=sys.stderr, flush=True)
        # An orderly exit waits minutes for the others, which wait for this process. They notice when it is gone.
        os._exit(2)
    except KeyboardInterrupt as stopped:
        what = str(stopped) or "before the first step"
        print(f"newsembed train: stopped, {what}; the same command continues", file=sys.stderr, flush=True)
        return exit_code_of(type(stopped))
    print(f"{result.model_dir}: step {result.step}{' (interrupted)' if result.interrupted else ''}")
    if not result.interrupted:
        return 0
    return exit_code_of(KeyboardInterrupt if result.interrupted == "Ctrl-C" else Terminated)
