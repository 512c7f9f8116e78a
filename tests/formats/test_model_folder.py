"""Model folders: read as written; broken ones are named."""

import hashlib
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from newsembed.errors import InputError
from newsembed.formats.arrays import flatten, read_safetensors, unflatten, write_safetensors
from newsembed.formats.digests import write_sums
from newsembed.formats.huggingface import Prompts
from newsembed.formats.model_folder import ModelDescription, ModelFolder, folder_of_checkpoint, is_checkpoint
from newsembed.formats.vocabulary import Family, TokenizerFiles

VOCABULARY = b"[PAD]\n[UNK]\n"
SHA = hashlib.sha256(VOCABULARY).hexdigest()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
descriptions = st.builds(
    ModelDescription,
    st.dictionaries(st.text(max_size=8), json_values, max_size=5),
    st.just(SHA),
    st.none() | st.integers(1, 10**6),
    st.none() | st.text(min_size=1, max_size=8),
    st.sampled_from([Prompts(), Prompts({"query": "q: "}), Prompts({"a": "", "b": "ü "}, "b")]),
    st.sampled_from([None, "mean"]),
)
names = st.text("abc_1", min_size=1, max_size=4)
number_types = st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.int32, ml_dtypes.bfloat16])


def trees(leaves):
    return st.recursive(
        leaves, lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3), max_leaves=6
    ).filter(lambda tree: isinstance(tree, dict))


@settings(deadline=None)
@given(descriptions)
def test_a_description_is_read_as_written(tmp_path_factory, description):
    folder = ModelFolder(str(tmp_path_factory.mktemp("model")))
    assert not folder.is_described
    folder.write_description(description, VOCABULARY)
    assert folder.is_described
    assert folder.read_description() == description
    folder.check_vocabulary(description)
    assert sorted(path.name for path in Path(folder.path).iterdir()) == ["SHA256SUMS", "model.json", "vocab.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"model\.json: not valid JSON"),
        ("[]", "got a JSON list, expected an object"),
        ('{"encoder": {}}', "vocabulary_sha256: got no model description: None"),
        ('{"encoder": 3, "vocabulary_sha256": ""}', "encoder: got no model description: 3 is a int"),
        ('{"encoder": {}, "vocabulary_sha256": "", "kind": 1}', "kind: got no model description"),
        ('{"encoder": {}, "vocabulary_sha256": "", "text_length": "9"}', "text_length: got no model description"),
        ('{"encoder": {}, "vocabulary_sha256": "", "long_documents": 3}', "long_documents: got no model description"),
    ],
)
def test_broken_descriptions_are_named(tmp_path, text, message):
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(InputError, match=message):
        ModelFolder(str(tmp_path)).read_description()


def test_another_vocabulary_is_refused(tmp_path):
    folder = ModelFolder(str(tmp_path))
    with pytest.raises(InputError, match=r"vocab\.txt: cannot be read"):
        folder.check_vocabulary(ModelDescription({}, SHA))
    (tmp_path / "vocab.txt").write_bytes(VOCABULARY + b"x\n")
    with pytest.raises(InputError, match=rf"vocab\.txt: its SHA-256 is .*, model\.json names {SHA[:12]}"):
        folder.check_vocabulary(ModelDescription({}, SHA))


def test_only_complete_checkpoints_count(tmp_path):
    folder = ModelFolder(str(tmp_path))
    for name in ("3/params", "20/params", "40/training", "7.orbax-checkpoint-tmp/params"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    assert folder.steps() == [3, 20]
    with pytest.raises(InputError, match=r"no checkpoint of step 40[\s\S]*Choose one of 3, 20"):
        folder.read_params(40)


def test_an_import_is_a_checkpoint_of_step_0(tmp_path):
    params = {"head": {"bias": np.arange(3, dtype=np.float32)}, "table": np.ones((2, 3), np.float32)}
    folder = ModelFolder(str(tmp_path))
    folder.write_import(params, "A = 1\n", {"source": "bert"})
    found, step, _ = folder.read_params()
    assert step == 0
    assert sorted(found) == ["head.bias", "table"]
    np.testing.assert_array_equal(found["head.bias"], params["head"]["bias"])
    assert (tmp_path / "architecture.gin").read_text() == "A = 1\n"
    assert json.loads((tmp_path / "import.json").read_text()) == {"source": "bert"}


def test_an_export_is_read_as_written(tmp_path):
    source, target = ModelFolder(str(tmp_path / "a")), ModelFolder(str(tmp_path / "b"))
    for folder in (source, target):
        Path(folder.path).mkdir()
    source.write_description(ModelDescription({"vocab_size": 2}, SHA), VOCABULARY)
    target.write_export(source, {"head": {"kernel": np.eye(3, dtype=np.float32)[:, ::2]}}, {"step": "5"})
    assert target.read_description() == source.read_description()
    found, step, path = target.read_params()
    assert (step, path) == (0, str(tmp_path / "b" / "model.safetensors"))
    np.testing.assert_array_equal(found["head.kernel"], [[1, 0], [0, 0], [0, 1]])
    with pytest.raises(InputError, match="a safetensors export holds one step only"):
        target.read_params(5)


@given(trees(st.integers()))
def test_dotted_names_lead_back(tree):
    assert unflatten(flatten(tree)) == tree


@settings(deadline=None)
@given(st.data())
def test_arrays_of_all_number_types_are_read_as_written(tmp_path_factory, data):
    written = data.draw(
        st.dictionaries(
            names,
            st.tuples(number_types, arrays.array_shapes(min_dims=0, max_dims=3, max_side=4)).map(
                lambda kind: np.arange(np.prod(kind[1])).reshape(kind[1]).astype(kind[0])
            ),
            min_size=1,
            max_size=3,
        )
    )
    path = str(tmp_path_factory.mktemp("arrays") / "model.safetensors")
    write_safetensors(path, written, {"format": "pt"})
    found = read_safetensors(path)
    assert sorted(found) == sorted(written)
    for name, array in written.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_number_types_without_a_place_and_other_files_are_named(tmp_path):
    path = str(tmp_path / "model.safetensors")
    write_safetensors(path, {"mask": np.ones(2, bool)}, {})
    with pytest.raises(InputError, match=r"model\.safetensors: mask: got the number type BOOL, expected one of F64"):
        read_safetensors(path)
    Path(path).write_bytes(b"junk")
    with pytest.raises(InputError, match=r"model\.safetensors: cannot be read: .*\n.*save it again"):
        read_safetensors(path, "save it again")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_safetensors(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.json", "is a folder of Hugging Face\n.*import-hf --from {}"),
        ("saved_model.pb", "is a SavedModel\n.*--saved_model"),
    ],
)
def test_a_folder_of_another_kind_is_named_with_what_reads_it(tmp_path, file, message):
    (tmp_path / file).write_text("{}")
    with pytest.raises(InputError, match=message.format(tmp_path)):
        ModelFolder(str(tmp_path)).read_description()


def test_a_checkpoint_leads_to_its_folder(tmp_path, monkeypatch):
    (tmp_path / "checkpoints" / "4" / "params").mkdir(parents=True)
    step = tmp_path / "checkpoints" / "4"
    assert (is_checkpoint(str(step)), is_checkpoint(str(step.parent))) == (True, False)
    monkeypatch.chdir(step.parent)
    assert folder_of_checkpoint("4") == folder_of_checkpoint(str(step)) == ModelFolder(str(tmp_path))


def test_the_tokenizer_of_a_model_goes_with_it_and_that_of_another_goes_away(tmp_path):
    folder, target = ModelFolder(str(tmp_path / "a")), ModelFolder(str(tmp_path / "b"))
    for one in (folder, target):
        Path(one.path).mkdir()
    tokenizer = TokenizerFiles(b'{"model": {}}', Family.METASPACE, (0, 1, 2, 3, 4), 9)
    folder.write_description(ModelDescription({}, "x"), VOCABULARY, tokenizer)
    names = ["SHA256SUMS", "model.json", "tokenizer.json", "tokenizer_ids.json", "vocab.txt"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    target.write_export(folder, {"head": np.ones(2, np.float32)}, {})
    for name in names[1:]:
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    folder.write_description(ModelDescription({}, SHA), VOCABULARY)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["SHA256SUMS", "model.json", "vocab.txt"]


def test_a_description_that_changed_is_refused(tmp_path):
    folder = ModelFolder(str(tmp_path))
    folder.write_description(ModelDescription({"num_layers": 12}, SHA), VOCABULARY)
    path = tmp_path / "model.json"
    path.write_text(path.read_text().replace("12", "0"))
    with pytest.raises(InputError, match="model.json: not the content that SHA256SUMS lists") as raised:
        folder.read_description()
    assert "if you changed it yourself, delete SHA256SUMS" in raised.value.remedy
    (tmp_path / "SHA256SUMS").unlink()
    assert folder.read_description().encoder == {"num_layers": 0}


def test_a_file_that_cannot_be_written_leaves_the_folder_as_it_was(tmp_path):
    folder = ModelFolder(str(tmp_path))
    folder.write_description(ModelDescription({}, SHA), VOCABULARY)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TypeError):
        folder.write_description(ModelDescription({}, SHA), "not bytes")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_last_checkpoint_is_read_unless_another_one_is_named_and_damage_is_found(tmp_path):
    folder = ModelFolder(str(tmp_path))
    with pytest.raises(InputError, match="checkpoints: no checkpoints\n.*until its first one"):
        folder.read_params()
    folder.write_import({"table": np.ones(2, np.float32)}, "", {})
    (tmp_path / "checkpoints" / "0").rename(tmp_path / "checkpoints" / "10")
    folder.write_import({"table": np.zeros(2, np.float32)}, "", {})
    (tmp_path / "checkpoints" / "0").rename(tmp_path / "checkpoints" / "9")
    for step, expected in ((None, (10, 1)), (9, (9, 0)), (10, (10, 1))):
        params, found, path = folder.read_params(step)
        assert (found, params["table"][0], path) == (*expected, str(tmp_path / f"checkpoints/{expected[0]}/params"))
    changed = next(one for one in (tmp_path / "checkpoints" / "9" / "params").rglob("*") if one.is_file())
    changed.write_bytes(changed.read_bytes() + b"x")
    with pytest.raises(InputError, match="checkpoints/9: not the content that SHA256SUMS lists: .*params/") as caught:
        folder.read_params(9)
    assert caught.value.remedy == "Choose another checkpoint, or restore the file from a copy."
    (tmp_path / "checkpoints" / "10" / "training").mkdir()
    (tmp_path / "checkpoints" / "10" / "training" / "file").write_text("")
    write_sums(str(tmp_path / "checkpoints" / "10"))
    (tmp_path / "checkpoints" / "10" / "training" / "file").write_text("changed")
    assert folder.read_params(10)[1] == 10  # the state of the optimizer is not read
    (tmp_path / "checkpoints" / "8" / "params").mkdir(parents=True)
    with pytest.raises(InputError, match="8/params: no (readable )?Orbax"):
        folder.read_params(8)


def test_a_changed_export_is_named(tmp_path):
    folder, source = ModelFolder(str(tmp_path)), ModelFolder(str(tmp_path / "source"))
    Path(source.path).mkdir()
    source.write_description(ModelDescription({}, SHA), VOCABULARY)
    folder.write_export(source, {"head": np.ones(2, np.float32)}, {})
    write_sums(str(tmp_path))
    assert folder.is_exported
    assert not source.is_exported
    assert list(folder.read_params()[0]) == ["head"]
    with (tmp_path / "model.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(InputError, match=r"no readable safetensors: not the content .*lists: model\.safetensors"):
        folder.read_params()
