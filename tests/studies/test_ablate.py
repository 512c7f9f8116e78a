"""The ablation: every row trained and scored once, failures kept to their row, resumed, and reported."""

import argparse
import json
import os
import shlex

import pytest
from newsembed.errors import InputError
from newsembed.launch import cli
from newsembed.studies import ablate


def parse(*words):
    parser = argparse.ArgumentParser()
    ablate.add_arguments(parser)
    return parser.parse_args([str(word) for word in words])


@pytest.fixture
def command(build, heldout, tmp_path):
    """Arguments of a small ablation."""
    bases = [
        "--base",
        "runs/train_demo.gin",
        "--pretrain_base",
        "runs/pretrain_demo.gin",
        "--steps",
        40,
        "--evaluations",
        2,
    ]
    return ["--data", build, "--suite", f"events={heldout}", "--output", tmp_path / "ablation", *bases, "--seeds", 2]


def numbers(tmp_path):
    return json.loads((tmp_path / "ablation" / "table.json").read_text())


def row_of(table, name):
    return next(row for row in table["rows"] if row["row"] == name)


def test_every_row_is_trained_for_each_seed_and_scored_at_each_step(command, bench, tmp_path):
    assert ablate.run(parse(*command), bench.tools()) == 0
    table = numbers(tmp_path)
    statuses = {row["row"]: row["status"] for row in table["rows"]}
    assert statuses.pop("without_translation") == "not applicable"
    assert set(statuses.values()) == {"ok"}
    assert len(statuses) == 12
    full = row_of(table, "full")
    assert [(cell["seed"], cell["step"]) for cell in full["scores"]] == [(0, 20), (0, 40), (1, 20), (1, 40)]
    # Two seeds: one shared pretraining and two ablated ones each, then twelve rows.
    assert len(bench.trained) == len(set(bench.trained)) == 2 * (1 + 2 + 12)
    assert (table["settings"]["table"], table["settings"]["evaluated_steps"]) == ("newsembed", [20, 40])
    assert table["settings"]["seeds"] == [0, 1]
    assert table["benchmarks"]["events"]["data"][0]["sha256"]
    assert table["versions"]["scipy"]


def test_rows_that_change_mining_train_on_other_data(command, bench, tmp_path):
    ablate.run(parse(*command), bench.tools())
    mined = {os.path.basename(output): jobs for output, jobs in bench.mined}
    assert mined.pop("without_evergreen_filter") == ["triplets", "examples"]
    assert set(mined) == {
        f"without_{name}"
        for name in ("title_to_body", "anchor_text_to_document", "title_to_document", "document_to_document")
    }
    assert set(map(tuple, mined.values())) == {("examples",)}
    texts = {
        row: (tmp_path / f"ablation/rows/{row}/seed-0/run.gin").read_text()
        for row in ("full", "without_topics", *mined)
    }
    assert len(
        {line for text in texts.values() for line in text.splitlines() if line.startswith("DATA_DIR")}
    ) == 1 + len(mined)
    assert "Contrastive.augmentations" in texts["without_title_to_body"]


def test_each_run_file_says_all_of_its_training(command, bench, tmp_path):
    from newsembed.training.gin_config import load_gin

    ablate.run(
        parse(*command, "--rows", "without_pretraining,pretraining_without_tlm", "--gin", "BATCH_SIZE = 16"),
        bench.tools(),
    )
    rows = tmp_path / "ablation" / "rows"
    texts = {
        row: (rows / row / "seed-1" / "run.gin").read_text()
        for row in ("full", "without_pretraining", "pretraining_without_tlm")
    }
    for text in texts.values():
        assert "SEED = 1" in text
        assert "BATCH_SIZE = 16" in text
        assert "KEEP_PERIOD = 20" in text
    assert f"INITIAL_CHECKPOINT_PATH = '{tmp_path}/ablation/pretrained/seed-1/model'" in texts["full"]
    assert texts["without_pretraining"].splitlines()[-1] == "INITIAL_CHECKPOINT_PATH = None"
    assert f"'{rows}/pretraining_without_tlm/seed-1/pretrained/model'" in texts["pretraining_without_tlm"]
    pretraining = (rows / "pretraining_without_tlm" / "seed-1" / "pretrained" / "run.gin").read_text()
    assert pretraining.splitlines()[-1] == 'MIXTURE_OR_TASK_NAME = "mlm"'
    for path in rows.rglob("run.gin"):
        load_gin([str(path)], [])


def test_a_failed_row_is_shown_as_failed_and_stops_no_other(command, bench, tmp_path, capsys):
    bench.failing = {"without_topics"}
    assert ablate.run(parse(*command, "--rows", "without_topics,without_triplets"), bench.tools()) == 1
    table = numbers(tmp_path)
    failed = row_of(table, "without_topics")
    assert (failed["status"], failed["z"], failed["verdict"]) == ("failed", None, "failed")
    assert failed["problems"] == dict.fromkeys(("0", "1"), "training: exit code 1: out of memory")
    assert row_of(table, "without_triplets")["status"] == "ok"
    text = (tmp_path / "ablation" / "table.md").read_text()
    assert "out of memory" in text
    assert "1 failed" in text
    assert "out of memory" in capsys.readouterr().out


def test_a_seed_that_fails_leaves_the_row_the_others(command, bench, tmp_path):
    bench.failing = {"without_topics/seed-1"}
    assert ablate.run(parse(*command, "--rows", "without_topics"), bench.tools()) == 1
    row = row_of(numbers(tmp_path), "without_topics")
    assert (row["status"], list(row["z_by_seed"])) == ("ok", ["0"])
    assert "1 of 2" in (tmp_path / "ablation" / "table.md").read_text()


def test_a_pretraining_that_fails_fails_its_seed_of_every_row_that_starts_from_it(command, bench, tmp_path):
    bench.failing = {"/pretrained/seed-0"}
    assert ablate.run(parse(*command, "--rows", "without_topics,without_pretraining"), bench.tools()) == 1
    table = numbers(tmp_path)
    assert row_of(table, "without_topics")["problems"]["0"].startswith("pretraining: exit code 1")
    assert row_of(table, "without_pretraining")["problems"] == {}
    assert not any("without_topics/seed-0" in folder for folder in bench.trained)


def test_a_failed_row_is_tried_again_and_nothing_else_is_repeated(command, bench, tmp_path):
    bench.failing = {"without_topics/seed-1"}
    ablate.run(parse(*command, "--rows", "without_topics,without_triplets"), bench.tools())
    bench.failing, bench.trained, bench.encoded = set(), [], []
    assert ablate.run(parse(*command, "--rows", "without_topics,without_triplets"), bench.tools()) == 0
    assert bench.trained == [f"{tmp_path}/ablation/rows/without_topics/seed-1"]
    assert {folder for folder, _ in bench.encoded} == set(bench.trained)
    assert numbers(tmp_path)["rows"][2]["problems"] == {}


def test_a_study_that_is_killed_goes_on_with_the_row_it_was_in(command, bench, tmp_path):
    train, killed = bench.train, []

    def dying(run, cores):
        if len(bench.trained) == 3:
            killed.append(run.folder)
            raise KeyboardInterrupt
        return train(run, cores)

    bench.train = dying
    with pytest.raises(KeyboardInterrupt):
        ablate.run(parse(*command, "--rows", "without_topics"), bench.tools())
    assert not (tmp_path / "ablation" / "table.json").exists()
    done = list(bench.trained)
    bench.train = train
    assert ablate.run(parse(*command, "--rows", "without_topics"), bench.tools()) == 0
    assert killed[0] in bench.trained[3:]
    assert not set(done) & set(bench.trained[3:])


def test_a_row_that_mines_badly_fails_alone(command, bench, tmp_path):
    mine = bench.mine

    def broken(work, output, changes, given, keeps):
        if "evergreen" in output:
            raise InputError("no triplets", path=output, remedy="look")
        return mine(work, output, changes, given, keeps)

    bench.mine = broken
    assert ablate.run(parse(*command, "--rows", "without_evergreen_filter,without_topics"), bench.tools()) == 1
    row = row_of(numbers(tmp_path), "without_evergreen_filter")
    assert row["status"] == "failed"
    assert "mining: " in row["reason"]
    assert "no triplets" in row["reason"]


def test_a_worse_row_agrees_with_what_is_expected(command, bench, tmp_path):
    bench.noise = lambda run, _step: lambda _documents: 3.0 if "without_topics" in run.folder else 0.01
    assert ablate.run(parse(*command, "--rows", "without_topics,without_triplets", "--seeds", 3), bench.tools()) == 0
    table = numbers(tmp_path)
    assert row_of(table, "without_topics")["verdict"] == "agrees"
    assert row_of(table, "without_topics")["minus_full"]["high"] < 0
    text = (tmp_path / "ablation" / "table.md").read_text()
    assert "Of 2 rows: 1 agrees" in text
    assert "events, mAP" in text
    assert (tmp_path / "ablation" / "plot.svg").read_text().startswith("<svg")


def test_the_same_folder_for_other_options_is_refused(command, bench):
    ablate.run(parse(*command, "--rows", "without_topics"), bench.tools())
    with pytest.raises(InputError, match="other options or data"):
        ablate.run(parse(*command, "--rows", "without_topics", "--gin", "LEARNING_RATE = 1e-4"), bench.tools())


def test_one_launch_a_row_then_the_table(command, bench, tmp_path, capsys):
    words = [*command, "--rows", "without_topics,without_triplets"]
    assert ablate.run(parse(*words, "--print_commands"), bench.tools()) == 0
    printed = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert [line[:2] for line in printed] == [["newsembed", "ablate"]] * 5
    for line in printed[:-1]:
        assert ablate.run(parse(*line[2:]), bench.tools()) == 0
        assert not (tmp_path / "ablation" / "table.json").exists()
    trained = list(bench.trained)
    assert len(trained) == len(set(trained)) == 2 * (1 + 3)
    assert ablate.run(parse(*printed[-1][2:]), bench.tools()) == 0
    assert bench.trained == trained
    assert len(numbers(tmp_path)["rows"]) == 3


def test_preparing_writes_every_run_file_for_other_launchers(command, bench, tmp_path):
    assert (
        ablate.run(parse(*command, "--rows", "without_topics,pretraining_without_mlm", "--prepare"), bench.tools()) == 0
    )
    assert sorted(bench.trained) == [f"{tmp_path}/ablation/pretrained/seed-{seed}" for seed in (0, 1)]
    there = {str(path.parent.relative_to(tmp_path / "ablation")) for path in (tmp_path / "ablation").rglob("run.gin")}
    assert {"rows/full/seed-0", "rows/without_topics/seed-1", "rows/pretraining_without_mlm/seed-0/pretrained"} <= there


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rows", "without_coffee"], "no such row"),
        (["--row", "without_coffee"], "no such row"),
        (["--table", "coffee"], "no such table: coffee"),
        (["--rows", "full"], "compared with nothing"),
        (["--data", "/no/such"], "no finished build"),
        (["--newsroom", "x"], "either mined data or a newsroom"),
        (["--suite", "coffee=x"], "SUITE=PATH"),
        (["--suite", "events=/no/such.jsonl"], "no such file"),
        (["--seeds", "0"], "at least 1"),
        (["--evaluations", "41"], "41 evaluations"),
        (["--base", "runs/coffee.gin"], "no such file"),
        (["--gin", "COFFEE = 3"], "COFFEE"),
        (["--pretrained", "/no/such"], "not a model folder"),
    ],
)
def test_bad_input_is_named_before_anything_runs(words, message, command, bench):
    with pytest.raises(InputError, match=message):
        ablate.run(parse(*command, *words), bench.tools())
    assert bench.trained == bench.mined == []


def test_an_input_of_the_build_that_is_not_given_again_fails_the_rows_that_need_it(command, bench, build, tmp_path):
    path = f"{build}/examples/manifest.json"
    with open(path) as file:
        manifest = json.load(file)
    manifest["inputs"] = {"translation_models": ["abc"]}
    manifest["counts"]["tallies"]["translation/translated"] = 5
    with open(path, "w") as file:
        json.dump(manifest, file)
    assert ablate.run(parse(*command, "--rows", "without_title_to_body,without_translation"), bench.tools()) == 1
    table = numbers(tmp_path)
    assert "--translation_models" in row_of(table, "without_title_to_body")["reason"]
    assert row_of(table, "without_translation")["status"] == "ok"


def test_the_command_is_listed_and_shows_an_example(capsys):
    assert "ablate" in cli.overview()
    with pytest.raises(SystemExit):
        cli.main(["ablate", "--help"])
    assert "newsembed ablate --newsroom" in capsys.readouterr().out
    assert cli.main(["ablate", "--newsroom", "x", "--output", "y", "--rows", "nothing"]) == 2
