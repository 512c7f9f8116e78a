"""Augmented triplets and topics: Table 1, the token store, the TFRecords read back."""

import collections
import functools
import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import token_store
from newsembed.beam_pipelines.examples import JOB, ExamplesOptions, writing
from newsembed.beam_pipelines.examples.writing import TripletRow, group_negatives, topic_features
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, TopicLabels, Triplet, make_doc_id
from newsembed.formats.vocabulary import CLS_ID
from newsembed.tasks.kinds import Augmentation
from newsembed.tests import example_inputs, phases
from newsembed.tests.example_inputs import (
    doc_ids_of,
    manifest_of,
    read_examples,
    tfrecords,
    triplet,
    write_stream,
    write_triplets,
)

LENGTH = 16


def ids(*values):
    return np.array(values, np.int32)


def document(name="d", title=(10, 11), body=(12, 13, 14), anchors=()):
    anchor_texts = tuple(ids(*anchor) for anchor in anchors)
    return token_store.DocumentTokens(make_doc_id(name), "en", ids(*title), ids(*body), anchor_texts)


def framed(*parts):
    return [2, *(token for part in parts for token in (*part, 3))]


@pytest.mark.parametrize(
    ("row", "anchor_text", "positive_of", "with_title"),
    [
        (Augmentation.TITLE_TO_BODY, [(10, 11)], "a", False),
        (Augmentation.ANCHOR_TEXT_TO_DOCUMENT, [(40, 41)], "a", True),
        (Augmentation.TITLE_TO_DOCUMENT, [(10, 11)], "p", True),
        (Augmentation.DOCUMENT_TO_DOCUMENT, [(10, 11), (12, 13, 14)], "p", True),
    ],
)
def test_rows_of_table_1(row, anchor_text, positive_of, with_title):
    documents = {
        "a": document("a", anchors=[(40, 41)]),
        "p": document("p", title=(20,), body=(21, 22)),
        "n": document("n", title=(30,), body=(31, 32)),
    }
    positive = writing.positive_document(row, documents["a"], documents["p"])
    assert positive is documents[positive_of]
    others = [positive, documents["n"], documents["p"]]
    anchor, texts = writing.augment(row, documents["a"], others, max_length=20, key="k")
    assert anchor.tolist() == framed(*anchor_text)
    expected = [framed(*([one.title] if with_title else []), one.body) for one in others]
    assert [text.tolist() for text in texts] == expected


EMPTY = document(title=(), body=())


@pytest.mark.parametrize(
    ("anchor", "positive", "negative", "rows"),
    [
        (document(), document(), document(), {0, 2, 3}),
        (document(anchors=[(1, 2)]), document(), document(), {0, 1, 2, 3}),
        (document(title=()), document(), document(), {3}),
        (document(body=()), document(), document(), {2, 3}),
        (document(), document(), document(body=()), {2, 3}),
        (document(anchors=[(1, 2)]), document(), EMPTY, set()),
        (document(title=(), body=(), anchors=[(1, 2)]), document(), document(), set()),
        (document(anchors=[(1, 2)]), EMPTY, document(), {0, 1}),
    ],
)
def test_rows_need_their_texts(anchor, positive, negative, rows):
    assert set(writing.possible_augmentations(anchor, positive, negative)) == rows


def test_the_key_draws_one_of_the_anchor_texts():
    texts = [(40, 41), (50, 51), (60, 61)]
    anchor, row = document("a", anchors=texts), Augmentation.ANCHOR_TEXT_TO_DOCUMENT
    drawn = collections.Counter(
        tuple(writing.augment(row, anchor, [document()], 20, str(key))[0].tolist()) for key in range(600)
    )
    assert set(drawn) == {tuple(framed(text)) for text in texts}
    assert min(drawn.values()) > 150


WEIGHTS = st.lists(st.floats(0, 5), min_size=4, max_size=4)


@given(st.sets(st.sampled_from(Augmentation)), WEIGHTS, st.integers(1, 4), st.text())
def test_draws_are_different_possible_weighted_rows(possible, weights, count, key):
    drawn = writing.draw_augmentations(sorted(possible), weights, count, key)
    weighted = {row for row in possible if weights[row] > 0}
    assert set(drawn) <= weighted
    assert len(drawn) == len(set(drawn)) == min(count, len(weighted))
    assert drawn == writing.draw_augmentations(sorted(possible), weights, count, key)


def test_anchor_texts_must_resemble_the_title():
    title = ids(5, 6, 7, 8)
    texts = [ids(5, 6, 1, 2), ids(5, 6, 7), ids(5, 1, 2), ids(5, 6), ids(), ids(5, 6, 7)]
    usable = writing.usable_anchor_texts(texts, title)
    assert [text.tolist() for text in usable] == [[5, 6, 7], [5, 6, 1, 2]]
    assert len(writing.usable_anchor_texts([ids(5, 6, 7, n) for n in range(20)], title)) == 8


TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(lambda values: ids(*values))
CONTENTS = st.tuples(TOKENS, TOKENS, st.lists(TOKENS, max_size=3), st.integers(-9, 9))


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.integers(0, 2**64 - 1), CONTENTS, max_size=12), st.integers(1, 4))
def test_the_store_returns_what_it_got(tmp_path_factory, contents, count):
    folder = tmp_path_factory.mktemp("store")
    documents = [
        token_store.DocumentTokens(f"{key:016x}", "zh-Hant", title, body, tuple(rest), day)
        for key, (title, body, rest, day) in contents.items()
    ]
    tokens, index = (Phase(str(folder), name, count) for name in ("tokens", "index"))
    for number in range(count):
        with Shard(tokens, number) as shard:
            token_store.store_documents(shard, "tokens", documents[number::count])
    write = functools.partial(token_store.write_index, stream="tokens")
    phases.map_rows(index, write, [(tokens, token_store.places_sent("tokens"))])
    store = token_store.TokenStore(str(folder / "tokens"))
    for number, written in enumerate(documents):
        found = store.get(written.doc_id)
        assert (found.doc_id, found.language, found.day) == (written.doc_id, written.language, written.day)
        assert store.day(written.doc_id) == written.day
        assert store.places(np.array([int(written.doc_id, 16)], np.uint64))["shard"].tolist() == [number % count]
        parts = [[one.title, one.body, *one.anchor_texts] for one in (found, written)]
        assert [part.tolist() for part in parts[0]] == [part.tolist() for part in parts[1]]
    absent = next(key for key in range(2**64) if key not in contents)
    assert store.get(f"{absent:016x}") is None


def article(name, language="en", **changes):
    changes = {"title": f"title {name}", "body": f"body of {name} " * 9, **changes}
    return Article(make_doc_id(name), "u", "p", language=language, **changes)


def encoded(name, *, title=True, body=True):
    texts = [f"title {name}" if title else ""], [f"body of {name} " * 9 if body else ""]
    return example_inputs.VOCABULARY.encode_documents(*texts, LENGTH)[0].tolist()


@pytest.fixture
def inputs(tmp_path):
    english = [article(f"en{number}", anchor_texts=(f"title en{number}", "more")) for number in range(12)]
    french = [article(f"fr{number}", "fr") for number in range(4)]
    triplets = [triplet(f"en{n}", f"en{(n + 1) % 12}", f"en{(n + 5) % 12}") for n in range(12)]
    triplets += [triplet(f"fr{n}", f"en{n}", "fr0", "fr") for n in range(1, 4)]
    labels = [TopicLabels(make_doc_id(f"en{n}"), (n, n + 1), (1, 0)) for n in range(6)]
    labels.append(TopicLabels(make_doc_id("fr0"), (3,), (1,)))
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [english[:7] + french, english[7:], []], Article),
        "triplets": write_triplets(tmp_path / "triplets", triplets[::2], triplets[1::2]),
        "topics": write_stream(tmp_path / "topics", "labels", [labels], TopicLabels),
        "vocabulary": example_inputs.write_vocabulary(tmp_path),
    }


def run_job(inputs, output, **options):
    return manifest_of(JOB, inputs, output, ExamplesOptions(**{"max_length": LENGTH, **options}))


def test_job_writes_what_the_rows_say(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", augmentations_per_triplet=4)
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"], counts["failed"]) == (22, 22, {}, {})
    assert manifest["examples"] == {"triplets/en": 48, "triplets/fr": 9, "topics/en": 3, "topics/fr": 1}
    assert manifest["row_sizes"] == {"topics": {"documents": 3, "topic_ids": 8}}  # labels are rounded up
    names = {make_doc_id(name): name for name in [*(f"en{n}" for n in range(12)), *(f"fr{n}" for n in range(4))]}
    for example in read_examples(tmp_path / "out", "triplets"):
        anchor, positive, negative = (
            names[doc_id] for part in ("anchor", "positive", "negative") for doc_id in doc_ids_of(example, part)
        )
        row = Augmentation(int(example["augmentation"]))
        assert (positive == anchor) == (row in (Augmentation.TITLE_TO_BODY, Augmentation.ANCHOR_TEXT_TO_DOCUMENT))
        assert (example["language"].item().decode(), example["translated"]) == (anchor[:2], 0)
        title = row is not Augmentation.TITLE_TO_BODY
        assert example["positive_tokens"].tolist() == encoded(positive, title=title)
        assert example["negative_tokens"].tolist() == encoded(negative, title=title)
        whole = row is Augmentation.DOCUMENT_TO_DOCUMENT
        assert example["anchor_tokens"].tolist() == encoded(anchor, body=whole)


def test_several_negatives_of_one_pair_become_one_example(inputs, tmp_path):
    names = ["en1 en2 en5", "en1 en2 en6", "en1 en2 en7", "en1 en3 en8", "en1 en2 gone"]
    inputs |= {"triplets": write_triplets(tmp_path / "several", [triplet(*one.split()) for one in names]), "topics": []}
    manifest = run_job(inputs, tmp_path / "out", negatives_per_example=3, weights=(0.0, 0.0, 0.0, 1.0))
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["failed"]) == (5, 4, {"missing_field": 1})
    found = collections.defaultdict(list)
    for example in read_examples(tmp_path / "out", "triplets"):
        negatives = doc_ids_of(example, "negative")
        found[doc_ids_of(example, "positive")[0]] += negatives
        texts = np.split(example["negative_tokens"], np.flatnonzero(example["negative_tokens"] == CLS_ID)[1:])
        by_id = {make_doc_id(f"en{n}"): encoded(f"en{n}") for n in range(5, 9)}
        assert [text.tolist() for text in texts] == [by_id[one] for one in negatives]
    expected = {"en2": ["en5", "en6", "en7"], "en3": ["en8"]}
    ids_of = {make_doc_id(one): sorted(map(make_doc_id, negatives)) for one, negatives in expected.items()}
    assert {positive: sorted(negatives) for positive, negatives in found.items()} == ids_of


def test_triplets_that_differ_in_their_negative_are_grouped_up_to_the_count():
    rows = [TripletRow("a", "p", negative, "en") for negative in ("n1", "n2", "n3", "n4", "n5")]
    rows[1:1] = [TripletRow("a", "q", "n1", "en"), TripletRow("a", "p", "n1", "de")]
    assert group_negatives(rows, 2) == [[rows[0], rows[3]], [rows[1]], [rows[2]], [rows[4], rows[5]], [rows[6]]]


def test_examples_are_written_in_an_order_drawn_by_digest(inputs, tmp_path):
    names = [("en1", f"en{n}", "en0") for n in range(2, 12)]
    inputs |= {"topics": [], "triplets": write_triplets(tmp_path / "order", [triplet(*one) for one in names])}
    run_job(inputs, tmp_path / "out", weights=(0.0, 0.0, 1.0, 0.0))
    found = [doc_ids_of(example, "positive")[0] for example in read_examples(tmp_path / "out", "triplets")]
    rows = [("triplets", *(make_doc_id(name) for name in one), "en") for one in names]
    rows.sort(key=lambda row: hashlib.blake2b("\0".join(row).encode(), digest_size=16).digest())
    assert found == [row[2] for row in rows]


def documents_in(example):
    """(document, tokens, topic ids, labels) of every document of an example of topics."""
    texts = np.split(example["tokens"], np.flatnonzero(example["tokens"] == CLS_ID)[1:])
    labels = [example[name].reshape(3, -1).tolist() for name in ("topic_ids", "topic_labels")]
    assert all(set(labels[1][place]) == {-1} for place in range(len(texts), 3))
    return list(zip(doc_ids_of(example, ""), [text.tolist() for text in texts], *labels, strict=False))


def test_topics_of_three_documents_are_one_example(inputs, tmp_path):
    run_job(inputs, tmp_path / "out")
    examples = read_examples(tmp_path / "out", "topics", "en")
    found = {doc_id: rest for example in examples for doc_id, *rest in documents_in(example)}
    expected = {make_doc_id(f"en{n}"): [encoded(f"en{n}"), [n, n + 1], [1, 0]] for n in range(6)}
    assert found == expected
    # Labels of one document in two records stay two documents.
    shards = [[TopicLabels(make_doc_id("en1"), (topic,), (1,))] for topic in (4, 9)]
    inputs["topics"] = write_stream(tmp_path / "twice", "labels", shards, TopicLabels)
    run_job(inputs, tmp_path / "out")
    (example,) = read_examples(tmp_path / "out", "topics")
    assert sorted(topics for _, _, topics, _ in documents_in(example)) == [[4], [9]]
    assert example["topic_labels"].tolist() == [1, 1, -1]


def test_documents_of_one_example_have_as_many_slots_for_labels():
    rows = [TopicLabels("00000001ffffffff", (4, 5, 6), (1, 0, 0)), TopicLabels("0000000200000003", (9,), (1,))]
    assert topic_features(rows, [ids(2, 7, 3), ids(2, 3)], 3) == {
        "tokens": [2, 7, 3, 2, 3],
        "topic_ids": [4, 5, 6, 9, 0, 0, 0, 0, 0],
        "topic_labels": [1, 0, 0, 1, -1, -1, -1, -1, -1],
        "doc_id": [1, -1, 2, 3, 0, 0],
    }


def test_missing_and_empty_documents_fail_by_name(inputs, tmp_path):
    broken = [triplet("en1", "en2", "gone"), triplet("en1", "en2", "en3"), triplet("bare", "en2", "en3")]
    labels = [TopicLabels(make_doc_id("gone"), (1,), (1,))]
    bare = article("bare", title="", body="")
    few = [[article(f"en{n}") for n in range(4)], [bare]]
    inputs |= {
        "articles": write_stream(tmp_path / "few", "articles", few, Article),
        "triplets": write_triplets(tmp_path / "triplets2", broken),
        "topics": write_stream(tmp_path / "topics2", "labels", [labels], TopicLabels),
    }
    manifest = run_job(inputs, tmp_path / "out")
    assert manifest["counts"]["failed"] == {"missing_field": 3}
    assert manifest["examples"] == {"triplets/en": 1}
    details = {letter.detail for letter in example_inputs.dead_letters(tmp_path / "out", "examples")}
    assert details >= {
        f"no article {make_doc_id('gone')}",
        "the documents have no texts for any row of Table 1 that has a weight",
    }


def test_output_depends_on_records_only(inputs, tmp_path):
    run_job(inputs, tmp_path / "one")
    stream = list(parquet.read_stream(f"{inputs['triplets'][0]}/triplets", Triplet))
    inputs["triplets"] = write_triplets(tmp_path / "reversed", stream[::-1])
    run_job(inputs, tmp_path / "two")
    assert tfrecords(tmp_path / "one") == tfrecords(tmp_path / "two") != {}


def test_nothing_to_write_is_a_clear_error(inputs, tmp_path):
    inputs |= {"triplets": write_triplets(tmp_path / "none", []), "topics": []}
    with pytest.raises(InputError, match=r"no triplets and no topics\n  remedy: give articles of more than a year"):
        run_job(inputs, tmp_path / "out")
