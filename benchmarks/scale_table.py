"""Stages, shuffles and bytes of each mining job by document, and what 1 M, 100 M and 1 G articles would cost.

    python benchmarks/scale_table.py --small build-small --large build-large --output build/scale

Both folders are results of `newsembed build`, of corpora of one kind; the large one has a few times the articles. Each
job runs again on them with the local runner, and the differences are divided by the difference in articles, so that
what a run costs at any size (starting workers, importing libraries) does not count:

    CPU seconds of a document    (seconds of the large run - seconds of the small run) / (large - small)
    bytes shuffled               elements of all GroupByKeys, encoded as Beam sends them, in the same way
    bytes read and written       files of the inputs and of the output, in the same way

`stages` and `shuffles` are those of the graph that is submitted: stages after Beam's fusion, GroupByKeys with those
that only spread shards over workers. They are the same at any size.

    hours of a vCPU = CPU seconds * articles / 3600 / utilisation
    cost            = hours * (vcpu + 3.75 * memory) + shuffled GB * shuffle

with prices in dollars: `--vcpu` and `--memory` for an hour of a vCPU and of a GB of memory, `--shuffle` for a GB. The
defaults are list prices of Dataflow batch jobs in us-central1 as we know them; look yours up. `--speed` is the speed of
a vCPU there relative to a core here, which we have not measured. Storage and requests to it are not in the table.
"""

import argparse
import contextlib
import io
import json
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import execution
from newsembed.beam_pipelines import graph
from newsembed.beam_pipelines.dry_run import stages_and_shuffles
from newsembed.formats.manifest import read_manifest
from newsembed.launch import cli

# By job: inputs as options, where "@" stands for the folder of the build.
JOBS = {
    "clean": "--articles @extract",
    "vocabulary": "--articles @clean",
    "pack": "--articles @clean --vocabulary @vocabulary",
    "entities": "--articles @clean",
    "vectors": "--articles @clean --entities @entities",
    "neighbors": "--vectors @vectors",
    "triplets": "--articles @clean --neighbors @neighbors",
    "topics": "--articles @clean --hubs @extract --entities @entities",
    "examples": "--articles @clean --triplets @triplets --topics @topics --vocabulary @vocabulary",
}
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
            stages, shuffles = stages_and_shuffles(pipeline.to_runner_api())
            found["stages"] += stages
            found["shuffles"] += shuffles
            found["pipelines"] += 1
        return run(pipeline, *args, **kwargs)

    execution.GroupingBuffer.append, beam.Pipeline.run = counting_append, counting_run
    # The elements of the local runner say where rows are; those of other runners hold the rows: these are counted.
    local, graph.FnApiRunner = graph.FnApiRunner, type("AnotherRunner", (), {})
    try:
        yield found
    finally:
        execution.GroupingBuffer.append, beam.Pipeline.run = append, run
        graph.FnApiRunner = local


def bytes_in(folder: str) -> int:
    """The bytes of all files of a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
    words = inputs.replace("@", f"{build}/").split()
    given = [word for word in words if not word.startswith("--")]
    shutil.rmtree(output, ignore_errors=True)
    started = cpu_seconds()
    errors = io.StringIO()
    with counted() as found, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        status = cli.main([job, *words, "--output", output, "--direct_num_workers=2", *options_of(build, job)])
    if status:
        raise SystemExit(f"{job} failed on {build}:\n{errors.getvalue()[-2000:]}")
    seconds = cpu_seconds() - started
    return found | {"seconds": seconds, "read": sum(map(bytes_in, given)), "written": bytes_in(output)}


def articles_of(build: str) -> int:
    """The number of articles that `extract` wrote."""
    return int(read_manifest(f"{build}/extract")["counts"]["out"])


def parse() -> argparse.Namespace:
    """The arguments of this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", required=True, help="output of `newsembed build`")
    parser.add_argument("--large", required=True, help="that of a larger corpus of the same kind")
    parser.add_argument("--output", required=True, help="folder for results and figures.json")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS), help="some of the jobs")
    parser.add_argument("--vcpu", type=float, default=0.056, help="dollars for an hour of a vCPU")
    parser.add_argument("--memory", type=float, default=0.003557, help="dollars for an hour of a GB of memory")
    parser.add_argument("--shuffle", type=float, default=0.011, help="dollars for a GB that is shuffled")
    parser.add_argument("--utilisation", type=float, default=0.7, help="share of the paid time in which vCPUs work")
    parser.add_argument("--speed", type=float, default=1.0, help="speed of a vCPU relative to a core of this machine")
    return parser.parse_args()


def main() -> None:
    """Runs the jobs on both builds and prints two tables."""
    args = parse()
    builds = (args.small, args.large)
    small, large = map(articles_of, builds)
    figures: dict[str, dict[str, float]] = {}
    print(f"{small:,} and {large:,} articles\n")
    print("| job | pipelines | stages | shuffles | CPU ms | KB shuffled | KB read | KB written |\n|---|" + "---|" * 7)
    for job in args.jobs:
        one, other = (measure(job, JOBS[job], build, f"{args.output}/{job}") for build in builds)
        figures[job] = {
            name: (other[name] - one[name]) / (large - small) for name in ("seconds", "shuffled", "read", "written")
        }
        row = figures[job]
        kilobytes = " | ".join(f"{row[name] / 1e3:.2f}" for name in ("shuffled", "read", "written"))
        sizes = " | ".join(str(int(other[name])) for name in ("pipelines", "stages", "shuffles"))
        print(f"| {job} | {sizes} | {1e3 * row['seconds']:.2f} | {kilobytes} |", flush=True)
    Path(args.output, "figures.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print(
        "\n| job |"
        + "".join(f" {size:,}: vCPU hours, GB shuffled, $ |" for size in SIZES)
        + "\n|---|"
        + "---|" * len(SIZES)
    )
    totals = {name: sum(row[name] for row in figures.values()) for name in ("seconds", "shuffled", "read", "written")}
    for job, row in [*figures.items(), ("all", totals)]:
        cells = []
        for size in SIZES:
            hours = row["seconds"] * size / 3600 / args.utilisation / args.speed
            gigabytes = row["shuffled"] * size / 1e9
            cost = hours * (args.vcpu + 3.75 * args.memory) + gigabytes * args.shuffle
            cells.append(f"{hours:,.1f}, {gigabytes:,.1f}, {cost:,.2f}")
        print(f"| {job} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
