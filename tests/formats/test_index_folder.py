"""Index folders, SavedModel facts and files of vectors: read as written, by this version and the one before."""

import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats import embeddings, saved_model
from newsembed.formats.articles import ArticleText
from newsembed.formats.index import IndexedDocument, StoredIndex, facts_file, read_index, write_index

BEFORE = Path(__file__).parents[1] / "golden" / "index_before"
texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)
documents = st.builds(IndexedDocument, texts, texts, texts, texts, st.none() | st.dates(), texts)


@st.composite
def indexes(draw):
    rows = tuple(draw(st.lists(documents, min_size=1, max_size=4)))
    vectors = np.arange(2 * len(rows), dtype=np.float32).reshape(-1, 2)
    return StoredIndex(vectors, rows, draw(texts), draw(texts), draw(st.none() | st.integers(1, 99)))


@settings(deadline=None, max_examples=30)
@given(indexes())
def test_an_index_is_read_as_written(tmp_path_factory, index):
    folder = str(tmp_path_factory.mktemp("index"))
    write_index(folder, index)
    found = read_index(folder)
    np.testing.assert_array_equal(found.embeddings, index.embeddings)
    for name in ("documents", "encoder", "encoder_digest", "exact_limit", "inverted_file"):
        assert getattr(found, name) == getattr(index, name)


def test_an_encoder_is_named_as_it_was_given_until_it_was_moved_with_the_index(tmp_path, monkeypatch):
    (tmp_path / "old" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    index, row = str(tmp_path / "old" / "index"), IndexedDocument("", "", "", "")
    for given_name, found_elsewhere in (
        (f"model:{tmp_path}/old/model@4", f"model:{tmp_path}/old/model@4"),
        ("model:old/model@4", "model:model@4"),
    ):
        write_index(index, StoredIndex(np.ones((1, 2), np.float32), (row,), given_name))
        assert read_index(index).encoder == given_name
        monkeypatch.chdir(tmp_path / "old")
        assert read_index(index).encoder == found_elsewhere
        monkeypatch.chdir(tmp_path)
    (tmp_path / "old").rename(tmp_path / "new")
    assert read_index(str(tmp_path / "new" / "index")).encoder == "model:new/model@4"
    (tmp_path / "new" / "model").rmdir()
    assert read_index(str(tmp_path / "new" / "index")).encoder == "model:old/model@4"


def test_the_inverted_file_is_kept(tmp_path):
    import faiss

    vectors = np.eye(4, dtype=np.float32)
    inverted = faiss.IndexFlatIP(4)
    inverted.add(vectors)
    rows = tuple(IndexedDocument(str(number), "", "", "") for number in range(4))
    write_index(str(tmp_path), StoredIndex(vectors, rows, exact_limit=2, inverted_file=inverted))
    assert read_index(str(tmp_path)).inverted_file.ntotal == 4
    inverted.add(vectors[:1])
    faiss.write_index(inverted, str(tmp_path / "vectors-00001.faiss"))
    (tmp_path / "SHA256SUMS").unlink()  # as older versions wrote it
    with pytest.raises(InputError, match=r"vectors-00001\.faiss: holds 5 vectors for 4 documents"):
        read_index(str(tmp_path))


def test_an_index_of_the_version_before_is_read():
    index = read_index(str(BEFORE))
    facts = json.loads((BEFORE / "index.json").read_text())
    assert len(index.documents) == facts["documents"] == len(index.embeddings)
    assert index.embeddings.shape[1] == facts["dimensions"]
    assert (index.encoder, index.encoder_digest) == (facts["encoder"], facts["encoder_digest"])
    assert isinstance(index.documents[0].byline_date, datetime.date)


def test_an_index_of_a_later_version_is_refused(tmp_path):
    write_index(str(tmp_path), StoredIndex(np.ones((1, 2), np.float32), (IndexedDocument("a", "", "", ""),)))
    facts = json.loads(Path(facts_file(str(tmp_path))).read_text())
    Path(facts_file(str(tmp_path))).write_text(json.dumps(facts | {"format_version": 3}))
    with pytest.raises(InputError, match="got an index of version 3, expected at most 2"):
        read_index(str(tmp_path))


def test_what_is_no_index_is_named(tmp_path):
    def problem(folder):
        with pytest.raises(InputError) as raised:
            read_index(str(folder))
        assert raised.value.path == str(folder)
        return raised.value.problem

    assert problem(tmp_path / "absent") == "no readable index: no such folder"
    assert problem(tmp_path) == "no readable index: it has no index.json"
    (tmp_path / "index.json").write_text("{")
    assert problem(tmp_path).startswith("no readable index: Expecting property name")
    (tmp_path / "index.json").write_text("{}")  # of the first version, without its keys
    assert problem(tmp_path) == "no readable index: 'search'"


def test_facts_of_a_saved_model_are_read_as_written(tmp_path):
    folder, facts = str(tmp_path), {"digest": "ab", "dimensions": 3, "platforms": ["cpu"]}
    with pytest.raises(InputError, match=r"no saved_model\.pb"):
        saved_model.read_facts(folder)
    Path(saved_model.graph_file(folder)).write_bytes(b"")
    saved_model.write_facts(folder, facts)
    assert saved_model.read_facts(folder) == facts
    of_tokens = facts | {"inputs": "tokens"}
    saved_model.write_facts(folder, of_tokens)
    assert saved_model.read_facts(folder) == of_tokens | {"format_version": 2}  # earlier versions cannot use it
    saved_model.write_facts(folder, facts | {"format_version": 3})
    with pytest.raises(InputError, match="got an export of version 3, expected at most 2"):
        saved_model.read_facts(folder)
    saved_model.write_facts(folder, {"digest": "ab"})
    with pytest.raises(InputError, match="lacks dimensions"):
        saved_model.read_facts(folder)


def test_parameters_are_read_from_the_file_of_tensorflow(tmp_path):
    folder = str(tmp_path)
    zeros, kernel = np.zeros((2000, 3), np.float32), np.arange(6, dtype=np.float16).reshape(2, 3)
    table = np.concatenate([zeros, np.ones((1, 3), np.float32)])  # begins like another one, for more than is looked for
    arrays = {"a.kernel": kernel.T, "bias": zeros, "table": table, "q": np.array([[-1, 2]], np.int8)}
    assert saved_model.read_arrays(folder) is None
    (tmp_path / "variables").mkdir()
    content = b"xyz" + zeros.tobytes() + kernel.T.tobytes() + b"\xff\x02" + table.tobytes()
    (tmp_path / "variables/variables.data-00000-of-00001").write_bytes(content)
    saved_model.write_places(folder, arrays)
    found = saved_model.read_arrays(folder)
    assert {name: value.dtype for name, value in found.items()} == {name: value.dtype for name, value in arrays.items()}
    for name, value in arrays.items():
        np.testing.assert_array_equal(found[name], value)
    with pytest.raises(RuntimeError, match="lacks the parameter other"):
        saved_model.write_places(folder, {"other": table + 1})


def test_files_of_vectors_hold_all_chunks_in_order(tmp_path):
    first, second = np.eye(2, 3, dtype=np.float32), np.ones((1, 3), np.float32)
    day = datetime.date(2024, 2, 29)
    rows = [ArticleText(name, url, "p", f"T{name}", "body", "de", day) for name, url in zip("abc", "uvw", strict=True)]
    chunks = [(rows[:2], first), (rows[2:], second)]
    named = [(["a", "b"], first), (["c"], second)]
    embeddings.write_folder(str(tmp_path / "folder"), iter(named), 3)
    np.testing.assert_array_equal(np.load(tmp_path / "folder/embeddings.npy"), np.concatenate([first, second]))
    assert (tmp_path / "folder/ids.txt").read_text() == "a\nb\nc\n"
    embeddings.write_parquet(str(tmp_path / "new" / "vectors.parquet"), iter(chunks), 3)
    table = pq.read_table(tmp_path / "new" / "vectors.parquet")
    assert table.column("doc_id").to_pylist() == ["a", "b", "c"]
    assert table.column("url").to_pylist() == ["u", "v", "w"]
    assert table.column("title").to_pylist() == ["Ta", "Tb", "Tc"]
    others = ("publisher", "language", "byline_date")
    assert [table.column(name).to_pylist() for name in others] == [["p"] * 3, ["de"] * 3, [day] * 3]
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 3)
    np.testing.assert_array_equal(np.stack(table.column("embedding").to_pylist()), np.concatenate([first, second]))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["vectors.parquet"]
