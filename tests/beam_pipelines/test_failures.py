"""Errors inside pipelines become the error that the user can correct, however Beam hands them on."""

import errno
import os

import pytest
from newsembed.beam_pipelines.failures import input_error, named
from newsembed.errors import InputError

OWN = InputError("no labels", path="labels.tsv", remedy="label some")


def chained(error, cause=None, context=None):
    error.__cause__, error.__context__ = cause, context
    return error


@pytest.mark.parametrize(
    "error",
    [
        OWN,
        chained(RuntimeError("a"), cause=OWN),
        chained(RuntimeError("a"), context=chained(ValueError("b"), cause=OWN)),
    ],
)
def test_an_error_that_another_wraps_is_found(error):
    assert input_error(error, "/out") is OWN


@pytest.mark.parametrize("end", ["", " [while running 'Process(fail)/ParDo']", "\n\nmore of the traceback"])
def test_an_error_of_a_worker_is_read_from_the_text_of_its_traceback(end):
    last = f"newsembed.errors.InputError: labels.tsv: no labels\n  remedy: label some{end}"
    found = input_error(RuntimeError(f"newsembed.errors.InputError: the first\n\nTraceback:\n{last}"), "/out")
    assert (found.problem, found.remedy) == ("labels.tsv: no labels", "label some")
    bare = input_error(RuntimeError("newsembed.errors.InputError: no labels"), "/out")
    assert (bare.problem, bare.remedy) == ("no labels", None)


def test_other_causes_that_the_user_can_correct():
    lost = input_error(RuntimeError("failed in state FAILED: SDK worker disconnected: worker[x]"), "/out")
    assert (lost.problem, lost.path) == ("a worker process of the engine died", "/out")
    assert "finished shards are kept" in lost.remedy
    full = input_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "/out")
    assert "No space left on device" in full.problem
    assert input_error(ValueError("a bug"), "/out") is None


def test_the_cause_of_a_found_error_is_the_one_that_wrapped_it():
    wrapped = chained(RuntimeError("a"), cause=OWN)
    with pytest.raises(InputError) as raised, named("/out"):
        raise wrapped
    assert (raised.value, raised.value.__cause__) == (OWN, wrapped)
