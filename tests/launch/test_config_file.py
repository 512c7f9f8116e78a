"""Configuration files: what a command line says, and what a file says that was printed for it, are equal."""

import dataclasses
import datetime
import enum
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.launch import build, config_file
from newsembed.launch.job_command import add_options, options_from
from newsembed.launch.parsing import Parser


class Kind(enum.Enum):
    FIRST = "first"
    SECOND = "second"


@dataclasses.dataclass(frozen=True)
class Options:
    number: int = dataclasses.field(default=3, metadata={"help": "a number, at most 100 %"})
    share: float = 0.5
    is_on: bool = True
    name: str = ""
    kind: Kind = Kind.FIRST
    weights: tuple[float, ...] = (1.0, 2.0)
    day: datetime.date | None = None


def make_parser():
    parser = Parser(prog="newsembed toy", allow_abbrev=False)
    parser.add_argument("--warc", nargs="+", metavar="PATH", help="files")
    parser.add_argument("--output", required=True, help="folder")
    config_file.add_arguments(parser)
    add_options(parser, Options, "toy.")
    return parser


def parsed(argv):
    parser = make_parser()
    args, beam_args = parser.parse_known_args(config_file.with_config(parser, argv))
    return args, options_from(Options, vars(args), "toy."), beam_args


def written(tmp_path, text):
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return f"--config={path}"


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
OPTIONS = st.builds(
    Options,
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False),
    st.booleans(),
    TEXTS,
    st.sampled_from(Kind),
    st.lists(st.floats(allow_nan=False), max_size=3).map(tuple),
    st.none() | st.dates(),
)


@given(OPTIONS, st.lists(TEXTS.filter(lambda text: text and not text.startswith("-")), max_size=3))
def test_the_printed_file_stands_for_the_same_options(tmp_path_factory, options, paths):
    parser = make_parser()
    argv = [f"--output=work {len(paths)}", *(["--warc", *paths] if paths else [])]
    for field in dataclasses.fields(Options):
        value = getattr(options, field.name)
        if isinstance(value, tuple):
            value = ",".join(map(str, value))
        if value is not None:
            argv.append(f"--toy.{field.name}={value.value if isinstance(value, Kind) else value}")
    args, beam_args = parser.parse_known_args([*argv, "--runner=FnApiRunner"])
    text = config_file.text_of(parser, args, beam_args)
    tomllib.loads(text)
    again, options_again, beam_again = parsed([written(tmp_path_factory.mktemp("config"), text)])
    assert options_again == options
    assert (again.warc or []) == paths
    assert again.output == args.output
    assert beam_again == ["--runner=FnApiRunner"]


def test_the_command_line_takes_precedence(tmp_path):
    config = written(tmp_path, 'output = "file"\nwarc = ["a", "b"]\n[toy]\nnumber = 4\nshare = 0.25\n')
    args, options, _ = parsed(["--warc", "c", config, "--toy.number=5"])
    assert (args.output, args.warc) == ("file", ["c"])
    assert options == Options(number=5, share=0.25)


def test_dates_may_be_dates_of_toml_and_single_values_lists(tmp_path):
    config = written(tmp_path, 'output = "x"\nwarc = "a"\n[toy]\nday = 2024-02-29\nweights = 2\n')
    args, options, _ = parsed([config])
    assert args.warc == ["a"]
    assert (options.day, options.weights) == (datetime.date(2024, 2, 29), (2.0,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output = \n", "not valid TOML"),
        ("[toy]\nnumbr = 1\n", "toy.numbr: no such option\n.*did you mean toy.number?"),
        ("[toy]\nnumber = [{a = 1}]\n", "toy.number: got"),
        ("beam = 3\n", "beam: expected a list of strings"),
        ('config = "other.toml"\n', "config: no such option"),
    ],
)
def test_a_bad_file_is_named_with_the_key(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        parsed([written(tmp_path, text), "--output=x"])
    assert "toy.toml" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="none.toml: --config: no such file"):
        parsed([f"--config={tmp_path}/none.toml", "--output=x"])


def test_a_value_of_another_kind_is_an_error_of_its_option(tmp_path, capsys):
    with pytest.raises(SystemExit):
        parsed([written(tmp_path, 'output = "x"\n[toy]\nnumber = "many"\n')])
    assert "--toy.number: invalid int value: 'many'" in capsys.readouterr().err


def test_build_prints_its_options_and_runs_nothing(tmp_path, capsys):
    output = tmp_path / "work"
    argv = ["--warc", "*.warc.gz", "--output", str(output), "--clean.min_words=81", "--print_config"]
    assert build.main(argv) == 0
    text = capsys.readouterr().out
    assert tomllib.loads(text)["clean"]["min_words"] == 81
    assert not output.exists()
    assert build.main([written(tmp_path, text), "--print_config"]) == 0
    assert capsys.readouterr().out == text


def test_keys_of_an_object_store_are_not_printed():
    parser = Parser(prog="newsembed toy", allow_abbrev=False)
    beam = ["--s3_secret_access_key=hush", "--s3_access_key_id", "who", "--runner=FnApiRunner", "--s3_session_token"]
    text = config_file.text_of(parser, parser.parse_args([]), [*beam, "--s3_region_name", "eu"])
    assert "hush" not in text
    assert "who" not in text
    assert tomllib.loads(text)["beam"] == ["--runner=FnApiRunner", "--s3_region_name", "eu"]
    for name in ("--s3_secret_access_key", "--s3_access_key_id", "--s3_session_token"):
        assert f"# {name}: left out" in text
