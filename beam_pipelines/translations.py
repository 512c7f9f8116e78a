"""``newsembed translations``: translation pairs to TFRecords of the task ``translation`` (T-MDE, LASER, NTDV).

A pair gives one record for each side that is in a pivot language: that side is the target, the other the source. So a
pair of two pivots is used in both directions (T-MDE, section 4.4.1; eight directions of five languages).
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from ..formats.command_line import Options, option
from ..formats.digests import some_of
from ..formats.manifest import DataSet
from ..formats.records import Failure, Rejection
from ..tasks.kinds import TRANSLATION
from ..tasks.vocabulary import join_document
from .bitext.readers import (
    HELP,
    BitextPart,
    TranslationPair,
    base_name,
    count_lines,
    digest,
    is_tmx,
    plan_parts,
    read_lines,
    read_pairs,
)
from .jobs import InputSpec, Job, JobRun, optional
from .progress import named
from .shards import TRAINING_EXAMPLES, Shard
from .texts import VOCABULARY_INPUT, checked_vocabulary, language_tag, load_vocabulary
from .translation import find_language

_NO_PIVOT: Final = "no_pivot/"  # in tallies, before the languages of pairs without a side in a pivot language
_PAIRS_AT_ONCE: Final = 1_024
_SENTENCE, _DOCUMENT = "sentence", "document"
_Source = tuple[BitextPart, str]  # a part of the pairs, and the file with the document of each line, or ""


@dataclasses.dataclass(frozen=True)
class TranslationsOptions(Options):
    """Options of ``translations``."""

    pivots: tuple[str, ...] = option(("en",), "languages of the targets, which a decoder learns")
    unit: str = option(
        _SENTENCE,
        "sentence: a record for each pair; document: for all pairs of a document, see --document_ids",
        choices=(_SENTENCE, _DOCUMENT),
    )
    max_length: int = option(128, "tokens of a text, [CLS] and [SEP] included; longer ones are cut", ge=3)
    min_tokens: int = option(1, "pairs with fewer tokens on a side are left out; [CLS] and [SEP] do not count", ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        tags = [language_tag(pivot) for pivot in self.pivots]
        if not tags or None in tags or len(set(tags)) < len(tags):
            problem = f"got {','.join(self.pivots)}, expected different language tags (BCP-47)"
            raise InputError(problem, field="--pivots", remedy="see --help")


def write_shard(shard: Shard, source: _Source, vocabulary: str, options: TranslationsOptions) -> None:
    """Writes the records of one part of the translation pairs, in the order of the file.

    Args:
      shard: the outputs.
      source: the part, and a file whose line n has the document of the pair in line n, "" where pairs stand alone.
      vocabulary: path of the vocabulary.
      options: of the job.
    """
    pieces, (part, ids) = load_vocabulary(vocabulary), source
    pairs = (pair for pair in read_pairs(shard, part) if _has_pivot(shard, pair, options.pivots))
    documents = _documents(shard, pairs, part.paths[0], ids) if ids else ([pair] for pair in pairs)
    while batch := list(itertools.islice(documents, _PAIRS_AT_ONCE)):
        left = pieces.encode_texts([" ".join(pair.source for pair in document) for document in batch])
        right = pieces.encode_texts([" ".join(pair.target for pair in document) for document in batch])
        for document, *sides in zip(batch, left, right, strict=True):
            for languages, record in _records(shard, document, sides, options):
                shard.write_example(TRANSLATION, languages, record)
                shard.tally(f"target_tokens/{DataSet(TRANSLATION.name, languages)}", record["target_tokens"].size - 1)


def _records(
    shard: Shard, document: Sequence[TranslationPair], sides: Sequence[np.ndarray], options: TranslationsOptions
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields languages and record of a document with these token ids, in both directions where both are pivots."""
    sizes, length = [side.size for side in sides], options.max_length
    if min(sizes) < options.min_tokens:
        for pair in document:
            shard.reject(pair.key, Rejection.TOO_SHORT_TO_PACK, f"{sizes[0]} and {sizes[1]} tokens", pair.source)
        return
    shard.written(len(document))
    if max(sizes) + 2 > length:
        shard.tally("pairs_cut")
    rows = [join_document(side, side[:0], length) for side in sides]
    tags = (document[0].source_language, document[0].target_language)
    for source, target in ((0, 1), (1, 0)):
        if pivot := find_language(tags[target], options.pivots):
            texts = {"source_tokens": rows[source], "target_tokens": rows[target]}
            yield f"{tags[source]}-{tags[target]}", texts | {"target_language": options.pivots.index(pivot)}


def _has_pivot(shard: Shard, pair: TranslationPair, pivots: Sequence[str]) -> bool:
    if any(find_language(tag, pivots) for tag in (pair.source_language, pair.target_language)):
        return True
    shard.tally(f"{_NO_PIVOT}{pair.languages}")
    shard.reject(pair.key, Rejection.NO_PIVOT, f"{pair.languages}, pivots {','.join(pivots)}", pair.source)
    return False


def _documents(
    shard: Shard, pairs: Iterable[TranslationPair], source: str, path: str
) -> Iterator[list[TranslationPair]]:
    """Groups pairs that follow each other by document and languages; a pair without a document is a failure."""
    # The byte offset of every line of the pairs, and the document of this line.
    places = zip(read_lines(source), read_lines(path), strict=False)
    ids = ((offset, line.decode("utf-8", errors="replace").strip()) for (offset, _), (_, line) in places)

    def with_documents() -> Iterator[tuple[str, TranslationPair]]:
        for pair in pairs:
            wanted = int(pair.key.rpartition(":")[2])
            if document := next((name for place, name in ids if place == wanted), ""):
                yield document, pair
            else:
                shard.fail(pair.key, Failure.MISSING_FIELD, f"no document in {base_name(path)}", pair.source)

    for _, group in itertools.groupby(with_documents(), key=lambda one: (one[0], one[1].languages)):
        yield [pair for _, pair in group]


def _plan(run: JobRun) -> list[_Source]:
    """The parts of all files, with their document ids.

    Raises:
      InputError: for a file that cannot be read, or documents that do not fit.
    """
    given, ids = run.inputs["bitext"], run.inputs["document_ids"]
    if run.options.unit == _SENTENCE:
        if ids:
            raise InputError("is read for documents only", field="--document_ids", remedy="add --unit=document")
        return [(part, "") for path in given for part in plan_parts(path)]
    if len(ids) != len(given):
        problem = f"got {len(ids)} files of document ids for {len(given)} of translation pairs"
        remedy = "give a file for each value of --bitext, in the same order: line n has the document of pair n"
        raise InputError(problem, field="--document_ids", remedy=remedy)
    sources = []
    for path, documents in zip(given, ids, strict=True):
        first = plan_parts(path)[0]
        if is_tmx(first):
            problem, remedy = "TMX has no lines, so that no line has a document", "give TSV or aligned files"
            raise InputError(problem, path=path, field="--bitext", remedy=remedy)
        lines, own = count_lines(first.paths[0]), count_lines(documents)
        if own != lines:
            problem = f"got {own} lines for {lines} lines of translation pairs"
            remedy = "give a file whose line n has the document of the pair in line n"
            raise InputError(problem, path=documents, field="--document_ids", remedy=remedy)
        sources.append((BitextPart(first.paths), documents))
    return sources


def run(run: JobRun) -> None:
    """Writes the records of every part, and counts them by direction.

    Raises:
      InputError: if no pair is left, or the vocabulary or a file of translation pairs is broken.
    """
    vocabulary, sources = checked_vocabulary(run), _plan(run)
    run.map_shards("translations", write_shard, sources, vocabulary=vocabulary, options=run.options)
    counts = run.counts_of("translations")
    run.extra["examples"] = counts.tallies_under(TRAINING_EXAMPLES)
    run.extra["pivots"] = list(run.options.pivots)
    if run.extra["examples"]:
        return
    path, found = ", ".join(run.inputs["bitext"]), list(counts.tallies_under(_NO_PIVOT))
    if found:
        problem = f"got {','.join(run.options.pivots)}, and no translation pair has such a side: "
        problem += f"they are {some_of(found, most=8)}"
        raise InputError(problem, path=path, field="--pivots", remedy="name languages of the pairs as they are here")
    reasons = ", ".join(named({**counts.rejected, **counts.failed}))
    problem = f"no translation pair is left: {reasons}" if reasons else "holds no translation pairs"
    raise InputError(problem, path=path, field="--bitext", remedy="look at the pairs in this file")


JOB = Job(
    name="translations",
    example=(
        "newsembed translations --vocabulary work/vocabulary --pivots en,es --output work/translations \\\n"
        "      --bitext 'parallel/*.tsv' memory.tmx.gz europarl.de,europarl.en"
    ),
    inputs=(
        InputSpec("bitext", HELP, many=True, digest=digest),
        VOCABULARY_INPUT,
        optional("document_ids", "for --unit=document: for each --bitext a file of documents, line by line", many=True),
    ),
    options=TranslationsOptions,
    run=run,
)
