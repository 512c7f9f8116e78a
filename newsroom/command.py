"""Generates a fictional news world: sites, the truth about their pages, and evaluation sets.

Equal options give equal bytes.

example: newsembed newsroom --output newsroom --scale 0.2 --serve
"""

import argparse
import dataclasses
import time

from ..errors import InputError
from .generate import generate_newsroom
from .mldoc import write_mldoc
from .options import NewsroomOptions
from .server import NewsroomServer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed newsroom``."""
    defaults = NewsroomOptions()
    parser.add_argument("--output", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--seed", type=int, default=defaults.seed, metavar="N", help="seed of the generator (default: %(default)s)"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=defaults.scale,
        metavar="X",
        help="1 is about 2,500 articles, 0.05 about 150 (default: %(default)s)",
    )
    parser.add_argument(
        "--turnover",
        type=float,
        default=defaults.turnover,
        metavar="X",
        help="share of people and organisations that are replaced over the three years (default: %(default)s)",
    )
    parser.add_argument(
        "--format",
        choices=("site", "mldoc"),
        default="site",
        help="site, or mldoc: labelled articles as MLDoc has them (english.train.1000, …; the classes are topics), for "
        "`newsembed evaluate --suite mldoc_laser` (default: %(default)s)",
    )
    parser.add_argument("--serve", action="store_true", help="serve the site on 127.0.0.1 afterwards, until Ctrl-C")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port of --serve; 0 takes a free one (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Generates the newsroom, prints the summary and, with ``--serve``, serves the site; returns the exit code.

    Raises:
      InputError: for ``--serve`` without a site, and an output that is a file.
    """
    start = time.perf_counter()
    options = NewsroomOptions(args.seed, args.scale, args.turnover)
    if args.format == "mldoc":
        if args.serve:
            raise InputError("given with --format mldoc", field="--serve", remedy="it has no site: leave out --serve")
        found: dict[str, object] = dict(write_mldoc(args.output, options))
    else:
        found = dataclasses.asdict(generate_newsroom(args.output, options))
    for name, value in found.items():
        shown = ", ".join(f"{key} {count}" for key, count in value.items()) if isinstance(value, dict) else value
        print(f"{name:12} {shown}")
    print(f"{'seconds':12} {time.perf_counter() - start:.1f}")
    if args.serve:
        _serve(args.output, args.port)
    return 0


def _serve(output: str, port: int) -> None:
    with NewsroomServer(output, port) as server:
        address = f"127.0.0.1:{server.port}"
        print(f"serving on {address}; try: curl -H 'Host: www.harbourtimes.example' http://{address}/", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopped")
