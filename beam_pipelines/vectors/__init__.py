"""``newsembed vectors``: computes a vector per document in each auxiliary space: entity, image and text (section 2.2).

Entity: the mean of the embeddings of the linked entities, weighted by rarity. Image: the bits of the wavelet hash of
the thumbnail as ±1. Text: the SIF mean of the words of title, keywords and lead, without the first principal component.
With ``--space learned=ENCODER``, title and body are embedded by an encoder too, for example one that was trained on the
triplets of an earlier build.
"""

import collections
import dataclasses
import functools
from collections.abc import Collection, Iterator
from typing import Final

import numpy as np

from ...errors import InputError
from ...formats import files, parquet
from ...formats.arrays import read_arrays, write_arrays
from ...formats.command_line import option
from ...formats.records import Article, Rejection, Space, Vector
from .. import encoders
from ..arrays import read_array, write_array
from ..entities import tables
from ..entities.linking import Linker
from ..entities.mentions import Mentions, find_mentions
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard, shard_numbers
from ..shuffle import Received, Rows, send
from ..texts import read_text_batches
from .spaces import Statistics, entity_vector, image_vector, remove_component, sif_weights, text_vector

_IMAGES: Final = Rows("_images", np.dtype([("image", "<u8"), ("documents", "<i8")]))  # a hash, documents that use it
_BOILERPLATE: Final = "_boilerplate"
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass(frozen=True)
class VectorsOptions:
    """Options of ``vectors``."""

    lead_words: int = option(60, "words of the body in the text vector, with title and keywords; 0 as in the paper")
    sif_smoothing: float = option(1e-3, "a in the weight a / (a + frequency) of a word")
    max_image_uses: int = option(12, "ignore an image hash of more documents than this: a logo or placeholder")

    def __post_init__(self) -> None:
        if self.lead_words < 0 or self.sif_smoothing <= 0 or self.max_image_uses < 1:
            raise InputError(
                "got a number out of range",
                field="--lead_words, --sif_smoothing, --max_image_uses",
                remedy="lead_words from 0, sif_smoothing above 0, max_image_uses from 1",
            )


@dataclasses.dataclass(frozen=True)
class Learned:
    """The encoder of the learned space.

    Attributes:
      opener: opens it in a worker.
      name: what it opens.
    """

    opener: encoders.Opener
    name: str


@dataclasses.dataclass(frozen=True)
class Sources:
    """Paths of the tables in use.

    Attributes:
      aliases: alias table.
      entities: embeddings of entities.
      words: embeddings of words.
      run: the job's workspace; makes a process reload files that changed between two jobs.
    """

    aliases: str
    entities: str
    words: str
    run: str


def run(job: JobRun) -> None:
    """Links the articles and collects statistics, adds them up, finds the images of many, then embeds the articles."""
    options: VectorsOptions = job.options
    sources = _sources(job)
    load_tables(sources)  # reports a broken file here, not from inside a worker
    shards = parquet.shard_paths(f"{job.input('articles')}/articles")
    names = [f"part-{index:05d}-of-{len(shards):05d}" for index in range(len(shards))]
    statistics = [f"{job.workspace}/_statistics/{name}.npz" for name in names]
    mentions = [f"{job.workspace}/_mentions/{name}.parquet" for name in names]
    learned = Learned(encoders.opener(), learned_encoder(job.input("space"))) if job.inputs["space"] else None
    with job.graph("vectors", len(shards)):
        job.map_shards("link", functools.partial(_link, options, sources, len(shards)), shards)
        logos = functools.partial(_find_boilerplate, options.max_image_uses)
        job.map_rows("images", logos, [None] * len(shards), [("link", _IMAGES)], accounted=False)
        job.map_shards("weigh", _weigh, [statistics], accounted=False)
        payloads = list(zip(mentions, shards, strict=True))
        job.map_shards("embed", functools.partial(_embed, options, sources, learned), payloads)


def learned_encoder(space: str) -> str:
    """Returns the encoder in ``learned=ENCODER``.

    Raises:
      InputError: for another form.
    """
    name, _, encoder = space.partition("=")
    if name != Space.LEARNED or not encoder:
        remedy = "write --space learned=ENCODER, such as learned=model:work/model; the other spaces are always there"
        raise InputError(f"got {space!r}", field="--space", remedy=remedy)
    return encoder


def _space_digest(space: str) -> str:
    return encoders.digest(learned_encoder(space))


def _sources(job: JobRun) -> Sources:
    """Returns the user's tables if given, else those of the entities folder.

    Raises:
      InputError: if only one of alias table and entity embeddings is given.
    """
    if bool(job.inputs["alias_file"]) != bool(job.inputs["entity_embeddings"]):
        raise InputError(
            "got one of two files that belong together",
            field="--alias_file, --entity_embeddings",
            remedy="give both or neither",
        )

    def table(name: str, ours: str) -> str:
        return job.input(name) if job.inputs[name] else f"{job.input('entities')}/{ours}"

    return Sources(
        aliases=table("alias_file", "aliases.tsv"),
        entities=table("entity_embeddings", "entities.npy"),
        words=table("word_embeddings", "words.npy"),
        run=job.workspace,
    )


@dataclasses.dataclass(frozen=True)
class Tables:
    """The loaded tables."""

    linker: Linker
    entities: tables.Floats
    words: tables.Floats
    word_rows: dict[str, int]
    word_frequencies: tuple[float, ...]


@functools.lru_cache(maxsize=1)
@tables.collecting_later()
def load_tables(sources: Sources) -> Tables:
    """Loads alias table and embeddings, once per process.

    Raises:
      InputError: if a file is broken, no alias has an embedding, or words have no frequencies.
    """
    entities, words = tables.read_embeddings(sources.entities), tables.read_embeddings(sources.words)
    rows, aliases = entities.rows(), tables.read_aliases(sources.aliases)
    if aliases and not any(alias.entity in rows for alias in aliases):
        raise InputError(
            f"no entity of the alias table has an embedding in {sources.entities}",
            path=sources.aliases,
            field=aliases[0].entity,
            remedy="use the same entity ids in both files",
        )
    if words.keys and not words.counts:
        raise InputError(
            "got no frequencies",
            path=sources.words,
            remedy="write word and relative frequency into the .tsv next to the .npy",
        )
    return Tables(Linker(aliases, rows), entities.values, words.values, words.rows(), words.counts)


def _link(options: VectorsOptions, sources: Sources, shard_count: int, shard: Shard, path: str) -> None:
    """Writes the mentions of every article and the statistics of the shard; sends how often it uses each image."""
    loaded = load_tables(sources)
    sif = sif_weights(loaded.word_frequencies, options.sif_smoothing)
    sums = Statistics.empty(len(loaded.entities))
    texts: dict[str, list[tables.Floats]] = collections.defaultdict(list)
    images: collections.Counter[bytes] = collections.Counter()
    writer = shard.records("_mentions", Mentions)
    for article in parquet.read_records(path, Article):
        shard.read()
        mentions = find_mentions(article, loaded.linker, loaded.word_rows, options.lead_words)
        sums.documents += 1
        sums.entity_documents[list(mentions.entities)] += 1
        if mentions.image_hash:
            images[mentions.image_hash] += 1
        text = text_vector(mentions, loaded.words, sif)
        if text is not None:
            texts[mentions.language].append(text)
        writer.write(mentions)
        shard.written()
    for language, vectors in sorted(texts.items()):
        sums.add_texts(language, vectors)
    write_arrays(shard.path("_statistics", "npz"), sums.to_arrays())
    used = np.array([(int.from_bytes(image, "big"), count) for image, count in images.items()], _IMAGES.dtype)
    # Similar images have similar hashes: the product spreads them.
    send(shard, _IMAGES.stream, used, shard_numbers(used["image"] * _SPREAD, shard_count))


def _find_boilerplate(max_image_uses: int, shard: Shard, received: Received) -> None:
    """Writes the images that more documents than this share, logos and placeholders, of those that a shard receives."""
    used = received.rows[_IMAGES.stream]
    images, places = np.unique(used["image"], return_inverse=True)
    documents = np.zeros(len(images), np.int64)
    np.add.at(documents, places, used["documents"])
    write_array(shard.path(_BOILERPLATE, "npy"), images[documents > max_image_uses])


def _weigh(shard: Shard, parts: list[str]) -> None:
    """Adds up the statistics of all shards, and joins the lists of their images."""
    total = Statistics.from_arrays(read_arrays(parts[0]))
    for part in parts[1:]:
        total.add(Statistics.from_arrays(read_arrays(part)))
    found = [read_array(path) for path in files.list_files(f"{shard.workspace}/{_BOILERPLATE}/*.npy")]
    write_arrays(f"{shard.workspace}/_weights.npz", {**total.to_arrays(), "boilerplate": np.concatenate(found)})


def _embed(
    options: VectorsOptions, sources: Sources, learned: Learned | None, shard: Shard, paths: tuple[str, str]
) -> None:
    """Writes the vectors of every document of a shard, given the paths of its mentions and its articles."""
    spaces = [space for space in Space if learned or space != Space.LEARNED]
    writers = {space: shard.records(space.value, Vector) for space in spaces}
    embedder = _embedder(options, sources, shard.workspace)
    encoded = _encoded(learned, shard.workspace, paths[1]) if learned else None
    for mentions in parquet.read_records(paths[0], Mentions):
        shard.read()
        own = next(encoded) if encoded else None  # of every article, in the order of the mentions
        if mentions.byline_date is None:
            # Neighbors are searched by date: an article without one can be neither positive nor negative.
            shard.reject(mentions.doc_id, Rejection.NO_BYLINE_DATE)
            continue
        vectors = embedder.vectors(mentions)
        if own is not None and own.any():
            vectors[Space.LEARNED] = own
        for space in spaces:
            shard.tally(f"{space.value}_vectors" if space in vectors else f"no_{space.value}_vector")
        if not vectors:
            shard.reject(mentions.doc_id, Rejection.NO_VECTOR, "no known entity, image or word")
            continue
        for space, values in vectors.items():
            key = (mentions.doc_id, space.value, mentions.byline_date, mentions.publisher, mentions.language)
            writers[space].write(Vector(*key, tuple(values.tolist())))
        shard.written()


def _encoded(learned: Learned, workspace: str, path: str) -> Iterator[tables.Floats]:
    """Yields the embedding of title and body of every article of a shard, float32 ``[D]``."""
    encoder = encoders.opened(learned.opener, learned.name, workspace)
    for batch in read_text_batches(path):
        titles, bodies = [article.title for article in batch], [article.body for article in batch]
        yield from np.asarray(encoders.embed_unit(encoder, bodies, learned.name, titles))


@functools.lru_cache(maxsize=1)
def _embedder(options: VectorsOptions, sources: Sources, workspace: str) -> "Embedder":
    weights = read_arrays(f"{workspace}/_weights.npz")
    boilerplate = {image.to_bytes(8, "big") for image in weights["boilerplate"].tolist()}
    return Embedder(load_tables(sources), Statistics.from_arrays(weights), boilerplate, options)


class Embedder:
    """Computes the vectors of a document from its mentions.

    Args:
      loaded: alias table and embeddings.
      statistics: statistics of the whole corpus.
      boilerplate: hashes of images that say nothing.
      options: options of the job.
    """

    def __init__(
        self, loaded: Tables, statistics: Statistics, boilerplate: Collection[bytes], options: VectorsOptions
    ) -> None:
        self._loaded = loaded
        self._rarity = statistics.rarity()
        self._components = statistics.components()
        self._boilerplate = boilerplate
        self._sif = sif_weights(loaded.word_frequencies, options.sif_smoothing)

    def vectors(self, mentions: Mentions) -> dict[Space, tables.Floats]:
        """Returns the vectors that are not zero, by space."""
        found: dict[Space, tables.Floats] = {}
        entity = entity_vector(mentions, self._loaded.entities, self._rarity)
        if entity is not None and entity.any():
            found[Space.ENTITY] = entity
        if mentions.image_hash and mentions.image_hash not in self._boilerplate:
            found[Space.IMAGE] = image_vector(mentions.image_hash)
        text = text_vector(mentions, self._loaded.words, self._sif)
        if text is not None:
            text = remove_component(text, mentions.language, self._components)
            if text.any():
                found[Space.TEXT] = text
        return found


JOB = Job(
    name="vectors",
    summary="compute entity, image and text vectors of every document",
    example="newsembed vectors --articles work/clean --entities work/entities --output work/vectors",
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("entities", "folder that `newsembed entities` wrote"),
        InputSpec(
            "alias_file",
            "your own TSV of alias, entity id, prior, instead of that of the entities folder",
            required=False,
        ),
        InputSpec("entity_embeddings", "its embeddings: X.npy with keys in X.tsv, or word2vec text", required=False),
        InputSpec("word_embeddings", "your own X.npy with word and relative frequency in X.tsv", required=False),
        InputSpec(
            "space",
            f"learned=ENCODER: a further space, of title and body as an encoder embeds them: {encoders.FORMS}",
            required=False,
            digest=_space_digest,
        ),
    ),
    options=VectorsOptions,
    run=run,
)
