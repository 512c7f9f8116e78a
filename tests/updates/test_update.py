"""Updates of an archive: one run against many, counts, crashes at every step, late articles, bad input, the lock."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from newsembed.beam_pipelines.output_lock import locked
from newsembed.errors import InputError
from newsembed.formats.archive import LAST_RUN, current_index, read_pointer, read_version, version_folder, work_folder
from newsembed.formats.digests import damage
from newsembed.formats.manifest import recorded_digests
from newsembed.formats.parquet import read_records
from newsembed.formats.records import DeadLetter
from newsembed.launch.verify import verify
from newsembed.serving.events import EventOptions
from newsembed.serving.index import DocumentIndex
from newsembed.updates.options import Sources, current_choice
from newsembed.updates.report import print_report
from newsembed.updates.run import STEPS, update
from stream import (
    CHOICE,
    CLEAN,
    OPTIONS,
    Words,
    article,
    articles_of,
    b_cubed,
    copied,
    current,
    days_of_news,
    events_of,
    merges_of,
    run,
    told,
    vectors_of,
    write,
)

DAYS = days_of_news()


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    return [write(folder / f"{number}.jsonl", rows) for number, rows in enumerate(DAYS)]


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
    assert articles_of(daily[0]) == articles_of(once[0])
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
    archive = request.getfixturevalue(which)[0]
    index = DocumentIndex.load(current_index(str(archive)))
    texts = {one.doc_id: one for one in articles_of(archive)}
    assert sorted(document.doc_id for document in index.documents) == sorted(texts)
    ordered = [texts[document.doc_id] for document in index.documents]
    expected = Words().encode([one.title for one in ordered], [one.body for one in ordered])
    np.testing.assert_allclose(index.embeddings, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors_of(archive), axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(("most", "titles"), [(20_000, ["Title 2", "Title 3", "Title 9"]), (0, None)])
def test_an_article_that_another_replaces_leaves_the_index_when_that_pays(tmp_path, monkeypatch, most, titles):
    monkeypatch.setattr("newsembed.updates.indexing.SMALL", 0)
    monkeypatch.setattr("newsembed.updates.indexing.CORRECTED", most)  # a page of another text is among them
    monkeypatch.setattr("newsembed.updates.indexing.MOST_STALE", 0.5)
    texts = [told(f"e{number}", number) for number in range(3)]
    archive = tmp_path / "archive"
    run(archive, write(tmp_path / "1.jsonl", [article(number, text, 5) for number, text in enumerate(texts)]))
    # The page of one again with an earlier date, and a copy of another that is dated before.
    again = article(0, texts[0], 3) | {"title": "Title 9"}
    report = run(archive, write(tmp_path / "2.jsonl", [again, article(3, texts[1], 3)]))
    assert (report.new, report.superseded, report.articles) == (2, 2, 3)
    assert sorted(one.title for one in articles_of(archive)) == ["Title 2", "Title 3", "Title 9"]
    found = sorted(one.title for one in DocumentIndex.load(current_index(str(archive))).documents)
    assert found == (titles or ["Title 0", "Title 1", "Title 2", "Title 3"])
    assert len(set(events_of(archive).values())) == 3


@pytest.mark.parametrize(("small", "titles"), [(2_000, [0, 2, 3]), (0, [0, 1, 2, 3])])
def test_a_copy_that_is_superseded_leaves_a_small_index_at_once(tmp_path, monkeypatch, small, titles):
    monkeypatch.setattr("newsembed.updates.indexing.SMALL", small)
    monkeypatch.setattr("newsembed.updates.indexing.MOST_STALE", 0.5)
    texts = [told(f"e{number}", number) for number in range(3)]
    archive = tmp_path / "archive"
    run(archive, write(tmp_path / "1.jsonl", [article(number, text, 5) for number, text in enumerate(texts)]))
    assert run(archive, write(tmp_path / "2.jsonl", [article(3, texts[1], 3)])).superseded == 1
    found = sorted(one.title for one in DocumentIndex.load(current_index(str(archive))).documents)
    assert found == [f"Title {number}" for number in titles]


def test_a_corrected_text_is_searched_and_stays_in_its_event(tmp_path):
    archive, before = tmp_path / "archive", [article(number, told("e", number), 5) for number in range(2)]
    run(archive, write(tmp_path / "1.jsonl", before))
    events = events_of(archive)
    corrected = before[0] | {"body": before[0]["body"] + " The bridge was repaired."}
    report = run(archive, write(tmp_path / "2.jsonl", [corrected]))
    assert (report.new, report.superseded, report.articles, report.opened) == (1, 1, 2, 0)
    assert events_of(archive) == events
    index = DocumentIndex.load(current_index(str(archive)))
    assert len(index.words.search(index.words.read("bridge"), 5).numbers) == 1
    assert len(index) == 2
    again = run(archive, write(tmp_path / "3.jsonl", before))  # what was read before does not come back
    assert (again.known, again.published) == (2, False)


def test_every_article_has_an_event_and_streams_have_one_order(daily):
    members = events_of(daily[0])
    assert sorted(members) == [one.doc_id for one in articles_of(daily[0])]
    assert all(members.values())
    assert damage(current_index(str(daily[0]))) == ""
    results = list(verify(str(daily[0])))  # both versions, and their indexes
    assert (len(results), [result.wrong for result in results if result.wrong]) == (4, [])


def test_the_same_input_again_changes_nothing_and_says_so(daily, paths, tmp_path, capsys):
    archive, before = daily[0], read_pointer(str(daily[0]))
    report = run(archive, *paths)
    assert (report.published, report.new, report.version) == (False, 0, before.version)
    assert report.known + sum(report.rejected.values()) == report.read == sum(map(len, DAYS))
    assert read_pointer(str(archive)) == before
    assert json.loads((archive / LAST_RUN).read_text())["published"] is False
    print_report("archive", report)
    assert f"nothing new; version {before.version} stays" in capsys.readouterr().out


def test_an_empty_day_is_fine(first_day, tmp_path):
    empty = write(tmp_path / "empty.jsonl", [])
    assert (run(tmp_path / "new", empty).version, os.path.exists(tmp_path / "new" / "archive.json")) == (0, False)
    report = run(copied(first_day, tmp_path / "archive"), empty)
    assert (report.read, report.published, report.version) == (0, False, 1)


def test_two_versions_and_the_reports_of_all_stay(daily):
    versions = sorted((daily[0] / "versions").iterdir())
    assert [path.name for path in versions] == ["000003", "000004"]
    history = [json.loads(line) for line in (versions[1] / "history.jsonl").read_text().splitlines()]
    assert [(one["version"], one["in"]) for one in history] == [(day + 1, len(DAYS[day])) for day in range(4)]


def test_a_late_article_merges_two_events_and_the_merge_is_recorded(tmp_path):
    half = [told("left", 1), told("left", 2)], [told("right", number) for number in range(3)]
    rows = [article(number, body, 5) for number, body in enumerate([*half[0], *half[1]])]
    options = dataclasses.replace(OPTIONS, events=EventOptions(threshold=0.35, day_decay=0))
    archive = tmp_path / "archive"
    run(archive, write(tmp_path / "1.jsonl", rows), options=options)
    before = events_of(archive)
    assert len(set(before.values())) == 2
    both = f"{told('left', 10, 40)} {told('right', 10, 40)}"
    run(archive, write(tmp_path / "2.jsonl", [article(10, both, 4)]), options=options)
    (merge,) = merges_of(archive)
    now = events_of(archive)
    assert set(now.values()) == {merge.into}
    assert {merge.event_id, merge.into} == set(before.values())
    assert (merge.version, merge.doc_id) == (2, (now.keys() - before.keys()).pop())


class Killed(BaseException):
    """In place of a signal."""


def kill_at(step):
    def reached(name):
        if name == step:
            raise Killed(name)

    return reached


def check_whole(archive, expected):
    """The archive is still at a version, with all of its files."""
    assert read_pointer(str(archive)) == expected
    assert set(recorded_digests(read_version(str(archive), expected), "")) >= {"parents.npy", "events/members.parquet"}
    assert all(not result.wrong for result in verify(current(archive)))


def same(one, two):
    assert articles_of(one) == articles_of(two)
    assert events_of(one) == events_of(two)
    np.testing.assert_array_equal(vectors_of(one), vectors_of(two))
    assert not os.path.exists(work_folder(str(one)))
    assert len(list((one / "versions").iterdir())) == len(list((two / "versions").iterdir()))


def test_a_run_that_is_cut_off_at_any_step_leaves_the_version_before_and_is_resumed(first_day, paths, tmp_path):
    whole, archive, encoder = copied(first_day, tmp_path / "whole"), copied(first_day, tmp_path / "archive"), Words()
    expected = run(whole, paths[1])
    before = read_pointer(str(archive))
    for step in STEPS[: STEPS.index("publish")]:
        with pytest.raises(Killed):
            run(archive, paths[1], encoder=encoder, reached=kill_at(step))
        check_whole(archive, before)
    with pytest.raises(Killed):
        run(archive, paths[1], encoder=encoder, reached=kill_at("publish"))
    assert read_pointer(str(archive)).version == 2
    assert encoder.embedded == expected.new, "vectors of the run before are read"
    report = run(archive, paths[1])
    assert (report.published, report.version) == (False, 2)
    same(archive, whole)


def test_a_run_that_was_cut_off_does_not_disturb_one_with_other_input(first_day, paths, tmp_path):
    whole, archive = copied(first_day, tmp_path / "whole"), copied(first_day, tmp_path / "archive")
    with pytest.raises(Killed):
        run(archive, paths[1], reached=kill_at("events"))
    run(archive, paths[2])
    run(whole, paths[2])
    same(archive, whole)


SCRIPT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from stream import run

def reached(step):
    if step == sys.argv[4]:
        os.kill(os.getpid(), signal.SIGKILL)

run(sys.argv[2], sys.argv[3], reached=reached)
"""


def test_a_killed_process_leaves_the_version_before_and_its_lock_is_taken_over(first_day, paths, tmp_path):
    archive = copied(first_day, tmp_path / "archive")
    before = read_pointer(str(archive))
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(archive), paths[1], "index"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert (archive / ".lock").exists()
    check_whole(archive, before)
    (archive / "archive.json.0123456789ab.tmp").write_text("{")  # as if it had been killed while it published
    assert run(archive, paths[1]).version == 2
    assert {path.name for path in archive.iterdir()} == {
        "archive.json",
        "dead_letters",
        "last_run.json",
        "versions",
    }


def test_a_second_run_at_the_same_time_is_refused(first_day, paths):
    with locked(str(first_day)), pytest.raises(InputError, match=f"--archive: another run.*{os.getpid()}"):
        run(first_day, paths[1])


def test_other_options_than_those_of_the_archive_are_refused(first_day, paths):
    changed = dataclasses.replace(OPTIONS, clean=dataclasses.replace(CLEAN, min_words=7))
    with pytest.raises(InputError, match=r"--clean\.min_words: got 7, expected 5"):
        run(first_day, paths[1], options=changed)
    with pytest.raises(InputError, match=r"--events\.days: got 9"):
        run(first_day, paths[1], options=dataclasses.replace(OPTIONS, events=EventOptions(threshold=0.5, days=9)))
    other = Words()
    other.digest = "other"
    with pytest.raises(InputError, match="--encoder: not the encoder of earlier runs"):
        run(first_day, paths[1], encoder=other)
    assert read_pointer(str(first_day)).version == 1


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    archive = tmp_path / "archive"
    for sources, problem in (
        (Sources(), "no input"),
        (Sources(articles=(str(tmp_path / "none.jsonl"),)), "no such file"),
        (Sources(feeds=str(tmp_path / "none.txt")), "--feeds: no such file"),
        (Sources(articles=(str(tmp_path / "*.jsonl"),)), "no file matches"),
    ):
        with pytest.raises(InputError, match=problem):
            update(str(archive), Words(), CHOICE, sources, OPTIONS)
    with pytest.raises(InputError, match="must be in a local folder"):
        update("gs://bucket/archive", Words(), CHOICE, Sources(articles=(__file__,)), OPTIONS)
    assert not archive.exists()


def test_broken_lines_are_counted_and_the_others_are_kept(tmp_path):
    rows = [article(1, told("a", 1), 1), article(2, told("b", 2), 1)]
    path = Path(write(tmp_path / "rows.jsonl", rows))
    path.write_text(path.read_text() + "{broken\n[1]\n" + json.dumps({"url": "https://a.example/3"}) + "\n")
    report = run(tmp_path / "archive", path)
    assert (report.read, report.new) == (5, 2)
    assert sum(report.failed.values()) == 3


@pytest.mark.parametrize("name", ["parents.npy", "events/members.parquet", "sketches/part-000001.npy", "history.jsonl"])
def test_a_file_that_changed_since_it_was_published_is_named(first_day, paths, tmp_path, name):
    archive = copied(first_day, tmp_path / "archive")
    path = archive / "versions" / "000001" / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(InputError, match=f"000001: missing or changed since it was published: {name}"):
        run(archive, paths[1])
    path.unlink()
    with pytest.raises(InputError, match=f"missing or changed since it was published: {name}"):
        run(archive, paths[1])


def test_a_damaged_archive_is_refused_with_its_name(first_day, paths, tmp_path):
    archive = copied(first_day, tmp_path / "archive")
    (archive / "versions" / "000001" / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="000001: the version that the pointer names is missing or damaged"):
        run(archive, paths[1])
    (archive / "archive.json").write_text("{}")
    with pytest.raises(InputError, match=r"archive\.json: a damaged pointer"):
        run(archive, paths[1])
    (archive / "archive.json").write_text('{"format": 2, "version": 1, "manifest_sha256": "", "index_sha256": ""}')
    with pytest.raises(InputError, match="got the format 2, expected 1"):
        run(archive, paths[1])


def left(folder):
    """Every file of a folder with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        (("versions", "last_run.json"), "versions/000001"),
        (("versions",), "versions/000001"),
        (("last_run.json",), "last_run.json"),
        (("trainings",), "trainings/000001"),
        ((".training",), ".training/articles"),
    ],
)
def test_an_archive_without_its_pointer_is_refused_and_stays_as_it_is(first_day, paths, tmp_path, kept, named):
    archive = copied(first_day, tmp_path / "archive")
    for folder in ("trainings/000001", ".training/articles"):
        (archive / folder).mkdir(parents=True)
    for path in archive.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    before, encoder = left(archive), Words()
    with pytest.raises(
        InputError, match=rf"archive: --archive: has {named} of an archive, but no archive\.json"
    ) as error:
        run(archive, paths[1], encoder=encoder)
    assert "restore archive.json from a copy" in str(error.value)
    assert (left(archive), encoder.embedded) == (before, 0)
    with pytest.raises(InputError, match="no archive.json"):
        current_choice(str(archive), CHOICE)  # before the command reads the model


def test_the_work_of_a_later_run_without_the_pointer_is_refused(first_day, paths, tmp_path):
    archive = copied(first_day, tmp_path / "archive")
    with pytest.raises(Killed):
        run(archive, paths[1], reached=kill_at("events"))
    (archive / "archive.json").unlink()
    with pytest.raises(InputError, match=r"has \.work/base\.json of an archive, but no archive\.json"):
        run(archive, paths[1])


def test_a_folder_of_other_files_is_refused_and_stays_as_it_is(paths, tmp_path):
    archive = tmp_path / "thesis"
    archive.mkdir()
    for number in range(7):
        (archive / f"{number}.tex").write_text("text")
    before = left(archive)
    with pytest.raises(
        InputError, match=r"thesis: --archive: is not an archive, and not empty: it has 0\.tex, .*and 2 more"
    ):
        run(archive, paths[0])
    assert left(archive) == before
    for path in archive.iterdir():
        path.unlink()
    assert run(archive, paths[0]).version == 1
    with pytest.raises(InputError, match=r"0\.jsonl: --archive: is a file"):
        current_choice(paths[0], CHOICE)


def test_a_first_run_that_was_cut_off_at_any_step_is_resumed(first_day, paths, tmp_path):
    archive, encoder = tmp_path / "archive", Words()
    for step in STEPS[: STEPS.index("publish")]:
        with pytest.raises(Killed):
            run(archive, paths[0], encoder=encoder, reached=kill_at(step))
        assert not (archive / "archive.json").exists()
    (archive / "archive.json.0123456789ab.tmp").write_text("{")  # as if it had been killed while it published
    (archive / ".lock").write_text("{}")
    report = run(archive, paths[0], encoder=encoder)
    assert (report.version, encoder.embedded) == (1, report.new)
    same(archive, first_day)


def test_what_a_run_rejects_is_kept_also_where_it_makes_no_version(paths, tmp_path, capsys):
    archive = tmp_path / "archive"
    undated = article(1, told("rain", 1), 0) | {"byline_date": "03/05/2018"}
    odd = write(tmp_path / "odd.jsonl", [undated, {"url": "nowhere"}])
    report = run(archive, odd)
    assert (report.version, report.published) == (0, False)
    assert sorted(one.reason for one in rejected_of(archive)) == ["missing_field", "no_byline_date"]
    print_report(str(archive), report)
    shown = capsys.readouterr().out
    assert "note: extract cannot read the dates of 1 article;" in shown
    assert f"`newsembed rejected {archive}` prints the rejected and failed records" in shown
    assert run(archive, paths[0]).version == 1
    letters = sorted(rejected_of(archive), key=lambda one: one.reason)
    version = Path(version_folder(str(archive), 1))
    kept = [one for path in version.glob("dead_letters/*") for one in read_records(str(path), DeadLetter)]
    assert letters == sorted(kept, key=lambda one: one.reason)
    run(archive, odd)
    assert sorted(one.reason for one in rejected_of(archive)) == ["missing_field", "no_byline_date"]
    run(archive, write(tmp_path / "empty.jsonl", []))
    assert rejected_of(archive) == []
    assert run(tmp_path / "clean", paths[0]).notes == []


def rejected_of(archive):
    """The dead letters of the last run."""
    return [one for path in (archive / "dead_letters").glob("*") for one in read_records(str(path), DeadLetter)]


def test_a_first_run_that_finds_nothing_does_not_hinder_the_next(paths, tmp_path):
    archive, empty = tmp_path / "archive", write(tmp_path / "empty.jsonl", [])
    with pytest.raises(Killed):
        run(archive, paths[0], reached=kill_at("index"))
    assert run(archive, empty).version == 0
    assert (archive / LAST_RUN).exists()
    assert run(archive, paths[0]).version == 1
