"""A disk that is full: a clear error, and no temporary file left."""

import datetime
import errno

import numpy as np
import pytest
from full_disk import small_files
from newsembed.errors import of_file_system
from newsembed.formats import files
from newsembed.formats.archive import Archive, IndexedDocument
from newsembed.formats.arrays import write_arrays, write_folder, write_table
from newsembed.formats.articles import ArticleText
from tables import index_of

COUNT = 4_000
FULL = r"File too large|requested and \d+ written"  # the system's words, and NumPy's
VECTORS = np.random.default_rng(0).standard_normal((COUNT, 8)).astype(np.float32)
DOCUMENTS = tuple(
    IndexedDocument(f"{n:016x}", f"http://s.example/{n}", "s", f"Title {n * 7919 % 1009}", datetime.date(2020, 1, 1))
    for n in range(COUNT)
)


def chunks():
    for start in range(0, COUNT, 1_000):
        rows = DOCUMENTS[start : start + 1_000]
        yield [ArticleText(one.doc_id, one.url, "", one.title, "") for one in rows], VECTORS[start : start + 1_000]


def written_folder(place):
    named = (([article.doc_id for article in articles], vectors) for articles, vectors in chunks())
    write_folder(str(place), named, 8)


def written_parquet(place):
    write_table(str(place / "v.parquet"), chunks(), 8)


def written_index(place):
    index_of(VECTORS, DOCUMENTS, place)


@pytest.mark.parametrize("size", [0, 200, 20_000, 60_000])
@pytest.mark.parametrize("write", [written_folder, written_parquet])
def test_what_does_not_fit_is_an_error_that_leaves_no_temporary_file(tmp_path, write, size):
    write(tmp_path / "whole")
    complete = {path.name for path in (tmp_path / "whole").iterdir()}
    with pytest.raises(OSError, match=FULL) as raised, small_files(size):
        write(tmp_path / "out")
    found = of_file_system(raised.value, str(tmp_path))
    assert found is not None
    assert found.remedy
    left = {path.name for path in (tmp_path / "out").rglob("*")}
    assert left < complete, left
    assert not left & {"index.json", "SHA256SUMS", "v.parquet"}  # what says that a result is complete
    write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == complete


@pytest.mark.parametrize("size", [200, 20_000, 100_000])
def test_an_index_that_did_not_fit_leaves_the_one_before(tmp_path, size):
    written_index(tmp_path)
    with pytest.raises(OSError, match="File too large") as raised, small_files(size):
        index_of(-VECTORS, DOCUMENTS, tmp_path)
    assert of_file_system(raised.value, str(tmp_path)).remedy
    np.testing.assert_allclose(vectors_in(tmp_path)[:2], unit(VECTORS[:2]), atol=1e-6)
    index_of(-VECTORS, DOCUMENTS, tmp_path)
    np.testing.assert_allclose(vectors_in(tmp_path)[:2], unit(-VECTORS[:2]), atol=1e-6)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def vectors_in(place):
    archive = Archive(str(place))
    return archive.vectors(archive.rows(["doc_id"])["_rowid"].to_pylist())


def test_files_of_jobs_leave_nothing_either(tmp_path):
    for write in (
        lambda path: files.write_whole(path, bytes(1_000)),
        lambda path: write_arrays(path, {"x": np.zeros(1_000)}),
    ):
        with pytest.raises(OSError, match=FULL) as raised, small_files(100):
            write(str(tmp_path / "a/b.npz"))
        assert raised.value.errno == errno.EFBIG
        assert list((tmp_path / "a").iterdir()) == []
