"""`newsembed update`: which encoder is meant, what a training needs, and what its outcome changes."""

import contextlib
import dataclasses
import datetime
import types

import pytest
from newsembed.beam_pipelines.clean.rules import CleanOptions
from newsembed.errors import InputError
from newsembed.formats.archive import Run
from newsembed.launch import cli
from newsembed.launch import update as module
from newsembed.launch.update import check_training
from newsembed.updates.options import EncoderChoice


def given(**values):
    return module.OPTIONS(archive="a", **values).choice


def test_the_encoder_of_the_command_line_with_how_it_reads():
    assert given() is None
    assert given(encoder="model:m@4") == EncoderChoice("model:m@4")
    full = given(encoder="savedmodel:s", max_length=7, prompt="", long_documents="windows")
    assert full == EncoderChoice("savedmodel:s", 7, "", "windows")
    assert full.reading() == {"max_length": 7, "document_prompt": "", "long_documents": "windows"}
    for name, value in (("max_length", 3), ("prompt", ""), ("long_documents", "head")):
        with pytest.raises(InputError, match=f"--{name}: got no --encoder"):
            given(**{name: value})
    with pytest.raises(InputError, match="--encoder: got 'tfidf', expected one of .*model:DIR"):
        given(encoder="tfidf")


def test_an_archive_whose_encoder_is_elsewhere_asks_for_it(monkeypatch, tmp_path, refused, capsys):
    choices = {"moved": EncoderChoice("model:work/trained@40"), "here": EncoderChoice(f"savedmodel:{tmp_path}")}
    monkeypatch.setattr(module, "check_sources", lambda _: None)
    monkeypatch.setattr(module, "current_choice", lambda archive, given: given or choices[archive])
    monkeypatch.setattr(module, "encoder_from_spec", lambda spec, **_: spec)
    monkeypatch.setattr(module, "update", lambda _archive, encoder, *_, **__: encoder)
    loaded = []
    monkeypatch.setattr(module, "print_report", lambda _, report: loaded.append(report))
    shown = refused("update", "--archive", "moved", "--articles", "a.jsonl")
    assert "moved: the encoder of the archive was not found: model:work/trained@40" in shown
    assert "--encoder model:DIR" in shown
    assert cli.main(["update", "--archive", "here", "--articles", "a.jsonl"]) == 0
    assert cli.main(["update", "--archive", "moved", "--articles", "a.jsonl", "--encoder", "model:new"]) == 0
    assert loaded == [f"savedmodel:{tmp_path}", "model:new"]
    assert capsys.readouterr().err.endswith("loading model:new\n")  # it takes seconds in which nothing else is shown


def test_an_archive_keeps_its_options_of_clean_and_events(monkeypatch):
    clean = {"min_words": 20, "require_language": False, "earliest_date": "2001-02-03", "latest_date": None}
    kept = {"clean": clean, "events": {"days": 5}}
    monkeypatch.setattr(
        module, "read_runs", lambda uri: [Run(1, "", {}, {}, {}), Run(2, "", {}, kept, {})][: 2 * (uri == "a")]
    )
    given = []
    monkeypatch.setattr(module, "run", lambda options: given.append(options) or 0)
    for archive, *others in (["a"], ["a", "--clean.min_words=30"], ["new"]):
        assert cli.main(["update", "--archive", archive, *others]) == 0
    own = CleanOptions(min_words=20, require_language=False, earliest_date=datetime.date(2001, 2, 3))
    assert [one.clean for one in given] == [own, dataclasses.replace(own, min_words=30), CleanOptions()]
    assert [one.events.days for one in given] == [5, 5, 3]


def test_only_a_model_with_a_checkpoint_is_trained(monkeypatch):
    checked = []
    monkeypatch.setattr(module, "require", checked.append)
    monkeypatch.setattr(module, "check_trainable", lambda model, is_named: checked.append((model, is_named)))
    with pytest.raises(InputError, match="--encoder: got savedmodel:s: a SavedModel has no checkpoint to train from"):
        check_training(EncoderChoice("savedmodel:s"), "a")
    with pytest.raises(InputError, match="s3://a: --train: trains local archives only"):
        check_training(EncoderChoice("model:m"), "s3://a")
    assert checked == []
    check_training(EncoderChoice("model:some/dir@7"), "a")
    assert checked == [module._TRAIN, ("some/dir@7", False)]


CHOICE = EncoderChoice("model:now", 7, "p ", "head")


@pytest.fixture
def retrain(monkeypatch, capsys):
    """Runs a training of so many missing articles, which is accepted or not; returns what was done and printed."""

    def run(missing=0, accepted=True, is_asked=False, choice=CHOICE):
        done = []

        class Retraining:
            def __init__(self, *given):
                done.append(("training", *given))

            def missing_articles(self):
                return missing

            def run(self):
                return types.SimpleNamespace(number=3, model="/new", trial={"accepted": accepted, "score": 1})

        monkeypatch.setattr(module, "Retraining", Retraining)
        monkeypatch.setattr(
            module, "locked", lambda *given: done.append(("locked", *given)) or contextlib.nullcontext()
        )
        monkeypatch.setattr(module, "print_trial", lambda trial: done.append(("printed", trial)))
        monkeypatch.setattr(module, "keep_decision", lambda *given: done.append(("kept", *given)))
        monkeypatch.setattr(module, "replace_encoder", lambda *given: done.append(("replaced", *given)) or 9)
        monkeypatch.setattr(module, "encoder_from_spec", lambda spec, **options: (spec, options))
        monkeypatch.setattr(module, "trained_model", lambda archive, number: f"{archive}/trained-{number}")
        monkeypatch.setattr(module, "training_work", lambda archive: f"{archive}/work")
        module.retrain("a", choice, types.SimpleNamespace(least_new=50), ("--beam",), is_asked=is_asked)
        return done, capsys.readouterr().out

    return run


def test_the_encoder_that_replaces_that_of_the_archive_may_be_any(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(module, "current_choice", lambda _, given: asked.append(given) or CHOICE)
    monkeypatch.setattr(module, "encoder_from_spec", lambda spec, **_: spec)
    monkeypatch.setattr(module, "change_encoder", lambda *given: asked.append(given) or 4)
    options = module.UpdateCommandOptions(archive="a", encoder="model:other", replace_encoder=True)
    assert module.run(options) == 0
    assert asked == [None, ("a", "model:other", EncoderChoice("model:other"))]
    assert capsys.readouterr().out == "a: version 4 has the vectors of model:other\n"
    with pytest.raises(InputError, match="--replace_encoder: got no --encoder"):
        module.UpdateCommandOptions(archive="a", replace_encoder=True)


def test_a_training_waits_for_enough_articles(retrain):
    done, shown = retrain(missing=12)
    assert [name for name, *_ in done] == ["locked", "training"]
    assert done[0][1:] == ("a/work", "--train")
    _, archive, model, reading, options, beam = done[1]
    assert (archive, model, reading, options.least_new, beam) == ("a", "now", CHOICE.reading(), 50, ("--beam",))
    assert shown == "a: not trained: 12 more articles are needed to train again (--train.least_new=50)\n"
    with pytest.raises(InputError, match="--train.least_new: 12 more articles are needed"):
        retrain(missing=12, is_asked=True)


def test_a_refused_model_serves_nobody_and_its_decision_is_kept(retrain):
    done, shown = retrain(accepted=False, is_asked=True)
    assert done[2:] == [
        ("printed", {"accepted": False, "score": 1}),
        ("kept", "a", 3, {"accepted": False, "score": 1, "version": None}),
    ]
    assert shown == "a: the model stays; the trained one is in a/trained-3\n"


@pytest.mark.parametrize("first", ["", "model:first"])
def test_an_accepted_model_replaces_the_encoder_and_the_first_one_is_remembered(retrain, first):
    choice = EncoderChoice("model:now", 7, "p ", "head", training=2, first=first)
    done, shown = retrain(choice=choice)
    own = EncoderChoice("model:a/trained-3", 7, "p ", "head", training=3, first=first or "model:now")
    encoder = ("model:/new", {"progress": False, **choice.reading()})
    assert done[3:] == [("replaced", "a", encoder, own, {"accepted": True, "score": 1})]
    assert shown == "a: version 9 has the trained model, a/trained-3\n"
