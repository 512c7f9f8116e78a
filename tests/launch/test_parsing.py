"""Options on command lines and in files: what one says, and what the other says that was printed for it, are equal."""

import dataclasses
import datetime
import enum
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.command_line import Options, option, required
from newsembed.launch import cli
from newsembed.launch.parsing import Configured, Parser, add_options, beam_arguments, check_beam_args, nearest, parse


class Shade(enum.StrEnum):
    LIGHT = "light"
    DARK = "dark"


@dataclasses.dataclass(frozen=True)
class Group(Options):
    number: int = option(3, "a number, at most 100 %")
    share: float = option(0.5, "a share")
    is_on: bool = option(True, "on")
    name: str = option("", "a name")
    shade: Shade = option(Shade.LIGHT, "shade")
    weights: tuple[float, ...] = option((1.0, 2.0), "weights")
    day: datetime.date | None = option(None, "day")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Command(Configured):
    warc: tuple[str, ...] = option((), "files", many=True, metavar="PATH")
    output: str = required("folder", metavar="DIR")
    kind: str = option("a", "kind", choices=("a", "b"))
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
    for wrong in ("--toy.share=x", "--toy.number=1.5", "--toy.shade=grey", "--toy.day=2020-02-30", "--toy.is_on=maybe"):
        with pytest.raises(SystemExit):
            parsed("--output=x", wrong)
    with pytest.raises(InputError, match="--kind: got c, expected one of a, b"):
        parsed("--output=x", "--kind=c")
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
    name: tuple[str, ...] = option(("n",), "names", many=True, repeated=True)
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


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
GROUPS = st.builds(
    Group,
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False),
    st.booleans(),
    TEXTS,
    st.sampled_from(Shade),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=3).map(tuple),
    st.none() | st.dates(),
)
PATHS = st.lists(TEXTS.filter(lambda text: text and not text.startswith("-")), max_size=3).map(tuple)


@given(GROUPS, PATHS)
def test_the_printed_file_stands_for_the_same_options(tmp_path_factory, group, paths):
    from newsembed.launch.parsing import config_text

    options = Command(output=f"work {len(paths)}", warc=paths, toy=group, beam_args=("--runner=FnApiRunner",))
    text = config_text(options)
    tomllib.loads(text)
    config = written(tmp_path_factory.mktemp("config"), text)
    assert dataclasses.replace(parsed(config), config=None) == options


def written(tmp_path, text):
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return f"--config={path}"


def test_the_command_line_takes_precedence_over_the_file(tmp_path):
    text = 'output = "file"\nwarc = ["a", "b"]\n[toy]\nnumber = 4\nshare = 0.25\nday = 2024-02-29\nweights = 2\n'
    found = parsed("--warc", "c", written(tmp_path, text), "--toy.number=5")
    assert (found.output, found.warc) == ("file", ("c",))
    assert found.toy == Group(5, 0.25, day=datetime.date(2024, 2, 29), weights=(2.0,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output = \n", "cannot be read: Invalid value"),
        ("[toy]\nnumbr = 1\n", "toy.numbr: no such option\n.*did you mean toy.number?"),
        ("[toy]\nnumber = [{a = 1}]\n", "toy.number: got"),
        ("beam = 3\n", "beam: expected a list of strings"),
        ('config = "other.toml"\n', "config: no such option"),
    ],
)
def test_a_bad_file_is_named_with_the_key(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        parsed(written(tmp_path, text), "--output=x")
    assert "toy.toml" in str(error.value)


def test_a_missing_file_and_a_value_of_another_kind_are_named(tmp_path, capsys):
    with pytest.raises(InputError, match="none.toml: --config: no such file"):
        parsed(f"--config={tmp_path}/none.toml", "--output=x")
    with pytest.raises(SystemExit):
        parsed(written(tmp_path, 'output = "x"\n[toy]\nnumber = "many"\n'))
    assert "--toy.number: invalid int value: 'many'" in capsys.readouterr().err


def test_keys_of_an_object_store_are_not_printed():
    from newsembed.launch.parsing import config_text

    keys = ("--s3_secret_access_key=hush", "--s3_access_key_id", "who", "--s3_session_token")
    text = config_text(Command(output="x", beam_args=("--runner=FnApiRunner", *keys, "--s3_region_name", "eu")))
    assert "hush" not in text
    assert "who" not in text
    assert tomllib.loads(text)["beam"] == ["--runner=FnApiRunner", "--s3_region_name", "eu"]
    assert text.count("left out, as it may be secret") == 3


def test_options_of_beam_are_checked_before_it_drops_them(capsys):
    own = Parser("newsembed clean")
    good = ["--runner=DataflowRunner", "--region=europe-west4", "--num_workers=2"]
    check_beam_args(good, own)
    assert parsed("--output=x", *good).beam_args == tuple(good)
    with pytest.raises(InputError, match="--runer: no such option\n.*did you mean --runner"):
        check_beam_args(["--runer=DataflowRunner"], own)
    with pytest.raises(SystemExit, match="2"):
        check_beam_args(["--num_workers=many"], own)
    assert "newsembed clean: error: argument --num_workers: invalid int value: 'many'\n" in capsys.readouterr().err


def test_the_dashes_of_an_option_are_no_likeness():
    known = ["--tags", "--index", "--clean.min_words", "--"]
    assert nearest("--data", known) == []
    assert nearest("--indx", known) == ["--index"]
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
