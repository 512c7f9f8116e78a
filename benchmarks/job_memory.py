"""Memory and CPU seconds of each mining job as the corpus grows: does a worker hold the corpus?

    python benchmarks/job_memory.py --articles 3000 --scales 1 4

Writes generated articles and hubs in the form of the `extract` job and runs the jobs of the build on them, each on what
the one before it wrote. Shards have the same size at each scale, so there are more of them. The number of days,
publishers, names and words is the same; so is the number of articles of an event.

Memory is the proportional set size (PSS) of a process, sampled ten times a second. `worker` is the largest worker
process, `own` its part without mapped files, which the kernel may drop, and `runner` the process that holds the
graph: the local runner keeps the elements of every GroupByKey in it. `base` is a worker that has imported the module of
the job. Growth compares what is above the base. `KB` is the growth of `all` for each further article of the input,
`disk` the size of the job's folder for each article of the input. `make memory` asks for bounds.
"""

import argparse
import collections
import datetime
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from newsembed.formats import files
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


def memory_of(process: int) -> tuple[int, int]:
    """(PSS, its anonymous part) of a process in bytes; zeros once it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0, 0
    found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:]}
    return found.get("Pss", 0), found.get("Pss_Anon", 0)


def parent_of(process: int) -> int:
    """The parent of a process; 0 once it has ended."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def tree(root: int) -> list[int]:
    """A process and its descendants."""
    parents = {int(path.name): parent_of(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def is_worker(process: int) -> bool:
    """Whether a process is a worker of the local runner: a fork of Python's fork server."""
    return _is_fork_server(process) and _is_fork_server(parent_of(process))


def _is_fork_server(process: int) -> bool:
    try:
        return b"multiprocessing.forkserver" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def run(command: Sequence[str]) -> dict[str, float]:
    """Runs a command; returns CPU seconds and peaks in bytes.

    Raises:
      SystemExit: if it fails.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    peaks: dict[str, float] = collections.defaultdict(float)
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log) as job:
        while job.poll() is None:
            found = {process: memory_of(process) for process in tree(job.pid)}
            for process, (pss, anonymous) in found.items():
                role = "worker" if is_worker(process) else "runner"
                peaks[role] = max(peaks[role], pss)
                peaks[f"{role} own"] = max(peaks[f"{role} own"], anonymous)
            peaks["all"] = max(peaks["all"], sum(pss for pss, _ in found.values()))
            time.sleep(0.1)
        if job.returncode:
            log.seek(0)
            raise SystemExit(log.read().decode()[-3000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return peaks | {"seconds": seconds}


def command_of(job: str, options: str, work: str) -> list[str]:
    """The command of a job; names of jobs among its options become folders in ``work``."""
    words = [f"{work}/{word}" if word in {"extract", *JOBS} else word for word in options.split()]
    return [sys.executable, "-m", "newsembed", job, *words, "--output", f"{work}/{job}", "--direct_num_workers=2"]


def measured(job: str, options: str, work: str) -> dict[str, float]:
    """Runs a job; returns what :func:`run` does, and the bytes of the job's folder as "disk"."""
    found = run(command_of(job, options, work))
    return found | {"disk": sum(files.sizes_below(f"{work}/{job}").values())}


def base_of(job: str) -> dict[str, float]:
    """The memory of a process that has imported what every worker of a job does."""
    code = (
        f"import newsembed.beam_pipelines.{job}, apache_beam.runners.worker.sdk_worker_main, os, time; time.sleep(0.5)"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    peaks: dict[str, float] = collections.defaultdict(float)
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as process:
        while process.poll() is None:
            for name, value in zip(("worker", "worker own"), memory_of(process.pid), strict=True):
                peaks[name] = max(peaks[name], value)
            time.sleep(0.05)
    return peaks


def print_row(job: str, base: Mapping[str, float], found: Mapping[int, Mapping[str, float]], articles: int) -> None:
    """Prints the row of a job, the scales from left to right; ``articles`` is their number at scale 1."""
    (small, first), (large, last) = sorted(found.items())[0], sorted(found.items())[-1]
    growth = (last["worker"] - base["worker"]) / (first["worker"] - base["worker"]) - 1
    own = (last["worker own"] - base["worker own"]) / (first["worker own"] - base["worker own"]) - 1
    cells = [job, f"{base['worker'] / 1e6:.0f}"]
    columns = ("worker", "worker own", "runner", "all")
    cells += [", ".join(f"{one[name] / 1e6:.0f}" for one in found.values()) for name in columns]
    cells += [f"{growth:+.0%}", f"{own:+.0%}", ", ".join(f"{one['seconds']:.1f}" for one in found.values())]
    cells += [f"{(last['all'] - first['all']) / 1e3 / max(1, articles * (large - small)):.2f}"]
    cells += [", ".join(f"{one['disk'] / 1e3 / (articles * scale):.2f}" for scale, one in found.items())]
    print("| " + " | ".join(cells) + " |", flush=True)


def parse() -> argparse.Namespace:
    """The arguments of this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=3_000, help="at scale 1")
    parser.add_argument("--scales", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS), help="whose rows are printed")
    parser.add_argument("--output", help="folder for the corpora and results; temporary without it")
    return parser.parse_args()


def main() -> None:
    """Runs the jobs at each scale and prints a table."""
    args = parse()
    names = "base | worker | own | runner | all | growth of worker | growth of own | CPU seconds | KB | disk, KB"
    print(f"| job | {names} |\n|---|" + "---|" * len(names.split("|")), flush=True)
    folder = args.output or tempfile.mkdtemp(prefix="newsembed-memory-")
    try:
        works = {scale: f"{folder}/{scale}" for scale in args.scales}
        for scale, work in works.items():
            write_corpus(f"{work}/extract", scale * args.articles)
        figures: dict[str, dict[int | str, Mapping[str, float]]] = {}
        last = max(map(list(JOBS).index, args.jobs))
        for job in list(JOBS)[: last + 1]:  # each needs those before it
            options = f"{JOBS[job]} {GENERATED.get(job, '')}"
            found = {scale: measured(job, options, work) for scale, work in works.items()}
            if job in args.jobs:
                base = base_of(job)
                figures[job] = {"base": base, **found}
                print_row(job, base, found, args.articles)
        if args.output:
            Path(folder, "figures.json").write_text(json.dumps(figures), encoding="utf-8")
    finally:
        if not args.output:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
