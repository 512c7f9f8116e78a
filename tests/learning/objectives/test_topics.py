"""Topics: the loss of the logits, and records of several documents."""

import pytest
from newsembed.formats.vocabulary import PAD_ID
from newsembed.models.losses import topic_bce
from objective_runs import assert_close, loss_of, method_of, with_gradient


def test_the_loss_is_equation_2_of_the_logits_of_the_documents(batches):
    """`models/test_losses.py` compares the equation with NumPy."""
    batch = batches["topics"]
    logits = method_of("topic_logits")(batch["tokens"])
    expected = topic_bce(logits, batch["topic_ids"], batch["topic_labels"])
    assert len(set((batch["topic_labels"] < 0).sum(1))) > 1
    loss, metrics = loss_of("topics", batch)
    assert loss == pytest.approx(float(expected.loss), rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(float(expected.accuracy))}


def test_three_documents_of_a_row_count_as_three_rows(batches):
    """Places without a document carry neither loss nor gradient."""
    flat = dict(batches["topics"])
    expected = with_gradient("topics", {name: values[:11] for name, values in flat.items()}, dropout=0.0)
    flat["tokens"], flat["topic_labels"] = flat["tokens"].copy(), flat["topic_labels"].copy()
    flat["tokens"][11], flat["topic_labels"][11] = PAD_ID, -1
    rows = {name: flat[name].reshape(4, 3, -1) for name in ("tokens", "topic_ids", "topic_labels")}
    assert_close(with_gradient("topics", rows | {"doc_id": flat["doc_id"].reshape(4, 6)}, dropout=0.0), expected)
