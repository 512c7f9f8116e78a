"""What digests cost `newsembed build`: CPU seconds of hashing, and of reading files for it, beside those of the build.

    python benchmarks/digest_cost.py --scale 0.2

The build mines a generated newsroom. Hashing while writing, and reading files again to compare them, are timed on their
own threads. The CRC-32 of Parquet pages is timed on the bytes of all Parquet files, once to write and once to read.
"""

import argparse
import contextlib
import glob
import io
import os
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

from newsembed.formats import digests
from newsembed.launch import cli
from newsembed.newsroom.generate import generate_newsroom
from newsembed.newsroom.options import NewsroomOptions
from newsembed.newsroom.server import NewsroomServer

spent = {"hashing while writing": 0.0, "reading and hashing again": 0.0}
lock = threading.Lock()


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, which adds its CPU seconds under a name."""

    def call(*arguments: Any) -> Any:
        started = time.thread_time()
        try:
            return function(*arguments)
        finally:
            with lock:
                spent[name] += time.thread_time() - started

    return call


class TimedSink(digests.HashingSink):
    """A sink that times its hash."""

    def __init__(self, sink: Any) -> None:
        super().__init__(sink)
        self._hash = _TimedHash(self._hash)


class _TimedHash:
    def __init__(self, inner: Any) -> None:
        self.update = timed("hashing while writing", inner.update)
        self.hexdigest = inner.hexdigest


def cpu_seconds() -> float:
    """CPU seconds of this process and of the children that have ended."""
    return sum(os.times()[:4])


def crawled(folder: str, scale: float) -> None:
    """Writes the WARC files of a generated newsroom."""
    generate_newsroom(f"{folder}/newsroom", NewsroomOptions(scale=scale))
    with NewsroomServer(f"{folder}/newsroom") as server:
        quick = ["--delay_seconds=0", "--backoff_seconds=0", "--allow_private_addresses=true", "--direct_num_workers=1"]
        command = ["crawl", "--seeds", f"{folder}/newsroom/seeds.txt", "--output", f"{folder}/crawl", *quick]
        assert cli.main([*command, f"--resolve=*.example=127.0.0.1:{server.port}"]) == 0


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.2)
    args = parser.parse_args()
    digests._digest_of = timed("reading and hashing again", digests._digest_of)  # noqa: SLF001 - what is measured
    for module in _users_of_sink():
        module.HashingSink = TimedSink
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        crawled(folder, args.scale)
        for name in spent:
            spent[name] = 0.0
        before = cpu_seconds()
        given = ["--warc", f"{folder}/crawl/warc/*.warc.gz", "--bitext", f"{folder}/newsroom/bitext.tsv"]
        sizes = ["--vocabulary.size=4000", "--topics.min_documents=3", "--direct_num_workers=1"]
        assert cli.main(["build", *given, "--output", f"{folder}/work", *sizes]) == 0
        total = cpu_seconds() - before
        paths = glob.glob(f"{folder}/work/**/*.parquet", recursive=True)
        started, size = time.process_time(), 0
        for path in paths:
            with open(path, "rb") as source:
                raw = source.read()
            zlib.crc32(raw)
            zlib.crc32(raw)
            size += len(raw)
        spent["CRC-32 of Parquet pages"] = time.process_time() - started
        written = sum(os.path.getsize(path) for path in glob.glob(f"{folder}/work/**/*", recursive=True))
    print(f"{written / 1e6:.1f} MB of results, {size / 1e6:.1f} MB of them Parquet\n")
    print("| | CPU seconds | share |\n|---|---|---|")
    for name, seconds in [("build", total), *spent.items(), ("all digests", sum(spent.values()))]:
        print(f"| {name} | {seconds:.3f} | {seconds / total:.2%} |")


def _users_of_sink() -> list[Any]:
    import sys

    from newsembed.beam_pipelines import jobs  # noqa: F401 - imports all writers

    return [module for module in list(sys.modules.values()) if getattr(module, "HashingSink", None) is not None]


if __name__ == "__main__":
    main()
