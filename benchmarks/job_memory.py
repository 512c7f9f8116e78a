"""Memory of the workers of each mining job as the corpus grows: does a worker hold the corpus?

    python benchmarks/job_memory.py --articles 3000 --scales 1 4

Writes generated articles and hubs in the form of the `extract` job and runs the jobs of the build on them, each on what
the one before it wrote. Shards have the same size at each scale, so there are more of them. The number of days,
publishers, names and words is the same; so is the number of articles of an event.

Memory is the proportional set size (PSS) of a process in MB, sampled ten times a second. `worker` is the largest worker
process at each scale. `base` is a worker that has imported the module of the job. Growth compares what is above the
base, at the last scale and the first. `make memory` asks for bounds.
"""

import argparse
import collections
import contextlib
import datetime
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import psutil
from newsembed.formats.manifest import write_manifest
from newsembed.formats.parquet import write_shard
from newsembed.formats.records import Article, Hub, make_doc_id

JOBS = {
    "clean": "--articles extract",
    "vocabulary": "--articles clean",
    "pack": "--articles clean --vocabulary vocabulary",
    "entities": "--articles clean",
    "vectors": "--articles clean --entities entities",
    "neighbors": "--vectors vectors",
    "triplets": "--articles clean --neighbors neighbors",
    "topics": "--articles clean --hubs extract --entities entities",
    "examples": "--articles clean --triplets triplets --topics topics --vocabulary vocabulary",
}
GENERATED = {
    "clean": "--require_author=false --min_words=0 --min_sentences=0",
    "vocabulary": "--size=3000",
    "pack": "--max_length=128",
    "examples": "--max_length=96",
}
SHARD_ARTICLES = 500
DAYS = 1_095
PUBLISHERS = 40
NAMES = 400
EVENT_ARTICLES = 4
SECTIONS = ("Politics", "Business", "Sport", "Science")
FIRST_DAY = datetime.date(2017, 1, 1)
COMMON = (
    "the of and to in a is that for it as was with be by on not he this are or his from at which but have an had they "
    "you were their one all we can her has there been if more when will would who so no said people after city state"
)


class World:
    """Names, words and hubs, and the articles of any number of events about them."""

    def __init__(self) -> None:
        draw = random.Random(5)
        letters = "abcdefghilmnoprstuv"
        self._words = ["".join(draw.choices(letters, k=draw.randint(4, 9))) for _ in range(4_000)]
        parts = ["".join(draw.choices(letters, k=7)).capitalize() for _ in range(2 * NAMES)]
        self._names = [" ".join(pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        self._publishers = [f"paper{number}.example" for number in range(PUBLISHERS)]
        self.listed: dict[tuple[str, str], list[str]] = collections.defaultdict(list)

    def articles(self, count: int) -> Iterator[Article]:
        """This many articles."""
        return map(self._article, range(count))

    def _article(self, number: int) -> Article:
        event = random.Random(number // EVENT_ARTICLES)
        own = random.Random(f"{number}")
        names = event.sample(self._names, 3)
        words = event.choices(self._words, k=30)
        day = event.randrange(DAYS)
        publisher = self._publishers[own.randrange(PUBLISHERS)]
        sentences = []
        for _ in range(5):
            text = [*own.sample(COMMON.split(), 8), *own.sample(words, 5), own.choice(names)]
            own.shuffle(text)
            sentences.append(f"It {' '.join(text)}.")
        title = f"{names[0]} and {names[1]} {' '.join(words[:4])}"
        url = f"https://{publisher}/{number}"
        doc_id, section = make_doc_id(url), SECTIONS[event.randrange(len(SECTIONS))]
        self.listed[publisher, section].append(doc_id)
        hub = make_doc_id(f"https://{publisher}/{section}")
        date = FIRST_DAY + datetime.timedelta(day)
        body = "\n".join(sentences)
        image = own.randbytes(8)  # as many images as articles
        return Article(
            doc_id, url, publisher, title, body, byline_date=date, date_source="given", language="en",
            hubs=(hub,), image_hash=image,
        )  # fmt: skip

    def hubs(self) -> list[Hub]:
        """The sections of the articles so far."""
        return [
            Hub(make_doc_id(url), url, publisher, section, "directory", tuple(sorted(doc_ids)))
            for (publisher, section), doc_ids in sorted(self.listed.items())
            for url in [f"https://{publisher}/{section}"]
        ]


def write_corpus(folder: str, count: int) -> None:
    """Writes articles and hubs as the `extract` job does."""
    world = World()
    articles, shards = list(world.articles(count)), -(-count // SHARD_ARTICLES)
    for shard in range(shards):
        path = f"{folder}/articles/part-{shard:05d}-of-{shards:05d}.parquet"
        write_shard(path, articles[shard::shards], Article)
    write_shard(f"{folder}/hubs/part-00000-of-00001.parquet", world.hubs(), Hub)
    write_manifest(folder, {"digest": f"{count}", "job": "extract"})


def memory_of(process: psutil.Process) -> int:
    """PSS of a process in bytes."""
    return int(process.memory_full_info().pss)


def most_of_workers(root: int) -> int:
    """The most bytes that a worker of the local runner below a process has: a fork of Python's fork server."""
    below = psutil.Process(root).children(recursive=True)
    servers = {one.pid: one for one in below if "multiprocessing.forkserver" in " ".join(one.cmdline())}
    return max((memory_of(one) for one in servers.values() if one.ppid() in servers), default=0)


def run(command: Sequence[str]) -> float:
    """Runs a command; returns the most bytes that one of its workers had.

    Raises:
      SystemExit: if it fails.
    """
    peak = 0
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log) as job:
        while job.poll() is None:
            with contextlib.suppress(psutil.Error):  # a process has ended
                peak = max(peak, most_of_workers(job.pid))
            time.sleep(0.1)
        if job.returncode:
            log.seek(0)
            raise SystemExit(log.read().decode()[-3000:])
    return peak


def command_of(job: str, options: str, work: str) -> list[str]:
    """The command of a job; names of jobs among its options become folders in ``work``."""
    words = [f"{work}/{word}" if word in {"extract", *JOBS} else word for word in options.split()]
    return [sys.executable, "-m", "newsembed", job, *words, "--output", f"{work}/{job}", "--direct_num_workers=2"]


def base_of(job: str) -> float:
    """The bytes of a process that has imported what every worker of a job does."""
    code = (
        f"import newsembed.beam_pipelines.{job}, apache_beam.runners.worker.sdk_worker_main, os, time; time.sleep(0.5)"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    peak = 0
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as process:
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):  # it has ended
                peak = max(peak, memory_of(psutil.Process(process.pid)))
            time.sleep(0.05)
    return peak


def main() -> None:
    """Runs the jobs at each scale and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=3_000, help="at scale 1")
    parser.add_argument("--scales", type=int, nargs="+", default=[1, 4])
    args = parser.parse_args()
    print("| job | base | worker | growth of worker |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="newsembed-memory-") as folder:
        works = [f"{folder}/{scale}" for scale in args.scales]
        for scale, work in zip(args.scales, works, strict=True):
            write_corpus(f"{work}/extract", scale * args.articles)
        for job, inputs in JOBS.items():
            options = f"{inputs} {GENERATED.get(job, '')}"
            base, peaks = base_of(job), [run(command_of(job, options, work)) for work in works]
            growth = (peaks[-1] - base) / (peaks[0] - base) - 1
            shown = ", ".join(f"{peak / 1e6:.0f}" for peak in peaks)
            print(f"| {job} | {base / 1e6:.0f} | {shown} | {growth:+.0%} |", flush=True)


if __name__ == "__main__":
    main()
