"""The trial of a new model: same-event retrieval on the days that were held out, against the model that serves.

Nobody labels an archive, so the events are proxies, of two kinds with opposite biases:

- mined: articles of the held-out days that the mining job would pair as reports of one event by different publishers
  (names, dates, images; :func:`~newsembed.beam_pipelines.triplets.table.events_of` groups the pairs). Neither model
  had a part in them. But the new model has been trained on pairs of earlier days that the same rule has found, so they
  favour it: what the rule gets wrong, it has learned, too.
- the archive's own events: formed by the vectors of the model that serves, so they favour that one.

Candidates of a query are all articles of other publishers of these days. The rule is one of non-inferiority: the new
model is accepted if the lower end of the 95 % bootstrap interval (over events) of the mean paired difference in average
precision on the mined events is not below minus the tolerance. A small test has a wide interval, so it keeps the old
model. The difference on the archive's own events is reported and decides nothing.
"""

import collections
import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...beam_pipelines.arrays import doc_id_of
from ...beam_pipelines.triplets.table import events_of
from ...errors import InputError
from ...evaluation.benchmarks.retrieval import SameEventRetrieval
from ...evaluation.encoders import normalised
from ...evaluation.statistics import mean_interval
from ...formats.files import writing_text
from ...formats.folders import read_json
from ...formats.parquet import read_stream
from ...formats.records import Article, Triplet
from ...serving.interface import DocumentEncoder, TextEncoder

MINED: Final = "mined_events.jsonl"
EVENTS: Final = "events.json"  # of the archive, event by article
OWN: Final = "archive_events.jsonl"
_DIGITS: Final = 4


def write_test(mined: str, version: str, first_day: datetime.date, folder: str) -> int:
    """Writes the articles of the held-out days twice, with the mined events and with those of the archive.

    Args:
      mined: work folder of the build.
      version: folder with the events of the archive.
      first_day: that is held out.
      folder: gets :data:`MINED` and :data:`OWN`.

    Returns:
      The number of mined events that several publishers report.
    """
    stream = read_stream(f"{mined}/clean/articles", Article)
    recent = (article for article in stream if article.byline_date and article.byline_date >= first_day)
    articles = sorted(recent, key=lambda article: article.doc_id)
    publishers = {article.doc_id: article.publisher for article in articles}
    pairs = {(one.anchor, one.positive) for one in read_stream(f"{mined}/triplets/triplets", Triplet)}
    found = _mined_events(
        (one, two)
        for one, two in pairs
        if one in publishers and two in publishers and publishers[one] != publishers[two]
    )
    _write(f"{folder}/{MINED}", articles, found)
    _write(f"{folder}/{OWN}", articles, read_json(f"{version}/{EVENTS}"))
    reported = collections.defaultdict(set)
    for doc_id, event in found.items():
        reported[event].add(publishers[doc_id])
    return sum(len(names) > 1 for names in reported.values())


def compare(folder: str, serving: TextEncoder, candidate: TextEncoder, tolerance: float) -> dict[str, Any]:
    """Evaluates both models and decides; JSON values.

    Args:
      folder: of :func:`write_test`.
      serving: the model of the archive.
      candidate: the new one.
      tolerance: least difference in mAP that would matter.
    """
    results: dict[str, Any] = {}
    for name, file in (("mined", MINED), ("archive", OWN)):
        results[name] = _difference(SameEventRetrieval(f"{folder}/{file}", cross_publisher=True), serving, candidate)
    mined = results["mined"]
    low = None if mined is None else mined["difference"]["low"]
    return {
        "accepted": low is not None and low >= -tolerance,
        "rule": "the lower end of the 95 % interval of the difference in mAP on mined events is not below -tolerance",
        "tolerance": tolerance,
        "serving": serving.digest,
        "candidate": candidate.digest,
        "results": results,
    }


def summary(trial: Mapping[str, Any]) -> list[tuple[str, str, str, str, str, str]]:
    """Rows of a table: events, how many, mAP of both models, their difference, its interval."""
    rows = []
    for name, result in trial["results"].items():
        if result is None:
            rows.append((name, "too few", "", "", "", ""))
            continue
        one = result["difference"]
        interval = f"{one['low']:+.4f} to {one['high']:+.4f}"
        scores = f"{result['serving']:.4f}", f"{result['candidate']:.4f}", f"{one['value']:+.4f}"
        rows.append((name, str(result["events"]), *scores, interval))
    return rows


def _mined_events(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Event by document; the id of an event is that of its leader."""
    numbers = np.array(sorted((int(one, 16), int(two, 16)) for one, two in pairs), np.uint64).reshape(-1, 2)
    if not len(numbers):
        return {}
    documents, leaders = events_of(numbers)
    return {doc_id_of(one): doc_id_of(event) for one, event in zip(documents.tolist(), leaders.tolist(), strict=True)}


def _write(path: str, articles: Sequence[Article], events: Mapping[str, str]) -> None:
    with writing_text(path) as sink:
        for article in articles:
            row = {name: getattr(article, name) for name in ("title", "body", "publisher", "language")}
            row |= {"id": article.doc_id, "byline_date": str(article.byline_date)}
            row["event"] = events.get(article.doc_id) or None
            sink.write(json.dumps(row, ensure_ascii=False) + "\n")


def _difference(benchmark: SameEventRetrieval, serving: TextEncoder, candidate: TextEncoder) -> dict[str, Any] | None:
    """The mAP of both and the paired difference; None where no two events have a query."""
    try:
        documents = benchmark.documents()
    except InputError:  # fewer than two events
        return None
    events = np.array([row.event for row in benchmark.rows])
    vectors = [normalised(DocumentEncoder(encoder).encode(documents)) for encoder in (serving, candidate)]
    scores = [benchmark.query_scores(embeddings)["mAP"] for embeddings in vectors]
    asked = ~np.isnan(scores[0])
    if len(np.unique(events[asked])) < 2:
        return None
    found = mean_interval((scores[1] - scores[0])[asked], events[asked])
    low, high = float(found.low or 0), float(found.high or 0)
    return {
        "queries": int(asked.sum()),
        "events": len(np.unique(events[asked])),
        "articles": len(documents),
        "serving": round(float(scores[0][asked].mean()), _DIGITS),
        "candidate": round(float(scores[1][asked].mean()), _DIGITS),
        "difference": {"value": round(found.value, _DIGITS), "low": round(low, _DIGITS), "high": round(high, _DIGITS)},
    }
