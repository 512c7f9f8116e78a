"""``newsembed topics``: derives document-topic labels from the hubs that list an article (section 2.2.2)."""

import collections
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence

from ...errors import require_option
from ...formats import files
from ...formats.command_line import option
from ...formats.parquet import read_records, read_stream, shard_paths
from ...formats.records import Rejection, TopicLabels
from ..entities.tables import read_aliases
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard
from ..texts import UNDETERMINED
from .choose import (
    Decision,
    Evidence,
    HubHead,
    Verdict,
    choose,
    gather,
    group_titles,
    hub_title,
    link_titles,
    obey,
    rank_topics,
)
from .listings import (
    HUBS,
    LISTINGS,
    count_groups,
    count_listings,
    group_sizes,
    read_groups,
    send_listings,
    title_counts,
    write_groups,
)
from .names import join_entities, link_names
from .review import TOPICS_FILE, read_review, write_review, write_tsv
from .sampling import DRAWS, NEGATIVE, POSITIVE, DrawCollector, LeastDraws, draw, keep_bounds, merge_draws
from .skew import FEW_LABELS, LabelCount, LabelCounter, skew_rows, topic_totals

_HUBS, _TOPICS, _BOUNDS, _LINKED = "_hub_topics", "_topics", "_bounds", "_linked_titles.json"
_COUNTS, _DRAWS, _SAMPLED_COUNTS = "_label_counts", "_least_draws", "_sampled_counts"
_SKEW_FILE = "skew.tsv"


@dataclasses.dataclass(frozen=True)
class TopicsOptions:
    """Options of ``topics``: the minima of a topic, which a ``topics_file`` overrides, and the sampling of labels."""

    max_topics: int = option(600, "most topics to keep, those with the most articles first")
    min_publishers: int = option(2, "least number of publishers with a hub of the topic")
    min_documents: int = option(10, "least number of articles that the hubs of the topic list")
    link_names: bool = option(
        True, "titles that name one section, place or language, in any language, are one topic: Football, Fútbol"
    )
    positive_ratio: float = option(
        0.25,
        "ratio of the positives of a topic to its negatives; labels of the side in excess are dropped at "
        "random; 0 keeps all",
    )

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="topics")
        for name in ("max_topics", "min_publishers", "min_documents"):
            require(getattr(self, name) > 0, name, getattr(self, name), "more than 0")
        is_ratio = 0 <= self.positive_ratio < math.inf
        require(is_ratio, "positive_ratio", self.positive_ratio, "a ratio, or 0 to keep all labels")


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """The columns of an :class:`~newsembed.formats.records.Article` that labels need."""

    doc_id: str
    url: str
    publisher: str
    title: str
    language: str
    hubs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class HubTopic:
    """The topic of a hub of a publisher."""

    hub_id: str
    publisher: str
    topic_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class Topic:
    """The number of a topic, from 0, and its name."""

    topic_id: int
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class TopicBounds:
    """A topic; labels are kept whose draw is below the bound of positives or of negatives, see `sampling`."""

    topic_id: int
    name: str
    positives: int
    negatives: int


def run(job: JobRun) -> None:
    """Chooses topics, or takes those of ``topics_file``, counts their labels, then samples the labels.

    Writes the stream ``labels``, ``topics.tsv`` with the verdict on every title, and ``skew.tsv`` with the labels of
    each topic before and after sampling.
    """
    review = read_review(job.input("topics_file"), job.options.max_topics) if job.inputs["topics_file"] else None
    entities, alias_file = job.inputs["entities"], job.inputs["alias_file"]
    aliases = job.input("alias_file") if alias_file else f"{job.input('entities')}/aliases.tsv" if entities else ""
    if aliases:
        read_aliases(aliases)  # reports a broken table here, not from inside a worker
    paths = shard_paths(f"{job.input('articles')}/articles")
    hubs = files.list_files(f"{job.input('hubs')}/hubs/part-*.parquet")
    sources, count = [*((HUBS, path) for path in hubs), *(("articles", path) for path in paths)], len(paths)
    with job.graph("topics", max(count, len(sources))):
        send = functools.partial(send_listings, shard_count=count)
        job.map_shards("listings", send, sources, accounted=False, listed=False)
        sent = [("listings", LISTINGS)]
        job.map_rows("title counts", count_listings, [None] * count, sent, accounted=False, listed=False)
        group = functools.partial(_group_titles, aliases=aliases, review=review, options=job.options)
        job.map_shards("groups", group, [hubs], accounted=False, listed=False)
        job.map_shards("group sizes", count_groups, range(count), accounted=False, listed=False)
        choose_topics = functools.partial(_choose_topics, review=review, options=job.options)
        job.map_shards("choose", choose_topics, [hubs], accounted=False)
        job.map_shards("count", _count_labels, paths, accounted=False)
        job.map_shards(
            "balance", functools.partial(_balance, ratio=job.options.positive_ratio), [None], accounted=False
        )
        job.map_shards("label", _write_labels, paths)
        job.map_shards("skew", _write_skew, [None], accounted=False)
    job.extra["topics"] = job.counts_of("skew").tallies.get("topics", 0)


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


def _read_evidence(
    workspace: str, hub_paths: Sequence[str]
) -> tuple[list[HubHead], dict[str, str], dict[str, Evidence]]:
    """Returns the hubs by id, without what they list; the title of each; and the evidence for each title."""
    hubs = sorted((hub for path in hub_paths for hub in read_records(path, HubHead)), key=lambda hub: hub.hub_id)
    titles = {hub.hub_id: hub_title(hub) for hub in hubs}
    return hubs, titles, gather(hubs, titles, title_counts(workspace, set(titles.values())))


def _group_titles(
    shard: Shard,
    hub_paths: Sequence[str],
    aliases: str,
    review: Mapping[str, Decision] | None,
    options: TopicsOptions,
) -> None:
    """Writes which titles may form a topic together; the number of its articles then decides on it."""
    _, _, evidence = _read_evidence(shard.workspace, hub_paths)
    if review is not None:
        kept = {title: one.topic for title, one in obey(review, evidence).items() if one.verdict is Verdict.KEPT}
        write_groups(shard.workspace, {title: (False, topic) for title, topic in kept.items()})
        return
    of_aliases = link_titles(evidence, read_aliases(aliases)) if aliases else {}
    of_names = link_names(evidence) if options.link_names else {}
    entities = join_entities(of_aliases, of_names)
    write_groups(shard.workspace, group_titles(evidence, entities))
    files.write_json(f"{shard.workspace}/{_LINKED}", {"of_entities": len(entities), "of_names": len(of_names)})


def _choose_topics(
    shard: Shard, hub_paths: Sequence[str], review: Mapping[str, Decision] | None, options: TopicsOptions
) -> None:
    hubs, titles, evidence = _read_evidence(shard.workspace, hub_paths)
    sizes = group_sizes(shard.workspace)
    if review is None:
        limits = {name: getattr(options, name) for name in ("min_publishers", "min_documents", "max_topics")}
        decisions, documents = choose(evidence, read_groups(shard.workspace), sizes, **limits)
        linked = files.read_json(f"{shard.workspace}/{_LINKED}")
        if linked["of_entities"]:
            shard.tally("titles/of an entity", linked["of_entities"])
            shard.tally("titles/of a section, place or language", linked["of_names"])
    else:
        decisions, documents = obey(review, evidence), {topic: size for (_, topic), size in sizes.items()}
    topics, names = shard.records(_TOPICS, Topic), rank_topics(documents)
    for number, name in enumerate(names):
        topics.write(Topic(number, name))
    numbers = {name: number for number, name in enumerate(names)}
    output = shard.records(_HUBS, HubTopic)
    for hub in hubs:
        decision = decisions[titles[hub.hub_id]]
        if decision.verdict is Verdict.KEPT:
            output.write(HubTopic(hub.hub_id, hub.publisher, numbers[decision.topic]))
    write_review(f"{shard.workspace}/{TOPICS_FILE}", decisions, evidence, names)
    for title, decision in decisions.items():
        shard.tally(f"titles/{decision.verdict.value}")
        shard.tally(f"hubs/{decision.verdict.value}", evidence.get(title, Evidence()).hubs)


@functools.lru_cache(maxsize=1)  # every shard of a process asks for it
def _hub_topics(workspace: str) -> tuple[dict[str, int], dict[str, frozenset[int]]]:
    """Returns the topic of each hub, and the topics of the hubs of each publisher."""
    topics, offered = {}, collections.defaultdict(set)
    for row in read_stream(f"{workspace}/{_HUBS}", HubTopic):
        topics[row.hub_id] = row.topic_id
        offered[row.publisher].add(row.topic_id)
    return topics, {publisher: frozenset(numbers) for publisher, numbers in offered.items()}


def _labelled(workspace: str, path: str) -> Iterator[tuple[Member, set[int], set[int]]]:
    """Yields each article with its positive and negative topics."""
    topics, offered = _hub_topics(workspace)
    for article in read_records(path, Member):
        yield article, *labels_of(article.hubs, article.publisher, topics, offered)


def _count_labels(shard: Shard, path: str) -> None:
    names = {topic.topic_id: topic.name for topic in read_stream(f"{shard.workspace}/{_TOPICS}", Topic)}
    counter, collector = LabelCounter(), DrawCollector()
    for article, positives, negatives in _labelled(shard.workspace, path):
        counter.add(article.language or UNDETERMINED, article.publisher, positives, negatives)
        for label, numbers in ((POSITIVE, positives), (NEGATIVE, negatives)):
            for number in numbers:
                collector.add(number, label, draw(article.doc_id, names[number]))
    output, draws = shard.records(_COUNTS, LabelCount), shard.records(_DRAWS, LeastDraws)
    for count in counter.counts():
        output.write(count)
    for least in collector.least():
        draws.write(least)


def _balance(shard: Shard, _: None, ratio: float) -> None:
    totals = topic_totals(read_stream(f"{shard.workspace}/{_COUNTS}", LabelCount))
    draws = merge_draws(read_stream(f"{shard.workspace}/{_DRAWS}", LeastDraws))
    bounds = keep_bounds({number: (one.positives, one.negatives) for number, one in totals.items()}, draws, ratio)
    output = shard.records(_BOUNDS, TopicBounds)
    for topic in read_stream(f"{shard.workspace}/{_TOPICS}", Topic):
        output.write(TopicBounds(topic.topic_id, topic.name, *bounds.get(topic.topic_id, (DRAWS, DRAWS))))


def _write_labels(shard: Shard, path: str) -> None:
    bounds = {row.topic_id: row for row in read_stream(f"{shard.workspace}/{_BOUNDS}", TopicBounds)}
    output, counter = shard.records("labels", TopicLabels), LabelCounter()
    for article, found, unlisted in _labelled(shard.workspace, path):
        shard.read()
        if not found:
            shard.reject(article.url, Rejection.NO_TOPIC, f"{len(article.hubs)} hubs, none of a topic", article.title)
            continue
        draws = {topic: draw(article.doc_id, bounds[topic].name) for topic in found | unlisted}
        kept = sorted(topic for topic in found if draws[topic] < bounds[topic].positives)
        negatives = sorted(topic for topic in unlisted if draws[topic] < bounds[topic].negatives)
        shard.tally("positive labels down-sampled", len(found) - len(kept))
        shard.tally("negative labels down-sampled", len(unlisted) - len(negatives))
        if not kept and not negatives:
            detail = f"all of its {len(found)} positives and {len(unlisted)} negatives"
            shard.reject(article.url, Rejection.DOWN_SAMPLED, detail, article.title)
            continue
        output.write(TopicLabels(article.doc_id, (*kept, *negatives), (1,) * len(kept) + (0,) * len(negatives)))
        counter.add(article.language or UNDETERMINED, article.publisher, kept, negatives)
        shard.written()
        shard.tally("positive labels", len(kept))
        shard.tally("negative labels", len(negatives))
    counts = shard.records(_SAMPLED_COUNTS, LabelCount)
    for count in counter.counts():
        counts.write(count)


def _write_skew(shard: Shard, _: None) -> None:
    names = {topic.topic_id: topic.name for topic in read_stream(f"{shard.workspace}/{_TOPICS}", Topic)}
    before, after = (
        list(read_stream(f"{shard.workspace}/{stream}", LabelCount)) for stream in (_COUNTS, _SAMPLED_COUNTS)
    )
    write_tsv(f"{shard.workspace}/{_SKEW_FILE}", list(skew_rows(names, before, after)))
    found, sampled = topic_totals(before), topic_totals(after)
    shard.tally("topics", len(names))
    for side in ("positives", "negatives"):
        counts = {number: getattr(found[number], side) if number in found else 0 for number in names}
        rest = {number: getattr(sampled[number], side) if number in sampled else 0 for number in names}
        shard.tally(f"topics without {side}", sum(not count for count in counts.values()))
        shard.tally(f"topics without {side} after sampling", sum(not count for count in rest.values()))
        shard.tally(f"topics with few {side}", sum(0 < count < FEW_LABELS for count in rest.values()))


JOB = Job(
    name="topics",
    summary="derive document-topic labels from the hubs that list an article",
    example="newsembed topics --articles work/clean --hubs work/extract --entities work/entities --output work/topics",
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("hubs", "folder that `newsembed extract` wrote"),
        InputSpec(
            "entities",
            "folder that `newsembed entities` wrote: hubs whose titles name the same entity share a topic",
            required=False,
        ),
        InputSpec("alias_file", "your own alias table instead: TSV of alias, entity id, prior", required=False),
        InputSpec(
            "topics_file",
            "edited copy of a topics.tsv that an earlier run wrote; its decisions replace the rules",
            required=False,
            for_workers=lambda _: False,
        ),
    ),
    options=TopicsOptions,
    run=run,
)
