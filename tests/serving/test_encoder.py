"""Loading a model and embedding: equal to the module applied row by row, in any batch; errors for broken folders."""

import dataclasses
import functools
import itertools
import shutil

import jax
import numpy as np
import pytest
from letters import exported
from newsembed.formats.arrays import flatten
from newsembed.formats.digests import write_sums
from newsembed.models.encoders.autoencoder import AutoencoderConfig
from newsembed.models.encoders.news import NewsEncoder
from newsembed.serving.encoder import ClsEncoder, JaxEncoder, fresh_model, load_encoder, load_model, probe
from newsembed.serving.model import Model
from newsembed.serving.specs import make_encoder
from newsembed.tasks.vocabulary import Vocabulary
from refusals import refuses

TEXTS = [("Storm", "Wind and rain. " * number) for number in (0, 1, 4, 9, 30)] + [("", "goal"), ("cup", ""), ("", "")]


def test_equal_to_the_module_row_by_row(tmp_path, tiny):
    params = tiny.save_model(tmp_path, steps=(7,))[7]
    titles, bodies = zip(*TEXTS, strict=True)
    rows = Vocabulary.load(str(tmp_path / "vocab.txt")).encode_documents(titles, bodies, tiny.config.max_length)
    apply = jax.jit(
        lambda params, row: NewsEncoder(tiny.config).apply({"params": params}, row[None], method="embed")[0]
    )
    expected = [apply(params, row) for row in rows]
    found = load_encoder(str(tmp_path)).encode(titles, bodies)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.stack(expected), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_parameters_of_a_fresh_model_are_drawn_after_another_was_loaded(model_dir):
    """Loading traces the initialisers to know the shapes; it leaves nothing behind."""
    load_encoder(model_dir).encode(["storm"], [""])
    fresh = flatten(fresh_model(model_dir, seed=3).params)
    kernels = [values for name, values in fresh.items() if name.endswith("kernel")]
    assert kernels
    assert all(values.std() > 0 for values in kernels)


def test_texts_are_read_as_far_as_the_model_learned_to(tmp_path, tiny):
    tiny.save_model(tmp_path, steps=(7,))
    as_described = load_encoder(str(tmp_path), max_length=8)
    tiny.describe(tmp_path, text_length=8)
    titles, bodies = zip(*TEXTS, strict=True)
    found = load_encoder(str(tmp_path))
    assert (found.max_length, load_encoder(str(tmp_path), max_length=10_000).max_length) == (8, tiny.config.max_length)
    np.testing.assert_allclose(found.encode(titles, bodies), as_described.encode(titles, bodies), atol=1e-6)


def test_parameters_are_read_without_a_warning_of_orbax(tmp_path, tiny, caplog):
    """The trainer writes them as one item of a checkpoint, so that the metadata are in the folder above."""
    tiny.save_model(tmp_path, steps=(1,))
    (tmp_path / "checkpoints" / "1" / "params" / "_CHECKPOINT_METADATA").unlink(missing_ok=True)
    with caplog.at_level("WARNING"):
        load_model(str(tmp_path))
    assert [record.getMessage() for record in caplog.records] == []


def test_steps_and_digests(model_dir):
    last, first = load_model(model_dir), load_model(model_dir, 10)
    assert (last.step, first.step) == (20, 10)
    assert last.digest != first.digest
    assert load_model(model_dir, 20).digest == last.digest
    assert load_encoder(model_dir).digest != load_encoder(model_dir, max_length=16).digest


@pytest.mark.parametrize("form", ["checkpoint", "safetensors"])
def test_flipped_bits_in_the_parameters_are_refused_and_the_folder_is_named(model_dir, tmp_path, form):
    copy = tmp_path / "copy"
    if form == "checkpoint":
        shutil.copytree(model_dir, copy)
        write_sums(str(copy / "checkpoints" / "20"))  # as the trainer does
    else:
        exported(model_dir, copy, format="safetensors")
    load_model(str(copy))
    arrays = [*copy.glob("checkpoints/20/params/**/d/*"), *copy.glob("*.safetensors")]
    assert arrays
    for path in arrays:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    refuses("not the content that SHA256SUMS lists", load_model, str(copy))


def test_only_what_embedding_reads_is_kept(model_dir):
    names = set(flatten(load_model(model_dir).params))
    assert "embedding_head.kernel" in names
    assert not any(name.startswith(("topic_head", "mlm_transform")) for name in names)


def test_fresh_parameters_repeat_by_seed_and_differ_from_trained(model_dir, tiny):
    one, again, other = fresh_model(model_dir, 1), fresh_model(model_dir, 1), fresh_model(model_dir, 2)
    assert one.digest == again.digest
    assert len({one.digest, other.digest, load_model(model_dir).digest}) == 3
    assert set(flatten(one.params)) == set(flatten(load_model(model_dir).params))
    assert JaxEncoder(fresh_model(model_dir)).encode(["storm"], [""]).shape == (1, tiny.config.embedding_size)


def without(name):
    return lambda folder, _: (folder / name).unlink()


def of_shape(**values):
    return lambda folder, tiny: tiny.describe(folder, values)


def other_vocabulary(folder, tiny):
    (folder / "vocab.txt").write_text("\n".join([*tiny.pieces, "new"]))


def no_arrays(folder, _):
    for path in (folder / "checkpoints/1/params").rglob("d/*"):
        path.unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_vocabulary, "vocab.txt: its SHA-256"),
        (of_shape(num_layers=1), "parameters are not of the architecture: layers_1"),
        (of_shape(num_layers=0), "parameters are not of the architecture: layers_0"),  # static, which NumPy computes
        (without("checkpoints/1/params/manifest.ocdbt"), "params: cannot be read|no Orbax metadata"),
        (no_arrays, "params: cannot be read|no Orbax metadata"),
        (without("checkpoints/1/params/_METADATA"), "no Orbax metadata"),
    ],
)
def test_broken_folders(tmp_path, change, message, tiny):
    tiny.save_model(tmp_path, steps=(1,))
    change(tmp_path, tiny)
    refuses(message, load_model, str(tmp_path))


def test_unknown_step_and_folder(model_dir, tmp_path):
    refuses(r"no checkpoint of step 15[\s\S]*10, 20", load_model, model_dir, 15)


PROBED = [("Storm", "Wind and rain. " * 30), ("Storm", "Wind and rain."), ("", "goal"), ("cup", "vote"), ("", "")]


def test_attention_and_similarity_equal_the_module_row_by_row(model_dir):
    encoder = load_encoder(model_dir)
    titles, bodies = zip(*PROBED, strict=True)
    found = probe(encoder, titles, bodies)
    observe = jax.jit(functools.partial(NewsEncoder(encoder.model.config).apply, method="encode_observed"))
    for number, row in enumerate(encoder.tokenize(titles, bodies)):
        hidden, received = observe({"params": encoder.params}, row[None])
        np.testing.assert_array_equal(found.tokens[number], row)
        np.testing.assert_allclose(found.attention[number], np.asarray(received)[:, 0], atol=1e-5)
        np.testing.assert_allclose(found.attention[number].sum(axis=1), 1, atol=1e-5)
        vectors = np.asarray(hidden[0], np.float64)[row > 3]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = [one @ other for one, other in itertools.combinations(vectors, 2)]
        expected = np.mean(cosines) if cosines else np.nan
        np.testing.assert_allclose(found.similarity[number], expected, atol=1e-4)


def test_no_document_gives_nothing(model_dir):
    found = probe(load_encoder(model_dir), [], [])
    assert (found.tokens, found.attention, found.similarity.shape) == ([], [], (0,))


@pytest.mark.parametrize("kind", ["model", "random"])
def test_the_state_of_cls_is_that_of_the_module(tmp_path, tiny, kind):
    tiny.save_model(tmp_path, steps=(7,))
    titles, bodies = zip(*TEXTS, strict=True)
    found = make_encoder(kind, f"{tmp_path}@7#cls", progress=False)
    rows = Vocabulary.load(str(tmp_path / "vocab.txt")).encode_documents(titles, bodies, tiny.config.max_length)
    apply = jax.jit(lambda row: NewsEncoder(tiny.config).apply({"params": found.params}, row[None], method="encode"))
    expected = np.stack([apply(row)[0, 0] for row in rows])
    vectors = found.encode(titles, bodies)
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    assert (found.dimensions, vectors.shape[1]) == (tiny.config.hidden_size,) * 2
    plain = make_encoder(kind, f"{tmp_path}@7", progress=False)
    assert found.digest == f"{plain.digest}-cls"  # no cache mixes them up


def test_an_architecture_without_a_state_of_cls_is_named(tmp_path, tiny):
    for layers, kind in ((0, "news"), (2, "autoencoder")):
        news = dataclasses.replace(tiny.config, num_layers=layers)
        config = news if kind == "news" else AutoencoderConfig(vocab_size=news.vocab_size)
        model = Model(str(tmp_path), config, "vocab.txt", 8)
        caught = refuses(r"state of \[CLS\] \(#cls\) needs .*this " + kind, ClsEncoder, model)
        assert "without #cls" in str(caught)
