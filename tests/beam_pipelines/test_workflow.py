"""workflow: which job of the build reads the results of which."""

import dataclasses
import types
from pathlib import Path

import pytest
from newsembed.beam_pipelines import workflow
from newsembed.beam_pipelines.jobs import Outcome
from newsembed.beam_pipelines.neighbors import NeighborsOptions
from newsembed.beam_pipelines.triplets.mine import PositiveRule, TripletsOptions
from newsembed.beam_pipelines.workflow import STEPS, USER_INPUTS, build, load_job
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
    jobs = {
        name
        for name, command in cli.COMMANDS.items()
        if command.module.startswith("beam_pipelines.") and hasattr(cli.load(name), "JOB")
    }
    assert {row[0].strip("`") for row in rows} == jobs
    for name, _phases, _before, pipelines, _stages, _shuffles, reason in rows:
        assert (pipelines != "1") == bool(reason), name


@pytest.fixture
def executed(monkeypatch):
    """The arguments of every job that a build would run; each ends with 3 records in 2 seconds."""
    calls = []

    def execute(job, inputs, output, options, beam_args, progress, announce):
        progress("phase", 0, 1, {})
        announce("the size of the input")
        calls.append((job.name, inputs, output, options, beam_args))
        return Outcome({"counts": {"in": 3, "out": 2, "rejected": {"x": 1}, "failed": {}}}, skipped=False, seconds=2.0)

    monkeypatch.setattr(workflow, "execute", execute)
    return calls


def test_every_job_gets_the_folders_of_earlier_jobs_and_the_user_s_inputs(executed):
    given = {name: (f"my-{name}", f"more-{name}") for name in USER_INPUTS}
    noted = []
    rows = build(given, "out", {}, ["--x"], note=lambda name, outcome: noted.append((name, outcome.seconds)))

    def mine(*names):
        return {name: (f"my-{name}", f"more-{name}") for name in names}

    expected = {
        "extract": mine("warc", "articles"),
        "clean": {"articles": ("out/extract",), **mine("bad_words", "history")},
        "vocabulary": {"articles": ("out/clean",)},
        "entities": {"articles": ("out/clean",), **mine("knowledge_base")},
        "vectors": {
            "articles": ("out/clean",),
            "entities": ("out/entities",),
            **mine("alias_file", "entity_embeddings", "word_embeddings", "space"),
        },
        "bitext": {
            "articles": ("out/clean",),
            "vectors": ("out/vectors",),
            "encoder": ("my-bitext_encoder", "more-bitext_encoder"),
            **mine("known_pairs"),
        },
        "pack": {
            "articles": ("out/clean",),
            "vocabulary": ("out/vocabulary",),
            "bitext": ("my-bitext", "more-bitext", "out/bitext"),
        },
        "neighbors": {"vectors": ("out/vectors",)},
        "triplets": {"articles": ("out/clean",), "neighbors": ("out/neighbors",)},
        "topics": {
            "articles": ("out/clean",),
            "hubs": ("out/extract",),
            "entities": ("out/entities",),
            **mine("alias_file", "topics_file"),
        },
        "examples": {
            "articles": ("out/clean",),
            "triplets": ("out/triplets",),
            "topics": ("out/topics",),
            "vocabulary": ("out/vocabulary",),
            **mine("translation_models"),
        },
    }
    assert {name: inputs for name, inputs, *_ in executed} == expected
    assert [name for name, *_ in executed] == list(expected)
    assert {(output.removeprefix("out/") == name, tuple(beam)) for name, _, output, _, beam in executed} == {
        (True, ("--x",))
    }
    assert noted == [(name, 2.0) for name in expected]
    assert [(row["job"], row["in"], row["documents_per_second"], row["skipped"]) for row in rows] == [
        (name, 3, 1.5, False) for name in expected
    ]


def test_inputs_that_are_not_given_are_empty_and_options_are_those_of_the_job(executed):
    build({"warc": ("w",)}, "out", {"pack": "options of pack"})
    assert executed[0][1] == {"warc": ("w",), "articles": ()}
    assert {name: options for name, _, _, options, _ in executed if options is not None} == {"pack": "options of pack"}


@pytest.mark.parametrize("given", [{}, {"neighbors": NeighborsOptions(positives=7)}])
def test_the_rule_of_rarity_asks_neighbors_for_what_it_needs(executed, given):
    expected = given.get("neighbors", NeighborsOptions())
    build({}, "out", {"triplets": TripletsOptions(rule=PositiveRule.RARITY), **given})
    build({}, "out", {"triplets": TripletsOptions(), "neighbors": expected})
    found = [options for name, _, _, options, _ in executed if name == "neighbors"]
    assert found == [dataclasses.replace(expected, rarity=True), expected]


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


def test_a_module_that_declares_no_job_is_named(monkeypatch):
    monkeypatch.setattr(workflow.importlib, "import_module", lambda *_: types.SimpleNamespace(JOB="a text"))
    with pytest.raises(TypeError, match=r"beam_pipelines\.pack\.JOB: got str, expected a Job"):
        load_job("pack")


def test_the_preset_of_the_paper_has_its_numbers():
    # Of the paper: the vocabulary, alpha of the smoothed sample, texts of 512 tokens, 600 topics with 25 %
    # positives. Ours: min_fill and capacity of Algorithm 1, and the documents of an example of topics.
    assert workflow.PRESETS == {
        "paper": {
            "vocabulary": {"size": 500_000, "alpha": 0.7},
            "pack": {"max_length": 512, "min_fill": 0.99, "capacity": 1_000},
            "topics": {"max_topics": 600, "positive_ratio": 0.25},
            "examples": {"max_length": 512, "documents_per_example": 3},
        }
    }
