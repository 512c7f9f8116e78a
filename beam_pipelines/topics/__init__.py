"""``newsembed topics``: derives document-topic labels from the hubs that list an article (section 2.2.2).

Positives and negatives of a topic are brought to a ratio by dropping those in excess. Each label has a draw, and those
with the smallest draws stay. A shard keeps the smallest draws of its labels, so that the bound for a wanted number of
labels is exact where the number is small; large numbers are met within a few percent.
"""

import collections
import dataclasses
import functools
import hashlib
import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...formats import files
from ...formats.command_line import Options, option
from ...formats.parquet import read_records, read_stream
from ...formats.records import Rejection, TopicLabels
from ..entities.tables import read_aliases, read_counts, write_counts
from ..jobs import ARTICLES, InputSpec, Job, JobRun, optional
from ..shards import Shard
from .choose import (
    Decision,
    HubHead,
    Verdict,
    choose,
    gather,
    group_titles,
    hub_title,
    link_titles,
    plain_title,
    rank_topics,
    read_review,
    write_topics,
)
from .names import join_entities, link_names

_TITLES, _GROUPS, _SIZES = "_title_counts", "_groups.json", "_group_sizes"
_HUBS, _NAMES, _DRAWS, _BOUNDS = "_hub_topics", "_topic_names.json", "_least_draws", "_bounds.json"
LEAST: Final = 2_048  # draws of each topic and side that a shard keeps
DRAWS: Final = 1 << 48  # draws are less
POSITIVE, NEGATIVE = 1, 0


@dataclasses.dataclass(frozen=True)
class TopicsOptions(Options):
    """Options of ``topics``: the minima of a topic, which a ``topics_file`` overrides, and the sampling of labels."""

    max_topics: int = option(600, "most topics to keep, those with the most articles first", ge=1)
    min_publishers: int = option(2, "least number of publishers with a hub of the topic", ge=1)
    min_documents: int = option(10, "least number of articles that the hubs of the topic list", ge=1)
    link_names: bool = option(True, "titles that name one section, place or language are one topic, in any language")
    positive_ratio: float = option(0.25, "positives of a topic to its negatives; 0 keeps all", ge=0, lt=math.inf)


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """The columns of an :class:`~newsembed.formats.records.Article` that topics need."""

    doc_id: str
    url: str
    publisher: str
    title: str
    authors: tuple[str, ...]
    hubs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class HubTopic:
    """The topic of a hub of a publisher."""

    hub_id: str
    publisher: str
    topic_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeastDraws:
    """The number of the positives (``label`` 1) or negatives (0) of a topic, and their smallest draws, ascending."""

    topic_id: int
    label: int
    count: int
    draws: tuple[int, ...]


def run(job: JobRun) -> None:
    """Chooses topics, or takes those of ``topics_file``, counts their labels, then samples the labels.

    Writes the stream ``labels``, and ``topics.tsv`` with the verdict on every title.
    """
    review = read_review(job.input("topics_file"), job.options.max_topics) if job.inputs["topics_file"] else None
    aliases = [*job.inputs["alias_file"], *(f"{folder}/aliases.tsv" for folder in job.inputs["entities"])][:1]
    for path in aliases:
        read_aliases(path)  # reports a broken table here, not from inside a worker
    paths, hubs = job.shards("articles"), tuple(job.shards("hubs"))
    facts: dict[str, Any] = {"review": review, "options": job.options}
    with job.graph(len(paths)):
        job.map_shards("title counts", _count_titles, paths, hub_paths=hubs, accounted=False)
        job.map_shards("groups", _group_titles, [hubs], aliases=aliases, **facts, accounted=False)
        job.map_shards("group sizes", _count_groups, paths, hub_paths=hubs, accounted=False)
        job.map_shards("choose", _choose_topics, [hubs], **facts, accounted=False)
        job.map_shards("count", _count_labels, paths, accounted=False)
        job.map_shards("balance", _balance, [None], ratio=job.options.positive_ratio, accounted=False)
        job.map_shards("label", _write_labels, paths)
    job.extra["topics"] = job.counts_of("choose").tallies.get("topics", 0)


def labels_of(
    article_hubs: Sequence[str], publisher: str, topics: Mapping[str, int], offered: Mapping[str, frozenset[int]]
) -> tuple[set[int], set[int]]:
    """Returns the (positive, negative) topics of an article.

    A topic is positive if one of its hubs lists the article. It is negative only if the article's publisher has a hub
    of that topic that does not list the article: publishers without such a hub say nothing about the topic.

    Args:
      article_hubs: ids of the hubs that list the article.
      publisher: publisher of the article.
      topics: topic by hub id.
      offered: topics of the hubs of each publisher.
    """
    positives = {topics[hub] for hub in article_hubs if hub in topics}
    return positives, set(offered.get(publisher, frozenset()) - positives) if positives else set()


@functools.lru_cache(maxsize=1)  # every shard of a process asks for it
def _read_hubs(_workspace: str, paths: Sequence[str]) -> tuple[list[HubHead], dict[str, str]]:
    """Returns the hubs by id, without what they list, and the title of each."""
    hubs = sorted((hub for path in paths for hub in read_records(path, HubHead)), key=lambda hub: hub.hub_id)
    return hubs, {hub.hub_id: hub_title(hub) for hub in hubs}


def _count_titles(shard: Shard, path: str, hub_paths: Sequence[str]) -> None:
    """Counts by title the articles of a shard that its hubs list, and those of them with an author of this name."""
    _, titles = _read_hubs(shard.workspace, hub_paths)
    listed, signed = collections.Counter[str](), collections.Counter[str]()
    for article in read_records(path, Member):
        found = {titles[hub] for hub in article.hubs if hub in titles}
        listed.update(found)
        signed.update(found & set(map(plain_title, article.authors)))
    write_counts(shard, _TITLES, {title: (count, signed[title]) for title, count in listed.items()}, buckets=1)


def _count_groups(shard: Shard, path: str, hub_paths: Sequence[str]) -> None:
    """Counts the articles of a shard by group: an article that two titles of a group list counts once."""
    _, titles = _read_hubs(shard.workspace, hub_paths)
    groups = files.read_json(f"{shard.workspace}/{_GROUPS}")
    sizes = collections.Counter[str]()
    for article in read_records(path, Member):
        found = {titles[hub] for hub in article.hubs if hub in titles}
        sizes.update({groups[title] for title in found if title in groups})
    write_counts(shard, _SIZES, {group: (count,) for group, count in sizes.items()}, buckets=1)


def _group_titles(
    shard: Shard,
    hub_paths: Sequence[str],
    aliases: Sequence[str],
    review: Mapping[str, str] | None,
    options: TopicsOptions,
) -> None:
    """Writes which titles may form a topic together; the number of its articles then decides on it."""
    evidence = gather(*_read_hubs(shard.workspace, hub_paths), read_counts(f"{shard.workspace}/{_TITLES}/00"))
    if review is not None:
        groups = {title: f"title:{review[title]}" for title in evidence if title in review}
    else:
        of_aliases = link_titles(evidence, [alias for path in aliases for alias in read_aliases(path)])
        entities = join_entities(of_aliases, link_names(evidence) if options.link_names else {})
        groups = group_titles(evidence, entities)
    files.write_json(f"{shard.workspace}/{_GROUPS}", groups)


def _choose_topics(
    shard: Shard, hub_paths: Sequence[str], review: Mapping[str, str] | None, options: TopicsOptions
) -> None:
    hubs, titles = _read_hubs(shard.workspace, hub_paths)
    evidence = gather(hubs, titles, read_counts(f"{shard.workspace}/{_TITLES}/00"))
    groups = files.read_json(f"{shard.workspace}/{_GROUPS}")
    counted = read_counts(f"{shard.workspace}/{_SIZES}/00")
    sizes = dict.fromkeys(groups.values(), 0) | {group: count for group, (count,) in counted.items()}
    if review is None:
        limits = options.min_publishers, options.min_documents, options.max_topics
        decisions, documents = choose(evidence, groups, sizes, *limits)
    else:
        verdicts = {title: Verdict.KEPT if title in review else Verdict.DROPPED for title in evidence}
        decisions = {title: Decision(review.get(title, title), verdict) for title, verdict in verdicts.items()}
        documents = {group.removeprefix("title:"): size for group, size in sizes.items()}
    names = rank_topics(documents)
    files.write_json(f"{shard.workspace}/{_NAMES}", names)
    numbers = {name: number for number, name in enumerate(names)}
    output = shard.records(_HUBS, HubTopic)
    for hub in hubs:
        decision = decisions[titles[hub.hub_id]]
        if decision.verdict is Verdict.KEPT:
            output.write(HubTopic(hub.hub_id, hub.publisher, numbers[decision.topic]))
    write_topics(shard.workspace, decisions, evidence, numbers)
    shard.tally("topics", len(names))
    for title, decision in decisions.items():
        shard.tally(f"titles/{decision.verdict.value}")
        shard.tally(f"hubs/{decision.verdict.value}", evidence[title].hubs)


@functools.lru_cache(maxsize=1)  # every shard of a process asks for it
def _hub_topics(workspace: str) -> tuple[dict[str, int], dict[str, frozenset[int]]]:
    """Returns the topic of each hub, and the topics of the hubs of each publisher."""
    topics, offered = {}, collections.defaultdict(set)
    for row in read_stream(f"{workspace}/{_HUBS}", HubTopic):
        topics[row.hub_id] = row.topic_id
        offered[row.publisher].add(row.topic_id)
    return topics, {publisher: frozenset(numbers) for publisher, numbers in offered.items()}


def _labelled(workspace: str, path: str) -> Iterator[tuple[Member, dict[int, int], dict[int, int]]]:
    """Yields each article with the draws of its positive and of its negative topics, by topic."""
    topics, offered = _hub_topics(workspace)
    names = files.read_json(f"{workspace}/{_NAMES}")
    for article in read_records(path, Member):
        sides = labels_of(article.hubs, article.publisher, topics, offered)
        positives, negatives = ({topic: draw(article.doc_id, names[topic]) for topic in side} for side in sides)
        yield article, positives, negatives


def draw(doc_id: str, topic: str) -> int:
    """Returns a number below `DRAWS` that depends only on the label: other topics do not change a topic's sample."""
    return int.from_bytes(hashlib.blake2b(f"{doc_id}:{topic}".encode(), digest_size=6).digest(), "big")


def _count_labels(shard: Shard, path: str) -> None:
    draws: dict[tuple[int, int], list[int]] = collections.defaultdict(list)
    for _, *sides in _labelled(shard.workspace, path):
        for label, side in zip((POSITIVE, NEGATIVE), sides, strict=True):
            for topic, number in side.items():
                draws[topic, label].append(number)
    output = shard.records(_DRAWS, LeastDraws)
    for key, own in sorted(draws.items()):
        output.write(LeastDraws(*key, len(own), tuple(heapq.nsmallest(LEAST, own))))


def _balance(shard: Shard, _: Any, ratio: float) -> None:
    bounds = keep_bounds(shard.read_stream(_DRAWS, LeastDraws), ratio)
    files.write_json(f"{shard.workspace}/{_BOUNDS}", sorted(bounds.items()))


def keep_bounds(parts: Iterable[LeastDraws], ratio: float) -> dict[int, tuple[int, int]]:
    """Returns for each topic the bounds of the draws of the positives and of the negatives that stay.

    Args:
      parts: labels of all shards.
      ratio: wanted ratio of positives to negatives; 0 keeps all labels.
    """
    found: dict[int, dict[int, tuple[int, list[int]]]] = {}
    for part in parts:
        sides = found.setdefault(part.topic_id, {POSITIVE: (0, []), NEGATIVE: (0, [])})
        count, draws = sides[part.label]
        sides[part.label] = count + part.count, heapq.nsmallest(LEAST, [*draws, *part.draws])
    bounds = {}
    for topic, sides in found.items():
        wanted = wanted_labels(sides[POSITIVE][0], sides[NEGATIVE][0], ratio)
        positives, negatives = map(_bound_of, wanted, (sides[POSITIVE], sides[NEGATIVE]))
        bounds[topic] = positives, negatives
    return bounds


def wanted_labels(positives: int, negatives: int, ratio: float) -> tuple[int, int]:
    """Returns how many positives and negatives of a topic stay, so that their ratio is ``ratio``.

    Labels are dropped from one side only, the one in excess; at least one of it stays. A topic without labels of one
    side loses all of the other: they would teach its logit a constant.

    >>> wanted_labels(100, 40, 0.25), wanted_labels(10, 400, 0.25), wanted_labels(5, 0, 0.25)
    ((10, 40), (10, 40), (0, 0))

    Args:
      positives: number found.
      negatives: number found.
      ratio: positives divided by negatives; 0 keeps all labels.
    """
    if not ratio:
        return positives, negatives
    if not positives or not negatives:
        return 0, 0
    if positives > ratio * negatives:
        return max(1, int(ratio * negatives + 0.5)), negatives
    return positives, min(negatives, max(1, int(positives / ratio + 0.5)))


def _bound_of(wanted: int, found: tuple[int, Sequence[int]]) -> int:
    """Returns the bound that the draws of ``wanted`` labels are below, of so many labels and their smallest draws."""
    count, draws = found
    if wanted >= count:
        return DRAWS
    return draws[wanted] if wanted < len(draws) else DRAWS * wanted // count


def _write_labels(shard: Shard, path: str) -> None:
    bounds = dict(files.read_json(f"{shard.workspace}/{_BOUNDS}"))
    output = shard.records("labels", TopicLabels)
    for article, found, unlisted in _labelled(shard.workspace, path):
        shard.read()
        if not found:
            shard.reject(article.url, Rejection.NO_TOPIC, f"{len(article.hubs)} hubs, none of a topic", article.title)
            continue
        topics, labels = list[int](), list[int]()
        for label, name, side in ((POSITIVE, "positive", found), (NEGATIVE, "negative", unlisted)):
            kept = sorted(topic for topic, number in side.items() if number < bounds[topic][label == NEGATIVE])
            topics += kept
            labels += [label] * len(kept)
            shard.tally(f"{name} labels", len(kept))
            shard.tally(f"{name} labels down-sampled", len(side) - len(kept))
        if topics:
            output.write(TopicLabels(article.doc_id, tuple(topics), tuple(labels)))
            shard.written()
        else:
            detail = f"all of its {len(found)} positives and {len(unlisted)} negatives"
            shard.reject(article.url, Rejection.DOWN_SAMPLED, detail, article.title)


JOB = Job(
    name="topics",
    example="newsembed topics --articles work/clean --hubs work/extract --entities work/entities --output work/topics",
    inputs=(
        ARTICLES,
        InputSpec("hubs", "folder that `newsembed extract` wrote"),
        optional("entities", "folder that `newsembed entities` wrote: hubs that name one entity share a topic"),
        optional("alias_file", "your own alias table instead: TSV of alias, entity id, prior"),
        optional("topics_file", "edited copy of a topics.tsv that replaces the rules", for_workers=lambda _: False),
    ),
    options=TopicsOptions,
    run=run,
)
