"""Loading a model and embedding: equal to the module applied row by row, in any batch; errors for broken folders."""

import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.digests import write_sums
from newsembed.formats.weights import flatten, unflatten
from newsembed.models.encoders.news import NewsEncoder
from newsembed.serving.checkpoint import fresh_model, load_model
from newsembed.serving.encoder import fresh_encoder, load_encoder
from newsembed.serving.export import export_safetensors
from newsembed.serving.shapes import batches, by_bucket, length_buckets
from newsembed.tasks.vocabulary import Vocabulary

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


def test_programs_for_few_texts_give_the_same_embeddings(tmp_path, tiny):
    tiny.save_model(tmp_path, steps=(7,))
    titles, bodies = zip(*TEXTS, strict=True)
    well, quickly = load_encoder(str(tmp_path)), load_encoder(str(tmp_path), few_texts=True)
    np.testing.assert_allclose(quickly.encode(titles, bodies), well.encode(titles, bodies), atol=1e-5)
    assert quickly.digest == well.digest


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
    (tmp_path / "model.json").write_text(
        json.dumps(json.loads((tmp_path / "model.json").read_text()) | {"text_length": 8})
    )
    titles, bodies = zip(*TEXTS, strict=True)
    found = load_encoder(str(tmp_path))
    assert (found.max_length, load_encoder(str(tmp_path), max_length=10_000).max_length) == (8, tiny.config.max_length)
    np.testing.assert_allclose(found.encode(titles, bodies), as_described.encode(titles, bodies), atol=1e-6)


def test_boxed_parameters_load_the_same(tmp_path, tiny):
    plain, boxed = tmp_path / "plain", tmp_path / "boxed"
    tiny.save_model(plain, steps=(1,))
    tiny.save_model(boxed, steps=(1,), boxed=True)
    assert load_model(str(plain)).digest == load_model(str(boxed)).digest


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
        export_safetensors(model_dir, str(copy))
    load_model(str(copy))
    arrays = [*copy.glob("checkpoints/20/params/**/d/*"), *copy.glob("*.safetensors")]
    assert arrays
    for path in arrays:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)
    with pytest.raises(InputError, match="not the content that SHA256SUMS lists"):
        load_model(str(copy))


def test_only_what_embedding_reads_is_kept(model_dir):
    names = set(flatten(load_model(model_dir).params))
    assert "embedding_head.kernel" in names
    assert not any(name.startswith(("topic_head", "mlm_transform")) for name in names)


def test_fresh_parameters_repeat_by_seed_and_differ_from_trained(model_dir, tiny):
    one, again, other = fresh_model(model_dir, 1), fresh_model(model_dir, 1), fresh_model(model_dir, 2)
    assert one.digest == again.digest
    assert len({one.digest, other.digest, load_model(model_dir).digest}) == 3
    assert set(flatten(one.params)) == set(flatten(load_model(model_dir).params))
    assert fresh_encoder(model_dir).encode(["storm"], [""]).shape == (1, tiny.config.embedding_size)


def test_no_texts_and_uneven_lists(model_dir, tiny):
    encoder = load_encoder(model_dir)
    assert encoder.encode([], []).shape == (0, tiny.config.embedding_size)
    with pytest.raises(ValueError, match="2 titles and 1 bodies"):
        encoder.encode(["a", "b"], ["c"])


@given(st.lists(st.integers(1, 80), max_size=40), st.integers(1, 400))
def test_batches_hold_each_row_once_in_known_shapes(lengths, tokens_per_batch):
    buckets = length_buckets(80)
    rows = [np.arange(1, length + 1, dtype=np.int32) for length in lengths]
    seen, shapes = [], set()
    for numbers, tokens in batches(rows, by_bucket(lengths, buckets, tokens_per_batch)):
        shapes.add(tokens.shape)
        assert tokens.shape[1] in buckets
        assert tokens.size <= max(tokens_per_batch, tokens.shape[1])
        for number, line in zip(numbers, tokens, strict=False):
            seen.append(number)
            assert np.array_equal(line[line != 0], rows[number])
        assert not tokens[len(numbers) :].any()
    assert sorted(seen) == list(range(len(rows)))
    assert len(shapes) <= 5 * len(buckets)


def test_length_buckets():
    assert length_buckets(512) == (32, 64, 128, 256, 512)
    assert length_buckets(20) == (20,)


def test_flatten_round_trip():
    tree = {"a": {"b": 1, "c": {"d": 2}}, "e": 3}
    assert flatten(tree) == {"a.b": 1, "a.c.d": 2, "e": 3}
    assert unflatten(flatten(tree)) == tree


def broken(name):
    def change(folder, _):
        (folder / name).unlink()

    return change


def other_vocabulary(folder, tiny):
    (folder / "vocab.txt").write_text("\n".join([*tiny.pieces, "new"]))


def other_architecture(folder, tiny):
    description = json.loads((folder / "model.json").read_text())
    description["encoder"] |= dataclasses.asdict(dataclasses.replace(tiny.config, mlp_size=64))
    (folder / "model.json").write_text(json.dumps(description))


def more_layers(folder, _):
    description = json.loads((folder / "model.json").read_text())
    description["encoder"]["num_layers"] = 3
    (folder / "model.json").write_text(json.dumps(description))


def no_manifest(folder, _):
    (folder / "checkpoints/1/params/manifest.ocdbt").unlink()


def no_arrays(folder, _):
    for path in (folder / "checkpoints/1/params").rglob("d/*"):
        path.unlink()


def no_metadata(folder, _):
    (folder / "checkpoints/1/params/_METADATA").unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken("model.json"), "model.json: cannot be read"),
        (broken("vocab.txt"), "vocab.txt: cannot be read"),
        (lambda folder, _: (folder / "model.json").write_text("{"), "got no JSON"),
        (
            lambda folder, _: (folder / "model.json").write_text('{"encoder": {"size": 3}, "vocabulary_sha256": ""}'),
            "unknown keys size",
        ),
        (other_vocabulary, "vocab.txt: its SHA-256"),
        (other_architecture, "mlp_in.*got shape .* expected .* another architecture"),
        (more_layers, "parameters are missing: layers_2"),
        (lambda folder, _: shutil.rmtree(folder / "checkpoints"), "no checkpoints"),
        (no_manifest, "no readable Orbax parameters|no Orbax metadata"),
        (no_arrays, "no readable Orbax parameters|no Orbax metadata"),
        (no_metadata, "no Orbax metadata"),
    ],
)
def test_broken_folders(tmp_path, change, message, tiny):
    tiny.save_model(tmp_path, steps=(1,))
    change(tmp_path, tiny)
    with pytest.raises(InputError, match=message):
        load_model(str(tmp_path))


def test_unknown_step_and_folder(model_dir, tmp_path):
    with pytest.raises(InputError, match=r"no checkpoint of step 15[\s\S]*10, 20"):
        load_model(model_dir, 15)
    with pytest.raises(InputError, match="cannot be read"):
        load_model(str(tmp_path / "none"))
