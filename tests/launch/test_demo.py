"""The demo's steps: what counts as finished, that every command parses, and whose newsroom a folder holds.

`make demo` runs the whole pipeline.
"""

import argparse
import contextlib
import dataclasses
import json
import os

import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import write_manifest, write_seconds
from newsembed.launch import build, cli, demo
from newsembed.launch.demo import Places, Step, checks, job_rows, steps
from newsembed.training.gin_config import load_gin


def parse(command):
    """The values that a command line sets, as its own command parses them; an unknown option raises."""
    name, *rest = command
    if name == "train":
        parser = argparse.ArgumentParser()
        parser.add_argument("--gin_file", action="append")
        known, others = parser.parse_known_args(rest)
        load_gin(known.gin_file, [binding.removeprefix("--gin.") for binding in others])
        return {"gin_file": known.gin_file, "bindings": others}
    found = vars(cli.parsed(name, cli.load(name), rest))
    for group in [name for name in found if dataclasses.is_dataclass(found[name])]:
        found |= {f"{group}.{field}": value for field, value in vars(found[group]).items()}
    return found


@pytest.fixture
def commands(tmp_path):
    return {step.name: step.command for step in steps(Places(str(tmp_path)), 11, 0.25)}


def test_every_step_is_a_command_whose_arguments_parse(commands):
    parsed = {name: parse(command) for name, command in commands.items()}
    assert list(parsed) == [
        *("generate", "crawl", "build", "pretrain", "train", "evaluate", "export", "index"),
        *("search 1", "search 2", "search 3"),
    ]
    assert (parsed["generate"]["seed"], parsed["generate"]["scale"]) == (11, 0.25)


def test_each_step_reads_what_an_earlier_one_writes(commands, tmp_path):
    parsed = {name: parse(command) for name, command in commands.items()}
    assert parsed["crawl"]["seeds"] == (f"{parsed['generate']['output']}/seeds.txt",)
    assert parsed["build"]["warc"] == (f"{parsed['crawl']['output']}/warc/*.warc.gz",)
    work = parsed["build"]["output"]
    assert f'--gin.DATA_DIR="{work}/pack"' in parsed["pretrain"]["bindings"]
    assert f'--gin.DATA_DIR="{work}/examples"' in parsed["train"]["bindings"]
    (pretrained,) = (one for one in parsed["pretrain"]["bindings"] if "MODEL_DIR" in one)
    (trained,) = (one for one in parsed["train"]["bindings"] if "MODEL_DIR" in one)
    assert pretrained.replace("MODEL_DIR", "INITIAL_CHECKPOINT_PATH") in parsed["train"]["bindings"]
    assert trained == f'--gin.MODEL_DIR="{parsed["export"]["model"]}"'
    assert parsed["index"]["model"] == parsed["export"]["model"]
    assert parsed["search 3"]["index"] == parsed["index"]["output"]
    models = [f"{name}={kind}" for name, kind in (("random", "random:"), ("trained", "model:"))]
    assert {"tfidf=tfidf", f"pretrained=model:{work}/pretrained", *(f"{one}{work}/trained" for one in models)} == set(
        parsed["evaluate"]["encoder"]
    )


def test_a_step_is_finished_while_its_result_is_newer_than_its_source(tmp_path):
    result, source = tmp_path / "result", tmp_path / "source"
    step = Step("x", [], str(result), str(source))
    source.touch()
    assert not step.is_finished()
    result.touch()
    os.utime(source, (100, 100))
    assert step.is_finished()
    os.utime(result, (50, 50))
    assert not step.is_finished()
    assert Step("any age", [], str(result)).is_finished()
    assert not Step("skips by itself", []).is_finished()


def test_a_step_runs_its_command_with_what_is_around_it_unless_it_is_finished(monkeypatch, tmp_path, capsys):
    (tmp_path / "done").touch()
    assert demo.run_step(Step("x", ["no such command"], str(tmp_path / "done"))) is None
    assert "x: already finished, skipped" in capsys.readouterr().out
    seen = []

    @contextlib.contextmanager
    def server():
        seen.append("up")
        yield ["--port=1"]
        seen.append("down")

    monkeypatch.setattr(cli, "main", lambda command: seen.append(command) or 0)
    demo.run_step(Step("x", ["crawl"], around=server))
    assert seen == ["up", ["crawl", "--port=1"], "down"]


def test_a_failing_step_ends_the_demo_and_is_named(monkeypatch):
    monkeypatch.setattr(cli, "main", lambda _command: 2)
    with pytest.raises(InputError, match="the step ended with exit code 2") as caught:
        demo.run_step(Step("pretrain", ["train"]))
    assert caught.value.field == "pretrain"


@pytest.mark.parametrize("code", [130, 143])
def test_a_step_that_was_stopped_ends_the_demo_with_its_code(monkeypatch, tmp_path, capsys, code):
    with monkeypatch.context() as patch:
        patch.setattr(demo, "steps", lambda *_: [Step("train", ["train"]), Step("evaluate", ["evaluate"])])
        ran, main = [], cli.main
        patch.setattr(cli, "main", lambda command: ran.append(command) or code)
        assert main(["demo", "--output", str(tmp_path)]) == code
    assert ran == [["train"]]
    assert "newsembed demo: stopped; run the same command again to resume" in capsys.readouterr().err


def test_a_folder_of_another_newsroom_is_refused(tmp_path, refused):
    (tmp_path / "demo.json").write_text('{"scale": 1.0, "seconds": {}, "seed": 7}', encoding="utf-8")
    message = refused("demo", "--output", str(tmp_path), "--seed", "8")
    assert "'seed': 7" in message
    assert "'seed': 8" in message
    assert "--output" in message


@pytest.fixture
def two_steps(monkeypatch, tmp_path):
    """A demo of two steps: its arguments, seconds and checks, and what its report and its steps get."""
    reports, seen, seconds = [], [], {"generate": 2.0, "crawl": None}
    made = [Step(name, []) for name in seconds]
    monkeypatch.setattr(demo, "steps", lambda *arguments: seen.append(arguments) or made)
    monkeypatch.setattr(demo, "run_step", lambda step: seconds[step.name])
    monkeypatch.setattr(demo, "job_rows", lambda _places: ["row"])
    monkeypatch.setattr(demo, "write_report", lambda *arguments: reports.append(arguments))
    met = [{"name": "a line", "measured": 0.91, "expected": ">= 0.9", "met": True}]
    monkeypatch.setattr(checks, "score", lambda _places: {"checks": met})
    return demo.OPTIONS(output=f"{tmp_path}/", seed=11, scale=0.5), seconds, met, reports, seen


def test_the_demo_keeps_the_longest_seconds_of_each_step_over_its_runs(two_steps, tmp_path, capsys):
    arguments, seconds, _, reports, seen = two_steps

    def written():
        return json.loads((tmp_path / "demo.json").read_text())

    assert demo.run(arguments) == 0
    assert written() == {"seed": 11, "scale": 0.5, "seconds": {"generate": 2.0}}
    seconds |= {"generate": 1.0, "crawl": 4.04}
    assert demo.run(arguments) == 0
    assert written()["seconds"] == {"generate": 2.0, "crawl": 4.04}
    places = Places(str(tmp_path))
    assert seen == [(places, 11, 0.5)] * 2
    work, rows, sections = reports[-1]
    assert (work, rows) == (places.work, ["row"])
    assert sections["seconds"] == {"generate": 2.0, "crawl": 4.04, "in all": 6.0}
    shown = capsys.readouterr().out
    assert f"{places.work}/report.html" in shown
    assert f"newsembed serve --model {places.trained} --index {places.index}" in shown
    assert shown[shown.index("a line") :].split()[:9] == ["a", "line", "│", "0.91", "│", ">=", "0.9", "│", "met"]


def test_a_missed_check_is_shown_and_ends_the_demo_with_1(two_steps, tmp_path, capsys):
    arguments, _, checks, _, _ = two_steps
    checks[0]["met"] = False
    assert demo.run(arguments) == 1
    shown = capsys.readouterr().out
    assert "MISSED" in shown
    assert "The checks are made for --scale 1: with 0.5 there is less to learn from" in shown
    (tmp_path / "demo.json").unlink()
    assert demo.run(dataclasses.replace(arguments, scale=1.0)) == 1
    assert "The checks are made for" not in capsys.readouterr().out


def test_the_rows_of_the_report_are_those_of_the_crawl_and_of_every_job(tmp_path):
    places = Places(str(tmp_path))
    for number, folder in enumerate(
        [places.crawl, *(f"{places.work}/{step.job}" for step in build.STEPS if not step.only_with)]
    ):
        write_manifest(folder, {"counts": {"in": 10 * number, "out": number}})
        if number:
            write_seconds(folder, 4.0)
    rows = job_rows(places)
    assert [row["job"] for row in rows] == ["crawl", *(step.job for step in build.STEPS if not step.only_with)]
    assert rows[0] | {"job": ""} == {
        "job": "", "in": 0, "out": 0, "seconds": 0.0, "documents_per_second": None, "skipped": False
    }  # fmt: skip
    assert (rows[3]["in"], rows[3]["out"], rows[3]["seconds"], rows[3]["documents_per_second"]) == (30, 3, 4.0, 7.5)
