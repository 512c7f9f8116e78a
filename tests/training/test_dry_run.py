"""``newsembed train --dry_run``: a run file with all that it needs, and what is named where something is missing."""

import json
import os
import re
import shutil

import pytest
from newsembed.formats import files, remote, stores
from newsembed.formats.manifest import DataSet
from newsembed.launch import cli
from newsembed.tasks import registry
from newsembed.tests import object_store
from test_gin_config import RUNS, bindings_of, required_of
from toy_corpus import tiny_bindings, write_corpus, write_vocabulary

PAPER = "weak_supervision_paper.gin"


def dry_run(capsys, run, bindings, *options):
    """(exit code, description, what is missing)"""
    code = cli.main(["train", "--dry_run", f"--gin_file=runs/{run}", *(f"--gin.{one}" for one in bindings), *options])
    said = capsys.readouterr()
    return code, said.out, said.err


def found(pattern, text):
    return re.findall(pattern, text, re.MULTILINE)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """What run files need, by macro: records and checkpoints that nothing looks into."""
    folder = tmp_path_factory.mktemp("everything")
    sets = [DataSet(task, "de-en" if task == "translation" else "en") for task in registry.names()]
    for data in ("data", "held_out"):
        for one in sets:
            (folder / data / one.stream).mkdir(parents=True)
            (folder / data / one.stream / "part-0.tfrecord").touch()
        manifest = {"examples": {str(one): 640_000 for one in sets}, "row_sizes": {"topics": {"topic_ids": 4}}}
        manifest["files"] = {f"{one.stream}/part-0.tfrecord": 3_000_000 for one in sets}
        (folder / data / "manifest.json").write_text(json.dumps(manifest))
    (folder / "start/checkpoints/7/params").mkdir(parents=True)
    return {
        "MODEL_DIR": f"{folder}/model",
        "DATA_DIR": f"{folder}/data",
        "EVAL_DATA_DIR": f"{folder}/held_out",
        "VOCABULARY_PATH": write_vocabulary(folder / "vocab.txt"),
        "INITIAL_CHECKPOINT_PATH": f"{folder}/start",
        "MIXTURE_OR_TASK_NAME": "translation/de-en",
        "VOCAB_SIZE": None,
    }


@pytest.mark.parametrize("run", [run for run in RUNS if run != "lift_distillation.gin"])  # reads its teacher
def test_a_run_file_with_all_that_it_needs(run, everything, capsys):
    values = {name: everything[name] for name in (*required_of(run), "VOCAB_SIZE")}
    if run.startswith("ntdv") and "translator" not in run:
        values["INITIAL_CHECKPOINT_PATH"] = {f"translators_{one}": values["INITIAL_CHECKPOINT_PATH"] for one in (0, 1)}
    if run == "finetune.gin":
        values["INITIAL_CHECKPOINT_PATH"] = {"encoder": values["INITIAL_CHECKPOINT_PATH"]}
    fewer = {"ablation": "EncoderConfig", "simlte": "EncoderConfig", "tmde": "TranslatorConfig"}
    if (kind := fewer.get(run.partition("_")[0])) and run != "simlte_static.gin":
        values[f"{kind}.num_layers"] = 3  # in place of up to 12, which take long to trace
    code, said, missing = dry_run(capsys, run, [f"{name} = {value!r}" for name, value in values.items()])
    assert (code, missing) == (0, "")
    assert said.endswith("nothing is missing\n")
    ((steps, rows),) = found(r"^steps: 0 to ([0-9,]+), ([0-9,]+) rows each$", said)
    assert f"TRAIN_STEPS = {steps.replace(',', '')}\n" in said
    assert f"BATCH_SIZE = {rows.replace(',', '')}\n" in said
    shares = found(
        r"^  \w+/[\w-]+: (.*)% of (?:the steps, .*|each batch:) [0-9.,]+ epochs"
        r" of 640,000 records in 1 file, 0.003 GB$",
        said,
    )
    assert sum(map(float, shares)) == pytest.approx(100, abs=0.2)
    assert found(r"^model: .*, [0-9.]+ M parameters$", said)
    assert len(found(r"^  \w+: [0-9.]+e\+[0-9]+ FLOPs a step$", said)) == len(shares)
    assert not os.path.exists(everything["MODEL_DIR"])


@pytest.mark.parametrize("run", [PAPER, "ntdv_paper.gin", "ast_small.gin", "lift_distillation.gin"])
def test_what_is_missing_is_named_with_its_macro(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    needed = set(required_of(run))
    code, said, missing = dry_run(capsys, run, bindings_of(needed))
    assert code == 2
    assert "nothing is missing" not in said
    named = found(r"^missing: [^:]*: ([A-Z_]+): ", missing)
    assert set(named) == {"VOCABULARY_PATH", "DATA_DIR", "EVAL_DATA_DIR", "INITIAL_CHECKPOINT_PATH"} & needed
    assert len(named) == missing.count("missing: ") == missing.count("  remedy: ")
    assert ("\nmodel: " in said) == ("VOCAB_SIZE = None" not in said)


def test_each_file_that_is_missing_is_named(everything, tmp_path, capsys):
    values = {name: everything[name] for name in required_of("ast_paper.gin")} | {"WORD_VECTORS": "glove.txt"}
    for name in ("DATA_DIR", "EVAL_DATA_DIR"):
        shutil.copytree(values[name], tmp_path / name)
        values[name] = str(tmp_path / name)
    part = DataSet("pairs", "en").stream
    (tmp_path / "DATA_DIR" / part / "part-0.tfrecord").unlink()
    (tmp_path / "EVAL_DATA_DIR/manifest.json").write_text('{"examples": {"triplets/en": 3}}')
    code, said, missing = dry_run(capsys, "ast_paper.gin", [f"{name} = {value!r}" for name, value in values.items()])
    assert code == 2
    assert "\n  pairs/en: no files\n" in said
    assert "\nheld out: nothing\n" in said
    lines = found("^missing: (.*)$", missing)
    assert lines == [
        f"{tmp_path}/DATA_DIR/{part}/part-*.tfrecord: DATA_DIR: no file of pairs/en is here",
        f"{tmp_path}/EVAL_DATA_DIR: EVAL_DATA_DIR, examples: got triplets/en, expected examples of pairs",
        "glove.txt: WORD_VECTORS: no such file",
    ]


def test_records_of_another_vocabulary_are_named(everything, tmp_path, capsys):
    values = {name: everything[name] for name in required_of("ast_paper.gin")}
    for name in ("DATA_DIR", "EVAL_DATA_DIR"):
        shutil.copytree(values[name], tmp_path / name)
        values[name] = str(tmp_path / name)
        manifest = json.loads((tmp_path / name / "manifest.json").read_text()) | {"inputs": {"vocabulary": ["0"]}}
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest))
    _, _, missing = dry_run(capsys, "ast_paper.gin", [f"{name} = {value!r}" for name, value in values.items()])
    assert found("^missing: .*: VOCABULARY_PATH: (.*)$", missing) == [
        f"{values[name]} was written with another vocabulary" for name in ("DATA_DIR", "EVAL_DATA_DIR")
    ]


def test_a_device_of_a_pod_holds_its_part(capsys):
    bindings = [*bindings_of(required_of(PAPER)), "MODEL_PARALLEL = 4"]
    said = dry_run(capsys, PAPER, bindings, "--devices=256")[1].replace(",", "")
    assert "\nlayout: 64 data x 4 model devices; bytes on each:\n" in said
    ((parameters, moments, gradients),) = found(r"^  (\d+) parameters (\d+) optimizer (\d+) gradients;", said)
    ((divided, divided_bytes),) = found(r"^  \('model'\): \d+ arrays (\d+) parameters (\d+) bytes", said)
    ((whole, whole_bytes),) = found(r"^  whole: \d+ arrays (\d+) parameters (\d+) bytes", said)
    assert (int(divided_bytes), int(whole_bytes)) == (int(divided), 4 * int(whole))  # float32 in four parts
    assert int(parameters) == int(gradients) == int(divided_bytes) + int(whole_bytes)
    assert int(moments) == pytest.approx(2 * int(parameters), rel=1e-3)
    assert "\n  rows: 128 a step on each of 64 parts\n" in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--devices=6"], "missing: Partitioner.model_parallel: got 4, expected a divisor of the 6 devices"),
        (["--devices=12"], "missing: BATCH_SIZE: got 8192, expected a multiple of 3"),
        (
            ["--gin.MODEL_PARALLEL=16", "--devices=16"],
            (
                "missing: MODEL_PARALLEL: .params['layers_0']['attention']['output_kernel'] of shape [12, 64, 768] "
                "cannot be laid out"
            ),
        ),
        (["--gin.KEEP_BEST='eval/loss'"], "error: KEEP_BEST: got 'eval/loss', but checkpoints"),
        (["--gin.NUM_TOPIC=3"], "NUM_TOPIC: got a key that nothing uses"),
    ],
)
def test_what_does_not_fit_is_named(options, problem, capsys):
    code, _, said = dry_run(capsys, PAPER, [*bindings_of(required_of(PAPER)), "MODEL_PARALLEL = 4"], *options)
    assert code == 2
    assert problem in said


def test_a_run_that_goes_on(tmp_path, capsys):
    data, vocabulary = write_corpus(tmp_path / "data"), write_vocabulary(tmp_path / "vocab.txt")
    bindings = tiny_bindings(tmp_path / "model", data, vocabulary)
    options = [f"--gin.{one}" for one in bindings]
    assert cli.main(["train", "--gin_file=runs/pretrain_demo.gin", *options, "--gin.TRAIN_STEPS=2"]) == 0
    capsys.readouterr()
    code, said, _ = dry_run(capsys, "pretrain_demo.gin", bindings)
    assert code == 0
    assert f"\nstart: step 2 of {tmp_path}/model\n" in said
    assert "\nsteps: 2 to 6, 8 rows each\n" in said
    code, _, missing = dry_run(capsys, "pretrain_demo.gin", [*bindings, "EncoderConfig.mlp_size = 64"])
    assert code == 2
    assert f"missing: {tmp_path}/model/model.json: mlp_size: the checkpoint's model has 32, this run 64" in missing


def test_a_run_in_a_store(tmp_path, capsys):
    data = write_corpus(tmp_path / "data")
    write_vocabulary(tmp_path / "vocab.txt")
    (tmp_path / "model/checkpoints/4").mkdir(parents=True)
    (tmp_path / "model/checkpoints/4/SHA256SUMS").touch()
    with object_store.running() as store:
        stores.use_options(store.options)
        there = store.folder
        remote.upload(str(tmp_path), there, files.sizes_below(str(tmp_path)))
        shutil.rmtree(data)
        bindings = tiny_bindings(f"{there}/model", f"{there}/data", f"{there}/vocab.txt")
        code, said, missing = dry_run(capsys, "train_demo.gin", [*bindings, "INITIAL_CHECKPOINT_PATH = None"])
        assert (code, missing) == (0, "")
        assert f"\nstart: step 4 of {there}/model\n" in said
        assert "epochs of 23 records in 2 files" in said
        bindings[0] = f'MODEL_DIR = "{there}/other"'
        start = f'INITIAL_CHECKPOINT_PATH = "{there}/model"'
        assert f"\nstart: parameters of {there}/model\n" in dry_run(capsys, "train_demo.gin", [*bindings, start])[1]
        code, _, missing = dry_run(capsys, "train_demo.gin", [*bindings, f'INITIAL_CHECKPOINT_PATH = "{there}/none"'])
        assert (code, missing.count("missing")) == (2, 1)
        assert f"missing: {there}/none: INITIAL_CHECKPOINT_PATH: nothing is stored here" in missing
        stores.use_options([])
