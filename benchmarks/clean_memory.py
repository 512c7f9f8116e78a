"""Time and memory of the clean job as its input grows: peak over all its processes, and bytes per additional document.

    python benchmarks/clean_memory.py newsapi-headlines.jsonl.zst --articles 8000 --times 1 4 16

The input of size n has n copies of the first articles of the file. The first copy is unchanged; in the others two of
three words are replaced by words of other articles, so that they are not duplicates. Memory is the sum of the
proportional set sizes (PSS) of the job's process and its children, sampled four times per second. The rules suit
headlines with leads: no minimum length, no authors. The bytes per additional document compare each size with the
previous one.
"""

import argparse
import datetime
import io
import itertools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import zstandard
from job_memory import memory_of, tree
from newsembed.formats.manifest import read_manifest, write_manifest
from newsembed.formats.parquet import write_shard
from newsembed.formats.records import Article, make_doc_id

SHARD_ARTICLES = 4_000  # as in the shards of the extract job
OPTIONS = ("--require_author=false", "--min_words=0", "--min_sentences=0", "--require_terminal_punctuation=false")


def read_rows(path: str, most: int) -> list[dict[str, str]]:
    """Returns the first rows of a file that have a title and a body."""
    rows: list[dict[str, str]] = []
    with open(path, "rb") as source, zstandard.ZstdDecompressor().stream_reader(source) as plain:
        for line in io.TextIOWrapper(plain, "utf-8"):
            row = json.loads(line)
            if row.get("title") and row.get("body"):
                rows.append(
                    {name: row.get(name) or "" for name in ("url", "publisher", "title", "body", "published_at")}
                )
            if len(rows) == most:
                break
    return rows


def copies(rows: list[dict[str, str]], times: int) -> Iterator[Article]:
    """Yields the articles unchanged, then copies with other words."""
    draw = random.Random(3)
    words = [word for row in rows for word in row["body"].split()]
    for copy in range(times):
        for row in rows:
            url = f"{row['url']}{'?' * bool(copy)}{copy or ''}"
            said = (
                row["body"]
                if not copy
                else " ".join(draw.choice(words) if draw.random() < 2 / 3 else word for word in row["body"].split())
            )
            date = datetime.date.fromisoformat(row["published_at"][:10])
            yield Article(
                make_doc_id(url), url, row["publisher"], row["title"], said, byline_date=date, date_source="given"
            )


def write_input(folder: str, rows: list[dict[str, str]], times: int) -> int:
    """Writes articles as the extract job does; returns their number."""
    total = len(rows) * times
    shards = -(-total // SHARD_ARTICLES)
    articles = copies(rows, times)
    for index in range(shards):
        write_shard(
            f"{folder}/articles/part-{index:05d}-of-{shards:05d}.parquet",
            itertools.islice(articles, SHARD_ARTICLES),
            Article,
        )
    write_manifest(folder, {"digest": str(times)})
    return total


def tree_pss(root: int) -> int:
    """Returns the proportional set size of a process and all its descendants, in bytes."""
    return sum(memory_of(process)[0] for process in tree(root))


def measure(source: str, output: str) -> tuple[float, int, dict[str, int]]:
    """Runs the job; returns (seconds, peak bytes, counts).

    Raises:
      SystemExit: if the job fails.
    """
    started = time.monotonic()
    command = [sys.executable, "-m", "newsembed", "clean", "--articles", source, "--output", output, *OPTIONS]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log) as job:
        peak = 0
        while job.poll() is None:
            peak = max(peak, tree_pss(job.pid))
            time.sleep(0.25)
        seconds = time.monotonic() - started
        if job.returncode:
            log.seek(0)
            raise SystemExit(log.read().decode()[-3000:])
    counts = read_manifest(output)["counts"]
    return seconds, peak, {"kept": counts["out"], **counts["rejected"]}


def main() -> None:
    """Runs the job on each size and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("articles_file", type=Path, help="articles as JSONL, compressed with zstd")
    parser.add_argument("--articles", type=int, default=8_000, help="number of articles in one copy")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 4, 16])
    args = parser.parse_args()
    rows = read_rows(str(args.articles_file), args.articles)
    print(
        "| input | articles | seconds | peak MiB (PSS) | bytes per added article | counts |\n|---|---|---|---|---|---|",
        flush=True,
    )
    before: tuple[int, int] | None = None
    for times in args.times:
        with tempfile.TemporaryDirectory() as folder:
            total = write_input(f"{folder}/in", rows, times)
            seconds, peak, counts = measure(f"{folder}/in", f"{folder}/out")
        added = f"{(peak - before[1]) / (total - before[0]):,.0f}" if before else "-"
        shown = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        print(f"| {times}x | {total:,} | {seconds:.0f} | {peak / 2**20:,.0f} | {added} | {shown} |", flush=True)
        before = (total, peak)


if __name__ == "__main__":
    main()
