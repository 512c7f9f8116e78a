"""Training on an archive: accepted, refused, cut off at every step and resumed, and what cannot be trained."""

import ast
import hashlib
import itertools
import json
import os
import random
import shutil
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from newsembed.beam_pipelines.jobs import input_digest
from newsembed.formats import trust
from newsembed.formats.archive import last_number, read_runs
from newsembed.formats.digests import write_sums
from newsembed.formats.folders import decision_file, trained_model, training_work, trainings
from newsembed.formats.model_folder import ModelFolder
from newsembed.formats.parquet import read_records, write_shard
from newsembed.formats.records import Article, Triplet
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch.verify import verify
from newsembed.serving.index import DocumentIndex
from newsembed.serving.search import index_encoder
from newsembed.serving.specs import encoder_from_spec
from newsembed.studies.retrain import STEPS, Retraining, RetrainOptions
from newsembed.updates.options import EncoderChoice, current_choice
from newsembed.updates.replacement import REPLACEMENT_STEPS, keep_decision, replace_encoder
from refusals import refuses
from stream import Killed, article, articles_of, copied, events_of, kill_at, run

WORDS = ["".join(pair) for pair in itertools.product("bcdfghjklm", "aeiou")]
PIECES = [*SPECIAL_TOKENS, *WORDS, ".", *"0123456789", *(f"##{n}" for n in range(10)), "title"]
WIDTH, STEPS_TRAINED = 16, 3
CONFIG = """
BATCH_SIZE = 8
LEARNING_RATE = 0.02
TASK_FEATURE_LENGTHS = \\
    {'anchor_tokens': 16,
     'tokens': 24}
"""
TRAIN = RetrainOptions(steps=STEPS_TRAINED, held_out_days=3, least_new=10, least_events=4)
DAYS, EVENTS = 8, 4


def write_model(folder, *, good, step):
    """A model without layers: a good one has a vector for each word, a bad one two vectors for all words."""
    vocabulary = "".join(f"{piece}\n" for piece in PIECES).encode()
    shape = {"vocab_size": len(PIECES), "hidden_size": WIDTH, "embedding_size": WIDTH, "num_layers": 0, "num_heads": 1}
    shape |= {"mlp_size": 1, "max_length": 128, "num_topics": 2}
    shape |= {"positions": "rotary", "norm": "pre", "pooling": "mean"}
    description = {"encoder": shape, "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest()}
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(PIECES), WIDTH))
    table = table if good else table[np.arange(len(PIECES)) % 2]
    os.makedirs(folder)
    Path(folder, "vocab.txt").write_bytes(vocabulary)
    Path(folder, "model.json").write_text(json.dumps(description))
    path = os.path.abspath(ModelFolder(folder).checkpoint(step))
    with ocp.StandardCheckpointer() as checkpointer:
        bias = np.zeros(WIDTH)
        params = {"token_embedding": table, "mlm_bias": np.zeros(len(PIECES))}
        params |= {"output_norm": {"scale": np.ones(WIDTH), "bias": bias}}
        params |= {"embedding_head": {"kernel": np.eye(WIDTH), "bias": bias}}
        checkpointer.save(f"{path}/params", jax.tree.map(np.float32, params))
    write_sums(path)
    Path(folder, "config.gin").write_text(CONFIG)
    trust.allow(f"{folder}/config.gin")


def rows_of(days):
    """Reports of events by three publishers; the reports of an event share words."""
    rows = []
    for day in days:
        for event in range(EVENTS):
            own = random.Random(f"{day}/{event}").sample(WORDS, 6)
            for number in range(3):
                draw = random.Random(f"{day}/{event}/{number}")
                body = " ".join(draw.choices(own, k=30) + draw.choices(WORDS, k=10))
                name = (day * EVENTS + event) * 3 + number
                rows.append(article(name, f"{body}.", day, f"p{number}.example"))
    return rows


def event_of(one):
    return int(one.url.rpartition("/")[2]) // 3


def mine(given, output, options, beam_args, reused):
    """In place of the mining jobs: all pairs of reports of one event."""
    assert all(map(input_digest, given["articles"]))  # a build takes them
    articles = [one for path in given["articles"] for one in read_records(path, Article)]
    articles = list({one.doc_id: one for one in articles}.values())
    write_shard(f"{output}/clean/articles/part-00000-of-00001.parquet", articles, Article)
    groups = itertools.groupby(sorted(articles, key=event_of), event_of)
    pairs = [pair for _, group in groups for pair in itertools.permutations([one.doc_id for one in group], 2)]
    near, far = (1.0, np.nan, 1.0), (0.1, np.nan, 0.1)
    triplets = [Triplet(one, two, articles[0].doc_id, "en", near, far, 0, 400, 0.1) for one, two in pairs]
    write_shard(f"{output}/triplets/triplets/part-00000-of-00001.parquet", triplets, Triplet)


class Trains:
    """In place of `newsembed train`: writes a good or a bad model."""

    def __init__(self, *, good=True, code=0):
        self.good, self.code, self.calls = good, code, []

    def __call__(self, arguments):
        values = dict(one.removeprefix("--gin.").partition("=")[::2] for one in arguments if one.startswith("--gin."))
        self.calls.append({name: ast.literal_eval(value) for name, value in values.items()})
        if not self.code:
            folder = self.calls[-1]["MODEL_DIR"]
            shutil.rmtree(folder, ignore_errors=True)
            write_model(folder, good=self.good, step=self.calls[-1]["TRAIN_STEPS"])
        return self.code


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in ("good", "bad"):
        write_model(str(folder / name), good=name == "good", step=5)
    return folder


@pytest.fixture(scope="module")
def archives(models, tmp_path_factory):
    """An archive of each model with the same articles."""
    folder = tmp_path_factory.mktemp("archives")
    for name in ("good", "bad"):
        run_by(folder / f"{name}-archive", EncoderChoice(f"model:{models / name}"), range(DAYS))
    return folder


def run_by(archive, choice, days):
    """Updates an archive with the reports of some days."""
    return run(archive, rows_of(days), encoder=encoder_from_spec(choice.spec), choice=choice)


def decision(archive):
    """About the first training."""
    return json.loads(Path(decision_file(str(archive), 1)).read_text())


def training(archive, model, command, options=TRAIN, **more):
    places = (str(archive), str(model))
    return Retraining(*places, EncoderChoice("").reading(), options, command=command, mine=mine, **more)


def run_all(archive, model, train, reached=lambda _: None, options=TRAIN):
    """What ``newsembed update --train`` does, with the jobs and the trainer replaced."""
    archive = str(archive)
    outcome = training(archive, model, train, options, reached=reached).run()
    if not outcome.trial["accepted"]:
        keep_decision(archive, outcome.number, {**outcome.trial, "version": None}, reached)
        return outcome
    spec = f"model:{trained_model(archive, outcome.number)}"
    choice = EncoderChoice(spec, training=outcome.number, first=f"model:{model}")
    replace_encoder(archive, encoder_from_spec(f"model:{outcome.model}"), choice, outcome.trial, reached)
    return outcome


def test_a_better_model_takes_the_place_of_the_old_one(archives, models, tmp_path):
    archive, before = copied(archives / "bad-archive", tmp_path / "archive"), events_of(archives / "bad-archive")
    trains = Trains(good=True)
    outcome = run_all(archive, models / "bad", trains)
    mined = outcome.trial["results"]["mined"]
    assert outcome.trial["accepted"]
    assert (mined["events"], mined["articles"], mined["queries"]) == (12, 36, 36)
    assert mined["candidate"] > mined["serving"] + 0.2
    assert mined["difference"]["low"] > 0
    assert last_number(str(archive)) == 2
    # The vectors and the index are of the new model, the articles and the events are those of before.
    encoder = encoder_from_spec(f"model:{trained_model(str(archive), 1)}")
    index = DocumentIndex.load(str(archive))
    assert index.encoder_digest == encoder.digest == index_encoder(index).digest
    for row in articles_of(archive):
        np.testing.assert_allclose(row["vector"], encoder.encode([row["title"]], [row["body"]])[0], atol=1e-5)
    assert events_of(archive) == before
    decided = decision(archive)
    assert (decided["accepted"], decided["version"], decided["trained_on"]) == (True, 2, len(before))
    assert read_runs(str(archive))[-1].report["training"] == 1
    assert all(not result.wrong for result in verify(str(archive)))
    assert not os.path.exists(training_work(str(archive)))
    values = trains.calls[0]
    assert values["INITIAL_CHECKPOINT_PATH"] == str(models / "bad")
    assert (values["LEARNING_RATE"], values["BATCH_SIZE"], values["MIXTURE_OR_TASK_NAME"]) == (0.002, 8, "triplets")


def test_the_next_update_and_the_next_training_go_on_with_the_new_model(archives, models, tmp_path):
    archive = copied(archives / "bad-archive", tmp_path / "archive")
    run_all(archive, models / "bad", Trains(good=True))
    given = EncoderChoice(f"model:{models / 'bad'}")  # the line of cron is as before
    choice = current_choice(str(archive), given)
    assert (choice.spec, choice.training) == (f"model:{trained_model(str(archive), 1)}", 1)
    assert current_choice(str(archive), None) == choice
    other = EncoderChoice("model:elsewhere")
    refuses("--encoder: got model:elsewhere, but the archive began with", current_choice, str(archive), other)
    report = run_by(archive, choice, [DAYS])
    assert (report.new, report.version) == (EVENTS * 3, 3)
    assert current_choice(str(archive), None) == choice
    small = RetrainOptions(steps=STEPS_TRAINED, held_out_days=3, least_new=20, least_events=4)
    again = training(archive, trained_model(str(archive), 1), Trains(), small)
    assert again.missing_articles() == 20 - EVENTS * 3
    assert training(archive, trained_model(str(archive), 1), Trains()).missing_articles() == 0
    moved = shutil.move(archive, tmp_path / "moved")
    assert current_choice(str(moved), None).spec == f"model:{trained_model(str(moved), 1)}"


def test_a_worse_model_is_kept_aside_and_does_not_serve(archives, models, tmp_path):
    archive = copied(archives / "good-archive", tmp_path / "archive")
    before = last_number(str(archive))
    outcome = run_all(archive, models / "good", Trains(good=False))
    assert not outcome.trial["accepted"]
    assert outcome.trial["results"]["mined"]["difference"]["low"] < -0.01
    assert last_number(str(archive)) == before
    assert (decision(archive)["accepted"], decision(archive)["version"]) == (False, None)
    assert ModelFolder(trained_model(str(archive), 1)).steps() == [STEPS_TRAINED]
    assert sorted(os.listdir(archive / "trainings/000001/trial")) == ["archive_events.jsonl", "mined_events.jsonl"]
    # The next one has its own number; the model that was refused before is deleted, its decision stays.
    run_all(archive, models / "good", Trains(good=False))
    assert trainings(str(archive)) == [1, 2]
    assert not os.path.exists(trained_model(str(archive), 1))
    assert os.path.exists(decision_file(str(archive), 1))


@pytest.mark.parametrize("good", [True, False], ids=["accepted", "refused"])
def test_a_training_that_is_cut_off_at_any_step_leaves_the_version_before_and_is_resumed(
    archives, models, tmp_path, good
):
    name = "bad" if good else "good"
    archive, trains = copied(archives / f"{name}-archive", tmp_path / "archive"), Trains(good=good)
    before = last_number(str(archive))
    steps = (*STEPS, *(REPLACEMENT_STEPS if good else ("record", "tidy")))
    for step in steps:
        with pytest.raises(Killed):
            run_all(archive, models / name, trains, kill_at(step))
        assert all(not result.wrong for result in verify(str(archive)))
        is_published = good and steps.index(step) >= steps.index("publish")
        assert (last_number(str(archive)) == before) is not is_published
        if step in ("record", "tidy"):  # it is decided: a run now would be another training
            break
    assert len(trains.calls) == 1, "a finished training is not repeated"
    assert decision(archive)["version"] == (2 if good else None)
    whole = copied(archives / f"{name}-archive", tmp_path / "whole")
    run_all(whole, models / name, Trains(good=good))
    assert articles_of(archive) == articles_of(whole)
    assert current_choice(str(archive), None).training == current_choice(str(whole), None).training
    # What was left is removed by the next one, which needs new articles.
    assert training(archive, models / name, trains, RetrainOptions(least_new=5)).missing_articles() == 5


def test_an_update_between_a_training_and_its_continuation_loses_nothing(archives, models, tmp_path):
    archive = copied(archives / "bad-archive", tmp_path / "archive")
    with pytest.raises(Killed):
        run_all(archive, models / "bad", Trains(good=True), kill_at("embed"))
    choice = current_choice(str(archive), None)
    for day in (DAYS, DAYS + 1, DAYS + 2):  # the version that the training began with is deleted
        run_by(archive, choice, [day])
    run_all(archive, models / "bad", Trains(good=True))
    assert last_number(str(archive)) == 5
    encoder = encoder_from_spec(f"model:{trained_model(str(archive), 1)}")
    assert DocumentIndex.load(str(archive)).encoder_digest == encoder.digest
    assert len(articles_of(archive)) == (DAYS + 3) * EVENTS * 3


def test_a_training_that_fails_or_ends_early_says_what_to_do(archives, models, tmp_path):
    archive = copied(archives / "bad-archive", tmp_path / "archive")
    refuses("the training ended with exit code 3", training(archive, models / "bad", Trains(code=3)).run)
    early = training(archive, models / "bad", lambda arguments: 0)
    refuses("the training ended before its last step\n.*PATIENCE", early.run)
    other = training(archive, models / "bad", Trains(), RetrainOptions(steps=9))
    refuses("--train, options: a training was cut off with", other.run)
    assert training(archive, models / "bad", Trains()).missing_articles() == 0


def test_too_few_days_or_events_are_refused_before_training(archives, models, tmp_path):
    archive, trains = copied(archives / "bad-archive", tmp_path / "archive"), Trains()
    few = training(archive, models / "bad", trains, RetrainOptions(held_out_days=DAYS))
    refuses(r"--train\.held_out_days: articles of 8 days, of which the last 8 are held out", few.run)
    many = training(archive, models / "bad", trains, RetrainOptions(held_out_days=3, least_events=13))
    refuses("12 events of 3 days have reports of several publishers, fewer than 13", many.run)
    assert not trains.calls
    # The next run begins anew: with the articles of its day, and with other options.
    assert not os.path.exists(training_work(str(archive)))
    options = RetrainOptions(steps=STEPS_TRAINED, held_out_days=3, least_events=4)
    training(archive, models / "bad", trains, options).run()
    assert trains.calls
