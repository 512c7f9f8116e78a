"""Okura's table: rows without training, the data that it mines, and printed numbers below the report."""

import argparse
import json

import gin
import numpy as np
import pytest
from manifests import write_manifest
from newsembed.formats import parquet
from newsembed.formats.manifest import read_manifest
from newsembed.formats.records import Article, TopicLabels, make_doc_id
from newsembed.studies import ablate
from newsembed.studies.ablate import plan, tables
from newsembed.studies.ablate.table import Row, Table
from newsembed.studies.ablate.tables import okura
from newsembed.studies.shared import gin_text
from newsembed.training.gin_config import load_gin

DEFAULTS = {
    "base": "runs/okura_small.gin",
    "pretrain_base": "runs/pretrain_demo.gin",
    "seeds": 2,
    "parallel": 1,
    "evaluations": 2,
    "steps": 40,
}
ROWS = (Row("full", "nothing", start="none"), Row("headline", "the model", encoder="headline"))


def study(bench, monkeypatch, build, heldout, output, *words, rows=ROWS):
    """The exit status of a study of a toy table."""
    monkeypatch.setattr(tables, "_REGISTERED", {})
    tables.register(Table("toy", "A toy", rows, defaults=DEFAULTS, printed=okura.TABLE.printed))
    parser = argparse.ArgumentParser()
    ablate.add_arguments(parser)
    basis = ["--data", build, "--suite", f"events={heldout}", "--output", str(output), "--table", "toy"]
    return ablate.run(parser.parse_args([*basis, *words]), bench.tools())


def test_a_row_without_training_is_scored_once_and_stands_beside_the_others(
    build, heldout, bench, tmp_path, monkeypatch
):
    bench.noise = lambda _run, _step: lambda _documents: 2.0
    assert study(bench, monkeypatch, build, heldout, tmp_path / "study") == 0
    assert bench.trained == [f"{tmp_path}/study/rows/full/seed-{seed}" for seed in (0, 1)]
    table = json.loads((tmp_path / "study/table.json").read_text())
    rows = {row["row"]: row for row in table["rows"]}
    assert rows["headline"]["status"] == "ok"
    assert {score["value"] for score in rows["headline"]["scores"]} == {1.0}  # titles name the events
    assert {(score["seed"], score["step"]) for score in rows["headline"]["scores"]} == {
        (seed, step) for seed in (0, 1) for step in (20, 40)
    }
    assert rows["headline"]["minus_full"]["mean"] > 0
    assert (rows["full"]["examples"], rows["headline"]["examples"]) == ({"triplets": 100, "topics": 30}, {})
    assert (tmp_path / "study/rows/headline/evaluation/results.json").is_file()
    text = (tmp_path / "study/table.md").read_text()
    assert "| full | 0.9400 | 0.8290 | 0.7490 | 0.8030 |" in text


def test_a_row_without_training_is_prepared_without_a_run_file(build, heldout, bench, tmp_path, monkeypatch):
    assert study(bench, monkeypatch, build, heldout, tmp_path / "study", "--prepare") == 0
    assert sorted(path.parent.parent.name for path in (tmp_path / "study/rows").rglob("run.gin")) == ["full", "full"]


def test_an_encoder_that_fails_fails_its_row_alone(build, heldout, bench, tmp_path, monkeypatch):
    rows = (*ROWS, Row("absent", "all", encoder="wordvectors:absent.txt"))
    assert study(bench, monkeypatch, build, heldout, tmp_path / "study", rows=rows) == 1
    found = {row["row"]: row for row in json.loads((tmp_path / "study/table.json").read_text())["rows"]}
    assert {name: row["status"] for name, row in found.items()} == {"full": "ok", "headline": "ok", "absent": "failed"}
    assert "absent.txt" in found["absent"]["reason"]


@pytest.mark.parametrize("base", [okura.TABLE.defaults["base"], "runs/okura_paper.gin"])
def test_each_row_changes_what_it_says(base, tmp_path):
    places = dict.fromkeys(("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH"), "x")
    found = {}
    for row in okura.TABLE.rows:
        if not row.encoder:
            gin.clear_config()
            (tmp_path / "run.gin").write_text(gin_text.compose(base, places, (), row.gin_file))
            load_gin([str(tmp_path / "run.gin")], [])
            found[row.name] = [gin.query_parameter(f"{name}/gin.macro.value") for name in ("ALPHA", "LEARNING_RATE")]
    assert found == {"full": [300.0, 0.02], "without_similarity": [0.0, 0.02], "random": [300.0, 0.0]}
    assert {row.name: row.encoder for row in okura.TABLE.rows if row.encoder} == {
        "headline": "headline",
        "full_text": "words",
    }


def test_the_table_mines_words_triplets_and_whole_documents(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        Article(
            make_doc_id(str(n)),
            "u",
            f"p{n % 3}",
            f"title {'abc'[n % 3]}{n % 7}",
            " ".join(f"{'abc'[n % 3]}word{k}" for k in rng.integers(0, 12, 8)),
            language="en",
        )
        for n in range(30)
    ]
    labels = [TopicLabels(row.doc_id, (n % 3, 9), (1, 0)) for n, row in enumerate(rows)]
    work = tmp_path / "work"
    parquet.write_shard(f"{work}/clean/articles/part-00000-of-00001.parquet", rows, Article)
    parquet.write_shard(f"{work}/topics/labels/part-00000-of-00001.parquet", labels, TopicLabels)
    for job in ("clean", "topics"):
        write_manifest(f"{work}/{job}", job)
    one_worker = ("--direct_num_workers=1",)
    settings = plan.Settings(okura.TABLE, str(work), str(tmp_path / "study"), None, beam=one_worker)
    plan.run_steps(settings)
    folders = plan.mine_row(okura.TABLE.row("full"), settings)
    manifest = read_manifest(folders["examples"])
    assert folders["examples"] == f"{tmp_path}/study/data/examples"
    assert manifest["examples"]["triplets/en"] > 30
    assert set(manifest["examples"]) == {"triplets/en"}
    assert manifest["options"]["weights"] == [0.0, 0.0, 0.0, 1.0]
    words = (tmp_path / "study/data/vocabulary/vocab.txt").read_text().split()
    assert "aword0" in words
    assert not any(word.startswith("##") for word in words)
