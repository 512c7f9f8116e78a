"""``newsembed ablate``: the study of `studies.ablate`, whose jobs may open encoders."""

import argparse

from ..studies import ablate
from . import encoders

__doc__ = ablate.__doc__
add_arguments = ablate.add_arguments


def run(args: argparse.Namespace) -> int:
    """Runs the study; see `studies.ablate.run`.

    Raises:
      InputError: for bad options, before anything runs.
    """
    encoders.use()
    return ablate.run(args)
