"""Modules of sentence-transformers as its versions write them; what has no counterpart is refused."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.huggingface import HuggingFaceFolder, Tokenizer, write_huggingface
from newsembed.formats.huggingface.modules import read_modules
from newsembed.formats.prompts import Prompts

LIBRARY = Path(__file__).parents[1] / "models" / "transformers"


def settings(name):
    return json.loads((LIBRARY / name / "tokenizer_config.json").read_text())


def library_modules(name):
    return read_modules(str(LIBRARY / name), settings(name))


def test_the_modules_of_the_library_are_read():
    labse = library_modules("sentence-labse")
    assert (labse.pooling, labse.activation, labse.is_normalized, labse.text_length) == ("cls", "tanh", True, 100)
    assert labse.kernel.shape == (16, 8)
    assert labse.bias.shape == (8,)
    assert library_modules("sentence-max").pooling == "max"
    last = library_modules("sentence-last")
    assert (last.pooling, last.kernel, last.activation) == ("last", None, "identity")
    e5 = library_modules("sentence-e5")
    assert e5.prompts == Prompts({"query": "query: ", "passage": "passage: ", "document": ""}, "query")
    assert library_modules("sentence-mpnet").text_length == 48


@pytest.mark.parametrize("name", ["sentence-labse", "sentence-e5", "sentence-mpnet", "sentence-max", "sentence-last"])
def test_modules_are_read_as_written(tmp_path, name):
    modules = library_modules(name)
    folder = HuggingFaceFolder(str(tmp_path), {"model_type": "bert"}, {}, Tokenizer((b"[PAD]",), b"{}"), modules)
    write_huggingface(folder, hidden_size=16)
    found = read_modules(str(tmp_path), {})
    for field in ("pooling", "activation", "is_normalized", "text_length", "prompts"):
        assert getattr(found, field) == getattr(modules, field)
    for field in ("kernel", "bias"):
        np.testing.assert_array_equal(getattr(found, field), getattr(modules, field))


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(LIBRARY / "sentence-labse", tmp_path / "model"))


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def kinds(folder, *names):
    listed = [{"path": "" if name == "Transformer" else f"1_{name}", "type": f"x.{name}"} for name in names]
    (folder / "modules.json").write_text(json.dumps(listed))


def test_without_normalize_the_folder_says_so(folder):
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(listed[:-1]))
    assert not read_modules(str(folder), {}).is_normalized


def test_the_length_is_of_the_module_and_then_of_the_tokenizer(folder):
    assert read_modules(str(folder), {"model_max_length": 30}).text_length == 30
    assert read_modules(str(folder), {}).text_length is None
    change(folder / "sentence_bert_config.json", max_seq_length=20)
    assert read_modules(str(folder), {"model_max_length": 30}).text_length == 20


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode_cls_token": False, "pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode_cls_token": False}, "mean"),  # the library's default
        ({"pooling_mode": "mean", "pooling_mode_cls_token": True}, "mean"),
        ({"pooling_mode": ["cls"]}, "cls"),
    ],
)
def test_older_and_newer_keys_of_pooling(folder, values, expected):
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16} | values))
    assert read_modules(str(folder), {}).pooling == expected


def test_a_dense_layer_without_activation_has_the_librarys(folder):
    path = folder / "2_Dense" / "config.json"
    values = json.loads(path.read_text())
    del values["activation_function"]
    path.write_text(json.dumps(values))
    assert read_modules(str(folder), {}).activation == "tanh"
    change(path, activation_function="torch.nn.modules.linear.Identity")
    assert read_modules(str(folder), {}).activation == "identity"


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        (
            "1_Pooling/config.json",
            {"pooling_mode": "weightedmean"},
            "got the pooling weightedmean, expected one of cls",
        ),
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}, "got the pooling mean, max, expected one of cls"),
        ("1_Pooling/config.json", {"window": 3}, "window: got 3; newsembed does not know this option"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.ReLU"}, "got .*ReLU, expected Id"),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, "module_input_name: got 'token_embeddings'"),
        ("2_Dense/config.json", {"residual": True}, "residual: got True; newsembed does not know this option"),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "transformer_task: got 'fill-mask', expected"),
        ("sentence_bert_config.json", {"modality_config": {"image": {}}}, "modality_config: got"),
        ("sentence_bert_config.json", {"unpad": True}, "unpad: got True; newsembed does not know this option"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query:"}, "default_prompt_name: got 'query:'"),
    ],
)
def test_options_that_change_the_vectors_are_refused(folder, file, values, message):
    change(folder / file, **values)
    with pytest.raises(InputError, match=message):
        read_modules(str(folder), {"do_lower_case": False})


def test_whether_text_is_lowered_is_for_the_tokenizer_to_say(folder):
    """BGE's folder asks for lower case, and only ``tokenizer.json`` says that the tokenizer lowers it."""
    change(folder / "sentence_bert_config.json", do_lower_case=True)
    assert read_modules(str(folder), {}).pooling == "cls"


def test_a_prompt_that_is_not_pooled_is_refused(folder):
    change(folder / "1_Pooling" / "config.json", include_prompt=False)
    assert read_modules(str(folder), {}).pooling == "cls"  # there are no prompts
    change(folder / "config_sentence_transformers.json", prompts={"query": "query: "})
    with pytest.raises(InputError, match="include_prompt: got false: the prompt's tokens are not pooled"):
        read_modules(str(folder), {})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Transformer", "Pooling", "Normalize", "Dense"), "got the modules .*; expected .* in this order"),
        (("Transformer", "Pooling", "Dense", "Dense"), "each once"),
        (("Transformer",), "got the modules Transformer; expected"),
        (
            ("Transformer", "WeightedLayerPooling", "Pooling"),
            "got the module WeightedLayerPooling, which newsembed lacks",
        ),
    ],
)
def test_modules_in_another_order_are_refused(folder, names, message):
    kinds(folder, *names)
    with pytest.raises(InputError, match=message):
        read_modules(str(folder), {})


def test_a_list_of_something_else_is_named(folder):
    (folder / "modules.json").write_text('["Pooling"]')
    with pytest.raises(InputError, match="got no list of modules with type and path"):
        read_modules(str(folder), {})
