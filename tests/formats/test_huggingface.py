"""Hugging Face folders are read as written; modules as the versions of sentence-transformers write them, or refused."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.huggingface import (
    HuggingFaceFolder,
    Prompts,
    SentenceModules,
    Tokenizer,
    read_huggingface,
    read_modules,
    write_huggingface,
)
from newsembed.formats.model_folder import ModelFolder

PIECES = (b"[PAD]", "ü".encode(), b"##c")
SETTINGS = {"do_lower_case": True, "strip_accents": False}
TOKENIZER = Tokenizer(PIECES, b"{}", {"pad_token": "[PAD]"}, SETTINGS)
ARRAYS = {"embeddings.weight": np.arange(6, dtype=np.float32).reshape(3, 2)}


@st.composite
def modules(draw):
    floats = st.floats(0.125, 8, width=32)
    head = {}
    if draw(st.booleans()):
        head = {"kernel": np.array(draw(st.lists(floats, min_size=8, max_size=8)), np.float32).reshape(2, 4)}
        head["bias"] = np.array(draw(st.lists(floats, min_size=4, max_size=4)), np.float32)
    length = draw(st.integers(3, 512))
    if not draw(st.booleans()):
        head |= {"activation": draw(st.sampled_from(["identity", "tanh"]))} if head else {}
        pooling = draw(st.sampled_from(["cls", "mean", "max", "last"]))
        texts = draw(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3))
        prompts = Prompts(texts, draw(st.sampled_from([None, *texts])))
        return SentenceModules(pooling, text_length=length, prompts=prompts, **head)
    weights = np.array(draw(st.lists(floats, min_size=3, max_size=3)), np.float32)
    lead, sublinear = draw(st.integers(0, 9)), draw(st.booleans())
    return SentenceModules("mean", weights, lead, sublinear, text_length=length, **head)


def write(path, content):
    folder = HuggingFaceFolder(str(path), {"model_type": "bert"}, ARRAYS, TOKENIZER, content)
    write_huggingface(folder, hidden_size=2)
    return folder


def assert_same(found, expected):
    for field in dataclasses.fields(SentenceModules):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_array_equal(one, other) if isinstance(other, np.ndarray) else None
        assert isinstance(other, np.ndarray) or one == other, field.name


@settings(deadline=None, max_examples=40)
@given(modules())
def test_a_folder_is_read_as_written(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("folder")
    written = write(path, content)
    assert ModelFolder(str(path)).is_huggingface
    found = read_huggingface(str(path))
    assert (found.path, found.config, found.tokenizer) == (written.path, written.config, written.tokenizer)
    np.testing.assert_array_equal(found.arrays["embeddings.weight"], ARRAYS["embeddings.weight"])
    assert_same(found.modules, content)


def test_the_modules_are_those_of_sentence_transformers(tmp_path):
    def kinds(name, content):
        (tmp_path / name).mkdir()
        write(tmp_path / name, content)
        return [module["type"] for module in json.loads((tmp_path / name / "modules.json").read_text())]

    library = "sentence_transformers.models."
    weights = np.ones(3, np.float32)
    head = {"kernel": np.ones((2, 4), np.float32), "bias": np.zeros(4, np.float32), "text_length": 9}
    around = [library + "Transformer"], [library + name for name in ("Pooling", "Dense", "Normalize")]
    assert kinds("cls", SentenceModules(**head)) == around[0] + around[1]
    words = SentenceModules("mean", weights, **head)
    assert kinds("words", words) == [*around[0], library + "WordWeights", *around[1]]
    texts = SentenceModules("mean", weights, 0, True, **head)
    assert kinds("texts", texts) == [*around[0], "text_weights.TextWeights", *around[1]]
    assert (tmp_path / "texts" / "text_weights.py").exists()
    assert not (tmp_path / "words" / "text_weights.py").exists()


def test_a_folder_of_ours_is_none_of_theirs(tmp_path):
    assert not ModelFolder(str(tmp_path)).is_huggingface
    (tmp_path / "config.json").write_text("{}")
    assert ModelFolder(str(tmp_path)).is_huggingface
    (tmp_path / "model.json").write_text("{}")
    assert not ModelFolder(str(tmp_path)).is_huggingface


@pytest.mark.parametrize(
    ("weights", "config", "message"),
    [
        (
            {"weights": np.array([1.0, 0.0, 2.0])},
            {},
            r"weights: got shape \[3\], the smallest 0\.0; expected \[3\], all positive",
        ),
        ({"weights": np.ones((1, 3))}, {}, r"got shape \[1, 3\].* expected \[3\]"),
        ({"other": np.ones(3)}, {}, r"weights: there is no such array"),
        ({"weights": np.ones(3)}, {"lead_length": -1}, "got lead_length = -1 and sublinear = False"),
        ({"weights": np.ones(3)}, {"sublinear": 1}, "got lead_length = 0 and sublinear = 1"),
    ],
)
def test_broken_weights_of_tokens_are_named(tmp_path, weights, config, message):
    from safetensors.numpy import save_file

    write(tmp_path, SentenceModules("mean", np.ones(3, np.float32), 2, text_length=9))
    save_file(
        {name: array.astype(np.float32) for name, array in weights.items()},
        tmp_path / "1_TextWeights/model.safetensors",
    )
    (tmp_path / "1_TextWeights/config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=message):
        read_huggingface(str(tmp_path))


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
        ({"default_prompt_name": ["query"]}, r"default_prompt_name: got \['query'\], expected one of"),
        ({"default_prompt_name": "query"}, r"default_prompt_name: got 'query', expected one of .*there are none"),
    ],
)
def test_other_prompts_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        Prompts.from_dict(values, "model.json")


@pytest.fixture
def written(tmp_path):
    write(tmp_path, SentenceModules(text_length=77))
    return tmp_path


@pytest.mark.parametrize("name", ["sentence_xlm-roberta_config.json", "sentence_roberta_config.json"])
def test_the_length_of_texts_has_several_names(written, name):
    (written / "sentence_bert_config.json").rename(written / name)
    assert read_huggingface(str(written)).modules.text_length == 77


@pytest.mark.parametrize("kind", ["Transformer", "BERT", "XLMRoBERTa"])
def test_the_transformer_may_have_a_folder_of_its_own(written, kind):
    before = read_huggingface(str(written))
    (written / "0_Transformer").mkdir()
    for path in [*written.iterdir()]:
        if path.is_file() and path.name not in ("modules.json", "config_sentence_transformers.json"):
            path.rename(written / "0_Transformer" / path.name)
    listed = json.loads((written / "modules.json").read_text())
    listed[0] |= {"path": "0_Transformer", "type": f"sentence_transformers.models.{kind}"}
    (written / "modules.json").write_text(json.dumps(listed))
    assert ModelFolder(str(written)).is_huggingface
    found = read_huggingface(str(written))
    assert (found.path, found.tokenizer) == (str(written / "0_Transformer"), before.tokenizer)
    assert (found.modules.text_length, found.modules.pooling) == (77, before.modules.pooling)
    np.testing.assert_array_equal(found.arrays["embeddings.weight"], ARRAYS["embeddings.weight"])


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90\n"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("model.safetensors", "a pointer of Git LFS"),
        ("vocab.txt", "a pointer of Git LFS"),
        ("1_Pooling/config.json", "a pointer of Git LFS"),
        (".cache/huggingface/download/x.incomplete", "has not ended"),
        ("model.safetensors.part", "has not ended"),
    ],
)
def test_half_fetched_files_are_refused_by_name(written, name, problem):
    path = written / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(POINTER)
    with pytest.raises(InputError, match=problem) as raised:
        read_huggingface(str(written))
    assert raised.value.path == str(path)


def test_files_that_are_not_there_are_refused_by_name(written):
    (written / "1_Pooling" / "config.json").unlink()
    (written / "1_Pooling" / "config.json").symlink_to(written / "blob")
    with pytest.raises(InputError, match="leads to no file"):
        read_huggingface(str(written))
    (written / "1_Pooling" / "config.json").unlink()
    (written / "modules.json").unlink()
    with pytest.raises(InputError, match="pooling is unknown") as raised:
        read_huggingface(str(written))
    assert raised.value.path == str(written / "modules.json")
    (written / "pytorch_model.bin").write_text(POINTER)  # which nobody reads
    index = {"weight_map": {"embeddings.weight": "model-00001-of-00002.safetensors"}}
    for name in ("model.safetensors", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (written / name).unlink()
    (written / "1_Pooling").rmdir()
    (written / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputError) as raised:
        read_huggingface(str(written))
    assert raised.value.path == str(written / "model-00001-of-00002.safetensors")


LIBRARY = Path(__file__).parents[1] / "models" / "transformers"


def settings(name):
    return json.loads((LIBRARY / name / "tokenizer_config.json").read_text())


def library_modules(name):
    return read_modules(str(LIBRARY / name), settings(name))


def test_the_prompts_and_lengths_of_the_library_are_read():  # tests/models/test_transformers.py has what it computes
    expected = Prompts({"query": "query: ", "passage": "passage: ", "document": ""}, "query")
    assert library_modules("sentence-e5").prompts == expected
    assert library_modules("sentence-mpnet").text_length == 48
    assert library_modules("sentence-labse").is_normalized


@pytest.mark.parametrize("name", ["sentence-labse", "sentence-e5", "sentence-mpnet", "sentence-max", "sentence-last"])
def test_modules_of_the_library_are_read_as_written(tmp_path, name):
    found = library_modules(name)
    write(tmp_path, found)
    assert_same(read_modules(str(tmp_path), {}), found)


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(LIBRARY / "sentence-labse", tmp_path / "model"))


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_the_length_is_of_the_module_and_then_of_the_tokenizer(folder):
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(listed[:-1]))
    assert not read_modules(str(folder), {}).is_normalized
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
        (
            "1_Pooling/config.json",
            {"pooling_mode": None, "pooling_mode_weightedmean_tokens": True},
            "got the pooling weightedmean_tokens, expected one of cls",
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


def test_a_prompt_that_is_not_pooled_is_refused(folder):
    # BGE's folder asks for lower case, and only ``tokenizer.json`` says that the tokenizer lowers it.
    change(folder / "sentence_bert_config.json", do_lower_case=True)
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
        (("Transformer", "LSTM", "Pooling"), "got the module LSTM, which newsembed lacks"),
        ((), "cannot be read"),
    ],
)
def test_modules_in_another_order_are_refused(folder, names, message):
    listed = [{"path": "" if name == "Transformer" else f"1_{name}", "type": f"x.{name}"} for name in names]
    (folder / "modules.json").write_text(json.dumps(listed or ["Pooling"]))
    with pytest.raises(InputError, match=rf"modules\.json: .*{message}"):
        read_modules(str(folder), {})
