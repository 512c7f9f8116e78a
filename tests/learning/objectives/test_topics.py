"""Topics: against a plain reference, and records of several documents."""

import numpy as np
import pytest
from newsembed.formats.vocabulary import PAD_ID
from objective_runs import assert_close, loss_of, method_of, with_gradient


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


def test_three_documents_of_a_row_count_as_three_rows(batches):
    """Places without a document carry neither loss nor gradient."""
    flat = dict(batches["topics"])
    expected = with_gradient("topics", {name: values[:11] for name, values in flat.items()}, dropout=0.0)
    flat["tokens"], flat["topic_labels"] = flat["tokens"].copy(), flat["topic_labels"].copy()
    flat["tokens"][11], flat["topic_labels"][11] = PAD_ID, -1
    rows = {name: flat[name].reshape(4, 3, -1) for name in ("tokens", "topic_ids", "topic_labels")}
    assert_close(with_gradient("topics", rows | {"doc_id": flat["doc_id"].reshape(4, 6)}, dropout=0.0), expected)
