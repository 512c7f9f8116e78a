"""Prompts by their names in sentence-transformers, and in a model's description."""

import pytest
from newsembed.errors import InputError
from newsembed.formats.model_folder import ModelDescription, ModelFolder
from newsembed.formats.prompts import Prompts


@pytest.mark.parametrize(
    ("texts", "default", "query", "document"),
    [
        ({}, None, "", ""),
        ({"query": "query: ", "passage": "passage: "}, None, "query: ", "passage: "),
        ({"query": "q: ", "document": "", "passage": "p: "}, None, "q: ", "p: "),
        ({"document": "d: ", "passage": "p: ", "corpus": "c: "}, None, "", "d: "),
        ({"corpus": "c: "}, None, "", "c: "),
        ({"query": "q: ", "document": ""}, "query", "q: ", ""),  # an empty prompt of documents is their prompt
        ({"query": "q: "}, "query", "q: ", "q: "),
        ({"query": "", "clustering": "group: "}, "clustering", "", "group: "),
        ({"clustering": "group: "}, None, "", ""),
    ],
)
def test_queries_and_documents_find_their_prompt(texts, default, query, document):
    prompts = Prompts(texts, default)
    assert (prompts.query, prompts.document) == (query, document)


@pytest.mark.parametrize("prompts", [Prompts(), Prompts({"query": "q: "}), Prompts({"a": "", "b": "ü "}, "b")])
def test_a_description_keeps_prompts(tmp_path, prompts):
    folder = ModelFolder(str(tmp_path))
    description = ModelDescription({"vocab_size": 3}, "ab", 7, prompts=prompts)
    folder.write_description(description, b"[PAD]\n")
    assert folder.read_description() == description


def test_a_prompt_of_the_library_may_be_null():
    assert Prompts.from_dict({"prompts": {"query": None}, "default_prompt_name": None}, "x") == Prompts({"query": ""})
    assert Prompts.from_dict({"prompts": None}, "x") == Prompts()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prompts": ["query: "]}, r"prompts: got \['query: '\], expected strings by name"),
        ({"prompts": {"query": 1}}, "prompts: got .* expected strings by name"),
        (
            {"prompts": {"query": "q: "}, "default_prompt_name": "document"},
            "default_prompt_name: got 'document', expected one of the prompts query",
        ),
        ({"default_prompt_name": "query"}, r"default_prompt_name: got 'query', expected one of .*there are none"),
    ],
)
def test_other_prompts_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        Prompts.from_dict(values, "model.json")
