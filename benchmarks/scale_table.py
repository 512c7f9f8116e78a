"""Stages, shuffles and bytes of each mining job by document, and what 1 M, 100 M and 1 G articles would cost.

    python benchmarks/scale_table.py --small build-small --large build-large --output build/scale --write docs/scale.md

Both folders are results of `newsembed build`, of corpora of one kind; the large one has a few times the articles. Each
job runs again on them with the local runner, and the differences are divided by the difference in articles, so that
what a run costs at any size (starting workers, importing libraries) does not count:

    CPU of an article       (seconds of the large run - seconds of the small run) / (large - small)
    bytes shuffled          elements of all GroupByKeys, encoded as other runners than the local one get them
    bytes read, written     files of the inputs and of the output

`stages` and `shuffles` are those of the graph that is submitted: stages after Beam's fusion, GroupByKeys with those
that only spread shards over workers. They are the same at any size.

    hours of a vCPU = CPU seconds * articles / 3600 / utilisation / speed
    cost            = hours * (vcpu + 3.75 * memory) + shuffled GB * shuffle

with prices in dollars: `--vcpu` and `--memory` for an hour of a vCPU and of a GB of memory, `--shuffle` for a GB. The
defaults are list prices of Dataflow batch jobs in us-central1 as we know them; look yours up. `--speed` is the speed of
a vCPU there relative to a core here, which we have not measured. Storage and requests to it are not in the table.

`--write` puts the tables into a Markdown file, between the lines `<!-- scale_table: begin -->` and `<!-- scale_table:
end -->`; without `--jobs`, so that the total is that of a build. A run continues an earlier one into the same
`--output`.
"""

import argparse
import contextlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.portability import common_urns
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, execution
from newsembed.beam_pipelines import graph
from newsembed.beam_pipelines.workers import end_fork_server
from newsembed.beam_pipelines.workflow import load_job
from newsembed.benchmarks.job_memory import JOBS
from newsembed.benchmarks.paper_cost import write_between
from newsembed.formats import files
from newsembed.formats.manifest import read_manifest
from newsembed.launch import cli

SIZES = (10**6, 10**8, 10**9)


@contextlib.contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Counts the bytes and elements of GroupByKeys, the stages and the shuffles of the pipelines that run inside."""
    found = dict.fromkeys(("shuffled", "stages", "shuffles", "pipelines"), 0)
    append, run = execution.GroupingBuffer.append, beam.Pipeline.run

    def counting_append(buffer: Any, data: bytes) -> None:
        found["shuffled"] += len(data)
        append(buffer, data)

    def counting_run(pipeline: beam.Pipeline, *args: Any, **kwargs: Any) -> Any:
        if pipeline.applied_labels:  # Beam runs a pipeline again from its proto
            proto = pipeline.to_runner_api()
            group = common_urns.primitives.GROUP_BY_KEY.urn
            shuffles = sum(one.spec.urn == group for one in proto.components.transforms.values())
            stages = len(FnApiRunner().create_stages(proto)[1])
            found["stages"] += stages
            found["shuffles"] += shuffles
            found["pipelines"] += 1
        return run(pipeline, *args, **kwargs)

    with (
        mock.patch.object(execution.GroupingBuffer, "append", counting_append),
        mock.patch.object(beam.Pipeline, "run", counting_run),
        # The elements of the local runner say where rows are; those of other runners hold the rows: these are counted.
        mock.patch.object(graph, "FnApiRunner", type("AnotherRunner", (), {})),
    ):
        yield found


def bytes_in(folder: str) -> int:
    """The bytes of all files of a folder."""
    return sum(files.sizes_below(folder).values())


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it has waited for, the workers of jobs among them."""
    end_fork_server()  # which has waited for them
    return sum(os.times()[:4])


def options_of(folder: str, job: str) -> list[str]:
    """The options of a job of a build that are a number, a text or a switch, as arguments."""
    stated = read_manifest(f"{folder}/{job}")["options"]
    plain = {name: value for name, value in stated.items() if isinstance(value, str | int | float) and value != ""}
    return [f"--{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in plain.items()]


def measure(job: str, inputs: str, build: str, output: str) -> dict[str, float]:
    """Runs a job on the inputs of a build; returns CPU seconds, bytes, and the size of its graph.

    Raises:
      SystemExit: if it fails.
    """
    words = [f"{build}/{word}" if word in {"extract", *JOBS} else word for word in inputs.split()]
    given = [word for word in words if not word.startswith("--")]
    shutil.rmtree(output, ignore_errors=True)
    load_job(job)  # imports count in neither run
    started = cpu_seconds()
    errors = io.StringIO()
    with counted() as found, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        status = cli.main([job, *words, "--output", output, "--direct_num_workers=2", *options_of(build, job)])
    if status:
        raise SystemExit(f"{job} failed on {build}:\n{errors.getvalue()[-2000:]}")
    seconds = cpu_seconds() - started
    return found | {"seconds": seconds, "read": sum(map(bytes_in, given)), "written": bytes_in(output)}


def articles_of(build: str) -> int:
    """The number of articles that `clean` gets."""
    return int(read_manifest(f"{build}/clean")["counts"]["in"])


def figures_of(job: str, builds: Sequence[str], output: str, articles: Sequence[int]) -> dict[str, float]:
    """Runs a job on both builds; returns what an article costs, and the size of the graph."""
    one, other = (measure(job, JOBS[job], build, output) for build in builds)
    added = articles[1] - articles[0]
    of_article = {name: (other[name] - one[name]) / added for name in ("seconds", "shuffled", "read", "written")}
    return of_article | {name: other[name] for name in ("pipelines", "stages", "shuffles")}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = [" | ".join(columns), "|".join(["---", *["--:"] * (len(columns) - 1)]), *map(" | ".join, rows)]
    return "\n".join(f"|{line}|" if line.startswith("-") else f"| {line} |" for line in lines)


def job_table(figures: Mapping[str, Mapping[str, float]], totals: Mapping[str, float]) -> str:
    """The table of the jobs."""
    rows = []
    for job, row in figures.items():
        graph = [f"{row[name]:.0f}" for name in ("pipelines", "stages", "shuffles")]
        rows.append([job, *graph, *_costs(row)])
    rows.append(["all", "", "", "", *_costs(totals)])
    units = ("CPU ms an article", "bytes shuffled an article", "KB read", "KB written")
    return table(("job", "pipelines", "stages", "shuffles", *units), rows)


def _costs(row: Mapping[str, float]) -> list[str]:
    kilobytes = [f"{row[name] / 1e3:.2f}" for name in ("read", "written")]
    return [f"{1e3 * row['seconds']:.2f}", f"{row['shuffled']:,.0f}", *kilobytes]


def cost_table(totals: Mapping[str, float], args: argparse.Namespace) -> str:
    """The table of corpora of :data:`SIZES`."""
    rows = []
    for size in SIZES:
        hours = totals["seconds"] * size / 3600 / args.utilisation / args.speed
        gigabytes = totals["shuffled"] * size / 1e9
        cost = hours * (args.vcpu + 3.75 * args.memory) + gigabytes * args.shuffle
        rows.append([f"{size:,}", f"{hours:,.1f}", f"{gigabytes:,.1f}", f"${cost:,.2f}"])
    return table(("articles", "vCPU hours", "GB shuffled", "cost"), rows)


def parse() -> argparse.Namespace:
    """The arguments of this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", required=True, help="output of `newsembed build`")
    parser.add_argument("--large", required=True, help="that of a larger corpus of the same kind")
    parser.add_argument("--output", required=True, help="folder for results and figures.json")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--jobs", nargs="+", choices=list(JOBS), help="only these; by default all")
    which.add_argument("--write", help="Markdown file that gets the tables")
    parser.add_argument("--vcpu", type=float, default=0.056, help="dollars for an hour of a vCPU")
    parser.add_argument("--memory", type=float, default=0.003557, help="dollars for an hour of a GB of memory")
    parser.add_argument("--shuffle", type=float, default=0.011, help="dollars for a GB that is shuffled")
    parser.add_argument("--utilisation", type=float, default=0.7, help="share of the paid time in which vCPUs work")
    parser.add_argument("--speed", type=float, default=1.0, help="speed of a vCPU relative to a core of this machine")
    return parser.parse_args()


def main() -> None:
    """Runs the jobs on both builds and prints or writes two tables."""
    args = parse()
    builds = (args.small, args.large)
    articles = list(map(articles_of, builds))
    record = Path(args.output, "figures.json")
    earlier = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    known = earlier["jobs"] if earlier.get("articles") == articles else {}
    for job in args.jobs or JOBS:
        if job not in known:
            known[job] = figures_of(job, builds, f"{args.output}/{job}", articles)
            record.write_text(json.dumps({"articles": articles, "jobs": known}, indent=1), encoding="utf-8")
    figures = {job: known[job] for job in JOBS if job in known}
    totals = {name: sum(row[name] for row in figures.values()) for name in ("seconds", "shuffled", "read", "written")}
    sizes = f"Builds of {articles[0]:,} and {articles[1]:,} articles."
    text = "\n\n".join((sizes, job_table(figures, totals), cost_table(totals, args)))
    print(f"\n{text}")
    if args.write:
        write_between(args.write, "scale_table", f"{text}\n")


if __name__ == "__main__":
    main()
