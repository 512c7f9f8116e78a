"""``newsembed topics``: document-topic labels from the hubs that list an article (section 2.2.3 of the paper)."""

import collections
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from ...tasks.errors import InputError
from .. import files
from ..jobs import InputSpec, Job, JobRun
from ..parquet import read_batches, read_records, read_stream, shard_paths
from ..records import Article, Hub, Rejection, TopicLabels
from ..shards import Shard
from .choose import Candidate, Verdict, choose

_HUBS = "_hub_topics/part-00000-of-00001.parquet"
_COUNTS = "_label_counts"


@dataclasses.dataclass(frozen=True)
class TopicsOptions:
    """What makes a hub title a topic, and how labels are sampled."""

    max_topics: int = dataclasses.field(default=600, metadata={"help": "topics kept, the most documented first"})
    min_publishers: int = dataclasses.field(default=2, metadata={"help": "publishers that must have a hub of the topic"})
    min_documents: int = dataclasses.field(default=10, metadata={"help": "articles that the topic's hubs must list"})
    positive_ratio: float = dataclasses.field(
        default=0.25, metadata={"help": "positives of a topic are down-sampled to this share of its negatives"}
    )

    def __post_init__(self) -> None:
        for name in ("max_topics", "min_publishers", "min_documents", "positive_ratio"):
            if getattr(self, name) <= 0:
                raise InputError(f"got {getattr(self, name)}, expected more than 0", field=f"--{name}", remedy="see --help for the default")


@dataclasses.dataclass(frozen=True, slots=True)
class HubTopic:
    """The topic of a hub of a publisher."""

    hub_id: str
    publisher: str
    topic_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class LabelCount:
    """Positives and negatives of a topic in one shard of articles, before sampling."""

    topic_id: int
    positives: int
    negatives: int


def run(job: JobRun) -> None:
    """Chooses topics, counts the labels they would give, samples the labels.

    Streams: ``labels`` and, in the folder's root, ``topics.tsv`` with every candidate, kept or not, and why.
    """
    paths = shard_paths(f"{job.input('articles')}/articles")
    hubs = files.list_files(f"{job.input('hubs')}/hubs/part-*.parquet")
    job.map_shards("choose", partial(_choose_topics, paths=paths, options=job.options), [hubs], accounted=False)
    job.map_shards("count", _count_labels, paths, accounted=False)
    job.map_shards("label", partial(_write_labels, options=job.options), paths)
    with files.open_read(f"{job.workspace}/topics.tsv") as source:
        job.extra["topics"] = sum(line.rstrip().endswith(f"\t{Verdict.KEPT.value}") for line in source.read().decode("utf-8").splitlines())


def labels_of(
    article_hubs: Sequence[str], publisher: str, topics: Mapping[str, int], offered: Mapping[str, frozenset[int]]
) -> tuple[set[int], set[int]]:
    """(positive, negative) topics of an article.

    A topic is positive if one of its hubs lists the article, and negative only if the article's publisher has a hub of that
    topic which does not: of a publisher without one nothing can be known.
    """
    positives = {topics[hub] for hub in article_hubs if hub in topics}
    return positives, set(offered.get(publisher, frozenset()) - positives) if positives else set()


def keep_shares(counts: Mapping[int, tuple[int, int]], ratio: float) -> dict[int, float]:
    """Share of each topic's positives to keep, so that they are at most ``ratio`` times its negatives."""
    return {topic: min(1.0, ratio * negatives / positives) if positives else 1.0 for topic, (positives, negatives) in counts.items()}


def draw(doc_id: str, topic: int) -> float:
    """A number in [0, 1) that depends on nothing but the label."""
    return int.from_bytes(hashlib.blake2b(f"{doc_id}:{topic}".encode(), digest_size=6).digest(), "big") / (1 << 48)


def _choose_topics(shard: Shard, hub_paths: Sequence[str], paths: Sequence[str], options: TopicsOptions) -> None:
    present: set[str] = set()
    authors: set[str] = set()
    for path in paths:
        for batch in read_batches(path, ["doc_id", "authors"]):
            present.update(batch.column("doc_id").to_pylist())
            authors.update(name.casefold() for names in batch.column("authors").to_pylist() for name in names)
    every = [hub for path in hub_paths for hub in read_records(path, Hub)]
    candidates, titles = choose(every, present, authors, options.min_publishers, options.min_documents, options.max_topics)
    numbers = {one.title: number for number, one in enumerate(one for one in candidates if one.verdict is Verdict.KEPT)}
    output = shard.records("_hub_topics", HubTopic)
    for hub in sorted(every, key=lambda one: one.hub_id):
        if titles[hub.hub_id] in numbers:
            output.write(HubTopic(hub.hub_id, hub.publisher, numbers[titles[hub.hub_id]]))
    with files.open_write(f"{shard.workspace}/topics.tsv") as sink:
        sink.write("".join(_tsv_lines(candidates, numbers)).encode("utf-8"))


def _tsv_lines(candidates: Sequence[Candidate], numbers: Mapping[str, int]) -> Iterator[str]:
    yield "topic_id\ttitle\tdocuments\tpublishers\tverdict\n"
    for one in candidates:
        yield f"{numbers.get(one.title, '')}\t{one.title}\t{one.documents}\t{one.publishers}\t{one.verdict.value}\n"


def _topics(workspace: str) -> tuple[dict[str, int], dict[str, frozenset[int]]]:
    """(topic by hub_id, topics that a publisher has hubs of)."""
    topics, offered = {}, collections.defaultdict(set)
    for row in read_records(f"{workspace}/{_HUBS}", HubTopic):
        topics[row.hub_id] = row.topic_id
        offered[row.publisher].add(row.topic_id)
    return topics, {publisher: frozenset(numbers) for publisher, numbers in offered.items()}


def _count_labels(shard: Shard, path: str) -> None:
    topics, offered = _topics(shard.workspace)
    counts: dict[int, list[int]] = collections.defaultdict(lambda: [0, 0])
    for article in read_records(path, Article):
        for side, numbers in enumerate(labels_of(article.hubs, article.publisher, topics, offered)):
            for number in numbers:
                counts[number][side] += 1
    output = shard.records(_COUNTS, LabelCount)
    for number in sorted(counts):
        output.write(LabelCount(number, *counts[number]))


def _write_labels(shard: Shard, path: str, options: TopicsOptions) -> None:
    topics, offered = _topics(shard.workspace)
    totals: dict[int, tuple[int, int]] = {}
    for row in read_stream(f"{shard.workspace}/{_COUNTS}", LabelCount):
        positives, negatives = totals.get(row.topic_id, (0, 0))
        totals[row.topic_id] = (positives + row.positives, negatives + row.negatives)
    shares = keep_shares(totals, options.positive_ratio)
    output = shard.records("labels", TopicLabels)
    for article in read_records(path, Article):
        shard.read()
        found, negatives_of = labels_of(article.hubs, article.publisher, topics, offered)
        kept = sorted(topic for topic in found if draw(article.doc_id, topic) < shares[topic])
        dropped = len(found) - len(kept)
        if not found:
            shard.reject(article.url, Rejection.NO_TOPIC, f"{len(article.hubs)} hubs, none of a topic", article.title)
            continue
        if not kept and not negatives_of:
            shard.reject(article.url, Rejection.DOWN_SAMPLED, f"all of its {dropped} positives", article.title)
            continue
        unlisted = sorted(negatives_of)
        output.write(TopicLabels(article.doc_id, (*kept, *unlisted), (1,) * len(kept) + (0,) * len(unlisted)))
        shard.written()
        shard.tally("positive labels", len(kept))
        shard.tally("negative labels", len(unlisted))
        shard.tally("positive labels down-sampled", dropped)


JOB = Job(
    name="topics",
    summary="document-topic labels from the hubs that list an article",
    example="newsembed topics --articles work/clean --hubs work/extract --output work/topics",
    inputs=(InputSpec("articles", "folder that `newsembed clean` wrote"), InputSpec("hubs", "folder that `newsembed extract` wrote")),
    options=TopicsOptions,
    run=run,
)
