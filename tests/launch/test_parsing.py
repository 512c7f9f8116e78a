"""Options on command lines, words of files, and errors of both."""

import dataclasses
import datetime
import enum

import pytest
from newsembed.errors import InputError
from newsembed.formats.command_line import Options, option, required
from newsembed.launch import cli
from newsembed.launch.parsing import Parser, add_options, beam_arguments, check_beam_args, from_files, nearest, parse


class Shade(enum.StrEnum):
    LIGHT = "light"
    DARK = "dark"


@dataclasses.dataclass(frozen=True)
class Group(Options):
    number: int = option(3, "a number, at most 100 %")
    share: float = option(0.5, "a share", le=1)
    is_on: bool = option(True, "on")
    name: str = option("", "a name")
    shade: Shade = option(Shade.LIGHT, "shade")
    weights: tuple[float, ...] = option((1.0, 2.0), "weights")
    day: datetime.date | None = option(None, "day")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command(Options):
    warc: tuple[str, ...] = option((), "files", many=True, metavar="PATH")
    output: str = required("folder", metavar="DIR")
    kind: str = option("a", "kind", choices=("a", "b"))
    kinds: tuple[str, ...] = option((), "kinds", repeated=True, choices=("a", "b"))
    toy: Group = dataclasses.field(default_factory=Group)
    beam_args: tuple[str, ...] = beam_arguments()


def parser_of(options, name="newsembed toy"):
    parser = Parser(name)
    add_options(parser, options)
    return parser


def parsed(*arguments):
    return parse(parser_of(Command), Command, arguments)


def test_options_of_every_type_and_their_help():
    assert parsed("--output=x") == Command(output="x")
    given = ["--toy.number=5", "--toy.share=1e-3", "--toy.is_on=NO", "--toy.shade=dark", "--toy.weights=1,,0.5"]
    group = Group(5, 0.001, is_on=False, shade=Shade.DARK, weights=(1.0, 0.5), day=datetime.date(2020, 2, 29))
    assert parsed("--output=x", "--warc", "a", "b", *given, "--toy.day=2020-02-29") == Command(
        output="x", warc=("a", "b"), toy=group
    )
    assert parsed("--output=x", "--toy.is_on").toy.is_on
    for name in ("kind", "kinds"):
        with pytest.raises(InputError, match=f"--{name}: got c, expected one of a, b"):
            parsed("--output=x", f"--{name}=c")
    shown = " ".join(parser_of(Command).format_help().split())
    assert shown.startswith("usage: newsembed toy --output [options]")
    for text in (
        "--warc PATH [PATH ...] files --output DIR folder --kind {a,b} kind (default: a)",
        "toy options: --toy.number N a number, at most 100 % (default: 3)",
        "--toy.share X a share (default: 0.5)",
        "--toy.is_on [true|false] on (default: true)",
        "--toy.name TEXT a name --toy.shade {light,dark} shade (default: light)",
        "--toy.weights X,… weights (default: 1.0,2.0) --toy.day YYYY-MM-DD day",
    ):
        assert text in shown


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words(Options):
    first: str = required("the first", positional=True)
    more: tuple[str, ...] = option((), "more", positional=True, many=True)
    name: tuple[str, ...] = option(("n",), "names", many=True)
    fast: bool = option(False, "fast")
    source: str = option("", "from", name="from")


def test_positional_options_come_without_their_names():
    def words(*arguments):
        return parse(parser_of(Words), Words, arguments)

    assert words("--fast", "a", "b", "c") == Words(first="a", more=("b", "c"), fast=True)
    assert words("a", "--", "--b") == Words(first="a", more=("--b",))
    assert words("a", "--name", "x", "y", "--name", "z") == Words(first="a", name=("x", "y", "z"))
    with pytest.raises(SystemExit):
        words()


def test_an_option_of_a_step_is_named_with_the_step():
    with pytest.raises(InputError, match=r"^--toy\.share: got 2\.0, expected"):
        parsed("--output=x", "--toy.share=2")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("share=x", "invalid float value: 'x'"),
        ("number=1.5", "invalid int value: '1.5'"),
        ("shade=grey", "got 'grey', expected {light,dark}"),
        ("day=2020-02-30", "got '2020-02-30', expected YYYY-MM-DD"),
        ("is_on=maybe", "got 'maybe', expected true|false"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_with_what_is_right(wrong, expected, capsys):
    with pytest.raises(SystemExit):
        parsed("--output=x", f"--toy.{wrong}")
    assert f"error: argument --toy.{wrong.partition('=')[0]}: {expected}\n" in capsys.readouterr().err


def test_the_words_of_a_file_stand_in_its_place_as_a_shell_reads_them(tmp_path):
    file, bad = tmp_path / "toy.txt", tmp_path / "bad.txt"
    file.write_text("--output file  # where\n--warc 'a b'\n  c\n\n# --toy.number=3\n")
    assert from_files(["--x", f"@{file}", "y@z"]) == ["--x", "--output", "file", "--warc", "a b", "c", "y@z"]
    bad.write_text("--output 'x")
    for path, problem in ((bad, "No closing quotation"), (tmp_path / "none.txt", "No such file")):
        with pytest.raises(InputError, match=f"{path.name}: cannot be read: {problem}"):
            from_files([f"@{path}"])


def test_options_of_beam_are_checked_before_it_drops_them(capsys):
    own = Parser("newsembed clean")
    good = ["--runner=DataflowRunner", "--region=europe-west4", "--num_workers=2"]
    check_beam_args(good, own)
    assert parsed("--output=x", *good).beam_args == tuple(good)
    with pytest.raises(InputError, match="--runer: no such option\n.*did you mean --runner"):
        check_beam_args(["--runer=DataflowRunner"], own)
    with pytest.raises(InputError, match="--dry_run: no such option"):  # of a test of Beam: a job would run
        check_beam_args(["--dry_run=true"], own)
    with pytest.raises(SystemExit, match="2"):
        check_beam_args(["--num_workers=many"], own)
    assert "newsembed clean: error: argument --num_workers: invalid int value: 'many'\n" in capsys.readouterr().err


def test_the_dashes_of_an_option_are_no_likeness():
    known = ["--tags", "--index", "--clean.min_words", "--"]
    assert nearest("--data", known) == []
    assert nearest("--indx", known) == ["--index"]
    assert nearest("--prot", ["--prompt", "--port"]) == ["--port"]
    assert nearest("--clean.min_word", known) == ["--clean.min_words"]


def test_errors_of_arguments_are_two_lines_and_name_the_nearest_option(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "21")
    for command, typo, meant in (
        (["clean", "--articles", "a", "--output", "o", "--min_word", "3"], "--min_word", "--min_words"),
        (["build", "--articles", "a", "--output", "o", "--min_words=3"], "--min_words", "--clean.min_words"),
        (["verify", "--fodler", "x"], "--fodler", ""),
    ):
        try:
            assert cli.main(command) == 2
        except SystemExit as stop:
            assert stop.code == 2  # noqa: PT017
        message = capsys.readouterr().err
        assert not meant or f"did you mean {meant}?" in message
        assert typo in message
        assert len(message.splitlines()) == 2
    with pytest.raises(SystemExit):
        cli.main(["clean", "--articles", "a"])
    missing = "newsembed clean: error: the following arguments are required: --output\n"
    assert capsys.readouterr().err == f"{missing}  remedy: see `newsembed clean --help`\n"
