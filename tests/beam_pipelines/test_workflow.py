"""workflow: which job of the build reads the results of which."""

import datetime
from pathlib import Path

import pytest
from newsembed.beam_pipelines import workflow
from newsembed.beam_pipelines.jobs import Outcome
from newsembed.beam_pipelines.triplets.rules import TripletsOptions
from newsembed.beam_pipelines.workflow import STEPS, USER_INPUTS, build, load_job
from newsembed.errors import InputError
from newsembed.formats.parquet import ParquetShardWriter
from newsembed.formats.records import Article, Hub
from newsembed.launch import cli

# The arrows of the picture in the README: job -> jobs whose results it reads.
READS = {
    "extract": set(),
    "clean": {"extract"},
    "vocabulary": {"clean"},
    "entities": {"clean"},
    "vectors": {"clean", "entities"},
    "bitext": {"clean", "vectors"},
    "pack": {"clean", "vocabulary", "bitext"},
    "neighbors": {"vectors"},
    "triplets": {"clean", "neighbors"},
    "topics": {"clean", "extract", "entities"},
    "examples": {"clean", "triplets", "topics", "vocabulary"},
}


def test_every_job_reads_the_jobs_before_it_that_the_readme_shows():
    assert [step.job for step in STEPS] == list(READS)
    for place, step in enumerate(STEPS):
        sources = {source for source in step.sources() if not source.startswith("@")}
        assert sources == READS[step.job]
        assert sources <= {earlier.job for earlier in STEPS[:place]}


def test_inputs_that_are_named_like_a_job_come_from_that_job():
    for step in STEPS:
        names = {spec.name for spec in load_job(step.job).inputs}
        assert set(step.inputs) <= names
        for name in names & set(READS):
            assert name in step.inputs[name].split("+")


def test_the_page_on_the_architecture_lists_each_job_and_why_one_has_several_pipelines():
    page = (Path(workflow.__file__).parents[1] / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("| job | phases |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    commands = [name for name, command in cli.COMMANDS.items() if command.module.startswith("beam_pipelines.")]
    jobs = {name for name in commands if hasattr(cli.load(name), "JOB")}
    assert {row[0].strip("`") for row in rows} == jobs
    for name, _phases, _before, pipelines, _stages, _shuffles, reason in rows:
        assert (pipelines != "1") == bool(reason), name


@pytest.fixture
def executed(monkeypatch):
    """The arguments of every job that a build would run; each ends with 3 records in 2 seconds."""
    calls = []

    def execute(job, inputs, output, options, beam_args, progress):
        progress("phase", 0, 1, {})
        calls.append((job.name, inputs, output, options, beam_args))
        return Outcome({"counts": {"in": 3, "out": 2, "rejected": {"x": 1}, "failed": {}}}, skipped=False, seconds=2.0)

    monkeypatch.setattr(workflow, "execute", execute)
    monkeypatch.setattr(workflow, "foresee", lambda *_: "")
    return calls


def test_every_job_gets_the_folders_of_earlier_jobs_and_the_user_s_inputs(executed):
    given = {name: (f"my-{name}", f"more-{name}") for name in USER_INPUTS}
    noted = []
    rows = build(given, "out", {}, ["--x"], note=lambda name, outcome: noted.append((name, outcome.seconds)))

    def mine(*names):
        return {name: (f"my-{name}", f"more-{name}") for name in names}

    found = {name: inputs for name, inputs, *_ in executed}
    assert list(found) == [step.job for step in STEPS]
    assert found["extract"] == mine("warc", "articles")
    assert found["clean"] == {"articles": ("out/extract",), **mine("bad_words")}
    bitext = ("my-bitext", "more-bitext", "out/bitext")
    assert found["pack"] == {"articles": ("out/clean",), "vocabulary": ("out/vocabulary",), "bitext": bitext}
    assert found["bitext"]["encoder"] == ("my-bitext_encoder", "more-bitext_encoder")
    assert [(output, beam) for _, _, output, _, beam in executed] == [(f"out/{name}", ["--x"]) for name in found]
    assert noted == [(name, 2.0) for name in found]
    shown = [(row["job"], row["in"], row["documents_per_second"], row["skipped"]) for row in rows]
    assert shown == [(name, 3, 1.5, False) for name in found]


def test_inputs_that_are_not_given_are_empty_and_options_are_those_of_the_job(executed):
    build({"warc": ("w",)}, "out", {"pack": "options of pack"})
    assert executed[0][1] == {"warc": ("w",), "articles": ()}
    assert {name: options for name, _, _, options, _ in executed if options is not None} == {"pack": "options of pack"}


def test_translations_are_mined_only_with_an_encoder(executed):
    build({"bitext": ("mine.tsv",)}, "out", {})
    assert "bitext" not in [name for name, *_ in executed]
    assert {name: inputs for name, inputs, *_ in executed}["pack"]["bitext"] == ("mine.tsv",)


def test_mined_translations_of_another_build_are_read(executed):
    build({}, "out", {}, reused={"bitext": "there/bitext"})
    assert {name: inputs for name, inputs, *_ in executed}["pack"]["bitext"] == ("there/bitext",)


def test_jobs_that_have_run_elsewhere_are_read_and_not_run(executed):
    rows = build({}, "out", {}, reused={"extract": "there/extract", "clean": "there/clean"})
    ran = [name for name in READS if name not in ("extract", "clean", "bitext")]
    assert [name for name, *_ in executed] == ran
    assert [row["job"] for row in rows] == [name for name, *_ in executed]
    inputs = {name: inputs for name, inputs, *_ in executed}
    assert inputs["vocabulary"] == {"articles": ("there/clean",)}
    assert (inputs["topics"]["hubs"], inputs["topics"]["entities"]) == (("there/extract",), ("out/entities",))


def foreseen(tmp_path, articles, hubs=(), options=None, **given):
    for stream, records, kind in (("clean/articles", articles, Article), ("extract/hubs", hubs, Hub)):
        (tmp_path / stream).mkdir(parents=True, exist_ok=True)
        with ParquetShardWriter(str(tmp_path / stream / "part-00000-of-00001.parquet"), kind) as writer:
            for record in records:
                writer.write(record)
    return workflow.foresee(str(tmp_path / "clean"), str(tmp_path / "extract"), options, given)


def dated(*days):
    for number, day in enumerate(days):
        date = datetime.date.fromisoformat(day)
        yield Article(f"{number:016x}", f"http://{number}.example/", f"{number}.example", "t", "b", byline_date=date)


def test_a_build_says_before_it_mines_what_can_come_out(tmp_path):
    hub = Hub("1" * 16, "feed:0.example/top", "0.example", "top", "feed", ("0" * 16,))
    year = list(dated("2024-01-01", "2024-12-31"))
    found = "note: 2 articles of 2024-01-01 to 2024-12-31 (365 days), 2 publishers, 0 with authors"
    assert foreseen(tmp_path, year, [hub]) == found
    assert foreseen(tmp_path, year) == f"{found}; there will be no topics, which need hubs"
    months = list(dated("2024-01-01", "2024-08-01"))
    assert foreseen(tmp_path, months, [hub]).endswith("; there will be no triplets")
    assert foreseen(tmp_path, months, topics_file=["t.tsv"]).endswith("; there will be no triplets")
    assert foreseen(tmp_path, months, options=TripletsOptions(min_negative_days=200)).endswith("which need hubs")


def test_a_build_of_which_nothing_can_come_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"365 days apart(.|\n)*--triplets\.min_negative_days=106; search"):
        foreseen(tmp_path, dated("2024-01-01", "2024-08-01"))
    with pytest.raises(InputError, match=r"\(1 day\)(.|\n)*with `feeds`; search"):
        foreseen(tmp_path, dated("2024-01-01", "2024-01-02"))
    with pytest.raises(InputError, match=r"need articles of several publishers(.|\n)*give articles of several"):
        foreseen(tmp_path, [*dated("2024-01-01")] * 2)
