"""Small models learn small sets in XTREME's shape; a stopped run ends as one that was not; two models in one table."""

import json
import os
import random
import signal
from pathlib import Path

import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.suites import read_results
from newsembed.evaluation.xtreme import TASKS, read_labels
from newsembed.formats.model_folder import ModelFolder
from newsembed.launch import cli
from newsembed.studies.finetune import TRAININGS, Finetune, FinetuneOptions
from newsembed.studies.finetune.results import best_step
from newsembed.training.loop import Loop
from refusals import refuses
from xtreme_sets import write, write_encoder, write_questions, write_sets

QUICK = {"max_length": 24, "learning_rate": 1e-2, "epochs": 20.0, "batch_size": 32}


@pytest.fixture(scope="module")
def download(tmp_path_factory):
    return str(write_sets(tmp_path_factory.mktemp("xtreme") / "download"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder") / "start")


def study(download, output, tasks, *models, command=cli.main, **options):
    given = FinetuneOptions(task=tuple(tasks), model=models, data=download, output=str(output), **{**QUICK, **options})
    return Finetune(given, command)


def scores_of(results, benchmark):
    return {
        (one.encoder, score.metric, score.part): score.value
        for one in results.results
        if one.benchmark == f"{benchmark}, fine-tuned"
        for score in one.scores
    }


def test_the_hyper_parameters_are_those_of_xtreme_s_scripts():
    assert {name: (own.epochs, own.length, own.learning_rate) for name, own in TRAININGS.items()} == {
        "xnli": (5, 128, 2e-5),
        "pawsx": (5, 128, 2e-5),
        "udpos": (10, 128, 2e-5),
        "panx": (10, 128, 2e-5),
        "squad": (3, 384, 3e-5),
        "tydiqa": (3, 384, 3e-5),
    }
    assert {own.batch_size for own in TRAININGS.values()} == {32}
    assert [(own.warmup_steps, own.weight_decay) for own in TRAININGS.values()] == [(0, 0.0)] * 4 + [(500, 1e-4)] * 2
    assert [own.period for own in TRAININGS.values()][:4] == [100, 200, 500, 1_000]


@pytest.fixture(scope="module")
def pairs(download, encoder, tmp_path_factory):
    """Two models on the pairs of XNLI."""
    other = write_encoder(tmp_path_factory.mktemp("other") / "start", seed=3)
    made = study(download, tmp_path_factory.mktemp("pairs") / "out", ["xnli"], f"before={encoder}", f"after={other}")
    assert made.train() == 0
    return made


def test_pairs_are_learned_above_chance_and_two_models_are_one_table(pairs):
    results = pairs.results()
    found = scores_of(results, "xnli")
    assert set(found) == {(name, "accuracy", part) for name in ("before", "after") for part in ("all", "en", "de")}
    for name in ("before", "after"):
        assert found[name, "accuracy", "all"] == pytest.approx(
            np.mean([found[name, "accuracy", part] for part in ("en", "de")])
        )
        assert found[name, "accuracy", "all"] > 0.6  # by chance a third
    protocol = results.manifest["benchmarks"]["xnli, fine-tuned"]["protocol"]
    expected = {"suite": "finetune xnli", "trained_on": "xnli", "languages": ["de", "en"], "period": 100, "length": 24}
    expected |= {name: value for name, value in QUICK.items() if name != "max_length"}
    assert protocol == {**expected, "warmup_steps": 0, "weight_decay": 0.0}


def test_predictions_are_in_the_files_that_xtreme_reads(pairs, download):
    folder = f"{pairs.output}/before/predictions"
    assert sorted(os.listdir(f"{folder}/xnli")) == ["test-de.tsv", "test-en.tsv"]
    found = read_labels(TASKS["xnli"], folder, "de")
    gold = [line.split("\t")[2] for line in Path(download, "xnli/test-de.tsv").read_text().splitlines()]
    share = scores_of(pairs.results(), "xnli")["before", "accuracy", "de"]
    assert share == np.mean([one == two for one, two in zip(found, gold, strict=True)])


def test_what_is_there_is_not_made_again_and_other_options_are_refused(pairs, download, encoder):
    calls = []
    models = [f"{name}={path}" for name, path in pairs.models.items()]
    again = study(download, pairs.output, ["xnli"], *models, command=lambda words: calls.append(words) or 0)
    assert (again.train(), calls) == (0, [])
    with pytest.raises(InputError, match="learning_rate: the folder holds a fine-tuning with 0.01, this one has 0.1"):
        study(download, pairs.output, ["xnli"], *models, learning_rate=0.1).train()
    with pytest.raises(InputError, match="model: the folder holds a fine-tuning with"):
        study(download, pairs.output, ["xnli"], f"before={pairs.models['after']}").train()


def test_the_checkpoint_that_is_best_on_the_dev_part_predicts(pairs):
    trained = pairs.folder("before", TASKS["xnli"], "model")
    records = [json.loads(line) for line in Path(ModelFolder(trained).metrics_file).read_text().splitlines()]
    dev = {row["step"]: row["eval/dev/accuracy"] for row in records if "eval/dev/accuracy" in row}
    assert best_step(trained, TASKS["xnli"]) in {step for step, value in dev.items() if value == max(dev.values())}


def test_the_encoder_is_trained_together_with_its_head(pairs):
    trained = ModelFolder(pairs.folder("before", TASKS["xnli"], "model")).read_params()[0]
    start = ModelFolder(pairs.models["before"]).read_params()[0]
    layer = "layers_0.mlp_in.kernel"
    assert not np.allclose(trained[f"encoder.{layer}"], start[layer], atol=1e-3)
    assert np.array_equal(trained["encoder.embedding_head.kernel"], start["embedding_head.kernel"])  # no task reads it


def test_questions_are_learned_and_two_tasks_share_one_training(download, encoder, tmp_path):
    commands = []

    def command(words):
        commands.append(words[0])
        return cli.main(words)

    made = study(download, tmp_path / "out", ["xquad", "mlqa"], f"small={encoder}", epochs=40.0, command=command)
    assert made.train() == 0
    assert commands == ["train"]
    results = made.results()
    for name in ("xquad", "mlqa"):
        found = scores_of(results, name)
        assert {metric for _, metric, _ in found} == {"F1", "exact match"}
        assert found["small", "F1", "all"] > 0.5  # one word of nine
    answers = json.loads(Path(made.output, "small/predictions/mlqa/test-de.json").read_text())
    assert len(answers) == 24


def test_words_are_learned(download, encoder, tmp_path):
    pytest.importorskip("seqeval", reason="seqeval is not installed (newsembed[xtreme])")
    made = study(download, tmp_path / "out", ["udpos"], f"small={encoder}")
    assert made.train() == 0
    found = scores_of(made.results(), "udpos")
    assert found["small", "F1", "all"] > 0.8
    assert ("small", "precision", "all") in found
    assert ("small", "precision", "de") not in found
    text = Path(made.output, "small/predictions/udpos/test-de.tsv").read_text()
    assert len(text.strip().split("\n\n")) == 24


def test_a_run_that_was_stopped_ends_with_the_parameters_of_one_that_was_not(download, encoder, tmp_path, monkeypatch):
    whole = study(download, tmp_path / "whole", ["pawsx"], f"m={encoder}", epochs=4.0)
    assert whole.train() == 0
    stopped, finish = [], Loop._finish

    def noted(self, pending, **options):
        finish(self, pending, **options)
        if pending is not None and pending.step == 7 and not stopped:
            stopped.append(pending.step)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Loop, "_finish", noted)
    again = study(download, tmp_path / "again", ["pawsx"], f"m={encoder}", epochs=4.0)
    assert again.train() == 143
    assert stopped == [7]
    folder = ModelFolder(again.folder("m", TASKS["pawsx"], "model"))
    assert 7 <= folder.steps()[-1] < 20
    assert not os.path.exists(f"{again.output}/m/predictions")
    assert again.train() == 0
    one, two = (ModelFolder(made.folder("m", TASKS["pawsx"], "model")).read_params(20)[0] for made in (whole, again))
    jax.tree.map(np.testing.assert_array_equal, one, two)


def test_labels_beside_the_files_are_those_that_xtreme_left_out(pairs, download, tmp_path, capsys, monkeypatch):
    bare = tmp_path / "download"
    for part in ("train-en", "dev-en"):
        write(bare / f"xnli/{part}.tsv", Path(download, f"xnli/{part}.tsv").read_text())
    for language in ("en", "de"):
        rows = [line.split("\t") for line in Path(download, f"xnli/test-{language}.tsv").read_text().splitlines()]
        write(bare / f"xnli/test-{language}.tsv", "".join(f"{one}\t{two}\n" for one, two, _ in rows))
        write(tmp_path / f"labels/xnli/test-{language}.tsv", "".join(f"{label}\n" for *_, label in rows))
    model = f"m={pairs.models['before']}"
    arguments = ["finetune", "--task", "xnli", "--model", model, "--data", str(bare), "--output", str(tmp_path / "out")]
    arguments += [f"--{name}={value}" for name, value in QUICK.items()]
    monkeypatch.setattr(Finetune.__init__, "__defaults__", (cli.main,))  # not in processes of their own
    assert cli.main(arguments) == 0
    assert "m on xnli, fine-tuned: predictions only" in capsys.readouterr().out
    assert read_results(str(tmp_path / "out")).results[0].scores == ()
    assert cli.main([*arguments, "--labels", str(tmp_path / "label")]) == 2
    assert "label: --labels: no such folder" in capsys.readouterr().err
    assert cli.main([*arguments, "--labels", str(tmp_path / "labels")]) == 0
    found = scores_of(read_results(str(tmp_path / "out")), "xnli")
    expected = scores_of(pairs.results(), "xnli")
    assert found == {("m", *key[1:]): value for key, value in expected.items() if key[0] == "before"}


def test_what_does_not_fit_is_refused_before_anything_is_made(download, encoder, tmp_path):
    refuses("--model: got 'x'", study, download, tmp_path / "out", ["xnli"], "x")
    refuses("--model: got 'a=x'", study, download, tmp_path / "out", ["xnli"], "a=x", "a=y")
    refuses("--task: got mnli, expected one of", study, download, tmp_path / "out", ["mnli"], f"a={encoder}")
    with pytest.raises(InputError, match="--max_length: xnli has rows of 64 tokens, the model reads 48"):
        study(download, tmp_path / "out", ["xnli"], f"a={encoder}", max_length=64)
    static = write_encoder(tmp_path / "static", num_layers=0)
    refuses("the model has no layers", study, download, tmp_path / "out", ["xnli"], f"a={static}")
    refuses("model.json", study, download, tmp_path / "out", ["xnli"], f"a={tmp_path}")
    assert not (tmp_path / "out").exists()


def test_a_broken_training_file_is_named_and_leaves_no_examples(download, encoder, tmp_path):
    data = tmp_path / "download"
    write(data / "tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json", '{"data": [{"paragraphs": 3}]}')
    write_questions(data / "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.ko.dev.json", random.Random(0), 3)
    made = study(str(data), tmp_path / "out", ["tydiqa"], f"m={encoder}")
    refuses(r"train.json: data\[0\].paragraphs: got 3, expected a list", made.train)
    assert not os.path.exists(made.folder("m", TASKS["tydiqa"], "examples"))
