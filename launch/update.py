r"""One update of a growing archive, for a job that runs each day: crawl, extract, clean, embed, index, events.

Only what changed is crawled, only articles that the archive does not have are embedded, and the index grows by them.
Articles join the events of the days around them; events keep their ids. A new version appears as a whole or not at all:
after a crash, run the same command again. `newsembed serve --index ARCHIVE` shows new versions without a restart.

example:
  newsembed update --archive archive --encoder savedmodel:saved_model --feeds feeds.txt --crawl.max_depth=1
  newsembed update --archive archive --encoder model:work/trained --articles today.jsonl --clean.min_words=80

Options of a step are prefixed with its name. Those of clean and events must be the same in all runs of an archive.
"""

import argparse
from collections.abc import Sequence

from ..beam_pipelines.clean.options import CleanOptions
from ..beam_pipelines.crawl.options import CrawlOptions
from ..beam_pipelines.extract.job import ExtractOptions
from ..errors import InputError
from ..serving.events import EventOptions
from ..serving.specs import add_long_documents_argument, add_prompt_argument, encoder_from_spec
from ..updates.intake import check_sources
from ..updates.options import EncoderChoice, Sources, UpdateOptions
from ..updates.report import print_report
from ..updates.run import update
from .job_command import add_options, check_beam_args, options_from
from .parsing import Parser

_GROUPS = {"crawl": CrawlOptions, "extract": ExtractOptions, "clean": CleanOptions, "events": EventOptions}
_KINDS = ("model", "savedmodel")


def main(argv: Sequence[str]) -> int:
    """Runs ``newsembed update``.

    Raises:
      InputError: for bad options or input, or an archive that another run works on.
    """
    parser = make_parser()
    args, beam_args = parser.parse_known_args(argv)
    check_beam_args(beam_args, parser)
    sources = Sources(
        args.feeds or "", *(tuple(getattr(args, name) or ()) for name in ("warc", "articles", "bad_words"))
    )
    options = UpdateOptions(**{name: options_from(kind, vars(args), f"{name}.") for name, kind in _GROUPS.items()})
    check_sources(sources)  # a wrong path is noticed before the model is read
    choice = EncoderChoice(args.encoder, args.max_length, args.prompt, args.long_documents)
    if choice.spec.partition(":")[0] not in _KINDS:
        problem = f"got {choice.spec!r}, expected one of {', '.join(f'{kind}:DIR' for kind in _KINDS)}"
        raise InputError(problem, field="--encoder", remedy="name the folder of a trained or exported model")
    encoder = encoder_from_spec(choice.spec, progress=False, **choice.reading())
    print_report(args.archive, update(args.archive, encoder, choice, sources, options, beam_args=beam_args))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``newsembed update``."""
    parser = Parser(
        prog="newsembed update",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--archive", required=True, metavar="DIR", help="local folder; the first run makes it")
    parser.add_argument(
        "--encoder", required=True, metavar="KIND:DIR", help="savedmodel:DIR, or model:DIR[@STEP]; the same in all runs"
    )
    parser.add_argument("--feeds", metavar="FILE", help="crawl these: one URL per line, as `newsembed crawl --seeds`")
    parser.add_argument("--warc", nargs="+", metavar="PATH", help="WARC files or patterns")
    parser.add_argument("--articles", nargs="+", metavar="PATH", help="pre-extracted articles: JSONL or Parquet")
    parser.add_argument(
        "--bad_words", nargs="+", metavar="PATH", help="lists of words; articles that contain one are rejected"
    )
    parser.add_argument(
        "--max_length", type=int, metavar="TOKENS", help="tokens read of each document (default: as in training)"
    )
    add_prompt_argument(parser)
    add_long_documents_argument(parser)
    for name, options in _GROUPS.items():
        add_options(parser.add_argument_group(f"{name} options"), options, f"{name}.")
    return parser
