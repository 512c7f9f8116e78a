"""``newsembed evaluate``: benchmarks over any encoders; see ``evaluation.command`` for the protocols."""

import argparse

from .. import serving
from ..evaluation import command

__doc__ = command.__doc__
add_arguments = command.add_arguments


def run(args: argparse.Namespace) -> int:
    """Runs the command with all encoders that ``serving`` can load."""
    factories = serving.factories(
        max_length=args.max_length, document_prompt=args.prompt, long_documents=args.long_documents
    )
    return command.run(args, factories)
