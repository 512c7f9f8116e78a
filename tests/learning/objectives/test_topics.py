"""Topics: against a plain reference, and several documents in a row."""

import flax.linen as nn
import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import PAD_ID
from newsembed.models.encoders import EncoderConfig
from objective_runs import assert_close, loss_of, method_of, with_gradient


def test_packed_topics_equal_unpacked_ones(batches):
    batch = dict(batches["topics"])
    batch["tokens"] = batch["tokens"][:, :5].copy()
    batch["tokens"][3, 2:] = PAD_ID  # a short one between longer ones
    expected = with_gradient("topics", batch, dropout=0.0)
    assert loss_of("topics", batch, topics_per_row=3)[0] == pytest.approx(expected[0], rel=1e-5)
    assert_close(with_gradient("topics", batch, dropout=0.0, topics_per_row=3, gradient_chunk=6), expected)


def test_a_batch_that_rows_of_several_documents_do_not_divide_is_named(batches):
    batch = dict(batches["topics"])
    batch["tokens"] = batch["tokens"][:, :3]
    with pytest.raises(InputError, match="BATCH_SIZE: got 12 documents in a step, expected a multiple of 5"):
        with_gradient("topics", batch, topics_per_row=5)


def by_hand(logits, batch):
    """The cross entropy of every listed topic in float64, by document, and whether its logit has the right sign."""
    terms, hits = [], []
    for row, (topics, labels) in enumerate(zip(batch["topic_ids"], batch["topic_labels"], strict=True)):
        terms.append([])
        for topic, label in zip(topics, labels, strict=True):
            if label >= 0:
                probability = 1 / (1 + np.exp(-logits[row, topic]))
                terms[-1].append(-np.log(probability if label else 1 - probability))
                hits.append((probability > 0.5) == bool(label))
    return terms, hits


def test_the_loss_is_equation_2(batches):
    """The sum over the listed topics of a document, the mean over the documents, from the logits of the documents."""
    batch = batches["topics"]
    terms, hits = by_hand(np.float64(method_of("topic_logits")(batch["tokens"])), batch)
    assert (batch["topic_labels"] < 0).any()
    assert len({len(of_document) for of_document in terms}) > 1
    loss, metrics = loss_of("topics", batch)
    assert loss == pytest.approx(np.mean([sum(of_document) for of_document in terms]), rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(np.mean(hits))}
    loss, metrics = loss_of("topics", batch, mean_over="labels")
    assert loss == pytest.approx(np.mean(sum(terms, [])), rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(np.mean(hits))}


def test_three_documents_of_a_row_count_as_three_rows(batches):
    """Places without a document carry neither loss nor gradient."""
    flat = dict(batches["topics"])
    expected = with_gradient("topics", {name: values[:11] for name, values in flat.items()}, dropout=0.0)
    flat["tokens"], flat["topic_labels"] = flat["tokens"].copy(), flat["topic_labels"].copy()
    flat["tokens"][11], flat["topic_labels"][11] = PAD_ID, -1
    rows = {name: flat[name].reshape(4, 3, -1) for name in ("tokens", "topic_ids", "topic_labels")}
    assert_close(with_gradient("topics", rows | {"doc_id": flat["doc_id"].reshape(4, 6)}, dropout=0.0), expected)


def test_both_heads_read_the_state_of_the_first_token():
    """The paper's encoder: two dense layers side by side on the [CLS] state."""
    config = EncoderConfig(
        30, hidden_size=8, num_layers=1, num_heads=2, mlp_size=16, max_length=6, embedding_size=5, num_topics=4
    )
    assert config.pooling == "cls"
    tokens = np.array([[2, 9, 7, 3, 0, 0], [2, 5, 3, 0, 0, 0]])
    module = config.module()
    params = nn.unbox(module.init(jax.random.key(0), tokens))["params"]
    state = np.asarray(module.apply({"params": params}, tokens, method="encode"))[:, 0]
    topics, embedding = (params[name] for name in ("topic_head", "embedding_head"))
    logits = module.apply({"params": params}, tokens, method="topic_logits")
    np.testing.assert_allclose(logits, state @ topics["kernel"] + topics["bias"], atol=1e-6)
    vectors = state @ embedding["kernel"] + embedding["bias"]
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(module.apply({"params": params}, tokens, method="embed"), expected, atol=1e-6)
