"""The supervised tasks of XTREME (Hu et al. 2020): their files as its scripts lay them out, and their metrics.

A model is trained on English and tested on all languages. ``scripts/download_data.sh`` of
https://github.com/google-research/xtreme makes a folder for each task, in one folder. It takes the labels out of the
test files; where it did not, they are read there. Labels beside them are in ``TASK/test-LANGUAGE.tsv`` (``.json`` for
questions), as its ``evaluate.py`` reads them.

XTREME's metrics, as its ``evaluate.py`` computes them, between 0 and 1.

Pairs have accuracy. Words have the F1 of `seqeval` over the entities of PAN-X, and likewise over the parts of speech of
UD-POS, where neighbouring words of one tag are an entity. Answers have SQuAD's F1 and exact match (Rajpurkar et al.
2016), those of MLQA with the articles and words of each language (Lewis et al. 2020, ``mlqa_evaluation_v1.py``).
"""

import collections
import dataclasses
import os
import re
import statistics
import string
import sys
import tomllib
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from ..errors import InputError
from ..formats.files import packaged, read_json
from .files import folder_entries, read_rows, read_text

SOURCE: Final = "get it by scripts/download_data.sh of https://github.com/google-research/xtreme"


@dataclasses.dataclass(frozen=True)
class XtremeTask:
    """A task.

    Attributes:
      name: its folder below that of the data.
      head: what is labelled: "pair" of sentences, each "word", or a "span" of a text that answers a question.
      languages: those of XTREME's table.
      labels: of pairs or words.
      metric: the one of XTREME's table.
      training: the folder whose training part is learned; tasks may share one.
      test: name of the test file of a language, below the folder.
      train: name of the training file, below the folder of the training.
      dev: name of the file that chooses the checkpoint; "" takes the last checkpoint, as XTREME does for questions.
    """

    name: str
    head: Literal["pair", "word", "span"]
    languages: tuple[str, ...]
    labels: tuple[str, ...]
    metric: str
    training: str
    test: str = "test-{}.tsv"
    train: str = "train-en.tsv"
    dev: str = "dev-en.tsv"

    @property
    def labels_file(self) -> str:
        """Name of the file of labels, and of predictions, of a language."""
        return f"{self.name}/test-{{}}.{'json' if self.head == 'span' else 'tsv'}"


TASKS: Final[Mapping[str, XtremeTask]] = {
    name: XtremeTask(name, **facts | {key: tuple(facts.get(key, "").split()) for key in ("languages", "labels")})
    for name, facts in tomllib.loads(packaged(__package__, "xtreme.toml")).items()
}
TRAIN: Final = "train"
_KINDS: Final = {str: "a string", int: "a number", list: "a list", dict: "an object"}


class Pair(NamedTuple):
    """Two sentences."""

    first: str
    second: str


Words = tuple[str, ...]


class Question(NamedTuple):
    """A question, the text with its answer, and where the first answer is: its first character and the one after it.

    ``start`` and ``end`` are 0 where the file has no answers.
    """

    key: str
    question: str
    context: str
    start: int
    end: int


Example = Pair | Words | Question
Gold = Any  # the label of each pair, those of the words of each sentence, or the answers to each question by its key


@dataclasses.dataclass(frozen=True)
class Part:
    """The examples of a file, in its order, and their labels; None for a file without."""

    examples: Sequence[Example]
    gold: Gold


def part_file(task: XtremeTask, data: str, part: str, language: str = "en") -> str:
    """The file of a part: "train", "dev" or "test", of which only the last has all languages."""
    folder = os.path.join(data, task.training if part == TRAIN else task.name)
    return os.path.join(folder, {TRAIN: task.train, "dev": task.dev}.get(part, task.test).format(language))


def languages_of(task: XtremeTask, data: str) -> list[str]:
    """The languages of XTREME's table whose test files are there, in its order.

    Raises:
      InputError: if there are none.
    """
    folder_entries(os.path.join(data, task.name), SOURCE)
    found = [language for language in task.languages if os.path.exists(part_file(task, data, "test", language))]
    if not found:
        path = part_file(task, data, "test", "LANGUAGE")
        raise InputError(f"no test file of {', '.join(task.languages)} is here", path=path, remedy=SOURCE)
    return found


def read_part(task: XtremeTask, data: str, part: str, language: str = "en") -> Part:
    """Reads a part; the training and the dev part must have labels.

    Raises:
      InputError: for a file that is missing or broken.
    """
    path, needs_labels = part_file(task, data, part, language), part != "test"
    read = {"pair": _read_pairs, "word": _read_words, "span": _read_questions}[task.head]
    found = read(path, task.labels, needs_labels)
    if not found.examples:
        raise InputError("no example is here", path=path, remedy=SOURCE)
    return found


def read_labels(task: XtremeTask, folder: str, language: str) -> Gold:
    """Reads the labels of a test file, or predictions of pairs and words, see ``XtremeTask.labels_file``."""
    path = os.path.join(folder, task.labels_file.format(language))
    if task.head == "span":
        return _read_questions(path, (), needs_labels=True).gold
    lines = read_text(path, SOURCE).split("\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if line.strip() or task.head == "pair":
            _check_label(line.strip(), task.labels, f"{path}:{number}", "label")
    if task.head == "pair":
        return [line.strip() for line in lines]
    return [labels for labels, _ in _sentences(lines)]


def _read_pairs(path: str, labels: Sequence[str], needs_labels: bool) -> Part:
    """A pair on each line: first sentence, second sentence and, but for some test files, the label."""
    pairs, gold, width = list[Pair](), list[str](), 3 if needs_labels else 0
    for where, fields in read_rows(path, SOURCE, quoted=False, columns=2):
        width = width or len(fields)
        if len(fields) != width or width > 3:
            expected = f"{min(width, 3)}: two sentences{' and a label' * (width > 2)}"
            raise InputError(f"got {len(fields)} columns, expected {expected}", path=where, remedy=SOURCE)
        first, second = map(_unquoted, fields[:2])
        pairs.append(Pair(first, second))
        gold += [_check_label(fields[2].strip(), labels, where, "column 3, label")] if width > 2 else []
    return Part(pairs, gold or None)


def _unquoted(field: str) -> str:
    """A field without the quotes that Python's csv module writes around one with quotes; others stay as they are."""
    inner = field[1:-1]
    is_quoted = len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else field


def _check_label(label: str, labels: Sequence[str], where: str, field: str) -> str:
    if label not in labels:
        raise InputError(f"got {label!r}, expected one of {', '.join(labels)}", path=where, field=field, remedy=SOURCE)
    return label


def _sentences(lines: Sequence[str]) -> Iterator[tuple[list[str], int]]:
    """The lines of each sentence, which end at an empty line, and the number of its first line."""
    own = list[str]()
    for number, line in enumerate([*lines, ""], 1):
        if line.strip("\r "):
            own.append(line.strip("\r "))
        elif own:
            yield own, number - len(own)
            own = []


def _read_words(path: str, labels: Sequence[str], needs_labels: bool) -> Part:
    """A word on each line and, but for some test files, a tab and its label; an empty line ends a sentence."""
    sentences, gold, width = list[Words](), list[list[str]](), 2 if needs_labels else 0
    for lines, first in _sentences(read_text(path, SOURCE).split("\n")):
        words, own = list[str](), list[str]()
        for number, line in enumerate(lines, first):
            fields, where = line.split("\t"), f"{path}:{number}"
            width = width or len(fields)
            if len(fields) != width or width > 2 or not fields[0]:
                problem = f"got {line!r}, expected a word{', a tab and its label' if width == 2 else ''}"
                raise InputError(problem, path=where, remedy=SOURCE)
            words.append(fields[0])
            own += [_check_label(fields[1].strip(), labels, where, "column 2, label")] if width == 2 else []
        sentences.append(tuple(words))
        gold.append(own)
    # WikiAnn's own files have the language before every word, which XTREME's script takes away.
    starts = {word.partition(":")[0] if ":" in word else "" for words in sentences for word in words}
    if len(starts) == 1 and (start := starts.pop()):
        sentences = [tuple(word.removeprefix(f"{start}:") for word in words) for words in sentences]
    return Part(sentences, gold if width == 2 else None)


def _read_questions(path: str, _labels: Sequence[str], needs_labels: bool) -> Part:
    """SQuAD's JSON: articles with paragraphs, each of which has a context and questions with answers."""
    questions, gold = list[Question](), dict[str, list[str]]()
    for article, place in _entries(read_json(path, SOURCE, dict), "data", path, ""):
        for paragraph, inside in _entries(article, "paragraphs", path, place):
            context = _value(paragraph, "context", str, path, inside)
            for row, at in _entries(paragraph, "qas", path, inside):
                key, question = (_value(row, name, str, path, at) for name in ("id", "question"))
                found = list(_entries(row, "answers", path, at)) if "answers" in row or needs_labels else []
                texts = [_value(answer, "text", str, path, of) for answer, of in found]
                if needs_labels and not any(texts):
                    raise InputError("got no answer", path=path, field=f"{at}.answers", remedy=SOURCE)
                start = _value(found[0][0], "answer_start", int, path, found[0][1]) if any(texts) else 0
                if needs_labels and context[start : start + len(texts[0])] != texts[0]:
                    problem = f"got {start}, where the context has {context[start : start + len(texts[0])]!r}"
                    problem += f" and not the answer {texts[0]!r}"
                    raise InputError(problem, path=path, field=f"{found[0][1]}.answer_start", remedy=SOURCE)
                questions.append(Question(key, question, context, start, start + len(texts[0]) if any(texts) else 0))
                gold[key] = texts
    return Part(questions, gold if any(map(any, gold.values())) else None)


def _entries(value: Mapping[str, Any], key: str, path: str, place: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects in a list of an object, each with its place."""
    for number, entry in enumerate(_value(value, key, list, path, place)):
        at = f"{place}.{key}[{number}]".removeprefix(".")
        if not isinstance(entry, dict):
            raise InputError(f"got {entry!r}, expected an object", path=path, field=at, remedy=SOURCE)
        yield entry, at


def _value(value: Mapping[str, Any], key: str, kind: type, path: str, place: str) -> Any:
    if not isinstance(value.get(key), kind):
        problem = f"got {value.get(key)!r}, expected {_KINDS[kind]}"
        raise InputError(problem, path=path, field=f"{place}.{key}".removeprefix("."), remedy=SOURCE)
    return value[key]


# MLQA's. The Arabic pattern is that of the official script, where ^ stands behind the article.
_ARTICLES: Final = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",  # noqa: RUF001
}
_CHARACTERS: Final = re.compile("[\u4e00-\u9fa5]")  # each is a word


def scores(task: XtremeTask, language: str, gold: Gold, found: Gold) -> dict[str, float]:
    """The metrics of a test file by name, XTREME's main one first.

    Args:
      task: whose.
      language: of the file.
      gold: its labels.
      found: predictions in the form of `gold`; of questions, one answer by key.

    Raises:
      InputError: for another number of predictions than labels.
    """
    if task.head == "span":
        return answer_scores(gold, found, normalizer(language if task.name == "mlqa" else None))
    lengths = [1 if task.head == "pair" else len(row) for row in gold]
    if lengths != [1 if task.head == "pair" else len(row) for row in found]:
        problem = f"{sum(lengths)} labels in {len(gold)} rows, but the test file has other rows or words"
        raise InputError(problem, path=task.labels_file.format(language), remedy="give the labels of this test file")
    if task.head == "pair":
        return {"accuracy": statistics.fmean(one == two for one, two in zip(gold, found, strict=True))}
    return tag_scores(gold, found)


def tag_scores(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> dict[str, float]:
    """F1, precision and recall of entities, and the accuracy of words.

    Args:
      gold: the labels of each sentence.
      found: as many.
    """
    from seqeval import metrics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that parts of speech are no entities, and of figures that are 0
        names = {"F1": metrics.f1_score, "precision": metrics.precision_score, "recall": metrics.recall_score}
        entities = {name: float(of(list(map(list, gold)), list(map(list, found)))) for name, of in names.items()}
    return {**entities, "accuracy": float(metrics.accuracy_score(gold, found))}


def answer_scores(
    gold: Mapping[str, Sequence[str]], found: Mapping[str, str], normalize: Callable[[str], str]
) -> dict[str, float]:
    """F1 of words and exact match; of several answers to a question the nearest counts, and a missing one scores 0.

    Args:
      gold: the answers to each question.
      found: the predicted answer.
      normalize: see `normalizer`.
    """
    f1, exact = 0.0, 0.0
    for key, answers in gold.items():
        mine = [normalize(found[key])] * len(answers) if key in found else []
        pairs = list(zip(mine, map(normalize, answers), strict=False))
        f1 += max((_word_f1(one.split(), two.split()) for one, two in pairs), default=0.0)
        exact += any(one == two for one, two in pairs)
    return {"F1": f1 / len(gold), "exact match": exact / len(gold)}


def _word_f1(found: list[str], gold: list[str]) -> float:
    common = (collections.Counter(found) & collections.Counter(gold)).total()
    return 2 * common / (len(found) + len(gold)) if common else 0.0


def normalizer(language: str | None) -> Callable[[str], str]:
    """What answers are compared by: words in lower case without punctuation and articles.

    >>> normalizer(None)("The Eiffel Tower!"), normalizer("de")("Der Turm"), normalizer("zh")("北京, China")
    ('eiffel tower', 'turm', '北 京 china')

    Args:
      language: of MLQA; None for SQuAD's English rules, which XTREME applies to all languages of XQuAD and TyDiQA.
    """
    dropped = str.maketrans(dict.fromkeys(string.punctuation if language is None else _punctuation()))
    articles = _ARTICLES.get(language or "en")

    def normalize(answer: str) -> str:
        words = answer.lower().translate(dropped)
        words = re.sub(articles, " ", words) if articles else words
        if language == "zh":
            words = _CHARACTERS.sub(r" \g<0> ", words)
        return " ".join(words.split())

    return normalize


@cache
def _punctuation() -> str:
    every = map(chr, range(sys.maxunicode))
    return "".join(sign for sign in every if unicodedata.category(sign).startswith("P")) + string.punctuation
