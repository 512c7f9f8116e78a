"""The lexical part of a hybrid: words of a static model, a projection of TF-IDF, both, and the part without words."""

import numpy as np
from drawn_parameters import drawn
from newsembed.models.encoders import EncoderConfig, HybridConfig
from newsembed.training.lexical import (
    LexicalPart,
    dense_part,
    hybrid_params,
    joined,
    lexical_part_of,
    random_projection_of_tfidf,
)
from scipy.sparse import csr_array
from small_encoders import small, static


def test_words_of_a_static_model_give_its_embeddings():
    table = static(30, max_length=16, num_topics=2, lead_length=4, sublinear=True)
    params = drawn(table)
    words = lexical_part_of(table, params)
    news = small(30, hidden_size=8, num_layers=1, mlp_size=8, max_length=16, embedding_size=4)
    config = HybridConfig(
        **{**news.to_dict(), "embedding_size": 10}, lexical_size=6, lexical_lead_length=words.lead_length
    )
    hybrid = hybrid_params(drawn(news), config, words, share=0.25)
    rows = np.array([[2, 9, 17, 9, 30 - 1, 3, 0, 0], [2, 5, 3, 0, 0, 0, 0, 0]], np.int32)
    expected = np.asarray(table.module().apply({"params": params}, rows, method="embed"))
    found = np.asarray(config.module().apply({"params": hybrid}, rows, method="embed"))
    counts = np.array([6, 3])[:, None]
    np.testing.assert_allclose(found[:, 4:], expected * np.sqrt(0.25 * counts / (counts + 64)), atol=1e-5)


def test_a_random_projection_keeps_the_cosines_of_tfidf():
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.arange(5, 200), 60) for _ in range(40)]
    frequencies = np.array([sum(piece in row for row in rows) for piece in range(200)])
    rarity = np.log((1 + 40) / (1 + frequencies)) + 1
    words = random_projection_of_tfidf(rarity, 4096, lead_length=0)
    weights = np.where(np.arange(200) < 5, 0, rarity)
    np.testing.assert_allclose(np.exp(words.logits), weights, rtol=1e-5, atol=1e-12)
    counts = np.stack([np.log1p(np.bincount(row, minlength=200)) for row in rows]) * weights
    exact, projected = counts, (counts @ words.table)
    cosines = [matrix @ matrix.T / np.outer(*[np.linalg.norm(matrix, axis=1)] * 2) for matrix in (exact, projected)]
    assert np.abs(cosines[0] - cosines[1]).max() < 0.08


def test_joined_parts_are_side_by_side_with_equal_shares():
    rng = np.random.default_rng(0)
    # Special tokens weigh nothing; the parts differ in size, in weights and in the lengths of their vectors.
    parts = [
        LexicalPart(rng.normal(size=(40, size)) * size, np.append(np.full(5, -200), rng.normal(size=35)), 4)
        for size in (3, 7)
    ]
    terms = rng.poisson(0.3, (60, 40))
    found = joined(parts, csr_array(terms))
    np.testing.assert_allclose(np.linalg.norm(found.table, axis=1)[5:], 1, atol=1e-6)
    assert np.exp(found.logits[:5]).max() == 0
    vectors = [terms @ (np.exp(part.logits)[:, None] * part.table) for part in parts]
    expected = [vector / np.linalg.norm(vector, axis=1).mean() for vector in vectors]
    np.testing.assert_allclose(
        terms @ (np.exp(found.logits)[:, None] * found.table), np.hstack(expected), rtol=1e-4, atol=1e-5
    )


def test_the_dense_part_embeds_as_the_hybrid_does_in_one_window():
    config = HybridConfig(
        vocab_size=30, hidden_size=8, num_layers=2, num_heads=2, mlp_size=8, max_length=16, embedding_size=10,
        num_topics=2, pooling="weighted", lead_length=3, window_length=6, lexical_size=6, context_length=12,
    )  # fmt: skip
    params = drawn(config)
    shape, kept = dense_part(config, params)
    assert type(shape) is EncoderConfig
    assert (shape.embedding_size, shape.max_length, shape.window_length) == (4, 6, 0)
    assert kept.keys() == drawn(shape).keys()
    rows = np.array([[2, 9, 17, 9, 29, 3], [2, 5, 3, 0, 0, 0]], np.int32)
    hybrid = np.asarray(config.module().apply({"params": params}, rows, method="embed"))[:, :4]
    found = np.asarray(shape.module().apply({"params": kept}, rows, method="embed"))
    np.testing.assert_allclose(found, hybrid / np.linalg.norm(hybrid, axis=1, keepdims=True), atol=1e-5)
