"""Augmented triplets and topics: Table 1, the token store, the TFRecords read back with tf.data."""

import collections
import dataclasses
import functools
import hashlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines import augmentation, jobs, token_store
from newsembed.beam_pipelines.examples import JOB, ExamplesOptions, group_negatives
from newsembed.beam_pipelines.examples.writing import LabelledDocument, topic_features
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, TopicLabels, Triplet, make_doc_id, words_to_doc_id
from newsembed.formats.vocabulary import CLS_ID, SPECIAL_TOKENS
from newsembed.tasks import registry
from newsembed.tasks.triplets import Augmentation
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.tests import phases

LENGTH = 16
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
NAN = (float("nan"),) * 3


def ids(*values):
    return np.array(values, np.int32)


def document(name="d", title=(10, 11), body=(12, 13, 14), anchors=()):
    return token_store.DocumentTokens(
        make_doc_id(name), "en", ids(*title), ids(*body), tuple(ids(*anchor) for anchor in anchors)
    )


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
    made = augmentation.augment(row, *documents.values(), max_length=20, key="k")
    positive, negative = documents[positive_of], documents["n"]
    assert made.anchor_tokens.tolist() == framed(*anchor_text)
    assert made.positive_tokens.tolist() == framed(*([positive.title] if with_title else []), positive.body)
    assert made.negative_tokens.tolist() == framed(*([negative.title] if with_title else []), negative.body)
    assert (made.positive_doc_id, made.negative_doc_id) == (positive.doc_id, negative.doc_id)


@pytest.mark.parametrize(
    ("anchor", "negative", "rows"),
    [
        (document(), document(), {0, 2, 3}),
        (document(anchors=[(1, 2)]), document(), {0, 1, 2, 3}),
        (document(title=()), document(), {3}),
        (document(body=()), document(), {2, 3}),
        (document(), document(body=()), {2, 3}),
        (document(anchors=[(1, 2)]), document(title=(), body=()), set()),
        (document(title=(), body=(), anchors=[(1, 2)]), document(), set()),
    ],
)
def test_rows_need_their_texts(anchor, negative, rows):
    assert set(augmentation.possible_augmentations(anchor, document(), negative)) == rows


def test_rows_with_the_positive_document_need_its_text():
    anchor, empty = document(anchors=[(1, 2)]), document(title=(), body=())
    assert set(augmentation.possible_augmentations(anchor, empty, document())) == {
        Augmentation.TITLE_TO_BODY,
        Augmentation.ANCHOR_TEXT_TO_DOCUMENT,
    }


def test_the_key_draws_one_of_the_anchor_texts():
    texts = [(40, 41), (50, 51), (60, 61)]
    anchor, row = document("a", anchors=texts), Augmentation.ANCHOR_TEXT_TO_DOCUMENT
    drawn = collections.Counter(
        tuple(augmentation.augment(row, anchor, document(), document(), 20, str(key)).anchor_tokens.tolist())
        for key in range(600)
    )
    assert set(drawn) == {tuple(framed(text)) for text in texts}
    assert min(drawn.values()) > 150


@given(
    st.sets(st.sampled_from(Augmentation)),
    st.lists(st.floats(0, 5), min_size=4, max_size=4),
    st.integers(1, 4),
    st.text(),
)
def test_draws_are_different_possible_weighted_rows(possible, weights, count, key):
    drawn = augmentation.draw_augmentations(sorted(possible), weights, count, key)
    weighted = {row for row in possible if weights[row] > 0}
    assert set(drawn) <= weighted
    assert len(drawn) == len(set(drawn)) == min(count, len(weighted))
    assert drawn == augmentation.draw_augmentations(sorted(possible), weights, count, key)


def test_draws_follow_the_weights():
    rows = [augmentation.draw_augmentations(list(Augmentation), (1, 2, 0, 5), 1, str(key))[0] for key in range(4_000)]
    shares = [count / 4_000 for _, count in sorted(collections.Counter(rows).items())]
    assert shares == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


def test_anchor_texts_must_resemble_the_title():
    title = ids(5, 6, 7, 8)
    texts = [ids(5, 6, 7), ids(5, 6, 1, 2), ids(1, 2, 3), ids(5, 6), ids(), ids(5, 6, 7)]
    usable = augmentation.usable_anchor_texts(texts, title, augmentation.token_overlap, 0.5, 8)
    assert [text.tolist() for text in usable] == [[5, 6, 7], [5, 6, 1, 2]]
    assert len(augmentation.usable_anchor_texts(texts, title, augmentation.token_overlap, 0.5, 1)) == 1
    assert len(augmentation.usable_anchor_texts(texts, title, lambda text, title: 1.0, 0.5, 8)) == 4


TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=6).map(lambda values: ids(*values))


def write_store(folder, shards):
    """Writes shards of documents and the index, as two phases of a job."""
    tokens, index = (Phase(str(folder), name, len(shards)) for name in ("tokens", "index"))
    for number, documents in enumerate(shards):
        with Shard(tokens, number) as shard:
            token_store.store_documents(shard, "tokens", documents, len(shards))
    write = functools.partial(token_store.write_index, stream="tokens")
    phases.map_rows(index, write, [(tokens, token_store.places_sent("tokens"))])


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.integers(0, 2**64 - 1), st.tuples(TOKENS, TOKENS, st.lists(TOKENS, max_size=3)), max_size=12),
    st.integers(1, 4),
)
def test_the_store_returns_what_it_got(tmp_path_factory, contents, shard_count):
    folder = tmp_path_factory.mktemp("store")
    documents = [
        token_store.DocumentTokens(f"{key:016x}", "zh-Hant", title, body, tuple(rest))
        for key, (title, body, rest) in contents.items()
    ]
    write_store(folder, [documents[index::shard_count] for index in range(shard_count)])
    store = token_store.TokenStore(str(folder / "tokens"))
    for written in documents:
        found = store.get(written.doc_id)
        assert (found.doc_id, found.language) == (written.doc_id, written.language)
        for part, expected in zip(
            [found.title, found.body, *found.anchor_texts],
            [written.title, written.body, *written.anchor_texts],
            strict=True,
        ):
            assert part.tolist() == expected.tolist()
    absent = next(key for key in range(2**64) if key not in contents)
    assert store.get(f"{absent:016x}") is None


def test_an_empty_store_has_nothing(tmp_path):
    assert token_store.TokenStore(str(tmp_path)).get("0" * 16) is None


def article(name, language="en", **changes):
    changes = {"title": f"title {name}", "body": f"body of {name} " * 9, **changes}
    return Article(make_doc_id(name), "u", "p", language=language, **changes)


def triplet(anchor, positive, negative, language="en"):
    return Triplet(make_doc_id(anchor), make_doc_id(positive), make_doc_id(negative), language, NAN, NAN, 0, 400, 0.1)


def write_stream(folder, stream, shards, record_type):
    for index, shard in enumerate(shards):
        parquet.write_shard(f"{folder}/{stream}/part-{index:05d}-of-{len(shards):05d}.parquet", shard, record_type)
    files.write_json(f"{folder}/manifest.json", {"digest": f"{folder.name}"})
    return [str(folder)]


@pytest.fixture
def inputs(tmp_path):
    english = [article(f"en{number}", anchor_texts=(f"title en{number}", "more")) for number in range(12)]
    french = [article(f"fr{number}", "fr") for number in range(4)]
    triplets = [triplet(f"en{n}", f"en{(n + 1) % 12}", f"en{(n + 5) % 12}") for n in range(12)] + [
        triplet(f"fr{n}", f"en{n}", "fr0", "fr") for n in range(1, 4)
    ]
    labels = [TopicLabels(make_doc_id(f"en{n}"), (n, n + 1), (1, 0)) for n in range(6)] + [
        TopicLabels(make_doc_id("fr0"), (3,), (1,))
    ]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in VOCABULARY.pieces))
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [english[:7] + french, english[7:], []], Article),
        "triplets": write_stream(tmp_path / "triplets", "triplets", [triplets[::2], triplets[1::2]], Triplet),
        "topics": write_stream(tmp_path / "topics", "labels", [labels], TopicLabels),
        "vocabulary": [str(tmp_path / "vocab.txt")],
    }


def run_job(inputs, output, **options):
    return jobs.execute(
        JOB, inputs, str(output), ExamplesOptions(**{"max_length": LENGTH, **options}), ["--direct_num_workers=1"]
    ).manifest


def read_back(output, task, language):
    paths = sorted(map(str, output.glob(f"task={task}/language={language}/part-*.tfrecord")))
    parser = {}
    for spec in registry.get(task).features:
        kind = tf.int64 if spec.kind == "int" else tf.string
        parser[spec.name] = (
            tf.io.RaggedFeature(kind) if spec.shape == (None,) else tf.io.FixedLenFeature(spec.shape, kind)
        )
    return [
        {name: value.numpy() for name, value in tf.io.parse_single_example(record, parser).items()}
        for record in tf.data.TFRecordDataset(paths)
    ]


def doc_of(example, part):
    return words_to_doc_id(tuple(example[f"{part}_doc_id"].tolist()))


def test_job_writes_what_the_rows_say(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", augmentations_per_triplet=4)
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["rejected"], counts["failed"]) == (22, 22, {}, {})
    assert manifest["examples"] == {"triplets/en": 48, "triplets/fr": 9, "topics/en": 3, "topics/fr": 1}
    assert manifest["row_sizes"] == {"topics": {"documents": 3, "topic_ids": 8}}  # labels are rounded up
    texts = {make_doc_id(name): name for name in [*(f"en{n}" for n in range(12)), *(f"fr{n}" for n in range(4))]}
    for language in ("en", "fr"):
        for example in read_back(tmp_path / "out", "triplets", language):
            anchor, positive, negative = (texts[doc_of(example, part)] for part in ("anchor", "positive", "negative"))
            row = Augmentation(example["augmentation"])
            assert (positive == anchor) == (row in (Augmentation.TITLE_TO_BODY, Augmentation.ANCHOR_TEXT_TO_DOCUMENT))
            assert example["language"].decode() == language
            assert example["translated"] == 0
            title = row is not Augmentation.TITLE_TO_BODY
            for part, name in (("positive", positive), ("negative", negative)):
                expected = VOCABULARY.encode_documents(
                    [f"title {name}" if title else ""], [f"body of {name} " * 9], LENGTH
                )[0]
                assert example[f"{part}_tokens"].tolist() == expected.tolist()
            body = f"body of {anchor} " * 9 if row is Augmentation.DOCUMENT_TO_DOCUMENT else ""
            assert (
                example["anchor_tokens"].tolist()
                == VOCABULARY.encode_documents([f"title {anchor}"], [body], LENGTH)[0].tolist()
            )


def test_several_negatives_of_one_pair_become_one_example(inputs, tmp_path):
    names = [
        ("en1", "en2", "en5"),
        ("en1", "en2", "en6"),
        ("en1", "en2", "en7"),
        ("en1", "en3", "en8"),
        ("en1", "en2", "gone"),
    ]
    inputs |= {
        "triplets": write_stream(tmp_path / "several", "triplets", [[triplet(*one) for one in names]], Triplet),
        "topics": [],
    }
    manifest = run_job(inputs, tmp_path / "out", negatives_per_example=3, weights=(0.0, 0.0, 0.0, 1.0))
    assert (manifest["counts"]["in"], manifest["counts"]["out"], manifest["counts"]["failed"]) == (
        5,
        4,
        {"missing_field": 1},
    )
    found = {}
    for example in read_back(tmp_path / "out", "triplets", "en"):
        ids = example["negative_doc_id"].reshape(-1, 2)
        found.setdefault(doc_of(example, "positive"), []).extend(words_to_doc_id(tuple(one)) for one in ids.tolist())
        texts = np.split(example["negative_tokens"], np.flatnonzero(example["negative_tokens"] == CLS_ID)[1:])
        assert len(texts) == len(ids) <= 3
        for doc_id, text in zip(ids.tolist(), texts, strict=True):
            name = next(name for *_, name in names if make_doc_id(name) == words_to_doc_id(tuple(doc_id)))
            assert (
                text.tolist()
                == VOCABULARY.encode_documents([f"title {name}"], [f"body of {name} " * 9], LENGTH)[0].tolist()
            )
    assert {positive: sorted(negatives) for positive, negatives in found.items()} == {
        make_doc_id("en2"): sorted(map(make_doc_id, ("en5", "en6", "en7"))),
        make_doc_id("en3"): [make_doc_id("en8")],
    }


def test_triplets_that_differ_in_their_negative_are_grouped_up_to_the_count():
    rows = [("triplets", "a", "p", negative, "en") for negative in ("n1", "n2", "n3")]
    rows[1:1] = [("topics", "a", (1,), (1,)), ("triplets", "a", "q", "n1", "en"), ("topics", "a", (1,), (1,))]
    assert group_negatives(rows, 2) == [[rows[0], rows[4]], [rows[1]], [rows[2]], [rows[3]], [rows[5]]]


def test_examples_are_written_in_an_order_drawn_by_digest(inputs, tmp_path):
    inputs |= {"topics": [], "articles": inputs["articles"]}
    names = [("en1", f"en{n}", "en0") for n in range(2, 12)]
    inputs["triplets"] = write_stream(tmp_path / "order", "triplets", [[triplet(*one) for one in names]], Triplet)
    run_job(inputs, tmp_path / "out", weights=(0.0, 0.0, 1.0, 0.0))
    found = [doc_of(example, "positive") for example in read_back(tmp_path / "out", "triplets", "en")]
    rows = [("triplets", *(make_doc_id(name) for name in one), "en") for one in names]
    rows.sort(key=lambda row: hashlib.blake2b("\0".join(row).encode(), digest_size=16).digest())
    assert found == [row[2] for row in rows]


def documents_in(example):
    """(document, tokens, topic ids, labels) of every document of an example of topics; None for an empty place."""
    words = example["doc_id"].reshape(-1, 2)
    cuts = np.flatnonzero(example["tokens"] == CLS_ID)[1:]
    texts = [text.tolist() for text in np.split(example["tokens"], cuts)]
    labels = [example[name].reshape(len(words), -1).tolist() for name in ("topic_ids", "topic_labels")]
    places = list(zip(words.tolist(), *labels, strict=True))
    assert all(place == ([0, 0], [0] * len(place[1]), [-1] * len(place[2])) for place in places[len(texts) :])
    return [(words_to_doc_id(tuple(ids)), text, *rest) for (ids, *rest), text in zip(places, texts, strict=False)]


def test_labels_of_one_document_in_two_records_stay_two_documents(inputs, tmp_path):
    shards = [[TopicLabels(make_doc_id("en1"), (topic,), (1,))] for topic in (4, 9)]
    inputs["topics"] = write_stream(tmp_path / "twice", "labels", shards, TopicLabels)
    run_job(inputs, tmp_path / "out")
    (example,) = read_back(tmp_path / "out", "topics", "en")
    assert sorted(topics for _, _, topics, _ in documents_in(example)) == [[4], [9]]
    assert example["topic_labels"].tolist() == [1, 1, -1]


def test_several_negatives_and_translation_exclude_each_other(inputs, tmp_path):
    for name in ("model.bin", "config.json", "shared_vocabulary.json", "source.spm", "target.spm"):
        (tmp_path / "models" / "fr").mkdir(parents=True, exist_ok=True)
        (tmp_path / "models" / "fr" / name).touch()
    inputs |= {"translation_models": [str(tmp_path / "models")]}
    with pytest.raises(InputError, match="--negatives_per_example: got 2 together with --translation_models"):
        run_job(inputs, tmp_path / "out", negatives_per_example=2)


def test_topics_carry_their_labels(inputs, tmp_path):
    run_job(inputs, tmp_path / "out")
    examples = read_back(tmp_path / "out", "topics", "en")
    assert all(example["doc_id"].size == 6 for example in examples)
    found = {document[0]: document[1:] for example in examples for document in documents_in(example)}
    assert set(found) == {make_doc_id(f"en{n}") for n in range(6)}
    for n in range(6):
        text = VOCABULARY.encode_documents([f"title en{n}"], [f"body of en{n} " * 9], LENGTH)[0].tolist()
        assert found[make_doc_id(f"en{n}")] == (text, [n, n + 1], [1, 0])


def test_documents_of_one_example_have_as_many_slots_for_labels():
    documents = [
        LabelledDocument("00000001ffffffff", (2, 7, 3), (4, 5, 6), (1, 0, 0)),
        LabelledDocument("0000000200000003", (2, 3), (9,), (1,)),
    ]
    assert topic_features(documents, 3) == {
        "tokens": [2, 7, 3, 2, 3],
        "topic_ids": [4, 5, 6, 9, 0, 0, 0, 0, 0],
        "topic_labels": [1, 0, 0, 1, -1, -1, -1, -1, -1],
        "doc_id": [1, -1, 2, 3, 0, 0],
    }


def test_missing_and_broken_documents_fail_by_name(inputs, tmp_path):
    broken = [
        triplet("en1", "en2", "gone"),
        triplet("en1", "en2", "en3", "no/language"),
        triplet("en1", "en2", "en3", "en" + "-abcdefgh" * 8),  # a tag of more than 64 bytes
        triplet("en1", "en2", "en3"),
    ]
    labels = [
        TopicLabels(make_doc_id("en1"), (), ()),
        TopicLabels(make_doc_id("gone"), (1,), (1,)),
        TopicLabels(make_doc_id("en1"), (1, 2), (1,)),
        TopicLabels(make_doc_id("en2"), (1,), (7,)),
    ]
    inputs |= {
        "triplets": write_stream(tmp_path / "triplets2", "triplets", [broken], Triplet),
        "topics": write_stream(tmp_path / "topics2", "labels", [labels], TopicLabels),
    }
    manifest = run_job(inputs, tmp_path / "out")
    assert manifest["counts"]["failed"] == {"missing_field": 2, "broken_record": 5}
    assert manifest["examples"] == {"triplets/en": 1}
    letters = [
        row
        for path in (tmp_path / "out/dead_letters/examples").iterdir()
        for batch in parquet.read_batches(str(path))
        for row in batch.to_pylist()
    ]
    assert f"no article {make_doc_id('gone')}" in {letter["detail"] for letter in letters}


def test_a_triplet_without_any_text_fails(inputs, tmp_path):
    bare = [article("en1", title="", body=""), article("en2"), article("en3")]
    inputs |= {
        "articles": write_stream(tmp_path / "bare", "articles", [bare], Article),
        "triplets": write_stream(
            tmp_path / "one", "triplets", [[triplet("en1", "en2", "en3"), triplet("en2", "en3", "en3")]], Triplet
        ),
        "topics": [],
    }
    manifest = run_job(inputs, tmp_path / "out")
    assert manifest["counts"]["failed"] == {"missing_field": 1}
    assert manifest["examples"] == {"triplets/en": 1}


def test_output_depends_on_records_only(inputs, tmp_path):
    run_job(inputs, tmp_path / "one")
    stream = [
        record
        for path in parquet.shard_paths(f"{inputs['triplets'][0]}/triplets")
        for record in parquet.read_records(path, Triplet)
    ]
    inputs["triplets"] = write_stream(tmp_path / "reversed", "triplets", [stream[::-1]], Triplet)
    run_job(inputs, tmp_path / "two")
    shards = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.tfrecord")]
    assert shards
    assert all((tmp_path / "one" / shard).read_bytes() == (tmp_path / "two" / shard).read_bytes() for shard in shards)


def test_nothing_to_write_is_a_clear_error(inputs, tmp_path):
    inputs |= {"triplets": write_stream(tmp_path / "none", "triplets", [[]], Triplet), "topics": []}
    with pytest.raises(InputError, match=r"no triplets and no topics\n  remedy: give articles of more than a year"):
        run_job(inputs, tmp_path / "out")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_length", 2),
        ("augmentations_per_triplet", 5),
        ("weights", (1.0, 1.0)),
        ("weights", (0.0,) * 4),
        ("weights", (1.0, 1.0, 1.0, -1.0)),
        ("min_anchor_similarity", 1.5),
        ("max_anchor_texts", -1),
        ("negatives_per_example", 0),
    ],
)
def test_options_are_checked(option, value):
    with pytest.raises(InputError) as error:
        dataclasses.replace(ExamplesOptions(), **{option: value})
    assert error.value.field == f"--{option}"
