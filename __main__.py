"""``python -m newsembed COMMAND …``: the same as the ``newsembed`` console script."""

import sys

from .launch.cli import main

if __name__ == "__main__":
    sys.exit(main())
