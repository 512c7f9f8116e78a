"""The command line of `newsembed evaluate`: which option reaches which benchmark, and which encoder a SPEC names."""

import argparse

import pytest
from newsembed.errors import InputError
from newsembed.evaluation import command
from newsembed.evaluation.baselines import BinaryWordEncoder, LsaEncoder
from newsembed.evaluation.command import encoder_factory, encoder_specs
from newsembed.evaluation.encoders import TfidfEncoder
from newsembed.evaluation.registry import Options
from newsembed.evaluation.results import Result


@pytest.fixture(autouse=True)
def suites(monkeypatch):
    """Benchmarks are what they were made from."""
    made = {suite: lambda *given, suite=suite: (suite, *given) for suite in ("events", "clustering", "sts")}
    monkeypatch.setattr(command, "SUITES", made)
    monkeypatch.setattr(command, "discover", lambda root, options: [("found", root, options)])


def asked(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command._asked(parser.parse_args(["--encoder", "a=tfidf", "--output", "o", *words]))


def test_every_option_of_a_protocol_has_its_own_argument():
    words = [
        *("--suite", "events", "--data", "d", "--cross_publisher", "--max_day_gap", "3", "--at_k", "4"),
        *("--label", "topic", "--min_cluster_size", "5", "--seeds", "2", "--languages", "de", "en"),
        *("--train_languages", "fr", "--folds", "6", "--head", "simlte", "--shots", "9", "1", "9"),
    ]
    expected = Options(
        cross_publisher=True, max_day_gap=3, at_k=4, label="topic", min_cluster_size=5, seeds=(0, 1),
        languages=("de", "en"), train_languages=("fr",), folds=6, head="simlte", shots=(1, 9),
    )  # fmt: skip
    assert asked(*words) == ([("events", "d", "events", expected)], {"a": "tfidf"}, {})
    for flag in ("cross_publisher", "cross_language", "exclude_near_copies", "intervals"):
        ((*_, options),) = asked("--suite", "events", "--data", "d", f"--{flag}")[0]
        assert options == Options(**{flag: True})
    ((*_, options),) = asked("--suite", "events", "--data", "d")[0]
    assert options == Options()


def test_each_suite_has_its_data_and_a_name_of_its_own():
    def named(*words):
        return [(suite, path, name) for suite, path, name, _ in asked(*words)[0]]

    one = ("--suite", "events", "--suite", "sts", "--data", "x/y")
    assert named(*one) == [("events", "x/y", "events"), ("sts", "x/y", "sts")]
    assert named(*one, "--data", "z") == [("events", "x/y", "events"), ("sts", "z", "sts")]
    twice = ("--suite", "sts", "--suite", "events", "--suite", "sts", "--data", "x/y", "--data", "e", "--data", "z")
    assert named(*twice) == [("sts", "x/y", "sts y"), ("events", "e", "events"), ("sts", "z", "sts z")]
    found, plain = asked("--suite", "all", "--suite", "events", "--data", "b", "--folds", "2")[0]
    assert found == ("found", "b", Options(folds=2))
    assert plain[:3] == ("events", "b", "events")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "d"], "--suite: missing"),
        (["--suite", "sts"], "--data: missing"),
        (["--suite", "sts", "--data", "d", "--seeds", "0"], "--seeds: got 0, expected at least 1"),
        (["--suite", "sts", "--data", "d", "--shots", "5", "0"], "--shots: got 0, expected at least 1"),
        (["--suite", "sts", "--data", "d", "--drop_leaked"], "--drop_leaked: given without --leakage"),
        (["--suite", "sts", "--data", "d", "--data", "e"], "--data: 1 suites with 2 data paths"),
        (["--recipe", "r", "--data", "d"], "--suite, --data: given with --recipe"),
        (["--recipe", "r", "--suite", "sts"], "--suite, --data: given with --recipe"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        asked(*words)


def test_encoders_have_names_of_their_own():
    assert encoder_specs(["a=tfidf", "b=lsa:3", "c=f=g"]) == {"a": "tfidf", "b": "lsa:3", "c": "f=g"}
    assert list(encoder_specs(["b=x", "a=y"])) == ["b", "a"]
    for text in ("tfidf", "=tfidf", "a="):
        with pytest.raises(InputError, match=f"got '{text}', expected NAME=SPEC"):
            encoder_specs([text])
    with pytest.raises(InputError, match="two encoders share a name"):
        encoder_specs(["a=x", "a=y"])


def test_a_spec_names_an_encoder_that_is_made_when_it_is_called():
    made = []
    own = {"model": lambda rest: made.append(rest) or "ours"}
    factory = encoder_factory("model:some/dir@7", own)
    assert made == []
    assert (factory(), made) == ("ours", ["some/dir@7"])
    assert encoder_factory("lsa", {})().digest == LsaEncoder().digest
    assert encoder_factory("lsa:7", {})().digest == LsaEncoder(7).digest
    assert encoder_factory("tfidf", {})().digest == TfidfEncoder().digest
    for spec, is_title_only in (("words", False), ("headline", True)):
        assert encoder_factory(spec, {})().digest == BinaryWordEncoder(is_title_only=is_title_only).digest
    with pytest.raises(InputError, match="lsa: got 'x'"):
        encoder_factory("lsa:x", {})()
    for spec in ("model", "model:", "tfidf:3", "no.such.module:f"):
        with pytest.raises(InputError, match="--encoder: got the encoder") as raised:
            encoder_factory(spec, own)
        assert raised.value.remedy == (
            "choose one of tfidf, lsa, words, headline, lsa:DIMENSIONS, wordvectors:FILE, st:DIR, model:DIR, "
            "or module:function of an importable module"
        )


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (Result("a", "x", "ok", texts=30, seconds=2.0), "a on x: ok, 30 texts in 2.0 s, 15 texts/s"),
        (Result("a", "x", "ok", texts=3, from_cache=True), "a on x: ok, 3 texts in 0.0 s, 0 texts/s (cached)"),
        (Result("a", "x", "failed", error="no model"), "a on x: failed, no model"),
    ],
)
def test_progress_is_a_line_for_each_result(capsys, result, line):
    command._print_progress(result)
    assert capsys.readouterr().err == f"{line}\n"
