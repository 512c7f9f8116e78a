"""The newsroom that studies run on: mined with the demo's options, made once, and never mixed with another one."""

import dataclasses
import os

import pytest
from newsembed.beam_pipelines import jobs as jobs_module
from newsembed.beam_pipelines.workflow import STEPS, load_job
from newsembed.formats import files
from newsembed.launch import build, cli
from newsembed.launch.demo import Places, steps
from newsembed.newsroom import NewsroomOptions
from newsembed.studies.shared import newsroom
from refusals import refuses

BEAM = ("--direct_num_workers=1",)
OPTIONS = NewsroomOptions(seed=3, scale=0.05)


@pytest.fixture
def jobs(monkeypatch):
    """Stands for the jobs: (inputs, output, options, Beam's arguments) of what was run, by "crawl" or "build"."""
    ran = {}

    def execute(job, inputs, output, options, beam_args, *_progress):
        assert jobs_module.resolve_inputs(job, inputs)["seeds"], "the crawl has no seeds"
        ran[job.name] = (inputs, output, options, beam_args)
        files.write_json(f"{output}/manifest.json", {})
        counts = {"in": 1, "out": 1, "rejected": {}, "failed": {}}
        return jobs_module.Outcome({"counts": counts}, skipped=False, seconds=1.0)

    def build_all(given, output, options, beam_args):
        ran["build"] = (given, output, options, beam_args)
        return []

    monkeypatch.setattr(newsroom, "execute", execute)
    monkeypatch.setattr(newsroom, "build", build_all)
    monkeypatch.setattr(newsroom, "write_report", lambda output, rows: ran.update(report=(output, rows)))
    return ran


@pytest.fixture
def places(tmp_path):
    return newsroom.Places(str(tmp_path / "study"))


def test_its_jobs_run_with_the_inputs_and_options_of_the_demo_s_commands(places, jobs):
    newsroom.make_newsroom(places, OPTIONS, BEAM)
    commands = {step.name: step.command for step in steps(Places(places.output), 3, 0.05)}
    mined = cli.parsed("build", build, commands["build"][1:])
    given, output, options, beam_args = jobs["build"]
    assert given == {name: getattr(mined, name) for name in ("warc", "bitext")}
    assert (output, beam_args) == (mined.output, BEAM)
    for step in STEPS:
        job = load_job(step.job)
        assert options.get(step.job, job.options()) == getattr(mined, f"of_{step.job}")
    crawled = cli.parsed("crawl", cli.load("crawl"), commands["crawl"][1:])
    given, output, options, _ = jobs["crawl"]
    assert (given["seeds"], output) == (crawled.seeds, crawled.output)
    assert options.resolve[0].startswith("*.example=127.0.0.1:")
    assert options == dataclasses.replace(crawled.job, resolve=options.resolve)
    assert jobs["report"] == (places.work, [])


def test_a_finished_newsroom_is_not_made_again(places, jobs, monkeypatch):
    newsroom.make_newsroom(places, OPTIONS)
    assert files.read_json(places.diary) == {"seed": 3, "scale": 0.05, "seconds": {}}

    def never(*_arguments):
        raise AssertionError("generated again")

    monkeypatch.setattr(newsroom, "generate_newsroom", never)
    jobs.clear()
    assert newsroom.find_newsroom(places.output, "unused") == places
    assert set(jobs) == {"build", "report"}  # the build skips its own finished jobs


@pytest.mark.parametrize("other", [NewsroomOptions(4, 0.05), NewsroomOptions(3, 0.1)])
def test_a_folder_with_another_newsroom_is_refused(places, jobs, other):
    newsroom.make_newsroom(places, OPTIONS)
    refuses("holds a newsroom with", newsroom.make_newsroom, places, other, BEAM)


@pytest.mark.parametrize(
    ("diary", "named", "expected"),
    [
        (None, "", ("out/newsroom", NewsroomOptions(7, 0.5, 0.25))),
        ({"seed": 3, "scale": 0.2}, "mine", ("mine", NewsroomOptions(3, 0.2, 0.0))),
        ({"seed": 3, "scale": 0.2, "turnover": 1.0}, "mine", ("mine", NewsroomOptions(3, 0.2, 1.0))),
    ],
)
def test_a_newsroom_keeps_its_options_and_a_new_one_has_the_study_s(tmp_path, monkeypatch, diary, named, expected):
    monkeypatch.chdir(tmp_path)
    made = []
    monkeypatch.setattr(newsroom, "make_newsroom", lambda places, options, _beam: made.append((places.output, options)))
    if diary is not None:
        files.write_json("mine/demo.json", {**diary, "seconds": {}})
    newsroom.find_newsroom(named, "out", 0.25)
    assert made == [expected]


@pytest.mark.parametrize(
    ("there", "problem"),
    [((), "no such folder"), (("mine/truth.jsonl",), "no newsroom of a demo or a study: no demo.json in it")],
)
def test_a_mistyped_folder_is_no_new_newsroom(tmp_path, monkeypatch, jobs, there, problem):
    monkeypatch.chdir(tmp_path)
    for path in there:
        files.write_json(path, {})
    caught = refuses(f"^mine: --newsroom: {problem}", newsroom.find_newsroom, "mine", "out")
    assert "--newsroom without a folder: it makes one in out/newsroom" in str(caught.remedy)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json*")) == list(there)
    assert not jobs


@pytest.mark.parametrize("name", [newsroom.LABELLED, newsroom.ACROSS_LANGUAGES])
def test_sets_that_the_generator_leaves_out_are_written_once_from_the_newsroom_s_world(places, monkeypatch, name):
    asked = []

    def write(path, options):
        asked.append(options)
        files.write_json(path, len(asked))

    monkeypatch.setattr(newsroom, "write_mldoc", write)
    monkeypatch.setattr(newsroom, "write_across_languages", write)
    newsroom.open_diary(places, {"seed": 3, "scale": 0.05})
    os.makedirs(places.newsroom)
    for _ in range(2):
        newsroom.write_set(places, name)
        newsroom.write_set(places, "heldout.jsonl")
        assert os.listdir(places.newsroom) == [name]
    scale = 0.1 if name == newsroom.LABELLED else 0.05  # a tenth of MLDoc's numbers
    assert asked == [newsroom.NewsroomOptions(3, scale, 0.0)]
