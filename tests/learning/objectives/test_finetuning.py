"""The losses of labelled texts, words and answers, against NumPy."""

import jax
import numpy as np
import pytest
from drawn_parameters import drawn
from newsembed.errors import InputError
from newsembed.learning.objectives import Model, Objectives, objectives_of
from newsembed.models.encoders import FinetunedConfig
from objective_runs import jit
from small_encoders import small

ENCODER = small(20, hidden_size=8, num_layers=1, mlp_size=8, max_length=8, embedding_size=4, num_topics=1)
TOKENS = np.array([[2, 7, 8, 9, 3, 0], [2, 8, 3, 0, 0, 0], [2, 9, 9, 7, 7, 3]], np.int32)
TASKS = {"pair": "pair_classification", "word": "token_classification", "span": "question_answering"}


def run(head, **labels):
    """(loss, metrics, logits)"""
    config = FinetunedConfig(20, ENCODER, head, 2 if head == "span" else 3, dropout_rate=0.0)
    params, task = drawn(config), TASKS[head]
    objectives = Objectives(Model(config), objectives_of([task]))
    batch = {"tokens": TOKENS, **{name: np.array(values, np.int32) for name, values in labels.items()}}
    loss, metrics = jit(lambda params: objectives.loss(task, params, batch, jax.random.key(0)))(params)
    logits = config.module().apply({"params": params}, TOKENS, method="label_logits")
    return float(loss), {name: float(value) for name, value in metrics.items()}, np.float64(logits)


def cross_entropy(logits, label):
    return np.log(np.sum(np.exp(logits))) - logits[label]


def test_the_labels_of_texts():
    loss, metrics, logits = run("pair", label=[1, 3, 2])
    losses = [cross_entropy(own, label) for own, label in zip(logits, [0, 2, 1], strict=True)]
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(np.mean(np.argmax(logits, 1) == [0, 2, 1]))}


def test_the_labels_of_words_count_alike_and_other_tokens_not_at_all():
    labels = np.array([[0, 1, 0, 2, 0, 0], [0, 3, 0, 0, 0, 0], [0, 2, 0, 0, 1, 0]])
    loss, metrics, logits = run("word", label=labels)
    places = list(zip(*np.nonzero(labels), strict=True))
    losses = [cross_entropy(logits[place], labels[place] - 1) for place in places]
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)
    right = [np.argmax(logits[place]) == labels[place] - 1 for place in places]
    assert metrics == {"accuracy": pytest.approx(np.mean(right))}
    assert run("word", label=np.zeros((3, 6)))[0] == 0.0


def test_the_ends_of_answers_are_among_the_tokens():
    start, end = [1, 0, 3], [3, 0, 4]
    loss, metrics, logits = run("span", start=start, end=end)
    losses, right = [], []
    for row, every in enumerate(logits):
        own = every[TOKENS[row] > 0]
        losses += [cross_entropy(own[:, 0], start[row]), cross_entropy(own[:, 1], end[row])]
        right.append([*np.argmax(own, 0)] == [start[row], end[row]])
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert metrics == {"accuracy": pytest.approx(np.mean(right))}


def test_a_head_of_another_task_and_a_model_without_one_are_refused():
    config = FinetunedConfig(20, ENCODER, "span")
    with pytest.raises(InputError, match=r"FinetunedConfig.head: got 'span', expected pair or word for pair_class"):
        Objectives(Model(config), objectives_of(["pair_classification"]))
    with pytest.raises(InputError, match="the objective QuestionAnswering needs labels"):
        Objectives(Model(ENCODER), objectives_of(["question_answering"]))
    assert Objectives(Model(config), objectives_of(["question_answering"])).bounds["labels"] == 3
