"""Names in texts, aliases, linking, embeddings and the job ``entities``."""

import datetime
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.entities import (
    JOB,
    EntitiesOptions,
    cooccurrence,
    counting,
    frequent_nouns,
    occurrences,
    tables,
    word_frequencies,
)
from newsembed.beam_pipelines.entities.aliases import resolve_names
from newsembed.beam_pipelines.entities.cooccurrence import embed_items, ppmi_svd
from newsembed.beam_pipelines.entities.linking import Linker
from newsembed.beam_pipelines.entities.mentions import Mentions, find_mentions, read_column
from newsembed.beam_pipelines.entities.tables import Alias
from newsembed.beam_pipelines.entities.tokens import WordUse, is_title_case, name_spans, words_of
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, make_doc_id

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


def test_name_spans_doubt_starts_of_sentences():
    but = WordUse(lower=50, capital=0)
    assert spans("But Jane Roe said no. Paris slept. They like Paris.", but=but, they=but) == ["Paris"]


def test_title_case():
    assert is_title_case("President Visits Flooded Valley Towns")
    assert not is_title_case("President visits the flooded valley in Wales")


def test_resolve_names_merges_variants_and_clear_surnames():
    documents = {
        "Jane Roe": 10,
        "Jane Q Roe": 3,
        "President Jane Roe": 4,
        "Roe": 9,
        "Ann Poe": 5,
        "Bob Poe": 5,
        "Poe": 8,
    }
    entities, aliases = resolve_names(documents, 100)
    meaning = {item.alias: item.entity for item in aliases if item.prior >= 0.5}
    assert {meaning[name] for name in ("Jane Roe", "Jane Q Roe", "President Jane Roe", "Roe")} == {"Jane_Roe"}
    assert meaning["Poe"] == "Poe"
    assert sorted(item.entity for item in aliases if item.alias == "Poe") == ["Ann_Poe", "Bob_Poe", "Poe"]
    assert [item.name for item in entities][0] == "Jane Roe"


def meanings(documents):
    return {(item.alias, item.entity): item.prior for item in resolve_names(documents, 100)[1]}


def test_a_surname_is_an_entity_of_its_own_unless_one_bearer_has_most_of_the_documents():
    for jane, own in ((60, set()), (59, {"Roe"})):
        found = meanings({"Jane Roe": jane, "Bob Roe": 100 - jane, "Roe": 90})
        assert {entity for alias, entity in found if alias == "Roe"} == {"Jane_Roe", "Bob_Roe", *own}


def test_a_bare_word_much_more_frequent_than_the_full_name_stays_its_own_entity():
    assert meanings({"Jane Roe": 10, "Roe": 50}) == {("Jane Roe", "Jane_Roe"): 1.0, ("Roe", "Jane_Roe"): 1.0}
    assert meanings({"Jane Roe": 10, "Roe": 51}) == {
        ("Jane Roe", "Jane_Roe"): 1.0,
        ("Roe", "Roe"): 0.6,
        ("Roe", "Jane_Roe"): pytest.approx(0.4),
    }


def test_a_longer_name_is_a_variant_only_of_a_more_frequent_one():
    assert meanings({"Jane Roe": 5, "President Jane Roe": 4})["President Jane Roe", "Jane_Roe"] == 1.0
    assert meanings({"Jane Roe": 4, "President Jane Roe": 4})["President Jane Roe", "President_Jane_Roe"] == 1.0


def test_rare_full_names_are_not_meanings_of_a_surname():
    found = meanings({"Ann Poe": 45, "Bob Poe": 46, "Cid Poe": 9, "Poe": 80})
    assert {entity for alias, entity in found if alias == "Poe"} == {"Poe", "Ann_Poe", "Bob_Poe"}
    found = meanings({"Ann Poe": 45, "Bob Poe": 45, "Cid Poe": 10, "Poe": 80})
    assert ("Poe", "Cid_Poe") in found  # exactly a tenth of the documents


def test_linker_prefers_the_longest_whole_words():
    linker = Linker(
        [Alias("New York", "a", 1, ""), Alias("New York Times", "b", 1, ""), Alias("Iran", "c", 1, "")],
        {"a": 0, "b": 1, "c": 2},
    )
    assert linker.link(["The New York Times of New York, Iranian Iran"]) == {0: 1, 1: 1, 2: 1}


def test_linker_disambiguates_by_the_document_then_by_prior():
    aliases = [
        Alias("Jane Roe", "jane", 1, ""),
        Alias("John Roe", "john", 1, ""),
        Alias("Roe", "jane", 0.7, ""),
        Alias("Roe", "john", 0.3, ""),
    ]
    linker = Linker(aliases, {"jane": 0, "john": 1})
    assert linker.link(["Roe"]) == {0: 1}
    assert linker.link(["John Roe came. Roe left."]) == {1: 2}
    assert Linker([Alias("Roe", "jane", 0.4, "")], {"jane": 0}).link(["Roe"]) == {}
    assert Linker([Alias("Roe", "jane", 0.5, "")], {"jane": 0}).link(["Roe"]) == {0: 1}
    assert Linker([], {}).link(["Roe"]) == {}


def test_mentions_are_ranked_by_count_and_words_come_from_title_keywords_and_lead():
    names = ("Roe", "Ulm", "Poe")
    linker = Linker([Alias(name, name, 1, "") for name in names], {name: row for row, name in enumerate(names)})
    body = "Ulm met Poe and Roe. Late vote."
    article = Article(make_doc_id("a"), "u", "p", "Flood in Ulm", body, keywords=("Storm",))
    found = find_mentions(article, linker, {"flood": 0, "vote": 1, "storm": 2, "met": 3, "roe": 4}, 5)
    assert (found.entities, found.entity_counts) == ((1, 0, 2), (2, 1, 1))
    assert found.words == (0, 2, 3, 4)  # the fifth word of the body is "Roe"; "vote" comes later


WORD = st.sampled_from(["ab", "abc", "b", "a-b", "New", "York"])


@given(st.lists(st.lists(WORD, min_size=1, max_size=3), min_size=1, max_size=6), st.lists(WORD, max_size=12))
def test_linker_equals_a_plain_scan(names, text):
    keys = sorted({" ".join(name) for name in names})
    linker = Linker([Alias(key, key, 1, "") for key in keys], {key: row for row, key in enumerate(keys)})
    expected, place = {}, 0
    while place < len(text):
        match = max(
            (key for key in keys if text[place : place + len(key.split())] == key.split()),
            key=lambda key: len(key.split()),
            default="",
        )
        if match:
            expected[keys.index(match)] = expected.get(keys.index(match), 0) + 1
        place += max(1, len(match.split()))
    assert linker.link([" ".join(text)]) == expected


def parts(*documents):
    return [(np.concatenate([np.array(one, int) for one in documents]), np.array([len(one) for one in documents]))]


@pytest.mark.parametrize("at_once", [3, 20, 10**6])
@pytest.mark.parametrize("part", [1, 7, 40])
def test_pmi_equals_counting_by_hand(monkeypatch, tmp_path, at_once, part):
    monkeypatch.setattr(cooccurrence, "_ENTRIES_AT_ONCE", at_once)
    monkeypatch.setattr(occurrences, "_NUMBERS_AT_ONCE", at_once)
    draw = np.random.default_rng(0)
    # The most frequent four are contexts. Some documents, one of them the last, have no items.
    every = [
        np.unique(draw.choice(9, draw.integers(0, 5), p=np.array([1, 4, 1, 1, 4, 4, 1, 1, 4]) / 21)) for _ in range(40)
    ]
    every[-1] = every[0]
    documents = [one for start in range(0, 40, part) for one in parts(*every[start : start + part])]
    contexts = [1, 4, 5, 8]
    counts = np.array(
        [[sum(i in one and c in one for one in every) if i != c else 0 for c in contexts] for i in range(9)], float
    )
    # A context counts with all items, and an item with the contexts.
    columns = np.array([sum(len(one) - 1 for one in every if c in one) for c in contexts]) ** 0.75
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.fmax(np.log(counts * columns.sum() / (counts.sum(1, keepdims=True) * columns)), 0)
    found = occurrences.write_occurrences(str(tmp_path), 9, documents, 4)
    assert found.contexts.tolist() == contexts
    pmi = cooccurrence.positive_pmi(str(tmp_path), found)
    np.testing.assert_allclose(pmi.toarray(), expected, rtol=1e-5)
    assert pmi.has_sorted_indices
    assert pmi.nnz == np.count_nonzero(expected)


def test_repeats_within_a_document_count_once():
    documents = [[0, 1, 2], [1, 2], [2, 3], [1, 4, 2]]
    repeated = [[*one, *one[:1], *one[:1]] for one in documents]
    np.testing.assert_array_equal(ppmi_svd(5, parts(*repeated), 3), ppmi_svd(5, parts(*documents), 3))


def test_a_corpus_without_documents_or_without_pairs_has_no_directions():
    assert not ppmi_svd(3, [], 2).any()
    assert not ppmi_svd(3, parts([], []), 2).any()
    assert not ppmi_svd(3, parts([0], [1], []), 2).any()


def test_the_memory_of_co_occurrence_does_not_grow_with_the_documents():
    def peak(documents):
        draw = np.random.default_rng(0)
        corpus = [(draw.integers(0, 500, 20 * 250), np.full(250, 20)) for _ in range(documents // 250)]
        tracemalloc.start()
        ppmi_svd(500, iter(corpus), 8)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(250)  # imports
    assert peak(40_000) < 1.2 * peak(10_000)


def test_the_most_frequent_capitalised_words_are_nouns_where_most_words_have_capitals():
    german = {"haus": WordUse(0, 60), "ulm": WordUse(0, 2), "und": WordUse(90, 0), "baum": WordUse(0, 9)}
    english = {"trump": WordUse(0, 60), "and": WordUse(90, 0), "said": WordUse(80, 0), "of": WordUse(70, 0)}
    german[""] = english[""] = WordUse(100, 100)  # the number of documents
    assert frequent_nouns({"de": german}, 0.02) == {"haus", "baum"}  # "ulm" is in 2 % of the documents, not in more
    assert frequent_nouns({"en": english}, 0.02) == set()  # one of four frequent words has a capital
    half = {**english, "monday": WordUse(0, 50), "tuesday": WordUse(0, 40)}
    assert frequent_nouns({"en": half}, 0.02) == {"trump", "monday", "tuesday"}  # three of six


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
            counting.write_counts(shard, "_counts", counts)
    for bucket in range(16):
        with Shard(Phase(str(tmp_path), "sum", 16), bucket) as shard:
            counting._sum_bucket("_counts", "_sums", 3, shard, bucket)
    assert counting.read_counts(f"{tmp_path}/_sums") == {"b": (3, 0)}


def test_the_first_numbers_of_each_document_are_kept(tmp_path):
    rows = [Mentions(str(n), DAY, "p", "en", tuple(range(n)), tuple([1] * n), (), None) for n in range(5)]
    parquet.write_shard(str(tmp_path / "part-00000-of-00001.parquet"), rows, Mentions)
    ((numbers, lengths),) = read_column(str(tmp_path), "entities", 2)
    assert (numbers.tolist(), lengths.tolist()) == ([0, 0, 1, 0, 1, 0, 1], [0, 1, 2, 2, 2])


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


def test_the_share_of_the_identity_weighs_context_against_signature():
    documents, keys = parts([0, 1], [2, 3], [0, 1]), ["a", "b", "c", "d"]
    context, signature = embed_items(keys, documents, 3, 64, 0.0), embed_items(keys, documents, 3, 64, 1.0)
    assert not context[:, 3:].any()
    assert not signature[:, :3].any()
    np.testing.assert_allclose(np.abs(signature[:, 3:]), 1 / 8)


@pytest.mark.parametrize(
    "line", ["only one column", "a\tb", "a\tb\tnot a number", "a\tb\t0", "a\tb\t1.5", "\tb\t0.5", "a\tb\tnan"]
)
def test_broken_alias_rows_are_named(tmp_path, line):
    path = tmp_path / "aliases.tsv"
    path.write_text(f"fine\tentity\t1\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        tables.read_aliases(str(path))
    assert caught.value.field == "line 2"


def test_embedding_files(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    tables.write_embeddings(str(tmp_path / "x"), tables.EmbeddingTable(("a b", "c"), values, (0.5, 2)))
    read = tables.read_embeddings(str(tmp_path / "x.npy"))
    assert (read.keys, read.counts) == (("a b", "c"), (0.5, 2))
    np.testing.assert_array_equal(read.values, values)
    text = tmp_path / "x.txt"
    text.write_text("2 3\na 0 1 2\nc 3 4 5\n", encoding="utf-8")
    np.testing.assert_array_equal(tables.read_embeddings(str(text)).values, values)
    text.write_text("2 3\na 0 1 2\nc 3 4\n", encoding="utf-8")
    with pytest.raises(InputError, match="2 dimensions, expected 3"):
        tables.read_embeddings(str(text))
    (tmp_path / "x.tsv").write_text("a\n", encoding="utf-8")
    with pytest.raises(InputError, match="1 keys"):
        tables.read_embeddings(str(tmp_path / "x.npy"))
    (tmp_path / "x.npy").write_bytes(b"junk")
    with pytest.raises(InputError, match="not an npy file"):
        tables.read_embeddings(str(tmp_path / "x.npy"))


def write_corpus(folder, shards=2):
    day = datetime.date(2020, 1, 1)
    parts = [[] for _ in range(shards)]
    for number in range(40):
        who, where = ("Jane Roe", "Marrowick") if number % 2 else ("Carl Ulm", "Osterby")
        body = (
            f"There was news. We heard that {who} went to {where} on Monday. "
            f"The town thanked {who.split()[1]} and later slept."
        )
        url = f"http://p{number % 3}.example/{number}"
        article = Article(
            make_doc_id(url),
            url,
            f"p{number % 3}",
            f"What {who} did in {where} again",
            body,
            byline_date=day,
            language="en",
        )
        parts[number % shards].append(article)
    for index, part in enumerate(parts):
        parquet.write_shard(f"{folder}/articles/part-{index:05d}-of-{shards:05d}.parquet", part, Article)
    (folder / "manifest.json").write_text('{"digest": "x"}')
    return folder


def test_entities_do_not_depend_on_sharding(tmp_path):
    outputs = []
    for shards in (1, 3):
        corpus = write_corpus(tmp_path / f"clean{shards}", shards)
        out = tmp_path / f"entities{shards}"
        jobs.execute(
            JOB, {"articles": [str(corpus)]}, str(out), EntitiesOptions(dimensions=4), ["--direct_num_workers=1"]
        )
        outputs.append([(out / name).read_bytes() for name in ("aliases.tsv", "entities.tsv", "words.tsv")])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("options", [{"dimensions": 0}, {"identity": 1.5}, {"signature_dimensions": 0}])
def test_bad_options(options):
    with pytest.raises(InputError):
        EntitiesOptions(**options)


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
