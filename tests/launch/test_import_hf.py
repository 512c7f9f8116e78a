"""A WordPiece model of Hugging Face, end to end: imported, embedding text, exported again; and what is refused."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.learning.model_files import architecture_gin
from newsembed.serving.encoder import load_encoder
from newsembed.training.gin_config import load_gin
from newsembed.training.huggingface import read_huggingface

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from reference_encoders import CONFIGS, forward, pieces_of, random_arrays, write_folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("hf") / "bert", "bert")


def test_an_imported_model_embeds_text_like_its_source(source, tmp_path, capsys):
    output = str(tmp_path / "model")
    (tmp_path / "model.tmp").mkdir()  # an import that was stopped left it behind
    assert cli.main(["import-hf", "--from", source, "--output", output, "--num_topics", "3"]) == 0
    out = capsys.readouterr().out
    assert "4 layers x 16, 30 pieces, 20 positions" in out
    assert "tokenizer: the imported tokenizer.json (wordpiece), by the tokenizers library" in out
    assert "tokenizer: there is no tokenizer.json" in out
    assert (tmp_path / "model" / "vocab.txt").read_text().split("\n")[:5] == list(SPECIAL_TOKENS)
    assert json.loads((tmp_path / "model" / "import.json").read_text())["source"] == "bert"
    pieces = pieces_of("bert")
    rows = [[pieces.index(piece) for piece in ("[CLS]", "a", "##b", "##c", "[SEP]", "d", "[UNK]", "[SEP]")]]
    hidden, _ = forward(CONFIGS["bert"], random_arrays(CONFIGS["bert"]), rows)
    found = load_encoder(output).encode(["abc"], ["d zz"])
    np.testing.assert_allclose(found[0], hidden[0, 0] / np.linalg.norm(hidden[0, 0]), atol=1e-4)


def test_the_architecture_file_fits_after_every_run_file(source, tmp_path):
    model = read_huggingface(source)
    path = tmp_path / "architecture.gin"
    path.write_text(architecture_gin(model.config))
    needed = [f"{name} = 'x'" for name in ("MODEL_DIR", "DATA_DIR", "VOCABULARY_PATH")]
    for run in ("train_small", "pretrain_small", "weak_supervision_paper", "pretrain_paper"):
        load_gin([f"runs/{run}.gin", str(path)], [*needed, "INITIAL_CHECKPOINT_PATH = 'x'"])
        import gin

        made = gin.get_configurable("EncoderConfig")(vocab_size=30)
        assert {**made.to_dict(), "dtype": "float32"} == model.config.to_dict()


def test_what_cannot_be_imported_is_refused(source, tmp_path, capsys):
    def refused(*arguments):
        assert cli.main(["import-hf", "--output", str(tmp_path / "model"), *arguments]) == 2
        assert not (tmp_path / "model").exists()
        return capsys.readouterr().err

    other = write_folder(tmp_path / "xlmr", "xlm-roberta")
    Path(other, "tokenizer.json").write_text("{}")
    assert "tokenizer.json: got no tokenizer of the tokenizers library" in refused("--from", other)
    message = refused("--from", str(tmp_path / "absent"))
    assert "absent: --from: no such folder, and nothing is downloaded" in message
    assert "an installed model: minilm" in message
    assert "mean" not in message
    assert "did you mean minilm?" in refused("--from", "minlm")
    (tmp_path / "empty").mkdir()
    assert "config.json: cannot be read" in refused("--from", str(tmp_path / "empty"))
    assert "--max_length: got 2, expected at least 3" in refused("--from", source, "--max_length", "2")
    (tmp_path / "model").mkdir()
    assert cli.main(["import-hf", "--from", source, "--output", str(tmp_path / "model")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert cli.main(["import-hf", "--from", source, "--output", str(tmp_path / "model"), "--overwrite"]) == 0
