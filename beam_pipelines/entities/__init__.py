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
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...formats import files, parquet
from ...formats.names import KnownName, NameCounts, read_names
from ...formats.records import Article
from ..arrays import read_array, write_array
from ..jobs import InputSpec, Job, JobRun
from ..shards import Shard
from . import counting, tables
from .aliases import resolve_names
from .apart import choose_apart, keep_apart
from .gazetteer import built_in_names, calendar_words
from .known import CorpusWords, is_also_a_word, is_common_word, may_occur, merge_known, spans_of
from .linking import Linker
from .mentions import Integers, Mentions, find_mentions, head_words, read_column
from .tokens import WordUse, is_capitalised, is_title_case, name_spans, word_uses, words_of

_MOST_ENTITIES_OF_A_DOCUMENT = 40  # co-occurrence grows with its square
_LONGEST_KEYWORD = 5
_ABBREVIATION = re.compile("[A-Z][b-df-hj-np-tv-xz]{1,2}")  # of a title: Mr, Dr, Sgt
_MAIN_LANGUAGES = 8  # whose names are compared with known ones


@dataclasses.dataclass(frozen=True)
class EntitiesOptions:
    """Options of ``entities``."""

    min_documents: int = dataclasses.field(
        default=3, metadata={"help": "least number of documents with a name or word"}
    )
    max_entities: int = dataclasses.field(
        default=50_000, metadata={"help": "most entities to keep, the most frequent first"}
    )
    max_words: int = dataclasses.field(default=50_000, metadata={"help": "most words to keep, the most frequent first"})
    max_noun_share: float = dataclasses.field(
        default=0.02,
        metadata={
            "help": "in languages that capitalise nouns: share of documents above which a single word is not a name"
        },
    )
    dimensions: int = dataclasses.field(default=64, metadata={"help": "dimensions learned from co-occurrence"})
    signature_dimensions: int = dataclasses.field(
        default=128, metadata={"help": "dimensions of the random signature that distinguishes entities"}
    )
    identity: float = dataclasses.field(
        default=0.7, metadata={"help": "share of the signature in the cosine of two embeddings"}
    )
    lead_words: int = dataclasses.field(
        default=60,
        metadata={"help": "words of the body that belong to the head of an article, with title and keywords"},
    )
    built_in_names: bool = dataclasses.field(
        default=True,
        metadata={"help": "link countries, languages, currencies and cities by their names in all languages"},
    )
    across_languages: bool = dataclasses.field(
        default=True,
        metadata={
            "help": "whether an entity may have names in several languages; if not, each language has entities of its "
            "own, and titles of hubs are linked to none"
        },
    )

    def __post_init__(self) -> None:
        for name in ("min_documents", "max_entities", "max_words", "dimensions"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"got {getattr(self, name)}, expected at least 1",
                    field=f"--{name}",
                    remedy="give a positive number",
                )
        if not 0 <= self.identity <= 1 or not 0 <= self.max_noun_share <= 1:
            raise InputError(
                "got a share outside [0, 1]", field="--identity, --max_noun_share", remedy="give a number from 0 to 1"
            )
        if self.identity and self.signature_dimensions < 1:
            raise InputError(
                "got no dimensions for the identity",
                field="--signature_dimensions",
                remedy="give some, or set --identity=0",
            )


def run(job: JobRun) -> None:
    """Counts words and names, resolves names to entities, links the articles, then embeds entities and words."""
    options: EntitiesOptions = job.options
    shards = parquet.shard_paths(f"{job.input('articles')}/articles")
    with job.graph("entities", len(shards)):
        job.map_shards("count_words", functools.partial(_count_words, options), shards)
        counting.sum_counts(job, "_word_counts", "_words", options.min_documents)
        job.map_shards("count_names", _count_names, shards)
        counting.sum_counts(job, "_name_counts", "_names", options.min_documents)
        job.map_shards("know", functools.partial(_know, options), [job.inputs["knowledge_base"]], accounted=False)
        job.map_shards("resolve", functools.partial(_resolve, options), [None], accounted=False)
        job.map_shards("link", functools.partial(_link, options), shards)
        job.map_shards("choose", functools.partial(_choose, options), [None], accounted=False)
        job.map_shards("embed", functools.partial(_embed, options), ["entities", "words"], accounted=False)


_KNOWN = "_known"  # the stream of names
_ARTICLES = "_entity_articles"  # row of an entity, number of articles, by shard
_DOCUMENTS = ""  # the key under which the documents of a language are counted


def _count_words(options: EntitiesOptions, shard: Shard, path: str) -> None:
    """Counts for each language and word: documents in lower case, capitalised in a sentence, uses in heads."""
    counts: dict[str, list[collections.Counter[str]]] = {}
    for article in parquet.read_records(path, Article):
        shard.read()
        lower, capital, heads = counts.setdefault(article.language, [collections.Counter() for _ in range(3)])
        uses = word_uses(article.body)
        lower.update(uses[0])
        capital.update(uses[1])
        heads.update(head_words(article, options.lead_words))
        for one in (lower, capital, heads):
            one[_DOCUMENTS] += 1
        shard.written()
    named = {
        f"{language}\t{word}": (lower.get(word, 0), capital.get(word, 0), heads.get(word, 0))
        for language, (lower, capital, heads) in counts.items()
        for word in {*lower, *capital, *heads}
    }
    counting.write_counts(shard, "_word_counts", named)


@tables.collecting_later()
def _know(options: EntitiesOptions, shard: Shard, paths: Sequence[str]) -> None:
    """Writes all names of the known entities that may occur in the corpus."""
    uses, counts = _word_uses(shard.workspace), NameCounts()
    names = counting.read_counts(f"{shard.workspace}/_names")
    corpus = CorpusWords({word for known in uses.values() for word in known}, spans_of(names), uses)
    # "us" is frequent, and "US" is the country all the same. Names that a user brings may be codes, such as "IN".
    built_in = [
        name
        for name in (built_in_names() if options.built_in_names else ())
        if name.alias.isupper() or not is_common_word(name.alias, uses)
    ]

    def brought(rows: NameCounts) -> Iterator[KnownName]:  # is read twice: it may be large
        names = (name for path in paths for name in read_names(path, rows))
        return (name for name in names if not is_common_word(name.alias, uses))

    present: set[str] = set()
    for name in itertools.chain(built_in, brought(counts)):
        if name.entity not in present and may_occur(name, corpus):
            present.add(name.entity)
    writer = shard.records(_KNOWN, KnownName)
    for name in itertools.chain(built_in, brought(NameCounts())):
        if name.entity in present:
            writer.write(name)
    for what, number in dataclasses.asdict(counts).items():
        shard.tally(f"knowledge_base/{what}", number)


def _count_names(shard: Shard, path: str) -> None:
    """Counts the documents with each candidate name."""
    uses = _word_uses(shard.workspace)
    counts: collections.Counter[str] = collections.Counter()
    for article in parquet.read_records(path, Article):
        shard.read()
        counts.update(candidate_names(article, uses.get(article.language, {})))
        shard.written()
    counting.write_counts(shard, "_name_counts", {name: (count,) for name, count in counts.items()})


def candidate_names(article: Article, uses: dict[str, WordUse]) -> set[str]:
    """Returns the candidate names in the body, in a title without title case, in keywords and in short link texts."""
    texts = [article.body] if is_title_case(article.title) else [article.title, article.body]
    names = {" ".join(span) for text in texts for span in name_spans(text, uses)}
    for phrase in (*article.keywords, *article.anchor_texts):
        words = words_of(phrase)
        # A lower-case keyword of a cased script is a theme. In scripts without case, every short keyword may be a name.
        if 0 < len(words) <= _LONGEST_KEYWORD and words[0].lower() != words[0].upper() and not is_capitalised(words[0]):
            continue
        if 0 < len(words) <= _LONGEST_KEYWORD and len("".join(words)) > 1 and not is_title_case(phrase):
            names.add(" ".join(words))
    return names


@functools.lru_cache(maxsize=1)
def _word_uses(workspace: str) -> dict[str, dict[str, WordUse]]:
    uses: dict[str, dict[str, WordUse]] = {}
    for record in parquet.read_stream(f"{workspace}/_words", counting.NamedCounts):
        language, _, word = record.name.partition("\t")
        uses.setdefault(language, {})[word] = WordUse(record.counts[0], record.counts[1])
    return uses


@tables.collecting_later()
def _resolve(options: EntitiesOptions, shard: Shard, _: Any) -> None:
    """Writes the alias table and, as intermediate tables, the keys of the embeddings."""
    names = {name: counts[0] for name, counts in counting.read_counts(f"{shard.workspace}/_names").items()}
    nouns = frequent_nouns(_word_uses(shard.workspace), options.max_noun_share)
    names = {name: count for name, count in names.items() if " " in name or name.lower() not in nouns}
    uses = _word_uses(shard.workspace)
    no_names = calendar_words(frozenset(uses)) | {name for name in names if _ABBREVIATION.fullmatch(name)}
    is_word = functools.partial(is_also_a_word, uses=uses)
    entities, aliases = resolve_names(names, options.max_entities, no_names, is_word)
    known = list(parquet.read_stream(f"{shard.workspace}/{_KNOWN}", KnownName))
    languages = sorted(uses, key=lambda tag: -uses[tag].get(_DOCUMENTS, WordUse()).lower)[:_MAIN_LANGUAGES]
    entities, aliases = merge_known(entities, aliases, known, languages)
    if not options.across_languages:
        entities, aliases = keep_apart(entities, aliases, uses)
    tables.write_aliases(f"{shard.workspace}/_aliases.tsv", aliases)
    tables.write_lines(
        f"{shard.workspace}/_entities.tsv", (f"{item.key}\t{item.documents}\t{item.name}" for item in entities)
    )
    frequencies = word_frequencies(
        counting.read_counts(f"{shard.workspace}/_words"), options.min_documents, options.max_words
    )
    shard.tally("words", len(frequencies))
    tables.write_lines(f"{shard.workspace}/_words.tsv", (f"{word}\t{frequency:.8g}" for word, frequency in frequencies))


def frequent_nouns(uses: dict[str, dict[str, WordUse]], max_share: float) -> set[str]:
    """Returns capitalised words that are too frequent for names, in languages that capitalise nouns.

    A language counts as such if more than 30 % of its frequent words are mostly capitalised.

    Args:
      uses: word uses by language and word.
      max_share: share of a language's documents above which a capitalised word is not a name.
    """
    nouns: set[str] = set()
    for words in uses.values():
        documents = words[_DOCUMENTS].lower if _DOCUMENTS in words else 0
        frequent = [
            use for word, use in words.items() if word and max(use.lower, use.capital) >= max(3, 0.01 * documents)
        ]
        if frequent and sum(not use.common for use in frequent) > 0.3 * len(frequent):
            nouns |= {word for word, use in words.items() if word and use.capital > max_share * documents}
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
    totals: collections.Counter[str] = collections.Counter()
    for key, (*_, uses) in counts.items():
        language, _, word = key.partition("\t")
        if word:
            totals[language] += uses
    found: dict[str, float] = {}
    for key, (*_, uses) in counts.items():
        language, _, word = key.partition("\t")
        if word and uses >= at_least:
            found[word] = max(found.get(word, 0.0), uses / totals[language])
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _link(options: EntitiesOptions, shard: Shard, path: str) -> None:
    """Writes the row numbers of the entities and words of every article, and the number of articles by entity."""
    linker, words = _link_tables(shard.workspace)
    articles: collections.Counter[int] = collections.Counter()
    writer = shard.records("_mentions", Mentions)
    for article in parquet.read_records(path, Article):
        shard.read()
        mentions = find_mentions(article, linker, words, options.lead_words)
        shard.tally("mentions", sum(mentions.entity_counts))
        articles.update(mentions.entities)
        writer.write(mentions)
        shard.written()
    write_array(shard.path(_ARTICLES, "npy"), np.array(sorted(articles.items()), np.int64).reshape(-1, 2))


@functools.lru_cache(maxsize=1)
@tables.collecting_later()
def _link_tables(workspace: str) -> tuple[Linker, dict[str, int]]:
    entities, words = (tables.read_keys(f"{workspace}/_{name}.tsv") for name in ("entities", "words"))
    rows = {fields[0]: row for row, fields in enumerate(entities)}
    return Linker(tables.read_aliases(f"{workspace}/_aliases.tsv"), rows), {
        fields[0]: row for row, fields in enumerate(words)
    }


@tables.collecting_later()
def _choose(options: EntitiesOptions, shard: Shard, _: Any) -> None:
    """Keeps the entities that enough articles mention, the most frequent first, and writes the alias table."""
    entities = tables.read_keys(f"{shard.workspace}/_entities.tsv")
    documents = np.array([int(fields[1]) for fields in entities], np.int64)
    is_known = documents == 0
    for path in files.list_files(f"{shard.workspace}/{_ARTICLES}/*.npy"):
        rows, counts = read_array(path).T
        documents[rows] += np.where(is_known[rows], counts, 0)
    frequent = [row for row in range(len(entities)) if documents[row] >= options.min_documents]
    kept = sorted(frequent, key=lambda row: (-documents[row], entities[row][2]))[: options.max_entities]
    keys = {entities[row][0] for row in kept}
    known = tables.read_aliases(f"{shard.workspace}/_aliases.tsv")
    aliases = [item for item in known if item.entity in keys] if options.across_languages else choose_apart(known, keys)
    tables.write_aliases(f"{shard.workspace}/aliases.tsv", aliases)
    tables.write_lines(
        f"{shard.workspace}/_chosen.tsv",
        (f"{row}\t{entities[row][0]}\t{documents[row]}\t{entities[row][2]}" for row in kept),
    )
    shard.tally("entities", len(kept))
    shard.tally("aliases", len(aliases))


def _embed(options: EntitiesOptions, shard: Shard, name: str) -> None:
    """Embeds the entities or the words by the articles that they share."""
    from .cooccurrence import embed_items

    if name == "entities":
        chosen = tables.read_keys(f"{shard.workspace}/_chosen.tsv")
        rows = [fields[1:] for fields in chosen]
        documents = _renumbered(shard.workspace, [int(fields[0]) for fields in chosen])
    else:
        rows, documents = (
            tables.read_keys(f"{shard.workspace}/_{name}.tsv"),
            read_column(f"{shard.workspace}/_mentions", name),
        )
    keys = tuple(fields[0] for fields in rows)
    values = embed_items(keys, documents, options.dimensions, options.signature_dimensions, options.identity)
    table = tables.EmbeddingTable(keys, values, tuple(float(fields[1]) for fields in rows))
    tables.write_embeddings(f"{shard.workspace}/{name}", table, [fields[2] for fields in rows if len(fields) > 2])


def _renumbered(workspace: str, chosen: Sequence[int]) -> Iterator[tuple[Integers, Integers]]:
    """Yields the entities of articles by their number among the chosen ones, see :func:`~.mentions.read_column`."""
    count = len(tables.read_keys(f"{workspace}/_entities.tsv"))
    number = np.full(count, -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    for rows, lengths in read_column(f"{workspace}/_mentions", "entities", _MOST_ENTITIES_OF_A_DOCUMENT):
        numbers = number[rows]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(numbers >= 0)])
        ends = np.cumsum(lengths)
        yield numbers[numbers >= 0], starts[ends] - starts[ends - lengths]


JOB = Job(
    name="entities",
    summary="build an alias table and embeddings of entities and words from the corpus",
    example="newsembed entities --articles work/clean --output work/entities",
    inputs=(
        InputSpec("articles", "folder that `newsembed clean` wrote"),
        InputSpec(
            "knowledge_base",
            "names of known entities in many languages: TSV or Parquet of entity id, language, alias and optionally "
            "prior, see `newsembed knowledge`",
            required=False,
            many=True,
        ),
    ),
    options=EntitiesOptions,
    run=run,
)
