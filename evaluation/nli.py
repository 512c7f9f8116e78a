"""XNLI: the relation of two sentences, each in any language, by LASER's classifier trained on English.

Protocol (LASER's ``nli.py``; T-MDE, section 4.5). The features of a pair are ``[u, v, |u - v|, u * v]`` of its frozen
unit vectors. The classifier of ``perceptron.py`` with hidden layers of 512 and 384, dropout 0.3 and batches of 128 is
trained for 200 epochs on the English pairs of ``multinli.train.en.tsv``; the epoch is the best on the English pairs of
``xnli.dev.tsv``. Pairs of ``xnli.test.tsv`` that translate each other have one ``pairID``, so each cell ``X→Y`` tests
premises in X with hypotheses in Y. ``Same`` is the mean over X = Y, ``Cross`` over X ≠ Y, ``All`` over all cells.

Without ``multinli.train.en.tsv`` the classifier is trained on the English dev part, of which every fifth premise is
kept to choose the epoch. Such scores are far below those with MultiNLI's 393,000 pairs; the protocol says which it was.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import InputError
from .benchmark import PathBenchmark, Score
from .crosslingual import ARROW
from .encoders import Document, Embeddings
from .files import read_rows
from .perceptron import Classes, Features, Perceptron, Trained, train

TRAIN, DEV, TEST = "multinli.train.en.tsv", "xnli.dev.tsv", "xnli.test.tsv"
CLASSES: Final = ("entailment", "neutral", "contradiction")
_SOURCE: Final = "en"
_DEV_SHARE: Final = 5  # one premise in five is for development
_REMEDY: Final = (
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


@dataclasses.dataclass(frozen=True)
class Xnli(PathBenchmark):
    """Cross-lingual inference.

    Attributes:
      path: the folder of the files.
      name: the name in tables.
      languages: which of the test part; empty takes all.
      seed: of the classifier.
      head: its options.
      excluded: sentences to leave out together with their pairs, see ``leakage.py``.
    """

    path: str
    name: str
    languages: tuple[str, ...] = ()
    seed: int = 0
    head: Perceptron = _HEAD
    excluded: frozenset[Document] = frozenset()

    @property
    def protocol(self) -> Mapping[str, Any]:
        """Every option that changes a score, as JSON values."""
        suite = f"xnli of {', '.join(sorted(self.languages))}" if self.languages else "xnli"
        has_train = os.path.exists(os.path.join(self.path, TRAIN))
        if not has_train:
            suite += ", trained on dev"  # not comparable with published numbers
        head = dataclasses.asdict(self.head) | {"hidden": list(self.head.hidden)}
        features = "u, v, |u-v|, u*v"
        return {"suite": suite, "features": features, "head": head, "seed": self.seed, "excluded": len(self.excluded)}

    @functools.cached_property
    def _parts(self) -> tuple[list[_Pair], list[_Pair], list[_Pair]]:
        """The pairs to train on, to choose the epoch with, and to test on.

        Raises:
          InputError: for a language that the test part lacks, and a file that cannot be read.
        """
        dev = [pair for pair in self._read(DEV, _XNLI) if pair.language == _SOURCE]
        test = [pair for pair in self._read(TEST, _XNLI) if pair.language in self.languages or not self.languages]
        if missing := set(self.languages) - {pair.language for pair in test}:
            raise InputError(
                f"no pairs in {', '.join(sorted(missing))}", path=self.path, field="languages", remedy=_REMEDY
            )
        if os.path.exists(os.path.join(self.path, TRAIN)):
            return self._read(TRAIN, _MULTINLI), dev, test
        premises = {premise: number for number, premise in enumerate(dict.fromkeys(pair.premise for pair in dev))}
        is_kept = [premises[pair.premise] % _DEV_SHARE == 0 for pair in dev]
        known = [pair for pair, kept in zip(dev, is_kept, strict=True) if not kept]
        return known, [pair for pair, kept in zip(dev, is_kept, strict=True) if kept], test

    def _read(self, name: str, columns: Mapping[str, str]) -> list[_Pair]:
        path = os.path.join(self.path, name)
        pairs = _read(path, columns)
        found = [p for p in pairs if not {Document("", p.premise), Document("", p.hypothesis)} & self.excluded]
        if not found:
            raise InputError("no pairs found", path=path, remedy=_REMEDY)
        return found

    @functools.cached_property
    def _texts(self) -> dict[str, int]:
        """The place of each sentence among the documents: a sentence in several pairs is embedded once."""
        pairs = [pair for part in self._parts for pair in part]
        return {
            text: place
            for place, text in enumerate(dict.fromkeys(text for p in pairs for text in (p.premise, p.hypothesis)))
        }

    def documents(self) -> Sequence[Document]:
        """Returns all sentences, in the order in which ``score`` expects their embeddings."""
        return [Document("", text) for text in self._texts]

    def score(self, embeddings: Embeddings) -> list[Score]:
        """Returns ``accuracy`` of Same, Cross and All, and of each pair of languages.

        Raises:
          InputError: if there is nothing to train on or to choose with, or if sparse vectors are too wide.
        """
        known, dev, test = self._parts
        if not known or not dev:
            raise InputError("no English pairs to train on", path=self.path, field="language", remedy=_REMEDY)
        head = train(self.head, self._of(embeddings, known), self._of(embeddings, dev), len(CLASSES), self.seed)
        names = list(dict.fromkeys(pair.language for pair in test))
        by_id = {name: {pair.pair_id: pair for pair in test if pair.language == name} for name in names}
        cells = {}
        for one in names:
            for two in names:
                pairs = [
                    premise._replace(hypothesis=by_id[two][number].hypothesis)
                    for number, premise in by_id[one].items()
                    if number in by_id[two]
                ]
                if pairs:
                    cells[one, two] = self._cell(head, embeddings, pairs, f"{one}{ARROW}{two}")
        groups = {
            "Same": [cell.value for (one, two), cell in cells.items() if one == two],
            "Cross": [cell.value for (one, two), cell in cells.items() if one != two],
            "All": [cell.value for cell in cells.values()],
        }
        means = [Score("accuracy", float(np.mean(of)), group, len(of)) for group, of in groups.items() if of]
        return means + list(cells.values())

    def _cell(self, head: Trained, embeddings: Embeddings, pairs: list[_Pair], part: str) -> Score:
        features, labels = self._of(embeddings, pairs)
        return Score("accuracy", float(np.mean(head.predict(features) == labels)), part, len(pairs))

    def _of(self, embeddings: Embeddings, pairs: Sequence[_Pair]) -> tuple[Features, Classes]:
        """Features float32 ``[N, 4 D]`` and classes int32 ``[N]``.

        Raises:
          InputError: if they would take too much memory.
        """
        if len(pairs) * embeddings.shape[1] * 16 > _MOST_BYTES:
            raise InputError(
                f"{len(pairs)} pairs of vectors of {embeddings.shape[1]} numbers do not fit into memory",
                field="--encoder",
                remedy="use an encoder with fewer dimensions, such as lsa instead of tfidf",
            )
        one, two = (
            _dense(embeddings[[self._texts[text] for text in texts]])
            for texts in ([pair.premise for pair in pairs], [pair.hypothesis for pair in pairs])
        )
        features = np.concatenate([one, two, np.abs(one - two), one * two], axis=1)
        return features, np.array([pair.label for pair in pairs], np.int32)


def _dense(rows: Embeddings) -> Features:
    from scipy import sparse

    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float32)


def _read(path: str, columns: Mapping[str, str]) -> list[_Pair]:
    """Returns the pairs of a file with a header.

    Raises:
      InputError: if it cannot be read or lacks a column, or for another label.
    """
    rows = list(read_rows(path, _REMEDY, delimiter="\t", quoted=False))
    header = rows[0][1] if rows else []
    if missing := sorted(set(columns.values()) - set(header)):
        raise InputError(f"the header lacks {', '.join(missing)}", path=path, remedy=_REMEDY)
    places = {name: header.index(column) for name, column in columns.items()}
    found = []
    for number, (where, fields) in enumerate(rows[1:]):
        if len(fields) <= max(places.values()):
            raise InputError(f"got {len(fields)} columns, expected {len(header)}", path=where, remedy=_REMEDY)
        values = {name: fields[place].strip() for name, place in places.items()}
        label = "contradiction" if values["label"] == "contradictory" else values["label"]
        if label not in CLASSES:
            raise InputError(f"got {label!r}", path=where, field=columns["label"], remedy=f"use {', '.join(CLASSES)}")
        known = values.get("language", _SOURCE), values.get("pair_id", str(number))
        found.append(_Pair(values["premise"], values["hypothesis"], CLASSES.index(label), *known))
    return found
