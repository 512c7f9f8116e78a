"""``newsembed translations``: translation pairs to TFRecords of the task ``translation`` (T-MDE, LASER, NTDV).

A pair gives one record for each side that is in a pivot language: that side is the target, the other the source. So a
pair of two pivots is used in both directions (T-MDE, section 4.4.1; eight directions of five languages).
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NoReturn

import numpy as np

from ..errors import InputError, require_option
from ..formats.command_line import option
from ..formats.manifest import DataSet
from ..formats.records import Failure, Rejection
from ..formats.tfrecords.writer import TFRecordShardWriter
from ..tasks.translation import TRANSLATION
from ..tasks.vocabulary import Vocabulary, join_document
from . import bitext
from .bitext import BitextPart, TranslationPair, read_pairs
from .bitext.pairs import base_name, language_tag, read_lines
from .jobs import InputSpec, Job, JobRun
from .shards import Shard
from .texts import load_vocabulary, vocabulary_input_digest, vocabulary_path
from .translation import find_language

_EXAMPLES: Final = "examples/"
_NO_PIVOT: Final = "no_pivot/"  # in tallies, before the languages of pairs without a side in a pivot language
_SHOWN: Final = 8
_PAIRS_AT_ONCE: Final = 1_024
_SHORTEST_TEXT: Final = 3  # [CLS], a piece and [SEP]
_UNITS: Final = ("sentence", "document")
_AND: Final = "\n"  # between the file of the pairs and that of the documents; no path has one


@dataclasses.dataclass(frozen=True)
class TranslationsOptions:
    """Options of ``translations``."""

    pivots: tuple[str, ...] = option(
        ("en",), "languages of the targets; a decoder learns these only, an encoder all languages"
    )
    unit: str = option(
        "sentence", "sentence: a record for each pair; document: for all pairs of a document, see --document_ids"
    )
    max_length: int = option(128, "tokens of a text, [CLS] and [SEP] included; longer ones are cut")
    min_tokens: int = option(1, "pairs with fewer tokens on a side are left out; [CLS] and [SEP] do not count")

    def __post_init__(self) -> None:
        require = functools.partial(require_option, command="translations")
        tags = [language_tag(pivot) for pivot in self.pivots]
        is_list = bool(tags) and None not in tags and len(set(tags)) == len(tags)
        require(is_list, "pivots", ",".join(self.pivots), "different language tags (BCP-47)")
        require(self.unit in _UNITS, "unit", self.unit, " or ".join(_UNITS))
        require(self.max_length >= _SHORTEST_TEXT, "max_length", self.max_length, f"at least {_SHORTEST_TEXT}")
        require(self.min_tokens >= 1, "min_tokens", self.min_tokens, "at least 1")


@dataclasses.dataclass(frozen=True)
class Source:
    """What one shard reads.

    Attributes:
      part: of the translation pairs.
      document_ids: a file whose line n has the document of the pair in line n; "" where pairs stand alone.
    """

    part: BitextPart
    document_ids: str = ""


def write_shard(shard: Shard, source: Source, vocabulary: str, options: TranslationsOptions) -> None:
    """Writes the records of one part of the translation pairs, in the order of the file."""
    pieces = load_vocabulary(vocabulary)
    records = _Records(shard, options)
    pairs = (pair for pair in read_pairs(shard, source.part) if _has_pivot(shard, pair, options.pivots))
    documents = _documents(shard, pairs, source.document_ids) if source.document_ids else ([pair] for pair in pairs)
    while batch := list(itertools.islice(documents, _PAIRS_AT_ONCE)):
        sides = [
            pieces.encode_texts([" ".join(getattr(pair, side) for pair in document) for document in batch])
            for side in ("source", "target")
        ]
        for document, left, right in zip(batch, *sides, strict=True):
            records.add(document, left, right)


class _Records:
    """Writes the records of one shard by direction."""

    def __init__(self, shard: Shard, options: TranslationsOptions) -> None:
        self._shard, self._options = shard, options
        self._writers: dict[str, TFRecordShardWriter] = {}

    def add(self, document: Sequence[TranslationPair], left: np.ndarray, right: np.ndarray) -> None:
        """Writes the pairs of a document, of these token ids, in both directions where both sides are pivots."""
        first, shard, options = document[0], self._shard, self._options
        if min(left.size, right.size) < options.min_tokens:
            for pair in document:
                shard.reject(pair.key, Rejection.TOO_SHORT_TO_PACK, f"{left.size} and {right.size} tokens", pair.source)
            return
        shard.written(len(document))
        length = options.max_length
        rows = [join_document(side, side[:0], length) for side in (left, right)]
        if max(left.size, right.size) + 2 > length:
            shard.tally("pairs_cut")
        tags = (first.source_language, first.target_language)
        for source, target in ((0, 1), (1, 0)):
            pivot = find_language(tags[target], options.pivots)
            if pivot is not None:
                self._write(f"{tags[source]}-{tags[target]}", rows[source], rows[target], options.pivots.index(pivot))

    def _write(self, languages: str, source: np.ndarray, target: np.ndarray, number: int) -> None:
        data_set = DataSet(TRANSLATION.name, languages)
        if languages not in self._writers:
            self._writers[languages] = self._shard.examples(data_set.stream)
        record = {"source_tokens": source, "target_tokens": target, "target_language": number}
        self._writers[languages].write(record, TRANSLATION.features)
        self._shard.tally(f"{_EXAMPLES}{data_set}")
        self._shard.tally(f"target_tokens/{data_set}", target.size - 1)


def _has_pivot(shard: Shard, pair: TranslationPair, pivots: Sequence[str]) -> bool:
    if any(find_language(tag, pivots) for tag in (pair.source_language, pair.target_language)):
        return True
    shard.tally(f"{_NO_PIVOT}{pair.languages}")
    shard.reject(pair.key, Rejection.NO_PIVOT, f"{pair.languages}, pivots {','.join(pivots)}", pair.source)
    return False


def _documents(shard: Shard, pairs: Iterable[TranslationPair], path: str) -> Iterator[list[TranslationPair]]:
    """Groups pairs that follow each other by document and languages; a pair without a document is a failure."""
    ids = _ids_by_place(path)
    held: list[TranslationPair] = []
    group: tuple[str, str] | None = None
    with contextlib.closing(ids):
        for pair in pairs:
            wanted = int(pair.key.rpartition(":")[2])
            found = next((name for place, name in ids if place == wanted), "")
            if not found:
                shard.fail(pair.key, Failure.MISSING_FIELD, f"no document in {base_name(path)}", pair.source)
                continue
            if held and (found, pair.languages) != group:
                yield held
                held = []
            group = found, pair.languages
            held.append(pair)
    if held:
        yield held


def _ids_by_place(path: str) -> Generator[tuple[int, str], None, None]:
    """Yields the byte offset of every line of the pairs, and the document of this line."""
    source, ids = path.split(_AND)
    for (offset, _), (_, line) in zip(read_lines(source), read_lines(ids), strict=False):
        yield offset, line.decode("utf-8", errors="replace").strip()


def _plan(run: JobRun) -> list[Source]:
    """The parts of all files.

    Raises:
      InputError: for a file that cannot be read, or documents that do not fit.
    """
    given, ids = run.inputs["bitext"], run.inputs["document_ids"]
    if run.options.unit == "sentence":
        if ids:
            raise InputError("is read for documents only", field="--document_ids", remedy="add --unit=document")
        return [Source(part) for path in given for part in bitext.plan_parts(path)]
    if len(ids) != len(given):
        raise InputError(
            f"got {len(ids)} files of document ids for {len(given)} of translation pairs",
            field="--document_ids",
            remedy="give a file for each value of --bitext, in the same order: line n has the document of pair n",
        )
    sources = []
    for path, documents in zip(given, ids, strict=True):
        first = bitext.plan_parts(path)[0]
        if first.paths[0].lower().removesuffix(".gz").endswith(".tmx"):
            raise InputError(
                "TMX has no lines, so that no line has a document",
                path=path,
                field="--bitext",
                remedy="give TSV or aligned files with --unit=document",
            )
        _check_lines(first.paths[0], documents)
        # A document may go on across the border of two parts: the whole file is one.
        sources.append(Source(dataclasses.replace(first, end=None), f"{first.paths[0]}{_AND}{documents}"))
    return sources


def _check_lines(pairs: str, documents: str) -> None:
    counts = [bitext.count_lines(path) for path in (pairs, documents)]
    if counts[0] != counts[1]:
        raise InputError(
            f"got {counts[1]} lines for {counts[0]} lines of translation pairs",
            path=documents,
            field="--document_ids",
            remedy="give a file whose line n has the document of the pair in line n",
        )


def run(run: JobRun) -> None:
    """Writes the records of every part, and counts them by direction.

    Raises:
      InputError: if no pair is left, or the vocabulary or a file of translation pairs is broken.
    """
    vocabulary = vocabulary_path(run.input("vocabulary"))
    sources = _plan(run)
    Vocabulary.load(vocabulary)  # reports a broken file here, not from inside a worker
    function = functools.partial(write_shard, vocabulary=vocabulary, options=run.options)
    run.map_shards("translations", function, sources)
    tallies = run.counts_of("translations").tallies
    examples = {
        name.removeprefix(_EXAMPLES): rows for name, rows in sorted(tallies.items()) if name.startswith(_EXAMPLES)
    }
    if not examples:
        _refuse_nothing(run, tallies)
    run.extra["examples"] = examples
    run.extra["pivots"] = list(run.options.pivots)


def _refuse_nothing(run: JobRun, tallies: Mapping[str, int]) -> NoReturn:
    """Says why no pair is left.

    Raises:
      InputError: with the languages of the pairs, or what was rejected.
    """
    path = ", ".join(run.inputs["bitext"])
    found = sorted(name.removeprefix(_NO_PIVOT) for name in tallies if name.startswith(_NO_PIVOT))
    if found:
        shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
        problem = f"got {','.join(run.options.pivots)}, and no translation pair has such a side: they are {shown}"
        raise InputError(problem, path=path, field="--pivots", remedy="name languages of the pairs as they are here")
    counts = run.counts_of("translations")
    reasons = ", ".join(f"{name} {count:,}" for name, count in sorted({**counts.rejected, **counts.failed}.items()))
    problem = f"no translation pair is left: {reasons}" if reasons else "holds no translation pairs"
    raise InputError(problem, path=path, field="--bitext", remedy="look at the pairs in this file")


JOB = Job(
    name="translations",
    summary="translation pairs to TFRecords that train an encoder and a decoder",
    example=(
        "newsembed translations --vocabulary work/vocabulary --pivots en,es --output work/translations \\\n"
        "      --bitext 'parallel/*.tsv' memory.tmx.gz europarl.de,europarl.en"
    ),
    inputs=(
        InputSpec("bitext", bitext.HELP, many=True, digest=bitext.digest),
        InputSpec(
            "vocabulary",
            "folder that `newsembed vocabulary` or `newsembed import-hf` wrote, or its vocab.txt",
            digest=vocabulary_input_digest,
        ),
        InputSpec(
            "document_ids",
            "with --unit=document: a file for each value of --bitext, in the same order, whose line n has the document "
            "of the pair in line n",
            required=False,
            many=True,
        ),
    ),
    options=TranslationsOptions,
    run=run,
)
