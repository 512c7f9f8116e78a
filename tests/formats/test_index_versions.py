"""Versions of an index folder: appending shares files, a crash leaves one version whole, and old formats go on."""

import contextlib
import datetime
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats import digests
from newsembed.formats import index as index_files
from newsembed.formats import words as words_files
from newsembed.formats.articles import ArticleText
from newsembed.formats.index import StoredIndex, append_index, read_index, write_index
from newsembed.serving.index import DocumentIndex, append, indexed_document
from newsembed.serving.words import WordsBuilder

BEFORE = Path(__file__).parents[1] / "golden" / "index_before"
DAY = datetime.date(2024, 5, 1)


def articles(start, count):
    return [
        ArticleText(f"d{n}", f"https://a.example/{n}", "a.example", f"title {n}", f"word{n} rain", "en", DAY)
        for n in range(start, start + count)
    ]


def vectors(start, count):
    rows = np.random.default_rng(0).normal(size=(start + count, 4)).astype(np.float32)[start:]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def written(folder, count=8, *, words=True, **options):
    index = DocumentIndex(vectors(0, count), list(map(indexed_document, articles(0, count))), **options)
    if words:
        with WordsBuilder() as builder:
            builder.add(articles(0, count))
        index.words = builder.built()
    index.save(str(folder))
    return str(folder)


def inodes(folder):
    return {str(path.relative_to(folder)): path.stat().st_ino for path in Path(folder).rglob("*") if path.is_file()}


def rows_with(stored, field, term):
    """The numbers of the documents whose words hold a term."""
    import tantivy

    query = tantivy.Query.term_query(stored.words.schema, field, term, index_option="freq")
    return sorted(stored.words.numbers([address for _, address in stored.words.searcher.search(query, 100).hits]))


def test_an_index_grows_by_parts_that_share_the_files_before(tmp_path):
    folder = written(tmp_path)
    before = inodes(folder)
    done = append(folder, 7 * vectors(8, 2), articles(8, 2), encoder_digest="any")
    assert (done.added, done.known, done.documents) == (2, 0, 10)
    after, stored = inodes(folder), read_index(folder)
    np.testing.assert_allclose(stored.embeddings, vectors(0, 10), atol=1e-6)
    assert stored.documents == tuple(map(indexed_document, articles(0, 10)))
    shared = [name for name in before if name.startswith("part-")]
    assert [after[name] for name in shared] == [before[name] for name in shared]
    segments = {inode for name, inode in before.items() if "words-" in name and not name.endswith(".json")}
    assert segments <= set(after.values())
    assert {name.split("/")[0] for name in after} == {
        *("part-00001", "part-00002", "words-00002", "index.json", "SHA256SUMS")
    }  # fmt: skip
    assert [rows_with(stored, "text", word) for word in ("word3", "word9", "rain")] == [[3], [9], [*range(10)]]
    assert stored.words.source(_address(stored, "word9")) == "word9 rain"
    assert digests.differing(folder, digests.read_sums(folder)) == []
    assert set(digests.read_sums(folder)) == set(after) - {"SHA256SUMS"}


def _address(stored, term):
    import tantivy

    query = tantivy.Query.term_query(stored.words.schema, "text", term, index_option="freq")
    return stored.words.searcher.search(query, 1).hits[0][1]


def test_the_same_articles_again_change_nothing(tmp_path):
    folder = written(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert append(folder, vectors(3, 2), articles(3, 2)).known == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    twice = [*articles(7, 3), *articles(8, 1)]
    done = append(folder, np.concatenate([vectors(7, 3), vectors(8, 1)]), twice)
    assert (done.added, done.known, done.documents) == (2, 2, 10)
    np.testing.assert_allclose(read_index(folder).embeddings, vectors(0, 10), atol=1e-6)


def test_the_number_of_parts_stays_small(tmp_path):
    folder = written(tmp_path, 1, words=False)
    for count in range(1, 40):
        append(folder, vectors(count, 1), articles(count, 1))
        assert len(list(tmp_path.glob("part-*"))) <= 1 + np.log2(count + 1)
    stored = read_index(folder)
    np.testing.assert_allclose(stored.embeddings, vectors(0, 40), atol=1e-6)
    assert [document.doc_id for document in stored.documents] == [f"d{n}" for n in range(40)]


def test_the_inverted_file_grows_too(tmp_path):
    folder = written(tmp_path, 30, words=False, exact_limit=32)
    append(folder, vectors(30, 1), articles(30, 1))
    assert read_index(folder).inverted_file is None
    for start in (31, 41):
        append(folder, vectors(start, 10), articles(start, 10))
        found = DocumentIndex.load(folder)
        found._faiss.nprobe = found._faiss.nlist
        expected = np.argsort(-(vectors(0, start + 10) @ vectors(start, 1)[0]))[:5]
        assert [hit.document.doc_id for hit in found.search(vectors(start, 1)[0], 5)] == [f"d{n}" for n in expected]
    assert len(list(tmp_path.glob("vectors-*"))) == 1


def test_an_index_of_the_format_before_goes_on_without_words(tmp_path):
    shutil.copytree(BEFORE, tmp_path / "i")
    before = read_index(str(BEFORE))
    width = before.embeddings.shape[1]
    rows = np.eye(2, width, dtype=np.float32)
    assert append(str(tmp_path / "i"), rows, articles(0, 2)).documents == len(before.documents) + 2
    after = read_index(str(tmp_path / "i"))
    assert after.documents == (*before.documents, *map(indexed_document, articles(0, 2)))
    np.testing.assert_allclose(after.embeddings, np.concatenate([before.embeddings, rows]), atol=1e-6)
    assert (after.words, after.encoder_digest) == (None, before.encoder_digest)
    assert {path.name for path in (tmp_path / "i").iterdir()} == {
        *("SHA256SUMS", "index.json", "part-00001", "part-00002")
    }  # fmt: skip


class CrashError(BaseException):
    """The process ends here."""


def crash_at(monkeypatch, folder, step):
    """Lets the process end at a call that changes the folder; no cleaning follows. Returns the calls so far."""
    calls = []

    def counted(function):
        def call(*arguments, **options):
            if any(str(argument).startswith(folder) for argument in arguments):
                calls.append(function.__name__)
                if len(calls) == step:
                    raise CrashError
            return function(*arguments, **options)

        return call

    for module, name in ((os, "replace"), (os, "remove"), (os, "link"), (os, "makedirs"), (shutil, "rmtree")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    remove = index_files._remove_unpublished
    monkeypatch.setattr(index_files, "_remove_unpublished", lambda place: len(calls) >= step or remove(place))
    return calls


@pytest.mark.parametrize("first_format", [False, True])
def test_a_crash_leaves_one_version_whole(tmp_path, monkeypatch, first_format):
    old, step = tmp_path / "old", 0
    if first_format:
        shutil.copytree(BEFORE, old)
        digests.write_sums(str(old))
    else:
        written(old)
    before = read_index(str(old))
    count, rows = len(before.documents), np.eye(2, before.embeddings.shape[1], dtype=np.float32)
    seen = set()
    while True:
        step += 1
        folder = str(tmp_path / f"crash{step}")
        shutil.copytree(old, folder)
        with monkeypatch.context() as patch:
            calls = crash_at(patch, folder, step)
            with contextlib.suppress(CrashError):
                append(folder, rows, articles(count, 2))
            has_crashed = len(calls) >= step
        found = read_index(folder)
        assert found.documents in (before.documents, (*before.documents, *map(indexed_document, articles(count, 2))))
        assert found.embeddings.shape[0] == len(found.documents)
        seen.add(len(found.documents))
        if len(found.documents) == count:  # the digests of its files are still listed; index.json holds its own
            listed = digests.read_sums(str(old)).items()
            assert {item for item in listed if item[0] != "index.json"} <= digests.read_sums(folder).items()
        assert (
            digests.damage(folder, [name for name in digests.read_sums(folder) if os.path.exists(f"{folder}/{name}")])
            == ""
        )
        append(folder, rows, articles(count, 2))
        done = read_index(folder)
        np.testing.assert_allclose(done.embeddings, np.concatenate([before.embeddings, rows]), atol=1e-6)
        if done.words is not None:
            assert rows_with(done, "text", "rain") == [*range(count + 2)]
        if not has_crashed:
            break
    assert seen == {count, count + 2}
    assert step > 6


def test_a_reader_of_a_version_that_goes_gets_the_next(tmp_path, monkeypatch):
    folder = written(tmp_path)
    read_part, more = index_files._read_part, [tuple(map(indexed_document, articles(8, 9)))]

    def read_late(place):
        if more:
            append_index(folder, StoredIndex(vectors(8, 9), more.pop()), 8, lambda words: None)
        return read_part(place)

    monkeypatch.setattr(index_files, "_read_part", read_late)
    monkeypatch.setattr(index_files, "_read_words", lambda path, rows: words_files.WordsFolder(path))
    assert len(read_index(folder).documents) == 17  # the part of the first version is gone
    (tmp_path / "part-00002/documents.parquet").unlink()
    with pytest.raises(InputError, match="no readable index"):
        read_index(folder)


def test_one_process_writes_at_a_time(tmp_path):
    folder = written(tmp_path)
    with index_files._writing(folder), pytest.raises(InputError, match="another process writes this index"):
        append(folder, vectors(8, 1), articles(8, 1))
    with pytest.raises(InputError, match="another process has changed the index to 8 documents"):
        append_index(folder, StoredIndex(vectors(8, 1), tuple(map(indexed_document, articles(8, 1)))), 7)
    append(folder, vectors(8, 1), articles(8, 1))


def test_what_does_not_fit_an_index_is_refused(tmp_path):
    folder = written(tmp_path, encoder="model:m", encoder_digest="one")
    with pytest.raises(InputError, match=r"with another encoder \(model:m\)"):
        append(folder, vectors(8, 1), articles(8, 1), encoder_digest="two")
    with pytest.raises(InputError, match="3 dimensions for an index of 4"):
        append(folder, np.ones((1, 3), np.float32), articles(8, 1))
    with pytest.raises(InputError, match=r"shape \(2, 4\) for 1 article$"):
        append(folder, vectors(8, 2), articles(8, 1))
    with pytest.raises(InputError, match="NaN"):
        append(folder, np.full((1, 4), np.nan, np.float32), articles(8, 1))
    with pytest.raises(InputError, match="no readable index"):
        append(str(tmp_path / "none"), vectors(8, 1), articles(8, 1))
    assert len(read_index(folder).documents) == 8


def test_changed_words_are_noticed(tmp_path):
    folder = written(tmp_path)
    for path in sorted((tmp_path / "words-00001").iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(InputError, match=r"not the content that SHA256SUMS lists: words-00001"):
            read_index(folder)
        path.write_bytes(whole)
    write_index(str(tmp_path / "other"), StoredIndex(vectors(0, 2), tuple(map(indexed_document, articles(0, 2)))))
    other = read_index(written(tmp_path / "more", 3))
    with pytest.raises(InputError, match="holds the words of 3 documents, expected 8"):
        index_files._read_words(other.words.folder, 8)
    shutil.rmtree(tmp_path / "words-00001")
    (tmp_path / "SHA256SUMS").unlink()
    with pytest.raises(InputError, match=r"words-00001: no readable words"):
        read_index(folder)


def test_other_files_of_the_folder_stay(tmp_path):
    (tmp_path / "embeddings.npy").write_bytes(b"mine")
    (tmp_path / "notes.tmp").write_bytes(b"mine")
    written(tmp_path)
    written(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("embeddings.npy", "notes.tmp", "SHA256SUMS", "index.json", "part-00002", "words-00002")
    }  # fmt: skip


def test_a_folder_that_nobody_may_write_is_searched(tmp_path):
    folder = written(tmp_path)
    before = inodes(folder)
    assert rows_with(read_index(folder), "text", "word2") == [2]
    assert inodes(folder) == before  # tantivy would leave lock files
