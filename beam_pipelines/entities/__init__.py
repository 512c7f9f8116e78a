"""``newsembed entities``: learns an alias table and embeddings of entities and words from the corpus.

Names are capitalised spans that are frequent in the corpus. Embeddings come from co-occurrence in articles (PPMI and
truncated SVD). Writes ``aliases.tsv`` (alias, entity id, prior, name), ``entities.tsv`` and ``words.tsv`` (key,
frequency), and the corresponding rows in ``entities.npy`` and ``words.npy``, float32.
"""

import collections
import dataclasses
import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ...formats import parquet
from ...formats.command_line import Options, option
from ...formats.months import calendar_words
from ...formats.names import KnownName, NameCounts, names_digest, read_names
from ...formats.records import Article
from ..arrays import Array
from ..jobs import ARTICLES, Job, JobRun, optional
from ..shards import Shard
from . import tables
from .aliases import (
    CorpusWords,
    is_also_a_word,
    is_common_word,
    may_occur,
    merge_known,
    resolve_names,
    spans_of,
)
from .gazetteer import built_in_names
from .linking import (
    Linker,
    Mentions,
    WordUse,
    find_mentions,
    is_capitalised,
    is_title_case,
    name_spans,
    word_uses,
    words_of,
)

_MOST_ENTITIES_OF_A_DOCUMENT: Final = 40  # co-occurrence grows with its square
_LONGEST_KEYWORD: Final = 5
_ABBREVIATION: Final = re.compile("[A-Z][b-df-hj-np-tv-xz]{1,2}")  # of a title: Mr, Dr, Sgt
# In languages that capitalise nouns: share of the documents above which a single word is not a name.
_MOST_OF_A_NOUN: Final = 0.02
_MAIN_LANGUAGES: Final = 8  # whose names are compared with known ones
_KNOWN: Final = "_known"  # the stream of names
_ARTICLES: Final = "_entity_articles"  # row of an entity, number of articles, by shard
_DOCUMENTS: Final = ""  # the key under which the documents of a language are counted


@dataclasses.dataclass(frozen=True)
class EntitiesOptions(Options):
    """Options of ``entities``."""

    min_documents: int = option(3, "least number of documents with a name or word", ge=1)
    max_entities: int = option(50_000, "most entities to keep, the most frequent first", ge=1)
    max_words: int = option(50_000, "most words to keep, the most frequent first", ge=1)
    dimensions: int = option(64, "dimensions learned from co-occurrence", ge=1)
    lead_words: int = option(60, "words of the body that belong to the head of an article, with title and keywords")
    built_in_names: bool = option(True, "link countries, languages, currencies and cities, named in all languages")


def run(job: JobRun) -> None:
    """Counts words and names, resolves names to entities, links the articles, then embeds entities and words."""
    options: EntitiesOptions = job.options
    shards = job.shards("articles")
    beside: dict[str, Any] = {"options": options, "accounted": False}
    with job.graph(len(shards)):
        job.map_shards("count_words", _count_words, shards, options=options, accounted=False)
        tables.sum_counts(job, "_word_counts", "_words", options.min_documents)
        job.map_shards("count_names", _count_names, shards, accounted=False)
        tables.sum_counts(job, "_name_counts", "_names", options.min_documents)
        job.map_shards("know", _know, [job.inputs["knowledge_base"]], **beside)
        job.map_shards("resolve", _resolve, [None], **beside)
        job.map_shards("link", _link, shards, options=options)
        job.map_shards("choose", _choose, [None], **beside)
        job.map_shards("embed", _embed, ["entities", "words"], **beside)


def _count_words(shard: Shard, path: str, options: EntitiesOptions) -> None:
    """Counts for each language and word: documents in lower case, capitalised in a sentence, uses in heads."""
    counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for article in parquet.read_records(path, Article):
        shard.read()
        if (found := shard.limited(article.doc_id, _uses_and_head, article, options.lead_words)) is None:
            continue
        for place, words in enumerate(found):
            for word in (*words, _DOCUMENTS):
                counts[f"{article.language}\t{word}"][place] += 1
        shard.written()
    tables.write_counts(shard, "_word_counts", counts)


def _uses_and_head(article: Article, lead_words: int) -> tuple[Collection[str], ...]:
    """Returns `word_uses`, and the words of title and keywords and the first words of the body, in lower case."""
    # A word has at most a few dozen characters, so a prefix of the body suffices.
    lead = words_of(article.body[: 40 * lead_words])[:lead_words]
    head = [word.lower() for word in (*words_of(article.title), *words_of(" ".join(article.keywords)), *lead)]
    return *word_uses(article.body), head


@functools.lru_cache(maxsize=1)
def _word_uses(workspace: str) -> dict[str, dict[str, WordUse]]:
    uses: dict[str, dict[str, WordUse]] = {}
    for record in parquet.read_stream(f"{workspace}/_words", tables.NamedCounts):
        language, _, word = record.name.partition("\t")
        uses.setdefault(language, {})[word] = WordUse(record.counts[0], record.counts[1])
    return uses


def _count_names(shard: Shard, path: str) -> None:
    """Counts the documents with each candidate name."""
    uses = _word_uses(shard.workspace)
    counts: collections.Counter[str] = collections.Counter()
    for article in parquet.read_records(path, Article):
        shard.read()
        names = shard.limited(article.doc_id, _candidate_names, article, uses.get(article.language, {}))
        if names is not None:
            counts.update(names)
            shard.written()
    tables.write_counts(shard, "_name_counts", {name: (count,) for name, count in counts.items()})


def _candidate_names(article: Article, uses: dict[str, WordUse]) -> set[str]:
    """Returns the candidate names in the body, in a title without title case, in keywords and in short link texts."""
    texts = [article.body] if is_title_case(article.title) else [article.title, article.body]
    names = {" ".join(span) for text in texts for span in name_spans(text, uses)}
    for phrase in (*article.keywords, *article.anchor_texts):
        words = words_of(phrase)
        is_short = 0 < len(words) <= _LONGEST_KEYWORD and len("".join(words)) > 1 and not is_title_case(phrase)
        # A lower-case keyword of a cased script is a theme. In scripts without case, every short keyword may be a name.
        if is_short and (words[0].lower() == words[0].upper() or is_capitalised(words[0])):
            names.add(" ".join(words))
    return names


@tables.collecting_later()
def _know(shard: Shard, paths: Sequence[str], options: EntitiesOptions) -> None:
    """Writes all names of the known entities that may occur in the corpus."""
    uses, counts = _word_uses(shard.workspace), NameCounts()
    names = tables.read_counts(f"{shard.workspace}/_names")
    corpus = CorpusWords({word for known in uses.values() for word in known}, spans_of(names), uses)
    # "us" is frequent, and "US" is the country all the same. Names that a user brings may be codes, such as "IN".
    listed = built_in_names() if options.built_in_names else ()
    built_in = [name for name in listed if name.alias.isupper() or not is_common_word(name.alias, uses)]

    def every(rows: NameCounts) -> Iterator[KnownName]:  # is read twice: a table of a user may be large
        brought = (name for path in paths for name in read_names(path, rows))
        return itertools.chain(built_in, (name for name in brought if not is_common_word(name.alias, uses)))

    present: set[str] = set()
    for name in every(counts):
        if name.entity not in present and may_occur(name, corpus):
            present.add(name.entity)
    writer = shard.records(_KNOWN, KnownName)
    for name in every(NameCounts()):
        if name.entity in present:
            writer.write(name)
    for what, number in dataclasses.asdict(counts).items():
        shard.tally(f"knowledge_base/{what}", number)


@tables.collecting_later()
def _resolve(shard: Shard, _: Any, options: EntitiesOptions) -> None:
    """Writes the alias table and, as intermediate tables, the keys of the embeddings."""
    uses = _word_uses(shard.workspace)
    nouns = frequent_nouns(uses)
    counted = {name: counts[0] for name, counts in tables.read_counts(f"{shard.workspace}/_names").items()}
    names = {name: count for name, count in counted.items() if " " in name or name.lower() not in nouns}
    no_names = calendar_words(frozenset(uses)) | {name for name in names if _ABBREVIATION.fullmatch(name)}
    is_word = functools.partial(is_also_a_word, uses=uses)
    entities, aliases = resolve_names(names, options.max_entities, no_names, is_word)
    known = list(shard.read_stream(_KNOWN, KnownName))
    languages = sorted(uses, key=lambda tag: -uses[tag].get(_DOCUMENTS, WordUse()).lower)[:_MAIN_LANGUAGES]
    entities, aliases = merge_known(entities, aliases, known, languages)
    tables.write_aliases(f"{shard.workspace}/_aliases.tsv", aliases)
    lines = (f"{item.key}\t{item.documents}\t{item.name}" for item in entities)
    tables.write_lines(f"{shard.workspace}/_entities.tsv", lines)
    counts = tables.read_counts(f"{shard.workspace}/_words")
    frequencies = word_frequencies(counts, options.min_documents, options.max_words)
    shard.tally("words", len(frequencies))
    tables.write_lines(f"{shard.workspace}/_words.tsv", (f"{word}\t{frequency:.8g}" for word, frequency in frequencies))


def frequent_nouns(uses: dict[str, dict[str, WordUse]]) -> set[str]:
    """Returns capitalised words that are too frequent for names, in languages that capitalise nouns.

    A language counts as such if more than 30 % of its frequent words are mostly capitalised.

    Args:
      uses: word uses by language and word.
    """
    nouns: set[str] = set()
    for words in uses.values():
        documents = words.get(_DOCUMENTS, WordUse()).lower
        least = max(3, 0.01 * documents)
        frequent = [use for word, use in words.items() if word and max(use.lower, use.capital) >= least]
        if sum(not use.common for use in frequent) > 0.3 * len(frequent):
            nouns |= {word for word, use in words.items() if word and use.capital > _MOST_OF_A_NOUN * documents}
    return nouns


def word_frequencies(counts: dict[str, tuple[int, ...]], at_least: int, limit: int) -> list[tuple[str, float]]:
    """Returns the words of heads with their relative frequency, the most frequent first.

    A word of several languages gets its highest frequency: "die" is a function word in German, so it counts as one in a
    mixed corpus.

    Args:
      counts: counts by language and word, see ``_count_words``.
      at_least: least number of uses.
      limit: most words to return.
    """
    uses = {tuple(key.split("\t")): heads for key, (*_, heads) in counts.items() if not key.endswith("\t")}
    totals: collections.Counter[str] = collections.Counter()
    for (language, _), number in uses.items():
        totals[language] += number
    found: dict[str, float] = {}
    for (language, word), number in uses.items():
        if number >= at_least:
            found[word] = max(found.get(word, 0.0), number / totals[language])
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _link(shard: Shard, path: str, options: EntitiesOptions) -> None:
    """Writes the row numbers of the entities and words of every article, and the number of articles by entity."""
    linker, words = _link_tables(shard.workspace)
    articles: collections.Counter[int] = collections.Counter()
    writer = shard.records("_mentions", Mentions)
    for article in parquet.read_records(path, Article):
        shard.read()
        mentions = shard.limited(article.doc_id, find_mentions, article, linker, words, options.lead_words)
        if mentions is None:
            continue
        shard.tally("mentions", sum(mentions.entity_counts))
        articles.update(mentions.entities)
        writer.write(mentions)
        shard.written()
    shard.write_array(_ARTICLES, np.array(sorted(articles.items()), np.int64).reshape(-1, 2))


@functools.lru_cache(maxsize=1)
@tables.collecting_later()
def _link_tables(workspace: str) -> tuple[Linker, dict[str, int]]:
    paths = (f"{workspace}/_{name}.tsv" for name in ("entities", "words"))
    entities, words = ({fields[0]: row for row, fields in enumerate(tables.read_keys(path))} for path in paths)
    return Linker(tables.read_aliases(f"{workspace}/_aliases.tsv"), entities), words


@tables.collecting_later()
def _choose(shard: Shard, _: Any, options: EntitiesOptions) -> None:
    """Keeps the entities that enough articles mention, the most frequent first, and writes the alias table."""
    entities = tables.read_keys(f"{shard.workspace}/_entities.tsv")
    documents = np.array([int(fields[1]) for fields in entities], np.int64)
    is_known = documents == 0
    for part in shard.arrays(_ARTICLES):
        rows, counts = part.T
        documents[rows] += np.where(is_known[rows], counts, 0)
    frequent = [row for row in range(len(entities)) if documents[row] >= options.min_documents]
    kept = sorted(frequent, key=lambda row: (-documents[row], entities[row][2]))[: options.max_entities]
    keys = {entities[row][0] for row in kept}
    known = tables.read_aliases(f"{shard.workspace}/_aliases.tsv")
    aliases = [item for item in known if item.entity in keys]
    tables.write_aliases(f"{shard.workspace}/aliases.tsv", aliases)
    lines = (f"{row}\t{entities[row][0]}\t{documents[row]}\t{entities[row][2]}" for row in kept)
    tables.write_lines(f"{shard.workspace}/_chosen.tsv", lines)
    shard.tally("entities", len(kept))
    shard.tally("aliases", len(aliases))


def _embed(shard: Shard, name: str, options: EntitiesOptions) -> None:
    """Embeds the entities or the words by the articles that they share."""
    from .cooccurrence import embed_items

    mentions = f"{shard.workspace}/_mentions"
    if name == "entities":
        chosen = tables.read_keys(f"{shard.workspace}/_chosen.tsv")
        rows = [fields[1:] for fields in chosen]
        number = np.full(len(tables.read_keys(f"{shard.workspace}/_entities.tsv")), -1, np.int64)
        number[[int(fields[0]) for fields in chosen]] = np.arange(len(chosen))
        documents = read_column(mentions, name, _MOST_ENTITIES_OF_A_DOCUMENT, number)
    else:
        rows, documents = tables.read_keys(f"{shard.workspace}/_{name}.tsv"), read_column(mentions, name)
    keys = tuple(fields[0] for fields in rows)
    values = embed_items(keys, documents, options.dimensions)
    table = tables.EmbeddingTable(keys, values, tuple(float(fields[1]) for fields in rows))
    tables.write_embeddings(f"{shard.workspace}/{name}", table, [fields[2] for fields in rows if len(fields) > 2])


def read_column(
    folder: str, column: str, limit: int | None = None, renumbered: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """Yields one list column of a stream of :class:`~.linking.Mentions` in parts.

    Args:
      folder: folder of the stream.
      column: name of the column.
      limit: keep only the first ``limit`` numbers of each article; None keeps all.
      renumbered: the numbers to yield instead, int ``[N]``, -1 for those to leave out.

    Yields:
      The numbers of some articles, concatenated, and how many each article has: int64 ``[sum(lengths)]`` and
      ``[articles]``.
    """
    for path in parquet.shard_paths(folder):
        for batch in parquet.read_batches(path, [column]):
            lists = batch.column(column)
            numbers = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            lengths = np.diff(lists.offsets.to_numpy())
            owners = np.repeat(np.arange(len(lengths)), lengths)
            kept = np.arange(len(numbers)) - (np.cumsum(lengths) - lengths)[owners] < (limit or np.inf)
            if renumbered is not None:
                numbers = renumbered[numbers]
                kept &= numbers >= 0
            yield numbers[kept], np.bincount(owners[kept], minlength=len(lengths))


JOB = Job(
    name="entities",
    example="newsembed entities --articles work/clean --output work/entities",
    inputs=(
        ARTICLES,
        optional("knowledge_base", "names: TSV, Parquet, or of `newsembed knowledge`", many=True, digest=names_digest),
    ),
    options=EntitiesOptions,
    run=run,
)
