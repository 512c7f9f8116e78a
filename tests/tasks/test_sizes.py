"""Rows as wide as the data need: from the manifest, or from the records of folders that older versions wrote."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.tasks.sizes import complete_lengths, count_beyond

_SPEC = importlib.util.spec_from_file_location("toy_corpus", Path(__file__).parents[1] / "learning" / "toy_corpus.py")
toy = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(toy)
BOUNDS, TEXT = toy.BOUNDS, toy.LENGTHS["tokens"]


def record(number, *labels):
    """A record of topics whose documents have the given numbers of labels."""
    slots = max(labels)
    padded = [[1] * count + [-1] * (slots - count) for count in labels]
    return {
        "tokens": [2, 9, 3] * len(labels),
        "topic_ids": [0] * (slots * len(labels)),
        "topic_labels": [label for of_document in padded for label in of_document],
        "doc_id": [word for place in range(len(labels)) for word in (number, place + 1)],
    }


def folder_of(tmp_path, records, sizes=None):
    folder = toy.write_sets(tmp_path / "data", {"topics/en": records[:1], "topics/de": records[1:]})
    if sizes is not None:
        path = tmp_path / "data" / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"row_sizes": {"topics": sizes}}))
    return folder


def test_the_manifest_says_how_wide_rows_are(tmp_path):
    folder = folder_of(tmp_path, [record(1, 5, 2, 1), record(2, 1, 1, 1)], {"documents": 3, "topic_ids": 8})
    lengths = complete_lengths(folder, {"tokens": TEXT}, ["topics", "triplets"])
    assert lengths == {"tokens": TEXT, "documents": 3, "topic_ids": 8}
    assert complete_lengths(folder, {"tokens": TEXT}, ["triplets"]) == {"tokens": TEXT}
    assert complete_lengths(folder, {"topic_ids": 2}, ["topics"]) == {"topic_ids": 2, "documents": 3}
    batch = next(GrainBatches(DataSet("topics", "de"), BatchOptions(folder, lengths, 1, BOUNDS)))
    assert {name: values.shape for name, values in batch.items()} == {
        "tokens": (1, 3, TEXT),
        "topic_ids": (1, 3, 8),
        "topic_labels": (1, 3, 8),
        "doc_id": (1, 6),
    }


def test_records_of_older_versions_tell_how_wide_rows_are(tmp_path):
    folder = folder_of(tmp_path, [record(1, 3), record(2, 5), record(3, 1)])
    lengths = complete_lengths(folder, {"tokens": TEXT}, ["topics"])
    assert lengths == {"tokens": TEXT, "documents": 1, "topic_ids": 5}
    batch = next(GrainBatches(DataSet("topics", "de"), BatchOptions(folder, lengths, 2, BOUNDS)))
    assert batch["tokens"].shape == (2, TEXT)
    assert sorted((batch["topic_labels"] >= 0).sum(axis=1)) == [1, 5]


def test_no_label_is_cut_without_being_counted(tmp_path):
    records = [record(1, 5, 2, 1), record(2, 1, 4, 1)]
    folder = folder_of(tmp_path, records, {"documents": 3, "topic_ids": 8})
    assert count_beyond(folder, {"tokens": TEXT}, "topics") == {}
    assert count_beyond(folder, {"topic_ids": 8}, "topics") == {}
    assert count_beyond(folder, {"topic_ids": 2}, "topics") == {"topic_ids": (5, 14)}
    lengths = complete_lengths(folder, {"tokens": TEXT, "topic_ids": 2}, ["topics"])
    kept = 0
    for language in ("en", "de"):
        batch = next(GrainBatches(DataSet("topics", language), BatchOptions(folder, lengths, 1, BOUNDS)))
        kept += int(np.sum(batch["topic_labels"] >= 0))
    assert kept == 14 - 5


@pytest.mark.parametrize("sizes", [[], {"documents": 0}, {"topic_ids": "8"}])
def test_damaged_sizes_are_named(tmp_path, sizes):
    folder = folder_of(tmp_path, [record(1, 1), record(2, 1)], sizes)
    with pytest.raises(InputError, match="row_sizes: got .* expected positive numbers by task and name"):
        complete_lengths(folder, {}, ["topics"])
