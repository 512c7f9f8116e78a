"""XTREME's files and metrics: what is read, what a broken file is told, and the scores of the official scripts."""

import json
import random
from pathlib import Path

import pytest
from newsembed.errors import InputError
from newsembed.evaluation.xtreme import (
    TASKS,
    Pair,
    Question,
    answer_scores,
    languages_of,
    normalizer,
    read_labels,
    read_part,
    scores,
    tag_scores,
)
from refusals import refuses

CASES = json.loads((Path(__file__).parent / "xtreme_cases.json").read_text(encoding="utf-8"))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def squad(*paragraphs):
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": list(paragraphs)}]})


def paragraph(context="Rome is old", answers=((0, "Rome"),), key="q1"):
    answers = [{"answer_start": start, "text": text} for start, text in answers]
    return {"context": context, "qas": [{"id": key, "question": "What is old?", "answers": answers}]}


def test_the_tasks_are_those_of_xtreme():
    languages = {"xnli": 15, "pawsx": 7, "udpos": 33, "panx": 40, "xquad": 11, "mlqa": 7, "tydiqa": 9}
    assert {name: len(task.languages) for name, task in TASKS.items()} == languages
    labels = {name: len(task.labels) for name, task in TASKS.items() if task.labels}
    assert labels == {"xnli": 3, "pawsx": 2, "udpos": 18, "panx": 7}
    assert {task.training for task in TASKS.values()} == {"xnli", "pawsx", "udpos", "panx", "squad", "tydiqa"}


def test_pairs_are_read_with_the_quotes_of_csv_and_without(tmp_path):
    lines = ['"He said ""no"""\tYes\tneutral', '"A" and "B"\tx\tentailment', '5" long\t""\tcontradiction']
    write(tmp_path / "xnli/train-en.tsv", "\r\n".join(lines) + "\r\n")
    part = read_part(TASKS["xnli"], str(tmp_path), "train")
    assert part.examples == [Pair('He said "no"', "Yes"), Pair('"A" and "B"', "x"), Pair('5" long', "")]
    assert part.gold == ["neutral", "entailment", "contradiction"]


def test_a_test_file_may_have_labels(tmp_path):
    task, path = TASKS["pawsx"], tmp_path / "pawsx/test-de.tsv"
    write(path, "a\tb\nc\td\n")
    assert read_part(task, str(tmp_path), "test", "de").gold is None
    write(path, "a\tb\t1\nc\td\t0\n")
    assert read_part(task, str(tmp_path), "test", "de").gold == ["1", "0"]


def test_words_are_read_by_sentence(tmp_path):
    task = TASKS["panx"]
    write(tmp_path / "panx/dev-en.tsv", "Paris\tB-LOC\n\u00a0\tO\n\n\nBob\tB-PER\n")
    part = read_part(task, str(tmp_path), "dev")
    assert part.examples == [("Paris", "\u00a0"), ("Bob",)]
    assert part.gold == [["B-LOC", "O"], ["B-PER"]]
    write(tmp_path / "panx/test-th.tsv", "ก\nข\n\nค")
    part = read_part(task, str(tmp_path), "test", "th")
    assert (part.examples, part.gold) == ([("ก", "ข"), ("ค",)], None)


def test_the_language_before_each_word_of_wikiann_is_no_part_of_it(tmp_path):
    task = TASKS["panx"]
    write(tmp_path / "panx/train-en.tsv", "en:Paris\tB-LOC\nen::\tO\n\nen:en:x\tO\n")
    assert read_part(task, str(tmp_path), "train").examples == [("Paris", ":"), ("en:x",)]
    write(tmp_path / "panx/dev-en.tsv", "en:Paris\tB-LOC\nat\tO\n\n")
    assert read_part(task, str(tmp_path), "dev").examples == [("en:Paris", "at")]


def test_questions_are_read_with_the_place_of_the_first_answer(tmp_path):
    asked = [paragraph(), paragraph("Old Rome", ((4, "Rome"), (0, "Old Rome")), "q2")]
    write(tmp_path / "squad/train-v1.1.json", squad(*asked))
    part = read_part(TASKS["mlqa"], str(tmp_path), "train")
    assert part.examples == [
        Question("q1", "What is old?", "Rome is old", 0, 4),
        Question("q2", "What is old?", "Old Rome", 4, 8),
    ]
    assert part.gold == {"q1": ["Rome"], "q2": ["Rome", "Old Rome"]}
    path = tmp_path / "mlqa/MLQA_V1/test/test-context-de-question-de.json"
    write(path, squad(paragraph(answers=((0, ""),))))  # as XTREME leaves it
    part = read_part(TASKS["mlqa"], str(tmp_path), "test", "de")
    assert (part.examples, part.gold) == ([Question("q1", "What is old?", "Rome is old", 0, 0)], None)


def test_the_languages_are_those_of_the_table_that_are_here(tmp_path):
    for language in ("zh", "xx", "en"):
        write(tmp_path / f"pawsx/test-{language}.tsv", "a\tb\n")
    assert languages_of(TASKS["pawsx"], str(tmp_path)) == ["en", "zh"]
    (tmp_path / "xnli").mkdir()
    refuses(r"xnli/test-LANGUAGE.tsv: no test file of ar, bg, .* is here", languages_of, TASKS["xnli"], str(tmp_path))
    refuses(r"udpos: cannot be read: No such file(?s:.*)download_data.sh", languages_of, TASKS["udpos"], str(tmp_path))


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("xnli", "a\tb\tneutral\nc\td\tn/a\n", r"train-en.tsv:2: column 3, label: got 'n/a', expected one of contra"),
        ("xnli", "a\tb\tneutral\nc\td\n", r"train-en.tsv:2: got 2 columns, expected 3: two sentences and a label"),
        ("xnli", "a\n", r"train-en.tsv:1: got 1 columns, expected at least 2"),
        ("xnli", "", r"train-en.tsv: no example is here"),
        ("udpos", "a\tNOUN\n\nb\tNAME\n", r"train-en.tsv:3: column 2, label: got 'NAME', expected one of ADJ, ADP"),
        ("udpos", "a\tNOUN\nb\n", r"train-en.tsv:2: got 'b', expected a word, a tab and its label"),
        ("udpos", "\tNOUN\n", r"train-en.tsv:1: got '\\tNOUN', expected a word, a tab and its label"),
        ("udpos", "a\tNOUN\tx\n", r"train-en.tsv:1: got 'a\\tNOUN\\tx', expected a word"),
        ("xquad", '{"data": [3]}', r"train-v1.1.json: data\[0\]: got 3, expected an object"),
        ("xquad", squad({}), r"json: data\[0\].paragraphs\[0\].context: got None, expected a string"),
        ("xquad", squad(paragraph(answers=())), r"json: data\[0\].paragraphs\[0\].qas\[0\].answers: got no answer"),
        (
            "xquad",
            squad(paragraph(), paragraph(answers=((1, "Rome"),))),
            r"data\[0\].paragraphs\[1\].qas\[0\].answers\[0\].answer_start: got 1, where the context has 'ome '",
        ),
    ],
)
def test_an_error_names_the_file_the_line_and_the_column(tmp_path, task, text, message):
    name = "squad/train-v1.1.json" if task == "xquad" else f"{task}/train-en.tsv"
    write(tmp_path / name, text)
    refuses(message, read_part, TASKS[task], str(tmp_path), "train")


def test_a_file_that_is_missing_is_named_with_where_to_get_it(tmp_path):
    for task, name in (("xnli", "xnli/dev-en.tsv"), ("panx", "panx/dev-en.tsv")):
        refuses(rf"{name}: cannot be read(?s:.*)download_data.sh", read_part, TASKS[task], str(tmp_path), "dev")
    refuses(r"xquad.el.json(?s:.*)download_data.sh", read_part, TASKS["xquad"], str(tmp_path), "test", "el")


def test_labels_beside_the_test_files_are_read(tmp_path):
    write(tmp_path / "pawsx/test-fr.tsv", "1\n0\n")
    assert read_labels(TASKS["pawsx"], str(tmp_path), "fr") == ["1", "0"]
    write(tmp_path / "panx/test-fr.tsv", "O\nB-LOC\n\nO\n")
    assert read_labels(TASKS["panx"], str(tmp_path), "fr") == [["O", "B-LOC"], ["O"]]
    write(tmp_path / "xquad/test-ru.json", squad(paragraph()))
    assert read_labels(TASKS["xquad"], str(tmp_path), "ru") == {"q1": ["Rome"]}
    write(tmp_path / "pawsx/test-fr.tsv", "1\n2\n")
    with pytest.raises(InputError, match=r"pawsx/test-fr.tsv:2: label: got '2', expected one of 0, 1"):
        read_labels(TASKS["pawsx"], str(tmp_path), "fr")


def test_answers_score_as_by_the_official_scripts():
    assert len(CASES) == 96
    for language, gold, found, f1, exact in CASES:
        own = answer_scores(gold, found, normalizer(language))
        assert {name: 100 * value for name, value in own.items()} == pytest.approx({"F1": f1, "exact match": exact})
    assert {f1 for *_, f1, _ in CASES} > {0.0, 100.0}


def test_an_answer_by_hand():
    # "the" is no word: one of two words is shared, and the nearest of both answers counts.
    own = answer_scores({"q": ["The old Rome", "Paris"], "r": ["x"]}, {"q": "Rome"}, normalizer(None))
    assert own == pytest.approx({"F1": (2 / 3) / 2, "exact match": 0.0})
    assert scores(TASKS["mlqa"], "de", {"q": ["das Haus"]}, {"q": "Haus!"}) == {"F1": 1.0, "exact match": 1.0}
    assert scores(TASKS["xquad"], "de", {"q": ["das Haus"]}, {"q": "Haus!"})["exact match"] == 0.0


def test_the_accuracy_of_pairs_and_what_does_not_belong_to_the_file():
    assert scores(TASKS["pawsx"], "en", ["0", "1", "1", "1"], ["0", "1", "0", "1"]) == {"accuracy": 0.75}
    refuses(r"pawsx/test-en.tsv: 2 labels in 2 rows", scores, TASKS["pawsx"], "en", ["0", "1"], ["0"])
    refuses(r"panx/test-en.tsv: 2 labels in 1 rows", scores, TASKS["panx"], "en", [["O", "O"]], [["O"]])


def entities(tags):
    """CoNLL's entities of a sentence: (type, first, last)."""
    found, start = set(), None
    for place, tag in enumerate([*tags, "O"]):
        if start is not None and (tag[0] in "BO" or tag[2:] != tags[start][2:]):
            found.add((tags[start][2:], start, place - 1))
            start = None
        if tag != "O" and start is None:
            start = place
    return found


def test_entities_score_as_conll_s_and_equal_tags_of_neighbours_are_one_entity():
    pytest.importorskip("seqeval", reason="seqeval is not installed (newsembed[xtreme])")
    own = tag_scores([["B-PER", "I-PER", "O"], ["B-LOC", "O"]], [["B-PER", "O", "O"], ["B-LOC", "B-LOC"]])
    assert own == pytest.approx({"F1": 2 * 1 / (3 + 2), "precision": 1 / 3, "recall": 1 / 2, "accuracy": 3 / 5})
    drawn = random.Random(0)
    rows = [[drawn.choices(TASKS["panx"].labels, k=6) for _ in range(50)] for _ in (0, 1)]
    gold, found = ([entities(tags) for tags in part] for part in rows)
    shared = sum(len(one & two) for one, two in zip(gold, found, strict=True))
    expected = 2 * shared / sum(len(one) for part in (gold, found) for one in part)
    assert tag_scores(*rows)["F1"] == pytest.approx(expected)
    # Parts of speech: [NOUN NOUN] [VERB] against [NOUN] [VERB VERB].
    own = tag_scores([["NOUN", "NOUN", "VERB"]], [["NOUN", "VERB", "VERB"]])
    assert own == pytest.approx({"F1": 0.0, "precision": 0.0, "recall": 0.0, "accuracy": 2 / 3})
