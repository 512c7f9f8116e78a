"""``newsembed vectors``: computes a vector per document in each auxiliary space: entity, image and text (section 2.2).

Entity: the mean of the embeddings of the linked entities, weighted by rarity. Image: the bits of the wavelet hash of
the thumbnail as ±1. Text: the SIF mean of the words of title, keywords and lead, without the first principal component.
"""

import collections
import dataclasses
import functools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import InputError
from ..formats import files, parquet
from ..formats.arrays import read_arrays, write_arrays
from ..formats.command_line import Options, option
from ..formats.records import Article, Rejection, Space, Vector
from .arrays import Array, Floats
from .entities import tables
from .entities.linking import Linker, Mentions, find_mentions
from .graph import Received, Rows, send
from .jobs import ARTICLES, InputSpec, Job, JobRun, optional
from .shards import Shard, shard_numbers

_IMAGES: Final = Rows("_images", np.dtype([("image", "<u8"), ("documents", "<i8")]))  # a hash, documents that use it
_BOILERPLATE: Final = "_boilerplate"
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_SMOOTHING: Final = 1e-3  # a of the SIF weights
_ENOUGH_FOR_A_COMPONENT: Final = 50  # documents that a language needs for its own principal component


@dataclasses.dataclass(frozen=True)
class VectorsOptions(Options):
    """Options of ``vectors``."""

    lead_words: int = option(60, "words of the body in text vectors, beside title and keywords; 0: the paper", ge=0)
    across_languages: bool = option(True, "entities are the same in all languages; if not, each language has its own")
    min_rarity: float = option(0.6, "rarity that an article's names need together; 1: of a name no other has", ge=0)
    max_image_uses: int = option(12, "ignore an image hash of more documents than this: a logo or placeholder", ge=1)


class Sources(NamedTuple):
    """What workers load.

    Attributes:
      aliases: path of the alias table.
      entities: path of the embeddings of entities.
      words: path of the embeddings of words.
      workspace: of the job; makes a process reload files that changed between two jobs.
    """

    aliases: str
    entities: str
    words: str
    workspace: str


def run(job: JobRun) -> None:
    """Links the articles and collects statistics, adds them up, finds the images of many, then embeds the articles."""
    options: VectorsOptions = job.options
    sources = _sources(job)
    _load_tables(sources)  # reports a broken file here, not from inside a worker
    shards, most, images = job.shards("articles"), options.max_image_uses, [("link", _IMAGES)]
    with job.graph(len(shards)):
        job.map_shards("link", _link, shards, lead_words=options.lead_words, sources=sources)
        job.map_rows("images", _find_boilerplate, [None] * len(shards), images, most=most, accounted=False)
        job.map_shards("weigh", _weigh, [None], accounted=False)
        job.map_shards("embed", _embed, [None] * len(shards), sources=sources, options=options)


def _sources(job: JobRun) -> Sources:
    """Returns the user's tables if given, else those of the entities folder.

    Raises:
      InputError: if only one of alias table and entity embeddings is given.
    """
    if bool(job.inputs["alias_file"]) != bool(job.inputs["entity_embeddings"]):
        problem, remedy = "got one of two files that belong together", "give both or neither"
        raise InputError(problem, field="--alias_file, --entity_embeddings", remedy=remedy)
    folder = job.input("entities")
    aliases, entities = (
        job.input(name) if job.inputs[name] else f"{folder}/{file}"
        for name, file in (("alias_file", "aliases.tsv"), ("entity_embeddings", "entities.npy"))
    )
    return Sources(aliases, entities, f"{folder}/words.npy", job.workspace)


class _Tables(NamedTuple):
    """The loaded tables, and the weights of words."""

    linker: Linker
    entities: Floats
    words: Floats
    word_rows: dict[str, int]
    word_weights: Floats


@functools.lru_cache(maxsize=1)
@tables.collecting_later()
def _load_tables(sources: Sources) -> _Tables:
    """Loads alias table and embeddings, once per process.

    Raises:
      InputError: if a file is broken, or no alias has an embedding.
    """
    entities, words = tables.read_embeddings(sources.entities), tables.read_embeddings(sources.words)
    rows, aliases = entities.rows(), tables.read_aliases(sources.aliases)
    if aliases and not any(alias.entity in rows for alias in aliases):
        problem = f"no entity of the alias table has an embedding in {sources.entities}"
        remedy = "use the same entity ids in both files"
        raise InputError(problem, path=sources.aliases, field=aliases[0].entity, remedy=remedy)
    return _Tables(Linker(aliases, rows), entities.values, words.values, words.rows(), sif_weights(words.counts))


def _link(shard: Shard, path: str, lead_words: int, sources: Sources) -> None:
    """Writes the mentions of every article and the statistics of the shard; sends how often it uses each image."""
    loaded = _load_tables(sources)
    documents, entities = 0, np.zeros(len(loaded.entities), np.int64)
    texts: dict[str, list[Floats]] = collections.defaultdict(list)
    images: collections.Counter[bytes] = collections.Counter()
    writer = shard.records("_mentions", Mentions)
    for article in parquet.read_records(path, Article):
        shard.read()
        mentions = shard.limited(article.doc_id, find_mentions, article, loaded.linker, loaded.word_rows, lead_words)
        if mentions is None:
            continue
        documents += 1
        entities[list(mentions.entities)] += 1
        if mentions.image_hash:
            images[mentions.image_hash] += 1
        text = text_vector(mentions, loaded.words, loaded.word_weights)
        if text is not None:
            texts[mentions.language].append(text)
        writer.write(mentions)
        shard.written()
    own = {"documents": np.array(documents), "entities": entities}
    write_arrays(shard.path("_statistics", "npz"), add_up([own, *(text_statistics(*item) for item in texts.items())]))
    used = np.array([(int.from_bytes(image, "big"), count) for image, count in images.items()], _IMAGES.dtype)
    # Similar images have similar hashes: the product spreads them.
    send(shard, _IMAGES.stream, used, shard_numbers(used["image"] * _SPREAD, shard.count))


def _find_boilerplate(shard: Shard, received: Received, most: int) -> None:
    """Writes the images that more documents than this share, logos and placeholders, of those that a shard receives."""
    used = received.rows[_IMAGES.stream]
    images, places = np.unique(used["image"], return_inverse=True)
    documents = np.bincount(places, used["documents"], len(images))
    shard.write_array(_BOILERPLATE, images[documents > most])


def _weigh(shard: Shard, _: Any) -> None:
    """Adds up the statistics of all shards, and joins the lists of their images."""
    total = add_up(map(read_arrays, files.list_files("_statistics/*.npz", shard.workspace)))
    boilerplate = np.concatenate(list(shard.arrays(_BOILERPLATE)))
    write_arrays(f"{shard.workspace}/_weights.npz", {**total, "boilerplate": boilerplate})


def _embed(shard: Shard, _: None, sources: Sources, options: VectorsOptions) -> None:
    """Writes the vectors of every document of a shard of articles."""
    writers = {space: shard.records(space.value, Vector) for space in Space}
    loaded = _load_tables(sources)
    boilerplate, rarity, rarest, components = _read_weights(shard.workspace)
    for mentions in parquet.read_records(shard.path("_mentions", "parquet"), Mentions):
        shard.read()
        if mentions.byline_date is None:
            # Neighbors are searched by date: an article without one can be neither positive nor negative.
            shard.reject(mentions.doc_id, Rejection.NO_BYLINE_DATE)
            continue
        found: dict[Space, Floats | None] = {}
        found[Space.ENTITY] = entity = entity_vector(mentions, loaded.entities, rarity, options.min_rarity * rarest)
        if entity is not None and not options.across_languages:
            found[Space.ENTITY] = entity * signs_of(mentions.language, len(entity))
        if mentions.image_hash and mentions.image_hash not in boilerplate:
            found[Space.IMAGE] = image_vector(mentions.image_hash)
        text = text_vector(mentions, loaded.words, loaded.word_weights)
        found[Space.TEXT] = None if text is None else remove_component(text, mentions.language, components)
        vectors = {space: values for space, values in found.items() if values is not None and values.any()}
        for space in Space:
            shard.tally(f"{space.value}_vectors" if space in vectors else f"no_{space.value}_vector")
        if not vectors:
            shard.reject(mentions.doc_id, Rejection.NO_VECTOR, "no known entity, image or word")
            continue
        for space, values in vectors.items():
            key = (mentions.doc_id, space.value, mentions.byline_date, mentions.publisher, mentions.language)
            writers[space].write(Vector(*key, tuple(values.tolist())))
        shard.written()


@functools.lru_cache(maxsize=1)
def _read_weights(workspace: str) -> tuple[set[bytes], Floats, float, dict[str, Floats]]:
    """Returns hashes of images that say nothing, the rarity of entities and of one in a single article, components."""
    weights = read_arrays(f"{workspace}/_weights.npz")
    boilerplate = {image.to_bytes(8, "big") for image in weights["boilerplate"].tolist()}
    rarest = float(rarity_of({"documents": weights["documents"], "entities": np.ones(())}))
    return boilerplate, rarity_of(weights), rarest, components_of(weights)


def entity_vector(mentions: Mentions, embeddings: Floats, rarity: Floats, least: float = 0) -> Floats | None:
    """Returns the mean of the embeddings of the mentioned entities, weighted by rarity and log count.

    Args:
      mentions: mentions of one document.
      embeddings: float32 ``[E, D]``.
      rarity: weight of each entity, float32 ``[E]``.
      least: rarity that the entities need together. Names that many articles have do not tell events apart: all
        articles that name only "Covid-19" would have a cosine of 1.

    Returns:
      float32 ``[D]``, or None if nothing with a positive weight is mentioned, or too little.
    """
    rows = np.array(mentions.entities, np.int64)
    if not len(rows) or rarity[rows].sum() < least:
        return None
    weights = rarity[rows] * (1 + np.log(np.array(mentions.entity_counts, np.float32)))
    total = float(weights.sum())
    return np.asarray(weights @ embeddings[rows] / total, np.float32) if total > 0 else None


def signs_of(language: str, dimensions: int) -> Floats:
    """Returns signs by which the vectors of a language keep their cosines, and have none with those of others."""
    seed = zlib.crc32(language.partition("-")[0].encode())
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.float32), dimensions)


def text_vector(mentions: Mentions, embeddings: Floats, weights: Floats) -> Floats | None:
    """Returns the SIF-weighted mean of word embeddings (Arora et al. 2017), before the common component is removed.

    Args:
      mentions: mentions of one document, with the words of title, keywords and lead.
      embeddings: float32 ``[W, D]``.
      weights: ``a / (a + frequency)`` of each word, float32 ``[W]``.

    Returns:
      float32 ``[D]``, or None if no word is known.
    """
    if not mentions.words:
        return None
    rows = np.array(mentions.words)
    return np.asarray(weights[rows] @ embeddings[rows] / len(rows), np.float32)


def image_vector(image_hash: bytes) -> Floats:
    """Returns the bits of a 64-bit wavelet hash as ±1, float32 ``[64]``; cosine = 1 - 2 · Hamming distance / 64."""
    return (2.0 * np.unpackbits(np.frombuffer(image_hash, np.uint8)) - 1.0).astype(np.float32)


def sif_weights(frequencies: Sequence[float]) -> Floats:
    """Returns the smooth inverse frequency of each word, a / (a + p) with a = 0.001: float32 ``[W]``."""
    return (_SMOOTHING / (_SMOOTHING + np.array(frequencies, np.float64))).astype(np.float32)


# Sums over documents by name, which add up: "documents"; "entities", the documents that mention each entity, ``[E]``;
# and by language "texts/…", the number of text vectors, and "moments/…", the sum of their outer products, ``[D, D]``.
Statistics = Mapping[str, Array]
_TEXTS, _MOMENTS = "texts/", "moments/"


def text_statistics(language: str, vectors: Sequence[Floats]) -> Statistics:
    """Returns the statistics of the text vectors of documents of one language, as unit vectors in float64."""
    stacked = np.stack(vectors).astype(np.float64)
    norms = np.linalg.norm(stacked, axis=1, keepdims=True)
    stacked /= np.where(norms > 0, norms, 1)
    return {_TEXTS + language: np.array(len(vectors)), _MOMENTS + language: stacked.T @ stacked}


def add_up(parts: Iterable[Statistics]) -> Statistics:
    """Returns the statistics of several sets of documents together."""
    total: dict[str, Array] = {}
    for name, values in (item for part in parts for item in part.items()):
        total[name] = total[name] + values if name in total else values
    return total


def rarity_of(statistics: Statistics) -> Floats:
    """Returns the inverse document frequency log((N + 1) / (n + 1)) of each entity, float32 ``[E]``."""
    return np.log((statistics["documents"] + 1.0) / (statistics["entities"] + 1.0)).astype(np.float32)


def components_of(statistics: Statistics) -> dict[str, Floats]:
    """Returns the first principal direction of the text vectors by language.

    The key "" has the direction of all languages, for languages with few documents.
    """
    moments = {name.removeprefix(_MOMENTS): statistics[name] for name in sorted(statistics) if _MOMENTS in name}
    found = {tag: one for tag, one in moments.items() if statistics[_TEXTS + tag] >= _ENOUGH_FOR_A_COMPONENT}
    if moments:
        found[""] = np.asarray(sum(moments.values()))
    # The sign of a direction does not matter to a projection.
    return {tag: np.asarray(np.linalg.eigh(moment)[1][:, -1], np.float32) for tag, moment in found.items()}


def remove_component(vector: Floats, language: str, components: Mapping[str, Floats]) -> Floats:
    """Returns the vector without its projection on the common component of the language."""
    component = components.get(language, components.get(""))
    return vector if component is None else np.asarray(vector - (vector @ component) * component, np.float32)


JOB = Job(
    name="vectors",
    example="newsembed vectors --articles work/clean --entities work/entities --output work/vectors",
    inputs=(
        ARTICLES,
        InputSpec("entities", "folder that `newsembed entities` wrote"),
        optional("alias_file", "your own TSV of alias, entity id, prior, instead of that of the entities folder"),
        optional("entity_embeddings", "its embeddings: X.npy with keys in X.tsv, or word2vec text"),
    ),
    options=VectorsOptions,
    run=run,
)
