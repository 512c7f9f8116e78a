"""newsembed rejected: counts and samples of each reason, of one job or of all jobs of a work folder."""

import pytest
from newsembed.formats import parquet
from newsembed.formats.records import DeadLetter


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    letters = [DeadLetter(f"doc{n:02d}", "rejected", "no_author", "", f"Title [{n}]" + " x" * 200) for n in range(12)]
    letters.append(DeadLetter("a.warc:7", "failed", "truncated", "ends early", ""))
    for job, part in (("clean", letters), ("extract", letters[12:])):
        parquet.write_shard(f"{tmp_path}/{job}/dead_letters/rules/part-00000-of-00001.parquet", part, DeadLetter)
    return tmp_path


def test_each_reason_has_its_count_and_a_sample(work, printed):
    shown = printed("rejected", str(work / "clean"), "--count", "4")
    assert "clean: no_author, 12 rejected" in shown
    assert "clean: truncated, 1 failed" in shown
    assert shown.count(" doc") == 4
    assert "a.warc:7" in shown
    assert "ends early" in shown
    assert "Title [" in shown
    assert "extract" not in shown


def test_all_jobs_of_a_work_folder_or_one_reason(work, printed):
    shown = printed("rejected", f"{work}/", "--reason", "truncated")
    assert "clean: truncated, 1 failed" in shown
    assert "extract: truncated, 1 failed" in shown
    assert "no_author" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clean", "--reason", "no_title"], "choose one of no_author (12), truncated (1)"),
        (["empty"], "no rejected or failed records"),
        (["nowhere"], "nowhere: no such folder"),
    ],
)
def test_what_cannot_be_shown_says_what_there_is(work, refused, arguments, message):
    (work / "empty").mkdir()
    folder, *more = arguments
    assert message in " ".join(refused("rejected", str(work / folder), *more).split())


def test_a_column_that_is_empty_for_all_records_is_left_out(work, printed):
    first, second = printed("rejected", str(work / "clean")).split("clean: truncated")
    assert ("detail" in first, "record" in first) == (False, True)
    assert ("detail" in second, "record" in second) == (True, False)


@pytest.mark.parametrize("result", ["manifest.json", "clean/manifest.json", "last_run.json"])
def test_a_result_that_rejected_nothing_says_so(tmp_path, printed, result):
    path = tmp_path / "work" / result
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert printed("rejected", f"{tmp_path}/work/") == f"{tmp_path}/work: no record was rejected or failed\n"
