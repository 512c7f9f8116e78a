"""The table of three teachers: what each row changes, who finds the pairs, and the report by part of a benchmark."""

import argparse
import dataclasses
import json

import numpy as np
import pytest
from manifests import write_manifest
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.results import Result
from newsembed.studies import ablate
from newsembed.studies.ablate import plan, tables
from newsembed.studies.ablate.conduct import RowResult
from newsembed.studies.ablate.parts import part_scores, section
from newsembed.studies.ablate.report import write_report
from newsembed.studies.shared import newsroom
from newsembed.studies.shared.mining import changed
from scipy.stats import dunnett

TABLE = tables.load("supervision")


def arguments(*words):
    parser = argparse.ArgumentParser()
    ablate.add_arguments(parser)
    return parser.parse_args(["--table", "supervision", *map(str, words)])


@pytest.fixture
def jobs(monkeypatch):
    """Jobs of the table that only write a manifest: (job, inputs, options) of each."""
    ran = []

    def execute(job, inputs, output, options, _beam, *_progress):
        ran.append((job.name, inputs, options))
        examples = {"mlm/en": 5, "tlm/en-de": 4} if job.name == "pack" else {}
        write_manifest(output, job.name, digest="a" * 16, examples=examples)

    monkeypatch.setattr(plan, "execute", execute)
    return ran


@pytest.fixture
def on_newsroom(build, heldout, tmp_path, monkeypatch):
    """Arguments of a study on a newsroom that is mined, with its benchmarks."""
    places = newsroom.Places(str(tmp_path))
    write_manifest(f"{build}/entities", "entities", tallies={"mentions": 7})
    write_manifest(f"{build}/pack", "pack", examples={"mlm/en": 5}, max_length=128)
    monkeypatch.setattr(newsroom, "find_newsroom", lambda *_arguments, **_options: places)
    written = []
    monkeypatch.setattr(newsroom, "write_across", written.append)
    (tmp_path / "newsroom").mkdir()
    with open(heldout) as file:
        rows = [json.loads(line) for line in file]
    for name in ("heldout.jsonl", newsroom.ACROSS_LANGUAGES):
        with open(tmp_path / "newsroom" / name, "w") as file:
            for row in rows:
                language = "de" if row["publisher"] == "c" else "en"
                file.write(json.dumps(row | {"language": language}) + "\n")
    return ["--newsroom", tmp_path, "--output", tmp_path / "study", "--steps", 4, "--pretrain_steps", 4], written


def test_each_row_changes_one_teacher(on_newsroom, jobs, bench, build, tmp_path):
    words, written = on_newsroom
    study = tmp_path / "study"
    assert ablate.run(arguments(*words, "--seeds", 2), bench.tools()) == 0
    assert [place.output for place in written] == [str(tmp_path)]
    # Mined with an encoder that was pretrained on the build's own pairs, packed without any other pairs.
    assert bench.trained[0] == f"{study}/pair_finder"
    assert f"DATA_DIR = '{build}/pack'" in (study / "pair_finder/run.gin").read_text()
    (first, inputs, _), (second, pack_inputs, pack_options) = jobs
    assert (first, inputs["encoder"]) == ("bitext", (f"model:{study}/pair_finder/model",))
    assert (second, pack_inputs["bitext"]) == ("pack", (f"{study}/data/bitext",))
    assert pack_options.max_length == 128  # as in the build

    def lines(row, name="run.gin"):
        return (study / "rows" / row / "seed-1" / name).read_text().splitlines()

    assert bench.mined == [
        (f"{study}/data/without_entities_across", ["entities", "vectors", "neighbors", "triplets", "examples"])
    ]
    data = {row: next(line for line in lines(row) if line.startswith("DATA_DIR")) for row in TABLE.names}
    assert data == dict.fromkeys(TABLE.names, f"DATA_DIR = '{build}/examples'") | {
        "without_entities_across": f"DATA_DIR = '{study}/data/without_entities_across/examples'"
    }
    own = "MIXTURE_OR_TASK_NAME = "
    assert [row for row in TABLE.names if lines(row)[-1].startswith(own)] == ["without_topics"]
    alone = lines("without_mined_pairs", "pretrained/run.gin")
    assert f"DATA_DIR = '{study}/data/pack'" in alone
    assert alone[-1] == 'MIXTURE_OR_TASK_NAME = "mlm"'
    shared = (study / "pretrained/seed-1/run.gin").read_text()
    assert f"DATA_DIR = '{study}/data/pack'" in shared
    assert TABLE.row("without_entities_across").mining["entities"](plan.load_job("entities").options()) == (
        changed(across_languages=False)(plan.load_job("entities").options())
    )


def test_the_report_has_every_language_and_those_across(on_newsroom, jobs, bench, tmp_path):
    assert ablate.run(arguments(*on_newsroom[0], "--seeds", 2), bench.tools()) == 0
    table = json.loads((tmp_path / "study/table.json").read_text())
    names = ("events", "events_across")
    assert {(one["benchmark"], one["part"]) for one in table["parts"]} == {
        (name, part) for name in names for part in ("all", "en", "de")
    }
    assert {one["row"] for one in table["parts"]} == set(TABLE.names)
    assert all(len(one["values"]) == 2 for one in table["parts"])
    assert all(one["test"]["method"] == "resamples" for one in table["parts"] if one["row"] != "all")
    text = (tmp_path / "study/table.md").read_text()
    assert "| events_across | de | without_topics | 8 |" in text


def test_without_a_newsroom_the_encoder_must_be_named(build, heldout, bench, tmp_path):
    words = ["--data", build, "--suite", f"events={heldout}", "--output", tmp_path / "study"]
    with pytest.raises(InputError, match="(?s)--bitext_encoder: not given.*name an encoder"):
        ablate.run(arguments(*words), bench.tools())
    assert bench.trained == []


def test_an_encoder_and_known_pairs_that_are_given_find_the_pairs(on_newsroom, jobs, bench, tmp_path):
    words = [*on_newsroom[0], "--bitext_encoder", "st:labse", "--known_pairs", "dev.de,dev.en", "--seeds", 1]
    assert ablate.run(arguments(*words), bench.tools()) == 0
    assert jobs[0][1]["encoder"] == ("st:labse",)
    assert jobs[0][1]["known_pairs"] == ("dev.de,dev.en",)
    assert not any("pair_finder" in folder for folder in bench.trained)


def test_a_pair_finder_that_fails_ends_the_study_with_its_log(on_newsroom, jobs, bench):
    bench.failing = {"pair_finder"}
    with pytest.raises(InputError, match="(?s)pair_finder/train.log.*was not trained: exit code 1"):
        ablate.run(arguments(*on_newsroom[0]), bench.tools())
    assert jobs == []


def test_without_mined_pairs_there_is_nothing_to_remove(build, tmp_path):
    settings = plan.Settings(TABLE, build, str(tmp_path / "study"), None)
    row = TABLE.row("without_mined_pairs")
    write_manifest(settings.jobs["pack"], "pack", examples={"mlm/en": 5})
    # The build's own pack has pairs, the table's has none.
    assert plan.not_applicable(row, settings) == "nothing to remove: the pack job counts no tlm"
    write_manifest(settings.jobs["pack"], "pack", examples={"mlm/en": 5, "tlm/en-de": 1})
    assert plan.not_applicable(row, settings) == ""


def of_seed(value, german, draws):
    scores = (
        Score("mAP", value, count=20),
        Score("hit@1", 0.9, count=20),
        Score("mAP", german, "de", 8, draws=draws),
        Score("hit@1", 0.8, "de", 8),
    )
    return [Result("4", "events", "ok", scores), Result("4", "sts", "ok", (Score("Spearman", 0.5),))]


def results():
    german = {"all": (0.3, 0.5, 0.4), "without_topics": (0.4, 0.7, 0.5), "without_mined_pairs": (0.2, 0.1, 0.3)}
    draws = {"all": (0.2, 0.3, 0.4), "without_topics": (0.4, 0.4, 0.5), "without_mined_pairs": (0.1, 0.2, 0.3)}
    return [
        RowResult(
            TABLE.row(name),
            "ok",
            scores={seed: {("4", "events"): value, ("4", "sts"): 0.5} for seed, value in enumerate(values)},
            metrics={"events": "mAP", "sts": "Spearman"},
            results={seed: of_seed(value + 0.1, value, draws[name]) for seed, value in enumerate(values)},
        )
        for name, values in german.items()
    ], german


def test_parts_are_compared_over_seeds_and_over_test_data():
    rows, german = results()
    found = {(one.part, one.row): one for one in part_scores(TABLE, rows)}
    assert {part for part, _ in found} == {"all", "de"}  # sts has no parts
    other = found["de", "without_topics"]
    assert other.count == 8
    assert other.values.tolist() == list(german["without_topics"])
    gap = np.mean(german["without_topics"]) - np.mean(german["all"])
    assert other.difference.mean == pytest.approx(gap)
    assert (other.test.difference, other.test.low, other.test.high) == pytest.approx((gap, 0.1, 0.195))
    assert found["de", "all"].difference is found["de", "all"].test is None
    assert found["all", "without_topics"].test is None  # no resamples were kept
    assert other.difference.p is not None
    lines = section(dataclasses.replace(TABLE, test="paired bootstrap over events"), list(found.values()))
    assert any(line.startswith("| events | de | without_topics | 8 | 0.5333 ± ") for line in lines)
    assert any("+0.1333 (+0.1000 to +0.1950)" in line for line in lines)


def test_a_seed_that_a_row_lacks_is_left_out_of_its_test():
    rows, german = results()
    rows[1] = dataclasses.replace(rows[1], results={seed: rows[1].results[seed] for seed in (0, 2)})
    one = next(one for one in part_scores(TABLE, rows) if (one.part, one.row) == ("de", "without_topics"))
    assert one.values.tolist() == [0.4, 0.5]
    assert one.test.difference == pytest.approx(0.1)  # seeds 0 and 2
    # Rows with other seeds: Dunnett's test without blocks.
    test = dunnett(one.values, np.array(german["without_mined_pairs"]), control=np.array(german["all"]))
    assert one.difference.p == pytest.approx(test.pvalue[0], abs=0.01)


def test_without_a_control_parts_have_scores_alone():
    rows, _ = results()
    found = part_scores(TABLE, rows[1:])
    assert {one.row for one in found} == {"without_topics", "without_mined_pairs"}
    assert all(one.difference is one.test is None for one in found)
    assert part_scores(TABLE, []) == []
    assert section(TABLE, []) == []


def test_only_tables_that_ask_report_parts(tmp_path):
    rows, _ = results()
    for by_part in (True, False):
        (tmp_path / str(by_part)).mkdir()
        write_report(str(tmp_path / str(by_part)), dataclasses.replace(TABLE, by_part=by_part), rows, {})
        numbers = json.loads((tmp_path / str(by_part) / "table.json").read_text())
        assert ("parts" in numbers) == by_part
        assert ("Parts at the last step" in (tmp_path / str(by_part) / "table.md").read_text()) == by_part
