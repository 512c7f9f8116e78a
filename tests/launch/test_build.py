"""The build over a small crawl: every record accounted for, killed and continued to the same bytes, and bad input."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.formats import files
from newsembed.launch import cli
from newsembed.newsroom.generate import generate_newsroom
from newsembed.newsroom.options import NewsroomOptions
from newsembed.newsroom.server import NewsroomServer

OPTIONS = [
    "--vocabulary.size=700",
    "--pack.max_length=64",
    "--examples.max_length=48",
    "--topics.min_documents=3",
    "--direct_num_workers=1",
]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    generate_newsroom(str(folder / "newsroom"), NewsroomOptions(scale=0.05))
    with NewsroomServer(str(folder / "newsroom")) as server:
        command = [
            "crawl",
            "--seeds",
            str(folder / "newsroom/seeds.txt"),
            "--output",
            str(folder / "crawl"),
            "--delay_seconds=0",
            "--backoff_seconds=0",
        ]
        private = [
            "--allow_private_addresses=true",
            f"--resolve=*.example=127.0.0.1:{server.port}",
            "--direct_num_workers=1",
        ]
        assert cli.main([*command, *private]) == 0
    return folder


def build_arguments(folder, output):
    inputs = ["--warc", f"{folder}/crawl/warc/*.warc.gz", "--bitext", f"{folder}/newsroom/bitext.tsv"]
    return ["build", *inputs, "--output", str(output), *OPTIONS]


@pytest.fixture(scope="module")
def unbroken(crawl):
    assert cli.main(build_arguments(crawl, crawl / "unbroken")) == 0
    return crawl / "unbroken"


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


def test_killed_again_and_again_a_build_ends_with_the_same_bytes(crawl, unbroken):
    broken = crawl / "broken"
    for job in ("extract", "entities", "triplets", "examples"):
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


def wait_for_first_shard(folder: Path, run: subprocess.Popen) -> None:
    deadline = time.monotonic() + 900
    while not any(folder.glob(".work-*/_reports/*/*.json")):
        assert run.poll() is None, "the build ended before it reached the job"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_run_skips_every_job(crawl, unbroken, capsys):
    before = digests(unbroken)
    assert cli.main(build_arguments(crawl, unbroken)) == 0
    assert "skipped now" in capsys.readouterr().out
    assert digests(unbroken) == before


def test_articles_that_all_fail_the_rules_are_an_error_that_says_so(tmp_path, capsys):
    (tmp_path / "short.jsonl").write_text(
        '{"url": "http://a.example/1", "title": "T", "body": "Too short."}\nno json\n', encoding="utf-8"
    )
    assert (
        cli.main(["build", "--articles", str(tmp_path / "short.jsonl"), "--output", str(tmp_path / "work"), *OPTIONS])
        == 2
    )
    message = capsys.readouterr().err
    assert "vocabulary" in message or "article" in message
    assert "remedy" in message
    counts = files.read_json(f"{tmp_path}/work/extract/manifest.json")["counts"]
    assert (counts["in"], counts["out"], sum(counts["failed"].values())) == (2, 1, 1)
