"""``newsembed examples``: writes triplets, augmented as in Table 1, and labelled documents as TFRecords."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats.manifest import HELD_OUT
from ...formats.parquet import read_records, shard_paths
from ...formats.records import Triplet
from ...tasks.kinds import DOCUMENTS, TOPICS
from ...tasks.vocabulary import Vocabulary
from .. import translation
from ..graph import send
from ..jobs import ARTICLES, InputSpec, Job, JobRun, optional
from ..shards import HELD_OUT_EXAMPLES, TRAINING_EXAMPLES, Shard
from ..texts import (
    VOCABULARY_INPUT,
    ArticleText,
    checked_vocabulary,
    language_key,
    load_vocabulary,
    read_text_batches,
)
from ..token_store import TOKENS, DocumentTokens, day_number, open_store, places_sent, store_documents, write_index
from ..triplets.table import STORIES
from .writing import (
    HELD_OUT_RECORDS,
    LABEL_COUNTS,
    LABEL_ROWS,
    TRIPLET_ROWS,
    ExamplesOptions,
    count_anchor_days,
    draw_rows,
    first_held_out_day,
    positive_document,
    send_labels,
    send_triplets,
    usable_anchor_texts,
    write_examples,
    write_first_day,
)

_NOTHING_MINED: Final = (
    "give articles of more than a year: a triplet needs two reports of one event and an article that is a year away; "
    "see `newsembed rejected` on the folder of the build"
)


def store_tokens(shard: Shard, path: str, vocabulary: str, options: ExamplesOptions) -> None:
    """Tokenizes one shard of articles into the token store."""
    documents: list[DocumentTokens] = []
    pieces = load_vocabulary(vocabulary)
    for batch in read_text_batches(path):
        shard.read(len(batch))
        shard.written(len(batch))
        documents += _tokenize(batch, pieces, options)
    shard.tally("anchor_texts", sum(len(document.anchor_texts) for document in documents))
    store_documents(shard, TOKENS, documents)


def _tokenize(batch: list[ArticleText], vocabulary: Vocabulary, options: ExamplesOptions) -> Iterator[DocumentTokens]:
    titles = vocabulary.encode_texts([article.title for article in batch])
    bodies = vocabulary.encode_texts([article.body for article in batch])
    anchors = iter(vocabulary.encode_texts([text for article in batch for text in article.anchor_texts]))
    for article, title, body in zip(batch, titles, bodies, strict=True):
        usable = usable_anchor_texts([next(anchors) for _ in article.anchor_texts], title)
        # max_length ids of each part suffice for every way of joining them.
        title, body, *usable = (part[: options.max_length] for part in (title, body, *usable))  # noqa: PLW2901 - cut
        language, day = language_key(article.language), day_number(article.byline_date)
        yield DocumentTokens(article.doc_id, language, title, body, tuple(usable), day)


def send_wanted(shard: Shard, path: str, options: ExamplesOptions, plan: translation.TranslationPlan) -> None:
    """Sends the ids of the documents to translate for the triplets of one Parquet shard to the shards of articles."""
    store, wanted = open_store(f"{shard.workspace}/{TOKENS}"), set[str]()
    for triplet in read_records(path, Triplet):
        doc_ids = (triplet.anchor, triplet.positive, triplet.negative)
        found = [document for one in doc_ids if (document := store.get(one))]
        if len(found) < len(doc_ids):
            continue  # counted as failed when the examples are written
        key, (anchor, positive, negative) = "-".join(doc_ids), found
        for row in draw_rows(key, anchor, positive, [negative], options):
            pair = positive_document(row, anchor, positive), negative
            if plan.refusal(key, anchor, *pair) is None:
                wanted |= {document.doc_id for document in pair}
    ids = np.array([int(doc_id, 16) for doc_id in sorted(wanted)], np.uint64)
    send(shard, translation.WANTED.stream, ids, store.places(ids)["shard"])


def run(run: JobRun) -> None:
    """Stores the tokens of all articles, then writes triplets and topics in the shard of their document.

    Raises:
      InputError: if nothing was written, several negatives are to be translated, or vocabulary or a model is broken.
    """
    options: ExamplesOptions = run.options
    articles, triplets = run.shards("articles"), run.shards("triplets")
    labels = [path for folder in run.inputs["topics"] for path in shard_paths(f"{folder}/labels")]
    vocabulary, count = checked_vocabulary(run), len(articles)
    plan = _translation_plan(run, vocabulary) if run.inputs["translation_models"] else None
    with run.graph(max(count, len(triplets), len(labels))):
        run.map_shards("tokens", store_tokens, articles, vocabulary=vocabulary, options=options, accounted=False)
        _index(run, "tokens", TOKENS, count)
        if plan:
            run.map_shards("wanted", send_wanted, triplets, options=options, plan=plan, accounted=False)
            translate, wanted = translation.translate_documents, [("wanted", translation.WANTED)]
            run.map_rows("translate", translate, articles, wanted, plan=plan, accounted=False)
            _index(run, "translate", translation.TRANSLATED, count)
        sources = [(send_triplets, path) for path in triplets] + [(send_labels, path) for path in labels]
        run.map_shards("send", _send, sources, shard_count=count)
        if options.held_out_share:
            run.map_shards("anchors", count_anchor_days, triplets, accounted=False)
            run.map_shards("first day", write_first_day, [options], accounted=False)
        facts: dict[str, Any] = {"options": options, "plan": plan, "stories": f"{run.input('triplets')}/{STORIES}"}
        sent = [("send", TRIPLET_ROWS), ("send", LABEL_ROWS)]
        run.map_rows("examples", write_examples, [None] * count, sent, **facts)
    _describe(run)


def _send(shard: Shard, source: tuple[Callable[[Shard, str, int], None], str], shard_count: int) -> None:
    """Sends the rows of one Parquet shard, which is given with the function that reads it."""
    function, path = source
    function(shard, path, shard_count)


def _index(run: JobRun, phase: str, stream: str, shard_count: int) -> None:
    """Adds the phase that indexes the documents that a phase stores."""
    sent, name = [(phase, places_sent(stream))], f"index of {phase}"
    run.map_rows(name, write_index, [None] * shard_count, sent, stream=stream, accounted=False)


def _translation_plan(run: JobRun, vocabulary: str) -> translation.TranslationPlan:
    options: ExamplesOptions = run.options
    if options.negatives_per_example > 1:
        problem = f"got {options.negatives_per_example} together with --translation_models, expected 1"
        remedy = "translation supports only one negative per example: leave out one of the two options"
        raise InputError(problem, field="--negatives_per_example", remedy=remedy)
    models = run.input("translation_models")
    translator = translation.open_translator(models, run.workspace)
    for language in translator.languages:
        translator.translate([], language)  # loads the model, which reports a broken one here
    return translation.TranslationPlan(
        translator.languages, options.translate_share, models, options.translation_cache, vocabulary, options.max_length
    )


def _describe(run: JobRun) -> None:
    """Adds the counts of each set and the sizes of rows to the manifests.

    Raises:
      InputError: if there is nothing to train on, or nothing to hold out where that is asked for.
    """
    options: ExamplesOptions = run.options
    counts, first_day = run.counts_of("examples"), first_held_out_day(run.workspace, options)
    training, held_out = map(counts.tallies_under, (TRAINING_EXAMPLES, HELD_OUT_EXAMPLES))
    nothing, path = "there are no triplets and no topics", run.input("triplets")
    if not training and first_day:
        raise InputError(f"{nothing} before {first_day}", path=path, remedy="hold out less")
    if not training:
        raise InputError(nothing, path=path, remedy=_NOTHING_MINED)
    run.extra["examples"] = training
    sizes = {}
    if labels := list(map(int, counts.tallies_under(LABEL_COUNTS))):  # of the largest record
        sizes = {"row_sizes": {TOPICS.name: {DOCUMENTS: options.documents_per_example, "topic_ids": max(labels)}}}
    run.extra |= sizes
    if first_day is None and not options.held_out_share:
        return
    if not held_out:
        problem, remedy = f"{nothing} of {first_day or 'a known day'} or later", "name a day that the corpus reaches"
        field = "--held_out_from" if options.held_out_from else "--held_out_share"
        raise InputError(problem, path=path, field=field, remedy=remedy)
    run.extra["held_out"] = {"held_out_from": str(first_day), "examples": held_out}
    records = sum(counts.tallies_under(HELD_OUT_RECORDS).values())
    run.folders[HELD_OUT] = records, run.extra["held_out"] | sizes


JOB = Job(
    name="examples",
    example=(
        "newsembed examples --articles work/clean --triplets work/triplets --topics work/topics \\\n"
        "      --vocabulary work/vocabulary --output work/examples"
    ),
    inputs=(
        ARTICLES,
        InputSpec("triplets", "folder that `newsembed triplets` wrote"),
        VOCABULARY_INPUT,
        optional("topics", "folder that `newsembed topics` wrote"),
        optional(
            "translation_models",
            "CTranslate2 models, DIR/fr, …, which translate triplets without English",
            digest=translation.models_digest,
        ),
    ),
    options=ExamplesOptions,
    run=run,
)
