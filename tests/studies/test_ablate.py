"""The ablation: every row trained and scored once, failures kept to their row, resumed, and reported."""

import json
import os
import shlex

import pytest
from manifests import write_manifest
from newsembed.errors import InputError
from newsembed.studies import ablate
from newsembed.studies.shared import newsroom
from newsembed.training.gin_config import load_gin
from refusals import refuses

TOY = """
title = "A toy"
note = "Expected is what the test wants."
counted = ["topics"]
newsroom_suites = [["events", "paraphrases.jsonl"]]
printed = { plain = { AP = 0.25 } }
rows = [
    { name = "plain", removes = "nothing" },
    { name = "slow", removes = "a large rate of learning", bindings = ["LEARNING_RATE = 1e-7"], expected = "higher" },
    { name = "cold", removes = "pretraining", bindings = ["LEARNING_RATE = 1e-7"], start = "none" },
    { name = "odd", removes = "the pretraining's own", bindings = ["LEARNING_RATE = 1e-7"], start = "own" },
    { name = "short", removes = "long texts", mining.pack.max_length = 64, not_needed = ["bitext"], data = "pack" },
    { name = "idle", removes = "what is not there", needs = [["examples", "examples", "pairs/"]] },
    { name = "words", removes = "the model", encoder = "headline" },
]
[defaults]
base = "runs/train_demo.gin"
pretrain_base = "runs/pretrain_demo.gin"
seeds = 2
evaluations = 2
steps = 40
"""


@pytest.fixture
def command(build, heldout, tmp_path):
    """Arguments of a small ablation."""
    bases = ["--base", "runs/train_demo.gin", "--pretrain_base", "runs/pretrain_demo.gin", "--steps", 40]
    more = ["--evaluations", 2, "--seeds", 2]
    return ["--data", build, "--suite", f"events={heldout}", "--output", tmp_path / "ablation", *bases, *more]


@pytest.fixture
def study(bench, parsed, command):
    """The exit status of the ablation with more words."""
    return lambda *words: ablate.run(parsed(ablate.OPTIONS, *command, *words), bench.tools())


@pytest.fixture
def toy(bench, parsed, build, heldout, tmp_path):
    """The exit status of an ablation by a table of a user."""
    (tmp_path / "toy.toml").write_text(TOY)
    words = ["--suite", f"events={heldout}", "--output", tmp_path / "ablation", "--table", tmp_path / "toy.toml"]
    return lambda *more: ablate.run(parsed(ablate.OPTIONS, "--data", build, *words, *more), bench.tools())


def numbers(tmp_path):
    return json.loads((tmp_path / "ablation" / "table.json").read_text())


def rows_of(tmp_path):
    return {row["row"]: row for row in numbers(tmp_path)["rows"]}


def run_files(tmp_path, *rows):
    return {row: (tmp_path / "ablation/rows" / row / "seed-1/run.gin").read_text() for row in rows}


def test_every_row_is_trained_for_each_seed_and_scored_at_each_step(study, bench, tmp_path):
    assert study() == 0
    rows = rows_of(tmp_path)
    statuses = {name: row["status"] for name, row in rows.items()}
    assert statuses.pop("without_translation") == "not applicable"
    assert set(statuses.values()) == {"ok"}
    assert len(statuses) == 14
    scores = rows["full"]["scores"]
    assert [(cell["seed"], cell["step"]) for cell in scores] == [(0, 20), (0, 40), (1, 20), (1, 40)]
    # Two seeds: one shared pretraining and two ablated ones each, then fourteen rows.
    assert len(bench.trained) == len(set(bench.trained)) == 2 * (1 + 2 + 14)
    table = numbers(tmp_path)
    assert (table["settings"]["table"], table["settings"]["evaluated_steps"]) == ("newsembed", [20, 40])
    assert table["benchmarks"]["events"]["data"][0]["sha256"]
    mined = {os.path.basename(output): jobs for output, jobs in bench.mined}
    assert mined.pop("without_evergreen_filter") == ["triplets", "examples"]
    assert set(map(tuple, mined.values())) == {("examples",)}
    assert len(mined) == 4
    texts = run_files(tmp_path, "full", "without_topics", *mined)
    data = {line for text in texts.values() for line in text.splitlines() if line.startswith("DATA_DIR")}
    assert len(data) == 1 + len(mined)
    assert "Contrastive.augmentations" in texts["without_title_to_body"]


def test_each_run_file_says_all_of_its_training(study, tmp_path):
    study("--rows", "without_pretraining,pretraining_without_tlm", "--gin", "BATCH_SIZE = 16")
    texts = run_files(tmp_path, "full", "without_pretraining", "pretraining_without_tlm")
    for text in texts.values():
        assert "SEED = 1\nBATCH_SIZE = 16\n" in text
        assert "KEEP_PERIOD = 20" in text
    assert f"INITIAL_CHECKPOINT_PATH = '{tmp_path}/ablation/pretrained/seed-1/model'" in texts["full"]
    own = ["# runs/ablation_without_pretraining.gin", "INITIAL_CHECKPOINT_PATH = None"]
    assert texts["without_pretraining"].splitlines()[-2:] == own
    rows = tmp_path / "ablation" / "rows"
    assert f"'{rows}/pretraining_without_tlm/seed-1/pretrained/model'" in texts["pretraining_without_tlm"]
    pretraining = (rows / "pretraining_without_tlm/seed-1/pretrained/run.gin").read_text()
    assert pretraining.splitlines()[-1] == 'MIXTURE_OR_TASK_NAME = "mlm"'
    for path in rows.rglob("run.gin"):
        load_gin([str(path)], [])


def test_a_failed_row_is_shown_and_tried_again_and_nothing_else_is_repeated(study, bench, tmp_path, capsys):
    bench.failing = {"without_topics", "without_triplets/seed-1"}
    assert study("--rows", "without_topics,without_triplets") == 1
    rows, problem = rows_of(tmp_path), "training: exit code 1: out of memory"
    failed = rows["without_topics"]
    assert (failed["status"], failed["z"], failed["verdict"]) == ("failed", None, "failed")
    assert failed["problems"] == {"seed 0": problem, "seed 1": problem}
    assert (rows["without_triplets"]["status"], list(rows["without_triplets"]["z_by_seed"])) == ("ok", ["0"])
    text = (tmp_path / "ablation" / "table.md").read_text()
    assert f"- without_topics, seed 0: {problem}" in text
    assert "| 1 of 2 |" in text
    assert "1 failed" in capsys.readouterr().out
    bench.failing, bench.trained, bench.encoded = set(), [], []
    assert study("--rows", "without_topics,without_triplets") == 0
    assert {os.path.relpath(folder, tmp_path / "ablation/rows") for folder in bench.trained} == {
        "without_topics/seed-0", "without_topics/seed-1", "without_triplets/seed-1",
    }  # fmt: skip
    assert {folder for folder, _ in bench.encoded} == set(bench.trained)


def test_a_pretraining_that_fails_fails_its_seed_of_every_row_that_starts_from_it(study, bench, tmp_path):
    bench.failing = {"/pretrained/seed-0"}
    assert study("--rows", "without_topics,without_pretraining") == 1
    rows = rows_of(tmp_path)
    assert rows["without_topics"]["problems"]["seed 0"].startswith("pretraining: exit code 1")
    assert rows["without_pretraining"]["problems"] == {}
    assert not any("without_topics/seed-0" in folder for folder in bench.trained)


def test_a_row_that_mines_badly_fails_alone(study, bench, tmp_path):
    mine = bench.mine

    def broken(work, output, changes, given, keeps):
        if "evergreen" in output:
            raise InputError("no triplets", path=output, remedy="look")
        return mine(work, output, changes, given, keeps)

    bench.mine = broken
    assert study("--rows", "without_evergreen_filter,without_topics") == 1
    row = rows_of(tmp_path)["without_evergreen_filter"]
    assert row["status"] == "failed"
    assert "no triplets" in row["problems"]["mining"]


def test_on_a_cluster_the_printed_commands_train_and_the_study_finds_them_trained(
    study, bench, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("NEWSEMBED_IMPORT", "mine,other")
    words = ("--rows", "without_topics,pretraining_without_mlm")
    assert study(*words, "--print_commands") == 0
    assert sorted(bench.trained) == [f"{tmp_path}/ablation/pretrained/seed-{seed}" for seed in (0, 1)]
    assert not (tmp_path / "ablation/table.json").exists()
    printed = [line.split(" && ") for line in capsys.readouterr().out.splitlines() if line.startswith("newsembed")]
    assert sorted(map(len, printed)) == [1] * 4 + [2] * 2  # a row with its own pretraining has two commands
    for one in (one for line in printed for one in line):
        *program, gin = shlex.split(one)
        assert program == ["newsembed", "--import=mine", "--import=other", "train"]
        folder = gin.removeprefix("--gin_file=").removesuffix("/run.gin")
        assert os.path.exists(f"{folder}/run.gin")
        for step in (20, 40):
            os.makedirs(f"{folder}/model/checkpoints/{step}")
    bench.trained = []
    assert study(*words) == 0
    assert [os.path.basename(folder) for folder in bench.trained] == ["pretrained"] * 2  # they end with step 60
    assert len(numbers(tmp_path)["rows"]) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rows", "without_coffee"], "no such row"),
        (["--table", "coffee"], "no such table: coffee"),
        (["--rows", "full"], "compared with nothing"),
        (["--data", "/no/such"], "no finished build"),
        (["--newsroom", "x"], "either mined data or a newsroom"),
        (["--suite", "coffee=x"], "SUITE=PATH"),
        (["--suite", "events=/no/such.jsonl"], "no such file"),
        (["--suite", f"bbc={os.path.dirname(__file__)}"], "no documents found"),
        (["--evaluations", "41"], "41 evaluations"),
        (["--base", "runs/coffee.gin"], "no such file"),
        (["--gin", "COFFEE = 3"], "COFFEE"),
    ],
)
def test_bad_input_is_named_before_anything_runs(words, message, study, bench):
    refuses(message, study, *words)
    assert bench.trained == bench.mined == []


def test_an_input_of_the_build_that_is_not_given_again_fails_the_rows_that_need_it(study, build, tmp_path):
    path = f"{build}/examples/manifest.json"
    with open(path) as file:
        manifest = json.load(file)
    manifest["inputs"] = {"translation_models": ["abc"]}
    manifest["counts"]["tallies"]["translation/translated"] = 5
    with open(path, "w") as file:
        json.dump(manifest, file)
    assert study("--rows", "without_title_to_body,without_translation") == 1
    rows = rows_of(tmp_path)
    assert "--translation_models" in rows["without_title_to_body"]["problems"]["mining"]
    assert rows["without_translation"]["status"] == "ok"


# A table of a user


def test_a_table_of_a_user_runs(toy, bench, build, tmp_path):
    bench.noise = lambda run, _step: lambda _documents: 0.01 if "/slow/" in run.folder else 2.0
    with open(f"{build}/pack/manifest.json") as file:
        manifest = json.load(file) | {"inputs": {"bitext": ["abc"]}}
    with open(f"{build}/pack/manifest.json", "w") as file:
        json.dump(manifest, file)
    assert toy("--seeds", 3) == 0
    table, rows = numbers(tmp_path), rows_of(tmp_path)
    statuses = {name: row["status"] for name, row in rows.items()}
    assert statuses == dict.fromkeys(rows, "ok") | {"idle": "not applicable"}
    assert [rows[name]["expected"] for name in ("plain", "slow", "cold")] == ["-", "higher", "lower"]
    assert rows["slow"]["verdict"] == "agrees"
    assert (rows["plain"]["examples"], rows["words"]["examples"]) == ({"topics": 30}, {"topics": 0})
    assert (table["settings"]["table"], table["settings"]["steps"]) == ("toy", 40)
    # A row without training is scored once and stands beside the others; titles name the events.
    assert {score["value"] for score in rows["words"]["scores"]} == {1.0}
    assert {(score["seed"], score["step"]) for score in rows["words"]["scores"]} == {
        (seed, step) for seed in range(3) for step in (20, 40)
    }
    assert (tmp_path / "ablation/rows/words/evaluation/results.json").is_file()
    text = (tmp_path / "ablation/table.md").read_text()
    for shown in ("# A toy", "| seeds | topics |", "Expected is what the test wants.", "| plain | 0.2500 |"):
        assert shown in text
    assert "idle: nothing to remove: the examples job counts no pairs" in text


def test_a_row_starts_trains_and_mines_as_it_says(toy, bench, build, tmp_path):
    assert toy() == 0
    study = tmp_path / "ablation"
    texts = run_files(tmp_path, "plain", "slow", "cold", "odd", "short")
    initial = {
        row: next(line.partition(" = ")[2] for line in text.splitlines() if line.startswith("INITIAL"))
        for row, text in texts.items()
    }
    assert initial == dict.fromkeys(texts, f"'{study}/pretrained/seed-1/model'") | {
        "cold": "None",
        "odd": f"'{study}/rows/odd/seed-1/pretrained/model'",
    }
    own = "LEARNING_RATE = 1e-7\n"
    assert {row for row, text in texts.items() if text.endswith(own)} == {"slow", "cold"}
    assert (study / "rows/odd/seed-1/pretrained/run.gin").read_text().endswith(own)
    assert bench.mined == [(f"{study}/data/short", ["pack"])]
    assert f"DATA_DIR = '{study}/data/short/pack'" in texts["short"]
    assert f"DATA_DIR = '{build}/examples'" in texts["plain"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title", "titel", "unexpected keyword argument 'titel'"),
        ("removes", "removed", "'removed'"),
        ("slow", "plain", "expected a control and other rows, each name once"),
        ("[", "", "cannot be read: "),
    ],
)
def test_a_table_that_cannot_be_read_is_named(toy, tmp_path, old, new, message):
    (tmp_path / "toy.toml").write_text(TOY.replace(old, new, 1))
    refuses(f"toy.toml: .*{message}", toy)


# A study on a newsroom, and the table of three teachers


@pytest.fixture
def on_newsroom(build, heldout, tmp_path, monkeypatch):
    """Arguments of a study on a newsroom that is mined, with its benchmarks."""
    places = newsroom.Places(str(tmp_path))
    write_manifest(f"{build}/entities", "entities", tallies={"mentions": 7})
    write_manifest(f"{build}/pack", "pack", examples={"mlm/en": 5}, max_length=128)
    monkeypatch.setattr(newsroom, "find_newsroom", lambda *_arguments, **_options: places)
    monkeypatch.setattr(newsroom, "write_set", lambda *_: None)
    (tmp_path / "newsroom").mkdir()
    with open(heldout) as file:
        rows = [json.loads(line) for line in file]
    for name in ("heldout.jsonl", "paraphrases.jsonl", newsroom.ACROSS_LANGUAGES):
        with open(tmp_path / "newsroom" / name, "w") as file:
            for row in rows:
                language = "de" if row["publisher"] == "c" else "en"
                file.write(json.dumps(row | {"language": language}) + "\n")
    return ["--newsroom", tmp_path, "--output", tmp_path / "ablation"]


@pytest.fixture
def jobs(monkeypatch):
    """Jobs of the table that only write a manifest: (job, inputs, options) of each."""
    ran = []

    def execute(job, inputs, output, options, _beam, *_progress):
        ran.append((job.name, inputs, options))
        examples = {"mlm/en": 5, "tlm/en-de": 4} if job.name == "pack" else {}
        write_manifest(output, job.name, digest="a" * 16, examples=examples)

    monkeypatch.setattr("newsembed.studies.ablate.rows.execute", execute)
    return ran


def test_each_row_of_supervision_changes_one_teacher_and_every_language_is_reported(
    on_newsroom, jobs, bench, parsed, build, tmp_path
):
    study, names = tmp_path / "ablation", ("all", "without_topics", "without_entities_across", "without_mined_pairs")
    words = [*on_newsroom, "--table", "supervision", "--seeds", 2, "--steps", 4, "--pretrain_steps", 4]
    assert ablate.run(parsed(ablate.OPTIONS, *words), bench.tools()) == 0
    # Mined with an encoder that was pretrained on the build's own pairs, packed without any other pairs.
    assert bench.trained[0] == f"{study}/pair_finder"
    assert f"DATA_DIR = '{build}/pack'" in (study / "pair_finder/run.gin").read_text()
    (first, inputs, _), (second, pack_inputs, pack_options) = jobs
    assert (first, inputs["encoder"]) == ("bitext", (f"model:{study}/pair_finder/model",))
    assert (second, pack_inputs["bitext"], pack_options.max_length) == ("pack", (f"{study}/data/bitext",), 128)
    again = ["vectors", "neighbors", "triplets", "examples"]
    assert bench.mined == [(f"{study}/data/without_entities_across", again)]
    texts = run_files(tmp_path, *names)
    data = {row: next(line for line in text.splitlines() if line.startswith("DATA_DIR")) for row, text in texts.items()}
    assert data == dict.fromkeys(names, f"DATA_DIR = '{build}/examples'") | {
        "without_entities_across": f"DATA_DIR = '{study}/data/without_entities_across/examples'"
    }
    own = "MIXTURE_OR_TASK_NAME = "
    assert [row for row, text in texts.items() if text.splitlines()[-1].startswith(own)] == ["without_topics"]
    alone = (study / "rows/without_mined_pairs/seed-1/pretrained/run.gin").read_text()
    assert alone.splitlines()[-1] == 'MIXTURE_OR_TASK_NAME = "mlm"'
    for text in (alone, (study / "pretrained/seed-1/run.gin").read_text()):
        assert f"DATA_DIR = '{study}/data/pack'" in text
    parts = numbers(tmp_path)["comparisons"]
    kinds = {(name, part) for name in ("events", "events_across") for part in ("all", "en", "de")}
    assert {(one["benchmark"], one["part"]) for one in parts} == kinds
    assert {one["row"] for one in parts} == set(names)
    assert all(one["test"]["method"] == "resamples" for one in parts if one["row"] != "all")
    assert "| events_across | mAP de | without_topics | 8 |" in (study / "table.md").read_text()


def test_pairs_are_found_by_the_encoder_that_is_given_or_on_a_newsroom_by_one_that_is_trained(
    on_newsroom, jobs, bench, parsed, build, heldout, tmp_path
):
    words = ["--table", "supervision", "--bitext_encoder", "st:labse", "--known_pairs", "dev.de,dev.en", "--seeds", 1]
    assert ablate.run(parsed(ablate.OPTIONS, *on_newsroom, *words), bench.tools()) == 0
    assert (jobs[0][1]["encoder"], jobs[0][1]["known_pairs"]) == (("st:labse",), ("dev.de,dev.en",))
    assert not any("pair_finder" in folder for folder in bench.trained)
    bench.failing, words = {"pair_finder"}, ["--table", "supervision", "--output", tmp_path / "other"]
    with pytest.raises(InputError, match="(?s)pair_finder/train.log.*was not trained: exit code 1"):
        ablate.run(parsed(ablate.OPTIONS, *on_newsroom, *words), bench.tools())
    with pytest.raises(InputError, match="(?s)--bitext_encoder: not given.*name an encoder"):
        ablate.run(parsed(ablate.OPTIONS, "--data", build, "--suite", f"events={heldout}", *words), bench.tools())
