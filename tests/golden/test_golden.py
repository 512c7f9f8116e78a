"""What every job, three trainings, searches and updates give on a small newsroom, beside the recorded values.

``NEWSEMBED_RECORD_GOLDEN=1 pytest tests/golden`` records them again. A value changes on purpose only: read the
difference, and say in the commit what changed and why.
"""

import collections
import json
import os
from pathlib import Path

import golden_commands
import golden_values
import newsembed
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

RECORD = Path(__file__).with_name("golden.json")
JOBS = "extract clean vocabulary entities vectors pack neighbors triplets topics examples".split()
BUILD = (
    "build --warc warc/*.warc --bitext newsroom/bitext.tsv --output work --vocabulary.size=2000 --pack.max_length=64 "
    "--examples.max_length=48 --examples.augmentations_per_triplet=2 --clean.require_author=true --direct_num_workers=1"
).split()
QUERIES = (
    "flood in the river valley",
    "election of a mayor",
    "striker scores in the cup final",
    "strike at the harbour",
    "fire in a factory",
    "court sentences a banker",
    "Hochwasser am Fluss",
    "elecciones municipales",
    "budget of the ministry",
    "storm",
    "new museum opens",
    "merger of two companies",
)


def train(gin_file, output, data, length, *options, **macros):
    """A training of twenty steps that logs each of them and cuts texts at `length` tokens."""
    names = ("tokens",) if "pretrain" in gin_file else ("anchor_tokens", "positive_tokens", "negative_tokens", "tokens")
    lengths = dict.fromkeys(names, length) | ({} if "pretrain" in gin_file else {"topic_ids": 8})
    values = {
        "MODEL_DIR": output,
        "DATA_DIR": data,
        "VOCABULARY_PATH": "work/vocabulary/vocab.txt",
        "LOG_PERIOD": 1,
        "TRAIN_STEPS": 20,
        "CHECKPOINT_PERIOD": 10,
        "BATCH_SIZE": 16,
        "TASK_FEATURE_LENGTHS": lengths,
        **macros,
    }
    return [
        "train",
        f"--gin_file=runs/{gin_file}.gin",
        *(f"--gin.{k}={json.dumps(v)}" for k, v in values.items()),
        *options,
    ]


# Adam divides a gradient that is 0 but for its rounding by its own size: with a small epsilon, processors that round in
# another way give another model after a few steps.
STEADY = ["--gin.adam.moments=@Moments()", "--gin.Moments.epsilon=1e-3"]
# Wider than the texts' rank, latent semantics would be noise.
NARROW = ["--gin.EncoderConfig.hidden_size=32", "--gin.EncoderConfig.embedding_size=32"]
ENCODER = [
    train("pretrain_demo", "pretrained", "work/pack", 64, WHITENING_ROWS=256),
    train("train_demo", "trained", "work/examples", 48, *STEADY, INITIAL_CHECKPOINT_PATH="pretrained"),
    ["index", "--model", "trained", "--input", "work/clean/articles", "--output", "index"],
    *(
        ["search", "--index", "index", "--json", f"--mode={mode}", query]
        for query in QUERIES
        for mode in ("words", "vectors")
    ),
    ["evaluate", *("--encoder=tfidf=tfidf", "--encoder=random=random:trained", "--encoder=trained=model:trained")]
    + [*("--suite=events", "--data=newsroom/heldout.jsonl", "--suite=sts", "--data=newsroom/sts.tsv")]
    + ["--cross_publisher", "--output=evaluation"],
]
UPDATES = 4  # a quarter of the articles each, in the order of their dates
UPDATE = [
    "update",
    "--archive=archive",
    "--encoder=model:static",
    "--clean.require_author=false",
    "--events.threshold=0.5",
]
STATIC = [train("train_static", "static", "work/examples", 48, *NARROW, *STEADY, BATCH_SIZE=32, WHITENING_ROWS=512)]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder with newsroom/, warc/ and work/."""
    folder = tmp_path_factory.mktemp("golden")
    golden_commands.run(
        folder,
        [["newsroom", "--output", "newsroom", "--scale=0.1"], [golden_commands.WARCS, "newsroom", "warc"], BUILD],
    )
    return folder


def updates(folder):
    """Command lines of updates with a quarter of the clean articles each, in the order of their dates."""
    tables = [pq.read_table(path) for path in sorted((folder / "work/clean/articles").glob("*.parquet"))]
    rows = pa.concat_tables(tables).sort_by([("byline_date", "ascending"), ("doc_id", "ascending")])
    for number in range(UPDATES):
        start, end = (rows.num_rows * place // UPDATES for place in (number, number + 1))
        pq.write_table(rows.slice(start, end - start), folder / f"update-{number}.parquet")
        yield [*UPDATE, f"--articles=update-{number}.parquet"]


@pytest.fixture(scope="session")
def trained(built):
    """The folder, and what each command of ENCODER printed; the static model is trained after it."""
    return built, golden_commands.run(built, [*ENCODER, *STATIC, *updates(built)])[: len(ENCODER)]


def check(section, found, rtol=1e-3):
    """Compares values with the recorded ones, or records them."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    found = json.loads(json.dumps(found))
    if os.environ.get("NEWSEMBED_RECORD_GOLDEN") == "1":
        text = json.dumps(record | {section: found}, indent=1, sort_keys=True, ensure_ascii=False)
        RECORD.write_text(text + "\n", encoding="utf-8")
        return
    lines = golden_values.differences(found, record[section], rtol)
    assert not lines, "\n".join(lines[:60])


@pytest.mark.parametrize("job", JOBS)
def test_a_job_writes_the_same(built, job):
    check(f"job {job}", golden_values.job_values(built / "work" / job))


@pytest.mark.parametrize("name", ["pretrained", "trained", "static"])
def test_a_training_has_the_same_losses(trained, name):
    folder, _ = trained
    check(f"training {name}", golden_values.losses(folder / name))


def test_searches_find_the_same(trained):
    _, printed = trained
    found = {
        f"{command[4]} {command[5]}": " ".join(hit["doc_id"][:6] for hit in json.loads(text))
        for command, text in zip(ENCODER, printed, strict=True)
        if command[0] == "search"
    }
    check("search", found)


def test_benchmarks_have_the_same_scores(trained):
    folder, _ = trained
    results = json.loads((folder / "evaluation" / "results.json").read_text(encoding="utf-8"))["results"]
    scores = {
        f"{one['encoder']}, {one['benchmark']}: {score['metric']} {score['part']}": round(score["value"], 4)
        for one in results
        for score in one["scores"]
    }
    check("scores", scores)


def test_updates_find_the_same_events(trained):
    folder, _ = trained
    rows = newsembed.open(str(folder / "archive")).to_arrow(["doc_id", "event_id"]).to_pylist()
    events = collections.defaultdict(list)
    for row in rows:
        events[row["event_id"]].append(row["doc_id"])
    several = {event[:6]: " ".join(sorted(one[:6] for one in ids)) for event, ids in events.items() if len(ids) > 1}
    check("events", {"articles": len(rows), "events": len(events), "of several articles": several})
