"""``newsembed examples``: writes triplets, augmented as in Table 1, and labelled documents as TFRecords."""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import apache_beam as beam
import numpy as np

from ..errors import InputError, require_option
from ..formats.manifest import DataSet
from ..formats.parquet import read_records, shard_paths
from ..formats.records import Failure, TopicLabels, Triplet, doc_id_to_words
from ..formats.tfrecords.writer import TFRecordShardWriter
from ..tasks.registry import Task
from ..tasks.topics import TOPICS
from ..tasks.triplets import TRIPLETS, Augmentation
from ..tasks.vocabulary import Vocabulary, join_document
from . import translation
from .arrays import Array, doc_id_of, doc_ids_of
from .augmentation import (
    AugmentedTriplet,
    augment,
    draw_augmentations,
    positive_document,
    possible_augmentations,
    token_overlap,
    usable_anchor_texts,
)
from .exchange import receive, send
from .jobs import InputSpec, Job, JobRun
from .shards import GroupByShard, ProcessShards, Shard, shard_numbers
from .texts import (
    UNDETERMINED,
    ArticleText,
    language_key,
    load_vocabulary,
    read_text_batches,
    shuffle_key,
    vocabulary_input_digest,
    vocabulary_path,
)
from .token_store import DocumentTokens, TokenStore, open_store, write_shard
from .translated_documents import (
    STREAM,
    TranslationPlan,
    TranslationSettings,
    place_wanted,
    read_places,
    translate_documents,
)

_EXAMPLES = "examples/"
_SHORTEST_TEXT = 8
_LANGUAGE_BYTES = 64
# Rows that are sent to the shard of their document: triplets, and single labels; labels of one record are consecutive.
_TRIPLETS: Final = np.dtype(
    [("anchor", np.uint64), ("positive", np.uint64), ("negative", np.uint64), ("language", f"S{_LANGUAGE_BYTES}")]
)
_LABELS: Final = np.dtype([("doc_id", np.uint64), ("record", np.int64), ("topic", np.int64), ("label", np.int8)])
# Rows that are received: (task, anchor, positive, negative, language) or (task, doc_id, topic ids, labels).
_TripletRow = tuple[str, str, str, str, str]
_TopicRow = tuple[str, str, tuple[int, ...], tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class ExamplesOptions:
    """Options of ``examples``."""

    max_length: int = dataclasses.field(default=512, metadata={"help": "tokens of a text, including special tokens"})
    augmentations_per_triplet: int = dataclasses.field(
        default=1, metadata={"help": "distinct rows of Table 1 to draw for each triplet, 1 to 4"}
    )
    weights: tuple[float, ...] = dataclasses.field(
        default=(1.0, 1.0, 1.0, 1.0),
        metadata={
            "help": "weights of the rows of Table 1: title to body, anchor text to document, title to document, "
            "document to document"
        },
    )
    min_anchor_similarity: float = dataclasses.field(
        default=0.5, metadata={"help": "least similarity of an anchor text to the title"}
    )
    max_anchor_texts: int = dataclasses.field(
        default=8, metadata={"help": "anchor texts to keep of a document, the most similar first"}
    )
    negatives_per_example: int = dataclasses.field(
        default=1,
        metadata={
            "help": "negatives of an example: so many triplets of one anchor and positive are merged "
            "(--triplets.negatives_per_positive mines them)"
        },
    )
    translate_share: float = dataclasses.field(
        default=1.0,
        metadata={"help": "share of the triplets without English that get an English positive and negative"},
    )
    translate_words: int = dataclasses.field(
        default=400,
        metadata={"help": "words of a body to translate, in whole sentences; 400 fill about 512 tokens"},
    )
    translation_beam: int = dataclasses.field(
        default=2, metadata={"help": "beam size of the translation; 1 is greedy and faster"}
    )
    translation_cache: str = dataclasses.field(
        default="",
        metadata={"help": "folder that keeps translations for other runs and jobs; kept only during this job if empty"},
    )

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="examples")
        require(self.max_length >= _SHORTEST_TEXT, "max_length", self.max_length, f"at least {_SHORTEST_TEXT}")
        rows = len(Augmentation)
        require(
            1 <= self.augmentations_per_triplet <= rows,
            "augmentations_per_triplet",
            self.augmentations_per_triplet,
            f"1 to {rows}",
        )
        fits = len(self.weights) == rows and min(self.weights) >= 0 and sum(self.weights) > 0
        require(fits, "weights", self.weights, f"{rows} numbers, none negative, not all 0")
        require(
            0 <= self.min_anchor_similarity <= 1,
            "min_anchor_similarity",
            self.min_anchor_similarity,
            "a number from 0 to 1",
        )
        require(self.max_anchor_texts >= 0, "max_anchor_texts", self.max_anchor_texts, "0 or more")
        require(self.negatives_per_example >= 1, "negatives_per_example", self.negatives_per_example, "1 or more")
        require(0 <= self.translate_share <= 1, "translate_share", self.translate_share, "a number from 0 to 1")
        require(self.translate_words >= 1, "translate_words", self.translate_words, "1 or more")
        require(self.translation_beam >= 1, "translation_beam", self.translation_beam, "1 or more")


def store_tokens(shard: Shard, path: str, vocabulary: str, options: ExamplesOptions) -> None:
    """Tokenizes one shard of articles into the token store."""
    documents: list[DocumentTokens] = []
    for batch in read_text_batches(path):
        shard.read(len(batch))
        shard.written(len(batch))
        documents.extend(_tokenize(batch, load_vocabulary(vocabulary), options))
    shard.tally("anchor_texts", sum(len(document.anchor_texts) for document in documents))
    write_shard(shard.path("_tokens", "").rstrip("."), documents)


def _tokenize(batch: list[ArticleText], vocabulary: Vocabulary, options: ExamplesOptions) -> Iterator[DocumentTokens]:
    titles = vocabulary.encode_texts([article.title for article in batch])
    bodies = vocabulary.encode_texts([article.body for article in batch])
    anchors = iter(vocabulary.encode_texts([text for article in batch for text in article.anchor_texts]))
    for article, title, body in zip(batch, titles, bodies, strict=True):
        own = [next(anchors) for _ in article.anchor_texts]
        usable = usable_anchor_texts(own, title, token_overlap, options.min_anchor_similarity, options.max_anchor_texts)
        # max_length ids of each part suffice for every way of joining them.
        kept = [part[: options.max_length] for part in (title, body, *usable)]
        yield DocumentTokens(
            article.doc_id, language_key(article.language) or UNDETERMINED, kept[0], kept[1], tuple(kept[2:])
        )


def send_triplets(shard: Shard, path: str, receiver_count: int) -> None:
    """Sends the triplets of one Parquet shard to the shards of their anchors."""
    rows: list[tuple[Any, ...]] = []
    for triplet in read_records(path, Triplet):
        shard.read()
        doc_ids, language = (triplet.anchor, triplet.positive, triplet.negative), language_key(triplet.language)
        if language is None or len(language) > _LANGUAGE_BYTES:
            shard.fail("-".join(doc_ids), Failure.BROKEN_RECORD, f"language {triplet.language!r} is no BCP-47 tag")
            continue
        shard.written()
        rows.append((*(int(doc_id, 16) for doc_id in doc_ids), language.encode("ascii")))
    _send_both(shard, np.array(rows, _TRIPLETS), np.zeros(0, _LABELS), receiver_count)


def send_labels(shard: Shard, path: str, receiver_count: int) -> None:
    """Sends the topic labels of one Parquet shard to the shards of their documents."""
    rows: list[tuple[int, int, int, int]] = []
    for number, one in enumerate(read_records(path, TopicLabels), shard.index << 32):  # unique among the senders
        shard.read()
        if len(one.topic_ids) != len(one.labels) or not one.topic_ids or not set(one.labels) <= {0, 1}:
            shard.fail(one.doc_id, Failure.BROKEN_RECORD, f"topics {one.topic_ids} with labels {one.labels}")
            continue
        shard.written()
        doc_id = int(one.doc_id, 16)
        rows += [(doc_id, number, topic, label) for topic, label in zip(one.topic_ids, one.labels, strict=True)]
    _send_both(shard, np.zeros(0, _TRIPLETS), np.array(rows, _LABELS), receiver_count)


def _send_both(shard: Shard, triplets: Array, labels: Array, receiver_count: int) -> None:
    send(shard, "_triplets", triplets, shard_numbers(triplets["anchor"], receiver_count), receiver_count)
    send(shard, "_labels", labels, shard_numbers(labels["doc_id"], receiver_count), receiver_count)


def _send(shard: Shard, source: tuple[str, str], receiver_count: int) -> None:
    (send_triplets if source[0] == TRIPLETS.name else send_labels)(shard, source[1], receiver_count)


def receive_rows(workspace: str, shard: int) -> Iterator[_TripletRow | _TopicRow]:
    """Yields all triplets and labelled documents of one shard."""
    triplets, labels = receive(workspace, "_triplets", shard), receive(workspace, "_labels", shard)
    doc_ids = (doc_ids_of(triplets[name]).tolist() for name in ("anchor", "positive", "negative"))
    for *of_row, language in zip(*doc_ids, triplets["language"].tolist(), strict=True):
        yield TRIPLETS.name, *of_row, language.decode("ascii")
    if not len(labels):
        return
    record = labels[["doc_id", "record"]]
    for part in np.split(labels, np.flatnonzero(record[1:] != record[:-1]) + 1):
        yield (
            TOPICS.name,
            doc_id_of(int(part["doc_id"][0])),
            tuple(part["topic"].tolist()),
            tuple(part["label"].tolist()),
        )


def read_wanted(
    path: str, workspace: str, options: ExamplesOptions, plan: TranslationPlan
) -> Iterator[tuple[str, int]]:
    """Yields (doc_id, 0) for every document to translate for the triplets of one Parquet shard."""
    store = open_store(f"{workspace}/_tokens")
    for triplet in read_records(path, Triplet):
        doc_ids = (triplet.anchor, triplet.positive, triplet.negative)
        anchor, positive, negative = map(store.get, doc_ids)
        if anchor is None or positive is None or negative is None:
            continue  # counted as failed when the examples are written
        key = "-".join(doc_ids)
        for row in _draw(key, anchor, positive, [negative], options):
            pair = positive_document(row, anchor, positive), negative
            if plan.refusal(key, anchor, *pair) is None:
                yield from ((document.doc_id, 0) for document in pair)


def _draw(
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


def write_examples(shard: Shard, number: int, options: ExamplesOptions, plan: TranslationPlan | None) -> None:
    """Writes the triplets and labelled documents of one shard in shuffled order."""
    rows = receive_rows(shard.workspace, number)
    writer = _Writer(shard, open_store(f"{shard.workspace}/_tokens"), options, plan)
    for group in group_negatives(sorted(rows, key=lambda row: shuffle_key(*row)), options.negatives_per_example):
        shard.read(len(group))
        if group[0][0] == TRIPLETS.name:
            writer.write_triplets(group)
        else:
            writer.write_topics(group[0])


def group_negatives(rows: Iterable[Any], count: int) -> list[list[Any]]:
    """Groups triplets that differ only in their negative.

    Args:
      rows: rows of :func:`receive_rows`.
      count: largest number of triplets in a group.

    Returns:
      Groups in the order of their first row; a row of another task is a group of its own.
    """
    groups: list[list[Any]] = []
    open_groups: dict[Any, list[Any]] = {}
    for row in rows:
        shared = (*row[:3], row[4]) if row[0] == TRIPLETS.name else row
        group = open_groups.get(shared)
        if group is None or len(group) == count or row[0] != TRIPLETS.name:
            groups.append([row])
            open_groups[shared] = groups[-1]
        else:
            group.append(row)
    return groups


class _Writer:
    """Writes the rows of one shard as TFRecords, one file per task and language."""

    def __init__(self, shard: Shard, store: TokenStore, options: ExamplesOptions, plan: TranslationPlan | None) -> None:
        self._shard = shard
        self._store = store
        self._options = options
        self._plan = plan
        self._files: dict[DataSet, TFRecordShardWriter] = {}

    def write_triplets(self, rows: list[_TripletRow]) -> None:
        """Writes one example for each drawn row of Table 1, with the negatives of all ``rows``.

        Args:
          rows: triplets that differ only in their negative.
        """
        readable = [found for row in rows if (found := self._read(row)) is not None]
        if not readable:
            return
        (key, language, anchor, positive, _), negatives = readable[0], [negative for *_, negative in readable]
        drawn = _draw(key, anchor, positive, negatives, self._options)
        if not drawn:
            for unusable, *_ in readable:
                self._shard.fail(
                    unusable,
                    Failure.MISSING_FIELD,
                    "the documents have no texts for any row of Table 1 that has a weight",
                )
            return
        self._shard.written(len(readable))
        for augmentation in drawn:
            english = self._find_english(key, anchor, positive_document(augmentation, anchor, positive), negatives[0])
            triplets = [
                augment(augmentation, anchor, positive, one, self._options.max_length, key, english)
                for one in negatives
            ]
            self._write(TRIPLETS, language, triplet_features(triplets, anchor.doc_id, language))
            self._shard.tally(f"augmentation/{augmentation.name.lower()}")

    def _read(self, row: _TripletRow) -> tuple[str, str, DocumentTokens, DocumentTokens, DocumentTokens] | None:
        """Returns key, language, anchor, positive and negative of a triplet, or ``None`` after counting a failure."""
        _, *doc_ids, language = row
        key = "-".join(doc_ids)
        documents = self._find(key, doc_ids)
        if documents is None:
            return None
        anchor, positive, negative = documents
        return key, language, anchor, positive, negative

    def write_topics(self, row: _TopicRow) -> None:
        """Writes one labelled document."""
        _, doc_id, topic_ids, labels = row
        documents = self._find(doc_id, [doc_id])
        if documents is None:
            return
        self._shard.written()
        document = documents[0]
        features = {
            "tokens": join_document(document.title, document.body, self._options.max_length).tolist(),
            "topic_ids": topic_ids,
            "topic_labels": labels,
            "doc_id": doc_id_to_words(doc_id),
        }
        self._write(TOPICS, document.language, features)

    def _find(self, key: str, doc_ids: list[str]) -> list[DocumentTokens] | None:
        found = [self._store.get(doc_id) for doc_id in doc_ids]
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

    def _write(self, task: Task, language: str, features: dict[str, Any]) -> None:
        data_set = DataSet(task.name, language)
        if data_set not in self._files:
            self._files[data_set] = self._shard.examples(data_set.stream)
        self._files[data_set].write(features, task.features)
        self._shard.tally(f"{_EXAMPLES}{data_set}")


def triplet_features(triplets: Sequence[AugmentedTriplet], anchor_doc_id: str, language: str) -> dict[str, Any]:
    """Returns triplets that differ only in their negative as the features of the task `TRIPLETS`."""
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
    }


def run(run: JobRun) -> None:
    """Stores the tokens of all articles, then writes triplets and topics in the shard of their document.

    Raises:
      InputError: if nothing was written, several negatives are to be translated, or vocabulary or a model is broken.
    """
    articles = shard_paths(f"{run.input('articles')}/articles")
    triplets = shard_paths(f"{run.input('triplets')}/triplets")
    labels = [path for folder in run.inputs["topics"] for path in shard_paths(f"{folder}/labels")]
    vocabulary = vocabulary_path(run.input("vocabulary"))
    Vocabulary.load(vocabulary)  # reports a broken file here, not from inside a worker
    if run.inputs["translation_models"]:
        if run.options.negatives_per_example > 1:
            raise InputError(
                f"got {run.options.negatives_per_example} together with --translation_models, expected 1",
                field="--negatives_per_example",
                remedy="translation supports only one negative per example: leave out one of the two options",
            )
        # Translating nothing loads the model, which reports a broken model here.
        translator = _open_translator(run)
        for language in translator.languages:
            translator.translate([], language)
    run.map_shards(
        "tokens", functools.partial(store_tokens, vocabulary=vocabulary, options=run.options), articles, accounted=False
    )
    plan = _translate(run, articles, triplets, vocabulary)
    sources = [(TRIPLETS.name, path) for path in triplets] + [(TOPICS.name, path) for path in labels]
    run.map_shards("send", functools.partial(_send, receiver_count=len(articles)), sources)
    run.map_shards("examples", functools.partial(write_examples, options=run.options, plan=plan), range(len(articles)))
    tallies = run.counts_of("examples").tallies
    counts = {
        name.removeprefix(_EXAMPLES): count for name, count in sorted(tallies.items()) if name.startswith(_EXAMPLES)
    }
    if not counts:
        raise InputError(
            "there are no triplets and no topics",
            path=run.input("triplets"),
            remedy="look at the rejections in its manifest.json",
        )
    run.extra["examples"] = counts


def _open_translator(run: JobRun) -> translation.Translator:
    return translation.open_translator(run.input("translation_models"), run.options.translation_beam, run.workspace)


def _translate(run: JobRun, articles: list[str], triplets: Sequence[str], vocabulary: str) -> TranslationPlan | None:
    """Translates the documents of triplets without English; returns ``None`` without models.

    The phase counts documents, so it is not part of the job's chain of counts.
    """
    if not run.inputs["translation_models"]:
        return None
    options: ExamplesOptions = run.options
    plan = TranslationPlan(_open_translator(run).languages, options.translate_share)
    settings = TranslationSettings(
        models=run.input("translation_models"),
        beam_size=options.translation_beam,
        words=options.translate_words,
        cache=options.translation_cache,
        vocabulary=vocabulary,
        max_length=options.max_length,
    )
    phase = run.phase("translate", len(articles), accounted=False)
    with run.pipeline(phase) as pipeline:
        wanted = (
            pipeline | "Triplets" >> beam.Create(triplets) | beam.FlatMap(read_wanted, run.workspace, options, plan)
        )
        places = pipeline | "Articles" >> beam.Create(list(enumerate(articles))) | beam.FlatMapTuple(read_places)
        joined = {"wanted": wanted, "places": places} | beam.CoGroupByKey() | beam.FlatMapTuple(place_wanted)
        translate = functools.partial(translate_documents, articles=articles, settings=settings)
        _ = joined | GroupByShard(len(articles)) | ProcessShards(translate, phase)
    return plan


JOB = Job(
    name="examples",
    summary="augmented triplet and topic TFRecords",
    example=(
        "newsembed examples --articles work/clean --triplets work/triplets --topics work/topics \\\n"
        "      --vocabulary work/vocabulary --output work/examples"
    ),
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec("triplets", "folder that `newsembed triplets` wrote"),
        InputSpec(
            "vocabulary",
            "folder that `newsembed vocabulary` or `newsembed import-hf` wrote, or its vocab.txt",
            digest=vocabulary_input_digest,
        ),
        InputSpec("topics", "folder that `newsembed topics` wrote", required=False),
        InputSpec(
            "translation_models",
            "folder with a CTranslate2 model for each language (DIR/fr, …), to translate positives and negatives of "
            "triplets without English",
            required=False,
            digest=translation.models_digest,
        ),
    ),
    options=ExamplesOptions,
    run=run,
)
