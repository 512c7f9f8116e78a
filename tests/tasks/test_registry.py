"""The registry of tasks, the rules of rows, and the declared tasks: what is cut, padded and refused."""

import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.formats.tfrecords import PIECES, FeatureSpec, decode_example, encode_example
from newsembed.tasks import registry
from newsembed.tasks.kinds import MLM, TOPICS, TRIPLETS
from newsembed.tasks.registry import TEXT, CutOrPad, RowMaker, Task, smoothed_sizes

TITLE = FeatureSpec("title", "int", (None,), "ids of a title", PIECES)
LANGUAGE = FeatureSpec("language", "bytes", (), "a tag")
BOUNDS = {"pieces": 20, "topics": 5}
LABELLED = {"tokens": 4, "topic_ids": 3}
TEXTS = {"anchor_tokens": 3, "positive_tokens": 4, "negative_tokens": 4}


@pytest.fixture
def headlines(monkeypatch):
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    task = Task("headlines", (TITLE, LANGUAGE), {"title": TEXT}, mixtures=("pretrain", "news"), text="title")
    return registry.register(task)


def test_the_tasks_of_this_package_are_registered():
    finetuning = ("pair_classification", "token_classification", "question_answering")
    assert registry.names() == ("mlm", "tlm", "triplets", "topics", "pairs", "translation", *finetuning)
    assert registry.mixtures() == {"pretrain": ("mlm", "tlm"), "weak_supervision": ("triplets", "topics")}
    assert [name for name in registry.names() if registry.get(name).is_packed] == ["mlm", "tlm"]
    texts = ["tokens", "tokens", "positive_tokens", "tokens", "anchor_tokens", "source_tokens", *["tokens"] * 3]
    assert [registry.get(name).text for name in registry.names()] == texts


def test_a_task_of_ones_own_joins_mixtures(headlines):
    assert registry.get("headlines") is headlines
    assert registry.mixtures()["pretrain"] == ("mlm", "tlm", "headlines")
    assert registry.mixtures()["news"] == ("headlines",)
    assert headlines.row_features == (TITLE,)
    assert "title" in registry.text_features()
    assert registry.register(Task(**vars(headlines))) is headlines
    with pytest.raises(ValueError, match="'headlines' is registered twice"):
        registry.register(Task("headlines", (TITLE,), {"title": TEXT}, text="title"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rules": {}}, r"got rules for \[\], expected \['title'\]"),
        ({"day": "language"}, "got the day 'language', expected an integer feature"),
        ({"text": "tokens"}, r"got the text 'tokens', expected one of \['title'\]"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(changes, message):
    values = {"name": "headlines", "features": (TITLE, LANGUAGE), "rules": {"title": TEXT}, "text": "title"}
    with pytest.raises(ValueError, match=message):
        Task(**values | changes)


def test_sets_of_unknown_tasks_are_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"examples": {"mlm/en": 3, "topics/de": 0}}))
    assert registry.example_counts(str(tmp_path)) == {DataSet("mlm", "en"): 3}
    (tmp_path / "manifest.json").write_text(json.dumps({"examples": {"mlm/en": 3, "ner/en": 1, "pos/de": 2}}))
    with pytest.raises(InputError, match="examples: got ner/en, pos/de, expected sets of the tasks mlm, tlm"):
        registry.example_counts(str(tmp_path))
    with pytest.raises(InputError, match=r"got the task 'ner', expected one of mlm, tlm, triplets, topics"):
        registry.get("ner")


def test_the_manifest_says_how_wide_rows_are(tmp_path):
    def write(sizes):
        (tmp_path / "manifest.json").write_text(json.dumps({"examples": {}, "row_sizes": sizes}))

    write({"topics": {"documents": 3, "topic_ids": 8}})
    lengths = {"tokens": 7}
    complete = registry.complete_lengths
    assert complete(str(tmp_path), lengths, ["topics", "triplets"]) == {"tokens": 7, "documents": 3, "topic_ids": 8}
    assert complete(str(tmp_path), lengths, ["triplets"]) == lengths
    assert complete(str(tmp_path), {"topic_ids": 2}, ["topics"]) == {"topic_ids": 2, "documents": 3}
    for damaged in ({"topics": []}, {"topics": {"documents": None}}, {"topics": {"topic_ids": "x"}}):
        write(damaged)
        with pytest.raises(InputError, match="manifest.json: cannot be read"):
            complete(str(tmp_path), {}, ["topics"])


def test_sizes_are_those_of_the_largest_set_by_a_power_of_the_ratio():
    counts = {DataSet("mlm", "fi"): 16, DataSet("mlm", "en"): 1600, DataSet("mlm", "de"): 400}
    half = smoothed_sizes(counts, 0.5)
    assert half == pytest.approx({DataSet("mlm", "de"): 800, DataSet("mlm", "en"): 1600, DataSet("mlm", "fi"): 160})
    assert list(half) == sorted(counts)
    assert smoothed_sizes(counts)[DataSet("mlm", "fi")] == pytest.approx(1600 * 0.01**0.7)


@pytest.mark.parametrize(
    ("rule", "length", "expected"),
    [
        (CutOrPad(), 3, [2, 7, 8]),
        (CutOrPad(padding=-1), 6, [2, 7, 8, 3, -1, -1]),
        (TEXT, 3, [2, 7, 3]),
        (TEXT, 5, [2, 7, 8, 3, 0]),
    ],
)
def test_values_are_cut_or_padded(rule, length, expected):
    given = np.array([2, 7, 8, 3], np.int32)
    found = rule.fit(given, (length,))
    assert (found.tolist(), found.dtype) == (expected, np.int32)
    assert given.tolist() == [2, 7, 8, 3]


def test_lengths_are_positive_and_may_be_those_of_another_feature():
    assert CutOrPad(like="b").shape("a", {"b": 4}) == (4,)
    assert CutOrPad(like="b").shape("a", {"a": 5, "b": 4}) == (5,)
    for values in ({}, {"a": 0}, {"a": 2.0}, {"a": True}, {"b": 3}):
        with pytest.raises(InputError, match="TASK_FEATURE_LENGTHS: a: .* expected a positive number"):
            CutOrPad().shape("a", values)
    assert TRIPLETS.shapes(TEXTS | {"negatives": 2})["negative_event"] == (6,)
    for number in (0, -1, True, "2", 1.5):
        with pytest.raises(InputError, match="negatives: got .*expected a positive number"):
            TRIPLETS.shapes(TEXTS | {"negatives": number})
    assert MLM.shapes({"tokens": 4, "positions": 2})["positions"] == (2,)


def row_of(task, lengths, values):
    arrays = {name: np.array(value, np.int32) for name, value in values.items()}
    row = RowMaker(task, lengths, BOUNDS)(arrays, "part-3")
    assert {array.dtype for array in row.values()} == {np.dtype(np.int32)}
    assert {name: array.shape for name, array in row.items()} == task.shapes(lengths)
    return {name: array.tolist() for name, array in row.items()}


def test_a_packed_row_is_cut_at_its_end_and_padded_with_zeros():
    long = {name: [5, 6, 7, 8, 9] for name in ("tokens", "segment_ids", "positions", "word_ids")}
    assert row_of(MLM, {"tokens": 4}, long) == dict.fromkeys(long, [5, 6, 7, 8])
    assert row_of(MLM, {"tokens": 4}, dict.fromkeys(long, [5, 6])) == dict.fromkeys(long, [5, 6, 0, 0])


THREE = {
    "tokens": [2, 7, 8, 9, 3, 2, 10, 3],
    "topic_ids": [4, 1, 3, 0, 0, 0],
    "topic_labels": [1, 0, 1, -1, -1, -1],
    "doc_id": [1, 2, 3, 4, 0, 0],
}


def test_each_document_of_a_row_is_cut_and_padded_on_its_own():
    assert row_of(TOPICS, LABELLED | {"documents": 3}, THREE) == {
        "tokens": [[2, 7, 8, 3], [2, 10, 3, 0], [0, 0, 0, 0]],
        "topic_ids": [[4, 1, 0], [3, 0, 0], [0, 0, 0]],
        "topic_labels": [[1, 0, -1], [1, -1, -1], [-1, -1, -1]],
        "doc_id": [1, 2, 3, 4, 0, 0],
    }


def triplet(**changes):
    values = {
        "anchor_tokens": [2, 10, 11, 3],
        "positive_tokens": [2, 12, 3],
        "negative_tokens": [2, 10, 3, 2, 11, 12, 13, 14, 3, 2, 15, 16, 3],
        "augmentation": 3,
        "translated": 1,
        "anchor_doc_id": [1, 2],
        "positive_doc_id": [3, 4],
        "negative_doc_id": [7, 8, 9, 10, 11, 12],
        "anchor_event": [-1, 20, 900],
        "positive_event": [-1, 20, 901],
        "negative_event": [0, 0, 500, -7, 21, 501, 0, 0, 0],
    }
    return values | changes


@pytest.mark.parametrize(
    ("negatives", "tokens", "doc_ids", "events"),
    [
        (1, [2, 10, 3, 0], [7, 8], [0, 0, 500]),
        (
            4,
            [[2, 10, 3, 0], [2, 11, 12, 3], [2, 15, 16, 3], [0] * 4],
            [7, 8, 9, 10, 11, 12, 0, 0],
            [0, 0, 500, -7, 21, 501, 0, 0, 0, 0, 0, 0],
        ),
    ],
)
def test_negatives_are_the_first_ones_and_those_that_a_record_lacks_are_padding(negatives, tokens, doc_ids, events):
    row = row_of(TRIPLETS, TEXTS | {"negatives": negatives}, triplet())
    changed = {"negative_tokens": tokens, "negative_doc_id": doc_ids, "negative_event": events}
    assert row == triplet() | {"anchor_tokens": [2, 10, 3], "positive_tokens": [2, 12, 3, 0]} | changed


def test_a_record_without_events_has_zeros():
    values = {name: value for name, value in triplet().items() if not name.endswith("_event")}
    record = encode_example(values | {"language": "en"}, TRIPLETS.features)
    row = RowMaker(TRIPLETS, TEXTS, BOUNDS)(decode_example(record, TRIPLETS.row_features, "part-3"), "part-3")
    assert [row[f"{role}_event"].tolist() for role in ("anchor", "positive", "negative")] == [[0, 0, 0]] * 3


@pytest.mark.parametrize(
    ("task", "lengths", "changes", "message"),
    [
        (TRIPLETS, TEXTS, {"negative_event": [1, 2, 3, 4]}, "negatives: got 4 values of ids in a record"),
        (TRIPLETS, TEXTS, {"anchor_tokens": [2, 20]}, "part-3: anchor_tokens: got ids from 2 to 20, expected 0 to 19"),
        (TOPICS, LABELLED | {"documents": 2}, {}, "documents: got 6 values of ids in a record, expected those of 2"),
        (TOPICS, LABELLED | {"documents": 3}, {"topic_ids": [4, 1, 3, 0]}, "documents: got 4 values in a record"),
        # Before the row is cut.
        (
            TOPICS,
            LABELLED,
            {"topic_ids": [1, 1, 1, 5]},
            "topic_ids: got ids from 1 to 5, expected 0 to 4\n.*NUM_TOPICS or NUM",
        ),
    ],
)
def test_damaged_records_and_ids_of_another_vocabulary_are_named(task, lengths, changes, message):
    values = triplet() if task is TRIPLETS else THREE
    with pytest.raises(InputError, match=message):
        row_of(task, lengths, values | changes)
