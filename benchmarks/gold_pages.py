"""Pages with a known truth, and the scores of an extractor on them.

Body: the metric of Scrapinghub's article-extraction-benchmark (`evaluate.py` there): multisets of 4-grams of words,
precision and recall averaged over pages, F1 of the two averages. Authors: pooled precision and recall of names. Dates:
share of pages with the correct day.
"""

import collections
import dataclasses
import datetime
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from newsembed.beam_pipelines.extract.layout import letters_of

_WORD = re.compile(r"\w+")
_SHINGLE = 4
# For these pages newspaper4k's metadata are errors of its own extractor ("Print", "www.facebook.com", other authors).
_NO_AUTHORS = frozenset({"video_article_01", "cleveland.com1", "wired_001", "yna_co_kr"})


@dataclasses.dataclass(frozen=True)
class GoldPage:
    """A page and its truth.

    Attributes:
      name: name of the page.
      url: URL of the page.
      html: bytes of the page.
      body: text of the article.
      optional: paragraphs that an extractor may include or omit (subtitles, editors' notes).
      authors: names of the authors; ``None`` if unknown.
      day: byline date; ``None`` if unknown.
    """

    name: str
    url: str
    html: bytes
    body: str
    optional: tuple[str, ...] = ()
    authors: tuple[str, ...] | None = None
    day: datetime.date | None = None


def read_folder(folder: Path) -> Iterator[GoldPage]:
    """Yields the pages of a folder that `gold_sets.py` wrote: `pages.jsonl` and `html/NAME.html.gz`."""
    with (folder / "pages.jsonl").open() as lines:
        for line in lines:
            row = json.loads(line)
            html = gzip.decompress((folder / "html" / f"{row['name']}.html.gz").read_bytes())
            yield GoldPage(row["name"], row["url"], html, row["body"], tuple(row["optional"]))


def fundus(folder: Path) -> Iterator[GoldPage]:
    """Yields the 80 pages of fundus-evaluation; paragraphs in brackets are optional."""
    for name, truth in json.loads((folder / "ground_truth.json").read_text()).items():
        optional = [text for text in truth["body"] if text.startswith("[") and text.endswith("]")]
        body = "\n".join(text for text in truth["body"] if text not in optional)
        yield GoldPage(
            name,
            truth["url"],
            gzip.decompress((folder / "html" / name).read_bytes()),
            body,
            tuple(text[1:-1] for text in optional),
        )


def newspaper4k(folder: Path) -> Iterator[GoldPage]:
    """Yields the pages of newspaper4k's tests that have a text, with authors and day if its metadata state them."""
    for path in sorted((folder / "txt").glob("*.txt")):
        page = folder / "html" / f"{path.stem}.html"
        if not page.exists() or path.stem == "cnn_test_nlp":  # that text is a test of keywords, not the page's text
            continue
        stated = folder / "metadata" / f"{path.stem}.json"
        truth = json.loads(stated.read_text()) if stated.exists() else {}
        day = _utc_day(truth["publish_date"]) if truth.get("publish_date") else None
        authors = tuple(truth["authors"]) if truth.get("authors") and path.stem not in _NO_AUTHORS else None
        url = truth.get("url") or f"http://{path.stem.replace('_', '-')}.example/story"
        yield GoldPage(path.stem, url, page.read_bytes(), path.read_text(), authors=authors, day=day)


def _utc_day(stamp: str) -> datetime.date:
    """Returns the day in UTC: 05:50 in Tokyo is on the previous day."""
    moment = datetime.datetime.fromisoformat(stamp)
    return moment.astimezone(datetime.UTC).date() if moment.tzinfo else moment.date()


SETS = {"fundus-evaluation": fundus, "newspaper4k": newspaper4k}


@dataclasses.dataclass(frozen=True)
class Match:
    """Shares of the shingles of two texts, which sum to 1; all 0 if both texts are empty.

    Attributes:
      both: share in both texts.
      extra: share in the extracted text only.
      missed: share in the true text only.
    """

    both: float
    extra: float
    missed: float

    @property
    def precision(self) -> float:
        """Share of the extracted shingles that are true."""
        return self.both / (self.both + self.extra) if self.both or self.extra else float(not self.missed)

    @property
    def recall(self) -> float:
        """Share of the true shingles that are extracted."""
        return self.both / (self.both + self.missed) if self.both or self.missed else float(not self.extra)

    @property
    def f1(self) -> float:
        """F1 of the shingles of this page; 1 if both texts are empty."""
        shingles_of_both = 2 * self.both + self.extra + self.missed
        return 2 * self.both / shingles_of_both if shingles_of_both else 1.0


def match(page: GoldPage, text: str) -> Match:
    """Compares a text with a page's body; an optional paragraph counts as true if most of it is extracted."""
    found = shingles(text)
    paragraphs = [shingles(paragraph) for paragraph in page.optional]
    given = [
        text for text, own in zip(page.optional, paragraphs, strict=True) if 2 * (own & found).total() >= own.total()
    ]
    true = shingles("\n".join([page.body, *given])) if given else shingles(page.body)
    both, extra, missed = (found & true).total(), (found - true).total(), (true - found).total()
    total = both + extra + missed
    return Match(both / total, extra / total, missed / total) if total else Match(0.0, 0.0, 0.0)


def shingles(text: str) -> collections.Counter[tuple[str, ...]]:
    """Returns the multiset of runs of four words of a text; a shorter text is one run."""
    words = _WORD.findall(text)
    return collections.Counter(
        tuple(words[start : start + _SHINGLE]) for start in range(max(1, len(words) - _SHINGLE + 1)) if words
    )


def body_scores(matches: Iterable[Match]) -> tuple[float, float, float]:
    """Returns (F1, precision, recall) as the benchmark defines them."""
    matches = list(matches)
    precisions = [one.precision for one in matches if one.both + one.extra > 0]
    recalls = [one.recall for one in matches if one.both + one.missed > 0]
    precision, recall = sum(precisions) / max(1, len(precisions)), sum(recalls) / max(1, len(recalls))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0, precision, recall


def author_f1(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> float:
    """Returns the F1 of (extracted, true) names pooled over pages; case and punctuation are ignored."""
    both = extra = missed = 0
    for extracted, true in pairs:
        ours, theirs = ({letters_of(name) for name in names} for names in (extracted, true))
        both, extra, missed = both + len(ours & theirs), extra + len(ours - theirs), missed + len(theirs - ours)
    return 2 * both / max(1, 2 * both + extra + missed)
