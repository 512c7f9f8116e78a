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

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from ...errors import InputError
from ...formats.command_line import without_secrets
from ...formats.whole import check_output

_PROJECTIONS: Final = ("tsne", "umap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed diagnose``."""
    parser.add_argument(
        "--encoder",
        action="append",
        required=True,
        metavar="NAME=SPEC",
        help="an encoder; may be repeated",
    )
    parser.add_argument("--articles", required=True, metavar="FILE|DIR", help="articles: Parquet or JSONL (.gz, .zst)")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder for report.html, report.json and report.md"
    )
    parser.add_argument(
        "--queries",
        nargs="+",
        default=[],
        metavar="ID|@FILE",
        help="articles whose neighbors are shown; @FILE has one id on each line (default: five at random)",
    )
    parser.add_argument("--neighbors", type=int, default=5, metavar="K", help="neighbors of each article (default: 5)")
    parser.add_argument(
        "--max_articles",
        type=int,
        default=2_000,
        metavar="N",
        help="use at most N articles, drawn as whole events (default: 2000)",
    )
    parser.add_argument(
        "--max_pairs", type=int, default=20_000, metavar="N", help="pairs of each kind (default: 20000)"
    )
    parser.add_argument(
        "--probed",
        type=int,
        default=300,
        metavar="N",
        help="articles drawn for attention and redundancy (default: 300)",
    )
    parser.add_argument(
        "--tags",
        metavar="SPEC",
        help="part-of-speech tagger: hanta, or module:function of (text, language) -> [(word, tag), …] "
        "(default: hanta)",
    )
    parser.add_argument(
        "--language",
        default="",
        metavar="TAG",
        help="BCP-47 language of articles that do not name theirs, for the tagger",
    )
    parser.add_argument(
        "--projection",
        choices=_PROJECTIONS,
        default="tsne",
        help="projection of the map; umap needs umap-learn (default: tsne)",
    )
    parser.add_argument("--cache", metavar="DIR", help="cache of embeddings, as for newsembed evaluate")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
      InputError: for bad options, unreadable articles, or an encoder that cannot be loaded.
    """
    for name in ("neighbors", "max_articles", "max_pairs", "probed"):
        if getattr(args, name) < 1:
            raise InputError(
                f"got {getattr(args, name)}, expected at least 1", field=f"--{name}", remedy="give a positive number"
            )
    check_output(args.output, is_folder=True)
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
    report["command"] = ["newsembed", *without_secrets(sys.argv[1:])]
    write_diagnosis(args.output, report)
    for name, section in report["sections"].items():
        print(f"{name}: {section.get('missing', 'made')}", file=sys.stderr)
    print(f"{args.output}/report.html")
    return 0


def _query_ids(texts: Sequence[str]) -> list[str]:
    """The given ids and those of every ``@FILE``, without blank lines.

    Raises:
      InputError: for a file that cannot be read or has no ids.
    """
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
                f"cannot be read: {reason}",
                path=text[1:],
                field="--queries",
                remedy="give a file with one id on each line",
            ) from error
        if not found:
            raise InputError(
                "has no ids", path=text[1:], field="--queries", remedy="give a file with one id on each line"
            )
        ids += found
    return ids
