"""Generates a fictional news world: sites, the truth about their pages, and evaluation sets.

Equal options give equal bytes.

example: newsembed newsroom --output newsroom --scale 0.2 --serve
"""

import dataclasses
import time

from ..errors import InputError
from ..formats.command_line import option, required
from .evaluation_sets import write_mldoc
from .generate import generate_newsroom
from .server import NewsroomServer
from .world import NewsroomOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommandOptions(NewsroomOptions):
    """Options of ``newsembed newsroom``."""

    output: str = required("folder to write", metavar="DIR", local=True)
    format: str = option(
        "site",
        "site, or mldoc: labelled articles as MLDoc has them (english.train.1000, …; the classes are topics), for "
        "`newsembed evaluate --suite mldoc_laser`",
        choices=("site", "mldoc"),
    )
    serve: bool = option(False, "serve the site on 127.0.0.1 afterwards, until Ctrl-C")
    port: int = option(0, "port of --serve; 0 takes a free one", metavar="N")

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if self.format == "mldoc" and self.serve:
            raise InputError("given with --format mldoc", field="--serve", remedy="it has no site: leave out --serve")


OPTIONS = CommandOptions


def run(options: CommandOptions) -> int:
    """Generates the newsroom, prints the summary and, with ``--serve``, serves the site; returns the exit code."""
    start = time.perf_counter()
    found: dict[str, object] = (
        {**write_mldoc(options.output, options)}
        if options.format == "mldoc"
        else dataclasses.asdict(generate_newsroom(options.output, options))
    )
    for name, value in found.items():
        shown = ", ".join(f"{key} {count}" for key, count in value.items()) if isinstance(value, dict) else value
        print(f"{name:12} {shown}")
    print(f"{'seconds':12} {time.perf_counter() - start:.1f}")
    if options.serve:
        with NewsroomServer(options.output, options.port) as server:
            address = f"127.0.0.1:{server.port}"
            print(f"serving on {address}; try: curl -H 'Host: www.harbourtimes.example' http://{address}/", flush=True)
            try:
                while True:
                    time.sleep(3600)
            except KeyboardInterrupt:
                print("stopped")
    return 0
