"""``newsembed examples``: writes triplets, augmented as in Table 1, and labelled documents as TFRecords."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam

from ...errors import InputError
from ...formats.manifest import HELD_OUT
from ...formats.parquet import read_records, shard_paths
from ...formats.records import Triplet
from ...tasks.topics import DOCUMENTS, TOPICS
from ...tasks.triplets import TRIPLETS
from ...tasks.vocabulary import Vocabulary
from .. import translation
from ..accounting import Counts
from ..augmentation import positive_document, token_overlap, usable_anchor_texts
from ..graph import Graph
from ..jobs import InputSpec, Job, JobRun, OwnManifest
from ..shards import GroupByShard, ProcessShards, Shard
from ..texts import (
    UNDETERMINED,
    ArticleText,
    language_key,
    load_vocabulary,
    read_text_batches,
    vocabulary_input_digest,
    vocabulary_path,
)
from ..token_store import (
    TOKENS,
    DocumentTokens,
    day_number,
    open_store,
    places_sent,
    store_documents,
    write_index,
)
from ..translated_documents import (
    STREAM,
    TranslationPlan,
    TranslationSettings,
    place_wanted,
    read_places,
    translate_documents,
)
from ..triplets.events import STORIES
from .held_out import count_anchor_days, first_held_out_day, write_first_day
from .options import ExamplesOptions
from .rows import group_negatives, send_rows, sent_rows
from .writing import (
    HELD_OUT_EXAMPLES,
    HELD_OUT_RECORDS,
    LABEL_COUNTS,
    TRAINING_EXAMPLES,
    draw_rows,
    write_examples,
)

__all__ = ["JOB", "ExamplesOptions", "group_negatives"]


_NOTHING_MINED = (
    "give articles of more than a year: a triplet needs two reports of one event and an article that is a year away; "
    "see `newsembed rejected` on the folder of the build"
)


def store_tokens(shard: Shard, path: str, vocabulary: str, options: ExamplesOptions, shard_count: int) -> None:
    """Tokenizes one shard of articles into the token store, whose index has ``shard_count`` parts."""
    documents: list[DocumentTokens] = []
    for batch in read_text_batches(path):
        shard.read(len(batch))
        shard.written(len(batch))
        documents.extend(_tokenize(batch, load_vocabulary(vocabulary), options))
    shard.tally("anchor_texts", sum(len(document.anchor_texts) for document in documents))
    store_documents(shard, TOKENS, documents, shard_count)


def _tokenize(batch: list[ArticleText], vocabulary: Vocabulary, options: ExamplesOptions) -> Iterator[DocumentTokens]:
    titles = vocabulary.encode_texts([article.title for article in batch])
    bodies = vocabulary.encode_texts([article.body for article in batch])
    anchors = iter(vocabulary.encode_texts([text for article in batch for text in article.anchor_texts]))
    for article, title, body in zip(batch, titles, bodies, strict=True):
        own = [next(anchors) for _ in article.anchor_texts]
        usable = usable_anchor_texts(own, title, token_overlap, options.min_anchor_similarity, options.max_anchor_texts)
        # max_length ids of each part suffice for every way of joining them.
        kept = [part[: options.max_length] for part in (title, body, *usable)]
        language, day = language_key(article.language) or UNDETERMINED, day_number(article.byline_date)
        yield DocumentTokens(article.doc_id, language, kept[0], kept[1], tuple(kept[2:]), day)


def read_wanted(
    path: str, workspace: str, options: ExamplesOptions, plan: TranslationPlan
) -> Iterator[tuple[str, int]]:
    """Yields (doc_id, 0) for every document to translate for the triplets of one Parquet shard."""
    store = open_store(f"{workspace}/{TOKENS}")
    for triplet in read_records(path, Triplet):
        doc_ids = (triplet.anchor, triplet.positive, triplet.negative)
        anchor, positive, negative = map(store.get, doc_ids)
        if anchor is None or positive is None or negative is None:
            continue  # counted as failed when the examples are written
        key = "-".join(doc_ids)
        for row in draw_rows(key, anchor, positive, [negative], options):
            pair = positive_document(row, anchor, positive), negative
            if plan.refusal(key, anchor, *pair) is None:
                yield from ((document.doc_id, 0) for document in pair)


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
    sources = [(TRIPLETS.name, path) for path in triplets] + [(TOPICS.name, path) for path in labels]
    store = functools.partial(store_tokens, vocabulary=vocabulary, options=run.options, shard_count=len(articles))
    stories = f"{run.input('triplets')}/{STORIES}"
    with run.graph("examples", max(len(articles), len(sources))) as graph:
        run.map_shards("tokens", store, articles, accounted=False)
        _index(run, "tokens", TOKENS, len(articles))
        plan = _translate(run, graph, articles, triplets, vocabulary)
        run.map_shards("send", functools.partial(send_rows, shard_count=len(articles)), sources)
        if run.options.held_out_share:
            run.map_shards("anchors", count_anchor_days, triplets, accounted=False)
            run.map_shards("first day", write_first_day, [run.options], accounted=False)
        write = functools.partial(write_examples, options=run.options, plan=plan, stories=stories)
        streams = [("send", rows) for rows in sent_rows()]
        run.map_rows("examples", write, [None] * len(articles), streams)
    first_day = first_held_out_day(run.workspace, run.options)
    tallies = run.counts_of("examples").tallies
    run.extra["examples"] = _counts_of_sets(tallies, TRAINING_EXAMPLES)
    sizes = _row_sizes(tallies, run.options)
    run.extra |= sizes
    if not run.extra["examples"]:
        raise InputError(
            "there are no triplets and no topics" + (f" before {first_day}" if first_day else ""),
            path=run.input("triplets"),
            remedy="hold out less" if first_day else _NOTHING_MINED,
        )
    if first_day is not None or run.options.held_out_share:
        held_out = _counts_of_sets(tallies, HELD_OUT_EXAMPLES)
        if not held_out:
            raise InputError(
                f"there are no triplets and no topics of {first_day or 'a known day'} or later",
                path=run.input("triplets"),
                field="--held_out_from" if run.options.held_out_from else "--held_out_share",
                remedy="name a day that the corpus reaches",
            )
        records = sum(count for name, count in tallies.items() if name.startswith(HELD_OUT_RECORDS))
        facts = {"held_out_from": str(first_day), "examples": held_out}
        run.folders[HELD_OUT] = OwnManifest(Counts(records, records), facts | sizes)
        run.extra["held_out"] = facts


def _counts_of_sets(tallies: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in sorted(tallies.items()) if name.startswith(prefix)}


def _row_sizes(tallies: Mapping[str, int], options: ExamplesOptions) -> dict[str, Any]:
    """Returns the entry of the manifest with the sizes of the largest record; empty without labelled documents."""
    labels = [int(name.removeprefix(LABEL_COUNTS)) for name in tallies if name.startswith(LABEL_COUNTS)]
    if not labels:
        return {}
    return {"row_sizes": {TOPICS.name: {DOCUMENTS: options.documents_per_example, "topic_ids": max(labels)}}}


def _open_translator(run: JobRun) -> translation.Translator:
    return translation.open_translator(run.input("translation_models"), run.options.translation_beam, run.workspace)


def _translate(
    run: JobRun, graph: Graph, articles: list[str], triplets: Sequence[str], vocabulary: str
) -> TranslationPlan | None:
    """Adds a phase that translates the documents of triplets without English; returns ``None`` without models.

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
    translate = functools.partial(translate_documents, articles=articles, settings=settings)

    def attach() -> beam.PCollection:
        wanted = graph.start("Triplets", triplets) | beam.FlatMap(read_wanted, run.workspace, options, plan)
        places = graph.start("Articles", enumerate(articles)) | beam.FlatMapTuple(read_places)
        joined = {"wanted": wanted, "places": places} | beam.CoGroupByKey() | beam.FlatMapTuple(place_wanted)
        return joined | GroupByShard(len(articles)) | ProcessShards(translate, phase)

    graph.add(phase, attach)
    _index(run, "translate", STREAM, len(articles))
    return plan


def _index(run: JobRun, phase: str, stream: str, shard_count: int) -> None:
    """Adds the phase that indexes the documents that a phase stores."""
    write, sent = functools.partial(write_index, stream=stream), [(phase, places_sent(stream))]
    run.map_rows(f"index of {phase}", write, [None] * shard_count, sent, accounted=False, listed=False)


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
