"""Sends ids to the shard of their document, and writes the examples there: triplets and labelled documents.

The augmentations of Table 1 of the paper: which text of the anchor is paired with which text of the others.

Pure functions over tokens. The positive and the negative text always have the same type (body, or title and body).
Otherwise the encoder would learn to distinguish types instead of events.
"""

import collections
import dataclasses
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.command_line import Options, option
from ...formats.parquet import read_records
from ...formats.records import Failure, Rejection, TopicLabels, Triplet, doc_id_to_words
from ...tasks.kinds import NO_LABEL, TOPICS, TRIPLETS, Augmentation
from ...tasks.registry import Task
from ...tasks.vocabulary import join_document
from ..arrays import doc_id_of, doc_ids_of, slices
from ..graph import Received, Rows, send
from ..shards import Shard, shard_numbers
from ..texts import language_key, shuffle_key, uniform_draw
from ..token_store import TOKENS, DocumentTokens, date_of, is_held_out, open_store
from ..translation import TRANSLATED, TranslationPlan
from ..triplets.table import read_stories

_NOTHING = np.zeros(0, np.int32)
_FEWEST_ANCHOR_TOKENS = 3  # "here", "read more"
_LEAST_OVERLAP = 0.5  # of an anchor text with the title
_MOST_ANCHOR_TEXTS = 8  # of a document


def token_overlap(anchor_text: np.ndarray, title: np.ndarray) -> float:
    """Returns the share of the distinct tokens of an anchor text that are in the title, in [0, 1].

    An anchor text with fewer than three distinct tokens gets 0. Works for every script, because it compares token ids
    and not words separated by spaces.
    """
    tokens = np.unique(anchor_text)
    return float(np.isin(tokens, title).mean()) if tokens.size >= _FEWEST_ANCHOR_TOKENS else 0.0


def usable_anchor_texts(anchor_texts: Sequence[np.ndarray], title: np.ndarray) -> list[np.ndarray]:
    """Returns the anchor texts that are similar enough to the title, without repeats, the most similar first.

    Args:
      anchor_texts: int32 ids of the texts of links to the document.
      title: int32 ids of its title.
    """
    scored = {tuple(text.tolist()): token_overlap(text, title) for text in anchor_texts}
    best = sorted((-score, ids) for ids, score in scored.items() if score >= _LEAST_OVERLAP)[:_MOST_ANCHOR_TEXTS]
    return [np.array(ids, np.int32) for _, ids in best]


def possible_augmentations(
    anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
) -> tuple[Augmentation, ...]:
    """Returns the rows of Table 1 for which all texts exist."""
    own, others, far = (bool(one.title.size or one.body.size) for one in (anchor, positive, negative))
    conditions = {
        Augmentation.TITLE_TO_BODY: anchor.title.size and anchor.body.size and negative.body.size,
        Augmentation.ANCHOR_TEXT_TO_DOCUMENT: anchor.anchor_texts and far and own,
        Augmentation.TITLE_TO_DOCUMENT: anchor.title.size and others and far,
        Augmentation.DOCUMENT_TO_DOCUMENT: own and others and far,
    }
    return tuple(row for row, holds in conditions.items() if holds)


def draw_augmentations(
    possible: Sequence[Augmentation], weights: Sequence[float], count: int, key: str
) -> list[Augmentation]:
    """Draws up to ``count`` distinct rows, each in proportion to its weight among the rows that are left.

    Args:
      possible: rows for which all texts exist.
      weights: weight of each row of Table 1; a row of weight 0 is never drawn.
      count: number of rows to draw.
      key: seed of the draw: the same key draws the same rows.
    """
    left = [row for row in possible if weights[row] > 0]
    drawn: list[Augmentation] = []
    while left and len(drawn) < count:
        shares = np.cumsum([weights[row] for row in left])
        place = int(np.searchsorted(shares, uniform_draw("augmentation", key, len(drawn)) * shares[-1], side="right"))
        drawn.append(left.pop(min(place, len(left) - 1)))  # rounding may push a tiny weight past the end
    return drawn


def positive_document(row: Augmentation, anchor: DocumentTokens, positive: DocumentTokens) -> DocumentTokens:
    """Returns the document of a row's positive text: rows 0 and 1 use the anchor's own text."""
    return anchor if row in (Augmentation.TITLE_TO_BODY, Augmentation.ANCHOR_TEXT_TO_DOCUMENT) else positive


def augment(
    row: Augmentation, anchor: DocumentTokens, others: Sequence[DocumentTokens], max_length: int, key: str
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the texts of one row of Table 1: the anchor's, and those of the positive and the negatives.

    Args:
      row: one of :func:`possible_augmentations`.
      anchor: anchor document.
      others: the :func:`positive_document` and the negatives, or their translations.
      max_length: largest length of each text in tokens, including special tokens.
      key: seed for choosing one of several anchor texts.
    """
    title, body = anchor.title, _NOTHING
    if row is Augmentation.DOCUMENT_TO_DOCUMENT:
        body = anchor.body
    elif row is Augmentation.ANCHOR_TEXT_TO_DOCUMENT:
        title = anchor.anchor_texts[int(uniform_draw("anchor text", key) * len(anchor.anchor_texts))]
    titles = [_NOTHING if row is Augmentation.TITLE_TO_BODY else one.title for one in others]
    texts = [join_document(own, one.body, max_length) for own, one in zip(titles, others, strict=True)]
    return join_document(title, body, max_length), texts


# Rows that are sent to the shard of their document: triplets, and single labels; labels of one record are consecutive.
_TEXTS: Final = ("anchor", "positive", "negative")
_IDS: Final = [(name, np.uint64) for name in _TEXTS]
TRIPLET_ROWS: Final = Rows("_triplets", np.dtype([*_IDS, ("language", "S64")]))
LABEL_ROWS: Final = Rows(
    "_labels", np.dtype([("doc_id", np.uint64), ("record", np.int64), ("topic", np.int64), ("label", np.int8)])
)
HELD_OUT_RECORDS: Final = "held_out records/"  # prefix of tallies: by task
# Documents by their number of labels, rounded up, so that the manifest can say how wide rows must be.
LABEL_COUNTS: Final = "labels of a document, up to/"
_LABELS_STEP: Final = 8
_ANCHOR_DAYS: Final = "_anchor_days"
_FIRST_DAY: Final = "_held_out/first_day.json"


@dataclasses.dataclass(frozen=True)
class ExamplesOptions(Options):
    """Options of ``examples``."""

    max_length: int = option(512, "tokens of a text, including special tokens", ge=8)
    augmentations_per_triplet: int = option(1, "distinct rows of Table 1 for each triplet", ge=1, le=len(Augmentation))
    weights: tuple[float, ...] = option((1.0, 1.0, 1.0, 1.0), "weights of the rows of Table 1, in its order", ge=0)
    negatives_per_example: int = option(1, "merge so many triplets of one anchor and positive", ge=1)
    documents_per_example: int = option(3, "labelled documents of an example of topics; the paper has 3", ge=1)
    held_out_from: datetime.date | None = option(None, "hold out this day and later: to held_out/, for EVAL_DATA_DIR")
    held_out_share: float = option(0.0, "hold out the last days with this share of the anchors", ge=0, lt=1)
    translate_share: float = option(1.0, "share of the triplets without English that are translated", ge=0, le=1)
    translation_cache: str = option("", "folder that keeps translations for other runs and jobs")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.weights) != len(Augmentation) or not any(self.weights):
            problem = f"got {self.weights}, expected {len(Augmentation)} numbers, not all 0"
            raise InputError(problem, field="--weights", remedy="see --help")
        if self.held_out_from and self.held_out_share:
            problem = f"got {self.held_out_share}, expected 0 where --held_out_from names a day"
            raise InputError(problem, field="--held_out_share", remedy="leave out one of the two")


class TripletRow(NamedTuple):
    """A triplet as its shard receives it."""

    anchor: str
    positive: str
    negative: str
    language: str


def send_triplets(shard: Shard, path: str, shard_count: int) -> None:
    """Sends the triplets of one Parquet shard to the shards of their anchors."""
    sent: list[tuple[Any, ...]] = []
    for one in read_records(path, Triplet):
        shard.read()
        shard.written()
        doc_ids = (int(doc_id, 16) for doc_id in (one.anchor, one.positive, one.negative))
        sent.append((*doc_ids, language_key(one.language).encode("ascii")))
    rows = np.array(sent, TRIPLET_ROWS.dtype)
    send(shard, TRIPLET_ROWS.stream, rows, shard_numbers(rows["anchor"], shard_count))


def send_labels(shard: Shard, path: str, shard_count: int) -> None:
    """Sends the topic labels of one Parquet shard to the shards of their documents."""
    sent: list[tuple[int, int, int, int]] = []
    for number, one in enumerate(read_records(path, TopicLabels), shard.index << 32):  # unique among the senders
        shard.read()
        shard.written()
        labels = zip(one.topic_ids, one.labels, strict=True)
        sent += [(int(one.doc_id, 16), number, topic, label) for topic, label in labels]
    rows = np.array(sent, LABEL_ROWS.dtype)
    send(shard, LABEL_ROWS.stream, rows, shard_numbers(rows["doc_id"], shard_count))


def _received_triplets(rows: Any) -> Iterator[TripletRow]:
    doc_ids = (doc_ids_of(rows[name]).tolist() for name, _ in _IDS)
    for anchor, positive, negative, language in zip(*doc_ids, rows["language"].tolist(), strict=True):
        yield TripletRow(anchor, positive, negative, language.decode("ascii"))


def _received_labels(rows: Any) -> Iterator[TopicLabels]:
    record = rows[["doc_id", "record"]]
    for part in np.split(rows, np.flatnonzero(record[1:] != record[:-1]) + 1) if len(rows) else ():
        topics, labels = (tuple(part[name].tolist()) for name in ("topic", "label"))
        yield TopicLabels(doc_id_of(int(part["doc_id"][0])), topics, labels)


def group_negatives(rows: Iterable[TripletRow], count: int) -> list[list[TripletRow]]:
    """Groups triplets that differ only in their negative, at most ``count``, in the order of the first of a group."""
    groups: list[list[TripletRow]] = []
    open_groups: dict[TripletRow, list[TripletRow]] = {}
    for row in rows:
        shared = row._replace(negative="")
        if len(open_groups.get(shared, ())) in (0, count):
            groups.append([])
            open_groups[shared] = groups[-1]
        open_groups[shared].append(row)
    return groups


# Held-out days


def count_anchor_days(shard: Shard, path: str) -> None:
    """Counts the anchors of one Parquet shard of triplets by day. All triplets of an anchor are in one shard."""
    anchors = np.array([int(triplet.anchor, 16) for triplet in read_records(path, Triplet)], np.uint64)
    days = open_store(f"{shard.workspace}/{TOKENS}").places(np.unique(anchors))["day"]
    shard.write_array(_ANCHOR_DAYS, np.stack(np.unique(days, return_counts=True), axis=1))


def write_first_day(shard: Shard, options: ExamplesOptions) -> None:
    """Writes the first day that is held out for `ExamplesOptions.held_out_share`, from the anchors of each day."""
    anchors: collections.Counter[int] = collections.Counter()
    for part in shard.arrays(_ANCHOR_DAYS):
        anchors.update({day: count for day, count in part.tolist() if day > 0})  # else it is unknown
    first = last_days(anchors, options.held_out_share) if anchors else None
    files.write_json(f"{shard.workspace}/{_FIRST_DAY}", {"day": first})


def first_held_out_day(workspace: str, options: ExamplesOptions) -> datetime.date | None:
    """Returns the first day that is held out, ``None`` if nothing is; for a share, that of :func:`write_first_day`."""
    if not options.held_out_share:
        return options.held_out_from
    day = files.read_json(f"{workspace}/{_FIRST_DAY}")["day"]
    return None if day is None else date_of(day)


def last_days(counts: Mapping[int, int], share: float) -> int:
    """Returns the latest day such that it and the later days have at least this share of the items.

    >>> last_days({1: 7, 2: 1, 3: 2}, 0.25)
    2

    Args:
      counts: items by day; at least one item in all.
      share: above 0, below 1.
    """
    days = sorted(counts, reverse=True)
    reached = np.cumsum([counts[day] for day in days])
    return days[int(np.searchsorted(reached, np.ceil(share * reached[-1])))]


def _without_held_out_negatives(rows: Sequence[TripletRow], held_out: Callable[[str], bool]) -> list[TripletRow]:
    """Replaces held-out negatives of triplets that are not held out by another negative of the same anchor.

    A row stays as it is if its anchor has no other negative, or already has each of them with this positive.

    Args:
      rows: all of an anchor among them.
      held_out: whether a document is.

    Returns:
      As many rows, in order.
    """
    triplets = set(rows)
    others: dict[str, dict[str, None]] = collections.defaultdict(dict)
    for row in sorted(triplets):
        if not held_out(row.negative):
            others[row.anchor][row.negative] = None
    replaced = []
    for row in rows:
        unused: list[TripletRow] = []
        if held_out(row.negative) and not held_out(row.anchor) and not held_out(row.positive):
            unused = [new for one in others[row.anchor] if (new := row._replace(negative=one)) not in triplets]
        replaced.append(min(unused, key=lambda one: shuffle_key(TRIPLETS.name, *one)) if unused else row)
        triplets.add(replaced[-1])
    return replaced


# Examples


def draw_rows(
    key: str, anchor: DocumentTokens, positive: DocumentTokens, negatives: Sequence[DocumentTokens], options: Any
) -> list[Augmentation]:
    """Draws rows of Table 1 for which the anchor, the positive and all negatives have texts."""
    possible = [possible_augmentations(anchor, positive, negative) for negative in negatives]
    shared = [row for row in possible[0] if all(row in others for others in possible)]
    return draw_augmentations(shared, options.weights, options.augmentations_per_triplet, key)


def write_examples(
    shard: Shard, received: Received, options: ExamplesOptions, plan: TranslationPlan | None, stories: str
) -> None:
    """Writes the triplets and labelled documents of one shard in shuffled order.

    Args:
      shard: the outputs.
      received: its rows.
      options: of the job.
      plan: which examples are translated; ``None`` translates none.
      stories: path of the stories, see `triplets.table.read_stories`.
    """
    first_day = first_held_out_day(shard.workspace, options)
    triplets = list(_received_triplets(received.rows[TRIPLET_ROWS.stream]))
    if first_day is not None:
        store, before = open_store(f"{shard.workspace}/{TOKENS}"), set(triplets)
        triplets = _without_held_out_negatives(triplets, lambda doc_id: is_held_out(store.day(doc_id), first_day))
        shard.tally("replaced negatives of held-out days", len(set(triplets) - before))
    writer = _Writer(shard, options, plan, first_day, stories)
    triplets.sort(key=lambda row: shuffle_key(TRIPLETS.name, *row))
    for group in group_negatives(triplets, options.negatives_per_example):
        writer.write_triplets(group)
    labels = _received_labels(received.rows[LABEL_ROWS.stream])
    writer.write_topics(sorted(labels, key=lambda row: shuffle_key(TOPICS.name, row.doc_id, row.topic_ids, row.labels)))


class _Writer:
    """Writes the rows of one shard as TFRecords, one file per task and language."""

    def __init__(
        self,
        shard: Shard,
        options: ExamplesOptions,
        plan: TranslationPlan | None,
        first_day: datetime.date | None,
        stories: str,
    ) -> None:
        self._shard, self._options, self._plan, self._first_day = shard, options, plan, first_day
        self._tokens, self._stories = open_store(f"{shard.workspace}/{TOKENS}"), read_stories(stories)

    def write_triplets(self, rows: Sequence[TripletRow]) -> None:
        """Writes one example for each drawn row of Table 1, with the negatives of all ``rows``.

        Args:
          rows: triplets that differ only in their negative.
        """
        self._shard.read(len(rows))
        keyed = [("-".join(row[:3]), row) for row in rows]
        found = [(key, documents) for key, row in keyed if (documents := self._triplet(key, row))]
        if not found:
            return
        (key, (anchor, positive, _)), negatives = found[0], [documents[2] for _, documents in found]
        drawn = draw_rows(key, anchor, positive, negatives, self._options)
        for unusable, _ in found if not drawn else ():
            detail = "the documents have no texts for any row of Table 1 that has a weight"
            self._shard.fail(unusable, Failure.MISSING_FIELD, detail)
        if not drawn:
            return
        held_out = self._is_held_out(anchor, positive)
        self._accept(TRIPLETS, len(found), held_out=held_out)
        for drawn_row in drawn:
            others = [positive_document(drawn_row, anchor, positive), *negatives]
            english, language = self._find_english(key, anchor, others), rows[0].language
            tokens, texts = augment(drawn_row, anchor, english or others, self._options.max_length, key)
            facts = {"augmentation": int(drawn_row), "translated": int(english is not None), "language": language}
            features = self._triplet_features(anchor, others, tokens, texts)
            self._shard.write_example(TRIPLETS, language, features | facts, held_out=held_out)
            self._shard.tally(f"augmentation/{drawn_row.name.lower()}")

    def _triplet(self, key: str, row: TripletRow) -> list[DocumentTokens] | None:
        """Returns anchor, positive and negative of a triplet, or ``None`` after counting why not."""
        documents = self._find(key, row[:3])
        if documents and self._is_held_out(documents[2]) and not self._is_held_out(*documents[:2]):
            detail = f"{row.negative} is held out, as all documents from {self._first_day} on"
            self._shard.reject(key, Rejection.HELD_OUT_NEGATIVE, detail)
            return None
        return documents

    def _triplet_features(
        self, anchor: DocumentTokens, others: Sequence[DocumentTokens], tokens: np.ndarray, texts: Sequence[np.ndarray]
    ) -> dict[str, Any]:
        """The features of the texts and of their documents; the event is the id of the story, and the day."""
        rows = [tokens, texts[0], np.concatenate(texts[1:])]
        features: dict[str, Any] = {}
        for name, row, documents in zip(_TEXTS, rows, ([anchor], others[:1], others[1:]), strict=True):
            stories = [doc_id_of(self._stories.of(int(one.doc_id, 16))) for one in documents]
            events = [(*doc_id_to_words(story), one.day) for story, one in zip(stories, documents, strict=True)]
            features[f"{name}_tokens"] = row.tolist()
            features[f"{name}_doc_id"] = [word for one in documents for word in doc_id_to_words(one.doc_id)]
            features[f"{name}_event"] = [number for event in events for number in event]
        return features

    def _find_english(
        self, key: str, anchor: DocumentTokens, others: Sequence[DocumentTokens]
    ) -> list[DocumentTokens] | None:
        """Returns the translations of an example's positive and negative, ``None`` if it is not translated; tallies."""
        if self._plan is None:
            return None
        refusal = self._plan.refusal(key, anchor, *others)
        if refusal is None:
            store = open_store(f"{self._shard.workspace}/{TRANSLATED}")
            found = [document for one in others if (document := store.get(one.doc_id))]
            if len(found) == len(others):
                self._shard.tally("translation/translated")
                return found
            # A document is in the dead letters of the phase. With one text in English the pair would be too easy.
            refusal = "failed"
        self._shard.tally(f"translation/{refusal}")
        return None

    def write_topics(self, rows: Iterable[TopicLabels]) -> None:
        """Writes labelled documents of one language together; the last example of each may have fewer documents."""
        accepted: dict[tuple[str, bool], list[TopicLabels]] = collections.defaultdict(list)
        for row in rows:
            self._shard.read()
            for document in self._find(row.doc_id, [row.doc_id]) or ():
                held_out = self._is_held_out(document)
                self._accept(TOPICS, 1, held_out=held_out)
                self._shard.tally(f"{LABEL_COUNTS}{-(-len(row.labels) // _LABELS_STEP) * _LABELS_STEP}")
                accepted[document.language, held_out].append(row)
        places = self._options.documents_per_example
        for (language, held_out), own in accepted.items():
            for part in (own[one] for one in slices(len(own), places)):
                documents = filter(None, (self._tokens.get(row.doc_id) for row in part))
                texts = [join_document(one.title, one.body, self._options.max_length) for one in documents]
                self._shard.write_example(TOPICS, language, topic_features(part, texts, places), held_out=held_out)

    def _is_held_out(self, *documents: DocumentTokens) -> bool:
        return any(is_held_out(document.day, self._first_day) for document in documents)

    def _accept(self, task: Task, records: int, *, held_out: bool) -> None:
        """Counts records as written, and those that are held out under a name, too."""
        self._shard.written(records)
        if held_out:
            self._shard.tally(f"{HELD_OUT_RECORDS}{task.name}", records)

    def _find(self, key: str, doc_ids: Sequence[str]) -> list[DocumentTokens] | None:
        found = {doc_id: self._tokens.get(doc_id) for doc_id in doc_ids}
        if missing := [doc_id for doc_id, document in found.items() if document is None]:
            self._shard.fail(key, Failure.MISSING_FIELD, f"no article {missing[0]}")
            return None
        return [document for doc_id in doc_ids if (document := found[doc_id])]


def topic_features(rows: Sequence[TopicLabels], texts: Sequence[np.ndarray], places: int) -> dict[str, Any]:
    """Returns labelled documents as the features of one record of the task `TOPICS`.

    Every document has as many slots for labels as the one with the most; places without a document have empty slots.

    Args:
      rows: one or more.
      texts: of the rows, int32 ids with special tokens.
      places: documents of each record.
    """
    topic_ids, labels = (np.full((places, max(len(row.labels) for row in rows)), fill) for fill in (0, NO_LABEL))
    for place, row in enumerate(rows):
        topic_ids[place, : len(row.labels)], labels[place, : len(row.labels)] = row.topic_ids, row.labels
    words = [word for row in rows for word in doc_id_to_words(row.doc_id)]
    return {
        "tokens": np.concatenate(texts).tolist(),
        "topic_ids": topic_ids.ravel().tolist(),
        "topic_labels": labels.ravel().tolist(),
        "doc_id": words + [0] * (2 * (places - len(rows))),
    }
