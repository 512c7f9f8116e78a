"""``newsembed t5x``: what a team that runs our models under T5X needs in addition to T5X itself, see docs/t5x.md.

Example::

    newsembed t5x gin
    newsembed t5x to --model work/model --output work/t5x
    newsembed t5x from --run work/t5x --output work/model
    newsembed t5x export --run work/t5x --output work/saved

``gin`` prints the folder of the gin files, for ``--gin_search_paths`` of T5X. ``to`` writes a checkpoint of ours as one
of T5X, ``from`` the reverse; each continues on the other side. ``export`` converts a checkpoint of T5X as ``newsembed
export`` converts ours. None of them needs T5X.
"""

import argparse
import os
import tempfile
from typing import Final

from ..serving import export as serving_export
from ..serving.specs import split_number
from .checkpoints import from_t5x, to_t5x

GIN_FOLDER: Final = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gin")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands of ``newsembed t5x``."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    commands.add_parser("gin", help="print the folder of the gin files")
    to = commands.add_parser("to", help="a checkpoint of ours to one of T5X")
    to.add_argument("--model", required=True, metavar="DIR[@STEP]", help="our model folder")
    to.add_argument("--output", required=True, metavar="DIR", help="MODEL_DIR of T5X; may hold other steps")
    back = commands.add_parser("from", help="a checkpoint of T5X to one of ours")
    back.add_argument("--run", required=True, metavar="DIR[@STEP]", help="MODEL_DIR of T5X")
    back.add_argument("--output", required=True, metavar="DIR", help="our model folder; may hold other steps")
    export = commands.add_parser("export", help="a checkpoint of T5X to SavedModel, safetensors or Hugging Face")
    export.add_argument("--run", dest="model", required=True, metavar="DIR[@STEP]", help="MODEL_DIR of T5X")
    serving_export.add_arguments(export, with_model=False)


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    if args.action == "gin":
        print(GIN_FOLDER)
    elif args.action == "to":
        folder, step = split_number(args.model)
        print(to_t5x(folder, args.output, step))
    elif args.action == "from":
        folder, step = split_number(args.run)
        print(from_t5x(folder, args.output, step))
    else:
        folder, step = split_number(args.model)
        with tempfile.TemporaryDirectory() as temporary:
            from_t5x(folder, temporary, step)
            args.model = temporary
            return serving_export.run(args)
    return 0
