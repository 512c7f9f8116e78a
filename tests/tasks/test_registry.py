"""The registry of tasks: names, mixtures, a task of one's own, declarations that contradict themselves."""

import json

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.manifest import DataSet
from newsembed.formats.tfrecords.schema import PIECES, FeatureSpec
from newsembed.tasks import registry
from newsembed.tasks.registry import Task
from newsembed.tasks.rows import TEXT

TITLE = FeatureSpec("title", "int", (None,), "ids of a title", PIECES)
LANGUAGE = FeatureSpec("language", "bytes", (), "a tag")


@pytest.fixture
def headlines(monkeypatch):
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    task = Task("headlines", (TITLE, LANGUAGE), {"title": TEXT}, mixtures=("pretrain", "news"), text="title")
    return registry.register(task)


def test_the_tasks_of_this_package_are_registered():
    assert registry.names() == ("mlm", "tlm", "triplets", "topics", "pairs", "translation")
    assert registry.mixtures() == {"pretrain": ("mlm", "tlm"), "weak_supervision": ("triplets", "topics")}
    assert [name for name in registry.names() if registry.get(name).is_packed] == ["mlm", "tlm"]
    texts = ["tokens", "tokens", "positive_tokens", "tokens", "anchor_tokens", "source_tokens"]
    assert [registry.get(name).text for name in registry.names()] == texts


def test_a_task_of_ones_own_joins_mixtures(headlines):
    assert registry.get("headlines") is headlines
    assert registry.names()[-1] == "headlines"
    assert registry.mixtures()["pretrain"] == ("mlm", "tlm", "headlines")
    assert registry.mixtures()["news"] == ("headlines",)
    assert headlines.row_features == (TITLE,)
    assert registry.text_features() == {"tokens", "anchor_tokens", "positive_tokens", "negative_tokens", "title"} | {
        "source_tokens",
        "target_tokens",
    }


def test_a_name_belongs_to_one_task(headlines):
    assert registry.register(Task(**vars(headlines))) is headlines
    with pytest.raises(ValueError, match="'headlines' is registered twice"):
        registry.register(Task("headlines", (TITLE,), {"title": TEXT}, text="title"))


def test_an_unknown_task_is_refused_with_the_names_of_the_others():
    with pytest.raises(InputError, match=r"got the task 'ner', expected one of mlm, tlm, triplets, topics"):
        registry.get("ner")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a/b"}, "got the task name 'a/b'"),
        ({"rules": {}}, r"got rules for \[\], expected \['title'\]"),
        ({"rules": {"title": TEXT, "language": TEXT}}, "got rules for"),
        ({"day": "language"}, "got the day 'language', expected an integer feature"),
        ({"text": "tokens"}, r"got the text 'tokens', expected one of \['title'\]"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(changes, message):
    values = {"name": "headlines", "features": (TITLE, LANGUAGE), "rules": {"title": TEXT}, "text": "title"}
    with pytest.raises(ValueError, match=message):
        Task(**values | changes)


def test_a_task_has_the_shapes_and_texts_of_its_rules():
    place = FeatureSpec("place", "int", (), "id of a place", "places")
    pair = FeatureSpec("pair", "int", (2,), "two numbers")
    task = Task("t", (TITLE, place, LANGUAGE, pair), {"title": TEXT}, text="title", day="place")
    assert task.shapes({"title": 7}) == {"title": (7,), "place": (), "pair": (2,)}
    assert task.text_features == ("title",)
    assert (task.text_lengths({"title": 7}), task.texts_per_row({"title": 7})) == ({"title": 7}, 1)
    for read in (task.shapes, task.text_lengths, task.texts_per_row):
        with pytest.raises(InputError, match="title: got 0 for the task t"):
            read({"title": 0})


class Grid:
    """A rule of a fixed number of texts in a row, each of the length that is asked for."""

    def __init__(self, texts):
        self.texts = texts

    def shape(self, feature, asked):
        return (self.texts, 2, asked.length(feature))

    def fit(self, values, shape):
        return np.resize(values, shape)


def test_texts_are_counted_where_all_features_of_a_row_have_the_same_number():
    body = FeatureSpec("body", "int", (None,), "ids of a body", PIECES)
    lengths = {"title": 5, "body": 9}
    for texts, expected in ((3, 6), (4, 1)):
        task = Task("t", (TITLE, body), {"title": Grid(3), "body": Grid(texts)}, text="title")
        assert task.texts_per_row(lengths) == expected
        assert task.text_lengths(lengths) == lengths


def test_rows_are_fitted_and_their_ids_are_checked():
    place = FeatureSpec("place", "int", (), "id of a place", "places")
    free = FeatureSpec("free", "int", (), "any number", "others")
    task = Task("t", (TITLE, place, free), {"title": TEXT}, text="title")
    make = registry.RowMaker(task, {"title": 4}, {PIECES: 10, "places": 3})

    def row(title, number=0):
        return make({"title": np.array(title), "place": np.array(number), "free": np.array(99)}, "part-0")

    found = row([2, 9, 3], 2)
    assert {name: values.tolist() for name, values in found.items()} == {"title": [2, 9, 3, 0], "place": 2, "free": 99}
    assert row([])["title"].tolist() == [0, 0, 0, 0]
    for title, number, message in (
        ([2, 10, 3], 0, "part-0: title: got ids from 2 to 10, expected 0 to 9"),
        ([2, -1, 3], 0, "part-0: title: got ids from -1 to 3, expected 0 to 9"),
        ([2, 3], 3, "part-0: place: got ids from 3 to 3, expected 0 to 2"),
    ):
        with pytest.raises(InputError, match=message):
            row(title, number)


def test_sets_of_unknown_tasks_are_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"examples": {"mlm/en": 3, "topics/de": 0}}))
    assert registry.example_counts(str(tmp_path)) == {DataSet("mlm", "en"): 3}
    (tmp_path / "manifest.json").write_text(json.dumps({"examples": {"mlm/en": 3, "ner/en": 1, "pos/de": 2}}))
    with pytest.raises(InputError, match="examples: got ner/en, pos/de, expected sets of the tasks mlm, tlm"):
        registry.example_counts(str(tmp_path))
