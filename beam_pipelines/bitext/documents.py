"""Which articles may contain translations of each other: two languages, near days, and common entities or an image."""

import dataclasses
import datetime
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import InputError
from ...formats import files, parquet
from ...formats.command_line import Options, option
from ...formats.records import Rejection, Space, Vector
from ...tasks.margin import DEFAULT_MARGIN, NEIGHBORS, Floats
from ...tasks.sentences import split_text
from ..arrays import Array, read_array, write_array
from ..clean.rules import count_words
from ..encoders import embed_unit, opened
from ..graph import Received, Rows, send
from ..neighbors.index import Engine, build_index
from ..shards import Shard
from ..texts import ArticleText, read_text_batches, shuffle_key
from ..token_store import day_number

LANGUAGE: Final = "S16"
_COUNTS: Final = np.dtype([("block", np.int32), ("language", LANGUAGE)])
_LINKS: Final = np.dtype([("source", np.uint64), ("target", np.uint64)])
_DOCUMENTS: Final = "_documents"
WANTED: Final = Rows("_wanted", np.dtype([("doc_id", np.uint64), ("task", np.int32)]))
EXACT_BELOW: Final = 50_000  # rows of one side below which search is exact
_IMAGE_BITS: Final = 64
_LEAST_COSINES: Final = {Space.ENTITY: 0.3, Space.IMAGE: 0.9}  # of vectors of linked articles
_LEAST_WORDS: Final = 4  # of a sentence
_MOST_WORDS: Final = 100
SAMPLE: Final = 20_000  # sentences of each language among which known pairs are mined


@dataclasses.dataclass(frozen=True)
class BitextOptions(Options):
    """Options of ``bitext``."""

    pivot: str = option("en", "pairs are mined between this language and each other; empty: between all languages")
    window_days: int = option(1, "largest day gap of two articles whose sentences are compared", ge=0)
    block_days: int = option(7, "days that one worker holds in memory, for each pair of languages", ge=1)
    candidates: int = option(10, "with --vectors: nearest articles of each article in each space and language", ge=1)
    neighbors: int = option(NEIGHBORS, "k of the margin: neighbors that a cosine is compared with", ge=1)
    min_margin: float = option(DEFAULT_MARGIN, "least margin of a pair, where --known_pairs do not choose it", gt=0)
    precision: float = option(0.9, "with --known_pairs: that of the least margin among them", gt=0, le=1)
    translated_share: float = option(0.05, "with --known_pairs: share of translated sentences", gt=0, le=1)
    min_language_probability: float = option(0.1, "least of a side's language; 0 turns the rule off", ge=0, lt=1)
    engine: Engine = option(Engine.AUTO, "auto: exact for small sets of sentences, else ScaNN, else faiss")


@dataclasses.dataclass(frozen=True, slots=True)
class ArticleFacts:
    """The columns of an article that decide whether it takes part."""

    doc_id: str
    title: str
    language: str
    byline_date: datetime.date | None


class Task(NamedTuple):
    """What one worker compares: the articles of one language in a block of days with those of another near them.

    Attributes:
      block: number of the block of days.
      source: language of the source side, whose articles are of the block.
      target: language of the target side, whose articles may be ``window_days`` outside of it.
    """

    block: int
    source: str
    target: str

    @property
    def languages(self) -> str:
        """``"<source>-<target>"``."""
        return f"{self.source}-{self.target}"


class Plan(NamedTuple):
    """What the workers of all phases know.

    Attributes:
      options: of the job.
      tasks: all of them; their place is their number.
      shard_count: number of shards of articles.
      is_linked: whether only articles with similar vectors are compared.
      dimensions: of entity vectors; 0 if there are none.
      encoder: name of the encoder.
      has_known_pairs: whether a sample of the sentences is kept, among which known pairs are mined.
    """

    options: BitextOptions
    tasks: tuple[Task, ...]
    shard_count: int
    is_linked: bool
    dimensions: int
    encoder: str
    has_known_pairs: bool

    @property
    def blocks(self) -> list[int]:
        """The blocks that occur in tasks, ascending."""
        return sorted({task.block for task in self.tasks})

    @property
    def document_rows(self) -> Rows:
        """Articles with their vectors, which are sent to the blocks of their days; zeros stand for no vector."""
        vectors = [("entity", np.float32, (self.dimensions,)), ("image", np.float32, (_IMAGE_BITS * self.is_linked,))]
        facts = [("doc_id", np.uint64), ("day", np.int32), ("language", LANGUAGE), ("shard", np.int32)]
        return Rows(_DOCUMENTS, np.dtype([*facts, *vectors]))


def main_language(tag: str) -> str:
    """Returns the language of a tag without script and region, in lower case.

    >>> main_language("pt-BR")
    'pt'
    """
    return tag.partition("-")[0].lower()


def takes_part(article: Any) -> bool:
    """Whether an article has a date and a language; :func:`count_documents` counts those that have not."""
    return article.byline_date is not None and article.language


def count_documents(shard: Shard, path: str, block_days: int) -> None:
    """Counts the articles that take part, and writes their blocks of days and languages."""
    present: set[tuple[int, bytes]] = set()
    for article in parquet.read_records(path, ArticleFacts):
        shard.read()
        if not article.language:
            shard.reject(article.doc_id, Rejection.UNKNOWN_LANGUAGE, "no language", article.title)
        elif article.byline_date is None:
            shard.reject(article.doc_id, Rejection.NO_BYLINE_DATE, "", article.title)
        else:
            shard.written()
            present.add((day_number(article.byline_date) // block_days, main_language(article.language).encode()))
    shard.write_array("_counts", np.array(sorted(present), _COUNTS))


def plan_tasks(workspace: str, options: BitextOptions) -> tuple[Task, ...]:
    """Returns the tasks for the articles that :func:`count_documents` counted, by pair of languages, then block."""
    present: dict[str, set[int]] = {}
    for path in files.list_files("_counts/part-*.npy", workspace):
        for block, language in read_array(path).tolist():
            present.setdefault(language.decode(), set()).add(block)
    margin = -(-options.window_days // options.block_days)
    return tuple(
        Task(block, source, target)
        for source, target in language_pairs(sorted(present), options.pivot)
        for block in sorted(present[source])
        if not present[target].isdisjoint(range(block - margin, block + margin + 1))
    )


def language_pairs(languages: Sequence[str], pivot: str) -> list[tuple[str, str]]:
    """Returns the (source, target) pairs of languages; the pivot, or else the later name, is the target.

    >>> language_pairs(["de", "en", "fr"], "en"), language_pairs(["de", "en"], "")
    ([('de', 'en'), ('fr', 'en')], [('de', 'en')])
    """
    if pivot:
        target = main_language(pivot)
        return [(language, target) for language in languages if language != target and target in languages]
    return list(itertools.combinations(languages, 2))


def vector_paths(folder: str, shard_count: int) -> list[tuple[str, ...]]:
    """Returns the shards of entity and image vectors that belong to each shard of articles.

    Raises:
      InputError: if the vectors have another number of shards than the articles.
    """
    entities, images = (parquet.shard_paths(f"{folder}/{space.value}") for space in _LEAST_COSINES)
    if {len(entities), len(images)} != {shard_count}:
        problem = f"got {len(entities)} and {len(images)} shards of vectors for {shard_count} shards of articles"
        remedy = "give the vectors that `newsembed vectors` made of these articles"
        raise InputError(problem, path=folder, field="--vectors", remedy=remedy)
    return list(zip(entities, images, strict=True))


def entity_dimensions(paths: Sequence[tuple[str, ...]]) -> int:
    """Returns the size of entity vectors, 0 if there are none."""
    batches = (batch for entity, _ in paths for batch in parquet.read_batches(entity, ["values"], rows=1))
    return next((len(batch.column("values")[0]) for batch in batches), 0)


def send_documents(shard: Shard, paths: Sequence[str], plan: Plan) -> None:
    """Sends the articles of a shard to all blocks that they may have to do with.

    Args:
      shard: of the articles.
      paths: of the articles, and of their entity and image vectors if there are any.
      plan: of the job.
    """
    articles = [one for one in parquet.read_records(paths[0], ArticleFacts) if takes_part(one)]
    rows = np.zeros(len(articles), plan.document_rows.dtype)
    rows["doc_id"] = [int(one.doc_id, 16) for one in articles]
    rows["day"] = [day_number(one.byline_date) for one in articles]
    rows["language"] = [main_language(one.language).encode() for one in articles]
    rows["shard"] = shard.index
    for space, path in zip(_LEAST_COSINES, paths[1:], strict=False):
        found = {vector.doc_id: vector.values for vector in parquet.read_records(path, Vector)}
        for row, article in zip(rows[space.value], articles, strict=True):
            if (values := found.get(article.doc_id)) is not None:
                row[:] = values
    numbers = {block: number for number, block in enumerate(plan.blocks)}
    window, size = plan.options.window_days, plan.options.block_days
    near = (range((day - window) // size, (day + window) // size + 1) for day in rows["day"].tolist())
    sent = [(row, numbers[block]) for row, blocks in enumerate(near) for block in blocks if block in numbers]
    chosen = np.array(sent, np.int64).reshape(-1, 2)
    send(shard, _DOCUMENTS, rows[chosen[:, 0]], chosen[:, 1])


def link_documents(shard: Shard, received: Received, plan: Plan) -> None:
    """Writes the linked articles of every task of a block, and tells the shards of the articles."""
    rows, block, size = received.rows[_DOCUMENTS], plan.blocks[shard.index], plan.options.block_days
    wanted = [np.zeros(0, WANTED.dtype)]
    for number, task in enumerate(plan.tasks):
        if task.block != block:
            continue
        sources = rows[(rows["language"] == task.source.encode()) & (rows["day"] // size == block)]
        targets = rows[rows["language"] == task.target.encode()]
        if plan.is_linked:
            links = find_links(sources, targets, plan.options)
            write_array(links_path(shard.workspace, number), links)
            shard.tally(f"linked_articles/{task.languages}", len(links))
            sides = [links["source"], links["target"]]
        else:
            sides = [sources["doc_id"], targets["doc_id"]] if len(sources) and len(targets) else []
        wanted += [np.array([(doc_id, number) for doc_id in np.unique(side)], WANTED.dtype) for side in sides]
    joined = np.concatenate(wanted)
    shards = dict(zip(rows["doc_id"].tolist(), rows["shard"].tolist(), strict=True))
    send(shard, WANTED.stream, joined, np.array([shards[one] for one in joined["doc_id"].tolist()], np.int64))


def links_path(workspace: str, task: int) -> str:
    """Returns the path of the linked articles of a task."""
    return f"{workspace}/_links/task-{task:06d}.npy"


def find_links(sources: Array, targets: Array, options: BitextOptions) -> Array:
    """Returns pairs of articles, at most ``window_days`` apart, that are near in a space, sorted, each once.

    Args:
      sources: rows of one language.
      targets: rows of the other.
      options: how many, how near.
    """
    found = [np.zeros((0, 2), np.uint64)]
    for space in _LEAST_COSINES:
        left, right = (side[side[space.value].any(axis=1)] for side in (sources, targets))
        found += _nearest(left, right, space, options)
        found += [pairs[:, ::-1] for pairs in _nearest(right, left, space, options)]
    return np.ascontiguousarray(np.unique(np.concatenate(found), axis=0)).view(_LINKS).ravel()


def _nearest(queries: Array, others: Array, space: Space, options: BitextOptions) -> Iterator[Array]:
    """Yields the ids of each query and its nearest others, uint64 ``[P, 2]``, day by day."""
    for day in np.unique(queries["day"]):
        asked = queries[queries["day"] == day]
        near = others[np.abs(others["day"] - day) <= options.window_days]
        if len(near):
            index = build_index(near[space.value], options.engine, EXACT_BELOW, len(asked))
            hits, cosines = index.search(asked[space.value], options.candidates)
            places, slots = np.nonzero((hits >= 0) & (cosines >= _LEAST_COSINES[space]))
            yield np.stack([asked["doc_id"][places], near["doc_id"][hits[places, slots]]], 1)


# Sentences


def row_type(dimensions: int) -> np.dtype[Any]:
    """The rows of sentences: article, place in it, language, bytes of the text in UTF-8, and embedding."""
    facts = [("doc_id", np.uint64), ("number", np.int32), ("language", LANGUAGE), ("bytes", np.int32)]
    return np.dtype([*facts, ("vector", np.float32, (dimensions,))])


# Rows and their texts as bytes, which are sent to tasks, and to the phase that mines known pairs.
SENTENCES: Final = (Rows("_sentences", row_type(0)), Rows("_texts", np.dtype(np.uint8)))
SAMPLED: Final = (Rows("_sample", row_type(0)), Rows("_sample_texts", np.dtype(np.uint8)))


class _Sentence(NamedTuple):
    doc_id: int
    number: int
    language: str
    text: str


_Embedded = tuple[_Sentence, Floats]


def send_sentences(shard: Shard, received: Received, plan: Plan) -> None:
    """Embeds the sentences of the articles that some task wants, and sends them to these tasks."""
    encoder = opened(plan.encoder, shard.workspace)
    tasks: dict[int, list[int]] = {}
    for doc_id, task in received.rows[WANTED.stream].tolist():
        tasks.setdefault(doc_id, []).append(task)
    sample: dict[str, dict[str, _Embedded]] = {}
    for chunk, batch in enumerate(read_text_batches(received.payload)):
        sentences = [one for article in batch for one in _sentences_of(shard, article, tasks)]
        vectors = embed_unit(encoder, [one.text for one in sentences], plan.encoder)
        shard.tally("sentences_embedded", len(sentences))
        if not sentences:
            continue
        embedded = list(zip(sentences, vectors, strict=True))
        places = [(place, task) for place, one in enumerate(sentences) for task in tasks[one.doc_id]]
        places.sort(key=lambda pair: pair[1])  # stable: the sentences of a task keep their order
        chosen, receivers = np.array(places, np.int64).T
        _send(shard, SENTENCES, [embedded[place] for place in chosen.tolist()], receivers, chunk)
        if plan.has_known_pairs:
            _sample(sample, embedded, -(-2 * SAMPLE // plan.shard_count))
    kept = [one for language in sorted(sample) for one in sample[language].values()]
    if kept:
        _send(shard, SAMPLED, kept, np.zeros(len(kept), np.int64))


def _sentences_of(shard: Shard, article: ArticleText, tasks: Mapping[int, list[int]]) -> Iterator[_Sentence]:
    """Yields the sentences of one article that may be paired; counts the article, and the others by reason."""
    if not takes_part(article):
        return  # counted before
    shard.read()
    doc_id, language = int(article.doc_id, 16), main_language(article.language)
    if doc_id not in tasks:
        shard.reject(article.doc_id, Rejection.NO_CANDIDATE, "no article of another language is near", article.title)
        return
    texts = shard.limited(article.doc_id, split_article, article.title, article.body)
    if texts is None:
        return
    kept = []
    for number, text in enumerate(texts):
        words = count_words(text)
        shard.tally("sentences")
        if _LEAST_WORDS <= words <= _MOST_WORDS:
            kept.append(_Sentence(doc_id, number, language, text))
        else:
            shard.tally("sentences_too_short" if words < _LEAST_WORDS else "sentences_too_long")
    if kept:
        shard.written()
        yield from kept
    else:
        shard.reject(article.doc_id, Rejection.NO_SENTENCE, "", article.title)


def split_article(title: str, body: str) -> list[str]:
    r"""Returns the title and the sentences of the body, with single spaces.

    >>> split_article("A title", "One.  Two.\nThree\tfour")
    ['A title', 'One.', 'Two.', 'Three four']
    """
    parts = [title, *(sentence for _, sentence in split_text(body))]
    return [text for part in parts if (text := " ".join(part.split()))]


def _send(
    shard: Shard, streams: tuple[Rows, Rows], embedded: Sequence[_Embedded], receivers: Array, chunk: int = 0
) -> None:
    """Sends rows, and the texts as bytes in the same order."""
    texts = [one.text.encode("utf-8", "replace") for one, _ in embedded]
    facts = zip(embedded, texts, strict=True)
    values = [(one.doc_id, one.number, one.language.encode(), len(text), vector) for (one, vector), text in facts]
    rows = np.array(values, row_type(len(embedded[0][1])))
    send(shard, streams[0].stream, rows, receivers, chunk)
    raw = np.frombuffer(b"".join(texts), np.uint8)
    send(shard, streams[1].stream, raw, np.repeat(receivers.astype(np.int32), rows["bytes"]), chunk)


def _sample(sample: dict[str, dict[str, _Embedded]], embedded: Iterable[_Embedded], most: int) -> None:
    """Adds those sentences whose digests are among the lowest ``most`` of their language; each text once, in order."""
    for one, vector in embedded:
        sample.setdefault(one.language, {}).setdefault(one.text, (one, vector.copy()))
    for language, found in sample.items():
        sample[language] = {text: found[text] for text in heapq.nsmallest(most, found, key=_draw)}


def _draw(text: str) -> tuple[bytes, str]:
    """What sorts texts at random."""
    return shuffle_key("bitext", text)[:8], text


def received_sentences(received: Received, streams: tuple[Rows, Rows] = SENTENCES) -> tuple[Array, list[str]]:
    """Returns the rows and texts that a shard gets."""
    rows, raw = received.rows[streams[0].stream], received.rows[streams[1].stream].tobytes()
    ends = np.cumsum(rows["bytes"], dtype=np.int64)
    starts = ends - rows["bytes"]
    return rows, [raw[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def received_sample(received: Received, language: str) -> tuple[Array, list[str]]:
    """Returns the sample of the sentences of a language: rows and texts, each text once, at most `SAMPLE`."""
    rows, texts = received_sentences(received, SAMPLED)
    places = np.flatnonzero(rows["language"] == language.encode()).tolist()
    unique = {texts[place]: place for place in reversed(places)}
    chosen = heapq.nsmallest(SAMPLE, unique, key=_draw)
    return rows[[unique[text] for text in chosen]], chosen
