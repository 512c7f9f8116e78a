"""What the demo must show, scored against the newsroom's truth, which no job sees."""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.box import HEAVY_HEAD

from ...beam_pipelines.entities.linking import Linker, words_of
from ...beam_pipelines.entities.tables import read_aliases
from ...beam_pipelines.progress import print_table
from ...evaluation.benchmark import Results
from ...evaluation.suites import read_results
from ...formats.jsonl import read_jsonl
from ...formats.parquet import read_stream
from ...formats.records import Article, Triplet, make_doc_id
from ...formats.urls import canonical_url
from ...newsroom.prose import ABROAD
from . import QUERIES, Places, job_rows

HELD_OUT, PARAPHRASES = "events heldout.jsonl", "events paraphrases.jsonl"
PRECISION, RECALL = "names across scripts: precision", "names across scripts: recall"
_EXPORT_TOLERANCE: Final = 1e-5
_SEARCH_RESULTS: Final = 5
_MINING: Final = {
    "positive precision": 0.9,
    "positive recall": 0.6,
    "negative precision (not the same event)": 0.95,
    PRECISION: 0.9,
    RECALL: 0.5,
}
_LANGUAGE: Final = "ru"  # of the names in another script

Check = dict[str, Any]
Truth = Mapping[str, Mapping[str, Any]]  # the newsroom's rows by doc_id


def _check(name: str, measured: Any, expected: str, *, met: bool) -> Check:
    """One claim of the demo: what was measured, the bar, and whether it is met."""
    return {"name": name, "measured": measured, "expected": expected, "met": met}


def score(places: Places) -> dict[str, Any]:
    """Scores of mining, encoders and export, and the list of checks."""
    truth = {make_doc_id(canonical_url(row["url"])): row for _, row in read_jsonl(f"{places.newsroom}/truth.jsonl")}
    articles = read_stream(f"{places.work}/clean/articles", Article)
    publishers = {article.doc_id: article.publisher for article in articles}
    mined = score_mining(read_stream(f"{places.work}/triplets/triplets", Triplet), truth, publishers)
    mined |= found_names(places)
    results = read_results(places.evaluation)
    checks = checks_of(job_rows(places), mined, results, export_difference(places))
    return {"checks": checks + search_checks(found_topics(places, truth)), "mining": mined, "encoders": table(results)}


def checks_of(
    rows: Sequence[Mapping[str, Any]], mined: Mapping[str, float], results: Results, difference: float
) -> list[Check]:
    """The lines of the demo's table.

    Args:
      rows: from `job_rows`.
      mined: from :func:`score_mining` and :func:`found_names`.
      results: of all benchmarks.
      difference: from :func:`export_difference`.
    """
    add_up = [
        bool(row["out"]) and row["in"] == row["out"] + sum(row["rejected"].values()) + sum(row["failed"].values())
        for row in rows
    ]
    name = "every job: in = out + rejected + failed, and something out"
    checks = [_check(name, f"{sum(add_up)} of {len(rows)} jobs", "all of them", met=all(add_up))]
    for name, bar in _MINING.items():
        checks.append(_check(name, round(mined[name], 4), f">= {bar}", met=mined[name] >= bar))
    parts = {entry.part for result in results.results if result.benchmark == HELD_OUT for entry in result.scores}
    # 150 reports by two publishers are too few to learn a language in the demo's steps: scored, but not asked for.
    for part in sorted(parts - set(ABROAD)):
        encoders = ("trained", "pretrained", "random")
        checks.append(_order(results, f"held-out events, mAP, {part}", HELD_OUT, encoders, part))
    for benchmark, texts in ((HELD_OUT, "held-out events"), (PARAPHRASES, "cross-publisher paraphrases")):
        checks.append(_order(results, f"{texts}, mAP", benchmark, ("trained", "tfidf"), "all"))
    met = difference <= _EXPORT_TOLERANCE
    return [*checks, _check("SavedModel equals JAX", difference, f"<= {_EXPORT_TOLERANCE}", met=met)]


def _order(results: Results, name: str, benchmark: str, encoders: Sequence[str], part: str) -> Check:
    scores = [results.score(encoder, benchmark, "mAP", part) for encoder in encoders]
    return _check(
        f"{name}: {' > '.join(encoders).replace('tfidf', 'TF-IDF')}",
        " > ".join(f"{one:.3f}" for one in scores),
        "this order",
        met=all(one > other for one, other in itertools.pairwise(scores)),
    )


def score_mining(triplets: Iterator[Triplet], truth: Truth, publishers: Mapping[str, str]) -> dict[str, float]:
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
    reported: dict[str, list[str]] = collections.defaultdict(list)
    for doc_id in publishers:
        if event := truth.get(doc_id, {}).get("event"):
            reported[event].append(doc_id)
    pairs = itertools.chain.from_iterable(itertools.combinations(group, 2) for group in reported.values())
    sought = [pair for pair in pairs if publishers[pair[0]] != publishers[pair[1]]]

    def same(pair: tuple[str, str], field: str) -> bool:
        one, other = (truth.get(doc_id, {}).get(field) for doc_id in pair)
        return one is not None and one == other

    right = [pair for pair in negatives if truth.keys() >= set(pair) and not same(pair, "event")]
    return {
        "positive pairs": len(positives),
        "positive recall": _share(sum(pair in positives or pair[::-1] in positives for pair in sought), len(sought)),
        "positive precision": _share(sum(same(pair, "event") for pair in positives), len(positives)),
        "negative pairs": len(negatives),
        "negative precision (not the same event)": _share(len(right), len(negatives)),
        "negative precision (nor the same evergreen)": _share(
            sum(not same(pair, "near_duplicate_group") for pair in right), len(negatives)
        ),
        "anchors": len({anchor for anchor, _ in positives}),
    }


@dataclasses.dataclass(frozen=True)
class Name:
    """A name of the newsroom's world.

    Attributes:
      kind: place, person or organisation.
      name: in Latin letters.
      forms: the words that Russian articles have for it.
    """

    kind: str
    name: str
    forms: frozenset[str]


def found_names(places: Places) -> dict[str, float]:
    """Scores the alias table of the build against the newsroom's table of names, see :func:`score_names`."""
    forms: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    with open(f"{places.newsroom}/names.tsv", encoding="utf-8") as lines:
        for line in lines:
            kind, name, form = line.rstrip("\n").split("\t")
            forms[kind, name].append(form)
    names = [Name(*key, frozenset(written)) for key, written in forms.items()]
    aliases = read_aliases(f"{places.work}/entities/aliases.tsv")
    rows = {entity: row for row, entity in enumerate(sorted({alias.entity for alias in aliases}))}
    articles = read_stream(f"{places.work}/clean/articles", Article)
    return score_names(Linker(aliases, rows), names, (one for one in articles if one.language == _LANGUAGE))


def score_names(linker: Linker, names: Sequence[Name], articles: Iterable[Article]) -> dict[str, float]:
    """Precision and recall of links from Russian articles to the entities of Latin names.

    Recall is over the names in each article whose Latin spelling has an entity. A link to such an entity is right if
    the article has a form of the name.

    Args:
      linker: of the alias table.
      names: all names of the world.
      articles: in Russian.
    """
    rows: list[set[int]] = []  # of each name, and of the last name of somebody
    named: dict[int, list[Name]] = collections.defaultdict(list)
    for name in names:
        spellings = {name.name, name.name.split()[-1]} if name.kind == "person" else {name.name}
        rows.append({row for one in spellings if (row := linker.meaning(one, "en")) is not None})
        for row in rows[-1]:
            named[row].append(name)
    hits: dict[str, list[bool]] = collections.defaultdict(list)
    right: list[bool] = []
    for article in articles:
        texts = [article.title, *article.keywords, article.body]
        linked, words = linker.link(texts, article.language), set(words_of(" ".join(texts)))
        for name, own in zip(names, rows, strict=True):
            if own and name.forms & words:
                hits[name.kind].append(bool(own & set(linked)))
        right += [any(name.forms & words for name in named[row]) for row in linked if row in named]
    every = [hit for found in hits.values() for hit in found]
    return {
        PRECISION: _share(sum(right), len(right)),
        RECALL: _share(sum(every), len(every)),
        **{f"{RECALL}, {kind}": _share(sum(found), len(found)) for kind, found in sorted(hits.items())},
        "names across scripts": float(len(every)),
    }


def export_difference(places: Places) -> float:
    """Largest absolute difference between the SavedModel's embeddings and JAX's, on held-out articles."""
    import numpy as np

    from ... import serving
    from ...evaluation.encoders import Document

    rows = [row for _, row in itertools.islice(read_jsonl(f"{places.newsroom}/heldout.jsonl"), 64)]
    documents = [Document(row["title"], row["body"]) for row in rows]
    factories = serving.factories()
    exported = np.asarray(factories["savedmodel"](places.saved_model).encode(documents))
    return float(np.max(np.abs(exported - np.asarray(factories["model"](places.trained).encode(documents)))))


def found_topics(places: Places, truth: Truth) -> dict[str, list[str]]:
    """The topics of the first articles that each of the demo's searches finds; "" where the truth does not say."""
    from ...serving.index import DocumentIndex
    from ...serving.search import find_words, index_encoder

    index = DocumentIndex.load(places.index)
    encoder = index_encoder(index)
    found = {query: find_words(index, encoder, query, _SEARCH_RESULTS).hits for query in QUERIES}
    return {
        query: [str(truth.get(hit.document.doc_id, {}).get("topic") or "") for hit in hits]
        for query, hits in found.items()
    }


def search_checks(found: Mapping[str, Sequence[str]]) -> list[Check]:
    """Returns one line for each search of :func:`found_topics`: whether all of its results are about the query."""
    return [
        _check(
            f'search "{query}": articles about {topic}',
            f"{sum(one == topic for one in found[query])} of {len(found[query])}",
            f"{_SEARCH_RESULTS} of {_SEARCH_RESULTS}",
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


def _share(hits: int, count: int) -> float:
    return hits / count if count else 0.0
