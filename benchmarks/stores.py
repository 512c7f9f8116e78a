"""A build and a training run with every path on gs:// and on s3://, over a network with faults: the same as on disk?

    python benchmarks/stores.py --demo demo-output --output build/stores

It starts fake-gcs-server, which ``go install`` builds, and moto's server of S3. The tests of object stores run against
both. Then the crawl of the demo is built on disk and in each store, from WARC files to TFRecords; a model is trained on
them, evaluated and exported; and a second model is trained by a process that is killed while it uploads a checkpoint,
started again, and ended with SIGTERM in the next one. All requests pass a proxy, which cuts connections, answers with
500, 503 and 429, and waits. The tables compare counts, digests of files, and losses.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from newsembed.beam_pipelines.workflow import STEPS
from newsembed.benchmarks import engines
from newsembed.formats import files
from newsembed.formats.manifest import has_manifest, read_manifest, read_seconds
from newsembed.tests import dropping_proxy, object_store

_GCS: Final = "github.com/fsouza/fake-gcs-server@v1.52.2"
_BUCKET: Final = "news"
_WARC_FILES: Final = 16  # of eight sites; each request of 30,000 takes its time
_TESTS: Final = (
    "tests/formats/test_object_stores.py",
    "tests/beam_pipelines/test_object_store_jobs.py",
    "tests/training/test_object_stores.py",
)
_CUT_AFTER: Final = 200_000  # bytes at most
_FAULTS: Final = {"failing": 0.01, "slow": 0.02, "delay_seconds": 0.2}  # shares of the requests
_CUT: Final = 0.1  # of the connections
_TRAINING: Final = ("--gin_file=runs/pretrain_demo.gin", "--gin.TRAIN_STEPS=40", "--gin.CHECKPOINT_PERIOD=10")
_WEIGHTS: Final = ("--format=safetensors",)
_KILLED: Final = "train, killed and resumed"


@dataclasses.dataclass(frozen=True)
class Place:
    """A place for the work: a local folder, or a folder in a store behind a proxy.

    Attributes:
      name: in the table.
      root: path or URI.
      environment: variables of the commands.
      log: what they print.
      proxy: counts the faults.
      store: the store without the proxy.
    """

    name: str
    root: str
    environment: Mapping[str, str]
    log: Path
    proxy: dropping_proxy.Proxy | None = None
    store: object_store.Store | None = None

    def command(self, *args: str) -> list[str]:
        """A command of newsembed."""
        return [sys.executable, "-m", "newsembed", *(arg.replace("ROOT", self.root) for arg in args)]

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Starts a command of newsembed, in which ROOT stands for the folder."""
        with self.log.open("a", encoding="utf-8") as log:
            return subprocess.Popen(
                self.command(*args), stdout=log, stderr=log, env=os.environ | dict(self.environment)
            )

    def run(self, *args: str) -> float:
        """Runs a command to its end; returns its seconds.

        Raises:
          RuntimeError: if it fails.
        """
        begin = time.monotonic()
        print(f"{self.name}: {' '.join(args)}", flush=True)
        if status := self.start(*args).wait():
            raise RuntimeError(f"{args[0]} ended with {status}, see {self.log}")
        return time.monotonic() - begin

    def directly(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which this process reads the store without the proxy."""
        return object_store.used(self.store) if self.store else contextlib.nullcontext()


@contextlib.contextmanager
def served(scheme: str, output: Path) -> Iterator[Place]:
    """A store that ends with the context, with an empty bucket."""
    port = engines.free_port()
    proxy = dropping_proxy.Proxy(port, _CUT, _CUT_AFTER, **_FAULTS)
    if scheme == "gs":
        binary = output / "fake-gcs-server"
        if not binary.exists():
            subprocess.run(["go", "install", _GCS], env=os.environ | {"GOBIN": str(output)}, check=True)
        # It names this address where an upload goes on.
        seen = [f"-external-url=http://127.0.0.1:{proxy.port}", f"-public-host=127.0.0.1:{proxy.port}"]
        command = [str(binary), "-scheme=http", "-host=127.0.0.1", f"-port={port}", "-backend=memory", *seen]
        request = ("POST", "storage/v1/b?project=news", json.dumps({"name": _BUCKET}).encode())
    else:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        request = ("PUT", _BUCKET, b"")
    with engines.started(command, port, output / f"{scheme}-server.log"):
        method, path, body = request
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", body, headers, method=method)
        with urllib.request.urlopen(asked):
            pass
        store = object_store.Store(f"http://127.0.0.1:{port}", "user", "secret", f"{scheme}://{_BUCKET}/it")
        yield Place(
            f"{scheme}://", store.folder, store.through(proxy.port).environment, output / f"{scheme}.log", proxy, store
        )
    proxy.close()


def copy_inputs(demo: str, place: Place) -> None:
    """Copies the crawl, the translation pairs and a benchmark of the demo to a place."""
    warc = files.list_files("crawl/warc/*.warc.gz", demo)[:_WARC_FILES]
    with place.directly():
        files.copy([*warc, f"{demo}/newsroom/bitext.tsv", f"{demo}/newsroom/sts.tsv"], f"{place.root}/in")


def build(place: Place) -> dict[str, tuple[Any, float]]:
    """Runs the jobs; returns counts and digests of each, and its seconds."""
    inputs = ["--warc", "ROOT/in/*.warc.gz", "--bitext", "ROOT/in/bitext.tsv"]
    place.run("build", *inputs, "--output", "ROOT/work", *engines.SMALL)
    found = {}
    with place.directly():
        for job in (step.job for step in STEPS):
            folder = f"{place.root}/work/{job}"
            if has_manifest(folder):
                manifest = read_manifest(folder)
                found[job] = ((manifest["counts"], manifest["sha256"]), read_seconds(folder))
        names = files.sizes_below(f"{place.root}/work")
    left = tuple(name for name in names if "/.work-" in name or name.endswith(".tmp"))
    return found | {"files left over": (left, 0.0)}


def training(model: str) -> list[str]:
    """The arguments that train a model of this name."""
    given = {"MODEL_DIR": f"ROOT/{model}", "DATA_DIR": "ROOT/work/pack"}
    given["VOCABULARY_PATH"] = "ROOT/work/vocabulary/vocab.txt"
    return ["train", *_TRAINING, *(f'--gin.{name}="{path}"' for name, path in given.items())]


def use_model(place: Place) -> dict[str, tuple[Any, float]]:
    """Trains, evaluates, exports; returns losses, scores and digests, and the seconds of each."""
    times = {"train": place.run(*training("model"))}
    benchmark = ["--suite=sts", "--data=ROOT/in/sts.tsv", "--encoder=m=model:ROOT/model"]
    times["evaluate"] = place.run("evaluate", *benchmark, "--output=ROOT/evaluation")
    times["export"] = place.run("export", "--model=ROOT/model", *_WEIGHTS, "--output=ROOT/export")
    with place.directly():
        scores = files.read_json(f"{place.root}/evaluation/results.json")["results"][0]["scores"]
    found = {"train": losses(place, "model"), "evaluate": scores, "export": exported(place, "export")}
    return {name: (result, times[name]) for name, result in found.items()}


def train_interrupted(place: Place) -> dict[str, tuple[Any, float]]:
    """Trains a model with a process that ends twice while it uploads a checkpoint, and once more to its end."""
    begin = time.monotonic()
    for number, sent in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
        process = place.start(*training("ended"))
        with place.directly():
            while process.poll() is None and len(objects_of_steps(place)) < number:
                time.sleep(0.02)
            process.send_signal(sent)
            status = process.wait()
            print(f"{place.name}: {sent.name}, exit status {status}; objects by step: {objects_of_steps(place)}")
    place.run(*training("ended"))
    place.run("export", "--model=ROOT/ended", *_WEIGHTS, "--output=ROOT/ended-export")
    found = losses(place, "ended")[-1], exported(place, "ended-export")
    return {_KILLED: (found, time.monotonic() - begin)}


def exported(place: Place, folder: str) -> str:
    """The digest of an export's parameters."""
    with place.directly():
        return files.file_digest(f"{place.root}/{folder}/model.safetensors")


def objects_of_steps(place: Place) -> dict[int, int]:
    """The number of objects of each checkpoint of the model whose training ends."""
    steps = [name.split("/")[0] for name in files.sizes_below(f"{place.root}/ended/checkpoints")]
    return {int(step): steps.count(step) for step in sorted(set(steps)) if step.isdigit()}


def losses(place: Place, model: str) -> list[dict[str, float]]:
    """What a training run reported, without what depends on time."""
    with place.directly():
        lines = files.read_bytes(f"{place.root}/{model}/metrics.jsonl", "train again").splitlines()
    records: list[dict[str, float]] = [json.loads(line) for line in lines]
    return [{name: value for name, value in one.items() if name == "step" or "/" in name} for one in records]


def work(demo: str, place: Place) -> dict[str, tuple[Any, float]]:
    """Runs everything at a place; returns what is compared, and seconds, by the name of a row."""
    copy_inputs(demo, place)
    found = build(place) | use_model(place)
    if place.store is None:  # what a run that never ended has in the end
        return found | {_KILLED: ((found["train"][0][-1], found["export"][0]), 0.0)}
    return found | train_interrupted(place)


def print_table(found: Mapping[str, Mapping[str, tuple[Any, float]]]) -> int:
    """Prints seconds by row and place, and what differs from the disk; returns how many rows of places do."""
    expected = found["disk"]
    differing = [(row, name) for name, rows in found.items() for row in expected if rows[row][0] != expected[row][0]]
    print("| | " + " | ".join(f"{name}, s" for name in found) + " | equal |\n|---" + "|--:" * len(found) + "|---|")
    for row in expected:
        seconds = " | ".join(f"{rows[row][1]:.1f}" for rows in found.values())
        print(f"| {row} | {seconds} | {'NO' if any(one == row for one, _ in differing) else 'yes'} |")
    print(f"{len(expected)} rows, {len(differing)} differ: {differing}", flush=True)
    return len(differing)


def main() -> int:
    """Prints the table after each store, so that a later failure does not hide it; returns 1 if a row differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demo", required=True, help="output folder of `newsembed demo`; its crawl is the input")
    parser.add_argument("--output", required=True, help="folder for the server, the local results and the logs")
    args = parser.parse_args()
    output = Path(args.output).absolute()
    shutil.rmtree(output / "local", ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    found = {"disk": work(args.demo, Place("disk", f"{output}/local", {}, output / "local.log"))}
    for scheme in ("gs", "s3"):
        with served(scheme, output) as place:
            if scheme == "gs":
                named = {"NEWSEMBED_TEST_GS": f"{place.store.endpoint},{_BUCKET}"}
                pytest = [sys.executable, "-m", "pytest", "-q", "-m", "long or not long", *_TESTS]
                subprocess.run(pytest, env=os.environ | named, check=True)
            found[place.name] = work(args.demo, place)
            faults = ", ".join(f"{count} {kind}" for kind, count in sorted(place.proxy.faults.items()))
            print(f"{place.name}: {place.proxy.requests} requests; {faults}")
        differing = print_table(found)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
