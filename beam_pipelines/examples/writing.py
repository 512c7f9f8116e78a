"""Writes the examples of one shard: the texts of triplets and labelled documents as TFRecords."""

import collections
import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...formats.manifest import HELD_OUT, DataSet
from ...formats.records import Failure, Rejection, doc_id_to_words
from ...formats.tfrecords.writer import TFRecordShardWriter
from ...tasks.registry import Task
from ...tasks.topics import NO_LABEL, TOPICS
from ...tasks.triplets import TRIPLETS, Augmentation
from ...tasks.vocabulary import join_document
from ..arrays import doc_id_of
from ..augmentation import (
    AugmentedTriplet,
    augment,
    draw_augmentations,
    positive_document,
    possible_augmentations,
)
from ..shards import Shard
from ..shuffle import Received
from ..texts import shuffle_key
from ..token_store import TOKENS, DocumentTokens, TokenStore, open_store
from ..translated_documents import STREAM, TranslationPlan
from ..triplets.events import Stories, read_stories
from .held_out import first_held_out_day, is_held_out, without_held_out_negatives
from .options import ExamplesOptions
from .rows import TopicRow, TripletRow, group_negatives, receive_rows

# Prefixes of tallies: the examples of each set, and the records that are held out by task.
TRAINING_EXAMPLES: Final = "examples/"
HELD_OUT_EXAMPLES: Final = "held_out examples/"
HELD_OUT_RECORDS: Final = "held_out records/"
# Documents by their number of labels, rounded up, so that the manifest can say how wide rows must be.
LABEL_COUNTS: Final = "labels of a document, up to/"
_LABELS_STEP: Final = 8


def draw_rows(
    key: str,
    anchor: DocumentTokens,
    positive: DocumentTokens,
    negatives: Sequence[DocumentTokens],
    options: ExamplesOptions,
) -> list[Augmentation]:
    """Draws rows of Table 1 for which the anchor, the positive and all negatives have texts."""
    possible = [possible_augmentations(anchor, positive, negative) for negative in negatives]
    shared = [row for row in possible[0] if all(row in others for others in possible)]
    return draw_augmentations(shared, options.weights, options.augmentations_per_triplet, key)


def write_examples(
    shard: Shard,
    received: Received,
    options: ExamplesOptions,
    plan: TranslationPlan | None,
    stories: str,
) -> None:
    """Writes the triplets and labelled documents of one shard in shuffled order.

    Args:
      shard: the outputs.
      received: its rows, see `sent_rows`.
      options: of the job.
      plan: which examples are translated; ``None`` translates none.
      stories: path of the stories, see `triplets.events.read_stories`.
    """
    held_out_from = first_held_out_day(shard.workspace, options)
    rows = list(receive_rows(received))
    store = open_store(f"{shard.workspace}/{TOKENS}")
    if held_out_from is not None:
        before = set(rows)
        rows = without_held_out_negatives(rows, held_out_from, store.day)
        shard.tally("replaced negatives of held-out days", len(set(rows) - before))
    sources = _Sources(store, read_stories(stories))
    writer = _Writer(shard, sources, options, plan, held_out_from)
    for group in group_negatives(sorted(rows, key=lambda row: shuffle_key(*row)), options.negatives_per_example):
        shard.read(len(group))
        if group[0][0] == TRIPLETS.name:
            writer.write_triplets(group)
        else:
            writer.write_topics(group[0])
    writer.finish()


@dataclasses.dataclass(frozen=True)
class _Sources:
    """Where the texts of documents are, and their stories."""

    tokens: TokenStore
    stories: Stories

    def event(self, document: DocumentTokens) -> tuple[int, int, int]:
        """Returns the features of the event of a document: the two words of the id of its story, and its day."""
        return *doc_id_to_words(doc_id_of(self.stories.of(int(document.doc_id, 16)))), document.day


class LabelledDocument(NamedTuple):
    """A document of an example of topics: its id, its text and its labels."""

    doc_id: str
    tokens: Sequence[int]
    topic_ids: Sequence[int]
    labels: Sequence[int]


class _Writer:
    """Writes the rows of one shard as TFRecords, one file per task and language."""

    def __init__(
        self,
        shard: Shard,
        sources: _Sources,
        options: ExamplesOptions,
        plan: TranslationPlan | None,
        held_out_from: datetime.date | None,
    ) -> None:
        self._shard = shard
        self._sources = sources
        self._options = options
        self._plan = plan
        self._held_out_from = held_out_from
        self._files: dict[str, TFRecordShardWriter] = {}
        self._labelled: dict[tuple[str, bool], list[LabelledDocument]] = collections.defaultdict(list)

    def write_triplets(self, rows: list[TripletRow]) -> None:
        """Writes one example for each drawn row of Table 1, with the negatives of all ``rows``.

        Args:
          rows: triplets that differ only in their negative.
        """
        readable = [found for row in rows if (found := self._read(row)) is not None]
        if not readable:
            return
        (key, language, anchor, positive, _), negatives = readable[0], [negative for *_, negative in readable]
        drawn = draw_rows(key, anchor, positive, negatives, self._options)
        if not drawn:
            for unusable, *_ in readable:
                self._shard.fail(
                    unusable,
                    Failure.MISSING_FIELD,
                    "the documents have no texts for any row of Table 1 that has a weight",
                )
            return
        held_out = self._is_held_out(anchor, positive)
        self._accept(TRIPLETS, len(readable), held_out=held_out)
        for augmentation in drawn:
            english = self._find_english(key, anchor, positive_document(augmentation, anchor, positive), negatives[0])
            triplets = [
                augment(augmentation, anchor, positive, one, self._options.max_length, key, english)
                for one in negatives
            ]
            documents = anchor, positive_document(augmentation, anchor, positive), *negatives
            events = [self._sources.event(document) for document in documents]
            features = triplet_features(triplets, anchor.doc_id, language, events)
            self._write(TRIPLETS, language, features, held_out=held_out)
            self._shard.tally(f"augmentation/{augmentation.name.lower()}")

    def _read(self, row: TripletRow) -> tuple[str, str, DocumentTokens, DocumentTokens, DocumentTokens] | None:
        """Returns key, language, anchor, positive and negative of a triplet, or ``None`` after counting why not."""
        _, *doc_ids, language = row
        key = "-".join(doc_ids)
        documents = self._find(key, doc_ids)
        if documents is None:
            return None
        anchor, positive, negative = documents
        if self._is_held_out(negative) and not self._is_held_out(anchor, positive):
            detail = f"{negative.doc_id} is held out, as all documents from {self._held_out_from} on"
            self._shard.reject(key, Rejection.HELD_OUT_NEGATIVE, detail)
            return None
        return key, language, anchor, positive, negative

    def write_topics(self, row: TopicRow) -> None:
        """Adds one labelled document to the example of its language, which is written once it has all its documents."""
        _, doc_id, topic_ids, labels = row
        documents = self._find(doc_id, [doc_id])
        if documents is None:
            return
        document = documents[0]
        held_out = self._is_held_out(document)
        self._accept(TOPICS, 1, held_out=held_out)
        self._shard.tally(f"{LABEL_COUNTS}{-(-len(labels) // _LABELS_STEP) * _LABELS_STEP}")
        tokens = join_document(document.title, document.body, self._options.max_length).tolist()
        waiting = self._labelled[document.language, held_out]
        waiting.append(LabelledDocument(doc_id, tokens, topic_ids, labels))
        if len(waiting) == self._options.documents_per_example:
            self._write_labelled(document.language, held_out=held_out)

    def finish(self) -> None:
        """Writes the examples that have fewer documents than asked for, because there are no more."""
        for language, held_out in sorted(key for key, waiting in self._labelled.items() if waiting):
            self._write_labelled(language, held_out=held_out)

    def _write_labelled(self, language: str, *, held_out: bool) -> None:
        waiting = self._labelled.pop((language, held_out))
        features = topic_features(waiting, self._options.documents_per_example)
        self._write(TOPICS, language, features, held_out=held_out)

    def _is_held_out(self, *documents: DocumentTokens) -> bool:
        return any(is_held_out(document.day, self._held_out_from) for document in documents)

    def _accept(self, task: Task, records: int, *, held_out: bool) -> None:
        """Counts records as written, and those that are held out under a name, too."""
        self._shard.written(records)
        if held_out:
            self._shard.tally(f"{HELD_OUT_RECORDS}{task.name}", records)

    def _find(self, key: str, doc_ids: list[str]) -> list[DocumentTokens] | None:
        found = [self._sources.tokens.get(doc_id) for doc_id in doc_ids]
        if None in found:
            self._shard.fail(key, Failure.MISSING_FIELD, f"no article {doc_ids[found.index(None)]}")
            return None
        return [document for document in found if document is not None]

    def _find_english(
        self, key: str, anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
    ) -> tuple[DocumentTokens, DocumentTokens] | None:
        """Returns the translations of an example's positive and negative, ``None`` if it is not translated; tallies."""
        if self._plan is None:
            return None
        refusal = self._plan.refusal(key, anchor, positive, negative)
        if refusal is None:
            store = open_store(f"{self._shard.workspace}/{STREAM}")
            found = store.get(positive.doc_id), store.get(negative.doc_id)
            if found[0] is not None and found[1] is not None:
                self._shard.tally("translation/translated")
                return found[0], found[1]
            # The document is in the dead letters of the phase. With one text in English the pair would be too easy.
            refusal = "failed"
        self._shard.tally(f"translation/{refusal}")
        return None

    def _write(self, task: Task, language: str, features: dict[str, Any], *, held_out: bool) -> None:
        data_set = DataSet(task.name, language)
        stream = f"{HELD_OUT}/{data_set.stream}" if held_out else data_set.stream
        if stream not in self._files:
            self._files[stream] = self._shard.examples(stream)
        self._files[stream].write(features, task.features)
        self._shard.tally(f"{HELD_OUT_EXAMPLES if held_out else TRAINING_EXAMPLES}{data_set}")


def topic_features(documents: Sequence[LabelledDocument], places: int) -> dict[str, Any]:
    """Returns labelled documents as the features of one record of the task `TOPICS`.

    Every document has as many slots for labels as the one with the most; places without a document have empty slots.

    Args:
      documents: one or more.
      places: documents of each record.
    """
    slots = max(len(document.labels) for document in documents)
    empty = places - len(documents)
    topic_ids: list[int] = []
    labels: list[int] = []
    words: list[int] = []
    for document in documents:
        spare = slots - len(document.labels)
        topic_ids += [*document.topic_ids, *[0] * spare]
        labels += [*document.labels, *[NO_LABEL] * spare]
        words += doc_id_to_words(document.doc_id)
    return {
        "tokens": [token for document in documents for token in document.tokens],
        "topic_ids": topic_ids + [0] * (empty * slots),
        "topic_labels": labels + [NO_LABEL] * (empty * slots),
        "doc_id": words + [0] * (2 * empty),
    }


def triplet_features(
    triplets: Sequence[AugmentedTriplet],
    anchor_doc_id: str,
    language: str,
    events: Sequence[tuple[int, int, int]],
) -> dict[str, Any]:
    """Returns triplets that differ only in their negative as the features of the task `TRIPLETS`.

    Args:
      triplets: one for each negative.
      anchor_doc_id: document of the anchor.
      language: of the anchor.
      events: of the anchor, the positive and each negative.
    """
    first = triplets[0]
    return {
        "anchor_tokens": first.anchor_tokens.tolist(),
        "positive_tokens": first.positive_tokens.tolist(),
        "negative_tokens": [token for triplet in triplets for token in triplet.negative_tokens.tolist()],
        "augmentation": int(first.augmentation),
        "translated": int(first.translated),
        "language": language,
        "anchor_doc_id": doc_id_to_words(anchor_doc_id),
        "positive_doc_id": doc_id_to_words(first.positive_doc_id),
        "negative_doc_id": [word for triplet in triplets for word in doc_id_to_words(triplet.negative_doc_id)],
        "anchor_event": events[0],
        "positive_event": events[1],
        "negative_event": [number for event in events[2:] for number in event],
    }
