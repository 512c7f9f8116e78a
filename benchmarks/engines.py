"""The build on an engine outside of this process: bytes against the local runner, and processes killed in each job.

It starts Prism, Beam's portable runner in Go, which ``go install`` builds in Beam's version; with ``--engine=flink`` a
small Flink inside of Beam's job server, whose jars Maven gets (``flink_job_server/pom.xml``; Java 17); with
``--engine=flink-cluster`` a job manager and two task managers next to it; with ``--engine=spark`` Spark 3 inside of its
job server. Flink and Spark start their workers (``newsembed-worker``), for Prism they are processes of Beam's worker
pool. All processes share the disk.
In each job a worker is killed, or a task manager of the cluster, which is replaced. The command is repeated until it
succeeds; the last line says how often it ran: once, where an engine finishes a job by itself.

Run: python benchmarks/engines.py --demo=demo-output --output=build/engines
"""

import argparse
import contextlib
import functools
import glob
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import apache_beam as beam
import psutil
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.benchmarks.flink_cluster import FlinkCluster
from newsembed.formats.manifest import has_manifest, read_manifest, read_seconds

_PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism"
_TRANSLATIONS = "translations"
_SPARK_MASTER = "local[2,4]"  # two tasks at a time, four attempts each
_OPENED = (  # to the serializers
    "java.io java.lang.invoke sun.nio.ch sun.security.action java.lang java.lang.reflect java.net java.nio java.text "
    "java.time java.util java.util.concurrent java.util.concurrent.atomic"
)
Kills = dict[str, int]
SMALL = ("--vocabulary.size=6000", "--pack.max_length=128", "--examples.max_length=96")


def parse() -> argparse.Namespace:
    """The arguments of this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", required=True, help="output folder of `newsembed demo`; its crawl is the input")
    parser.add_argument("--output", required=True, help="folder for the results; an earlier one is continued")
    parser.add_argument(
        "--engine", choices=["flink", "flink-cluster", "prism", "spark"], default="prism", help="what is started"
    )
    parser.add_argument("--bitext_encoder", help="as of `newsembed build`: the build has the job `bitext`, too")
    return parser.parse_args()


def build_command(args: argparse.Namespace, output: str, beam_args: Sequence[str]) -> list[str]:
    """The command of a build of the crawl of the demo."""
    warc = sorted(glob.glob(f"{args.demo}/crawl/warc/*.warc.gz"))
    inputs = ["--warc", *warc, "--bitext", f"{args.demo}/newsroom/bitext.tsv", "--output", output]
    if args.bitext_encoder:
        inputs += ["--bitext_encoder", args.bitext_encoder]
    return [sys.executable, "-m", "newsembed", "build", *inputs, *SMALL, *beam_args]


def translations_command(demo: str, output: str, beam_args: Sequence[str]) -> list[str]:
    """The command of the job `translations`, which a build does not have, on the vocabulary of a build."""
    inputs = ["--bitext", f"{demo}/newsroom/bitext.tsv", "--vocabulary", f"{output}/vocabulary"]
    paths = [*inputs, "--output", f"{output}/{_TRANSLATIONS}"]
    return [sys.executable, "-m", "newsembed", _TRANSLATIONS, *paths, *beam_args]


def run(command: Sequence[str], log: Path) -> tuple[int, float]:
    """Runs a command; returns its exit status and the CPU seconds of it and the processes that it waited for."""
    before = sum(os.times()[2:4])
    with log.open("a") as sink:
        status = subprocess.run(command, stdout=sink, stderr=sink, check=False).returncode
    return status, sum(os.times()[2:4]) - before


def prism_command(folder: Path, port: int) -> list[str]:
    """The command of Prism in the version of Beam; ``go install`` builds it once."""
    binary = folder / "prism"
    if not binary.exists():
        environment = os.environ | {"GOBIN": str(folder)}
        subprocess.run(["go", "install", f"{_PRISM}@v{beam.version.__version__}"], env=environment, check=True)
    return [str(binary), f"-job_port={port}", "-serve_http=false"]


def java_of(engine: str, folder: Path) -> list[str]:
    """Java with the class path of an engine and Beam's job server for it; Maven gets the jars once."""
    classpath = folder / f"{engine}.classpath"
    if not classpath.exists():
        pom = Path(__file__).parent / f"{engine}_job_server" / "pom.xml"
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
        subprocess.run(["mvn", "-B", "-q", "-f", str(pom), *goal], check=True)
    opened = [
        f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()
    ]  # the serializers need them
    logs = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", *opened, logs, "-cp", classpath.read_text(encoding="utf-8")]


def job_server_command(folder: Path, port: int, engine: str, options: Sequence[str]) -> list[str]:
    """The command of Beam's job server, with an engine in its own process or for a cluster."""
    java, *machine = java_of(engine, folder)
    ports = [f"--job-port={port}", "--artifact-port=0", "--expansion-port=0"]
    driver = f"org.apache.beam.runners.{engine}.{engine.title()}JobServerDriver"
    return [java, "-Xmx3g", *machine, driver, *ports, *options, f"--artifacts-dir={folder}/artifacts"]


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(
    command: Sequence[str], port: int, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Starts a server, waits until it listens, and ends it with its children; yields its process id.

    Raises:
      RuntimeError: if it ends before it listens.
    """
    with (
        log.open("w") as sink,
        subprocess.Popen(command, stdout=sink, stderr=sink, start_new_session=True, env=environment) as server,
    ):
        try:
            while not _listens(port):
                if server.poll() is not None:
                    raise RuntimeError(f"{command[0]} ended with {server.returncode}, see {log}")
                time.sleep(0.2)
            yield server.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGTERM)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0


def kill_worker(parent: int) -> bool:
    """Kills a worker, which is a child of the worker pool or of the engine; returns whether there was one."""
    for worker in psutil.Process(parent).children()[:1]:
        worker.kill()
        return True
    return False


def kill_in_each_job(command: Sequence[str], output: str, kill: Callable[[], bool], log: Path) -> tuple[Kills, int]:
    """Builds, and kills a process in each job once shards of it are complete; builds again until the build succeeds.

    Returns:
      By job, the complete shards at that time; and how often the command ran.
    """
    record = Path(f"{output}.json")  # a run that continues an earlier one prints its kills, too
    killed: Kills = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    for runs in range(1, 2 * len(STEPS) + 1):
        with log.open("a") as sink, subprocess.Popen(command, stdout=sink, stderr=sink) as building:
            while building.poll() is None:
                for step in STEPS:
                    reports = glob.glob(f"{output}/{step.job}/.work-*/_reports/*/*.json")
                    if step.job not in killed and len(reports) > 2 and kill():
                        killed[step.job] = len(reports)
                        record.write_text(json.dumps(killed), encoding="utf-8")
                time.sleep(0.02)
        if building.returncode == 0:
            return killed, runs
    raise RuntimeError(f"the build does not end, see {log}")


def jobs_of(folders: dict[str, str]) -> list[str]:
    """The jobs that ran on the local runner; some run only with inputs that are not given here."""
    jobs = [*(step.job for step in STEPS), _TRANSLATIONS]
    return [job for job in jobs if has_manifest(f"{next(iter(folders.values()))}/{job}")]


def print_table(folders: dict[str, str], killed: Kills) -> bool:
    """Prints the seconds of each job and whether its files are those of the first folder; returns whether all are."""
    equal = True
    print("| job | " + " | ".join(f"{name}, s" for name in folders) + " | files | killed after shards | bytes |")
    print("|---" * (len(folders) + 4) + "|")
    for job in jobs_of(folders):
        manifests = [read_manifest(f"{folder}/{job}") for folder in folders.values()]
        seconds = " | ".join(f"{read_seconds(f'{folder}/{job}'):.1f}" for folder in folders.values())
        same = all(one["sha256"] == manifests[0]["sha256"] for one in manifests[1:])
        same &= all(one["counts"] == manifests[0]["counts"] for one in manifests[1:])
        equal &= same
        files = len(manifests[0]["sha256"])
        print(f"| {job} | {seconds} | {files} | {killed.get(job, '-')} | {'equal' if same else 'DIFFERENT'} |")
    return equal


def worker_command(folder: Path) -> Path:
    """A program that is `newsembed-worker` in this interpreter: the command of an engine has no arguments."""
    program = folder / "worker"
    module = "newsembed.beam_pipelines.worker"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def start_engine(name: str, output: Path, stack: contextlib.ExitStack) -> tuple[str, list[str], Callable[[], bool]]:
    """Starts an engine that ends with the stack.

    Returns:
      The address of its job server, the options for its workers, and what kills one of its processes.
    """
    cluster, port = None, free_port()
    if name == "prism":
        server = prism_command(output, port)
    elif name == "spark":
        server = job_server_command(output, port, "spark", [f"--spark-master-url={_SPARK_MASTER}"])
    elif name == "flink":
        server = job_server_command(output, port, "flink", ["--flink-master=[local]"])
    else:
        cluster = FlinkCluster(java_of("flink", output), output / "cluster", (free_port(), free_port()))
        stack.enter_context(cluster)
        options = [f"--flink-master={cluster.address}", f"--flink-conf-dir={cluster.folder}"]
        server = job_server_command(output, port, "flink", options)
    pid = stack.enter_context(started(server, port, output / f"{name}.log"))
    if name == "prism":  # it starts no processes
        return f"localhost:{port}", *start_pool(output, stack)
    workers = [
        "--environment_type=PROCESS",
        f"--environment_config={json.dumps({'command': str(worker_command(output))})}",
    ]
    return f"localhost:{port}", workers, cluster.kill_task_manager if cluster else functools.partial(kill_worker, pid)


def start_pool(
    output: Path,
    stack: contextlib.ExitStack,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> tuple[list[str], Callable[[], bool]]:
    """Starts Beam's worker pool, which ends with the stack; returns the options for its workers, and what kills one."""
    port = free_port()
    command = [python, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]
    pool = stack.enter_context(started(command, port, output / "workers.log", environment))
    options = ["--environment_type=EXTERNAL", f"--environment_config=localhost:{port}"]
    return options, functools.partial(kill_worker, pool)


def build(args: argparse.Namespace, output: str, beam_args: Sequence[str]) -> float:
    """Runs the build and `translations`; returns their CPU seconds.

    Raises:
      RuntimeError: if one fails.
    """
    log, cpu = Path(f"{output}.log"), 0.0
    for command in (build_command(args, output, beam_args), translations_command(args.demo, output, beam_args)):
        status, seconds = run(command, log)
        cpu += seconds
        if status:
            raise RuntimeError(f"{command[3]} failed, see {log}")
    return cpu


def main() -> int:
    """Builds on the local runner and on the engine; returns 1 if any byte differs."""
    args = parse()
    output = Path(args.output).absolute()
    output.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the worker pool starts `python`
    names = {"local runner": "local", "engine": "engine", "engine, killed": "killed"}
    folders = {name: f"{output}/{folder}" for name, folder in names.items()}
    cpu = build(args, folders["local runner"], ())
    with contextlib.ExitStack() as stack:
        endpoint, workers, kill = start_engine(args.engine, output, stack)
        remote = ["--runner=PortableRunner", f"--job_endpoint={endpoint}", *workers]
        build(args, folders["engine"], remote)
        command = build_command(args, f"{output}/killed", remote)
        killed, runs = kill_in_each_job(command, f"{output}/killed", kill, output / "killed.log")
        build(args, f"{output}/killed", remote)  # is complete; adds `translations`
    equal = print_table(folders, killed)
    print(
        json.dumps({"local CPU seconds": round(cpu, 1), "equal": equal, "jobs with a kill": len(killed), "runs": runs})
    )
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
