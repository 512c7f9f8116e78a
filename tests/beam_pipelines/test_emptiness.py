"""Why a job wrote nothing, and which option keeps what it rejected."""

import types

import pytest
from newsembed.beam_pipelines.emptiness import why_empty

JOB = types.SimpleNamespace(switches={"no_author": "require_author=false"})


def why(out=0, read=0, rejected=(), failed=(), prefix=""):
    counts = {"in": read, "out": out, "rejected": dict(rejected), "failed": dict(failed)}
    return why_empty(JOB, {"counts": counts}, "/out", prefix)


def test_a_job_that_wrote_something_has_nothing_to_explain():
    assert why(out=1, read=9, rejected={"no_author": 8}) is None


def test_empty_inputs_are_named():
    found = why()
    assert (found.problem, found.path) == ("there was nothing to read: the inputs are empty", "/out")


def test_the_three_most_frequent_reasons_are_named_the_most_frequent_first():
    found = why(read=4000, rejected={"d": 1, "b": 500, "no_author": 2999}, failed={"c": 500})
    assert found.problem == (
        "nothing is left: 2,999 of 4,000 rejected as no_author, 500 of 4,000 failed as c, 500 of 4,000 rejected as b"
    )
    assert found.path == "/out"


@pytest.mark.parametrize(
    ("rejected", "failed", "remedy"),
    [
        ({"no_author": 2, "b": 1}, {}, "--clean.require_author=false keeps them"),
        ({"no_author": 1, "b": 2}, {}, "see `newsembed rejected /out`"),
        ({"no_author": 1}, {"no_author": 2}, "see `newsembed rejected /out`"),
    ],
)
def test_the_option_that_keeps_the_most_frequent_is_named(rejected, failed, remedy):
    assert why(read=3, rejected=rejected, failed=failed, prefix="clean.").remedy == remedy
