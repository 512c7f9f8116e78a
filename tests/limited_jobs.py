"""Runs the jobs of a build on ten times the data in processes with a limited memory; prints how they ended as JSON.

    python -m newsembed.tests.limited_jobs FOLDER

Each job runs in a fork of this process, which has imported what jobs import, with the pipeline and its worker in one
process. First it runs on a small corpus. Then it runs on ten times as many articles, and may have ``_MARGIN`` more of
private memory than the small corpus needed (``RLIMIT_DATA``: memory of its own, not mapped files). The texts of the
large corpus are larger than that. Shards have the same size in both. The last job is none of newsembed: it holds the
articles of all shards, so it must fail.
"""

import contextlib
import dataclasses
import datetime
import gc
import importlib
import itertools
import json
import os
import random
import resource
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
from newsembed.beam_pipelines import jobs, worker, workflow
from newsembed.beam_pipelines.clean.rules import probabilities
from newsembed.beam_pipelines.topics.names import place_names
from newsembed.benchmarks import job_memory
from newsembed.formats.manifest import write_manifest
from newsembed.formats.parquet import read_records, shard_paths, write_shard
from newsembed.formats.records import Article, Hub

# The default allocators keep what they once had. Local workers have the first two, see `beam_pipelines.workers`; by the
# last one a text is never in memory that another one has left, so a job that holds texts needs more by their size.
ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "12288",
    # Threads wait forever where the limit leaves no memory for their stacks.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
}
HOLDS_ALL = "holds all articles"
_SMALL, _LARGE = 1, 10  # shards
_SHARD_ARTICLES = 50
_TEXT_BYTES = 20_000  # of an article, so 10 MB of the large corpus
_DAYS = 430  # few, since the time of `triplets` grows with the months
_MARGIN = 7_500_000
_TRIES = 4
_SAMPLED_SECONDS = 0.008
_IMPORTED = (
    "IPython",
    "encodings.cp437",  # of zipfile
    "scipy.sparse.csgraph",
    "sklearn.feature_extraction.text",
    "sklearn.utils.extmath",
    "tld",
    "tokenizers",
)
_OPTIONS = {
    "clean": {"require_author": False, "min_words": 0, "min_sentences": 0},
    "vocabulary": {"size": 1_000},
    # Both tables are full with the small corpus.
    "entities": {"built_in_names": False, "max_entities": 200, "max_words": 500},
    "pack": {"max_length": 128},
    "examples": {"max_length": 96},
}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
      error: "" if it succeeded.
      peak: bytes that it had above the fork, at most, as far as samples show.
    """

    error: str
    peak: int


def own_memory(process):
    """The private writable memory of a process in bytes, resident or not, which RLIMIT_DATA limits."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmData")), 0)


def forked(function, limit=None):
    """Calls a function in a fork, which may have ``limit`` bytes more than it has at its start."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        os.close(read)
        status = 1
        try:
            threading.stack_size(256 << 10)  # Beam starts threads, whose stacks count
            if limit is not None:
                most = own_memory(os.getpid()) + limit
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            function()
            status = 0
        except BaseException:  # noqa: BLE001 - the parent reports it
            with contextlib.suppress(BaseException):
                os.write(write, traceback.format_exc()[-2_000:].encode())
        finally:
            os._exit(status)
    os.close(write)
    before = peak = own_memory(process)
    while not os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        peak = max(peak, own_memory(process))
        time.sleep(_SAMPLED_SECONDS)
    _, status = os.waitpid(process, 0)
    with os.fdopen(read, "rb") as source:
        said = source.read().decode(errors="replace")
    return Outcome(said or f"status {status}" if status else "", peak - before)


class Corpora:
    """The small and the large corpus, and the results of jobs on them.

    Args:
      folder: for all files.
    """

    def __init__(self, folder):
        self._folder = folder
        for shards in (_SMALL, _LARGE):
            _write_corpus(f"{folder}/{shards}", shards)

    def run(self, job, inputs, shards, limit=None):
        """Runs a job on a corpus; the result of the first run that succeeds is an input of other jobs."""
        work = f"{self._folder}/{shards}"
        output = f"{work}/{job.name}"
        if is_again := Path(output).exists():
            output += "-again"
        paths = {name: [f"{work}/{source}"] for name, source in inputs.items()}
        options = job.options(**_OPTIONS.get(job.name, {}))
        outcome = forked(lambda: jobs.execute(job, paths, output, options, ["--direct_num_workers=1"]), limit)
        if is_again or outcome.error:
            shutil.rmtree(output, ignore_errors=True)
        return outcome

    def compare(self, job, inputs):
        """Runs a job on both corpora; returns the peak of the small one, the limit of the large one, and its error."""
        small = self.run(job, inputs, _SMALL)
        if small.error:
            return {"small": small.peak, "limit": 0, "error": f"without a limit: {small.error}"}
        limit = small.peak + _MARGIN
        # Samples miss some of the peak of the small corpus, and threads that meet need more than threads that do not. A
        # job that holds the articles fails however often it is tried.
        for _ in range(_TRIES):
            large = self.run(job, inputs, _LARGE, limit)
            if not large.error:
                break
            limit = max(limit, self.run(job, inputs, _SMALL).peak + _MARGIN)
        return {"small": small.peak, "limit": limit, "error": large.error}


def _write_corpus(folder, shards):
    """Writes articles and hubs as `extract` does, and the articles as files of lines, too.

    The corpora have the same days, publishers, names and words.
    """
    world, draw, common = job_memory.World(), random.Random(1), job_memory.COMMON.split()
    articles = world.articles(shards * _SHARD_ARTICLES)
    first, last = job_memory.FIRST_DAY, job_memory.FIRST_DAY + datetime.timedelta(_DAYS)
    for number in range(shards):
        part = []
        for place, article in enumerate(itertools.islice(articles, _SHARD_ARTICLES)):
            lines = [article.body]
            while sum(map(len, lines)) < _TEXT_BYTES:
                lines.append(f"It {' '.join(draw.choices(common, k=120))}.")
            day = (article.byline_date - first) * (_DAYS / job_memory.DAYS)
            date = {0: first, 1: last}.get(place, first + day)
            part.append(dataclasses.replace(article, body="\n".join(lines), byline_date=date))
        write_shard(f"{folder}/extracted/articles/part-{number:05d}-of-{shards:05d}.parquet", part, Article)
        with open(f"{folder}/lines-{number}.jsonl", "w", encoding="utf-8") as sink:
            for one in part:
                row = {"url": one.url, "title": one.title, "text": one.body, "date": str(one.byline_date)}
                sink.write(f"{json.dumps(row)}\n")
    write_shard(f"{folder}/extracted/hubs/part-00000-of-00001.parquet", world.hubs(), Hub)
    write_manifest(f"{folder}/extracted", {"digest": folder, "job": "extract"})


def _hold(shard, paths):
    held = [article for path in paths for article in read_records(path, Article)]
    shard.read(len(held))
    shard.written(len(held))


def _hold_all(run):
    run.map_shards("hold", _hold, [shard_paths(f"{run.input('articles')}/articles")])


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """A job without options."""


def _jobs():
    """The jobs, and the source of each input, in an order in which each comes after its sources."""
    found = [(workflow.load_job("extract"), {"articles": "lines-[0-7].jsonl"})]
    for name, line in job_memory.JOBS.items():
        words = [word.removeprefix("--").replace("extract", "extracted") for word in line.split()]
        found.append((workflow.load_job(name), dict(zip(words[::2], words[1::2], strict=True))))
    spec = jobs.InputSpec("articles", "")
    return [*found, (jobs.Job(HOLDS_ALL, "", (spec,), NoOptions, _hold_all), {"articles": "extracted"})]


def _load():
    """Loads what is loaded once in each process, however large the corpus is."""
    for name in _IMPORTED:
        with contextlib.suppress(ModuleNotFoundError):  # Beam does without IPython
            importlib.import_module(name)
    place_names()
    probabilities("It is a text.")
    for kind in (np.float32, np.float64):  # some processors' BLAS takes 30 MB at the first large product
        square = np.ones((512, 512), kind)
        np.dot(square, square)
    gc.collect()
    gc.freeze()


def main():
    """Runs all jobs."""
    worker.prepare()
    chosen = _jobs()
    corpora = Corpora(sys.argv[1])
    _load()
    print(json.dumps({job.name: corpora.compare(job, inputs) for job, inputs in chosen}))


if __name__ == "__main__":
    main()
