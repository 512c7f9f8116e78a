"""Updates of an archive: one run against many, counts, crashes at every step, late articles, bad input, the lock."""

import dataclasses
import datetime
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.formats import archive_writer as archive_module
from newsembed.formats.archive import LAST_RUN, Archive, last_number, read_runs
from newsembed.formats.archive_writer import Writer
from newsembed.formats.parquet import read_records
from newsembed.formats.records import Article, DeadLetter
from newsembed.launch import cli
from newsembed.launch import update as command
from newsembed.launch.verify import verify
from newsembed.serving.events import NO_EVENT, EventOptions, Merge
from newsembed.serving.hybrid import find
from newsembed.serving.index import DocumentIndex
from newsembed.updates.options import Sources, current_choice
from newsembed.updates.report import print_report
from newsembed.updates.run import STEPS, _emptied, unit_vectors, update, work_folder
from refusals import refuses
from stream import (
    CHOICE,
    CLEAN,
    OPTIONS,
    Killed,
    Words,
    article,
    articles_of,
    b_cubed,
    copied,
    days_of_news,
    events_of,
    kill_at,
    merges_of,
    run,
    told,
)

DAYS = days_of_news()


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    return [write_rows(folder / f"{number}.jsonl", rows) for number, rows in enumerate(DAYS)]


@pytest.fixture(scope="module")
def daily(tmp_path_factory, paths):
    """An archive with a run for each day, their reports, and what was embedded."""
    archive, encoder = tmp_path_factory.mktemp("daily") / "archive", Words()
    return archive, [run(archive, path, encoder=encoder) for path in paths], encoder


@pytest.fixture(scope="module")
def once(tmp_path_factory, paths):
    """An archive made by one run over all days, its report, and what was embedded."""
    archive, encoder = tmp_path_factory.mktemp("once") / "archive", Words()
    return archive, run(archive, *paths, encoder=encoder), encoder


@pytest.fixture(scope="module")
def first_day(tmp_path_factory, paths):
    archive = tmp_path_factory.mktemp("first") / "archive"
    run(archive, paths[0])
    return archive


def test_many_runs_keep_the_articles_of_one_run(daily, once):
    one, other = ([{**row, "event_id": ""} for row in articles_of(made[0])] for made in (daily, once))
    assert one == other
    assert sum(report.superseded for report in daily[1]) > 0, "the stream should try this"
    assert once[1].superseded == 0


def test_many_runs_find_nearly_the_events_of_one_run(daily, once):
    assert b_cubed(events_of(daily[0]), events_of(once[0])) >= 0.97
    assert 1 < once[1].events < once[1].articles


def test_counts_add_up_in_every_run(daily, once):
    for day, report in enumerate(daily[1]):
        assert report.read == len(DAYS[day])
        assert report.read == report.new + report.known + sum(report.rejected.values()) + sum(report.failed.values())
        assert report.rejected["too_few_words"] >= 1
    assert once[1].read == sum(map(len, DAYS))
    articles = 0
    for report in daily[1]:
        articles += report.new - report.superseded
        assert report.articles == articles
    assert articles == len(articles_of(daily[0])) == once[1].articles


def test_only_new_articles_are_embedded(daily):
    assert daily[2].embedded == sum(report.new for report in daily[1])


@pytest.mark.parametrize("which", ["daily", "once"])
def test_the_index_has_the_articles_and_their_vectors(which, request):
    rows = articles_of(request.getfixturevalue(which)[0])
    expected = Words().encode([row["title"] for row in rows], [row["body"] for row in rows])
    np.testing.assert_allclose(np.array([row["vector"] for row in rows]), expected, atol=1e-6)
    assert all(row["event_id"] for row in rows)


def titles(archive):
    return sorted(row["title"] for row in articles_of(archive))


def found(archive, words):
    hits = find(DocumentIndex.load(str(archive)), words, None, 10, mode="words").hits
    return sorted(hit.document.title for hit in hits)


def test_an_article_that_another_replaces_is_gone_at_once(tmp_path):
    texts = [told(f"e{number}", number) for number in range(3)]
    archive = tmp_path / "archive"
    run(archive, [article(number, text, 5) for number, text in enumerate(texts)])
    # The page of one again with an earlier date, and a copy of another that is dated before.
    again = article(0, texts[0], 3) | {"title": "Title 9"}
    report = run(archive, [again, article(3, texts[1], 3)])
    assert (report.new, report.superseded, report.articles) == (2, 2, 3)
    assert titles(archive) == ["Title 2", "Title 3", "Title 9"]
    assert found(archive, texts[0]) == ["Title 9"]
    assert found(archive, texts[1]) == ["Title 3"]
    assert len(set(events_of(archive).values())) == 3


@pytest.mark.parametrize("limit", [50_000, 0])
def test_a_corrected_text_is_searched_at_any_size_and_stays_in_its_event(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(archive_module, "EXACT_LIMIT", limit)  # 0: nothing is indexed again for so few rows
    monkeypatch.setattr(archive_module, "_STALE_SHARE", 1.0)
    archive, before = tmp_path / "archive", [article(number, told("e", number), 5) for number in range(2)]
    run(archive, before)
    events = events_of(archive)
    corrected = before[0] | {"body": before[0]["body"] + " The bridge was repaired."}
    report = run(archive, [corrected])
    assert (report.new, report.superseded, report.articles, report.opened) == (1, 1, 2, 0)
    assert events_of(archive) == events
    assert found(archive, "bridge") == ["Title 0"]
    index = DocumentIndex.load(str(archive))
    assert [word.frequency for word in index.read("bridge eword1")] == [1, 2]
    again = run(archive, before)  # what was read before does not come back
    assert (again.known, again.published) == (2, False)


def test_the_same_input_again_changes_nothing_and_says_so(daily, paths, capsys):
    archive, before = daily[0], last_number(str(daily[0]))
    report = run(archive, *paths)
    assert (report.published, report.new, report.version) == (False, 0, before)
    assert report.known + sum(report.rejected.values()) == report.read == sum(map(len, DAYS))
    assert last_number(str(archive)) == before
    assert json.loads((archive / LAST_RUN).read_text())["published"] is False
    print_report("archive", report)
    assert f"nothing new; version {before} stays" in capsys.readouterr().out


def test_an_empty_day_is_fine(first_day, tmp_path):
    assert (run(tmp_path / "new", []).version, read_runs(str(tmp_path / "new"))) == (0, [])
    report = run(copied(first_day, tmp_path / "archive"), [])
    assert (report.read, report.published, report.version) == (0, False, 1)


def test_the_reports_of_all_runs_stay_and_files_are_as_listed(daily):
    runs = read_runs(str(daily[0]))
    assert [(one.number, one.report["in"]) for one in runs] == [(day + 1, len(DAYS[day])) for day in range(4)]
    (result,) = verify(str(daily[0]))
    assert (result.files > 20, result.wrong) == (True, ())


def test_a_version_that_is_kept_comes_back(tmp_path, paths, capsys):
    archive, seen = tmp_path / "archive", []
    for path in paths[:3]:
        run(archive, path)
        seen.append(articles_of(archive))
    line = ["--archive", str(archive), "--rollback"]
    refused = refuses("--rollback: version 9 is not there", rolled_back, *line, "9")
    assert "that is kept: 1, 2, 3; " in refused.remedy
    assert rolled_back(*line, "2") == 0
    assert "version 4 is version 2 again" in capsys.readouterr().out
    assert articles_of(archive) == seen[1] != seen[2]
    assert run(archive, paths[2]).version == 5
    assert articles_of(archive) == seen[2]


def rolled_back(*words):
    return command.run(cli.parsed("update", command, words))


def test_a_version_is_not_removed_by_the_time_that_the_removal_of_others_takes():
    now = datetime.datetime.now()  # noqa: DTZ005 - as LanceDB has them
    ages = {1: 9, 2: 5, 3: 2}
    asked = []

    class Table:
        def list_versions(self):
            return [{"version": n, "timestamp": now - datetime.timedelta(hours=age)} for n, age in ages.items()]

        def optimize(self, cleanup_older_than):
            asked.append(cleanup_older_than.total_seconds())

    archive_module._prune(Table(), 2)
    assert 5 * 3600 + 5 < asked[0] < 5 * 3600 + 60
    for oldest in (0, 1):  # nothing is before it
        archive_module._prune(Table(), oldest)
    assert len(asked) == 1


def test_a_reader_sees_the_version_that_it_has_opened(first_day, paths, tmp_path):
    archive = copied(first_day, tmp_path / "archive")
    reader, before = Archive(str(archive)), articles_of(archive)
    run(archive, paths[1])
    assert sorted(reader.rows(["doc_id"])["doc_id"].to_pylist()) == [row["doc_id"] for row in before]
    assert len(reader) == len(before) < len(Archive(str(archive)))


def test_a_late_article_merges_two_events_and_the_merge_is_recorded(tmp_path):
    half = [told("left", 1), told("left", 2)], [told("right", number) for number in range(3)]
    rows = [article(number, body, 5) for number, body in enumerate([*half[0], *half[1]])]
    options = dataclasses.replace(OPTIONS, events=EventOptions(threshold=0.35, day_decay=0))
    archive = tmp_path / "archive"
    run(archive, rows, options=options)
    before = events_of(archive)
    assert len(set(before.values())) == 2
    both = f"{told('left', 10, 40)} {told('right', 10, 40)}"
    run(archive, [article(10, both, 4)], options=options)
    (merge,) = merges_of(archive)
    now = events_of(archive)
    assert set(now.values()) == {merge.into}
    assert {merge.event_id, merge.into} == set(before.values())
    assert merge.doc_id == (now.keys() - before.keys()).pop()
    assert read_runs(str(archive))[1].merges == (merge,)


def test_reports_of_one_event_in_two_languages_are_one_event_in_one_run_and_in_many(tmp_path):
    fillers = {"en": "the minister said that it was not to be", "de": "der Minister sagte dass es nicht so sei und"}
    rows = []
    for number in range(320):
        event, language = number // 4, ("en", "de")[number % 2]
        body = f"{told(f'e{event}', number)} {' '.join([fillers[language]] * 9)}."
        rows.append(article(number, body, event // 2) | {"language": language})
    options = dataclasses.replace(OPTIONS, events=EventOptions())
    run(tmp_path / "once", rows, options=options)
    for half in (0, 160):
        run(tmp_path / "twice", rows[half : half + 160], options=options)
    for name in ("once", "twice"):
        found = articles_of(tmp_path / name)
        assert {row["language"] for row in found} >= {"en", "de"}
        truth = {row["doc_id"]: int(row["url"].rpartition("/")[2]) // 4 for row in found}
        assert b_cubed(events_of(tmp_path / name), truth) > 0.9


def same(one, two):
    assert articles_of(one) == articles_of(two)
    assert not Path(work_folder(str(one))).exists()
    terms = [Archive(str(path)).table("terms").search().to_arrow().to_pylist() for path in (one, two)]
    assert sorted(map(str, terms[0])) == sorted(map(str, terms[1]))


def test_a_run_that_is_cut_off_at_any_step_leaves_the_version_before_and_is_resumed(first_day, paths, tmp_path):
    whole, archive, encoder = copied(first_day, tmp_path / "whole"), copied(first_day, tmp_path / "archive"), Words()
    expected = run(whole, paths[1])
    before = articles_of(archive)
    for step in STEPS[: STEPS.index("publish")]:
        with pytest.raises(Killed):
            run(archive, paths[1], encoder=encoder, progress=kill_at(step))
        assert articles_of(archive) == before
        assert all(not result.wrong for result in verify(str(archive)))
    with pytest.raises(Killed):
        run(archive, paths[1], encoder=encoder, progress=kill_at("publish"))
    assert last_number(str(archive)) == 2
    assert encoder.embedded == expected.new, "vectors of the run before are read"
    report = run(archive, paths[1])
    assert (report.published, report.version) == (False, 2)
    same(archive, whole)


def test_progress_counts_the_steps_and_the_articles(first_day, paths, tmp_path):
    said = []
    report = run(copied(first_day, tmp_path / "archive"), paths[1], progress=lambda *step: said.append(step))
    assert tuple(step for *_, step in said if step) == STEPS
    vectors = [count for phase, *count, _ in said if phase == "vectors"]
    assert vectors == [[n, report.new] for n in range(report.new + 1)]
    for phase in ("read", "write"):
        *_, (done, total) = [count for name, *count, _ in said if name == phase]
        assert done == total


def test_a_run_that_was_cut_off_does_not_disturb_one_with_other_input(first_day, paths, tmp_path):
    whole, archive = copied(first_day, tmp_path / "whole"), copied(first_day, tmp_path / "archive")
    with pytest.raises(Killed):
        run(archive, paths[1], progress=kill_at("index"))
    run(archive, paths[2])
    run(whole, paths[2])
    same(archive, whole)


def test_a_first_run_that_was_cut_off_at_any_step_is_resumed(first_day, paths, tmp_path):
    archive, encoder = tmp_path / "archive", Words()
    for step in STEPS[: STEPS.index("publish")]:
        with pytest.raises(Killed):
            run(archive, paths[0], encoder=encoder, progress=kill_at(step))
        assert read_runs(str(archive)) == []
    report = run(archive, paths[0], encoder=encoder)
    assert (report.version, encoder.embedded) == (1, report.new)
    same(archive, first_day)


SCRIPT = """
import os, signal, sys
sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/.."]
from stream import run

def progress(phase, done, total, step):
    if step == sys.argv[4]:
        os.kill(os.getpid(), signal.SIGKILL)

run(sys.argv[2], sys.argv[3], progress=progress)
"""


def test_a_killed_process_leaves_the_version_before_and_does_not_lock_the_next_one_out(first_day, paths, tmp_path):
    archive = copied(first_day, tmp_path / "archive")
    before = articles_of(archive)
    line = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(archive), paths[1], "index"]
    assert subprocess.run(line, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert articles_of(archive) == before
    assert run(archive, paths[1]).version == 2


def test_a_second_run_at_the_same_time_is_refused(first_day, paths):
    started, end, refused = threading.Event(), threading.Event(), []

    def hold():
        with Writer(str(first_day)):
            started.set()
            end.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait(30)
    try:
        run(first_day, paths[1])
    except InputError as error:
        refused.append(str(error))
    finally:
        end.set()
        thread.join()
    assert refused
    assert "--archive: another run is writing to this folder: process " in refused[0]


def test_the_ranking_of_the_first_run_stays(tmp_path):
    learned = {"weights": [1.0]}
    archive = tmp_path / "archive"
    run(archive, [article(0, told("b", 0), 0)], options=dataclasses.replace(OPTIONS, ranking=learned))
    run(archive, [article(1, told("a", 1), 0)])
    assert [one.settings["ranking"] for one in read_runs(str(archive))] == [learned, learned]


def test_other_options_than_those_of_the_archive_are_refused(first_day, paths):
    changed = dataclasses.replace(OPTIONS, clean=dataclasses.replace(CLEAN, min_words=7))
    refuses(r"--clean\.min_words: got 7, expected 5", run, first_day, paths[1], options=changed)
    with pytest.raises(InputError, match=r"--events\.days: got 9"):
        run(first_day, paths[1], options=dataclasses.replace(OPTIONS, events=EventOptions(threshold=0.5, days=9)))
    other = Words()
    other.digest = "other"
    refuses("--encoder: not the encoder of earlier runs; --replace_encoder", run, first_day, paths[1], encoder=other)
    assert last_number(str(first_day)) == 1


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    archive = tmp_path / "archive"
    for sources, problem in (
        (Sources(), "no input"),
        (Sources(articles=(str(tmp_path / "none.jsonl"),)), "no such file"),
        (Sources(feeds=str(tmp_path / "none.txt")), "--feeds: no such file"),
        (Sources(articles=(str(tmp_path / "*.jsonl"),)), "no file matches"),
    ):
        refuses(problem, update, str(archive), Words(), CHOICE, sources, OPTIONS)
    assert not archive.exists()


def test_broken_lines_are_counted_and_the_others_are_kept(tmp_path):
    rows = [article(1, told("a", 1), 1), article(2, told("b", 2), 1)]
    path = Path(write_rows(tmp_path / "rows.jsonl", rows))
    path.write_text(path.read_text() + "{broken\n[1]\n" + json.dumps({"url": "https://a.example/3"}) + "\n")
    report = run(tmp_path / "archive", path)
    assert (report.read, report.new) == (5, 2)
    assert sum(report.failed.values()) == 3


@pytest.mark.parametrize("table", ["articles", "seen", "terms", "runs"])
def test_a_damaged_file_is_named(first_day, paths, tmp_path, table):
    archive = copied(first_day, tmp_path / "archive")
    for path in (archive / f"{table}.lance" / "data").iterdir():
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 3] ^= 1
        path.write_bytes(raw)
    # Whether the database can read the runs depends on the bit; if so, a digest tells.
    named = "(table runs: no readable archive: |no readable archive: .*runs\\.lance)"
    refuses(named if table == "runs" else rf"no readable archive: .*{table}\.lance", run, archive, paths[1])
    for path in (archive / f"{table}.lance" / "data").iterdir():
        path.unlink()
    named = "table runs: " if table == "runs" else "(table seen: )?"
    refuses(rf"archive: {named}no readable archive: .*\.lance", run, archive, paths[1])


def test_a_folder_of_other_files_is_refused_and_stays_as_it_is(paths, tmp_path):
    archive = tmp_path / "thesis"
    archive.mkdir()
    for number in range(7):
        (archive / f"{number}.tex").write_text("text")
    refuses(r"thesis: --archive: is not an archive, and not empty: it has 0\.tex, .*and 2 more", run, archive, paths[0])
    assert len(list(archive.iterdir())) == 7
    for path in archive.iterdir():
        path.unlink()
    assert run(archive, paths[0]).version == 1
    refuses(r"0\.jsonl: --archive: is a file", current_choice, paths[0], CHOICE)


def test_what_a_run_rejects_is_kept_also_where_it_makes_no_version(paths, tmp_path, capsys):
    archive = tmp_path / "archive"
    undated = article(1, told("rain", 1), 0) | {"byline_date": "03/05/2018"}
    odd = [undated, {"url": "nowhere"}]
    report = run(archive, odd)
    assert (report.version, report.published) == (0, False)
    assert sorted(one.reason for one in rejected_of(archive)) == ["missing_field", "no_byline_date"]
    print_report(str(archive), report)
    shown = capsys.readouterr().out
    assert "note: extract cannot read the dates of 1 article," in shown
    assert f"`newsembed rejected {archive}` prints the rejected and failed records" in shown
    assert run(archive, paths[0]).version == 1
    assert rejected_of(archive)
    run(archive, odd)
    assert sorted(one.reason for one in rejected_of(archive)) == ["missing_field", "no_byline_date"]
    run(archive, [])
    assert rejected_of(archive) == []
    assert run(tmp_path / "clean", paths[0]).notes == []


def rejected_of(archive):
    """The dead letters of the last run."""
    return [one for path in (archive / "dead_letters").glob("*") for one in read_records(str(path), DeadLetter)]


class Scaled(Words):
    """Vectors of other lengths than 1; none for the text "nothing"."""

    def encode(self, titles, bodies):
        lengths = [[0.0 if body == "nothing" else 7.0] for body in bodies]
        return super().encode(titles, bodies) * np.array(lengths, np.float32)


def test_vectors_have_length_1_and_none_is_left_out():
    def reported(number, body):
        return Article(f"{number:016x}", f"https://a.example/{number}", "a.example", "", body)

    vectors = unit_vectors(Scaled(), [reported(1, told("a", 1)), reported(2, "nothing")], {})
    np.testing.assert_allclose(vectors[0], Words().encode([""], [told("a", 1)])[0], atol=1e-6)
    assert not vectors[1].any()
    with pytest.raises(RuntimeError, match="1 vectors of 2 articles"):
        unit_vectors(Words(), [reported(1, told("a", 1)), reported(0, "")], {})


def test_an_event_whose_last_article_is_replaced_by_one_of_another_event_ends_in_that_event():
    # Events of the articles that stay or are new, once heirs of articles without one have taken theirs over.
    doc_ids, events = np.array([1, 2, 3, 4], np.uint64), np.array([90, 90, 70, 80], np.uint64)
    lost = np.array([50, 50, 70, 80, NO_EVENT], np.uint64)  # both of 50, one of 80 and the only one of 70, whose heir
    merges = _emptied(lost, [1, 0, 2, 0, 0], events, doc_ids)  # is in 70, too
    assert merges == [Merge(50, 90, 2)]
