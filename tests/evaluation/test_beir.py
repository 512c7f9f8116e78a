"""Retrieval sets in BEIR's format: metrics equal to trec_eval's, also with ties; prompts; errors name the place."""

import numpy as np
import pytest
from benchmarking import found
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.evaluation.benchmark import discover
from newsembed.evaluation.benchmarks.beir import BeirRetrieval, query_scores, rankings
from newsembed.evaluation.encoders import Document, encode_checked
from newsembed.serving.interface import DocumentEncoder
from vectors import circle

CORPUS = {"a": ("A title", "storm"), "b": ("", "flood"), "c": ("", "vote"), "e": ("", ""), "q1": ("", "its own report")}
QUERIES = {"q1": "rain", "q2": "election", "unjudged": "sport"}
QRELS = "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t1\nq1\tc\t0\nq2\tc\t1\nq2\tgone\t1\n"


@pytest.fixture
def folder(tmp_path):
    """A set of four documents with text, one of them with the id of a query, and of two judged queries."""
    rows = [{"_id": one, "title": title, "text": text} for one, (title, text) in CORPUS.items()]
    write_rows(tmp_path / "corpus.jsonl", rows)
    rows = [{"_id": one, "text": text, "metadata": {}} for one, text in QUERIES.items()]
    write_rows(tmp_path / "queries.jsonl", rows)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(QRELS)
    return tmp_path


def test_scores_are_means_over_judged_queries_and_leave_out_a_document_with_the_id_of_the_query(folder):
    benchmark = BeirRetrieval(str(folder))
    documents = benchmark.documents()
    queries = [Document("", text, is_query=True) for text in ("rain", "election")]
    texts = [("", "its own report"), ("", "vote"), ("", "flood"), ("A title", "storm")]
    assert documents == [*queries, *(Document(*text) for text in texts)]
    # q1 ranks its own report (left out), b, a, c; q2 ranks a, c, b, q1.
    scores = found(benchmark.score(circle(0, 55, 0, 90, 10, 30)))
    first = (1 + 2 / np.log2(3)) / (2 + 1 / np.log2(3))
    second = 1 / np.log2(3) / (1 + 1 / np.log2(3))
    assert scores["nDCG@10", "all"].value == pytest.approx((first + second) / 2)
    assert scores["recall@100", "all"].value == pytest.approx((1 + 0.5) / 2)
    assert scores["recall@100", "all"].count == 2


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_metrics_equal_those_of_trec_eval_on_random_runs_with_ties(levels, monkeypatch):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="trec_eval is not installed")
    monkeypatch.setattr("newsembed.evaluation.benchmarks.beir._CELLS", 700)  # several blocks of queries
    random = np.random.default_rng(levels)
    queries, documents = np.eye(20, dtype=np.float32), random.integers(0, levels, (300, 20)).astype(np.float32) / 1024
    ids = sorted((f"d{number}" for number in range(300)), reverse=True)
    judged = {
        f"q{query}": {
            f"d{number}": int(random.integers(-1, 4)) for number in random.choice(320, random.integers(1, 150), False)
        }
        for query in range(20)
    }
    judged["q0"] = {"d1": 0}  # no relevant document
    run = {f"q{q}": {one: float(documents[n, q]) for n, one in enumerate(ids)} for q in range(20)}
    wanted = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recall.100"}).evaluate(run)
    for (query, scores), rows in zip(judged.items(), rankings(queries, documents, 101), strict=True):
        ours = query_scores([ids[row] for row in rows], scores)
        assert ours["nDCG@10"] == pytest.approx(wanted[query]["ndcg_cut_10"], abs=1e-6)
        assert ours["recall@100"] == pytest.approx(wanted[query]["recall_100"], abs=1e-6)


class Prompted:
    """An encoder that shows what it was asked."""

    digest, dimensions = "prompted", 2

    def encode(self, titles, bodies):
        assert "rain" not in bodies
        return np.tile(np.float32([[1, 0]]), (len(titles), 1))

    def encode_queries(self, texts):
        assert texts == ["rain", "election"]
        return np.tile(np.float32([[0, 1]]), (len(texts), 1))


def test_queries_get_the_prompt_of_queries_and_their_own_place_in_the_cache(folder, tmp_path):
    documents = BeirRetrieval(str(folder)).documents()
    rows = DocumentEncoder(Prompted()).encode(documents)
    assert rows[:, 1].tolist() == [1, 1, 0, 0, 0, 0]

    class Asked:
        digest = "asked"

        def encode(self, documents):
            return np.float32([[document.is_query, 1] for document in documents])

    cache = str(tmp_path / "cache")
    query, text = Document("", "rain", is_query=True), Document("", "rain")
    assert encode_checked(Asked(), [query], cache).embeddings[0, 0] > 0
    assert encode_checked(Asked(), [text], cache).embeddings[0, 0] == 0


def test_a_folder_is_found(folder):
    benchmarks = discover(str(folder))
    assert [one.protocol["suite"] for one in benchmarks] == ["beir"]
    assert benchmarks[0].protocol["qrels"] == "test"


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "b", "title": "t"}\n', "corpus.jsonl:2, text"),
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n', "corpus.jsonl:2, _id"),
        ("corpus.jsonl", '{"_id": 7, "text": "x"}\n', "corpus.jsonl:1, _id"),
        ("corpus.jsonl", '{"_id": "a", "text": ""}\n', "corpus.jsonl"),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}\n{"_id": "q2", "text": " "}\n', "queries.jsonl, _id"),
        ("qrels/test.tsv", "q1\ta\t1\n", "test.tsv:1, header"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\n", "test.tsv:2"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t1\nq1\tb\thigh\n", "test.tsv:3, score"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n", "test.tsv"),
    ],
)
def test_errors_name_file_line_and_column(folder, name, text, place):
    (folder / name).write_text(text)
    with pytest.raises(InputError) as error:
        BeirRetrieval(str(folder)).documents()
    shown = str(error.value)
    assert place.split(", ")[0] in shown
    assert place.split(", ")[-1] in shown
    assert "remedy" in shown


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"{name.split('/')[-1]}(?s:.*)get the set from https"):
        BeirRetrieval(str(folder)).documents()
