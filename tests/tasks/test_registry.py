"""The registry of tasks: names, mixtures, a task of one's own, declarations that contradict themselves."""

import pytest
from newsembed.errors import InputError
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
        ({"text": "tokens"}, r"got the text 'tokens', expected one of \['title'\]"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(changes, message):
    values = {"name": "headlines", "features": (TITLE, LANGUAGE), "rules": {"title": TEXT}, "text": "title"}
    with pytest.raises(ValueError, match=message):
        Task(**values | changes)
