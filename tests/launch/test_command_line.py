"""The command line: overview, every command's help with an example, options made from dataclasses, typos."""

import argparse
import dataclasses
import logging
import os
import subprocess
import sys
import types

import pytest
from json_lines import write_rows
from newsembed import __version__
from newsembed.beam_pipelines import jobs
from newsembed.errors import InputError
from newsembed.formats.command_line import option
from newsembed.formats.records import Rejection
from newsembed.launch import build, cli, evaluate
from newsembed.launch.parsing import parse


@dataclasses.dataclass(frozen=True)
class Options:
    count: int = option(3, "how many, 100 % of them")


JOB = jobs.Job(
    "toy",
    "newsembed toy --output out",
    (jobs.InputSpec("articles", "folder", required=False),),
    Options,
    lambda run: None,
)


def test_a_job_is_executed_with_what_its_command_line_says(monkeypatch, capsys, refused):
    calls = []

    def execute(job, inputs, output, options, beam_args, progress):
        calls.append((job, inputs, output, options, beam_args))
        counts = {"in": 1234, "out": 1230, "rejected": {"rare": 1, "usual": 2}, "failed": {"broken": 1}}
        return jobs.Outcome({"counts": counts}, skipped=True, seconds=2.0)

    monkeypatch.setattr(jobs, "execute", execute)
    monkeypatch.setitem(cli.COMMANDS, "toy", cli.Command("Mine", "does little", "toy"))
    monkeypatch.setattr(cli, "load", lambda _: types.SimpleNamespace(JOB=JOB))
    command = ["toy", "--articles", "a", "b", "--output", "out", "--count=4", "--direct_num_workers=1"]
    assert cli.main(command) == 0
    assert calls == [(JOB, {"articles": ("a", "b")}, "out", Options(4), ("--direct_num_workers=1",))]
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["toy", "1,234", "1,230", "usual", "2", "(2.0)", "617"] in shown
    assert [line for line in shown if line[:1] in (["rare"], ["failed:"])] == [
        ["rare", "1"],
        ["failed:", "broken", "1"],
    ]
    assert any("skipped now" in " ".join(line) for line in shown)
    assert "--cuont: no such option\n  remedy: did you mean --count?" in refused("toy", "--output", "out", "--cuont=4")


def test_exit_codes(monkeypatch, capsys):
    @dataclasses.dataclass(frozen=True)
    class Word:
        word: str = option("ok", "what happens", positional=True)

    answers = {"ok": 0, "missed": 1}

    def run(options):
        if options.word == "stop":
            raise KeyboardInterrupt
        if options.word == "broken":
            raise InputError("broken", remedy="fix it")
        if options.word == "large":
            raise MemoryError
        if options.word == "ours":
            raise RuntimeError("a mistake of ours")
        return answers[options.word]

    command = types.SimpleNamespace(OPTIONS=Word, run=run)
    monkeypatch.setattr(cli.importlib, "import_module", lambda *_: command)
    codes = {given: cli.main(["build", given]) for given in ("ok", "missed", "stop", "broken", "large")}
    assert codes == {"ok": 0, "missed": 1, "stop": 130, "broken": 2, "large": 2}
    message = capsys.readouterr().err
    assert "newsembed build: error: memory ran out: MemoryError: \n  remedy: run the same command again" in message
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        cli.main(["build", "ours"])
    assert "newsembed build: stopped; run the same command again to resume" in message
    assert cli.main(["index", "stop"]) == 130
    assert "newsembed index: stopped; the same command starts from the beginning" in capsys.readouterr().err
    assert set(cli._WHOLE) < cli.COMMANDS.keys()
    assert "newsembed build: error: broken\n  remedy: fix it" in message


def test_a_low_limit_of_memory_is_said_before_a_library_aborts(monkeypatch, capsys):
    for limit, notes in ((1 << 31, 1), (-1, 0), (1 << 40, 0)):
        monkeypatch.setattr(cli.resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert cli.main(["nosuch"]) == 2
        assert capsys.readouterr().err.count("note: ulimit -v allows 2.0 GB of memory") == notes


def test_the_version_and_the_overview(capsys):
    for flag in ("-V", "--version"):
        assert cli.main([flag]) == 0
    assert capsys.readouterr().out == f"newsembed {__version__}\n" * 2
    assert cli.main(["-h"]) == cli.main(["--help"]) == cli.main([]) == 0
    assert capsys.readouterr().out == f"{cli.overview()}\n" * 3
    first = [line.split() for line in cli.overview().splitlines() if line.startswith("  ")]
    assert [words[0] for words in first][:4] == ["explore", "update", "search", "serve"]
    assert len(first) == 12
    assert all(" ".join(words[1:]) == cli.COMMANDS[words[0]].summary for words in first)
    assert cli.main(["help"]) == cli.main(["help", "all"]) == 0
    assert capsys.readouterr().out == f"{cli.overview()}\n{cli.overview(is_all=True)}\n"
    with pytest.raises(SystemExit):
        cli.main(["help", "doctor"])
    assert "usage: newsembed doctor" in capsys.readouterr().out
    lines = cli.overview(is_all=True).splitlines()
    groups = [line for line in lines if line in {f"{command.group}:" for command in cli.COMMANDS.values()}]
    assert groups == ["Start here:", "Mine:", "Train:", "Use:"]
    mine = lines[lines.index("Mine:") + 1 : lines.index("Train:") - 1]
    listed = {name: command.summary for name, command in cli.COMMANDS.items() if command.group == "Mine"}
    assert [line.split(maxsplit=1) for line in mine] == [list(pair) for pair in listed.items()]
    # The summaries start in one column, also after the longest name.
    assert len({line.index(summary) for line, summary in zip(mine, listed.values(), strict=True)}) == 1


def test_errors_of_libraries_and_our_own_warnings_are_shown(monkeypatch, capsys):
    root = logging.getLogger("in place of the root")
    root.propagate = False
    monkeypatch.setattr(cli.logging, "getLogger", lambda *_: root)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    monkeypatch.delenv("LANCEDB_LOG", raising=False)
    cli.prepare_libraries()
    for name in ("library", "newsembed.launch"):
        for level, text in ((logging.WARNING, "warning"), (logging.ERROR, "error")):
            root.handle(logging.LogRecord(name, level, "file", 1, f"{text} of {name}", (), None))
    assert capsys.readouterr().err.splitlines() == [
        "error of library",
        "warning of newsembed.launch",
        "error of newsembed.launch",
    ]
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert os.environ["OPENBLAS_THREAD_TIMEOUT"] == "4"
    assert os.environ["LANCEDB_LOG"] == "error"


def test_evaluate_gives_the_benchmarks_every_encoder_with_the_length_and_the_prompt(monkeypatch):
    seen = []
    monkeypatch.setattr(evaluate.serving, "factories", lambda **options: seen.append(options) or "factories")
    monkeypatch.setattr(evaluate.command, "run", lambda args, factories: seen.append((args.name, factories)) or 3)
    args = argparse.Namespace(name="args", max_length=64, prompt="query: ", long_documents="windows")
    assert evaluate.run(args) == 3
    options = {"max_length": 64, "document_prompt": "query: ", "long_documents": "windows"}
    assert seen == [options, ("args", "factories")]


def test_the_build_hands_each_job_its_own_options_and_the_inputs(monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(build, "build", lambda *arguments: calls.append(arguments) or [])
    monkeypatch.setattr("newsembed.studies.report.write_report", lambda output, rows: calls.append((output, rows)))
    inputs = ["--warc", "a.gz", "b.gz", "--bitext", "x.tsv", "--output", "work"]
    options = ["--pack.max_length=64", "--examples.max_length=48", "--clean.min_words=7", "--direct_num_workers=1"]
    assert cli.main(["build", *inputs, *options]) == 0
    (given, output, made, beam_args, _), report = calls
    assert given == {**dict.fromkeys(build.USER_INPUTS, ()), "warc": ("a.gz", "b.gz"), "bitext": ("x.tsv",)}
    assert (output, beam_args, report) == ("work", ("--direct_num_workers=1",), ("work", []))
    assert "work/report.json" in capsys.readouterr().out
    changed = {"pack": {"max_length": 64}, "examples": {"max_length": 48}, "clean": {"min_words": 7}}
    for step in build.STEPS:
        kind = build.load_job(step.job).options
        assert made[step.job] == kind(**changed.get(step.job, {})), step.job


def test_a_build_without_input_says_so(refused):
    assert "--warc, --articles: no input" in refused("build", "--output", "nowhere")


def test_a_job_that_keeps_nothing_says_why_and_which_option_keeps_it(tmp_path, capsys, refused):
    places = ["river", "bridge", "market", "school", "harbour", "museum", "theatre", "station", "library", "forest"]
    sentences = [f"The council met on day {day} and spoke about the {place}." for day, place in enumerate(places)]
    sentences += [f"Most people of the town like the old {place}, says the mayor." for place in places]
    article = {"title": "The council meets again", "body": "\n".join(sentences), "byline_date": "2024-01-01"}
    rows = [{"url": f"https://a.example/{number}", **article} for number in range(3)]
    write_rows(tmp_path / "articles.jsonl", rows)
    extract = ["--articles", str(tmp_path / "articles.jsonl"), "--output"]
    work = str(tmp_path / "work")
    message = refused("build", *extract, work, "--clean.require_author=true", "--direct_num_workers=1")
    assert "work/clean: nothing is left: 3 of 3 no_author" in message
    assert "remedy: --clean.require_author=false keeps them" in message
    assert not (tmp_path / "work" / "vocabulary").exists()
    clean = ["--articles", f"{work}/extract", "--output", f"{work}/clean", "--direct_num_workers=1"]
    assert cli.main(["clean", *clean, "--require_author=true"]) == 0
    assert "note: " in (message := capsys.readouterr().err)
    assert "remedy: --require_author=false keeps them" in message
    assert cli.main(["clean", *clean, "--require_author=false", "--min_sentences=100"]) == 0
    assert "too_few_sentences" in (message := capsys.readouterr().err)
    assert "--min_sentences=0 keeps them" in message


def test_a_reader_that_closes_the_output_early_is_no_error():
    shell = f'"{sys.executable}" -m newsembed build --help | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("0", "141")  # 0 where all was written before
    assert not done.stderr


def test_every_switch_is_an_option_with_a_value_of_its_type():
    from newsembed.beam_pipelines.clean import JOB

    for reason, switch in JOB.switches.items():
        assert reason in Rejection.__members__.values()
        options = cli.options_of(cli.load("clean"))
        found = parse(cli.parser_of("clean"), options, ["--articles", "a", "--output", "o", f"--{switch}"])
        name = switch.partition("=")[0]
        assert getattr(found.job, name) != getattr(JOB.options(), name) or name in (
            "refuse_curly_braces",
            "require_author",
        )


def test_an_unknown_command_names_the_closest(refused):
    assert "did you mean clean?" in refused("clen")


# Modules of users


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "toy_extension.py").write_text("loaded = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("NEWSEMBED_IMPORT", raising=False)
    yield "toy_extension"
    sys.modules.pop("toy_extension", None)
    os.environ.pop("NEWSEMBED_IMPORT", None)


def test_options_before_the_command_name_modules():
    assert cli.split_imports(["embed", "--import", "x"]) == ([], ["embed", "--import", "x"])
    assert cli.split_imports(["--import=a", "--import", "b", "--version"]) == (["a", "b"], ["--version"])


def test_modules_of_the_environment_come_first_and_each_once(module, monkeypatch):
    cli.import_modules([])
    assert "NEWSEMBED_IMPORT" not in os.environ
    monkeypatch.setenv("NEWSEMBED_IMPORT", f"json,,{module}")
    cli.import_modules(["csv", module, "json"])
    assert sys.modules[module].loaded
    assert os.environ["NEWSEMBED_IMPORT"] == f"json,{module},csv"


def test_the_command_line_imports_and_names_what_it_cannot(module, refused):
    assert cli.main(["--import", module, "no_such_command"]) == 2
    assert module in sys.modules
    for name in ("no_such_module", ""):
        assert f"--import: cannot import {name}" in refused(f"--import={name}", "embed")
