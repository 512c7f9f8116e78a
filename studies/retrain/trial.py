"""The trial of a new model: same-event retrieval on the days that were held out, against the model that serves.

Nobody labels an archive, so the events are proxies, of two kinds with opposite biases:

- mined: articles of the held-out days that the mining job would pair as reports of one event by different publishers
  (names, dates, images; :func:`~newsembed.beam_pipelines.triplets.events.events_of` groups the pairs). Neither model
  had a part in them. But the new model has been trained on pairs of earlier days that the same rule has found, so they
  favour it: what the rule gets wrong, it has learned, too.
- the archive's own events: formed by the vectors of the model that serves, so they favour that one.

Candidates of a query are all articles of other publishers of these days. The rule is one of non-inferiority: the new
model is accepted if the lower end of the 95 % bootstrap interval (over events) of the mean paired difference in average
precision on the mined events is not below minus the tolerance. A small test has a wide interval, so it keeps the old
model. The difference on the archive's own events is reported and decides nothing.
"""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...beam_pipelines.arrays import doc_id_of
from ...beam_pipelines.triplets.events import events_of
from ...errors import InputError
from ...evaluation.encoders import normalised
from ...evaluation.intervals import mean_interval
from ...evaluation.retrieval import SameEventRetrieval
from ...formats.archive import read_events
from ...formats.parquet import read_stream
from ...formats.records import Article, Triplet
from ...formats.whole import replacing
from ...serving.interface import DocumentEncoder, TextEncoder

MINED: Final = "mined_events.jsonl"
OWN: Final = "archive_events.jsonl"
_DIGITS: Final = 4


def write_test(mined: str, version: str, first_day: datetime.date, folder: str) -> int:
    """Writes the articles of the held-out days twice, with the mined events and with those of the archive.

    Args:
      mined: work folder of the build.
      version: of the archive, for its events.
      first_day: that is held out.
      folder: gets :data:`MINED` and :data:`OWN`.

    Returns:
      The number of mined events that several publishers report.
    """
    articles = [
        article
        for article in read_stream(f"{mined}/clean/articles", Article)
        if article.byline_date and article.byline_date >= first_day
    ]
    articles.sort(key=lambda article: article.doc_id)
    publishers = {article.doc_id: article.publisher for article in articles}
    pairs = {
        (triplet.anchor, triplet.positive)
        for triplet in read_stream(f"{mined}/triplets/triplets", Triplet)
        if triplet.anchor in publishers
        and triplet.positive in publishers
        and publishers[triplet.anchor] != publishers[triplet.positive]
    }
    found = _mined_events(pairs)
    _write(f"{folder}/{MINED}", articles, found)
    _write(f"{folder}/{OWN}", articles, read_events(version))
    return len(_of_several(found, publishers))


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


def _of_several(events: Mapping[str, str], publishers: Mapping[str, str]) -> list[str]:
    found: dict[str, set[str]] = {}
    for doc_id, event in events.items():
        found.setdefault(event, set()).add(publishers[doc_id])
    return [event for event, names in found.items() if len(names) > 1]


def _write(path: str, articles: Sequence[Article], events: Mapping[str, str]) -> None:
    with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as sink:
        for article in articles:
            row = {
                "id": article.doc_id,
                "title": article.title,
                "body": article.body,
                "publisher": article.publisher,
                "language": article.language,
                "byline_date": str(article.byline_date),
                "event": events.get(article.doc_id) or None,
            }
            sink.write(json.dumps(row, ensure_ascii=False) + "\n")


def _difference(benchmark: SameEventRetrieval, serving: TextEncoder, candidate: TextEncoder) -> dict[str, Any] | None:
    """The mAP of both and the paired difference; None where no two events have a query."""
    try:
        documents = benchmark.documents()
    except InputError:  # fewer than two events
        return None
    events = np.array([row.event for row in benchmark.rows()])
    scores = []
    for encoder in (serving, candidate):
        embeddings = normalised(DocumentEncoder(encoder).encode(documents))
        scores.append(benchmark.query_scores(embeddings)["mAP"])
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
