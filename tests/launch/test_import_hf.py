"""A WordPiece model of Hugging Face, end to end: imported, embedding text, exported again; and what is refused."""

import functools
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli, import_hf
from newsembed.serving.encoder import load_encoder
from reference_encoders import CONFIGS, forward, pieces_of, random_arrays, write_folder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("hf") / "bert", "bert")


def test_an_imported_model_embeds_text_like_its_source(source, tmp_path, printed):
    output = str(tmp_path / "model")
    (tmp_path / "model.tmp").mkdir()  # an import that was stopped left it behind
    out = printed("import-hf", "--from", source, "--output", output, "--num_topics", "3")
    assert "4 layers x 16, 30 pieces, 20 positions" in out
    assert "tokenizer: the imported tokenizer.json (wordpiece)" in out
    assert "tokenizer: there is no tokenizer.json" in out
    assert (tmp_path / "model" / "vocab.txt").read_text().split("\n")[:5] == list(SPECIAL_TOKENS)
    assert json.loads((tmp_path / "model" / "import.json").read_text())["source"] == "bert"
    pieces = pieces_of("bert")
    rows = [[pieces.index(piece) for piece in ("[CLS]", "a", "##b", "##c", "[SEP]", "d", "[UNK]", "[SEP]")]]
    hidden, _ = forward(CONFIGS["bert"], random_arrays(CONFIGS["bert"]), rows)
    found = load_encoder(output).encode(["abc"], ["d zz"])
    np.testing.assert_allclose(found[0], hidden[0, 0] / np.linalg.norm(hidden[0, 0]), atol=1e-4)


def test_a_model_for_many_languages_may_lose_what_tells_them_apart(source, tmp_path, monkeypatch, refused):
    output = str(tmp_path / "model")
    command = ["import-hf", "--from", source, "--output", output, "--without_languages"]
    assert "--without_languages: does not know most of 25 languages" in refused(*command)  # a random BERT
    assert not os.path.exists(output)
    anyway = tmp_path / "anyway"
    import_hf.run(import_hf.ImportOptions(source=source, output=str(anyway), without_languages=None))
    assert json.loads((anyway / "import.json").read_text())["without_languages"] is False

    def without(model):
        head = model.params["embedding_head"]
        return {"kernel": head["kernel"], "bias": np.full_like(head["bias"], 3)}

    monkeypatch.setattr(import_hf, "head_without_languages", without)
    assert cli.main(command) == 0
    np.testing.assert_array_equal(load_encoder(output).model.params["embedding_head"]["bias"], 3)
    assert json.loads((tmp_path / "model" / "import.json").read_text())["without_languages"] is True


def test_the_output_may_have_the_name_of_a_package(source, tmp_path, monkeypatch, refused):
    package = types.SimpleNamespace(installed=lambda: f"{source}/model.safetensors")
    monkeypatch.setattr(import_hf, "PACKAGED_MODELS", {"minilm": package})
    monkeypatch.chdir(tmp_path)
    assert cli.main(["import-hf", "--from", "minilm", "--output", "minilm"]) == 0
    assert load_encoder("minilm").dimensions
    overlaps = refused("import-hf", "--from", source, "--output", f"{source}/inside")  # a folder is an input
    assert "overlaps with the input" in overlaps


def test_what_cannot_be_imported_is_refused(source, tmp_path, refused):
    def said(*arguments):
        message = refused("import-hf", "--output", str(tmp_path / "model"), *arguments)
        assert not (tmp_path / "model").exists()
        return message

    other = write_folder(tmp_path / "xlmr", "xlm-roberta")
    Path(other, "tokenizer.json").write_text("{}")
    assert "tokenizer.json: got no tokenizer of the tokenizers library" in said("--from", other)
    message = said("--from", str(tmp_path / "absent"))
    assert "absent: --from: no such folder, and nothing is downloaded" in message
    assert "an installed model: minilm" in message
    assert "mean" not in message
    assert "did you mean minilm?" in said("--from", "minlm")
    (tmp_path / "model").mkdir()
    assert "exists already" in refused("import-hf", "--from", source, "--output", str(tmp_path / "model"))
    assert cli.main(["import-hf", "--from", source, "--output", str(tmp_path / "model"), "--overwrite"]) == 0


class _Hub(http.server.SimpleHTTPRequestHandler):
    """The part of the hub's protocol that lists a model and sends its files."""

    asked: list[str] = []

    def do_GET(self):
        if not self.path.startswith("/api/models/org/tiny"):
            return super().do_GET()
        names = [name for name in sorted(os.listdir(self.directory)) if os.path.isfile(f"{self.directory}/{name}")]
        tree = [{"type": "file", "path": name, "oid": "0" * 40, "size": 1} for name in names]
        model = {"id": "org/tiny", "sha": "0" * 40, "siblings": [{"rfilename": name} for name in names]}
        body = json.dumps(tree if "/tree/" in self.path else model).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return self.wfile.write(body)

    def end_headers(self):
        self.send_header("X-Repo-Commit", "0" * 40)
        if os.path.isfile(path := self.translate_path(self.path)):
            self.send_header("ETag", f'"{hashlib.sha256(Path(path).read_bytes()).hexdigest()}"')
        super().end_headers()

    def translate_path(self, path):
        self.asked.append(name := path.rpartition("/")[2].partition("?")[0])
        return os.path.join(self.directory, name)


def imported_from_hub(endpoint, output):
    command = [sys.executable, "-m", "newsembed", "import-hf", "--from", "org/tiny", "--output", output]
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": f"{output}.home", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_model_of_a_hub_comes_without_code_and_pickles(tmp_path):
    folder = write_folder(tmp_path / "hub", "bert")
    for name in ("modeling.py", "pytorch_model.bin"):
        Path(folder, name).write_text("harm")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Hub, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = imported_from_hub(f"http://127.0.0.1:{server.server_port}", str(tmp_path / "model"))
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert {"config.json", "model.safetensors"} < set(_Hub.asked)
    assert not {"modeling.py", "pytorch_model.bin"} & set(_Hub.asked)
    assert json.loads((tmp_path / "model" / "import.json").read_text())["source"] == "tiny"


def test_without_a_network_the_error_says_how_to_get_the_folder(tmp_path):
    done = imported_from_hub("http://127.0.0.1:9", str(tmp_path / "model"))
    assert done.returncode == 2
    assert "org/tiny: --from: no such folder, and http://127.0.0.1:9 does not give it" in done.stderr
    assert "hf download org/tiny --local-dir FOLDER --include '*.json'" in done.stderr
