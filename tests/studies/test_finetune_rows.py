"""Rows of pairs, words and questions, and predictions from logits, against loops over all choices."""

import itertools

import numpy as np
import pytest
from newsembed.evaluation.xtreme import TASKS, Pair, Part, Question
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS, UNK_ID
from newsembed.studies.finetune.rows import RowMaker
from newsembed.tasks.vocabulary import Vocabulary

WORDS = [f"w{number}" for number in range(40)]
PIECES = [*SPECIAL_TOKENS, *WORDS, "ab", "##c", "##d"]
VOCABULARY = Vocabulary(PIECES)
IDS = {piece: number for number, piece in enumerate(PIECES)}


def rows_of(task, examples, gold=None, length=16):
    return list(RowMaker(TASKS[task], VOCABULARY, length)(Part(examples, gold)))


def shown(row):
    return " ".join(PIECES[token] for token in row.tokens)


def test_a_pair_has_both_sentences_and_its_label():
    first, second = rows_of("pawsx", [Pair("w1 w2", "w3"), Pair("w4", "")], ["1", "0"])
    assert shown(first) == "[CLS] w1 w2 [SEP] w3 [SEP]"
    assert (first.labels, first.example) == ({"label": 2}, 0)
    assert shown(second) == "[CLS] w4 [SEP]"
    assert (second.labels, second.example) == ({"label": 1}, 1)
    assert rows_of("pawsx", [Pair("w1", "w2")])[0].labels == {}


@pytest.mark.parametrize(("one", "two"), [*itertools.product(range(9), repeat=2)])
def test_the_longer_sentence_is_cut_first(one, two):
    kept = [one, two]
    while sum(kept) > 7:  # one token at a time, of both alike from the second
        kept[kept[0] <= kept[1]] -= 1
    (row,) = rows_of("pawsx", [Pair(" ".join(["w1"] * one), " ".join(["w2"] * two))], length=10)
    assert len(row.tokens) <= 10
    assert [int(np.sum(row.tokens == IDS[word])) for word in ("w1", "w2")] == kept


def test_words_have_their_label_at_the_first_piece():
    (row,) = rows_of("udpos", [("w1", "abcd", "€")], [["DET", "NOUN", "SYM"]])
    assert shown(row) == "[CLS] w1 ab ##c ##d [UNK] [SEP]"
    labels = TASKS["udpos"].labels
    numbers = [1 + labels.index(label) for label in ("DET", "NOUN", "SYM")]
    assert row.labels["label"].tolist() == [0, numbers[0], numbers[1], 0, 0, numbers[2], 0]
    assert row.places.tolist() == [1, 2, 5]


def test_long_sentences_become_rows_and_long_words_unknown():
    words = ("w1", "abcd", "ab", "abcdcd", "w2", "w3", "w4", "w5", "w6")
    labels = list(TASKS["udpos"].labels[: len(words)])
    rows = rows_of("udpos", [words, ("w7",)], [labels, ["X"]], length=6)
    assert [shown(row) for row in rows] == [
        "[CLS] w1 ab ##c ##d [SEP]",
        "[CLS] ab [UNK] w2 w3 [SEP]",
        "[CLS] w4 w5 w6 [SEP]",
        "[CLS] w7 [SEP]",
    ]
    assert [row.example for row in rows] == [0, 0, 0, 1]
    own = [value for row in rows for value in row.labels["label"] if value]
    assert own == [*range(1, 10), 1 + TASKS["udpos"].labels.index("X")]
    assert rows[1].tokens[2] == UNK_ID


def question(words=30, answer=(4, 5), asked="w38 w39"):
    """The words from answer[0] to answer[1] are the answer."""
    texts = WORDS[:words]
    start = len(" ".join(texts[: answer[0]])) + (answer[0] > 0)
    end = len(" ".join(texts[: answer[1] + 1]))
    return Question("q", asked, " ".join(texts), start, end)


def test_a_context_that_fits_is_one_row_with_its_answer():
    (row,) = rows_of("xquad", [question(5, (1, 3))], length=16)
    assert shown(row) == "[CLS] w38 w39 [SEP] w0 w1 w2 w3 w4 [SEP]"
    assert row.labels == {"start": 5, "end": 7}
    assert (row.first, row.is_best.tolist()) == (4, [True] * 5)


def test_long_contexts_are_read_in_windows(monkeypatch):
    monkeypatch.setattr("newsembed.studies.finetune.rows.STRIDE", 4)
    rows = rows_of("xquad", [question(15, (5, 6))], length=13)  # 8 tokens of the context in each window
    starts = [0, 4, 8]
    assert [shown(row).split()[4:-1] for row in rows] == [WORDS[start : start + 8][: 15 - start] for start in starts]
    # The answer is in the first two windows.
    assert [row.labels for row in rows] == [{"start": 9, "end": 10}, {"start": 5, "end": 6}, {"start": 0, "end": 0}]
    for token in range(15):
        context = {
            window: min(token - start, min(start + 8, 15) - 1 - token) + 0.01 * min(8, 15 - start)
            for window, start in enumerate(starts)
            if start <= token < start + 8
        }
        best = max(context, key=lambda window: context[window])
        assert [window for window in context if rows[window].is_best[token - starts[window]]] == [best]
    assert len(rows_of("xquad", [question(16, (5, 6))], length=13)) == 3
    assert len(rows_of("xquad", [question(17, (5, 6))], length=13)) == 4


def test_a_long_question_is_cut_and_a_test_question_has_no_place():
    (row,) = rows_of("xquad", [question(3, (0, 0), asked=" ".join(["w9"] * 20))], length=16)
    assert shown(row) == f"[CLS] {' '.join(['w9'] * 8)} [SEP] w0 w1 w2 [SEP]"
    (row,) = rows_of("xquad", [Question("q", "w1", "", 0, 0)], length=16)
    assert (shown(row), row.labels) == ("[CLS] w1 [SEP] [SEP]", {})


def logits_of(seed, size):
    """What stands for a model: the same tokens have the same logits."""

    def apply(tokens):
        rows = [np.random.default_rng([seed, *row[row > 0]]).normal(size=(len(row), size)) for row in tokens]
        return np.array(rows, np.float32)

    return apply


def test_predictions_of_pairs_and_words_have_the_order_of_the_file(monkeypatch):
    pairs = [Pair(" ".join(["w1"] * number), "w2") for number in (20, 1, 9, 3)]
    maker = RowMaker(TASKS["xnli"], VOCABULARY, 64)
    apply = logits_of(0, 3)
    found = maker.predictions(Part(pairs, None), lambda tokens: apply(tokens)[:, 0], tokens_per_batch=64, multiple=3)
    labels = TASKS["xnli"].labels
    assert found == [labels[int(np.argmax(apply(row.tokens[None])[0, 0]))] for row in maker(Part(pairs, None))]
    sentences = [tuple(f"w{number % 40}" for number in range(count)) for count in (3, 17, 1)]
    maker = RowMaker(TASKS["panx"], VOCABULARY, 10)
    apply = logits_of(1, 7)
    found = maker.predictions(Part(sentences, None), apply, tokens_per_batch=20)
    assert [len(labels) for labels in found] == [3, 17, 1]
    first = apply(next(maker(Part(sentences, None))).tokens[None])[0]
    assert found[0] == [TASKS["panx"].labels[int(np.argmax(first[1 + word]))] for word in range(3)]


@pytest.mark.parametrize("seed", range(5))
def test_the_answer_is_the_best_of_all_spans_in_all_windows(monkeypatch, seed):
    monkeypatch.setattr("newsembed.studies.finetune.rows.STRIDE", 4)
    monkeypatch.setattr("newsembed.studies.finetune.rows._LONGEST_ANSWER", 3)
    maker, asked, apply = RowMaker(TASKS["xquad"], VOCABULARY, 13), question(15), logits_of(seed, 2)
    best = (-np.inf, "")
    for window, row in enumerate(maker(Part([asked], None))):
        logits = apply(row.tokens[None])[0]
        ranks = np.argsort(np.argsort(-logits, axis=0), axis=0)
        for first, last in itertools.combinations_with_replacement(range(len(row.places)), 2):
            one, two = 4 + first, 4 + last
            is_named = ranks[one, 0] < 20 and ranks[two, 1] < 20
            if last - first < 3 and row.is_best[first] and is_named:
                answer = " ".join(WORDS[4 * window :][first : last + 1])
                best = max(best, (logits[one, 0] + logits[two, 1], answer))
    # The rows have no padding here, which a batch would add.
    found = {}
    for row in maker(Part([asked], None)):
        found[row.tokens.tobytes()] = apply(row.tokens[None])[0]

    def padded(tokens):
        rows = np.full((*tokens.shape, 2), -99, np.float32)
        for own, row in zip(rows, tokens, strict=True):
            key = row[row > 0].tobytes()
            if key in found:
                own[: len(found[key])] = found[key]
        return rows

    assert maker.predictions(Part([asked], None), padded) == {"q": best[1]}


def test_a_context_without_tokens_has_an_empty_answer():
    maker = RowMaker(TASKS["xquad"], VOCABULARY, 13)
    assert maker.predictions(Part([Question("q", "w1", " ", 0, 0)], None), logits_of(0, 2)) == {"q": ""}


def test_answers_are_cut_from_the_context_as_it_is_written():
    context = "w1  ABc, w2"  # "ab" and "##c" of one word
    (row,) = rows_of("xquad", [Question("q", "w9", context, 4, 7)], length=16)
    assert (row.labels["start"], row.labels["end"]) == (4, 5)
    assert [PIECES[token] for token in row.tokens[4:6]] == ["ab", "##c"]

    def apply(tokens):
        logits = np.zeros((*tokens.shape, 2), np.float32)
        logits[:, 4, 0] = logits[:, 5, 1] = 5.0
        return logits

    found = RowMaker(TASKS["xquad"], VOCABULARY, 16).predictions(
        Part([Question("q", "w9", context, 0, 0)], None), apply
    )
    assert found == {"q": "ABc"}
    assert [row.tokens[0], row.tokens[-1]] == [CLS_ID, SEP_ID]
