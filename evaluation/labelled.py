"""Labelled news collections in the formats they are distributed in.

Every reader takes the folder a user has on disk and returns the documents of the official training and test parts; a collection without
an official split returns an empty test part.
"""

import collections
import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ..errors import InputError
from ..formats.jsonl import read_jsonl
from .encoders import Document
from .files import folder_entries, opened, read_rows, read_text

AG_NEWS_CLASSES: Final = ("World", "Sports", "Business", "Sci/Tech")


@dataclasses.dataclass(frozen=True, slots=True)
class Labelled:
    """A document and its class."""

    document: Document
    label: str


@dataclasses.dataclass(frozen=True, slots=True)
class Split:
    """The official parts of a collection; ``test`` is empty where there is no official split."""

    train: tuple[Labelled, ...]
    test: tuple[Labelled, ...] = ()

    @property
    def all(self) -> tuple[Labelled, ...]:
        return self.train + self.test


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """One distributed format.

    Attributes:
      read: from the folder (or file) to the documents.
      layout: what the folder holds, for errors and help.
      source: where to get it.
      train_share: the share of the training part that the published protocol trains on.
    """

    read: Callable[[str], Split]
    layout: str
    source: str
    train_share: float = 1.0


def read_bbc(path: str) -> Split:
    """BBC News (Greene and Cunningham 2006): a folder a class, a file a story, its first line the title.

    Files are UTF-8, but for a few in Windows-1252, which are told by not being UTF-8.
    """
    classes = [name for name in folder_entries(path, _remedy("bbc")) if os.path.isdir(os.path.join(path, name))]
    documents = []
    for label in classes:
        folder = os.path.join(path, label)
        for name in folder_entries(folder, _remedy("bbc")):
            if name.endswith(".txt"):
                title, _, body = _story(os.path.join(folder, name)).strip().partition("\n")
                documents.append(Labelled(Document(title.strip(), body.strip()), label))
    return Split(_checked(documents, path, "bbc"))


def read_newsgroups(path: str, *, stripped: bool = False) -> Split:
    """20 Newsgroups "bydate": ``20news-bydate-train/GROUP/NUMBER`` and ``20news-bydate-test/…``, Latin-1 messages.

    ``stripped`` takes headers, footers and quotes away as scikit-learn's ``remove=`` does; messages that are then empty are left out.
    """
    parts = []
    for part in ("train", "test"):
        root = os.path.join(path, f"20news-bydate-{part}")
        documents = []
        for group in folder_entries(root, _remedy("newsgroups")):
            folder = os.path.join(root, group)
            for name in folder_entries(folder, _remedy("newsgroups")):
                text = read_text(os.path.join(folder, name), _remedy("newsgroups"), "latin-1")
                text = _strip(text) if stripped else text
                if text.strip():
                    documents.append(Labelled(Document("", text.strip()), group))
        parts.append(_checked(documents, root, "newsgroups"))
    return Split(*parts)


def read_ag_news(path: str) -> Split:
    """AG News (Zhang, Zhao and LeCun 2015): ``train.csv`` and ``test.csv`` with ``"class","title","description"``, classes 1 to 4.

    Two columns, ``class,text`` with classes from 0, as in DeepTextClustering's subset, are read too. Without ``train.csv`` the documents
    of ``test.csv`` come as a collection without a split.
    """
    test = _checked(_ag_rows(os.path.join(path, "test.csv")), os.path.join(path, "test.csv"), "agnews")
    train = os.path.join(path, "train.csv")
    return Split(_checked(_ag_rows(train), train, "agnews"), test) if os.path.exists(train) else Split(test)


def read_mind(path: str) -> Split:
    """MIND (Wu et al. 2020): ``train/news.tsv`` and ``dev/news.tsv`` with id, category, subcategory, title, abstract, url, entities.

    The class is the category. News of the training part are taken out of the development part, which is tested on.
    """
    parts: list[dict[str, Labelled]] = []
    for options in (("train", "MINDlarge_train", "MINDsmall_train"), ("dev", "MINDlarge_dev", "MINDsmall_dev")):
        name = next((name for name in options if os.path.isdir(os.path.join(path, name))), options[0])
        file = os.path.join(path, name, "news.tsv")
        rows: dict[str, Labelled] = {}
        for where, fields in read_rows(file, _remedy("mind"), delimiter="\t", quoted=False):
            _need_columns(fields, 5, where, "mind")
            rows[fields[0]] = Labelled(Document(fields[3].strip(), fields[4].strip()), fields[1].strip())
        parts.append(rows)
    train, dev = parts
    new = [row for number, row in dev.items() if number not in train]
    return Split(_checked(list(train.values()), path, "mind"), _checked(new, path, "mind"))


def read_masakhanews(path: str) -> Split:
    """One language of MasakhaNEWS (Adelani et al. 2023): ``train.tsv`` and ``test.tsv``, columns category, headline, text, url.

    A folder without ``train.tsv`` trains on ``dev.tsv``.
    """
    train = next((name for name in ("train.tsv", "dev.tsv") if os.path.exists(os.path.join(path, name))), "train.tsv")
    parts = []
    for name in (train, "test.tsv"):
        file = os.path.join(path, name)
        rows = list(read_rows(file, _remedy("masakhanews"), delimiter="\t", quoted=True))
        if not rows or rows[0][1][:3] != ["category", "headline", "text"]:
            raise InputError("wrong header line", path=file, remedy=_remedy("masakhanews"))
        documents = []
        for where, fields in rows[1:]:
            _need_columns(fields, 3, where, "masakhanews")
            documents.append(Labelled(Document(fields[1].strip(), fields[2].strip()), fields[0].strip()))
        parts.append(_checked(documents, file, "masakhanews"))
    return Split(*parts)


def read_mldoc(path: str) -> Split:
    """One language of MLDoc (Schwenk and Li 2018): ``LANGUAGE.train.1000`` and ``LANGUAGE.test``, lines ``label<TAB>text``.

    ``path`` is ``FOLDER/LANGUAGE``, as in ``mldoc/german``.
    """
    parts = []
    for suffix in ("train.1000", "test"):
        file = f"{path}.{suffix}"
        documents = []
        for where, fields in read_rows(file, _remedy("mldoc"), delimiter="\t", quoted=False):
            _need_columns(fields, 2, where, "mldoc")
            documents.append(Labelled(Document("", "\t".join(fields[1:]).strip()), fields[0].strip()))
        parts.append(_checked(documents, file, "mldoc"))
    return Split(*parts)


def read_jsonl_labels(path: str) -> Split:
    """One JSON object a line: ``title``, ``body``, ``label`` and, for an official split, ``split`` ("train" or "test")."""
    parts: dict[str, list[Labelled]] = {"train": [], "test": []}
    for where, row in read_jsonl(path):
        for field in ("title", "body", "label"):
            if not isinstance(row.get(field), str):
                raise InputError("expected a string", path=where, field=field, remedy=_remedy("labels"))
        part = row.get("split", "train")
        if part not in parts:
            raise InputError(
                f"got {part!r}, expected train or test", path=where, field="split", remedy=_remedy("labels")
            )
        parts[part].append(Labelled(Document(row["title"], row["body"]), row["label"]))
    train = _checked(parts["train"], path, "labels")
    return Split(train, _checked(parts["test"], path, "labels") if parts["test"] else ())


FORMATS: Final[Mapping[str, Format]] = {
    "bbc": Format(
        read_bbc,
        "one folder a class, NUMBER.txt in each, first line = title",
        "http://mlg.ucd.ie/datasets/bbc.html (full text)",
    ),
    "newsgroups": Format(
        read_newsgroups,
        "20news-bydate-train/GROUP/NUMBER and 20news-bydate-test/GROUP/NUMBER",
        "http://qwone.com/~jason/20Newsgroups",
    ),
    "newsgroups_stripped": Format(
        functools.partial(read_newsgroups, stripped=True),
        "20news-bydate-train/GROUP/NUMBER and 20news-bydate-test/GROUP/NUMBER",
        "http://qwone.com/~jason/20Newsgroups",
    ),
    "agnews": Format(
        read_ag_news,
        'train.csv and test.csv, lines "class","title","description"',
        "Zhang, Zhao and LeCun 2015 (ag_news_csv.tgz)",
        0.1,
    ),
    "mind": Format(read_mind, "train/news.tsv and dev/news.tsv", "https://msnews.github.io"),
    "masakhanews": Format(
        read_masakhanews,
        "train.tsv (or dev.tsv) and test.tsv with the header category, headline, text, url",
        "https://github.com/masakhane-io/masakhane-news",
    ),
    "mldoc": Format(
        read_mldoc,
        "LANGUAGE.train.1000 and LANGUAGE.test, lines label<TAB>text",
        "https://github.com/facebookresearch/MLDoc",
    ),
    "labels": Format(
        read_jsonl_labels, "JSONL with title, body, label and, where there is one, split: train or test", "your own"
    ),
}


def _remedy(kind: str) -> str:
    form = FORMATS[kind]
    return f"get it from {form.source}; expected: {form.layout}"


def _checked(documents: Sequence[Labelled], path: str, kind: str) -> tuple[Labelled, ...]:
    if not documents:
        raise InputError("no documents found", path=path, remedy=_remedy(kind))
    if len({row.label for row in documents}) < 2:
        raise InputError(f"one class only: {documents[0].label!r}", path=path, field="label", remedy=_remedy(kind))
    empty = [number for number, row in enumerate(documents) if not row.document.text]
    if empty:
        shown = ", ".join(map(str, empty[:5]))
        raise InputError(
            f"{len(empty)} of {len(documents)} texts are empty (0-based {shown})", path=path, remedy="remove them"
        )
    return tuple(documents)


def _need_columns(fields: Sequence[str], columns: int, where: str, kind: str) -> None:
    if len(fields) < columns:
        raise InputError(f"got {len(fields)} columns, expected at least {columns}", path=where, remedy=_remedy(kind))


def _story(path: str) -> str:
    with opened(path, _remedy("bbc")) as file:
        raw = file.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def _ag_rows(path: str) -> list[Labelled]:
    documents = []
    for where, fields in read_rows(path, _remedy("agnews"), delimiter=",", quoted=True):
        _need_columns(fields, 2, where, "agnews")
        first = 1 if len(fields) >= 3 else 0
        number = int(fields[0]) - first if fields[0].strip().isdigit() else -1
        if not 0 <= number < len(AG_NEWS_CLASSES):
            raise InputError(f"got the class {fields[0]!r}", path=where, remedy=_remedy("agnews"))
        title, body = (fields[1], " ".join(fields[2:])) if first else ("", fields[1])
        documents.append(Labelled(Document(title.strip(), body.replace("\\", " ").strip()), AG_NEWS_CLASSES[number]))
    return documents


def _strip(text: str) -> str:
    from sklearn.datasets import _twenty_newsgroups as newsgroups

    return newsgroups.strip_newsgroup_footer(
        newsgroups.strip_newsgroup_quoting(newsgroups.strip_newsgroup_header(text))
    )


def sample_per_class(labels: Iterable[str], share: float, seed: int) -> list[int]:
    """Numbers of a random ``share`` of each class (at least one), in ascending order."""
    import numpy as np

    members: dict[str, list[int]] = collections.defaultdict(list)
    for number, label in enumerate(labels):
        members[label].append(number)
    random = np.random.default_rng(seed)
    return sorted(
        int(number)
        for label in sorted(members)
        for number in random.choice(members[label], max(1, round(share * len(members[label]))), replace=False)
    )
