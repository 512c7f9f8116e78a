"""`newsembed doctor`: what it says about extras and packaged models."""

import dataclasses
import importlib.metadata
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from newsembed.formats.huggingface.packaged import PACKAGED_MODELS
from newsembed.launch import cli, doctor
from newsembed.launch.extras import EXTRAS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("installed", [True, False])
def test_a_packaged_model_is_named_and_where_it_is_missing_the_command_that_installs_it(installed, monkeypatch, capsys):
    module = "json" if installed else "no_such_package"
    model = dataclasses.replace(PACKAGED_MODELS["minilm"], module=module)
    monkeypatch.setattr(doctor, "PACKAGED_MODELS", {"minilm": model})
    monkeypatch.setattr(doctor, "conflicts", lambda: iter(()))
    assert cli.main(["doctor"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ("a start for import-hf and lift: installed" in shown) is installed
    assert (f"not installed; to add it: {model.command}" in shown) is not installed


def test_the_extras_that_are_not_in_all_are_those_of_setup(monkeypatch, capsys):
    listed = re.search(r"^ALL = \[(.*)\]$", (ROOT / "setup.py").read_text(), re.MULTILINE)[1]
    in_all = set(re.findall(r"\w+", listed.lower())) | {"zst"}  # part of mine
    monkeypatch.setattr(doctor, "conflicts", lambda: iter(()))
    cli.main(["doctor"])
    named = re.search(r"newsembed\[all\] has all but (.*?)\.", " ".join(capsys.readouterr().out.split()))[1]
    assert set(re.findall(r"\w+", named)) - {"and"} == set(EXTRAS) - in_all


def test_versions_that_do_not_fit_are_named_and_the_exit_code_says_so(monkeypatch, capsys):
    def installed(name, version, *requires):
        return SimpleNamespace(name=name, version=version, requires=requires)

    found = [
        installed("one", "1", "Two_B>=3", "absent>=9", "two-b<5"),
        installed("two.b", "2"),
        installed("newsembed", "0", 'two-b>3; extra == "mine"', 'two-b>4; extra == "nothing"'),
    ]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: found)
    assert cli.main(["doctor"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("conflict")]
    assert lines == [
        'conflict: newsembed 0 needs two-b>3; extra == "mine", 2 is installed',
        "conflict: one 1 needs Two_B>=3, 2 is installed",
    ]
    found.pop()
    found[0].requires = ("two-b<5",)
    assert cli.main(["doctor"]) == 0
    assert "no version conflicts" in capsys.readouterr().out
