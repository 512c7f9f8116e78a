"""The example of Qdrant in the documentation, run on what `newsembed embed` writes."""

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from newsembed.launch import cli

PAGE = Path(__file__).parents[2] / "docs/guides/serve.md"


def example(name):
    """The block that reads the vectors, and that of one database, as one program."""
    section = PAGE.read_text().partition("## Other databases")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if name in block]
    return blocks[0] + block


def test_the_example_of_qdrant_finds_the_nearest_articles(tiny, articles, tmp_path, monkeypatch):
    pytest.importorskip("qdrant_client", reason="the extra dev installs qdrant-client")
    tiny.save_model(tmp_path / "model", steps=(1,))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["embed", "--model", "model", "--input", articles, "--output", "vectors.parquet"]) == 0
    names: dict = {}
    exec(compile(example("qdrant_client"), str(PAGE), "exec"), names)
    rows = pq.read_table("vectors.parquet").to_pylist()
    cosines = np.stack([row["embedding"] for row in rows]) @ names["query"]
    expected = sorted(zip(cosines, [row["doc_id"] for row in rows], [row["title"] for row in rows], strict=True))[::-1]
    hits = names["hits"]
    assert len(hits) == len(rows) == len(tiny.articles)
    np.testing.assert_allclose([hit.score for hit in hits], [cosine for cosine, _, _ in expected], atol=1e-5)
    found = {(f"{hit.id:016x}", hit.payload["title"]) for hit in hits}
    assert found == {(doc_id, title) for _, doc_id, title in expected}
    assert (f"{hits[0].id:016x}", hits[0].payload["title"]) in [
        (doc_id, title) for cosine, doc_id, title in expected if cosine > expected[0][0] - 1e-5
    ]
    assert {row["url"] for row in rows} == {hit.payload["url"] for hit in hits}
    names["client"].close()


@pytest.mark.parametrize("name", ["to_pandas", "polars", "duckdb"])
def test_other_tools_open_an_index(name, tiny, articles, tmp_path, monkeypatch):
    pytest.importorskip(name.removeprefix("to_"), reason="not installed here")
    monkeypatch.chdir(tmp_path)
    names = opened_without_newsembed(tiny, articles)
    exec(compile(of_section("Open it with other tools", name), str(PAGE), "exec"), names)
    found = names["rows"] if name == "duckdb" else names["frame"]
    assert len(found) == (len({row["publisher"] for row in names["table"].to_pylist()}) if name == "duckdb" else 5)


def test_lancedb_opens_an_index_without_newsembed(tiny, articles, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = opened_without_newsembed(tiny, articles)
    assert len(names["table"]) == len(tiny.articles)
    assert names["dates"].num_rows == 0  # these articles have no language


def opened_without_newsembed(tiny, articles):
    tiny.save_model(Path("model").absolute(), steps=(1,))
    assert cli.main(["index", "--model", "model", "--input", articles, "--output", "index"]) == 0
    names: dict = {}
    exec(compile(of_section("Open it with other tools", "import lancedb"), str(PAGE), "exec"), names)
    return names


def of_section(title, word):
    section = PAGE.read_text().partition(f"## {title}")[2].partition("\n## ")[0]
    (block,) = [one for one in re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S) if word in one]
    return block
