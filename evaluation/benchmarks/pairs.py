"""Classification of sentence pairs by supervised heads: MRPC, SICK-E, and XNLI in any two languages.

MRPC and SICK-E (SentEval, Conneau and Kiela 2018): the features of a pair are ``[|u - v|, u * v]`` of its frozen unit
vectors; a logistic regression whose C is chosen by cross-validation on the training part (``heads.py``) is tested on
the test part. MRPC reports accuracy and the F1 of the paraphrases, SICK-E accuracy.

XNLI: the relation of two sentences, each in any language, by LASER's classifier trained on English.
Protocol (LASER's ``nli.py``; T-MDE, section 4.5). The features of a pair are ``[u, v, |u - v|, u * v]`` of its frozen
unit vectors. The classifier of ``heads.py`` with hidden layers of 512 and 384, dropout 0.3 and batches of 128 is
trained for 200 epochs on the English pairs of ``multinli.train.en.tsv``; the epoch is the best on the English pairs of
``xnli.dev.tsv``. Pairs of ``xnli.test.tsv`` that translate each other have one ``pairID``, so each cell ``X→Y`` tests
premises in X with hypotheses in Y. ``Same`` is the mean over X = Y, ``Cross`` over X ≠ Y, ``All`` over all cells.

Without ``multinli.train.en.tsv`` the classifier is trained on the English dev part, of which every fifth premise is
kept to choose the epoch. Such scores are far below those with MultiNLI's 393,000 pairs; the protocol says which it was.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import InputError
from ..benchmark import ALL, ARROW, Benchmark, Score, Suite, has, languages_option, with_averages
from ..encoders import Document, Embeddings, dense_rows
from ..files import read_rows
from ..heads import Classes, Features, Perceptron, logistic_regression, predict, train


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    files: tuple[str, str]
    columns: tuple[str, str, str]  # first sentence, second sentence, class
    source: str
    positive: str | None = None


LAYOUTS: Final[Mapping[str, _Layout]] = {
    "mrpc": _Layout(
        ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"),
        ("#1 String", "#2 String", "Quality"),
        "https://www.microsoft.com/en-us/download/details.aspx?id=52398",
        positive="1",
    ),
    "sick_e": _Layout(
        ("SICK_train.txt", "SICK_test_annotated.txt"),
        ("sentence_A", "sentence_B", "entailment_judgment"),
        "https://zenodo.org/records/2787612",
    ),
}


TRAIN, DEV, TEST = "multinli.train.en.tsv", "xnli.dev.tsv", "xnli.test.tsv"
CLASSES: Final = ("entailment", "neutral", "contradiction")
_SOURCE: Final = "en"
_DEV_SHARE: Final = 5  # one premise in five is for development
_XNLI_REMEDY: Final = (
    f"get XNLI-1.0 and XNLI-MT-1.0 from https://github.com/facebookresearch/XNLI; expected: {DEV} and {TEST} with the "
    f"columns language, gold_label, sentence1, sentence2, pairID, and {TRAIN} with premise, hypo, label, if you have it"
)
_HEAD: Final = Perceptron(hidden=(512, 384), dropout=0.3, batch_size=128, epochs=200)
_MOST_BYTES: Final = 8 << 30

_XNLI: Final = {
    "premise": "sentence1",
    "hypothesis": "sentence2",
    "label": "gold_label",
    "language": "language",
    "pair_id": "pairID",
}
_MULTINLI: Final = {"premise": "premise", "hypothesis": "hypo", "label": "label"}


class _Pair(NamedTuple):
    premise: str
    hypothesis: str
    label: int
    language: str
    pair_id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairClassification(Benchmark):
    """MRPC or SICK-E, from the folder of both files.

    Attributes:
      format: a key of ``LAYOUTS``.
    """

    format: str

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of both parts."""
        return tuple(os.path.join(self.path, file) for file in LAYOUTS[self.format].files)

    def _facts(self) -> dict[str, Any]:
        return {"suite": self.format, "features": "|u-v|, u*v"}

    @functools.cached_property
    def _parts(self) -> tuple[list[tuple[str, str, str]], ...]:
        return tuple(
            [row for row in _read_pairs(path, LAYOUTS[self.format]) if self.keeps(*map(_document, row[:2]))]
            for path in self.paths
        )

    def _texts(self) -> Sequence[Document]:
        rows = [row for part in self._parts for row in part]
        return [_document(row[side]) for side in (0, 1) for row in rows]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        from scipy import sparse
        from sklearn.metrics import f1_score

        labels = np.array([row[2] for part in self._parts for row in part])
        one, two = embeddings[: len(labels)], embeddings[len(labels) :]
        if sparse.issparse(one):
            features = sparse.hstack([abs(one - two), one.multiply(two)]).tocsr()
        else:
            features = np.hstack([np.abs(one - two), one * two])
        train, test = np.split(np.arange(len(labels)), [len(self._parts[0])])
        found = logistic_regression(features, labels, train, test)
        scores = [Score("accuracy", float(np.mean(labels[test] == found)), ALL, len(test))]
        if positive := LAYOUTS[self.format].positive:
            scores.append(Score("F1", float(f1_score(labels[test], found, pos_label=positive)), ALL, len(test)))
        return scores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Xnli(Benchmark):
    """Cross-lingual inference.

    Attributes:
      seed: of the classifier.
      head: its options.
    """

    languages: tuple[str, ...] = languages_option()
    seed: int = 0
    head: Perceptron = _HEAD

    def _facts(self) -> dict[str, Any]:
        suite = f"xnli of {', '.join(sorted(self.languages))}" if self.languages else "xnli"
        if not os.path.exists(os.path.join(self.path, TRAIN)):
            suite += ", trained on dev"  # not comparable with published numbers
        head = dataclasses.asdict(self.head) | {"hidden": list(self.head.hidden)}
        return {"suite": suite, "features": "u, v, |u-v|, u*v", "head": head, "seed": self.seed}

    @functools.cached_property
    def _parts(self) -> tuple[list[_Pair], list[_Pair], list[_Pair]]:
        """The pairs to train on, to choose the epoch with, and to test on."""
        dev = [pair for pair in self._read(DEV, _XNLI) if pair.language == _SOURCE]
        test = [pair for pair in self._read(TEST, _XNLI) if pair.language in self.languages or not self.languages]
        if missing := set(self.languages) - {pair.language for pair in test}:
            problem = f"no pairs in {', '.join(sorted(missing))}"
            raise InputError(problem, path=self.path, field="languages", remedy=_XNLI_REMEDY)
        if os.path.exists(os.path.join(self.path, TRAIN)):
            return self._read(TRAIN, _MULTINLI), dev, test
        kept = set(list(dict.fromkeys(pair.premise for pair in dev))[::_DEV_SHARE])
        return [pair for pair in dev if pair.premise not in kept], [pair for pair in dev if pair.premise in kept], test

    def _read(self, name: str, columns: Mapping[str, str]) -> list[_Pair]:
        path = os.path.join(self.path, name)
        pairs = _read_xnli(path, columns)
        found = [pair for pair in pairs if self.keeps(_document(pair.premise), _document(pair.hypothesis))]
        if not found:
            raise InputError("no pairs found", path=path, remedy=_XNLI_REMEDY)
        return found

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        """The place of each sentence among the documents: a sentence in several pairs is embedded once."""
        texts = (text for part in self._parts for pair in part for text in (pair.premise, pair.hypothesis))
        return {text: place for place, text in enumerate(dict.fromkeys(texts))}

    def _texts(self) -> Sequence[Document]:
        return list(map(_document, self._places))

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        known, dev, test = self._parts
        if not known or not dev:
            raise InputError("no English pairs to train on", path=self.path, field="language", remedy=_XNLI_REMEDY)
        layers = train(self.head, self._of(embeddings, known), self._of(embeddings, dev), len(CLASSES), self.seed)
        names = list(dict.fromkeys(pair.language for pair in test))
        by_id = {name: {pair.pair_id: pair for pair in test if pair.language == name} for name in names}
        cells = {}
        for one, two in itertools.product(names, names):
            pairs = [
                premise._replace(hypothesis=by_id[two][number].hypothesis)
                for number, premise in by_id[one].items()
                if number in by_id[two]
            ]
            if pairs:
                features, labels = self._of(embeddings, pairs)
                accuracy = float(np.mean(predict(layers, features) == labels))
                cells[one, two] = Score("accuracy", accuracy, f"{one}{ARROW}{two}", len(pairs))
        return with_averages(cells)

    def _of(self, embeddings: Embeddings, pairs: Sequence[_Pair]) -> tuple[Features, Classes]:
        """Features float32 ``[N, 4 D]`` and classes int32 ``[N]``."""
        if len(pairs) * embeddings.shape[1] * 16 > _MOST_BYTES:
            problem = f"{len(pairs)} pairs of vectors of {embeddings.shape[1]} numbers do not fit into memory"
            remedy = "use an encoder with fewer dimensions, such as lsa instead of tfidf"
            raise InputError(problem, field="--encoder", remedy=remedy)
        one, two = (
            dense_rows(embeddings[[self._places[getattr(pair, side)] for pair in pairs]])
            for side in ("premise", "hypothesis")
        )
        features = np.concatenate([one, two, np.abs(one - two), one * two], axis=1)
        return features, np.array([pair.label for pair in pairs], np.int32)


def _document(sentence: str) -> Document:
    return Document("", sentence)


def _columns(path: str, columns: Sequence[str], remedy: str) -> Iterator[tuple[str, list[str]]]:
    """Yields ("path:line", values of these columns) of a tab-separated file with a header."""
    rows = list(read_rows(path, remedy, delimiter="\t", quoted=False))
    header = rows[0][1] if rows else []
    if missing := sorted(set(columns) - set(header)):
        raise InputError(f"the header lacks {', '.join(missing)}", path=path, remedy=remedy)
    places = [header.index(column) for column in columns]
    for where, fields in rows[1:]:
        if len(fields) <= max(places):
            raise InputError(f"got {len(fields)} columns, expected {len(header)}", path=where, remedy=remedy)
        yield where, [fields[place].strip() for place in places]


def _read_pairs(path: str, layout: _Layout) -> list[tuple[str, str, str]]:
    expected = f"{' and '.join(layout.files)}, tab-separated with the columns {', '.join(layout.columns)}"
    remedy = f"get it from {layout.source}; expected: {expected}"
    found = [(first, second, label) for _, (first, second, label) in _columns(path, layout.columns, remedy)]
    if len({label for *_, label in found}) < 2:
        raise InputError("fewer than two classes", path=path, field=layout.columns[2], remedy=remedy)
    return found


def _read_xnli(path: str, columns: Mapping[str, str]) -> list[_Pair]:
    found = []
    for number, (where, fields) in enumerate(_columns(path, tuple(columns.values()), _XNLI_REMEDY)):
        values = dict(zip(columns, fields, strict=True))
        label = "contradiction" if values["label"] == "contradictory" else values["label"]
        if label not in CLASSES:
            raise InputError(f"got {label!r}", path=where, field=columns["label"], remedy=f"use {', '.join(CLASSES)}")
        known = values.get("language", _SOURCE), values.get("pair_id", str(number))
        found.append(_Pair(values["premise"], values["hypothesis"], CLASSES.index(label), *known))
    return found


SUITES: Final = {
    **{form: Suite(PairClassification, {"format": form}, has(*layout.files)) for form, layout in LAYOUTS.items()},
    "xnli": Suite(Xnli, find=has(DEV, TEST)),
}
