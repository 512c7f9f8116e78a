"""The command `newsembed train`: gin files and bindings in, a trained model folder out."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..errors import InputError, Terminated, exit_code_of

if TYPE_CHECKING:
    from .train import TrainResult

_BINDING: Final = "--gin."
_EPILOG: Final = """\
names of T5X that every run file understands, as --gin.NAME=value (texts in quotes):
  MODEL_DIR, DATA_DIR, VOCABULARY_PATH, MIXTURE_OR_TASK_NAME, TASK_FEATURE_LENGTHS, TRAIN_STEPS, BATCH_SIZE,
  INITIAL_CHECKPOINT_PATH, VOCAB_SIZE
a whole gin file of T5X may follow a run file; names without a meaning here are listed and left out (docs/t5x.md)

example:
  newsembed train --gin_file=runs/pretrain_demo.gin --gin.MODEL_DIR=\\"/tmp/pretrained\\" \\
      --gin.DATA_DIR=\\"/tmp/corpus/pack\\" --gin.VOCABULARY_PATH=\\"/tmp/corpus/vocab.txt\\" --gin.TRAIN_STEPS=200

several processes, the same command in each (no options on Slurm; --detect_processes on TPU VMs):
  newsembed train --gin_file=… --coordinator_address=host0:9000 --num_processes=2 --process_id=0

The same command continues a run that was stopped or killed. SIGTERM to any process saves a checkpoint and ends all of
them with exit code 143. So does Ctrl-C, with exit code 130; a second Ctrl-C stops at once without saving.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the options and trains; returns the exit code.

    Returns:
      0, 2 for input that the user can correct, 130 for Ctrl-C, 143 for SIGTERM.
    """
    parser = make_parser()
    options, others = parser.parse_known_args(argv)
    bindings = [other.removeprefix(_BINDING) for other in others if other.startswith(_BINDING)]
    unknown = [other for other in others if not other.startswith(_BINDING)]
    if unknown:
        parser.error(f"unknown options {' '.join(unknown)}; gin values are written --gin.NAME=value")
    if not options.gin_file:
        parser.error("at least one --gin_file is needed, for example --gin_file=runs/pretrain_demo.gin")
    search_paths = [path for path in options.gin_search_paths.split(",") if path]
    is_one_of_several = False
    try:
        from .processes import join_processes

        is_one_of_several = join_processes(
            options.coordinator_address, options.num_processes, options.process_id, detect=options.detect_processes
        )
        result = run_training(options.gin_file, bindings, search_paths, options.allow_import)
    except InputError as error:
        print(f"newsembed train: {error}", file=sys.stderr, flush=True)
        if is_one_of_several:
            # An orderly exit waits minutes for the others, which wait for this process. They notice when it is gone.
            os._exit(2)
        return 2
    except KeyboardInterrupt as stopped:
        what = str(stopped) or "before the first step"
        print(f"newsembed train: stopped, {what}; the same command continues", file=sys.stderr, flush=True)
        return exit_code_of(type(stopped))
    print(f"{result.model_dir}: step {result.step}{' (interrupted)' if result.interrupted else ''}")
    if not result.interrupted:
        return 0
    return exit_code_of(KeyboardInterrupt if result.interrupted == "Ctrl-C" else Terminated)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the options; gin values follow them as --gin.NAME=value."""
    parser = argparse.ArgumentParser(
        prog="newsembed train",
        description="Pretrain an encoder (MLM, TLM) or train it by weak supervision (InfoNCE, topics), from gin files.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    help_of_files = "a gin file; more than one may be given, later ones win"
    add("--gin_file", action="append", default=[], metavar="FILE", help=help_of_files)
    help_of_paths = "comma-separated folders of gin files; the package's own are always found"
    add("--gin_search_paths", default="", metavar="DIRS", help=help_of_paths)
    help_of_imports = "a module that gin files may import, with those below it; importing a module runs its code"
    add("--allow_import", action="append", default=[], metavar="MODULE", help=help_of_imports)
    title, description = "several processes", "the same command in every process; on Slurm and TPU they find each other"
    add = parser.add_argument_group(title, description).add_argument
    help_of_address = "where process 0 listens, for hosts that cannot find each other"
    add("--coordinator_address", metavar="HOST:PORT", help=help_of_address)
    add("--num_processes", type=int, metavar="N", help="how many processes there are")
    add("--process_id", type=int, metavar="I", help="the number of this process, from 0")
    add("--detect_processes", action="store_true", help="there are several, let JAX find them (TPU VMs)")
    return parser


def run_training(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str] = (),
    gin_search_paths: Sequence[str] = (),
    allow_imports: Sequence[str] = (),
) -> "TrainResult":
    """Trains as configured by gin files and bindings.

    Args:
      gin_files: such as "runs/pretrain_demo.gin", looked up in `gin_search_paths`, the working directory and the
        package.
      gin_bindings: such as 'MODEL_DIR = "/tmp/model"'; they override the files.
      gin_search_paths: folders of gin files.
      allow_imports: modules that the files may import, in addition to those of `gin_imports`.

    Raises:
      InputError: see `train.train` and `gin_config.load_gin`.
    """
    from .gin_config import load_gin
    from .train import train

    load_gin(gin_files, gin_bindings, gin_search_paths, allow_imports)
    try:
        return train()
    except InputError as error:
        # gin adds lines to errors that pass through it; the user needs ours only.
        raise InputError(error.problem, path=error.path, field=error.field, remedy=error.remedy) from error.__cause__
