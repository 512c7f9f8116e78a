"""The sentences of articles and their embeddings, sent to the tasks that compare them."""

import dataclasses
import heapq
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats.records import Rejection
from ...tasks.sentences import split_text
from ..arrays import Array
from ..clean.counting import count_words
from ..encoders import Opener, embed_unit, opened
from ..entities.tables import Floats
from ..shards import Shard
from ..shuffle import Received, Rows, send
from ..texts import ArticleText, read_text_batches, shuffle_key
from .documents import LANGUAGE, Plan, main_language, takes_part
from .options import BitextOptions

_ARTICLES_AT_ONCE: Final = 256
# Rows that are sent: to tasks, and to the phase that mines known pairs.
SENTENCES, TEXTS, _SAMPLE, _SAMPLE_TEXTS = "_sentences", "_texts", "_sample", "_sample_texts"
SAMPLE: Final = 20_000  # sentences of each language among which known pairs are mined


@dataclasses.dataclass(frozen=True)
class Encoding:
    """How sentences are embedded.

    Attributes:
      opener: opens the encoder in a worker.
      name: of the encoder.
      samples: whether a sample of the sentences is kept for known pairs.
    """

    opener: Opener
    name: str
    samples: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Sentence:
    doc_id: int
    number: int
    language: str
    text: str


def row_type(dimensions: int) -> np.dtype[Any]:
    """The rows of sentences: article, place in it, language, bytes of the text in UTF-8, and embedding."""
    return np.dtype(
        [
            ("doc_id", np.uint64),
            ("number", np.int32),
            ("language", LANGUAGE),
            ("bytes", np.int32),
            ("vector", np.float32, (dimensions,)),
        ]
    )


def send_sentences(options: BitextOptions, plan: Plan, encoding: Encoding, shard: Shard, received: Received) -> None:
    """Embeds the sentences of the articles that some task wants, and sends them to these tasks."""
    encoder = opened(encoding.opener, encoding.name, shard.workspace)
    tasks = _tasks_of(received.rows["_wanted"])
    sample = _Sampler(-(-2 * SAMPLE // plan.shard_count)) if encoding.samples else None
    for chunk, batch in enumerate(read_text_batches(received.payload, _ARTICLES_AT_ONCE)):
        sentences = [one for article in batch for one in _sentences_of(shard, article, tasks, options)]
        vectors = embed_unit(encoder, [one.text for one in sentences], encoding.name)
        shard.tally("sentences_embedded", len(sentences))
        if sample is not None:
            sample.add(sentences, vectors)
        _send(shard, sentences, vectors, tasks, chunk)
    if sample is not None:
        sample.send(shard)


def _tasks_of(wanted: Array) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for doc_id, task in wanted.tolist():
        found.setdefault(doc_id, []).append(task)
    return found


def _sentences_of(
    shard: Shard, article: ArticleText, tasks: dict[int, list[int]], options: BitextOptions
) -> Iterator[_Sentence]:
    """Yields the sentences of one article that may be paired; counts the article, and the others by reason."""
    if not takes_part(article, options):
        return  # counted before
    shard.read()
    doc_id, language = int(article.doc_id, 16), main_language(article.language) or ""
    if doc_id not in tasks:
        shard.reject(article.doc_id, Rejection.NO_CANDIDATE, "no article of another language is near", article.title)
        return
    kept = []
    for number, text in enumerate(split_article(article.title, article.body)):
        words = count_words(text)
        shard.tally("sentences")
        if words < options.min_words or words > options.max_words:
            shard.tally("sentences_too_short" if words < options.min_words else "sentences_too_long")
        else:
            kept.append(_Sentence(doc_id, number, language, text))
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
    shard: Shard,
    sentences: Sequence[_Sentence],
    vectors: Floats,
    tasks: dict[int, list[int]],
    chunk: int,
) -> None:
    """Sends rows, and the texts as bytes in the same order, to the tasks of their articles."""
    if not sentences:
        return
    rows, texts = _rows(sentences, vectors)
    places = [(place, task) for place, one in enumerate(sentences) for task in tasks[one.doc_id]]
    places.sort(key=lambda pair: pair[1])  # stable: the sentences of a task keep their order
    chosen, receivers = np.array(places, np.int64).T
    send(shard, SENTENCES, rows[chosen], receivers, chunk)
    lengths = rows["bytes"][chosen]
    raw = np.frombuffer(b"".join(texts[place] for place in chosen.tolist()), np.uint8)
    send(shard, TEXTS, raw, np.repeat(receivers.astype(np.int32), lengths), chunk)


def _rows(sentences: Sequence[_Sentence], vectors: Floats) -> tuple[Array, list[bytes]]:
    texts = [one.text.encode("utf-8", "replace") for one in sentences]
    rows = np.zeros(len(sentences), row_type(vectors.shape[1]))
    rows["doc_id"], rows["number"] = [one.doc_id for one in sentences], [one.number for one in sentences]
    rows["language"] = [one.language.encode() for one in sentences]
    rows["bytes"] = [len(text) for text in texts]
    rows["vector"] = vectors
    return rows, texts


def sentence_rows() -> tuple[Rows, Rows]:
    """Returns the sentences and their texts, which are sent to the tasks of their articles."""
    return Rows(SENTENCES, row_type(0)), Rows(TEXTS, np.dtype(np.uint8))


def sample_rows() -> tuple[Rows, Rows]:
    """Returns the sample of sentences and their texts."""
    return Rows(_SAMPLE, row_type(0)), Rows(_SAMPLE_TEXTS, np.dtype(np.uint8))


def received_sentences(
    received: Received, workspace: str, stream: str = SENTENCES, texts: str = TEXTS
) -> tuple[Array, list[str]]:
    """Returns the rows and texts that a shard gets.

    Raises:
      InputError: if rows and texts do not fit each other.
    """
    rows, raw = received.rows[stream], received.rows[texts].tobytes()
    ends = np.cumsum(rows["bytes"], dtype=np.int64)
    if len(raw) != (ends[-1] if len(ends) else 0):
        raise InputError("rows and texts do not fit", path=workspace, remedy="delete this folder and start again")
    starts = ends - rows["bytes"]
    return rows, [raw[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


class _Sampler:
    """Keeps the sentences of each language whose digests are lowest.

    Args:
      most: how many of each language.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, list[tuple[int, str, _Sentence, Floats]]] = {}
        self._seen: dict[str, set[str]] = {}

    def add(self, sentences: Sequence[_Sentence], vectors: Floats) -> None:
        for sentence, vector in zip(sentences, vectors, strict=True):
            kept = self._kept.setdefault(sentence.language, [])
            seen = self._seen.setdefault(sentence.language, set())
            if sentence.text in seen:
                continue
            entry = (-_draw(sentence.text), sentence.text, sentence, vector.copy())
            seen.add(sentence.text)
            if len(kept) < self._most:
                heapq.heappush(kept, entry)
            else:
                seen.discard(heapq.heappushpop(kept, entry)[1])

    def send(self, shard: Shard) -> None:
        entries = [
            entry
            for language in sorted(self._kept)
            for entry in sorted(self._kept[language], key=lambda one: (-one[0], one[1]))
        ]
        if entries:
            rows, texts = _rows([entry[2] for entry in entries], np.stack([entry[3] for entry in entries]))
            send(shard, _SAMPLE, rows, np.zeros(len(rows), np.int64))
            raw = np.frombuffer(b"".join(texts), np.uint8)
            send(shard, _SAMPLE_TEXTS, raw, np.zeros(len(raw), np.int8))


def _draw(text: str) -> int:
    return int.from_bytes(shuffle_key("bitext", text)[:8], "big")


def received_sample(received: Received, workspace: str, language: str) -> tuple[Array, list[str]]:
    """Returns the sample of the sentences of a language: rows and texts, each text once, at most `SAMPLE`."""
    rows, texts = received_sentences(received, workspace, _SAMPLE, _SAMPLE_TEXTS)
    places = [place for place, tag in enumerate(rows["language"].tolist()) if tag.decode() == language]
    unique = {texts[place]: place for place in reversed(places)}
    chosen = sorted(unique, key=lambda text: (_draw(text), text))[:SAMPLE]
    return rows[[unique[text] for text in chosen]], chosen
