"""Reads benchmark files as they are distributed: opens, decodes and digests them; labelled news collections.

Errors say where to get a file. Every reader of a collection takes the path on the user's disk and returns the documents
of the official training and test parts. The test part is empty for a collection without an official split. Every reader
raises InputError if a file is missing, if a row is broken, if there are fewer than two classes, or if a text is empty.
"""

import collections
import csv
import dataclasses
import functools
import gzip
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError, reading, refusing
from ..formats.digests import file_sha256
from ..formats.jsonl import read_jsonl
from .encoders import Document

AG_NEWS_CLASSES: Final = ("World", "Sports", "Business", "Sci/Tech")


def read_raw(path: str, remedy: str) -> bytes:
    """Reads a file, decompressed if its name ends in ``.gz``; the ``remedy`` says where to get it and its layout."""
    opener = gzip.open if path.endswith(".gz") else open
    with reading(path, remedy, OSError, EOFError), opener(path, "rb") as file:
        content: bytes = file.read()
    return content


def read_text(path: str, remedy: str, encoding: str = "utf-8-sig") -> str:
    """Returns the whole file as text."""
    raw = read_raw(path, remedy)
    with refusing(f"not {encoding}:", UnicodeDecodeError, path=path, remedy=f"{remedy}, in {encoding}"):
        return raw.decode(encoding)


def read_rows(
    path: str, remedy: str, *, delimiter: str = "\t", quoted: bool = True, columns: int = 0
) -> Iterator[tuple[str, list[str]]]:
    """Yields ("path:line", fields) of each row of a table that is not blank; the line is the last one of the row.

    Args:
      path: the file, UTF-8.
      remedy: for a file that cannot be read.
      delimiter: between fields.
      quoted: whether ``"`` quotes fields, which may then contain line breaks; otherwise it is text.
      columns: the least number of fields of a row.
    """
    csv.field_size_limit(2**31 - 1)  # articles are longer than the default of 128 KiB
    lines = read_text(path, remedy).replace("\r\n", "\n").replace("\0", "").split("\n")
    reader = csv.reader(
        (f"{line}\n" for line in lines), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    )
    for row in reader:
        fields = [field.rstrip("\n") for field in row]
        if any(field.strip() for field in fields):
            where = f"{path}:{reader.line_num}"
            if len(fields) < columns:
                raise InputError(f"got {len(fields)} columns, expected at least {columns}", path=where, remedy=remedy)
            yield where, fields


def read_texts(
    path: str, fields: Sequence[str], remedy: str, *, may_be_empty: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields ("path:line", row) of each line of a JSONL file, in which some fields are strings.

    Args:
      path: the file.
      fields: those that each row must have.
      remedy: for a row without one.
      may_be_empty: those of the fields that need no text.
    """
    for where, row in read_jsonl(path, remedy=remedy):
        for field in fields:
            if not isinstance(row.get(field), str) or not (row[field].strip() or field in may_be_empty):
                raise InputError(f"got {row.get(field)!r}, expected a string", path=where, field=field, remedy=remedy)
        yield where, row


def folder_entries(path: str, remedy: str) -> list[str]:
    """Returns the names in a folder, sorted, without hidden ones."""
    with reading(path, remedy, OSError):
        return sorted(name for name in os.listdir(path) if not name.startswith("."))


def digest(path: str) -> str:
    """Returns the SHA-256 of a file, or of the relative names and contents of all files in a folder, as hex digits."""
    if not os.path.isdir(path):
        return file_sha256(path)
    total = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for inner in (os.path.join(folder, name) for name in sorted(names)):
            name = os.path.relpath(inner, path).encode("utf-8", "surrogateescape")
            total.update(name + b"\0" + digest(inner).encode())
    return total.hexdigest()


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


def remedy_of(kind: str) -> str:
    """Where to get a collection, by its key in `FORMATS`, and its layout."""
    return f"get it from {FORMATS[kind].source}; expected: {FORMATS[kind].layout}"


def _checked(documents: Sequence[Labelled], path: str, kind: str) -> tuple[Labelled, ...]:
    if not documents:
        raise InputError("no documents found", path=path, remedy=remedy_of(kind))
    if len({row.label for row in documents}) < 2:
        raise InputError(f"only one class: {documents[0].label!r}", path=path, field="label", remedy=remedy_of(kind))
    if empty := [str(number) for number, row in enumerate(documents) if not row.document.text]:
        problem = f"{len(empty)} of {len(documents)} texts are empty (0-based {', '.join(empty[:5])})"
        raise InputError(problem, path=path, remedy="remove them")
    return tuple(documents)


def _labelled(label: str, title: str, body: str) -> Labelled:
    return Labelled(Document(title.strip(), body.strip()), label.strip())


def read_bbc(path: str) -> Split:
    """Reads BBC News (Greene and Cunningham 2006): a folder for each class, a file for each story.

    The first line is the title. Files are UTF-8, except for a few in Windows-1252: files that are not valid UTF-8 are
    read as such.
    """
    remedy = remedy_of("bbc")
    documents = []
    for label in folder_entries(path, remedy):
        folder = os.path.join(path, label)
        for name in folder_entries(folder, remedy) if os.path.isdir(folder) else ():
            if name.endswith(".txt"):
                raw = read_raw(os.path.join(folder, name), remedy)
                try:
                    text = raw.decode("utf-8-sig")
                except UnicodeDecodeError:
                    text = raw.decode("cp1252", "replace")
                title, _, body = text.strip().partition("\n")
                documents.append(_labelled(label, title, body))
    return Split(_checked(documents, path, "bbc"))


def read_newsgroups(path: str, *, stripped: bool = False) -> Split:
    """Reads 20 Newsgroups "bydate": ``20news-bydate-train/GROUP/NUMBER`` and ``20news-bydate-test/…``.

    Messages are Latin-1. ``stripped`` removes headers, footers and quotes as scikit-learn's ``remove=`` does. Empty
    messages are left out.
    """
    from sklearn.datasets import _twenty_newsgroups as sklearn

    remedy = remedy_of("newsgroups")
    strips = (sklearn.strip_newsgroup_header, sklearn.strip_newsgroup_quoting, sklearn.strip_newsgroup_footer)
    parts = []
    for part in ("train", "test"):
        root = os.path.join(path, f"20news-bydate-{part}")
        documents = []
        for group in folder_entries(root, remedy):
            folder = os.path.join(root, group)
            for name in folder_entries(folder, remedy):
                text = read_text(os.path.join(folder, name), remedy, "latin-1")
                for strip in strips if stripped else ():
                    text = strip(text)
                if text.strip():
                    documents.append(_labelled(group, "", text))
        parts.append(_checked(documents, root, "newsgroups"))
    return Split(*parts)


def read_ag_news(path: str) -> Split:
    """Reads AG News (Zhang, Zhao and LeCun 2015): ``train.csv`` and ``test.csv``.

    Rows are ``"class","title","description"`` with classes 1 to 4. Files with two columns, ``class,text`` with classes
    from 0, as in DeepTextClustering's subset, are read too. Without ``train.csv`` the documents of ``test.csv`` are a
    collection without a split.
    """

    def rows(file: str) -> tuple[Labelled, ...]:
        documents = []
        for where, fields in read_rows(file, remedy_of("agnews"), delimiter=",", columns=2):
            first = 1 if len(fields) >= 3 else 0
            number = int(fields[0]) - first if fields[0].strip().isdigit() else -1
            if not 0 <= number < len(AG_NEWS_CLASSES):
                raise InputError(f"got the class {fields[0]!r}", path=where, remedy=remedy_of("agnews"))
            title, body = (fields[1], " ".join(fields[2:])) if first else ("", fields[1])
            documents.append(_labelled(AG_NEWS_CLASSES[number], title, body.replace("\\", " ")))
        return _checked(documents, file, "agnews")

    test, train = rows(os.path.join(path, "test.csv")), os.path.join(path, "train.csv")
    return Split(rows(train), test) if os.path.exists(train) else Split(test)


def read_mind(path: str) -> Split:
    """Reads MIND (Wu et al. 2020): ``train/news.tsv`` and ``dev/news.tsv``.

    Columns: id, category, subcategory, title, abstract, url, entities. The class is the category. NewsEmbed's counts,
    51,421 and 12,856 for MIND-small, are 80 and 20 % of all news. So the training part is 80 % of each category, of
    both files together, without repeated texts.
    """
    rows: dict[Document, Labelled] = {}
    for part in ("train", "dev"):
        names = (part, f"MINDlarge_{part}", f"MINDsmall_{part}")
        name = next((name for name in names if os.path.isdir(os.path.join(path, name))), part)
        for _, fields in read_rows(os.path.join(path, name, "news.tsv"), remedy_of("mind"), quoted=False, columns=5):
            row = _labelled(fields[1], fields[3], fields[4])
            rows.setdefault(row.document, row)
    news = _checked([*rows.values()], path, "mind")
    chosen = {*sample_per_class([row.label for row in news], 0.8, 0)}
    return Split(*(tuple(row for n, row in enumerate(news) if (n in chosen) == is_train) for is_train in (True, False)))


def read_masakhanews(path: str) -> Split:
    """Reads one language of MasakhaNEWS (Adelani et al. 2023): ``train.tsv`` and ``test.tsv``.

    Columns: category, headline, text, url. In a folder without ``train.tsv`` the training part is ``dev.tsv``.
    """
    train = next((name for name in ("train.tsv", "dev.tsv") if os.path.exists(os.path.join(path, name))), "train.tsv")
    parts = []
    for file in (os.path.join(path, name) for name in (train, "test.tsv")):
        rows = [fields for _, fields in read_rows(file, remedy_of("masakhanews"), columns=3)]
        if not rows or rows[0][:3] != ["category", "headline", "text"]:
            raise InputError("wrong header line", path=file, remedy=remedy_of("masakhanews"))
        parts.append(_checked([_labelled(*fields[:3]) for fields in rows[1:]], file, "masakhanews"))
    return Split(*parts)


def read_mldoc(path: str) -> Split:
    """Reads one language of MLDoc (Schwenk and Li 2018): ``LANGUAGE.train.1000`` and ``LANGUAGE.test``.

    Lines are ``label<TAB>text``. ``path`` is ``FOLDER/LANGUAGE``, as in ``mldoc/german``.
    """
    return Split(read_mldoc_part(path, "train.1000"), read_mldoc_part(path, "test"))


def read_mldoc_part(path: str, part: str) -> tuple[Labelled, ...]:
    """Reads one part of one language of MLDoc, such as ``FOLDER/german`` and ``dev``; see ``read_mldoc``."""
    file = f"{path}.{part}"
    rows = read_rows(file, remedy_of("mldoc"), quoted=False, columns=2)
    return _checked([_labelled(label, "", "\t".join(text)) for _, (label, *text) in rows], file, "mldoc")


def read_jsonl_labels(path: str) -> Split:
    """Reads JSONL with ``title``, ``body``, ``label`` and, for an official split, ``split`` ("train" or "test")."""
    parts: dict[str, list[Labelled]] = {"train": [], "test": []}
    remedy = remedy_of("labels")
    for where, row in read_texts(path, ("title", "body", "label"), remedy, may_be_empty=("title", "body", "label")):
        part = row.get("split", "train")
        if part not in parts:
            raise InputError(f"got {part!r}, expected train or test", path=where, field="split", remedy=remedy)
        parts[part].append(Labelled(Document(row["title"], row["body"]), row["label"]))
    train = _checked(parts["train"], path, "labels")
    return Split(train, _checked(parts["test"], path, "labels") if parts["test"] else ())


def read_fakenews(path: str) -> Split:
    """Reads FakeNewsCorpus (SimLTE, Table 1): ``news_cleaned_2018_02_13.csv``, 27 GB with columns title, content, type.

    The class is the type; rows without one, or without text, are left out. The texts are held in memory.
    """
    file, remedy = os.path.join(path, "news_cleaned_2018_02_13.csv"), remedy_of("fakenews")
    csv.field_size_limit(2**31 - 1)
    documents = []
    with reading(file, remedy, OSError, csv.Error), open(file, encoding="utf-8", newline="") as source:
        rows = csv.DictReader(line.replace("\0", "") for line in source)
        if missing := {"title", "content", "type"}.difference(rows.fieldnames or ()):
            raise InputError("the header lacks it", path=f"{file}:1", field=min(missing), remedy=remedy)
        for row in rows:
            one = _labelled(row["type"] or "", row["title"] or "", row["content"] or "")
            if one.label and one.document.text:
                documents.append(one)
    return Split(_checked(documents, path, "fakenews"))


def read_arxiv(path: str) -> Split:
    """Reads arXiv's metadata (SimLTE, Table 1): ``arxiv-metadata-oai-snapshot.json``, a JSON object a line.

    The class is the archive of the first category ("cs" of "cs.CL stat.ML"), of which there are 38.
    """
    file, remedy = os.path.join(path, "arxiv-metadata-oai-snapshot.json"), remedy_of("arxiv")
    folder_entries(path, remedy)
    documents = []
    for _, row in read_texts(file, ("title", "abstract", "categories"), remedy):
        documents.append(_labelled(row["categories"].split()[0].partition(".")[0], row["title"], row["abstract"]))
    return Split(_checked(documents, path, "arxiv"))


def read_nyt(path: str) -> Split:
    """Reads NYT-Small as X-Class distributes it (SimLTE, Table 1): 13,081 articles of 5 classes.

    ``dataset.txt`` has an article a line, ``labels.txt`` the number of its class, from 0, ``classes.txt`` their names.
    """
    remedy = remedy_of("nyt")
    files = {name: os.path.join(path, f"{name}.txt") for name in ("dataset", "labels", "classes")}
    texts, labels, names = (read_text(file, remedy).removesuffix("\n").split("\n") for file in files.values())
    if len(texts) != len(labels):
        raise InputError(f"{len(labels)} labels of {len(texts)} texts", path=files["labels"], remedy=remedy)
    known = {str(number): name for number, name in enumerate(names)}
    for line, label in enumerate(labels, 1):
        if label.strip() not in known:
            problem = f"got {label!r}, expected 0 to {len(names) - 1}"
            raise InputError(problem, path=f"{files['labels']}:{line}", remedy=remedy)
    rows = [_labelled(known[label.strip()], "", text) for label, text in zip(labels, texts, strict=True)]
    return Split(_checked(rows, path, "nyt"))


_NEWSGROUPS: Final = (
    "20news-bydate-train/GROUP/NUMBER and 20news-bydate-test/GROUP/NUMBER",
    "http://qwone.com/~jason/20Newsgroups",
)
FORMATS: Final[Mapping[str, Format]] = {
    "bbc": Format(
        read_bbc,
        "one folder for each class, NUMBER.txt in each, first line = title",
        "http://mlg.ucd.ie/datasets/bbc.html (full text)",
    ),
    "newsgroups": Format(read_newsgroups, *_NEWSGROUPS),
    "newsgroups_stripped": Format(functools.partial(read_newsgroups, stripped=True), *_NEWSGROUPS),
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
    "fakenews": Format(
        read_fakenews,
        "news_cleaned_2018_02_13.csv with the columns title, content and type",
        "https://github.com/several27/FakeNewsCorpus",
    ),
    "arxiv": Format(
        read_arxiv,
        "arxiv-metadata-oai-snapshot.json, lines with title, abstract and categories",
        "https://www.kaggle.com/datasets/Cornell-University/arxiv",
    ),
    "nyt": Format(
        read_nyt, "dataset.txt, labels.txt and classes.txt", "https://github.com/ZihanWangKi/XClass (NYT-Small)"
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


def sample_per_class(labels: Iterable[str], share: float, seed: int) -> list[int]:
    """Returns the 0-based numbers of a random ``share`` of each class (at least one document), in ascending order."""
    members: dict[str, list[int]] = collections.defaultdict(list)
    for number, label in enumerate(labels):
        members[label].append(number)
    random = np.random.default_rng(seed)
    return sorted(
        int(number)
        for label in sorted(members)
        for number in random.choice(members[label], max(1, round(share * len(members[label]))), replace=False)
    )
