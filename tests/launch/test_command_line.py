"""The command line: overview, every command's help with an example, options made from dataclasses, typos."""

import dataclasses
import datetime
import subprocess
import sys

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.errors import InputError
from newsembed.launch import build, cli, job_command


@dataclasses.dataclass(frozen=True)
class Options:
    count: int = dataclasses.field(default=3, metadata={"help": "how many, 100 % of them"})
    keep: bool = dataclasses.field(default=True, metadata={"help": "keep"})
    names: tuple[str, ...] = dataclasses.field(default=("a", "b"), metadata={"help": "names"})
    day: datetime.date | None = dataclasses.field(default=None, metadata={"help": "day"})


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


def test_unknown_commands_and_options_name_the_closest(capsys):
    assert cli.main(["clen"]) == 2
    assert "did you mean `clean`?" in capsys.readouterr().err
    with pytest.raises(InputError, match="--runer: no such option\n.*did you mean --runner"):
        job_command.check_beam_args(["--runer=DataflowRunner"])
    job_command.check_beam_args(["--runner=DataflowRunner", "--region=europe-west4", "--setup_file=./setup.py"])


def test_the_build_gives_every_job_the_inputs_it_declares():
    done = set()
    for step in build.STEPS:
        job = build.load_job(step.job)
        assert job.name == step.job
        assert {spec.name for spec in job.inputs if spec.required} <= set(step.inputs)
        assert set(step.inputs) <= {spec.name for spec in job.inputs}
        for source in step.inputs.values():
            assert source.removeprefix("@") in build.USER_INPUTS if source.startswith("@") else source in done
        done.add(step.job)


def test_a_build_without_input_says_so(capsys):
    assert cli.main(["build", "--output", "nowhere"]) == 2
    assert "--warc, --articles: no input" in capsys.readouterr().err
