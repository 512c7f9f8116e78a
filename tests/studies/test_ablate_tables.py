"""The tables of the package: every row is a run, changes what it says, and mines what it needs."""

import dataclasses
import os
import shutil
from pathlib import Path

import gin
import pytest
from manifests import write_manifest
from newsembed.beam_pipelines.workflow import STEPS, load_job
from newsembed.evaluation.benchmark import suites
from newsembed.evaluation.command import encoder_factory
from newsembed.formats import files, parquet
from newsembed.formats.manifest import read_manifest
from newsembed.formats.records import Article, make_doc_id
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.studies.ablate.rows import Ablation
from newsembed.studies.ablate.table import Row, load, names
from newsembed.studies.shared.mining import options_of
from newsembed.studies.shared.recipe import DEFAULTS, NEWSROOM_DEFAULTS, Recipe, run_file
from newsembed.tasks.kinds import Augmentation
from newsembed.training.gin_config import load_gin
from newsembed.training.gin_files import GIN_FOLDER
from refusals import refuses

TABLE = load("newsembed")
# Values of the demo take the place of what a build would give.
PLACES = [f"{name} = 'x'" for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH", "INITIAL_CHECKPOINT_PATH")]
ONE_WORKER = ("--direct_num_workers=1",)


def load_run(path, base, lines):
    """Loads a run file of some lines; returns a function that queries its macros."""
    gin.clear_config()
    path.write_text("\n".join([f'include "{run_file(base)}"', *lines]) + "\n")
    load_gin([str(path)], [])
    return lambda name: gin.query_parameter(f"{name}/gin.macro.value")


@pytest.mark.parametrize("kind", ["defaults", "newsroom_defaults"])
@pytest.mark.parametrize("name", names())
def test_every_row_of_every_table_becomes_a_run(name, kind, tmp_path):
    """Run files exist and load with the row's lines, jobs and their options are known, suites can be built."""
    table, standard = load(name), {"defaults": DEFAULTS, "newsroom_defaults": NEWSROOM_DEFAULTS}[kind]
    defaults = {**standard, **getattr(table, kind)}
    for row in table.rows:
        prefix = "pretrain_" if row.start == "own" else ""
        lines = [*PLACES, *defaults.get(f"{prefix}gin", ()), *row.lines]
        load_run(tmp_path / f"{row.name}.gin", defaults[f"{prefix}base"], lines)
        for job, changes in row.mining.items():
            loaded = load_job(job)
            options_of(loaded, changes, options_of(loaded, table.options.get(job, {})))
        assert row.data in {step.job for step in (*STEPS, *table.steps)}
        if row.encoder:
            encoder_factory(row.encoder, {})
    for bindings in table.parts.values():
        load_run(tmp_path / "part.gin", defaults["pretrain_base"], [*PLACES, *defaults["pretrain_gin"], *bindings])
    for step in table.steps:
        options_of(load_job(step.job), table.options.get(step.job, {}))
    for suite, file in table.newsroom_suites:
        suites()[suite].make(str(tmp_path / file), suite, dict(table.evaluation))


def test_every_ablation_file_of_the_package_is_a_row():
    there = {f"runs/{name}" for name in os.listdir(f"{GIN_FOLDER}/runs") if name.startswith("ablation_")}
    assert {row.gin_file for row in TABLE.rows if row.gin_file} == there
    assert (TABLE.control, TABLE.rows[0].gin_file, len(TABLE.rows)) == ("full", "", 15)


def test_rows_are_chosen_by_name_with_the_control_first():
    chosen = [row.name for row in TABLE.choose("without_topics, without_triplets")]
    assert chosen == ["full", "without_topics", "without_triplets"]
    assert [row.name for row in TABLE.choose("all")] == TABLE.names
    for rows in ("without_coffee", "", "full,without_coffee", "full"):
        refuses("without_topics", TABLE.choose, rows)


def test_an_unknown_table_is_refused_with_the_known_ones():
    assert names() == ["ast", "newsembed", "ntdv", "okura", "simlte", "supervision", "tmde"]
    refuses("choose one of .*newsembed, .*or name a file of yours", load, "coffee")


@pytest.mark.parametrize("augmentation", list(Augmentation))
def test_the_row_of_an_augmentation_draws_the_others_as_often_as_before(augmentation):
    row, job = TABLE.row(f"without_{augmentation.name.lower()}"), load_job("examples")
    before = job.options(weights=(1.0, 2.0, 3.0, 4.0), max_length=96)
    options = options_of(job, row.mining["examples"], before)
    expected = tuple(0.0 if number == augmentation else weight for number, weight in enumerate(before.weights))
    assert options == dataclasses.replace(before, weights=expected)


def test_a_row_with_nothing_to_remove_says_so(tmp_path):
    tallies = {"augmentation/title_to_body": 4, "translation/failed": 3}
    write_manifest(f"{tmp_path}/pack", "pack", examples={"mlm/en": 5})
    write_manifest(f"{tmp_path}/examples", "examples", examples={"triplets/en": 9, "topics/en": 0}, tallies=tallies)
    write_manifest(f"{tmp_path}/triplets", "triplets", tallies={"negatives dropped as evergreen": 0})
    ablation = Ablation(TABLE, str(tmp_path), "study", None)
    reasons = {row.name: ablation.not_applicable(row) for row in TABLE.rows}
    applicable = "pretraining cross_device_negatives hard_negatives title_to_body".split()
    expected = {"full", *(f"without_{name}" for name in applicable)}
    assert {name for name, reason in reasons.items() if not reason} == expected
    assert "translation/translated" in reasons["without_translation"]
    assert "tlm" in reasons["pretraining_without_tlm"]


def test_a_table_needs_the_jobs_of_the_build_that_its_rows_read():
    assert {name: load(name).build_jobs for name in names()} == {
        "newsembed": None,
        "supervision": None,
        "simlte": {"clean", "vocabulary"},
        "ast": {"clean", "vocabulary"},
        "okura": {"clean", "topics"},
        "tmde": {"vocabulary"},
        "ntdv": {"vocabulary"},
    }


@pytest.mark.parametrize("size", ["paper", "small"])
def test_every_row_of_the_tables_of_siblings_changes_either_base(size, tmp_path):
    path, found = tmp_path / "run.gin", {}
    for row in load("tmde").rows:
        query = load_run(path, f"runs/tmde_{size}.gin", [*PLACES, *row.lines])
        architecture = gin.query_parameter("ModelOptions.architecture").configurable.name
        found[row.name] = (query("DISTANCE_WEIGHT"), query("BOTTLENECK"), architecture)
    assert found == {
        "T-MDE": (0.0, "vector", "TranslatorConfig"),
        "cT-MDE": (0.25, "vector", "TranslatorConfig"),
        "cT-MDE_P": (0.25, "pooled", "TranslatorConfig"),
        "T-MDE_F": (0.0, "none", "TranslatorConfig"),
        "LASER": (0.0, "vector", "LaserConfig"),
        "cLASER": (0.25, "vector", "LaserConfig"),
    }
    found = {}
    for row in load("okura").rows:
        if not row.encoder:
            query = load_run(path, f"runs/okura_{size}.gin", [*PLACES, *row.lines])
            found[row.name] = (query("ALPHA"), query("LEARNING_RATE"))
    assert found == {"full": (300.0, 0.02), "without_similarity": (0.0, 0.02), "random": (300.0, 0.0)}
    found = {}
    for row in load("simlte").rows:
        query = load_run(path, f"runs/simlte_{size}.gin", [*PLACES, *row.lines])
        try:
            objectives = [one.configurable.name for one in gin.query_parameter("train.objectives")]
        except ValueError:  # not bound: those that read the task, which is Contrastive
            objectives = []
        found[row.name] = (objectives, query("MLM_WEIGHT"))
    alone = {"mlm_only": (["MaskedTexts"], 0.1), "without_mlm": ([], 0.0)}
    assert found == dict.fromkeys(("halves", "same_text", "words"), ([], 0.1)) | alone


def test_jobs_of_a_table_run_before_its_rows_and_only_once(tmp_path):
    (tmp_path / "work/vocabulary").mkdir(parents=True)
    (tmp_path / "work/vocabulary/vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, "a", "b"]) + "\n")
    (tmp_path / "work/vocabulary/manifest.json").write_text('{"digest": "v"}')
    (tmp_path / "pairs.tsv").write_text("de\ten\ta\tb\nen\tes\ta\tb\n")
    given = {"bitext": (str(tmp_path / "pairs.tsv"),)}
    work, study = str(tmp_path / "work"), str(tmp_path / "study")
    ablation = Ablation(load("tmde"), work, study, None, given=given, beam=ONE_WORKER)
    folder, times = ablation.jobs["translations"], []
    for _ in range(2):
        ablation.run_steps()
        times.append(os.stat(f"{folder}/manifest.json").st_mtime_ns)
    assert times[0] == times[1]
    assert read_manifest(folder)["examples"] == {"translation/de-en": 1, "translation/en-es": 1, "translation/es-en": 1}
    assert read_manifest(folder)["pivots"] == ["en", "es"]
    assert ablation.mine(ablation.table.row("cT-MDE"))["translations"] == folder


@pytest.fixture
def halved(build, tmp_path):
    """The ablation of SimLTE on a build of six articles, each of four sentences."""
    work, words = Path(build), [f"w{number}" for number in range(30)]
    (work / "vocabulary/vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *words, "."]) + "\n")
    rows = []
    for n in range(6):
        body = " ".join(f"W{m} w{n} w{m + 1} ." for m in range(n, n + 4))
        rows.append(Article(make_doc_id(f"a{n}"), f"http://x/{n}", "x", title="w1", body=body, language="en"))
    parquet.write_shard(f"{work}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    return Ablation(load("simlte"), build, str(tmp_path / "study"), None, beam=ONE_WORKER)


def test_a_row_that_changes_a_job_of_the_table_trains_on_pairs_of_its_own(halved):
    halved.run_steps()
    found = {row.name: halved.mine(row)["pairs"] for row in halved.table.rows}
    study = halved.output
    assert found == dict.fromkeys(("halves", "mlm_only", "without_mlm"), f"{study}/data/pairs") | {
        "same_text": f"{study}/data/same_text/pairs",
        "words": f"{study}/data/words/pairs",
    }
    options = {name: read_manifest(folder)["options"] for name, folder in found.items()}
    units = dict.fromkeys(("halves", "mlm_only", "without_mlm"), "sentence") | {"same_text": "none", "words": "word"}
    assert {name: one["unit"] for name, one in options.items()} == units
    assert {one["of"] for one in options.values()} == {"halves"}
    assert {read_manifest(folder)["examples"]["pairs/en"] for folder in found.values()} == {6}


def test_a_job_of_the_table_runs_again_after_a_job_of_the_build_that_it_reads(halved):
    other = f"{halved.output}/data/small/vocabulary"
    shutil.copytree(f"{halved.work}/vocabulary", other)
    files.write_json(f"{other}/manifest.json", {"digest": "other"})
    row = Row(name="small", removes="words", start="none", mining={"vocabulary": {"size": 20}}, data="pairs")
    asked = []

    def mine(_work, output, changes, _given, keeps):
        asked.append((output, dict(changes), keeps))
        return halved.jobs | {"vocabulary": other}

    jobs = halved.mine(row, mine)
    assert asked == [(f"{halved.output}/data/small", {"vocabulary": {"size": 20}}, ())]
    assert (jobs["vocabulary"], jobs["pairs"]) == (other, f"{halved.output}/data/small/pairs")
    assert read_manifest(jobs["pairs"])["options"]["unit"] == "sentence"


def test_models_that_are_parts_are_trained_once_for_all_rows(tmp_path):
    table, bindings = load("ntdv"), ("TASK_FEATURE_LENGTHS = {'source_tokens': 8, 'target_tokens': 8}",)
    bases = "runs/ntdv_small.gin", "runs/ntdv_translator_small.gin"
    recipe = Recipe(*bases, bindings, bindings, 4, 2, 4, 1, 2)
    write_manifest(f"{tmp_path}/work/vocabulary", "vocabulary")
    write_manifest(f"{tmp_path}/study/data/translations", "translations")
    ablation = Ablation(table, str(tmp_path / "work"), str(tmp_path / "study"), recipe)
    found = {row.name: ablation.runs(row, 1, ablation.jobs) for row in table.rows}
    assert len({tuple(run.folder for run in runs[:-1]) for runs in found.values()}) == 1
    *parts, run = found["NV"]
    assert [part.folder for part in parts] == [f"{tmp_path}/study/parts/translators_{n}/seed-1" for n in (0, 1)]
    for part, direction in zip(parts, ["'translation/de-en'", "'translation/en-de'"], strict=True):
        assert part.is_shared
        assert part.gin.splitlines()[-1] == f"MIXTURE_OR_TASK_NAME = {direction}"
        assert f"DATA_DIR = '{tmp_path}/study/data/translations'" in part.gin
    models = {f"translators_{n}": f"{part.folder}/model" for n, part in enumerate(parts)}
    assert f"INITIAL_CHECKPOINT_PATH = {models!r}" in run.gin
    assert run.gin.splitlines()[-1] == "DISTANCE_WEIGHT = 0.0"
