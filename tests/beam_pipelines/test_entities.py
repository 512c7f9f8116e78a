"""Names in texts, embeddings and the job ``entities``."""

import datetime
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import entities
from newsembed.beam_pipelines.entities import cooccurrence, frequent_nouns, read_column, tables, word_frequencies
from newsembed.beam_pipelines.entities.cooccurrence import embed_items, ppmi_svd
from newsembed.beam_pipelines.entities.linking import Mentions, WordUse, is_title_case, name_spans, words_of
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.formats import parquet
from newsembed.formats.records import Article, make_doc_id
from newsembed.tests.example_inputs import manifest_of, split, write_stream

DAY = datetime.date(2021, 6, 1)


def spans(text, **uses):
    return [" ".join(span) for span in name_spans(text, uses)]


@given(st.text(st.sampled_from("aZ9sS'.&-_ ,\n"), max_size=12))
def test_texts_in_ascii_have_the_words_that_they_have_beside_other_characters(text):
    assert [*words_of(text), "\u00e9"] == words_of(f"{text} \u00e9")


def test_words_of_scripts():
    assert words_of("Trump's aides met Anne-Marie O'Neill.") == ["Trump", "s", "aides", "met", "Anne-Marie", "O'Neill"]
    assert words_of("नरेंद्र मोदी") == ["नरेंद्र", "मोदी"]
    assert words_of("習近平 met") == ["習", "近", "平", "met"]


def test_name_spans_keep_connectors_and_initials():
    assert spans("We saw Donald J. Trump at the Bank of America today.") == ["Donald J Trump", "Bank of America"]


def test_name_spans_doubt_starts_of_sentences_and_title_case():
    assert is_title_case("President Visits Flooded Valley Towns")
    assert not is_title_case("President visits the flooded valley in Wales")
    but = WordUse(lower=50, capital=0)
    assert spans("But Jane Roe said no. Paris slept. They like Paris.", but=but, they=but) == ["Paris"]


def parts(*documents):
    return [(np.concatenate([np.array(one, int) for one in documents]), np.array([len(one) for one in documents]))]


@pytest.mark.parametrize("at_once", [3, 10**6])
@pytest.mark.parametrize("part", [1, 7])
def test_pmi_equals_counting_by_hand(monkeypatch, tmp_path, at_once, part):
    monkeypatch.setattr(cooccurrence, "_ENTRIES_AT_ONCE", at_once)
    monkeypatch.setattr(cooccurrence, "_NUMBERS_AT_ONCE", at_once)
    draw = np.random.default_rng(0)
    # The most frequent four are contexts. Some documents, one of them the last, have no items.
    shares = np.array([1, 4, 1, 1, 4, 4, 1, 1, 4]) / 21
    every = [np.unique(draw.choice(9, draw.integers(0, 5), p=shares)) for _ in range(40)]
    every[-1] = every[0]
    # Repeats within a document count once.
    repeated = [[*one, *one[:1]] for one in every]
    documents = [one for start in range(0, 40, part) for one in parts(*repeated[start : start + part])]
    contexts = [1, 4, 5, 8]
    counts = np.array([[sum(i in one and c in one and i != c for one in every) for c in contexts] for i in range(9)])
    # A context counts with all items, and an item with the contexts.
    columns = np.array([sum(len(one) - 1 for one in every if c in one) for c in contexts]) ** 0.75
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.fmax(np.log(counts * columns.sum() / (counts.sum(1, keepdims=True) * columns)), 0)
    pmi = cooccurrence.positive_pmi(str(tmp_path), 9, documents, len(contexts))
    np.testing.assert_allclose(pmi.toarray(), expected, rtol=1e-5)
    assert pmi.has_sorted_indices
    assert pmi.nnz == np.count_nonzero(expected)


def test_the_most_frequent_capitalised_words_are_nouns_where_most_words_have_capitals():
    german = {"haus": WordUse(0, 60), "ulm": WordUse(0, 2), "und": WordUse(90, 0), "baum": WordUse(0, 9)}
    english = {"trump": WordUse(0, 60), "and": WordUse(90, 0), "said": WordUse(80, 0), "of": WordUse(70, 0)}
    german[""] = english[""] = WordUse(100, 100)  # the number of documents
    assert frequent_nouns({"de": german}) == {"haus", "baum"}  # "ulm" is in 2 % of the documents, not in more
    assert frequent_nouns({"en": english}) == set()  # one of four frequent words has a capital
    half = {**english, "monday": WordUse(0, 50), "tuesday": WordUse(0, 40)}
    assert frequent_nouns({"en": half}) == {"trump", "monday", "tuesday"}  # three of six


def test_a_word_of_several_languages_has_its_highest_frequency():
    uses = {"de\tdie": 60, "de\thaus": 40, "en\tdie": 10, "en\tof": 90, "en\trare": 2}
    counts = {"de\t": (9, 9, 9), **{key: (0, 0, count) for key, count in uses.items()}}
    found = word_frequencies(counts, 3, 10)
    assert [word for word, _ in found] == ["of", "die", "haus"]
    assert [frequency for _, frequency in found] == pytest.approx([90 / 102, 0.6, 0.4])
    assert word_frequencies(counts, 3, 2) == found[:2]


def test_counts_are_summed_by_name_and_kept_if_any_of_them_is_large_enough(tmp_path):
    shards = [{"a": (1, 0), "b": (2, 0), "c": (1, 1)}, {"a": (0, 2), "b": (1, 0), "c": (1, 1)}]
    for index, counts in enumerate(shards):
        with Shard(Phase(str(tmp_path), "count", 2), index) as shard:
            tables.write_counts(shard, "_counts", counts)
    for bucket in range(16):
        with Shard(Phase(str(tmp_path), "sum", 16), bucket) as shard:
            tables._sum_bucket(shard, bucket, "_counts", "_sums", 3)
    assert tables.read_counts(f"{tmp_path}/_sums") == {"b": (3, 0)}


def test_the_first_numbers_of_each_document_are_kept(tmp_path):
    rows = [Mentions(str(n), DAY, "p", "en", tuple(range(n)), tuple([1] * n), (), None) for n in range(5)]
    parquet.write_shard(str(tmp_path / "part-00000-of-00001.parquet"), rows, Mentions)
    ((numbers, lengths),) = read_column(str(tmp_path), "entities", 2)
    assert (numbers.tolist(), lengths.tolist()) == ([0, 0, 1, 0, 1, 0, 1], [0, 1, 2, 2, 2])
    ((numbers, lengths),) = read_column(str(tmp_path), "entities", 3, np.array([7, -1, 5, 4, 3]))
    assert (numbers.tolist(), lengths.tolist()) == ([7, 7, 7, 5, 7, 5], [0, 1, 1, 2, 2])


def test_embeddings_bring_items_of_one_context_together():
    documents = parts([0, 1, 2], [0, 1, 2]) * 5 + parts([3, 4, 5]) * 10 + parts([0, 3])
    context = ppmi_svd(7, documents, 4)
    assert context.shape == (7, 4)
    assert context[1] @ context[2] > context[1] @ context[4]
    assert not context[6].any()
    keys = [f"k{number}" for number in range(7)]
    mixed = embed_items(keys, documents, 4, 64, 0.7)
    np.testing.assert_allclose(np.linalg.norm(mixed, axis=1), 1, atol=1e-5)
    assert 0.5 > mixed[1] @ mixed[2] > mixed[1] @ mixed[4] - 0.3
    np.testing.assert_array_equal(mixed, embed_items(keys, documents, 4, 64, 0.7))
    context, signature = embed_items(keys, documents, 3, 64, 0.0), embed_items(keys, documents, 3, 64, 1.0)
    assert not context[:, 3:].any()
    assert not signature[:, :3].any()
    np.testing.assert_allclose(np.abs(signature[:, 3:]), 1 / 8)


def write_corpus(folder, shards=2):
    articles = []
    for number in range(40):
        who, where = ("Jane Roe", "Marrowick") if number % 2 else ("Carl Ulm", "Osterby")
        body = f"There was news. We heard that {who} went to {where} on Monday. The town thanked {who[5:]} and slept."
        url, title = f"http://p{number % 3}.example/{number}", f"What {who} did in {where} again"
        articles.append(Article(make_doc_id(url), url, f"p{number % 3}", title, body, byline_date=DAY, language="en"))
    write_stream(folder, "articles", split(articles, shards), Article)
    return folder


def test_entities_do_not_depend_on_sharding(tmp_path):
    outputs = []
    for shards in (1, 3):
        corpus = write_corpus(tmp_path / f"clean{shards}", shards)
        out = tmp_path / f"entities{shards}"
        options = entities.EntitiesOptions(dimensions=4, built_in_names=False)
        manifest_of(entities.JOB, {"articles": [str(corpus)]}, out, options)
        outputs.append([(out / name).read_bytes() for name in ("aliases.tsv", "entities.tsv", "words.tsv")])
    assert outputs[0] == outputs[1]


def test_the_decomposition_has_one_blas_thread_also_where_the_shard_loads_scipy_first():
    code = """
import numpy as np
from newsembed.tasks.one_thread import ONE_BLAS_THREAD
with ONE_BLAS_THREAD:
    from newsembed.beam_pipelines.entities.cooccurrence import ppmi_svd
    import sklearn.utils.extmath
    from threadpoolctl import threadpool_info
    def counted(pmi, rank, **options):
        print(sorted({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}))
        return np.zeros((pmi.shape[0], rank)), np.zeros(rank), None
    sklearn.utils.extmath.randomized_svd = counted
    ppmi_svd(4, [(np.array([0, 1, 2, 3, 0, 1]), np.array([4, 2]))], 2)
"""
    variables = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    run = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert run.stdout == "[1]\n"
