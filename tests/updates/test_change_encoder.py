"""Another encoder for an archive: its vectors, its events with the ids of those before, kills, what is refused."""

import collections
import os
import shutil
import types

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.archive import Archive, last_number
from newsembed.formats.archive_writer import Writer
from newsembed.formats.folders import locked, training_work
from newsembed.launch.verify import verify
from newsembed.serving.explorer.book import EventBook
from newsembed.serving.index import DocumentIndex
from newsembed.updates import options
from newsembed.updates.options import EncoderChoice, current_choice
from newsembed.updates.replacement import change_encoder, embedded_so_far
from newsembed.updates.run import work_folder
from refusals import refuses
from stream import Killed, Words, articles_of, copied, days_of_news, events_of, merges_of, run

OTHER = EncoderChoice("model:other")


class Halves(Words):
    """Another space, in which reports of the first two events of a day are one."""

    digest = "halves"

    def encode(self, titles, bodies):
        return super().encode(titles, [body.replace("e1word", "e0word") for body in bodies])[:, ::-1].copy()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("change")
    run(folder / "archive", *days_of_news())
    return folder / "archive"


@pytest.fixture(scope="module")
def changed(made, tmp_path_factory):
    archive = copied(made, tmp_path_factory.mktemp("changed") / "archive")
    assert change_encoder(str(archive), Halves(), OTHER) == 2
    return archive


def test_all_vectors_are_of_the_other_encoder_and_nothing_else_changes(made, changed):
    before, after = articles_of(made), articles_of(changed)
    expected = Halves().encode([], [row["body"] for row in after])
    np.testing.assert_allclose([row["vector"] for row in after], expected, atol=1e-6)
    ours = ("vector", "event_id")
    assert [{**row, **dict.fromkeys(ours)} for row in before] == [{**row, **dict.fromkeys(ours)} for row in after]
    assert current_choice(str(changed), None).spec == "model:other"
    assert DocumentIndex.load(str(changed)).encoder_digest == "halves"
    assert all(not result.wrong for result in verify(str(changed)))


def test_events_are_found_anew_and_keep_the_ids_of_those_that_they_share_most_with(made, changed):
    before, after = events_of(made), events_of(changed)
    sets = collections.defaultdict(set)
    for doc_id, event in after.items():
        sets[event].add(doc_id)
    assert len(sets) < len(set(before.values())), "some are one now"
    assert set(sets) <= set(before.values()), "no event is new"
    merged = {merge.event_id: merge for merge in merges_of(changed)}
    assert set(merged) == set(before.values()) - set(sets)
    for event, merge in merged.items():
        members = {doc_id for doc_id in before if before[doc_id] == event}
        assert members <= sets[merge.into]
        assert merge.doc_id in members
        assert len([doc for doc in before.values() if doc == merge.into]) >= len(members)


def test_the_page_shows_an_event_under_the_id_of_one_that_was_merged_with_it(changed):
    index = DocumentIndex.load(str(changed))
    book = EventBook(index, index.events)
    for merge in merges_of(changed):
        assert book.number(merge.event_id) == book.number(merge.into) is not None
    assert book.number("0" * 16) is None


def test_the_next_run_needs_the_other_encoder(changed, tmp_path):
    assert current_choice(str(changed), None) == OTHER
    refuses("encoder", run, changed, days_of_news()[0])
    assert last_number(str(changed)) == 2


def test_a_run_that_was_cut_off_is_resumed_and_counts_what_it_has_embedded(made, changed, tmp_path, monkeypatch):
    archive = copied(made, tmp_path / "archive")
    monkeypatch.setattr("newsembed.updates.run._CHUNK", 10)

    class Dies(Halves):
        def encode(self, titles, bodies):
            if self.embedded >= 10:
                raise Killed
            return super().encode(titles, bodies)

    with pytest.raises(Killed):
        change_encoder(str(archive), Dies(), OTHER)
    assert (last_number(str(archive)), embedded_so_far(str(archive))) == (1, 10)
    monkeypatch.setattr(Writer, "publish", lambda *_: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        change_encoder(str(archive), Halves(), OTHER)
    monkeypatch.undo()
    assert articles_of(archive) == articles_of(made)
    encoder = Halves()
    assert change_encoder(str(archive), encoder, OTHER) == 2
    assert encoder.embedded == 0
    assert articles_of(archive) == articles_of(changed)
    assert embedded_so_far(str(archive)) == 0


def test_the_encoder_of_the_archive_changes_nothing(changed):
    encoder = Halves()
    assert change_encoder(str(changed), encoder, OTHER) == 2
    assert encoder.embedded == 0
    assert Archive(str(changed)).run.number == 2


def test_two_at_once_and_a_training_do_not_work_in_one_folder(made, tmp_path):
    archive = copied(made, tmp_path / "archive")
    with locked(training_work(str(archive)), "--train"), pytest.raises(InputError, match="--replace_encoder"):
        change_encoder(str(archive), Halves(), OTHER)
    assert last_number(str(archive)) == 1


def test_what_cannot_be_changed_is_refused(made, tmp_path):
    refuses("not a local archive", change_encoder, "s3://bucket/archive", Halves(), OTHER)
    refuses("no version", change_encoder, str(tmp_path / "none"), Halves(), OTHER)
    assert not (tmp_path / "none").exists()
    archive = copied(made, tmp_path / "archive")
    shutil.copytree(tmp_path / "archive" / "articles.lance", work_folder(str(archive)))
    refuses("an update was cut off", change_encoder, str(archive), Halves(), OTHER)


def test_a_model_that_moved_with_the_archive_is_found(monkeypatch, tmp_path):
    (tmp_path / "words").mkdir()
    kept = {"clean": {}, "encoder": "model:gone/words", "encoder_beside": "model:../words", "encoder_options": {}}
    monkeypatch.setattr(options, "read_runs", lambda _: [types.SimpleNamespace(settings=kept)])
    assert current_choice(f"{tmp_path}/archive", None).spec == f"model:{os.path.relpath(tmp_path / 'words')}"
