r"""``newsembed diagnose``: compares encoders on a page for people to look at.

Example::

    newsembed diagnose --encoder trained=model:work/trained --encoder tfidf=tfidf \
        --articles heldout.jsonl --output diagnosis
    newsembed diagnose --encoder a=model:work/a --encoder b=model:work/b \
        --articles articles.jsonl.zst --queries @ids.txt --output diagnosis

Encoders are named as for ``newsembed evaluate``. Articles are JSONL or Parquet as for ``newsembed index``, with
``title``, ``body`` and an ``id``, ``doc_id`` or ``url``; pairs and maps use ``event``, ``topic`` and ``language``
where they are given. The command writes report.html (one file, no scripts, nothing fetched), report.json and
report.md. They show the neighbors of given articles side by side; cosines of same-event, same-topic and random pairs;
alignment and uniformity; attention by part of speech and redundancy by length (for ``model:`` and ``random:``); and a
map. A part that cannot be made gives the reason.
"""

import collections
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...errors import InputError
from ...formats.command_line import Options, option, required, several
from ...formats.files import check_output, read_bytes, write_whole
from ...tasks.parts_of_speech import load_tagger
from ..shared.pages import Included, Missing, Part, Plot, Table, markdown, origin, page

if TYPE_CHECKING:
    from ...evaluation.events import Collection


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiagnoseOptions(Options):
    """The options of ``newsembed diagnose``."""

    encoder: tuple[str, ...] = required("encoders", metavar="NAME=SPEC", many=True)
    articles: str = required("articles: Parquet or JSONL (.gz, .zst)", metavar="FILE|DIR")
    output: str = required("folder for report.html, report.json and report.md", metavar="DIR", local=True)
    queries: tuple[str, ...] = several(
        "articles whose neighbors are shown; @FILE has one id on each line (default: five at random)", "ID|@FILE"
    )
    neighbors: int = option(5, "neighbors of each article", metavar="K", ge=1)
    max_articles: int = option(2_000, "use at most N articles, drawn as whole events", ge=1)
    tags: str | None = option(
        None,
        "part-of-speech tagger: hanta, or module:function of (text, language) -> [(word, tag), …] (default: hanta)",
        metavar="SPEC",
    )
    language: str = option("", "BCP-47 language of articles that do not name theirs, for the tagger", metavar="TAG")
    cache: str | None = option(None, "cache of embeddings, as for newsembed evaluate", metavar="DIR")
    seed: int = option(0, "seed of all random draws")


OPTIONS: Final = DiagnoseOptions


def run(options: DiagnoseOptions) -> int:
    """Runs the command."""
    check_output(options.output, is_folder=True)
    from ... import serving
    from ...evaluation.command import encoder_factory, encoder_specs
    from ...evaluation.events import collect
    from .parts import diagnose

    if options.tags:
        load_tagger(options.tags)  # a wrong one is told before the articles are embedded
    specs = encoder_specs(options.encoder)
    makers = {name: encoder_factory(spec, serving.factories()) for name, spec in specs.items()}
    queries = _query_ids(options.queries)
    collection = collect(options.articles, queries=queries, limit=options.max_articles, seed=options.seed)
    made, encoders = diagnose(makers, collection, options)
    facts = [*_facts(options, collection), *((f"encoder {name}", f"{specs[name]}, {encoders[name]}") for name in specs)]
    parts = list[Part]()
    for part in made.parts():
        parts.append(part)
        missing = [one.missing for one in part.blocks if isinstance(one, Missing)] if len(part.blocks) == 1 else []
        print(f"{part.id}: {missing[0] if missing else 'made'}", file=sys.stderr)
    write_report(options.output, Table(["", ""], facts), parts)
    print(f"{options.output}/report.html")
    return 0


def _facts(options: DiagnoseOptions, collection: "Collection") -> list[tuple[str, str]]:
    """What a diagnosis is about, as (name, value)."""
    articles = collection.articles
    languages = collections.Counter(article.language or "none named" for article in articles)
    kinds = [len({getattr(one, name) for one in articles} - {""}) for name in ("event", "topic")]
    read = f"{len(articles):,} of {collection.read:,}, {collection.empty:,} without text: {options.articles}"
    return [
        *origin(),
        ("articles", read),
        ("languages", ", ".join(f"{language} {count:,}" for language, count in languages.most_common())),
        ("events, topics", f"{kinds[0]:,}, {kinds[1]:,}"),
    ]


def write_report(output: str, facts: Table, parts: Sequence[Part]) -> None:
    """Writes report.json, report.md and report.html, each complete or not at all."""
    title = "newsembed diagnosis"
    said = {str(row[0]): row[1] for row in facts.rows}
    data = {"facts": said, "parts": [dataclasses.asdict(_bare(part)) for part in parts]}
    texts = {"json": json.dumps(data, indent=1), "md": markdown(title, parts, facts), "html": page(title, facts, parts)}
    for name, text in texts.items():
        # Half a surrogate pair, which JSON input may contain, has no UTF-8 form.
        write_whole(f"{output}/report.{name}", text.encode("utf-8", errors="replace"))


def _bare(part: Part) -> Part:
    """A part without what only pages show."""
    return dataclasses.replace(part, blocks=[one for one in part.blocks if not isinstance(one, Plot | Included)])


def _query_ids(texts: Sequence[str]) -> list[str]:
    """The given ids and those of every ``@FILE``, without blank lines."""
    ids, remedy = [], "give a file with one id on each line"
    for text in texts:
        found = [text]
        if path := text.removeprefix("@") if text.startswith("@") else "":
            found = [
                line.strip() for line in read_bytes(path, remedy).decode(errors="replace").splitlines() if line.strip()
            ]
        if not found:
            raise InputError("has no ids", path=path, field="--queries", remedy=remedy)
        ids += found
    return ids
