"""Long texts without training (NewsEmbed, Table 6): the events of Multi-News and of Stream-News.

``multinews`` (Fabbri et al. 2019). A summary defines a cluster of its source documents. Only summaries with 8 or more
documents count, those of all parts in the folder together: the paper has 380 clusters of 3,216 documents. ``ARI`` and
``V`` are those of k-means over the documents, with the known number of clusters. ``mAP@8`` has the summaries as queries
and the documents as candidates (``retrieval.py``).

A part is two files with a line for each summary: ``train.tgt``, and the documents of each in ``train.src`` or
``train.src.cleaned``, between ``|||||`` or ``story_separator_special_tag``. A document that is empty, or that its
summary has twice, is left out.

``streamnews`` (Miranda et al. 2018). ``ARI`` and ``V`` of k-means over the articles of events of 50 or more, of the
files ``dataset.dev.json`` and ``dataset.test.json`` together, in English, German and Spanish, and by language. An event
is one of the set's clusters, whose articles have one language; the paper has 97 events of 11,757 articles.
"""

import collections
import dataclasses
import functools
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError, refusing
from ..benchmark import ALL, Benchmark, Score, Suite, here, seeds_option
from ..encoders import Document, Embeddings, cosine_similarities
from ..files import folder_entries, read_text
from .classification import cluster_scores, cluster_scores_by_language
from .retrieval import ranking_scores

_FEWEST: Final = 8  # documents of a summary
_LARGE: Final = 50  # articles of an event
_LANGUAGES: Final = {"eng": "en", "deu": "de", "spa": "es"}
_SEPARATOR: Final = re.compile(r"\|{5}|story_separator_special_tag")
_SOURCE: Final = re.compile(r"(.+)\.src(?:\.cleaned)?$")
_STREAM: Final = re.compile(r"dataset\.(?:dev|test)\.json(?:\.gz)?$")
_MULTI_REMEDY: Final = (
    "get it from https://github.com/Alex-Fabbri/Multi-News; expected: train.src (or train.src.cleaned) and train.tgt, "
    "val and test alike, a line for each summary, documents between ||||| or story_separator_special_tag"
)
_STREAM_REMEDY: Final = (
    "get it from https://github.com/Priberam/news-clustering; expected: dataset.dev.json and dataset.test.json, each a "
    "JSON array of objects with id, lang, title, text and cluster"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MultiNews(Benchmark):
    """Clusters and summaries of Multi-News."""

    seeds: int = seeds_option()

    def _facts(self) -> dict[str, Any]:
        return {"suite": "multinews", "documents of a summary": f">= {_FEWEST}", "seeds": list(range(self.seeds))}

    @functools.cached_property
    def _clusters(self) -> list[tuple[Document, list[Document]]]:
        """Each summary and its documents."""
        found = []
        for summary, sources in _summaries(self.path):
            kept = [one for one in sources if self.keeps(one)]
            if len(kept) >= _FEWEST and self.keeps(summary):
                found.append((summary, kept))
        if len(found) < 2:
            problem = f"{len(found)} summaries with {_FEWEST} or more documents, expected two or more"
            raise InputError(problem, path=self.path, remedy=_MULTI_REMEDY)
        return found

    def _texts(self) -> Sequence[Document]:
        return [one for one, _ in self._clusters] + [one for _, documents in self._clusters for one in documents]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        count = len(self._clusters)
        labels = np.repeat(np.arange(count), [len(documents) for _, documents in self._clusters])
        relevant = labels == np.arange(count)[:, None]
        cosines = cosine_similarities(embeddings[:count], embeddings[count:])
        precisions = ranking_scores(cosines, relevant, np.ones_like(relevant), _FEWEST)[f"mAP@{_FEWEST}"]
        retrieval = Score(f"mAP@{_FEWEST}", float(precisions.mean()), count=count)
        return [*cluster_scores(ALL, embeddings[count:], labels, self.seeds), retrieval]


def _summaries(folder: str) -> Iterator[tuple[Document, list[Document]]]:
    parts = {found[1]: name for name in folder_entries(folder, _MULTI_REMEDY) if (found := _SOURCE.match(name))}
    if not parts:
        raise InputError("no file with the ending .src", path=folder, remedy=_MULTI_REMEDY)
    for part, name in sorted(parts.items()):
        paths = [os.path.join(folder, one) for one in (name, f"{part}.tgt")]
        sources, summaries = (read_text(path, _MULTI_REMEDY).removesuffix("\n").split("\n") for path in paths)
        if len(sources) != len(summaries):
            problem = f"{len(summaries)} summaries, but {name} has {len(sources)} lines"
            raise InputError(problem, path=paths[1], remedy=_MULTI_REMEDY)
        for line, (source, summary) in enumerate(zip(sources, summaries, strict=True), 1):
            texts = dict.fromkeys(map(_text, _SEPARATOR.split(source)))
            documents = [Document("", text) for text in texts if text]
            if len(documents) >= _FEWEST and not summary.strip():
                raise InputError("an empty summary", path=f"{paths[1]}:{line}", remedy=_MULTI_REMEDY)
            yield Document("", _text(summary), is_query=True), documents


def _text(raw: str) -> str:
    return raw.replace("NEWLINE_CHAR", "\n").strip()


@dataclasses.dataclass(frozen=True, kw_only=True)
class StreamNews(Benchmark):
    """Events of Stream-News."""

    seeds: int = seeds_option()

    def _facts(self) -> dict[str, Any]:
        return {"suite": "streamnews", "articles of an event": f">= {_LARGE}", "seeds": list(range(self.seeds))}

    @functools.cached_property
    def _rows(self) -> list[tuple[str, str, Document]]:
        """The language, the event and the text of each article."""
        names = [name for name in folder_entries(self.path, _STREAM_REMEDY) if _STREAM.match(name)]
        rows = [row for name in names for row in _articles(os.path.join(self.path, name)) if self.keeps(row[2])]
        sizes = collections.Counter(event for _, event, _ in rows)
        large = [row for row in rows if sizes[row[1]] >= _LARGE]
        if len({event for _, event, _ in large}) < 2:
            problem = f"fewer than two events of {_LARGE} or more articles"
            raise InputError(problem, path=self.path, field="cluster", remedy=_STREAM_REMEDY)
        return large

    def _texts(self) -> Sequence[Document]:
        return [document for *_, document in self._rows]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        languages, events, _ = zip(*self._rows, strict=True)
        return cluster_scores_by_language(languages, embeddings, np.array(events), self.seeds)


def _articles(path: str) -> Iterator[tuple[str, str, Document]]:
    text = read_text(path, _STREAM_REMEDY)
    with refusing("not JSON:", ValueError, path=path, remedy=_STREAM_REMEDY):
        rows = json.loads(text)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("expected a JSON array of objects", path=path, remedy=_STREAM_REMEDY)
    for number, row in enumerate(rows):
        for field in ("lang", "title", "text", "cluster"):
            if not isinstance(row.get(field), (str, int) if field == "cluster" else str):
                problem = f"article {number} (from 0): got {row.get(field)!r}"
                raise InputError(problem, path=path, field=field, remedy=_STREAM_REMEDY)
        document = Document(row["title"].strip(), row["text"].strip())
        if row["lang"] in _LANGUAGES and document.text:
            yield _LANGUAGES[row["lang"]], str(row["cluster"]), document


SUITES: Final = {
    "multinews": Suite(
        MultiNews, find=here(lambda _, names: any(f"{part}.tgt" in names for part in ("train", "test")))
    ),
    "streamnews": Suite(StreamNews, find=here(lambda _, names: any(map(_STREAM.match, names)))),
}
