"""What the terminal shows of jobs: their numbers, and why one wrote nothing."""

import types

import pytest
from newsembed.beam_pipelines import progress as progress_module
from newsembed.beam_pipelines.progress import JobProgress, why_empty

JOB = types.SimpleNamespace(name="clean", switches={"no_author": "require_author=false"})


def why(out=0, read=0, rejected=(), failed=()):
    counts = {"in": read, "out": out, "rejected": dict(rejected), "failed": dict(failed)}
    return why_empty(JOB, {"articles": ["a.csv"], "warc": []}, {"counts": counts}, "/out", "clean.")


@pytest.mark.parametrize(
    ("rejected", "failed", "problem", "remedy"),
    [
        (
            {"no_author": 2_999, "b": 500, "d": 1},
            {"c": 500},
            "nothing is left: 2,999 of 4,000 no_author, 500 of 4,000 b, 500 of 4,000 c",
            "--clean.require_author=false keeps them",
        ),
        ({"no_author": 1}, {"c": 3_999}, "nothing is left: 3,999 of 4,000 c", "see `newsembed rejected /out`"),
    ],
)
def test_an_empty_result_is_explained_with_the_option_that_keeps_the_most_frequent(rejected, failed, problem, remedy):
    found = why(read=sum({**rejected, **failed}.values()), rejected=rejected, failed=failed)
    assert found.problem.startswith(problem)
    assert (found.path, found.remedy) == ("/out", remedy)


def test_inputs_that_are_empty_are_named():
    assert str(why()).startswith("a.csv: there was nothing to read")


def test_a_job_that_wrote_something_has_nothing_to_explain():
    assert why(out=1, read=9, rejected={"no_author": 8}) is None


def test_a_phase_is_named_when_it_begins_where_no_bar_can_be_shown(capsys):
    with JobProgress("lift") as progress:
        for done in range(2):
            progress("teacher", done, 2, "")
        assert capsys.readouterr().err == "lift: teacher …\n"


def test_a_job_that_is_skipped_shows_nothing(capsys):
    with JobProgress("lift"):
        pass
    assert capsys.readouterr().err == ""


def test_a_long_phase_says_how_far_it_is_where_no_bar_can_be_shown(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress_module, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    with JobProgress("lift") as progress:
        for done in range(5):
            progress("words", 1, 1, "")
            progress("teacher", done, 5, f"{done} MB")
            now[0] += 16
        said = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    lines = ["lift: teacher …", "lift: teacher 2 of 5 parts 2 MB", "lift: teacher 4 of 5 parts 4 MB"]
    assert said == ["lift: words …", *lines]
