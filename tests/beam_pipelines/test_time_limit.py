"""A limit of time for the work on one record."""

import datetime
import threading
import time

import pytest
from newsembed.beam_pipelines import clean, shards
from newsembed.beam_pipelines import time_limit as limits
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.beam_pipelines.time_limit import RecordTimeoutError, time_limit
from newsembed.formats import files
from newsembed.formats.parquet import read_records, write_shard
from newsembed.formats.records import Article, DeadLetter, make_doc_id
from newsembed.updates import intake


def endless():
    while True:
        time.sleep(0.001)


def in_thread(function):
    """What a function raises in a thread, as the workers of Beam run it."""
    raised = []

    def run():
        try:
            function()
        except RecordTimeoutError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    return raised


def test_work_without_end_ends_in_its_own_thread():
    def work():
        with time_limit(0.05):
            endless()

    assert len(in_thread(work)) == 1
    with pytest.raises(RecordTimeoutError):
        work()


def test_what_has_ended_is_not_disturbed_later(monkeypatch):
    def spin():
        return sum(range(1_000)) + sum(number for number in range(1_000))

    with time_limit(9):
        pass
    limits._look(time.monotonic() + 99)
    spin()
    raised = []
    monkeypatch.setattr(limits, "_raise_in", lambda *given: raised.append(given[1]))
    with time_limit(9):  # it is raised on the way out
        limits._look(time.monotonic() + 8)
        assert raised == []
        limits._look(time.monotonic() + 10)
        limits._look(time.monotonic() + 11)
    assert raised == [RecordTimeoutError, None]


def test_other_errors_pass():
    with pytest.raises(KeyError), time_limit(9):
        raise KeyError


def test_a_record_that_takes_too_long_is_a_failure_with_a_dead_letter(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "RECORD_SECONDS", 0.2)
    with Shard(Phase(str(tmp_path), "rules", 1), 0) as shard:
        shard.read(2)
        assert shard.limited("http://a.example/slow", endless) is None
        assert shard.limited("http://a.example/quick", "{}{}".format, 1, 2) == "12"
        shard.written()
    counts = files.read_json(f"{tmp_path}/_reports/rules/00000.json")
    assert counts["failed"] == {"timeout": 1}
    (letter,) = read_records(files.list_files("**/*.parquet", str(tmp_path))[0], DeadLetter)
    assert (letter.outcome, letter.reason, letter.detail) == ("failed", "timeout", "more than 0.2 s")


@pytest.mark.parametrize(("module", "function"), [(clean, "_apply_rules"), (intake, "_apply_rules")])
def test_the_rules_of_articles_have_the_limit(tmp_path, monkeypatch, module, function):
    rows = [record(number) for number in range(3)]
    write_shard(str(tmp_path / "in.parquet"), rows, Article)
    checked = module.checked
    monkeypatch.setattr(shards, "RECORD_SECONDS", 0.5)
    slow = rows[1].url
    monkeypatch.setattr(module, "checked", lambda raw, *rest: endless() if raw.url == slow else checked(raw, *rest))
    options = clean.CleanOptions(
        min_words=1, min_sentences=1, require_language=False, require_terminal_punctuation=False
    )
    with Shard(Phase(str(tmp_path), "rules", 1), 0) as shard:
        getattr(module, function)(shard, str(tmp_path / "in.parquet"), options, [])
    counts = files.read_json(f"{tmp_path}/_reports/rules/00000.json")
    assert (counts["in"], counts["out"], counts["failed"]) == (3, 2, {"timeout": 1})


def record(number):
    url = f"http://a.example/{number}"
    words = " ".join(f"The council of town {number} met on day {day} to vote." for day in range(30))
    day = datetime.date(2024, 1, 1)
    return Article(make_doc_id(url), url, "a.example", f"Title {number}", words, ("Ann Lee",), day)
