"""``python -m newsembed COMMAND …``: the same as the ``newsembed`` console script."""

import os
import sys

# ``-m`` puts the working folder first: a file there with the name of a library, such as proto.py, would take its place.
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if not sys.flags.safe_path and sys.path[0] == os.getcwd() != _HERE:
    sys.path.append(sys.path.pop(0))

from .launch.cli import main  # noqa: E402 - the path is set before

if __name__ == "__main__":
    sys.exit(main())
