"""The command line: overview, every command's help with an example, options made from dataclasses, typos."""

import argparse
import contextlib
import dataclasses
import datetime
import enum
import json
import logging
import os
import subprocess
import sys

import pytest
from newsembed import __version__
from newsembed.beam_pipelines import jobs, progress
from newsembed.errors import InputError
from newsembed.formats.command_line import option
from newsembed.formats.records import Rejection
from newsembed.launch import build, cli, evaluate, job_command
from newsembed.launch.parsing import nearest


@dataclasses.dataclass(frozen=True)
class Options:
    count: int = option(3, "how many, 100 % of them")
    keep: bool = option(True, "keep")
    names: tuple[str, ...] = option(("a", "b"), "names")
    day: datetime.date | None = option(None, "day")


JOB = jobs.Job(
    "toy",
    "does little",
    "newsembed toy --output out",
    (jobs.InputSpec("articles", "folder", required=False),),
    Options,
    lambda run: None,
)


def parse(*arguments):
    return job_command.options_from(
        Options, vars(job_command.make_parser(JOB).parse_args(["--output", "x", *arguments]))
    )


def test_options_become_arguments():
    assert parse() == Options()
    parsed = parse("--count=5", "--keep=false", "--names=x,y,z", "--day=2020-02-29")
    assert parsed == Options(5, keep=False, names=("x", "y", "z"), day=datetime.date(2020, 2, 29))
    with pytest.raises(SystemExit):
        parse("--keep=perhaps")


class Shade(enum.Enum):
    LIGHT = "light"
    DARK = "dark"


@dataclasses.dataclass(frozen=True)
class MoreOptions:
    shade: Shade = option(Shade.LIGHT, "shade")
    share: float = option(0.5, "share")
    limit: int | None = option(None, "limit")
    weights: tuple[float, ...] = option((1.0, 2.0), "weights")
    label: str = dataclasses.field(default_factory=lambda: "made", metadata={"help": "label"})


def test_options_of_every_type_and_their_help():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    job_command.add_options(parser, MoreOptions, "toy.")
    job_command.add_options(parser, Options)

    def made(*arguments):
        return job_command.options_from(MoreOptions, vars(parser.parse_args(list(arguments))), "toy.")

    assert made() == MoreOptions()
    arguments = ["--toy.shade=dark", "--toy.share=1e-3", "--toy.limit=3", "--toy.weights=1,,0.5", "--toy.label=a,b"]
    assert made(*arguments) == MoreOptions(Shade.DARK, 0.001, 3, (1.0, 0.5), "a,b")
    for value, expected in {"TRUE": True, "1": True, "yes": True, "False": False, "0": False, "no": False}.items():
        assert parser.parse_args([f"--keep={value}"]).keep is expected
    for wrong in ("--toy.share=x", "--toy.limit=1.5", "--toy.shade=grey", "--day=2020-02-30", "--toy.lab=a"):
        with pytest.raises(SystemExit):
            parser.parse_args([wrong])
    shown = " ".join(parser.format_help().split())
    for text in (
        "--toy.shade {light,dark} shade (default: light)",
        "--toy.share X share (default: 0.5)",
        "--toy.limit N limit --toy.weights",
        "--toy.weights X,… weights (default: 1.0,2.0)",
        "--toy.label TEXT label (default: made)",
        "--count N how many, 100 % of them (default: 3)",
        "--keep true|false keep (default: true)",
        "--names TEXT,… names (default: a,b)",
    ):
        assert text in shown
    assert shown.endswith("--day YYYY-MM-DD day")  # no default


def test_a_job_is_executed_with_what_its_command_line_says(monkeypatch, capsys):
    calls = []

    def execute(job, inputs, output, options, beam_args, progress, announce):
        announce("toy: input: 2 files, 0.1 MB")
        calls.append((job, inputs, output, options, beam_args))
        counts = {"in": 1234, "out": 1230, "rejected": {"rare": 1, "usual": 2}, "failed": {"broken": 1}}
        return jobs.Outcome({"counts": counts}, skipped=True, seconds=2.0)

    monkeypatch.setattr(job_command, "execute", execute)
    command = ["--articles", "a", "b", "--output", "out", "--count=4", "--direct_num_workers=1"]
    assert job_command.run(JOB, command) == 0
    assert calls == [(JOB, {"articles": ("a", "b")}, "out", Options(4), ["--direct_num_workers=1"])]
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["toy", "1,234", "1,230", "usual", "2", "(2.0)", "617"] in shown
    assert [line for line in shown if line[:1] in (["rare"], ["failed:"])] == [
        ["rare", "1"],
        ["failed:", "broken", "1"],
    ]
    assert any("skipped now" in " ".join(line) for line in shown)
    with pytest.raises(InputError, match="--cuont: no such option"):
        job_command.run(JOB, ["--output", "out", "--cuont=4"])


def test_exit_codes(monkeypatch, capsys):
    class Command:
        """A module that parses its arguments itself."""

    answers = {"ok": 0, "missed": 1}

    def main(arguments):
        if arguments == ["stop"]:
            raise KeyboardInterrupt
        if arguments == ["broken"]:
            raise InputError("broken", remedy="fix it")
        return answers[arguments[0]]

    command = Command()
    command.main = main
    monkeypatch.setattr(cli.importlib, "import_module", lambda *_: command)
    codes = {given: cli.main(["build", given]) for given in ("ok", "missed", "stop", "broken")}
    assert codes == {"ok": 0, "missed": 1, "stop": 130, "broken": 2}
    message = capsys.readouterr().err
    assert "newsembed build: stopped; run the same command again to resume" in message
    assert cli.main(["index", "stop"]) == 130
    assert "newsembed index: stopped; the same command starts from the beginning" in capsys.readouterr().err
    assert set(cli._WHOLE) < cli.COMMANDS.keys()
    assert "newsembed build: error: broken\n  remedy: fix it" in message


def test_only_a_training_of_its_own_process_starts_again_with_large_pages(monkeypatch):
    calls = []
    monkeypatch.setattr(cli, "restart_with_large_pages", lambda: calls.append("restart"))
    monkeypatch.setattr(cli, "_run_reported", lambda name, rest, modules: calls.append((name, rest)) or 0)
    monkeypatch.setattr(sys, "argv", ["newsembed", "--verbose", "train", "--gin_file=a.gin"])
    monkeypatch.setenv(cli.VERBOSE, "")  # restored after the test
    assert cli.main() == 0
    assert cli.main(["train", "--gin_file=a.gin"]) == 0, "called by another program, which may not be replaced"
    monkeypatch.setattr(sys, "argv", ["newsembed", "search", "train"])
    assert cli.main() == 0
    training = ("train", ["--gin_file=a.gin"])
    assert calls == ["restart", training, training, ("search", ["train"])]


def test_the_version_and_the_overview(capsys):
    for flag in ("-V", "--version"):
        assert cli.main([flag]) == 0
    assert capsys.readouterr().out == f"newsembed {__version__}\n" * 2
    assert cli.main(["-h"]) == cli.main(["--help"]) == cli.main([]) == 0
    assert capsys.readouterr().out == f"{cli.overview()}\n" * 3
    lines = cli.overview().splitlines()
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
    cli.quiet_libraries()
    for name in ("library", "newsembed.launch"):
        for level, text in ((logging.WARNING, "warning"), (logging.ERROR, "error")):
            root.handle(logging.LogRecord(name, level, "file", 1, f"{text} of {name}", (), None))
    assert capsys.readouterr().err.splitlines() == [
        "error of library",
        "warning of newsembed.launch",
        "error of newsembed.launch",
    ]
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"


def test_overview_is_instant_and_names_every_command():
    code = (
        "import sys; from newsembed.launch import cli; cli.main([]); "
        "heavy = {'jax', 'tensorflow', 'apache_beam', 'sklearn'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name, command in cli.COMMANDS.items():
        assert f"  {name}" in done.stdout
        assert command.summary in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_an_example(name, capsys):
    try:
        code = cli.main([name, "--help"])
    except SystemExit as stop:
        code = stop.code
    shown = capsys.readouterr().out
    assert code == 0
    assert f"newsembed {name}" in shown
    assert "example" in shown.lower()
    assert "``" not in shown


@pytest.mark.parametrize("name", ["embed", "build", "pack", "evaluate"])
def test_the_usage_names_the_command_as_it_is_typed(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    assert f"usage: newsembed {name} " in capsys.readouterr().out


def test_evaluate_gives_the_benchmarks_every_encoder_with_the_length_and_the_prompt(monkeypatch):
    seen = []
    monkeypatch.setattr(evaluate.serving, "factories", lambda **options: seen.append(options) or "factories")
    monkeypatch.setattr(evaluate.command, "run", lambda args, factories: seen.append((args.name, factories)) or 3)
    args = argparse.Namespace(name="args", max_length=64, prompt="query: ", long_documents="windows")
    assert evaluate.run(args) == 3
    options = {"max_length": 64, "document_prompt": "query: ", "long_documents": "windows"}
    assert seen == [options, ("args", "factories")]


def test_unknown_commands_and_options_name_the_closest(capsys):
    assert cli.main(["clen"]) == 2
    assert "did you mean `clean`?" in capsys.readouterr().err
    with pytest.raises(InputError, match="--runer: no such option\n.*did you mean --runner"):
        job_command.check_beam_args(["--runer=DataflowRunner"])
    with pytest.raises(InputError, match="--dry_run: only the command of a single job has it"):
        job_command.check_beam_args(["--dry_run", "plan"])
    with pytest.raises(SystemExit, match="2"):
        job_command.check_beam_args(["--num_workers=many"])
    assert capsys.readouterr().err.startswith("newsembed: error: argument --num_workers: invalid int value: 'many'\n")
    job_command.check_beam_args(["--runner=DataflowRunner", "--region=europe-west4", "--setup_file=./setup.py"])


def test_the_dashes_of_an_option_are_no_likeness():
    known = ["--tags", "--index", "--clean.min_words", "--"]
    assert nearest("--data", known) == []
    assert nearest("--indx", known) == ["--index"]
    assert nearest("--clean.min_word", known) == ["--clean.min_words"]
    assert nearest("clen", ["clean"]) == ["clean"]


def test_the_build_gives_every_job_the_inputs_it_declares():
    done = set()
    for step in build.STEPS:
        job = build.load_job(step.job)
        assert job.name == step.job
        assert {spec.name for spec in job.inputs if spec.required} <= set(step.inputs)
        assert set(step.inputs) <= {spec.name for spec in job.inputs}
        for source in step.sources():
            assert source.removeprefix("@") in build.USER_INPUTS if source.startswith("@") else source in done
        done.add(step.job)


def test_the_build_hands_each_job_its_own_options_and_the_inputs(monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(build, "build", lambda *arguments: calls.append(arguments) or [])
    monkeypatch.setattr("newsembed.studies.report.write_report", lambda output, rows: calls.append((output, rows)))
    inputs = ["--warc", "a.gz", "b.gz", "--bitext", "x.tsv", "--output", "work"]
    options = ["--pack.max_length=64", "--examples.max_length=48", "--clean.min_words=7", "--direct_num_workers=1"]
    assert cli.main(["build", *inputs, *options]) == 0
    (given, output, made, beam_args, _), report = calls
    assert given == {**dict.fromkeys(build.USER_INPUTS, ()), "warc": ("a.gz", "b.gz"), "bitext": ("x.tsv",)}
    assert (output, beam_args, report) == ("work", ["--direct_num_workers=1"], ("work", []))
    assert "work/report.json" in capsys.readouterr().out
    changed = {"pack": {"max_length": 64}, "examples": {"max_length": 48}, "clean": {"min_words": 7}}
    for step in build.STEPS:
        kind = build.load_job(step.job).options
        assert made[step.job] == kind(**changed.get(step.job, {})), step.job


@pytest.mark.parametrize("given", ["--warc", "--articles"])
def test_a_build_needs_one_kind_of_input(monkeypatch, given):
    monkeypatch.setattr(build, "build", lambda given, *_: seen.append(given) or [])
    monkeypatch.setattr("newsembed.studies.report.write_report", lambda *_: None)
    seen = []
    assert build.main([given, "x", "--output", "work"]) == 0
    assert seen[0][given[2:]] == ("x",)


def test_a_build_without_input_says_so(capsys):
    assert cli.main(["build", "--output", "nowhere"]) == 2
    assert "--warc, --articles: no input" in capsys.readouterr().err


def test_alarms_of_publishers_are_printed_below_the_table(capsys):
    dropped = {
        "kind": "dropped",
        "publisher": "a.example",
        "before": 0.9,
        "judged_before": 1200,
        "now": 0.25,
        "judged_now": 40,
        "reason": "no_author",
    }
    lost = {"kind": "lost", "publisher": "b.example", "before": 1.0, "judged_before": 7}
    counts = {"in": 5, "out": 5, "rejected": {}, "failed": {}}
    manifest = {"counts": counts, "yield_alarms": [dropped, lost]}
    row = progress.job_row("clean", jobs.Outcome(manifest, skipped=False, seconds=0.0))
    assert (row["yield_alarms"], row["documents_per_second"]) == (manifest["yield_alarms"], None)
    progress.print_rows([row, progress.job_row("pack", jobs.Outcome({"counts": counts}, skipped=False, seconds=0.04))])
    shown = capsys.readouterr().out
    assert "a.example: yield dropped: kept 90% of 1,200 articles before, 25% of 40 now; what grew most: no_a" in shown
    assert "b.example: no articles now; kept 100% of 7 articles before" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["clean", "5", "5", "-", "0.0", "-"] in lines
    assert ["pack", "5", "5", "-", "0.0", "125"] in lines
    assert "skipped" not in shown


def test_errors_of_arguments_are_short_and_name_the_nearest_option(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "21")
    for command, typo, meant in (
        (["search", "words", "--indx", "i"], "--indx", "--index"),
        (["clean", "--articles", "a", "--output", "o", "--min_word", "3"], "--min_word", "--min_words"),
        (["build", "--articles", "a", "--output", "o", "--min_words=3"], "--min_words", "--clean.min_words"),
        (["evaluate", "--suite", "event"], "event", "events"),
        (["embed", "--modle=m", "--input", "a", "--output", "o"], "--modle", "--model"),
    ):
        with contextlib.suppress(SystemExit):
            assert cli.main(command) == 2
        message = capsys.readouterr().err
        assert f"did you mean {meant}?" in message
        assert typo in message
        assert len(message.splitlines()) == 2
    with pytest.raises(SystemExit) as ended:
        cli.main(["search", "words"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "newsembed search: error: the following arguments are required: --index\n"
        "  remedy: see `newsembed search --help`\n"
    )


def test_a_job_that_keeps_nothing_says_why_and_which_option_keeps_it(tmp_path, capsys):
    places = ["river", "bridge", "market", "school", "harbour", "museum", "theatre", "station", "library", "forest"]
    sentences = [f"The council met on day {day} and spoke about the {place}." for day, place in enumerate(places)]
    sentences += [f"Most people of the town like the old {place}, says the mayor." for place in places]
    article = {"title": "The council meets again", "body": "\n".join(sentences), "byline_date": "2024-01-01"}
    rows = [{"url": f"https://a.example/{number}", **article} for number in range(3)]
    (tmp_path / "articles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    extract = ["--articles", str(tmp_path / "articles.jsonl"), "--output"]
    work = str(tmp_path / "work")
    assert cli.main(["build", *extract, work, "--direct_num_workers=1"]) == 2
    message = capsys.readouterr().err
    assert "work/clean: nothing is left: 3 of 3 rejected as no_author" in message
    assert "remedy: --clean.require_author=false keeps them" in message
    assert not (tmp_path / "work" / "vocabulary").exists()
    clean = ["--articles", f"{work}/extract", "--output", f"{work}/clean", "--direct_num_workers=1"]
    assert cli.main(["clean", *clean]) == 0
    assert "note: " in (message := capsys.readouterr().err)
    assert "remedy: --require_author=false keeps them" in message
    assert cli.main(["clean", *clean, "--require_author=false", "--min_sentences=100"]) == 0
    assert "too_few_sentences" in (message := capsys.readouterr().err)
    assert "--min_sentences=0 keeps them" in message


def test_a_build_of_an_empty_file_ends_after_the_first_job(tmp_path, capsys):
    (tmp_path / "articles.jsonl").touch()
    given = ["--articles", f"{tmp_path}/articles.jsonl", "--output", f"{tmp_path}/work", "--direct_num_workers=1"]
    assert cli.main(["build", *given]) == 2
    assert "work/extract: there was nothing to read: the inputs are empty" in capsys.readouterr().err
    assert not (tmp_path / "work" / "clean").exists()


@pytest.mark.parametrize("command", [["--help"], ["completion", "bash"]])
def test_a_reader_that_closes_the_output_early_is_no_error(command):
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m newsembed {" ".join(command)} | true; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() in ("0", "141")  # 0 where all was written before
    assert not done.stderr


def test_every_switch_is_an_option_with_a_value_of_its_type():
    from newsembed.beam_pipelines.clean import JOB

    parser = job_command.make_parser(JOB)
    for reason, switch in JOB.switches.items():
        assert reason in Rejection.__members__.values()
        args = parser.parse_args(["--articles", "a", "--output", "o", f"--{switch}"])
        name = switch.partition("=")[0]
        assert getattr(args, name) != JOB.options.__dataclass_fields__[name].default or name == "refuse_curly_braces"
        job_command.options_from(JOB.options, vars(args))
