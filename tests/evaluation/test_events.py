"""Labelled documents: what fields become, which ones are needed, and articles without labels."""

import datetime

import pytest
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.events import EventDocument, read_events


def read(tmp_path, *rows, label="event"):
    return read_events(write_rows(tmp_path / "e.jsonl", rows), label)


def test_fields_are_texts_and_dates_are_days(tmp_path):
    full = {
        "id": 7, "title": "t", "body": "b", "publisher": "p", "language": "de", "event": "e", "topic": 5,
        "byline_date": "2020-03-04T05:06:07Z", "duplicate_group": "g", "other": [1],
    }  # fmt: skip
    bare = {"id": "8", "title": None, "body": "x", "event": None, "byline_date": ""}
    first, second = read(tmp_path, full, bare)
    assert first == EventDocument("7", "t", "b", "p", "de", "e", "5", datetime.date(2020, 3, 4), "g")
    assert second == EventDocument("8", "", "x")
    assert first.document == Document("t", "b")


@pytest.mark.parametrize("missing", ["id", "title", "body", "topic"])
def test_a_missing_field_is_named_with_those_that_are_needed(tmp_path, missing):
    row = {"id": "1", "title": "t", "body": "b", "topic": "x"}
    del row[missing]
    with pytest.raises(InputError, match=r"e\.jsonl:1: .*the field is missing") as raised:
        read(tmp_path, row, label="topic")
    assert raised.value.field == missing
    assert raised.value.remedy == "every line needs id, title, body and topic (null if there is none)"


@pytest.mark.parametrize(
    ("field", "value", "kind"), [("title", True, "bool"), ("body", 1.5, "float"), ("id", {}, "dict")]
)
def test_other_values_than_texts_and_whole_numbers_are_refused(tmp_path, field, value, kind):
    with pytest.raises(InputError, match=f"{field}: got a JSON {kind}, expected a string"):
        read(tmp_path, {"id": "1", "title": "t", "body": "b", "event": "e", field: value})


def test_articles_without_labels_are_identified_by_any_of_their_names(tmp_path):
    rows = [
        {"title": "a", "body": "", "id": "i", "doc_id": "d", "url": "u", "byline_date": "no day"},
        {"title": "b", "body": "", "doc_id": "d", "url": "u"},
        {"title": "c", "body": "", "url": "u", "id": ""},
    ]
    found = read(tmp_path, *rows, label=None)
    assert [(one.id, one.title, one.byline_date) for one in found] == [
        ("i", "a", None),
        ("d", "b", None),
        ("u", "c", None),
    ]
    with pytest.raises(InputError) as raised:
        read(tmp_path, {"title": "a", "body": ""}, label=None)
    assert (raised.value.field, raised.value.remedy) == ("id", "every line needs id, title and body")
