"""``newsembed pairs``: writes pairs of texts that belong together, without mined negatives, as TFRecords."""

import functools
from collections.abc import Iterable, Iterator, Mapping

import apache_beam as beam

from ...errors import InputError
from ...formats.manifest import HELD_OUT
from ...formats.parquet import read_records, shard_paths
from ...formats.records import Post
from ...tasks.vocabulary import Vocabulary
from ..accounting import Counts
from ..jobs import InputSpec, Job, JobRun, OwnManifest
from ..shards import GroupByShard, ProcessShards, shard_of
from ..texts import vocabulary_input_digest, vocabulary_path
from ..translated_documents import read_places
from .kinds import KINDS
from .options import PairsOptions
from .writing import HELD_OUT_EXAMPLES, TRAINING_EXAMPLES, write_pairs

__all__ = ["JOB", "PairsOptions"]


def read_posts(path: str) -> Iterator[tuple[str, str]]:
    """Yields (doc_id of the article, text) of every post of one Parquet shard."""
    for post in read_records(path, Post):
        yield post.doc_id, post.text


def place_posts(
    grouped: tuple[str, Mapping[str, Iterable[str | int]]], shard_count: int
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields (shard of the article, (doc_id, text)) of the posts of one article; a missing article gets some shard."""
    doc_id, groups = grouped
    places = list(groups["places"])
    shard = int(min(places)) if places else shard_of(doc_id, shard_count)
    for text in groups["posts"]:
        yield shard, (doc_id, str(text))


def run(run: JobRun) -> None:
    """Writes the pairs of every shard of articles; posts are sent to the shard of their article first.

    Raises:
      InputError: if there is no pair to train on, none to hold out where some are asked for, or ``--posts`` is missing.
    """
    articles = shard_paths(f"{run.input('articles')}/articles")
    vocabulary = vocabulary_path(run.input("vocabulary"))
    Vocabulary.load(vocabulary)  # reports a broken file here, not from inside a worker
    options: PairsOptions = run.options
    write = functools.partial(write_pairs, articles=articles, vocabulary=vocabulary, options=options)
    if KINDS[options.of].reads_posts:
        if not run.inputs["posts"]:
            remedy = "give the folder that `newsembed extract --posts` wrote"
            raise InputError(f"--of={options.of} needs posts", field="--posts", remedy=remedy)
        shards = shard_paths(f"{run.input('posts')}/posts")
        phase = run.phase("pairs", len(articles))
        with run.pipeline(phase) as pipeline:
            posts = pipeline | "Posts" >> beam.Create(shards) | beam.FlatMap(read_posts)
            places = pipeline | "Articles" >> beam.Create(list(enumerate(articles))) | beam.FlatMapTuple(read_places)
            joined = {"posts": posts, "places": places} | beam.CoGroupByKey()
            placed = joined | beam.FlatMap(place_posts, len(articles))
            _ = placed | GroupByShard(len(articles)) | ProcessShards(write, phase)
    else:
        run.map_shards("pairs", write, [()] * len(articles))
    _describe(run)


def _describe(run: JobRun) -> None:
    """Adds the counts of each set to the manifests.

    Raises:
      InputError: if there is no pair to train on, or none to hold out where some are asked for.
    """
    tallies = run.counts_of("pairs").tallies
    training, held_out = (_counts_of_sets(tallies, prefix) for prefix in (TRAINING_EXAMPLES, HELD_OUT_EXAMPLES))
    source = run.input("articles")
    if not training:
        raise InputError("there are no pairs", path=source, remedy="look at the rejections in dead_letters/")
    run.extra["examples"] = training
    options: PairsOptions = run.options
    if options.held_out_share or options.held_out_from:
        if not held_out:
            remedy = "raise --held_out_share, or name a day that the articles reach"
            raise InputError("no pair is held out", path=source, field="--held_out_share", remedy=remedy)
        count = sum(held_out.values())
        facts = {"examples": held_out}
        run.folders[HELD_OUT] = OwnManifest(Counts(count, count), facts)
        run.extra["held_out"] = facts


def _counts_of_sets(tallies: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in sorted(tallies.items()) if name.startswith(prefix)}


JOB = Job(
    name="pairs",
    summary="pairs of an article with its title, link texts or posts, as TFRecords",
    example=(
        "newsembed pairs --of=titles --articles work/clean --vocabulary work/vocabulary --held_out_share=0.1 \\\n"
        "      --output work/pairs"
    ),
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec(
            "vocabulary",
            "folder that `newsembed vocabulary` or `newsembed import-hf` wrote, or its vocab.txt",
            digest=vocabulary_input_digest,
        ),
        InputSpec("posts", "folder that `newsembed extract --posts` wrote, for --of=posts", required=False),
    ),
    options=PairsOptions,
    run=run,
)
