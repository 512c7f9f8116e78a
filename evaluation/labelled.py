"""Labelled news collections in the formats in which they are distributed.

Every reader takes the path on the user's disk and returns the documents of the official training and test parts. The
test part is empty for a collection without an official split. Every reader raises InputError if a file is missing, if a
row is broken, if there are fewer than two classes, or if a text is empty.
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
    """The official parts of a collection; ``test`` is empty if there is no official split."""

    train: tuple[Labelled, ...]
    test: tuple[Labelled, ...] = ()

    @property
    def all(self) -> tuple[Labelled, ...]:
        """The documents of both parts, training first."""
        return self.train + self.test

    def without(self, excluded: frozenset[Document]) -> "Split":
        """Returns the split without the ``excluded`` documents."""
        return Split(*(tuple(row for row in part if row.document not in excluded) for part in (self.train, self.test)))


@dataclasses.dataclass(frozen=True, slots=True)
class Format:
    """One distributed format.

    Attributes:
      read: reads a folder (or file).
      layout: the contents of the folder, for errors and help.
      source: where to get the collection.
      train_share: the share of the training part that the published protocol trains on.
    """

    read: Callable[[str], Split]
    layout: str
    source: str
    train_share: float = 1.0


def read_bbc(path: str) -> Split:
    """Reads BBC News (Greene and Cunningham 2006): a folder for each class, a file for each story.

    The first line is the title. Files are UTF-8, except for a few in Windows-1252: files that are not valid UTF-8 are
    read as such.
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
    """Reads 20 Newsgroups "bydate": ``20news-bydate-train/GROUP/NUMBER`` and ``20news-bydate-test/…``.

    Messages are Latin-1. ``stripped`` removes headers, footers and quotes as scikit-learn's ``remove=`` does. Empty
    messages are left out.
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
    """Reads AG News (Zhang, Zhao and LeCun 2015): ``train.csv`` and ``test.csv``.

    Rows are ``"class","title","description"`` with classes 1 to 4. Files with two columns, ``class,text`` with classes
    from 0, as in DeepTextClustering's subset, are read too. Without ``train.csv`` the documents of ``test.csv`` are a
    collection without a split.
    """
    test = _checked(_ag_rows(os.path.join(path, "test.csv")), os.path.join(path, "test.csv"), "agnews")
    train = os.path.join(path, "train.csv")
    return Split(_checked(_ag_rows(train), train, "agnews"), test) if os.path.exists(train) else Split(test)


def read_mind(path: str) -> Split:
    """Reads MIND (Wu et al. 2020): ``train/news.tsv`` and ``dev/news.tsv``.

    Columns: id, category, subcategory, title, abstract, url, entities. The class is the category. The test part is the
    development part without the news of the training part.
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
    """Reads one language of MasakhaNEWS (Adelani et al. 2023): ``train.tsv`` and ``test.tsv``.

    Columns: category, headline, text, url. In a folder without ``train.tsv`` the training part is ``dev.tsv``.

    Raises:
      InputError: on a missing file, a wrong header, a row with too few columns, fewer than two classes or an empty
        text.
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
    """Reads one language of MLDoc (Schwenk and Li 2018): ``LANGUAGE.train.1000`` and ``LANGUAGE.test``.

    Lines are ``label<TAB>text``. ``path`` is ``FOLDER/LANGUAGE``, as in ``mldoc/german``.
    """
    return Split(read_mldoc_part(path, "train.1000"), read_mldoc_part(path, "test"))


def read_mldoc_part(path: str, part: str) -> tuple[Labelled, ...]:
    """Reads one part of one language of MLDoc, such as ``FOLDER/german`` and ``dev``; see ``read_mldoc``.

    Raises:
      InputError: on a missing file, a broken line, an empty text or a single class.
    """
    file = f"{path}.{part}"
    documents = []
    for where, fields in read_rows(file, _remedy("mldoc"), delimiter="\t", quoted=False):
        _need_columns(fields, 2, where, "mldoc")
        documents.append(Labelled(Document("", "\t".join(fields[1:]).strip()), fields[0].strip()))
    return _checked(documents, file, "mldoc")


def read_jsonl_labels(path: str) -> Split:
    """Reads JSONL with ``title``, ``body``, ``label`` and, for an official split, ``split`` ("train" or "test").

    Raises:
      InputError: on a missing file or field, another value of ``split``, fewer than two classes or an empty text.
    """
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
        "one folder for each class, NUMBER.txt in each, first line = title",
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
        "LANGUAGE.train.1000, LANGUAGE.test and, for mldoc_laser, LANGUAGE.dev, lines label<TAB>text",
        "https://github.com/facebookresearch/MLDoc",
    ),
    "labels": Format(
        read_jsonl_labels, "JSONL with title, body, label and, for an official split, split: train or test", "your own"
    ),
}


def _remedy(kind: str) -> str:
    form = FORMATS[kind]
    return f"get it from {form.source}; expected: {form.layout}"


def _checked(documents: Sequence[Labelled], path: str, kind: str) -> tuple[Labelled, ...]:
    if not documents:
        raise InputError("no documents found", path=path, remedy=_remedy(kind))
    if len({row.label for row in documents}) < 2:
        raise InputError(f"only one class: {documents[0].label!r}", path=path, field="label", remedy=_remedy(kind))
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
    """Returns the 0-based numbers of a random ``share`` of each class (at least one document), in ascending order."""
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
