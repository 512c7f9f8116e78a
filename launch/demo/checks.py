"""What the demo must show, scored against the newsroom's truth, which no job sees."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from rich.box import HEAVY_HEAD

from ...beam_pipelines.progress import print_table
from ...evaluation.results import Results
from ...evaluation.suites import read_results
from ...formats.jsonl import read_jsonl
from ...formats.parquet import read_stream
from ...formats.records import Article, Triplet, make_doc_id
from ...formats.urls import canonical_url
from ...newsroom.options import ABROAD
from .names import PRECISION, RECALL, found_names
from .steps import QUERIES, Places, job_rows

HELD_OUT, PARAPHRASES = "events heldout.jsonl", "events paraphrases.jsonl"
_EXPORT_TOLERANCE = 1e-5
_SEARCH_RESULTS = 5


class Check(TypedDict):
    """One claim of the demo: what was measured, the bar, and whether it is met."""

    name: str
    measured: Any
    expected: str
    met: bool


def score(places: Places) -> dict[str, Any]:
    """Scores of mining, encoders and export, and the list of checks.

    Raises:
      InputError: if the demo has no readable results.
    """
    truth = {make_doc_id(canonical_url(row["url"])): row for _, row in read_jsonl(f"{places.newsroom}/truth.jsonl")}
    publishers = {
        article.doc_id: article.publisher for article in read_stream(f"{places.work}/clean/articles", Article)
    }
    mined = score_mining(read_stream(f"{places.work}/triplets/triplets", Triplet), truth, publishers)
    mined |= found_names(places)
    results = read_results(places.evaluation)
    checks = checks_of(job_rows(places), mined, results, export_difference(places))
    checks += search_checks(found_topics(places, truth))
    return {"checks": checks, "mining": mined, "encoders": table(results)}


def checks_of(
    rows: Sequence[Mapping[str, Any]], mined: Mapping[str, float], results: Results, difference: float
) -> list[Check]:
    """The lines of the demo's table.

    Args:
      rows: from :func:`~.steps.job_rows`.
      mined: from :func:`score_mining` and :func:`~.names.found_names`.
      results: of all benchmarks.
      difference: from :func:`export_difference`.

    Raises:
      KeyError: if an encoder lacks a score.
    """
    same = Check(
        name="SavedModel equals JAX",
        measured=difference,
        expected=f"<= {_EXPORT_TOLERANCE}",
        met=difference <= _EXPORT_TOLERANCE,
    )
    return [_accounting(rows), *_mining_checks(mined), *_encoder_checks(results), same]


def score_mining(
    triplets: Iterator[Triplet], truth: Mapping[str, Mapping[str, Any]], publishers: Mapping[str, str]
) -> dict[str, float]:
    """Precision of the distinct mined pairs against the truth, and recall of the pairs that can be mined.

    A positive is right if both documents report the same event. A negative is wrong if both do, or if both are
    editions of the same evergreen piece. A pair with a document that the truth does not list is wrong on either side.
    Recall is over all pairs of clean articles that two publishers wrote about one event, mined in either direction.

    Args:
      triplets: the mined triplets.
      truth: the newsroom's rows by doc_id.
      publishers: publishers by the doc_id of the clean articles.
    """
    positives, negatives = set(), set()
    for triplet in triplets:
        positives.add((triplet.anchor, triplet.positive))
        negatives.add((triplet.anchor, triplet.negative))
    reported: dict[str, list[str]] = {}
    for doc_id in publishers:
        if event := truth.get(doc_id, {}).get("event"):
            reported.setdefault(event, []).append(doc_id)
    sought = [
        pair
        for group in reported.values()
        for pair in itertools.combinations(group, 2)
        if len({publishers[one] for one in pair}) == 2
    ]
    return {
        "positive pairs": len(positives),
        "positive recall": _share([pair in positives or pair[::-1] in positives for pair in sought]),
        "positive precision": _share([_same(truth, pair, "event") for pair in positives]),
        "negative pairs": len(negatives),
        "negative precision (not the same event)": _share(
            [_known(truth, pair) and not _same(truth, pair, "event") for pair in negatives]
        ),
        "negative precision (nor the same evergreen)": _share(
            [
                _known(truth, pair)
                and not _same(truth, pair, "event")
                and not _same(truth, pair, "near_duplicate_group")
                for pair in negatives
            ]
        ),
        "anchors": len({anchor for anchor, _ in positives}),
    }


def export_difference(places: Places) -> float:
    """Largest absolute difference between the SavedModel's embeddings and JAX's, on held-out articles."""
    import numpy as np

    from ... import serving
    from ...evaluation.encoders import Document

    rows = [row for _, row in itertools.islice(read_jsonl(f"{places.newsroom}/heldout.jsonl"), 64)]
    documents = [Document(row["title"], row["body"]) for row in rows]
    factories = serving.factories()
    exported, trained = (
        factories["savedmodel"](places.saved_model).encode(documents),
        factories["model"](places.trained).encode(documents),
    )
    return float(np.max(np.abs(np.asarray(exported) - np.asarray(trained))))


def found_topics(places: Places, truth: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The topics of the first articles that each of the demo's searches finds, by the newsroom's truth.

    Args:
      places: of the demo.
      truth: the newsroom's rows by doc_id; an article that it does not list has the topic "".
    """
    from ...serving.index import DocumentIndex
    from ...serving.search import find_words, index_encoder

    index = DocumentIndex.load(places.index)
    encoder = index_encoder(index)
    return {
        query: [
            str(truth.get(hit.document.doc_id, {}).get("topic") or "")
            for hit in find_words(index, encoder, query, _SEARCH_RESULTS).hits
        ]
        for query in QUERIES
    }


def search_checks(found: Mapping[str, Sequence[str]]) -> list[Check]:
    """Returns one line for each search: whether all of its results are about the query.

    Args:
      found: from :func:`found_topics`.
    """
    return [
        Check(
            name=f'search "{query}": articles about {topic}',
            measured=f"{sum(one == topic for one in found[query])} of {len(found[query])}",
            expected=f"{_SEARCH_RESULTS} of {_SEARCH_RESULTS}",
            met=list(found[query]) == [topic] * _SEARCH_RESULTS,
        )
        for query, topic in QUERIES.items()
    ]


def table(results: Results) -> list[dict[str, Any]]:
    """One row for each encoder: every score by benchmark, metric and part."""
    rows: dict[str, dict[str, Any]] = {}
    for result in results.results:
        row = rows.setdefault(result.encoder, {"encoder": result.encoder})
        for entry in result.scores:
            part = "" if entry.part == "all" else f" {entry.part}"
            row[f"{result.benchmark.replace('.jsonl', '')}: {entry.metric}{part}"] = round(entry.value, 4)
        if result.status != "ok":
            row[f"{result.benchmark}: failed"] = result.error
    return list(rows.values())


def show(checks: Sequence[Check]) -> None:
    """Prints the checks as a table."""
    rows = [
        (check["name"], str(check["measured"]), check["expected"], "met" if check["met"] else "MISSED")
        for check in checks
    ]
    print_table(("check", "measured", "expected", ""), rows, title="What the demo must show", box=HEAVY_HEAD)


def _accounting(rows: Sequence[Mapping[str, Any]]) -> Check:
    wrong = [
        row["job"]
        for row in rows
        if row["in"] != row["out"] + sum(row["rejected"].values()) + sum(row["failed"].values())
    ]
    empty = [row["job"] for row in rows if not row["out"]]
    return Check(
        name="every job: in = out + rejected + failed, and something out",
        measured=f"{len(rows) - len({*wrong, *empty})} of {len(rows)} jobs",
        expected="all of them",
        met=not wrong and not empty,
    )


def _mining_checks(mined: Mapping[str, float]) -> list[Check]:
    bars = {
        "positive precision": 0.9,
        "positive recall": 0.6,
        "negative precision (not the same event)": 0.95,
        PRECISION: 0.9,
        RECALL: 0.5,
    }
    return [
        Check(name=name, measured=round(mined[name], 4), expected=f">= {bar}", met=mined[name] >= bar)
        for name, bar in bars.items()
    ]


def _encoder_checks(results: Results) -> list[Check]:
    found = {entry.part for result in results.results if result.benchmark == HELD_OUT for entry in result.scores}
    # 150 reports by two publishers are too few to learn a language in the demo's steps: scored, but not asked for.
    parts = sorted(found - set(ABROAD))
    checks = []
    for part in parts:
        trained, pretrained, fresh = (
            results.score(encoder, HELD_OUT, "mAP", part) for encoder in ("trained", "pretrained", "random")
        )
        measured = f"{trained:.3f} > {pretrained:.3f} > {fresh:.3f}"
        name = f"held-out events, mAP, {part}: trained > pretrained > random"
        checks.append(Check(name=name, measured=measured, expected="this order", met=trained > pretrained > fresh))
    for benchmark, texts in ((HELD_OUT, "held-out events"), (PARAPHRASES, "cross-publisher paraphrases")):
        trained, tfidf = (results.score(encoder, benchmark, "mAP") for encoder in ("trained", "tfidf"))
        name = f"{texts}, mAP: trained > TF-IDF"
        checks.append(
            Check(name=name, measured=f"{trained:.3f} > {tfidf:.3f}", expected="this order", met=trained > tfidf)
        )
    return checks


def _same(truth: Mapping[str, Mapping[str, Any]], pair: tuple[str, str], field: str) -> bool:
    values = [truth[doc_id].get(field) if doc_id in truth else None for doc_id in pair]
    return values[0] is not None and values[0] == values[1]


def _known(truth: Mapping[str, Mapping[str, Any]], pair: tuple[str, str]) -> bool:
    return all(doc_id in truth for doc_id in pair)


def _share(hits: list[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0
