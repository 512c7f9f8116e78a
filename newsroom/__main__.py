"""``python -m newsembed.newsroom --output DIR``: the same as ``newsembed newsroom``."""

import sys

from ..launch.cli import main

if __name__ == "__main__":
    sys.exit(main(["newsroom", *sys.argv[1:]]))
