"""The tutorial over a small crawl: every record accounted for, a killed build ends with the same bytes, bad input.

Its commands are run as the page has them, with less to do.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.formats import files
from newsembed.launch import cli

OPTIONS = [
    "--vocabulary.size=700",
    "--pack.max_length=64",
    "--examples.max_length=48",
    "--topics.min_documents=3",
    "--direct_num_workers=1",
]
TRAINING = ["--gin.TRAIN_STEPS=2", "--gin.CHECKPOINT_PERIOD=2", "--gin.BATCH_SIZE=4", "--gin.WHITENING_ROWS=0"]
# What makes a command of the tutorial smaller; the last value of an option counts.
SMALLER = {
    "generate": ["--scale=0.05"],
    "crawl": ["--direct_num_workers=1"],
    "build": OPTIONS,
    "pretrain": TRAINING,
    "train": TRAINING,
    "evaluate": ["--seeds=1"],
    "export": ["--platforms=cpu"],
}
PAGE = Path(__file__).parents[2] / "docs/tutorial.md"


def tutorial(folder, port=8000):
    """The commands of the tutorial by step, in their order, below a folder and with a port of this machine."""
    commands = {}
    for step, block in re.findall(
        r"(?:<!-- step: ([^\n]*) -->\n)?```bash\n(newsembed .*?)\n```", PAGE.read_text(), re.DOTALL
    ):
        text = re.sub(
            r"\b(8123|8000)\b", str(port), block.replace("\\\n", " ").replace("demo-output", f"{folder}/demo-output")
        )
        name = step.strip('"').split()[0] if step else text.split()[1]
        commands[name] = [*shlex.split(text)[1:], *SMALLER.get(name, [])]
    return commands


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@contextlib.contextmanager
def started(command, url):
    """Runs a command of newsembed until Ctrl-C, and waits until it answers."""
    # A shell ignores SIGINT for its jobs in the background, and children inherit that, but not a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    run = subprocess.Popen([sys.executable, "-m", "newsembed", *command], stdout=subprocess.DEVNULL)
    signal.signal(signal.SIGINT, before)
    try:
        deadline = time.monotonic() + 600
        while True:
            assert run.poll() is None, "the server ended"
            assert time.monotonic() < deadline
            try:
                urllib.request.urlopen(url).close()
                break
            except urllib.error.HTTPError as error:  # the newsroom has no such page
                error.close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        yield
        run.send_signal(signal.SIGINT)
        assert run.wait(60) in (0, 130)
    finally:
        run.kill()
        run.wait()


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    commands = tutorial(folder, free_port())
    (address,) = (word.partition("=*.example=")[2] for word in commands["crawl"] if word.startswith("--resolve"))
    with started(commands["generate"], f"http://{address}/"):
        assert cli.main(commands["crawl"]) == 0
    return folder


def build_arguments(folder, output):
    command = tutorial(folder)["build"]
    return [*command, f"--output={output}"]


@pytest.fixture(scope="module")
def unbroken(crawl):
    assert cli.main(tutorial(crawl)["build"]) == 0
    return crawl / "demo-output/work"


def digests(folder):
    """Of every published file; timing.json holds how long the machine took."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.json" and path.parent != folder
    }


def test_every_job_accounts_for_every_record(unbroken):
    taken = {}
    for step in (step for step in STEPS if not step.only_with):
        counts = files.read_json(f"{unbroken}/{step.job}/manifest.json")["counts"]
        assert counts["in"] == counts["out"] + sum(counts["rejected"].values()) + sum(counts["failed"].values())
        assert counts["out"] > 0
        taken[step.job] = counts
    assert set(taken["extract"]["failed"]) == {"undecodable"}  # the newsroom's pages of binary junk
    assert (
        len({taken[job]["in"] for job in ("vocabulary", "entities", "vectors", "neighbors", "triplets", "topics")}) == 1
    )


@pytest.mark.long  # `make attack`
def test_killed_again_and_again_a_build_ends_with_the_same_bytes(crawl, unbroken):
    broken = crawl / "broken"
    for job in ("extract", "triplets"):
        run = subprocess.Popen(
            [sys.executable, "-m", "newsembed", *build_arguments(crawl, broken)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for_first_shard(broken / job, run)
        finally:
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
        assert not (broken / job / "manifest.json").exists()
    assert cli.main(build_arguments(crawl, broken)) == 0
    assert digests(broken) == digests(unbroken)


def wait_for_first_shard(folder, run):
    deadline = time.monotonic() + 900
    while not any(folder.glob(".work-*/_reports/*/*.json")):
        assert run.poll() is None, "the build ended before it reached the job"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_run_skips_every_job(crawl, unbroken, printed):
    before = digests(unbroken)
    assert "skipped now" in printed(*build_arguments(crawl, unbroken))
    assert digests(unbroken) == before


@pytest.mark.long  # `make attack`; tests/golden has most of these commands
def test_the_other_commands_of_the_tutorial_run_as_they_are_written(crawl, unbroken, printed):
    commands, output = tutorial(crawl, free_port()), crawl / "demo-output"
    assert list(commands) == [
        *("generate", "crawl", "build", "pretrain", "train", "evaluate", "export", "index", "search", "serve")
    ]
    for step in ("pretrain", "train", "evaluate", "export", "index"):
        assert cli.main(commands[step]) == 0, step
    results = json.loads((output / "evaluation/results.json").read_text())["results"]
    assert {result["encoder"] for result in results} == {"tfidf", "random", "pretrained", "trained"}
    hits = json.loads(printed(*commands["search"], "--json"))
    assert len(hits) == 5
    others = json.loads(printed("search", "--index", str(output / "index"), hits[0]["url"], "--days", "2", "--json"))
    assert hits[0]["url"] not in {hit["url"] for hit in others}
    shown = printed("rejected", str(unbroken / "clean"))
    for reason, count in files.read_json(f"{unbroken}/clean/manifest.json")["counts"]["rejected"].items():
        assert f"clean: {reason}, {count} rejected" in shown
    address = f"http://127.0.0.1:{commands['serve'][-1]}"
    search = f"{address}/search?q=flood+river+evacuation&count=5"
    with started(commands["serve"], f"{address}/healthz"), urllib.request.urlopen(search) as answer:
        found = json.load(answer)["hits"]
    assert [hit["url"] for hit in found] == [hit["url"] for hit in hits]
