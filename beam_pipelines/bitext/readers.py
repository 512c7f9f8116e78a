"""Translation pairs from files: TSV, TMX, or two files aligned line by line, distinguished by suffix.

=======================  ===============================================================================================
``pairs.tsv``            source language, target language, source text and target text on each line
``memory.tmx``           translation memory (TMX 1.4); pairs the source language of a unit with each other language
``corpus.de,corpus.en``  two files with a sentence on each line (Moses), source then target; suffixes are the languages
=======================  ===============================================================================================

Each name may end in ``.gz``; aligned files may have ``.txt`` after the language. The folder that ``newsembed bitext``
wrote stands for its TSV files.
"""

from collections.abc import Iterator
from typing import Final

from ...errors import InputError
from ...formats import files
from ...formats.manifest import has_manifest, read_manifest
from ..shards import Shard
from . import aligned, tmx, tsv
from .pairs import BitextPart, TranslationPair

PAIRS: Final = "pairs"  # stream of TSV files in the folder of `newsembed bitext`
_BETWEEN: Final = ","
HELP: Final = (
    "translation pairs, distinguished by suffix, each plain or .gz: TSV (x.tsv: source language, target language, "
    "source, target), TMX (x.tmx), or two files aligned line by line, joined by a comma (x.de,x.en: the suffix is the "
    "language); or the folder that `newsembed bitext` wrote"
)


def plan_parts(given: str, field: str = "--bitext") -> list[BitextPart]:
    """Cuts one value of an option into parts that can be read independently.

    Aligned files are read once to count their lines.

    Args:
      given: the value.
      field: the option, for messages.

    Raises:
      InputError: if the suffix is unknown, a file is missing, aligned files differ in length, or TMX declares entities.
    """
    try:
        return _plan(given)
    except InputError as error:
        raise InputError(error.problem, path=error.path, field=field, remedy=error.remedy) from error


def _plan(given: str) -> list[BitextPart]:
    if has_manifest(given):
        return [part for path in files.list_files(f"{given.rstrip('/')}/{PAIRS}/part-*.tsv") for part in tsv.plan(path)]
    paths = given.split(_BETWEEN)
    if len(paths) == 2:
        return aligned.plan(paths[0], paths[1])
    plain = given.lower().removesuffix(".gz")
    if len(paths) == 1 and plain.endswith(".tsv"):
        return tsv.plan(given)
    if len(paths) == 1 and plain.endswith(".tmx"):
        return tmx.plan(given)
    raise InputError(
        "unknown format of translation pairs",
        path=given,
        remedy="give x.tsv, x.tmx (plain or .gz), or two aligned files joined by a comma: x.de,x.en",
    )


def read_pairs(shard: Shard, part: BitextPart) -> Iterator[TranslationPair]:
    """Yields the pairs of one part; counts every pair as read, and the others as rejected or failed."""
    if len(part.paths) == 2:
        return aligned.read(shard, part)
    is_tmx = part.paths[0].lower().removesuffix(".gz").endswith(".tmx")
    return tmx.read(shard, part) if is_tmx else tsv.read(shard, part)


def digest(given: str) -> str:
    """Returns the digest of one value of ``--bitext``: of its file, of both files, or of the folder's result."""
    if has_manifest(given):
        return str(read_manifest(given)["digest"])
    return " ".join(files.file_digest(path) for path in given.split(_BETWEEN))
