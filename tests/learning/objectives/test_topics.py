"""Topics: against a plain reference, and several documents in a row."""

import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.formats.vocabulary import PAD_ID
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
    with pytest.raises(InputError, match="BATCH_SIZE: got 12, expected a multiple of 5"):
        with_gradient("topics", batch, topics_per_row=5)


def test_the_loss_is_the_mean_cross_entropy_of_the_listed_topics(batches):
    """Against NumPy in float64, from the logits of the documents."""
    batch = batches["topics"]
    logits = np.float64(method_of("topic_logits")(batch["tokens"]))
    terms, hits = [], []
    for row, (topics, labels) in enumerate(zip(batch["topic_ids"], batch["topic_labels"], strict=True)):
        for topic, label in zip(topics, labels, strict=True):
            if label >= 0:
                probability = 1 / (1 + np.exp(-logits[row, topic]))
                terms.append(-np.log(probability if label else 1 - probability))
                hits.append((probability > 0.5) == bool(label))
    loss, metrics = loss_of("topics", batch)
    assert (batch["topic_labels"] < 0).any()
    assert loss == pytest.approx(np.mean(terms), rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(np.mean(hits))}
