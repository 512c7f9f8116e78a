"""Models with a tokenizer of each family, end to end: imported, embedding text, in a job, exported, and back."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import reference_encoders
import safetensors.numpy
from newsembed.errors import InputError
from newsembed.formats.model_folder import ModelFolder
from newsembed.formats.vocabulary import read_vocabulary
from newsembed.launch import cli
from newsembed.serving.encoder import load_encoder
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.server import Service
from reference_encoders import CONFIGS, forward, random_arrays, write_folder
from tokenizer_families import FAMILIES, special_names, train
from tokenizers import Tokenizer

KINDS = {"uncased": "bert", "cased": "bert", "unigram": "xlm-roberta", "byte_level": "modernbert"}
IN_GRAPH = ("uncased", "cased", "unigram")
TABLES = {
    "bert": "embeddings.word_embeddings.weight",
    "modernbert": "embeddings.tok_embeddings.weight",
    "xlm-roberta": "embeddings.word_embeddings.weight",
}
TEXTS = ("The storm moved, été!", "Küste in São Paulo", "東京 서울", "")
KEYS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class Source:
    """A Hugging Face folder with a small tokenizer of a family, and what it computes."""

    def __init__(self, family, folder):
        self.family, self.kind, self.folder = family, KINDS[family], Path(folder)
        self.tokenizer = train(family, TEXTS, 120 if family != "byte_level" else 280)
        self.size = self.tokenizer.get_vocab_size() + 3
        self.values = CONFIGS[self.kind] | {"vocab_size": self.size}
        self.arrays = random_arrays(self.values)
        write_folder(folder, self.kind, arrays=self.arrays, vocab_size=self.size)
        (self.folder / "vocab.txt").unlink(missing_ok=True)
        self.tokenizer.save(str(self.folder / "tokenizer.json"))
        names = dict(zip(KEYS, special_names(family), strict=True))
        (self.folder / "special_tokens_map.json").write_text(json.dumps(names))
        (self.folder / "tokenizer_config.json").write_text("{}")

    def ids(self, text):
        library = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        library.no_padding()
        library.enable_truncation(20)
        return library.encode(text).ids

    def embed(self, text):
        hidden, _ = forward(self.values, self.arrays, [self.ids(text)])
        return hidden[0, 0] / np.linalg.norm(hidden[0, 0])


@pytest.fixture(scope="module", params=FAMILIES)
def source(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(reference_encoders.PAD, "modernbert", 1)  # of the byte-level family here
        yield Source(request.param, tmp_path_factory.mktemp("hf") / request.param)


@pytest.fixture(scope="module")
def model(source, tmp_path_factory):
    output = str(tmp_path_factory.mktemp("model") / "imported")
    arguments = ["--from", str(source.folder), "--output", output, "--num_topics", "3", "--max_length", "20"]
    assert cli.main(["import-hf", *arguments]) == 0
    return output


@pytest.fixture(scope="module")
def expected(source):
    return np.array([source.embed(text) for text in TEXTS])


def test_an_imported_model_embeds_as_its_source(source, model, expected):
    encoder = load_encoder(model, long_documents="head")  # as the source
    np.testing.assert_allclose(encoder.encode([""] * len(TEXTS), TEXTS), expected, atol=1e-4)
    family = {"unigram": "metaspace", "byte_level": "byte_level"}.get(source.family, "wordpiece")
    name = f"the imported tokenizer.json ({family})"
    assert Service(encoder).health()["tokenizer"] == encoder.tokenizer_name == name


def test_the_folder_holds_the_tokenizer_and_notices_another_one(source, model, tmp_path):
    found = read_vocabulary(ModelFolder(model).vocabulary_file)
    assert found.tokenizer.content == (source.folder / "tokenizer.json").read_bytes()
    assert ModelFolder(model).read_description().vocabulary_sha256 == found.sha256
    shutil.copytree(model, tmp_path / "copy")
    (tmp_path / "copy" / "tokenizer_ids.json").unlink()
    with pytest.raises(InputError, match=r"vocab\.txt: its SHA-256 is"):
        load_encoder(str(tmp_path / "copy"))
    (tmp_path / "copy" / "tokenizer_ids.json").write_bytes(Path(model, "tokenizer_ids.json").read_bytes())
    (tmp_path / "copy" / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer_sha256: the SHA-256 of tokenizer\.json"):
        load_encoder(str(tmp_path / "copy"))


def test_the_hugging_face_export_has_the_order_of_its_tokenizer(source, model, tmp_path):
    folder, again = tmp_path / "folder", str(tmp_path / "again")
    assert cli.main(["export", "--model", model, "--format", "huggingface", "--output", str(folder)]) == 0
    assert (folder / "tokenizer.json").read_bytes() == (source.folder / "tokenizer.json").read_bytes()
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    prefix = reference_encoders.PREFIXES[source.kind]
    np.testing.assert_array_equal(arrays[TABLES[source.kind]], source.arrays[prefix + TABLES[source.kind]])
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert [settings[key] for key in KEYS] == list(special_names(source.family))
    assert settings["model_input_names"] == ["input_ids", "attention_mask"]
    config = json.loads((folder / "config.json").read_text())
    opening, closing = (source.tokenizer.token_to_id(special_names(source.family)[place]) for place in (2, 3))
    assert config["pad_token_id"] == source.tokenizer.token_to_id(special_names(source.family)[0])
    assert config.get("cls_token_id", opening) == opening
    assert config.get("eos_token_id", closing) == closing
    assert not (folder / "vocab.txt").exists()
    assert cli.main(["import-hf", "--from", str(folder), "--output", again, "--num_topics", "3"]) == 0
    assert read_vocabulary(f"{again}/vocab.txt").sha256 == read_vocabulary(f"{model}/vocab.txt").sha256
    titles, bodies = ["The storm", *TEXTS[1:]], TEXTS
    np.testing.assert_allclose(
        load_encoder(again).encode(titles, bodies), load_encoder(model).encode(titles, bodies), atol=1e-5
    )


def test_saved_models_take_texts_or_tokens(source, model, tmp_path, capsys, expected):
    if source.family == "cased":
        return  # as the uncased one, whose graphs take half a minute
    saved = tmp_path / "saved"
    arguments = ["export", "--model", model, "--output", str(saved), "--platforms", "cpu", "--long_documents", "head"]
    if source.family not in IN_GRAPH:
        assert cli.main(arguments) == 2
        assert "TensorFlow has no operation with the ids of a" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())
        arguments += ["--inputs", "tokens"]
    assert cli.main(arguments) == 0
    where = ", in the SavedModel" if source.family in IN_GRAPH else ", outside of the SavedModel"
    assert where in capsys.readouterr().out
    encoder = SavedModelEncoder(str(saved))
    assert encoder.tokenizer_name.startswith("the imported tokenizer.json")
    np.testing.assert_allclose(encoder.encode([""] * len(TEXTS), TEXTS), expected, atol=1e-4)
    titles, bodies = ["The storm"] * 70, ["São Paulo"] * 70  # more than a batch
    found = encoder.encode(titles, bodies)
    np.testing.assert_allclose(found, load_encoder(model, long_documents="head").encode(titles, bodies), atol=1e-5)
