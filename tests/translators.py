"""Translators of tests: a table of words, folders of models, and a tiny model of CTranslate2 with random weights."""

import io
import os

import numpy as np
import pytest

_NAMES = ("config.json", "model.bin", "shared_vocabulary.json", "source.spm", "target.spm")


class FakeTranslator:
    """Translates by a table of words; counts what it was asked for."""

    def __init__(self, languages=("fr",), broken=()):
        self.languages = languages
        self.broken = broken
        self.calls = []

    def identity(self, language):
        return f"fake-{language}"

    def translate(self, texts, language):
        if texts:
            self.calls.append((language, *texts))
        if any(word in text for text in texts for word in self.broken):
            raise RuntimeError("engine on fire")
        return [text.replace("titre", "title").replace("corps", "body").replace("vide", "") for text in texts]


def write_models(folder, *languages, **contents):
    for language in languages:
        for name in _NAMES:
            os.makedirs(f"{folder}/{language}", exist_ok=True)
            (folder / language / name).write_text(contents.get(language, language))
    return folder


def _write_pieces(path):
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    lines = [
        "le fleuve a inondé la ville",
        "les habitants ont quitté la maison",
        "the river flooded the town",
        "people left home",
    ] * 5
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        bos_id=-1,
        num_threads=1,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def write_marian(folder, end_bias=2.0, seed=0, width=16):
    """Writes a converted Marian model; with a high ``end_bias`` it ends its sentences, with a low one it never does."""
    specs = pytest.importorskip("ctranslate2", reason="ctranslate2 (the extra `translate`) is not installed").specs
    folder.mkdir(parents=True)
    pieces = [_write_pieces(folder / name) for name in ("source.spm", "target.spm")][0]
    tokens = ["</s>", "<unk>", *(piece for piece in pieces if piece not in {"</s>", "<unk>"})]
    random = np.random.default_rng(seed)
    spec = specs.TransformerSpec.from_config(1, 2, pre_norm=False, activation=specs.Activation.SWISH)

    def weights(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)

    def fill(linear, outputs, inputs):
        linear.weight, linear.bias = weights(outputs, inputs), np.zeros(outputs, np.float32)

    def fill_norm(norm):
        norm.gamma, norm.beta = np.ones(width, np.float32), np.zeros(width, np.float32)

    def fill_attention(attention, *outputs):
        fill_norm(attention.layer_norm)
        for linear, size in zip(attention.linear, outputs, strict=True):
            fill(linear, size, width)

    embeddings, positions = weights(len(tokens), width), weights(512, width)
    for side in (spec.encoder, spec.decoder):
        (side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings).weight = embeddings
        side.position_encodings.encodings = positions
        fill_attention(side.layer[0].self_attention, 3 * width, width)
        fill_norm(side.layer[0].ffn.layer_norm)
        fill(side.layer[0].ffn.linear_0, 32, width)
        fill(side.layer[0].ffn.linear_1, width, 32)
    fill_attention(spec.decoder.layer[0].attention, width, 2 * width, width)
    spec.decoder.start_from_zero_embedding = True
    spec.decoder.projection.weight = embeddings.copy()
    spec.decoder.projection.bias = np.array([end_bias, *[0] * (len(tokens) - 1)], np.float32)
    spec.config.eos_token, spec.config.unk_token, spec.config.decoder_start_token = "</s>", "<unk>", "</s>"
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize(quantization="int8")
    spec.save(str(folder))
