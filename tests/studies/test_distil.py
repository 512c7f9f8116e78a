"""newsembed distil: the table against plain NumPy, and a whole distillation of a small encoder."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from drawn_parameters import drawn, write_model
from json_lines import write_rows
from manifests import write_manifest
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.formats.articles import ArticleText
from newsembed.serving.encoder import load_encoder, load_model
from newsembed.studies import distil
from newsembed.studies.distil import Distillation, DistilOptions
from newsembed.studies.shared.static import count_pieces
from newsembed.tasks.vocabulary import Vocabulary
from refusals import refuses
from small_encoders import small

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "##b", "##c", "flood")
WIDTH = 6
SIZES = {"size": 4, "lead_length": 4, "max_length": 16}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder with a transformer of random weights."""
    sizes = {"hidden_size": 8, "num_layers": 1, "mlp_size": 8, "embedding_size": WIDTH, "num_topics": 2}
    config = small(len(PIECES), **sizes, pooling="mean")
    return write_model(tmp_path_factory.mktemp("encoder"), config, PIECES, 10, drawn(config, 1.0))


@pytest.fixture(scope="module")
def articles(tmp_path_factory):
    """40 articles of letters, some words that are not pieces, and one article without text."""
    path = tmp_path_factory.mktemp("articles") / "articles.jsonl"
    rng = np.random.default_rng(0)
    rows = [{"title": "", "body": ""}]
    for number in range(40):
        body = " ".join([*rng.choice(list("abcdefgh"), 20), "gab", *["hag"] * (number % 2), "rare"[: 4 * (number < 2)]])
        rows.append({"title": "flood a", "body": body})
    return write_rows(path, rows)


def distilled(encoder, output, articles=None, **settings):
    options = DistilOptions(model=encoder, output=str(output), articles=articles, **{**SIZES, **settings})
    assert Distillation(options).run() == 0
    return f"{output}/model"


def piece_vectors(encoder, rows):
    model = load_model(encoder)
    module = model.config.module()
    return np.asarray(module.apply({"params": model.params}, np.stack(rows), method="embed"))


def rows_of(articles):
    """Those with texts."""
    return [json.loads(line) for line in Path(articles).read_text().splitlines()][1:]


def text(title, body):
    return ArticleText("", "", "", title, body)


def test_principal_components_are_those_of_a_singular_value_decomposition():
    vectors = np.random.default_rng(0).normal(size=(50, 6)) @ np.diag([5, 4, 3, 2, 1, 0.5]) + 3
    centred = vectors - vectors.mean(axis=0)
    left, strengths, _ = np.linalg.svd(centred, full_matrices=False)
    for whitening in (0.0, 0.5, 1.0):
        expected = (left * strengths)[:, :4] / (strengths[:4] / 50**0.5) ** whitening
        found = centred @ distil.principal_components(vectors, 4, whitening=whitening)
        np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-9)


def test_weights_follow_their_formulas():
    np.testing.assert_array_equal(distil.piece_weights("none", 3), np.ones(3))
    counts = np.array([0, 6, 2])
    expected = 1e-4 / (1e-4 + np.array([0, 0.75, 0.25]))
    np.testing.assert_allclose(distil.piece_weights("sif", 3, counts=counts), expected)
    ranks = np.array([1 / 2, 1 / 3, 1 / 4])
    np.testing.assert_allclose(distil.piece_weights("zipf", 3), 1e-4 / (1e-4 + ranks / ranks.sum()))
    found = distil.piece_weights("idf", 2, texts=np.array([1, 4, 4]))
    np.testing.assert_allclose(found, [np.log(5 / 2) + 1, 1.0])


def test_the_most_frequent_words_that_are_no_pieces_become_some():
    texts = [text("Storm flood", "zoo zoo storm"), text("", "zoo Storm bee bee bee once")]
    assert distil.frequent_words(iter(texts), 9, PIECES) == ["bee", "storm", "zoo"]
    assert distil.frequent_words(iter(texts), 2, [*PIECES, "bee"]) == ["storm", "zoo"]


def test_an_encoder_reads_what_it_knows_by_its_id_and_cuts_the_rest():
    own = Vocabulary(PIECES)
    rows = distil.piece_rows(own, ["[CLS]", "##b", "flood", "abc", "##bc"], is_own=False, max_length=10)
    ids = {piece: token for token, piece in enumerate(PIECES)}
    expected = [["[CLS]"], ["##b"], ["flood"], ["a", "##b", "##c"], ["b", "##c"]]
    assert [row.tolist() for row in rows] == [[2, *(ids[piece] for piece in pieces), 3] for pieces in expected]


def test_without_a_corpus_the_model_is_the_weighted_mean_of_the_pieces_components(encoder, tmp_path):
    folder = distilled(encoder, tmp_path / "out")
    vectors = piece_vectors(encoder, [np.array([2, token, 3]) for token in range(len(PIECES))]).astype(np.float64)
    left, _, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    components = left[:, :4] / np.linalg.norm(left[:, :4], axis=1, keepdims=True)
    ranks = 1 / np.arange(2, len(PIECES) + 2)
    weights = 1e-4 / (1e-4 + ranks / ranks.sum())
    rows = {"a b a": [5, 6, 5], "flood": [15], "h g f e": [12, 11, 10, 9]}
    expected = []
    for row in rows.values():
        positions = np.arange(1, len(row) + 1)
        mass = {token: (1 / (1 + positions / 4))[np.array(row) == token].sum() for token in row}
        expected.append(sum(np.log1p(count) * weights[token] * components[token] for token, count in mass.items()))
    expected = np.stack(expected)
    model = load_model(folder)
    assert (model.config.num_layers, model.config.embedding_size, model.text_length) == (0, 4, 16)
    found = load_encoder(folder).encode([""] * len(rows), list(rows))
    gram = expected @ expected.T / np.outer(*[np.linalg.norm(expected, axis=1)] * 2)
    np.testing.assert_allclose(found @ found.T, gram, atol=1e-5)  # components have no sign


def test_with_a_corpus_the_texts_are_whitened(encoder, articles, tmp_path):
    folder = distilled(encoder, tmp_path / "out", articles)
    model, rows = load_model(folder), rows_of(articles)
    encoder_of_result = load_encoder(folder)
    tokens = encoder_of_result.tokenize([row["title"] for row in rows], [row["body"] for row in rows])
    module = model.config.module()
    apply = lambda method, *values: np.asarray(module.apply({"params": model.params}, *values, method=method))  # noqa: E731
    pooled = np.stack([apply("pool", apply("encode", row[None]), row[None])[0] for row in tokens])
    head = model.params["embedding_head"]
    embeddings = pooled @ head["kernel"] + head["bias"]
    np.testing.assert_allclose(embeddings.mean(axis=0), 0, atol=1e-4 * np.abs(embeddings).max())
    covariance = np.cov(embeddings.T)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.2 * covariance.max()


def test_parts_have_their_share_of_the_variance_of_texts(articles):
    rows = rows_of(articles)
    vocabulary = Vocabulary(PIECES)
    counted = count_pieces(
        iter(text(row["title"], row["body"]) for row in rows), vocabulary, max_length=16, lead_length=4
    )
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(len(PIECES), 4)) * 5, rng.normal(size=(len(PIECES), 8))
    weights = distil.piece_weights("idf", len(PIECES), texts=counted.texts)
    joined = distil.beside(counted.terms, weights, [(left, 0.25), (right, 0.75)])
    terms = counted.terms.toarray()
    means = (terms * weights) @ joined / (terms * weights).sum(axis=1, keepdims=True)
    variances = means.var(axis=0)
    np.testing.assert_allclose([variances[:4].sum(), variances[4:].sum()], [0.25, 0.75])


def test_words_of_the_corpus_are_pieces_of_the_result(encoder, articles, tmp_path):
    folder = distilled(encoder, tmp_path / "out", articles, words=5, lexical_size=3, weights="idf")
    vocabulary = load_encoder(folder).vocabulary
    assert vocabulary.pieces == (*PIECES, "gab", "hag")
    model = load_model(folder)
    assert model.config.vocab_size == len(PIECES) + 2
    # A word that every text has weighs less than one that every other text has.
    assert model.params["pooling_logits"].shape == (len(PIECES) + 2,)
    assert load_encoder(folder).encode(["gab"], [""]).shape == (1, 4 + 3)


def test_a_changed_file_of_vectors_is_refused(encoder, tmp_path):
    output = tmp_path / "out"
    distilled(encoder, output)
    os.rename(output / "model", output / "before")
    file = output / "vectors-0" / "embeddings.npy"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\0")
    refuses("vectors-0", distilled, encoder, output)


def test_the_pairs_of_a_build_train_it(encoder, articles, tmp_path):
    commands = []
    output, work = tmp_path / "out", small_build(tmp_path / "work")
    trained = {"train_steps": 3, "batch_size": 2, "gin": ("SEED=1",), "work": work, "articles": articles}
    options = DistilOptions(model=encoder, output=str(output), **SIZES, **trained)
    study = Distillation(options, lambda words: commands.append(list(words)) or 0)
    assert study.run() == 0
    assert [command[0] for command in commands] == ["examples", "train"]
    assert f"{output}/vocabulary/vocab.txt" in commands[0]
    train = " ".join(commands[1])
    start = f"{output}/untrained"
    assert f"--gin_file=runs/train_static.gin --gin_file={start}/architecture.gin" in train
    for binding in (
        f'MODEL_DIR="{output}/model"', f'INITIAL_CHECKPOINT_PATH="{start}"', "TRAIN_STEPS=3", "BATCH_SIZE=2",
        "WHITENING_ROWS=0", "LATENT_SEMANTICS=False", "TEXT_LENGTH=16", "SEED=1",
    ):  # fmt: skip
        assert f"--gin.{binding}" in train
    assert load_model(start).config.num_layers == 0


def small_build(folder):
    for step in STEPS:
        write_manifest(f"{folder}/{step.job}", step.job)
    return str(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 7}, "--size: got 7, expected at most the width of the model's embeddings, 6"),
        ({"words": 3}, "--words: 3 needs counts of a corpus"),
        ({"weights": "sif"}, "--weights: sif needs counts of a corpus"),
        ({"train_steps": 3}, "--train_steps: training needs pairs"),
        ({"gin": ("SEED=1",)}, "--gin: nothing is trained"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_written(encoder, tmp_path, options, message):
    refuses(message, distilled, encoder, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_corpus_of_a_build_is_found_from_its_clean_folder_too(tmp_path):
    work = small_build(tmp_path / "work")
    for given in (work, f"{work}/clean"):
        assert Distillation(DistilOptions(model="m", output="o", work=given)).articles == f"{work}/clean/articles"
    refuses(
        "no finished build: no manifest.json in clean",
        Distillation,
        DistilOptions(model="m", output="o", work=str(tmp_path)),
    )
