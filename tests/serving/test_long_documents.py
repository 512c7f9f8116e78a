"""Documents longer than a row: what is read of them, their embeddings, and that search reads as the index did."""

import json
from pathlib import Path

import numpy as np
import pytest
from letters import exported
from newsembed.errors import InputError
from newsembed.formats.model_folder import ModelFolder
from newsembed.launch import cli
from newsembed.serving import embed, server
from newsembed.serving.encoder import load_encoder
from newsembed.serving.index import DocumentIndex
from newsembed.serving.rows import LONG_DOCUMENTS, row_weights, rows_of, tf_rows, tokens_read
from newsembed.serving.saved_model import SavedModelEncoder
from refusals import refuses

LENGTH = 10  # tokens of a row: 8 beside [CLS] and [SEP]
TITLES = ["storm", "", "", "goal", ""]
BODIES = ["coast", "wind rain " * 4, "wind rain budget vote " * 5, "a b c d e f g h " * 30, ""]


def document(tokens):
    return np.array([2, *range(10, 10 + tokens), 3], np.int32)


def test_a_document_that_fits_is_one_row():
    for how in LONG_DOCUMENTS:
        (row,) = rows_of(document(8), how, LENGTH)
        np.testing.assert_array_equal(row, document(8))


def test_long_documents_are_divided_as_they_say():
    windows = rows_of(document(20), "windows", LENGTH)
    assert [row.tolist() for row in windows] == [
        [2, *range(10, 18), 3], [2, *range(18, 26), 3], [2, *range(26, 30), 3],
    ]  # fmt: skip
    np.testing.assert_allclose(row_weights(windows, LENGTH), [1, 1 / 2, 1 / 3 * 4 / 8])
    np.testing.assert_allclose(row_weights(windows[2:], LENGTH), [1])


@pytest.mark.parametrize(("length", "windows"), [(LENGTH, 8), (128, 4), (256, 2), (384, 2), (512, 1)])
def test_windows_hold_500_tokens_and_are_8_at_most(length, windows):
    rows = rows_of(document(4_000), "windows", length)
    assert [len(row) for row in rows] == [length] * windows
    assert tokens_read("windows", length) == 2 + windows * (length - 2)


def test_the_graph_divides_as_numpy_does():
    import tensorflow as tf

    documents = [document(tokens) for tokens in (3, 8, 9, 20, 0, 64)]
    rows, owners, weights = tf_rows(tf.ragged.constant(documents, dtype=tf.int32), LENGTH)
    expected = [rows_of(one, "windows", LENGTH) for one in documents]
    assert rows.to_list() == [row.tolist() for divided in expected for row in divided]
    assert owners.numpy().tolist() == [number for number, divided in enumerate(expected) for _ in divided]
    np.testing.assert_allclose(
        weights, np.concatenate([row_weights(divided, LENGTH) for divided in expected]), rtol=1e-6
    )


def reference(encoder, how):
    """Embeddings by one call of the model for each row."""
    documents = encoder.vocabulary.encode_documents(TITLES, BODIES, tokens_read(how, LENGTH))
    result = []
    for one in documents:
        rows = rows_of(one, how, LENGTH)
        total = sum(
            weight * encoder.encode_tokens([row])[0]
            for row, weight in zip(rows, row_weights(rows, LENGTH), strict=True)
        )
        result.append(total / np.linalg.norm(total))
    return np.stack(result)


@pytest.mark.parametrize("how", LONG_DOCUMENTS)
def test_embeddings_are_weighted_means_of_rows(model_dir, how):
    encoder = load_encoder(model_dir, max_length=LENGTH, long_documents=how)
    found = encoder.encode(TITLES, BODIES)
    np.testing.assert_allclose(found, reference(encoder, how), atol=1e-5)
    head = load_encoder(model_dir, max_length=LENGTH)
    short = [0, 1, 4]
    np.testing.assert_allclose(found[short], head.encode(TITLES, BODIES)[short], atol=1e-6)
    assert (np.abs(found - head.encode(TITLES, BODIES)).max() > 1e-3) == (how != "head")
    assert (encoder.digest == head.digest) == (how == "head")
    assert encoder.encode([], []).shape == (0, 8)


@pytest.mark.parametrize("inputs", ["text", "tokens"])
def test_a_saved_model_reads_as_the_encoder_that_it_was_exported_from(model_dir, tmp_path, inputs):
    output = str(tmp_path / "saved")
    reading = {"max_length": LENGTH, "long_documents": "windows"}
    assert exported(model_dir, output, inputs=inputs, **reading).max_difference <= 1e-5
    saved, encoder = SavedModelEncoder(output), load_encoder(model_dir, **reading)
    titles, bodies = TITLES * 20, BODIES * 20  # more rows than a batch
    np.testing.assert_allclose(saved.encode(titles, bodies), encoder.encode(titles, bodies), atol=1e-5)
    assert saved.facts["long_documents"] == "windows"
    assert saved.digest == f"savedmodel-{encoder.digest}"
    SavedModelEncoder(output, long_documents="windows")
    with pytest.raises(InputError, match="--long_documents: got head, the SavedModel reads long documents by windows"):
        SavedModelEncoder(output, long_documents="head")


def test_search_reads_as_the_index_did(model_dir, articles, tmp_path, capsys):
    index = str(tmp_path / "index")
    options = ["--model", model_dir, "--max_length", str(LENGTH)]
    assert cli.main(["index", *options, "--long_documents", "windows", "--input", articles, "--output", index]) == 0
    assert DocumentIndex.load(index).settings["long_documents"] == "windows"
    capsys.readouterr()
    how = ["--mode", "vectors", "--max_length", str(LENGTH)]
    assert cli.main(["search", "--index", index, *how, "storm " * 30, "--json"]) == 0
    top = json.loads(capsys.readouterr().out)[0]
    encoder = load_encoder(model_dir, max_length=LENGTH, long_documents="windows")
    scores = DocumentIndex.load(index).embeddings @ encoder.encode_queries(["storm " * 30])[0]
    assert abs(top["score"] - scores.max()) < 1e-4


def test_a_model_says_how_it_reads(model_dir, tiny, tmp_path):
    folder = tmp_path / "model"
    tiny.save_model(folder, steps=(10,))
    tiny.describe(folder, long_documents="windows")
    assert ModelFolder(str(folder)).read_description().long_documents == "windows"
    assert load_encoder(str(folder)).long_documents == "windows"
    assert load_encoder(str(folder), long_documents="head").long_documents == "head"
    tiny.describe(folder, long_documents="all")
    refuses("--long_documents: got 'all'", load_encoder, str(folder))
    tiny.describe(folder, long_documents=3)
    refuses(r"model\.json: long_documents", load_encoder, str(folder))
    with pytest.raises(InputError, match="--max_length: rows of 3 tokens have no room for windows"):
        load_encoder(model_dir, max_length=3, long_documents="windows")


def test_embed_takes_the_option_and_the_server_leaves_it_to_the_index(model_dir, articles, tmp_path):
    output = str(tmp_path / "vectors")
    options = ["--model", model_dir, "--max_length", "6", "--input", articles, "--output", output]
    assert embed.run(cli.parsed("embed", embed, [*options, "--long_documents", "windows"])) == 0
    rows = [json.loads(line) for line in Path(articles).read_text().splitlines()]
    encoder = load_encoder(model_dir, max_length=6, long_documents="windows")
    expected = encoder.encode([row["title"] for row in rows], [row["body"] for row in rows])
    np.testing.assert_allclose(np.load(f"{output}/embeddings.npy"), expected, atol=1e-5)
    with pytest.raises(InputError, match="--long_documents: documents are read as the index says"):
        server.load_service(cli.parsed("serve", server, ["--index", "index", "--long_documents", "windows"]))
