"""Time and memory of `newsembed entities` with a large generated knowledge base.

    python benchmarks/knowledge_base_memory.py work/clean --rows 10000000

Generates a table of names in the folder for temporary files: two of three aliases have words that no corpus has, the
others are pairs of words of the corpus. Runs the job with and without the table; prints the CPU seconds of all its
processes and the largest resident set of any of them.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from newsembed.beam_pipelines.entities.tokens import words_of
from newsembed.formats.parquet import read_records, shard_paths
from newsembed.formats.records import Article


def write_table(path: Path, rows: int, words: list[str]) -> None:
    """Writes a TSV of that many names."""
    draw = random.Random(0)
    with open(path, "w", encoding="utf-8") as sink:
        for number in range(rows):
            if number % 3:
                alias = f"Qx{draw.randrange(1 << 40):x} Zq{draw.randrange(1 << 20):x}"
            else:
                alias = f"{draw.choice(words).title()} {draw.choice(words).title()}"
            sink.write(f"Q{number // 5}\t{('en', 'de', 'fr', 'ru', '')[number % 5]}\t{alias}\t{1 + number % 90}\n")


def measured(articles: str, output: str, *table: str) -> tuple[float, float]:
    """CPU seconds and the largest resident set in MB of a process of the job, run by itself."""
    command = [sys.executable, "-m", "newsembed", "entities", "--articles", articles, "--output", output]
    child = subprocess.run(
        [sys.executable, __file__, "--child", *command, "--direct_num_workers=1", *table],
        check=True,
        capture_output=True,
    )
    seconds, megabytes = child.stdout.decode().split()[-2:]
    return float(seconds), float(megabytes)


def main() -> None:
    """Prints the table."""
    if sys.argv[1:2] == ["--child"]:
        subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("articles", help="folder that `newsembed clean` wrote")
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    first = next(iter(shard_paths(f"{options.articles}/articles")))
    words = sorted(
        {word for article in read_records(first, Article) for word in words_of(article.body) if word.isalpha()}
    )
    print("| knowledge base, rows | CPU seconds | largest process, MB |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        print("| 0 | {:.1f} | {:.0f} |".format(*measured(options.articles, f"{folder}/without")), flush=True)
        table = Path(folder, "names.tsv")
        write_table(table, options.rows, words)
        size = os.path.getsize(table) / 1e6
        with_table = measured(options.articles, f"{folder}/with", "--knowledge_base", str(table))
        print(f"| {options.rows:,} ({size:.0f} MB) | {with_table[0]:.1f} | {with_table[1]:.0f} |")


if __name__ == "__main__":
    main()
