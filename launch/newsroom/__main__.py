"""``python -m newsembed.launch.newsroom --output DIR``: writes a newsroom, prints what it holds and, if asked, serves it."""

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence

from ...tasks.errors import InputError
from .generate import generate_newsroom
from .options import NewsroomOptions
from .server import NewsroomServer


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    defaults = NewsroomOptions()
    parser = argparse.ArgumentParser(
        prog="python -m newsembed.launch.newsroom",
        description="Generates a fictional news world.",
        epilog="example: python -m newsembed.launch.newsroom --output newsroom --scale 0.2 --serve",
    )
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="of every random stream (default %(default)s)")
    parser.add_argument("--scale", type=float, default=defaults.scale, help="1.0 is about 2400 articles (default %(default)s)")
    parser.add_argument("--serve", action="store_true", help="serve the site on 127.0.0.1 until interrupted")
    parser.add_argument("--port", type=int, default=0, help="to serve on; 0 takes a free one (default %(default)s)")
    options = parser.parse_args(arguments)
    try:
        start = time.perf_counter()
        summary = generate_newsroom(options.output, NewsroomOptions(options.seed, options.scale))
        for name, value in dataclasses.asdict(summary).items():
            print(f"{name:12} {value}")
        print(f"{'seconds':12} {time.perf_counter() - start:.1f}")
        if options.serve:
            _serve(options.output, options.port)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _serve(output: str, port: int) -> None:
    with NewsroomServer(output, port) as server:
        print(f"serving on 127.0.0.1:{server.port}; try: curl -H 'Host: www.harbourtimes.example' http://127.0.0.1:{server.port}/", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    sys.exit(main())
