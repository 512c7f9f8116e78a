"""Tables of ablations: a table that no file of the package knows runs like the package's own."""

import argparse
import dataclasses
import json
import os
import shutil
from pathlib import Path

import gin
import pytest
from manifests import write_manifest
from newsembed.beam_pipelines.workflow import STEPS, load_job
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.command import encoder_factory
from newsembed.evaluation.registry import SUITES, Options
from newsembed.evaluation.results import Result, Results
from newsembed.formats import files, parquet
from newsembed.formats.manifest import read_manifest
from newsembed.formats.records import Article, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.studies import ablate
from newsembed.studies.ablate import plan, tables
from newsembed.studies.ablate.conduct import RowResult
from newsembed.studies.ablate.paired import row_tests
from newsembed.studies.ablate.report import fold_tests, lines_of, markdown, statement
from newsembed.studies.ablate.table import Needed, Row, Table
from newsembed.studies.shared import gin_text
from newsembed.studies.shared.mining import changed
from newsembed.studies.shared.recipe import Recipe
from newsembed.studies.shared.runs import overall_metrics, overall_scores
from newsembed.training.gin_config import load_gin
from scipy.stats import ttest_rel

ROWS = (
    Row("plain", "nothing"),
    Row("slow", "a large rate of learning", "slow.gin", expected="higher"),
    Row("cold", "pretraining", "slow.gin", start="none"),
    Row("odd", "the pretraining's own", "slow.gin", start="own"),
    Row(
        "short",
        "long texts",
        "slow.gin",
        mining={"pack": changed(max_length=64)},
        not_needed=("bitext",),
        data="pack",
    ),
    Row("idle", "what is not there", "slow.gin", needs=(Needed("examples", "examples", "pairs/"),)),
)
TOY = Table(
    "toy",
    "A toy",
    ROWS,
    note="Expected is what the test wants.",
    counted=("topics",),
    newsroom_suites=(("events", "paraphrases.jsonl"),),
    defaults={
        "base": "runs/train_demo.gin",
        "pretrain_base": "runs/pretrain_demo.gin",
        "seeds": 2,
        "parallel": 1,
        "evaluations": 2,
        "steps": 40,
    },
)
OWN_LINES = "LEARNING_RATE = 1e-7"


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """Tables that a test registers are gone after it; the toy's run file is found wherever it is asked for."""
    monkeypatch.setattr(tables, "_REGISTERED", {})
    from newsembed.studies.shared import gin_text

    own = gin_text.own_lines
    monkeypatch.setattr(gin_text, "own_lines", lambda file: [OWN_LINES] if file == "slow.gin" else own(file))


def run(bench, *words):
    parser = argparse.ArgumentParser()
    ablate.add_arguments(parser)
    return ablate.run(parser.parse_args([str(word) for word in words]), bench.tools())


def command(build, heldout, tmp_path):
    return ["--data", build, "--suite", f"events={heldout}", "--output", tmp_path / "study"]


def test_a_table_of_another_module_runs(build, heldout, bench, tmp_path):
    tables.register(TOY)
    bench.noise = lambda run, _step: lambda _documents: 0.01 if "/slow/" in run.folder else 2.0
    with open(f"{build}/pack/manifest.json") as file:
        manifest = json.load(file) | {"inputs": {"bitext": ["abc"]}}
    with open(f"{build}/pack/manifest.json", "w") as file:
        json.dump(manifest, file)
    assert run(bench, *command(build, heldout, tmp_path), "--table", "toy", "--seeds", 3) == 0
    table = json.loads((tmp_path / "study/table.json").read_text())
    rows = {row["row"]: row for row in table["rows"]}
    assert {name: row["status"] for name, row in rows.items()} == {
        **dict.fromkeys(("plain", "slow", "cold", "odd", "short"), "ok"),
        "idle": "not applicable",
    }
    assert (rows["plain"]["expected"], rows["slow"]["expected"], rows["cold"]["expected"]) == (None, "higher", "lower")
    assert rows["slow"]["verdict"] == "agrees"
    assert rows["slow"]["minus_plain"]["low"] > 0
    assert rows["plain"]["examples"] == {"topics": 30}
    assert (table["settings"]["table"], table["settings"]["steps"]) == ("toy", 40)
    text = (tmp_path / "study/table.md").read_text()
    assert text.startswith(
        "# A toy\n\n| row | leaves out | z | minus plain | p | expected | measured | verdict | seeds |"
    )
    assert "| seeds | topics |" in text
    assert "Expected is what the test wants." in text
    assert "idle: nothing to remove: the examples job counts no pairs" in text


def test_a_row_starts_trains_and_mines_as_it_says(build, heldout, bench, tmp_path):
    tables.register(TOY)
    assert run(bench, *command(build, heldout, tmp_path), "--table", "toy") == 0
    study = tmp_path / "study"

    def text(row, name="run.gin"):
        return (study / "rows" / row / "seed-1" / name).read_text()

    initial = {
        row: next(line for line in text(row).splitlines() if line.startswith("INITIAL")) for row in TOY.names[:5]
    }
    shared = f"INITIAL_CHECKPOINT_PATH = '{study}/pretrained/seed-1/model'"
    assert initial == {
        "plain": shared,
        "slow": shared,
        "short": shared,
        "cold": "INITIAL_CHECKPOINT_PATH = None",
        "odd": f"INITIAL_CHECKPOINT_PATH = '{study}/rows/odd/seed-1/pretrained/model'",
    }
    ends = {row for row in TOY.names[:5] if text(row).splitlines()[-1] == OWN_LINES}
    assert ends == {"slow", "cold", "short"}
    assert text("odd", "pretrained/run.gin").splitlines()[-1] == OWN_LINES
    assert bench.mined == [(f"{study}/data/short", ["pack"])]
    assert f"DATA_DIR = '{study}/data/short/pack'" in text("short")
    assert f"DATA_DIR = '{build}/examples'" in text("plain")
    for path in (study / "rows").rglob("run.gin"):
        load_gin([str(path)], [])


def test_a_given_model_is_where_every_row_starts_that_is_pretrained(build, heldout, bench, tmp_path):
    tables.register(TOY)
    (tmp_path / "model/checkpoints").mkdir(parents=True)
    words = [*command(build, heldout, tmp_path), "--table", "toy", "--rows", "cold", "--seeds", 1]
    assert run(bench, *words, "--pretrained", tmp_path / "model") == 0
    rows = tmp_path / "study/rows"
    assert f"INITIAL_CHECKPOINT_PATH = '{tmp_path}/model'" in (rows / "plain/seed-0/run.gin").read_text()
    assert "INITIAL_CHECKPOINT_PATH = None" in (rows / "cold/seed-0/run.gin").read_text()
    assert len(bench.trained) == 2


def test_the_newsroom_s_benchmarks_and_options_are_the_table_s(monkeypatch, build, tmp_path, bench, heldout):
    from newsembed.studies.shared import newsroom

    tables.register(TOY)
    (tmp_path / "newsroom").mkdir()
    shutil.copy(heldout, tmp_path / "newsroom/paraphrases.jsonl")
    places = newsroom.Places(str(tmp_path))
    monkeypatch.setattr(newsroom, "find_newsroom", lambda *_arguments, **_options: places)
    words = ["--newsroom", tmp_path, "--output", tmp_path / "study", "--table", "toy", "--rows", "slow"]
    assert run(bench, *words) == 0
    table = json.loads((tmp_path / "study/table.json").read_text())
    assert list(table["benchmarks"]) == ["events"]
    assert (table["settings"]["steps"], table["settings"]["seeds"]) == (60, [0, 1, 2])


def test_names_of_tables_are_their_own():
    before = tables.names()
    assert {"ast", "newsembed"} <= set(before)
    assert tables.register(TOY) is tables.register(TOY)
    assert tables.names() == sorted([*before, "toy"])
    assert tables.load("toy") is TOY
    for name in ("toy", "newsembed"):
        with pytest.raises(ValueError, match=f"already a table {name}"):
            tables.register(Table(name, "Another", ROWS))


@pytest.mark.parametrize("rows", [(), ROWS[:1], (ROWS[0], ROWS[1], ROWS[1])])
def test_a_table_has_a_control_and_other_rows_each_once(rows):
    with pytest.raises(ValueError, match="expected a control and other rows"):
        Table("broken", "Broken", rows)


def test_an_unknown_table_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="choose one of .*newsembed, .*or register your own"):
        tables.load("coffee")


def test_printed_commands_import_the_modules_that_this_one_did(monkeypatch, bench, build, capsys):
    tables.register(TOY)
    monkeypatch.setenv("NEWSEMBED_IMPORT", "mine,other")
    assert run(bench, "--data", build, "--output", "x", "--table", "toy", "--print_commands") == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert len(printed) == 2 + len(ROWS)
    assert all(line.startswith("newsembed --import=mine --import=other ablate ") for line in printed)
    assert all("--table toy" in line for line in printed)


def test_jobs_of_a_table_run_before_its_rows_and_only_once(tmp_path):
    (tmp_path / "work/vocabulary").mkdir(parents=True)
    (tmp_path / "work/vocabulary/vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "a", "b"]) + "\n")
    (tmp_path / "work/vocabulary/manifest.json").write_text('{"digest": "v"}')
    (tmp_path / "pairs.tsv").write_text("de\ten\ta\tb\nen\tes\ta\tb\n")
    table = tables.load("tmde")
    given = {"bitext": (str(tmp_path / "pairs.tsv"),)}
    settings = plan.Settings(
        table, str(tmp_path / "work"), str(tmp_path / "study"), None, given=given, beam=("--direct_num_workers=1",)
    )
    folder = settings.jobs["translations"]
    assert settings.jobs["clean"] == f"{tmp_path}/work/clean"
    times = []
    for _ in range(2):
        plan.run_steps(settings)
        times.append(os.stat(f"{folder}/manifest.json").st_mtime_ns)
    assert times[0] == times[1]
    assert read_manifest(folder)["examples"] == {"translation/de-en": 1, "translation/en-es": 1, "translation/es-en": 1}
    assert read_manifest(folder)["pivots"] == ["en", "es"]
    assert plan.mine_row(table.row("cT-MDE"), settings)["translations"] == folder


@pytest.mark.parametrize("base", ["runs/tmde_paper.gin", "runs/tmde_small.gin"])
def test_every_row_of_the_table_of_t_mde_changes_either_base(base, tmp_path):
    places = dict.fromkeys(("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH"), "x")
    found = set()
    for row in tables.load("tmde").rows:
        (tmp_path / "run.gin").write_text(gin_text.compose(base, places, (), row.gin_file))
        load_gin([str(tmp_path / "run.gin")], [])
        names = ("DISTANCE_WEIGHT", "BOTTLENECK")
        values = tuple(gin.query_parameter(f"{name}/gin.macro.value") for name in names)
        found.add((*values, gin.query_parameter("ModelOptions.architecture").configurable.name))
    assert found == {
        (0.0, "vector", "TranslatorConfig"),
        (0.25, "vector", "TranslatorConfig"),
        (0.25, "pooled", "TranslatorConfig"),
        (0.0, "none", "TranslatorConfig"),
        (0.0, "vector", "LaserConfig"),
        (0.25, "vector", "LaserConfig"),
    }


@pytest.fixture
def halved(build, tmp_path):
    """Settings of the table of SimLTE on a build of six articles, each of four sentences."""
    work = Path(build)
    words = [f"w{number}" for number in range(30)]
    (work / "vocabulary/vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *words, "."]) + "\n")
    rows = [
        Article(
            make_doc_id(f"a{n}"),
            f"http://x/{n}",
            "x",
            title="w1",
            body=" ".join(f"W{m} w{n} w{m + 1} ." for m in range(n, n + 4)),
            language="en",
        )
        for n in range(6)
    ]
    parquet.write_shard(f"{work}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    study = str(tmp_path / "study")
    return plan.Settings(tables.load("simlte"), build, study, None, beam=("--direct_num_workers=1",))


def test_a_row_that_changes_a_job_of_the_table_trains_on_pairs_of_its_own(halved):
    plan.run_steps(halved)
    found = {row.name: plan.mine_row(row, halved)["pairs"] for row in halved.table.rows}
    study = halved.output
    assert found == dict.fromkeys(("halves", "mlm_only", "without_mlm"), f"{study}/data/pairs") | {
        "same_text": f"{study}/data/same_text/pairs",
        "words": f"{study}/data/words/pairs",
    }
    assert {name: read_manifest(folder)["options"]["unit"] for name, folder in found.items()} == {
        "halves": "sentence",
        "mlm_only": "sentence",
        "without_mlm": "sentence",
        "same_text": "none",
        "words": "word",
    }
    assert {read_manifest(folder)["options"]["of"] for folder in found.values()} == {"halves"}
    assert {read_manifest(folder)["examples"]["pairs/en"] for folder in found.values()} == {6}
    time = os.stat(f"{found['words']}/manifest.json").st_mtime_ns
    assert plan.mine_row(halved.table.row("words"), halved)["pairs"] == found["words"]
    assert os.stat(f"{found['words']}/manifest.json").st_mtime_ns == time


def test_a_job_of_the_table_runs_again_after_a_job_of_the_build_that_it_reads(halved):
    other = f"{halved.output}/data/small/vocabulary"
    shutil.copytree(f"{halved.work}/vocabulary", other)
    files.write_json(f"{other}/manifest.json", {"digest": "other"})
    row = Row("small", "words", "slow.gin", start="none", mining={"vocabulary": changed(size=20)}, data="pairs")
    asked = []

    def mine(_work, output, changes, _given, keeps):
        assert keeps == ()
        asked.append((output, list(changes)))
        return halved.jobs | {"vocabulary": other}

    jobs = plan.mine_row(row, halved, mine)
    assert asked == [(f"{halved.output}/data/small", ["vocabulary"])]
    assert (jobs["vocabulary"], jobs["pairs"]) == (other, f"{halved.output}/data/small/pairs")
    assert read_manifest(jobs["pairs"])["options"]["unit"] == "sentence"


@pytest.mark.parametrize("base", ["runs/simlte_paper.gin", "runs/simlte_small.gin"])
def test_every_row_of_the_table_of_simlte_has_its_own_losses_or_pairs(base, tmp_path):
    places = dict.fromkeys(("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH"), "x")
    found = {}
    for row in tables.load("simlte").rows:
        (tmp_path / "run.gin").write_text(gin_text.compose(base, places, (), row.gin_file))
        load_gin([str(tmp_path / "run.gin")], [])
        weight = gin.query_parameter("MLM_WEIGHT/gin.macro.value")
        try:
            objectives = [one.configurable.name for one in gin.query_parameter("train.objectives")]
        except ValueError:  # not bound: those that read the task, which is Contrastive
            objectives = []
        found[row.name] = (objectives, weight)
    both = ([], 0.1)
    alone = {"mlm_only": (["MaskedTexts"], 0.1), "without_mlm": ([], 0.0)}
    assert found == dict.fromkeys(("halves", "same_text", "words"), both) | alone


# Values of the demo take the place of what a build would give.
PLACES = dict.fromkeys(("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH"), "x")


@pytest.mark.parametrize("kind", ["defaults", "newsroom_defaults"])
@pytest.mark.parametrize("name", tables.names())
def test_every_row_of_every_table_becomes_a_run(name, kind, tmp_path):
    """Run files exist and load with the row's lines, jobs and their options are known, suites can be built."""
    table = tables.load(name)
    defaults = dict(getattr(table, kind))
    base, before = defaults["base"], defaults["pretrain_base"]
    for row in table.rows:
        file, include = (before if row.start == "own" else base), tmp_path / f"{row.name}.gin"
        bindings = defaults.get("pretrain_gin" if row.start == "own" else "gin", ())
        include.write_text(gin_text.compose(gin_text.base_path(file), PLACES, bindings, row.gin_file))
        load_gin([str(include)], [])
        for job, change in row.mining.items():
            change(table.options.get(job, load_job(job).options()))
        assert row.data in {step.job for step in (*STEPS, *table.steps)}
        if row.encoder:
            encoder_factory(row.encoder, {})
    for part, bindings in table.parts.items():
        (tmp_path / "part.gin").write_text(gin_text.compose(before, PLACES, (*defaults["pretrain_gin"], *bindings)))
        load_gin([str(tmp_path / "part.gin")], [])
        assert part.startswith("translators_")
    for step in table.steps:
        load_job(step.job)
    options = Options(**dict(table.evaluation))
    for suite, file in table.newsroom_suites:
        SUITES[suite](str(tmp_path / file), suite, options)


def test_models_that_are_parts_are_trained_once_for_all_rows(tmp_path):
    table = tables.load("ntdv")
    bindings = ("TASK_FEATURE_LENGTHS = {'source_tokens': 8, 'target_tokens': 8}",)
    bases = "runs/ntdv_small.gin", "runs/ntdv_translator_small.gin"
    recipe = Recipe(*bases, bindings, bindings, 4, 2, 4, 1, 2)
    work = tmp_path / "work"
    for job in ("vocabulary", "pack"):
        write_manifest(f"{work}/{job}", job)
    write_manifest(f"{tmp_path}/study/data/translations", "translations")
    settings = plan.Settings(table, str(work), str(tmp_path / "study"), recipe)
    found = {row.name: plan.part_runs(settings, row, 1) for row in table.rows}
    assert len({tuple(run.folder for run in runs.values()) for runs in found.values()}) == 1
    parts = found["NV"]
    assert [run.folder for run in parts.values()] == [f"{tmp_path}/study/parts/translators_{n}/seed-1" for n in (0, 1)]
    directions = ["'translation/de-en'", "'translation/en-de'"]
    for run, direction in zip(parts.values(), directions, strict=True):
        assert run.gin.splitlines()[-1] == f"MIXTURE_OR_TASK_NAME = {direction}"
        assert f"DATA_DIR = '{tmp_path}/study/data/translations'" in run.gin
    run = plan.training(settings, table.row("NV"), 1, settings.jobs)
    models = {name: f"{tmp_path}/study/parts/{name}/seed-1/model" for name in ("translators_0", "translators_1")}
    assert f"INITIAL_CHECKPOINT_PATH = {models!r}" in run.gin
    assert run.gin.splitlines()[-1] == "DISTANCE_WEIGHT = 0.0"
    assert plan.runs_before(settings, table.row("NV"), 1) == list(parts.values())


def test_folds_are_compared_with_the_control_seed_by_seed():
    def result(row, values):
        scores = (Score("accuracy", 0.5, "Cross", 4, folds=values), Score("accuracy", 0.5, "All", 4))
        cells, found = {0: {("4", "mldoc"): 0.5}}, {0: [Result("4", "mldoc", "ok", scores)]}
        return RowResult(row, "ok", scores=cells, metrics={"mldoc": "accuracy"}, results=found)

    control, other = (0.1, 0.2, 0.4, 0.3), (0.3, 0.3, 0.7, 0.5)
    results = [result(ROWS[0], control), result(ROWS[1], other)]
    lines = lines_of(TOY, results)
    assert fold_tests(TOY, lines, lines[0]) == []
    ((seed, test),) = fold_tests(TOY, lines, lines[1])
    expected = ttest_rel(other, control)
    assert (seed, test.group, test.first, test.second) == (0, "Cross", "slow", "plain")
    assert (test.difference, test.p) == (pytest.approx(0.2), pytest.approx(expected.pvalue))
    assert f"| slow | mldoc | Cross | 0 | +0.2000 | {expected.pvalue:.4f} | " in markdown(TOY, lines)


def of_seed(value, draws, metric="AP"):
    return Result("4", "links", "ok", (Score("AUC", 0.5), Score(metric, value, draws=draws)))


def test_the_direction_line_has_the_paired_test_over_resamples():
    table = dataclasses.replace(TOY, metric="AP", test="paired bootstrap over articles")
    seeds = {"plain": (0.3, 0.5), "slow": (0.4, 0.7), "cold": (0.3, 0.4)}
    draws = {"plain": (0.2, 0.3, 0.4), "slow": (0.4, 0.4, 0.5), "cold": (0.3, 0.1, 0.5)}
    results = [
        RowResult(
            TOY.row(name),
            "ok",
            scores={seed: {("4", "links"): value} for seed, value in enumerate(values)},
            metrics={"links": "AP"},
            results={seed: [of_seed(value, draws[name])] for seed, value in enumerate(values)},
        )
        for name, values in seeds.items()
    ]
    found = {one.row: one for one in row_tests(table, results)}
    assert list(found) == ["slow", "cold"]
    # By hand: gaps of the draws are .2 .1 .1, whose 2.5 % and 97.5 % quantiles are .1 and .195.
    slow = found["slow"].test
    assert (slow.difference, slow.low, slow.high) == pytest.approx((0.15, 0.1, 0.195))
    assert (found["slow"].seeds, found["slow"].verdict, found["cold"].verdict) == (2, "agrees", "within error")
    line = statement(table, lines_of(table, results))
    assert "Paired test (paired bootstrap over articles) of AP on links, minus plain: slow +0.1500 (+0.1000 to" in line
    assert "p 0.333, agrees; cold -0.0500" in line
    assert "| slow | links | AP | +0.1500 (+0.1000 to +0.1950) | 0.333 | 2 | agrees |" in markdown(
        table, lines_of(table, results)
    )


def test_seeds_that_one_of_both_lacks_are_not_paired():
    values = {0: (0.1, 0.2), 1: (0.5, 0.9)}
    row = [RowResult(TOY.row("plain"), "ok", metrics={"links": "AP"}, results={0: [of_seed(0.3, (0.2, 0.3))]})]
    row.append(
        RowResult(TOY.row("slow"), "ok", results={seed: [of_seed(0.4, draws)] for seed, draws in values.items()})
    )
    (found,) = row_tests(dataclasses.replace(TOY, metric="AP"), row)
    assert (found.seeds, found.test.difference) == (1, pytest.approx(0.1))
    assert row_tests(TOY, row) == []  # the metric that counts has no resamples
    assert row_tests(TOY, row[1:]) == []


def test_a_table_needs_the_jobs_of_the_build_that_its_rows_read():
    assert TOY.build_jobs is None
    assert tables.load("newsembed").build_jobs is None
    found = {name: tables.load(name).build_jobs for name in ("simlte", "ast", "okura", "tmde", "ntdv")}
    assert found == {
        "simlte": {"clean", "vocabulary"},
        "ast": {"clean", "vocabulary"},
        "okura": {"clean", "topics"},
        "tmde": {"vocabulary"},
        "ntdv": {"vocabulary"},
    }


def test_the_metric_that_counts_is_the_table_s():
    scores = (Score("accuracy", 0.1), Score("5-shot macro-F1", 0.2), Score("accuracy", 0.3, "Cross", 4))
    found = Results((Result("4", "bbc", "ok", scores), Result("4", "sts", "ok", (Score("Spearman", 0.4),))), {})
    assert overall_scores(found, metric="5-shot macro-F1") == {("4", "bbc"): 0.2, ("4", "sts"): 0.4}
    assert overall_scores(found, "Cross", "5-shot macro-F1")["4", "bbc"] == 0.3
    assert overall_metrics(found, metric="5-shot macro-F1") == {"bbc": "5-shot macro-F1", "sts": "Spearman"}


def test_the_part_that_counts_is_the_table_s():
    scores = (Score("accuracy", 0.1, "Same", 4), Score("accuracy", 0.2, "Cross", 4), Score("accuracy", 0.3, "All", 4))
    found = Results((Result("4", "mldoc", "ok", scores), Result("4", "sts", "ok", scores[:1])), {})
    assert overall_scores(found, "Cross") == {("4", "mldoc"): 0.2, ("4", "sts"): 0.1}
    assert overall_scores(found) == {("4", "mldoc"): 0.3, ("4", "sts"): 0.1}
    assert overall_metrics(found, "Cross") == {"mldoc": "accuracy Cross", "sts": "accuracy Same"}
    assert overall_metrics(found)["mldoc"] == "accuracy"
