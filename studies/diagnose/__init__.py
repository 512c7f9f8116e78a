"""``newsembed diagnose``: encoders side by side, for people to look at.

Example::

    newsembed diagnose --encoder trained=model:work/trained --encoder tfidf=tfidf --articles heldout.jsonl --output diagnosis
    newsembed diagnose --encoder a=model:work/a --encoder b=model:work/b --articles articles.jsonl.zst --queries @ids.txt --output diagnosis

Encoders are named as for ``newsembed evaluate``. Articles are JSONL with ``title``, ``body`` and an ``id``, ``doc_id`` or ``url``; where they have
``event``, ``topic`` and ``language`` (the newsroom's heldout.jsonl has), pairs and maps use them. DIR gets report.html (one file, no scripts, nothing
fetched), report.json and report.md with: neighbors of given articles side by side; cosines of same-event, same-topic and random pairs; alignment and
uniformity; attention by part of speech and redundancy by length (for ``model:`` and ``random:``); a map. A part that cannot be made says why.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from ...errors import InputError

_PROJECTIONS: Final = ("tsne", "umap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed diagnose``."""
    parser.add_argument(
        "--encoder",
        action="append",
        required=True,
        metavar="NAME=SPEC",
        help="an encoder; repeat to set others beside it",
    )
    parser.add_argument("--articles", required=True, metavar="FILE", help="JSONL (.gz, .zst)")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder for report.html, report.json and report.md"
    )
    parser.add_argument(
        "--queries",
        nargs="+",
        default=[],
        metavar="ID|@FILE",
        help="articles to show neighbors of; @FILE has an id a line (default: five drawn)",
    )
    parser.add_argument("--neighbors", type=int, default=5, metavar="K", help="neighbors of each article (default: 5)")
    parser.add_argument(
        "--max_articles",
        type=int,
        default=2_000,
        metavar="N",
        help="draw this many, whole events at a time (default: 2000)",
    )
    parser.add_argument("--max_pairs", type=int, default=20_000, metavar="N", help="of each kind (default: 20000)")
    parser.add_argument(
        "--probed",
        type=int,
        default=300,
        metavar="N",
        help="articles looked at for attention and redundancy, drawn (default: 300)",
    )
    parser.add_argument(
        "--tags",
        metavar="SPEC",
        help="part-of-speech tagger: hanta, or module:function of (text, language) -> [(word, tag), …] (default: hanta)",
    )
    parser.add_argument(
        "--language", default="", metavar="TAG", help="language of articles that name none, as BCP-47, for the tagger"
    )
    parser.add_argument(
        "--projection",
        choices=_PROJECTIONS,
        default="tsne",
        help="how the map is made; umap needs umap-learn (default: tsne)",
    )
    parser.add_argument("--cache", metavar="DIR", help="keep embeddings here by content, as newsembed evaluate does")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Runs the command."""
    for name in ("neighbors", "max_articles", "max_pairs", "probed"):
        if getattr(args, name) < 1:
            raise InputError(
                f"got {getattr(args, name)}, expected at least 1", field=f"--{name}", remedy="give a positive number"
            )
    from ... import serving
    from ...evaluation.command import encoder_factory, encoder_specs
    from ...evaluation.diagnostics.articles import collect
    from .page import write_diagnosis
    from .sections import Options, diagnose

    options = Options(
        args.neighbors, args.max_pairs, args.probed, args.tags, args.language, args.projection, args.cache, args.seed
    )
    specs = encoder_specs(args.encoder)
    makers = {name: encoder_factory(spec, serving.factories()) for name, spec in specs.items()}
    collection = collect(args.articles, queries=_query_ids(args.queries), limit=args.max_articles, seed=args.seed)
    report = diagnose(makers, specs, collection, options)
    report["articles"]["path"] = args.articles
    report["command"] = ["newsembed", *sys.argv[1:]]
    write_diagnosis(args.output, report)
    for name, section in report["sections"].items():
        print(f"{name}: {section.get('missing', 'made')}", file=sys.stderr)
    print(f"{args.output}/report.html")
    return 0


def _query_ids(texts: Sequence[str]) -> list[str]:
    """Ids as given, and those of every ``@FILE``: one a line, blank lines left out."""
    ids = []
    for text in texts:
        if not text.startswith("@"):
            ids.append(text)
            continue
        try:
            with open(text[1:], encoding="utf-8") as file:
                found = [line.strip() for line in file if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot be read: {reason}", path=text[1:], field="--queries", remedy="give a file with an id a line"
            ) from error
        if not found:
            raise InputError("holds no ids", path=text[1:], field="--queries", remedy="give a file with an id a line")
        ids += found
    return ids
