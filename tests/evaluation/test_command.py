"""The command line of `newsembed evaluate`: which option reaches which benchmark, and which encoder a SPEC names."""

import dataclasses

import pytest
from benchmarking import parse
from newsembed.evaluation import command
from newsembed.evaluation.baselines import BinaryWordEncoder, LsaEncoder
from newsembed.evaluation.command import encoder_factory, encoder_specs
from newsembed.evaluation.encoders import TfidfEncoder
from refusals import refuses


def asked(*words):
    """The benchmarks of a command line."""
    return command._benchmarks(parse("--encoder", "a=tfidf", "--output", "o", *words))


def test_every_option_of_a_protocol_has_its_own_argument():
    words = ("--suite", "events", "clustering", "mldoc_laser", "bbc", "--data", "d")
    events, clustering, mldoc, bbc = asked(
        *words, "--cross_publisher", "--max_day_gap", "3", "--label", "topic", "--seeds", "2", "--languages", "de",
        "en", "--train_languages", "fr", "--folds", "6", "--head", "simlte", "--shots", "9", "1", "9",
    )  # fmt: skip
    assert (events.cross_publisher, events.max_day_gap) == (True, 3)
    assert (clustering.label, clustering.seeds) == ("topic", 2)
    assert (mldoc.languages, mldoc.train_languages, mldoc.folds) == (("de", "en"), ("fr",), 6)
    assert (bbc.head, bbc.protocol["shots"]) == ("simlte", [1, 9])
    (plain,) = asked("--suite", "events", "--data", "d")
    for flag in ("cross_publisher", "cross_language", "intervals"):
        assert asked("--suite", "events", "--data", "d", f"--{flag}") == [dataclasses.replace(plain, **{flag: True})]


def test_each_suite_has_its_data_and_a_name_of_its_own():
    def named(*words):
        return [(benchmark.path, benchmark.name) for benchmark in asked(*words)]

    assert named("--suite", "events", "sts", "--data", "x/y") == [("x/y", "events"), ("x/y", "sts")]
    assert named("--suite", "events", "sts", "--data", "x/y", "z") == [("x/y", "events"), ("z", "sts")]
    twice = ("--suite", "sts", "events", "sts", "--data", "x/y", "e", "z")
    assert named(*twice) == [("x/y", "sts y"), ("e", "events"), ("z", "sts z")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "d"], "--suite: missing"),
        (["--suite", "sts"], "--data: missing"),
        (["--suite", "sts", "--data", "d", "--seeds", "0"], "--seeds: got 0, expected at least 1"),
        (["--suite", "sts", "--data", "d", "--shots", "5", "0"], "--shots: got .*, expected at least 1"),
        (["--suite", "sts", "--data", "d", "--drop_leaked"], "--drop_leaked: given without --leakage"),
        (["--suite", "sts", "--data", "d", "e"], "--data: 1 suites with 2 data paths"),
        (["--recipe", "r", "--data", "d"], "--suite, --data: given with --recipe"),
        (["--recipe", "r", "--suite", "sts"], "--suite, --data: given with --recipe"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, message):
    refuses(message, asked, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--suite", "masakhanews_xy", "tatoeba", "--data", "d", "--languages", "eng"],
            "--languages: no suite asked for has it(?s:.*)leave it out, or ask for mldoc_laser, mldoc_svm, xnli",
        ),
        (["--recipe", "r", "--seeds", "2"], "--seeds: no suite asked for has it(?s:.*)write it in the recipe"),
        (["--mteb", "STS12", "--data", "d", "--label", "topic"], "--label: no suite asked for has it"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(words, message):
    refuses(message, command.run, parse("--encoder", "a=tfidf", "--output", "o", *words), {})


@pytest.mark.parametrize(
    "words",
    [
        ["--suite", "all", "--data", "d", "--languages", "de"],
        ["--recipe", "r", "--intervals"],
        ["--suite", "sts", "mldoc_svm", "--data", "d", "--folds", "2"],
    ],
)
def test_an_option_that_some_suite_may_have_is_taken(words):
    command._check_protocols(parse("--encoder", "a=tfidf", "--output", "o", *words))


def test_encoders_have_names_of_their_own():
    assert encoder_specs(["a=tfidf", "b=lsa:3", "c=f=g"]) == {"a": "tfidf", "b": "lsa:3", "c": "f=g"}
    assert list(encoder_specs(["b=x", "a=y"])) == ["b", "a"]
    for text in ("tfidf", "=tfidf", "a="):
        refuses(f"got '{text}', expected NAME=SPEC", encoder_specs, [text])
    refuses("two encoders share a name", encoder_specs, ["a=x", "a=y"])


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
    for number in ("x", "0"):
        refuses(f"lsa: got '{number}'", encoder_factory(f"lsa:{number}", {}))
    for spec in ("model", "model:", "tfidf:3", "no.such.module:f"):
        raised = refuses("--encoder: got the encoder", encoder_factory, spec, own)
        assert raised.remedy == (
            "choose one of tfidf, lsa, words, headline, lsa:DIMENSIONS, wordvectors:FILE, st:DIR, model:DIR, "
            "or module:function of an importable module"
        )
