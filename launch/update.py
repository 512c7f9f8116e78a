r"""One update of a growing archive, for a job that runs each day: crawl, extract, clean, embed, index, events.

Only what changed is crawled, only articles that the archive does not have are embedded, and the index grows by them.
Articles join the events of the days around them; events keep their ids. A new version appears as a whole or not at all:
after a crash, run the same command again. `newsembed serve --index ARCHIVE` shows new versions without a restart.

example:
  newsembed update --archive archive --encoder savedmodel:saved_model --feeds feeds.txt --crawl.max_depth=1
  newsembed update --archive archive --encoder model:work/trained --articles today.jsonl --clean.min_words=80

  newsembed update --archive archive --feeds feeds.txt --train --train.least_new=2000
  newsembed update --archive archive --train --train.held_out_days=30

Options of a step are prefixed with its name. Those of clean and events must be the same in all runs of an archive.
--train mines the archive, trains its model further, and compares it with the current model on the last days; it
takes its place if it is not worse.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..beam_pipelines.clean.options import CleanOptions
from ..beam_pipelines.crawl.options import CrawlOptions
from ..beam_pipelines.extract.job import ExtractOptions
from ..beam_pipelines.output_lock import locked
from ..beam_pipelines.progress import print_table
from ..errors import InputError, counted
from ..formats.archive import trained_model, training_work
from ..formats.index import split_encoder
from ..serving.events import EventOptions
from ..serving.specs import add_long_documents_argument, add_prompt_argument, encoder_from_spec
from ..studies.retrain.options import RetrainOptions
from ..updates.intake import check_sources
from ..updates.options import EncoderChoice, Sources, UpdateOptions, current_choice
from ..updates.replacement import keep_decision, replace_encoder
from ..updates.report import print_report
from ..updates.run import update
from .extras import require
from .job_command import add_options, check_beam_args, options_from
from .parsing import Parser

_GROUPS = {"crawl": CrawlOptions, "extract": ExtractOptions, "clean": CleanOptions, "events": EventOptions}
_KINDS = ("model", "savedmodel")
_TRAIN = ("train", "evaluate")


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
    training = options_from(RetrainOptions, vars(args), "train.") if args.train else None
    has_sources = any((sources.feeds, sources.warc, sources.articles))
    if has_sources or training is None:
        check_sources(sources)  # a wrong path is noticed before the model is read
    choice = current_choice(args.archive, _given_choice(args))
    if args.encoder is None:
        _check_present(choice, args.archive)
    if training is not None:
        check_training(choice)
    if has_sources:
        encoder = encoder_from_spec(choice.spec, progress=False, **choice.reading())
        print_report(args.archive, update(args.archive, encoder, choice, sources, options, beam_args=beam_args))
    if training is not None:
        retrain(args.archive, choice, training, beam_args, is_asked=not has_sources)
    return 0


def _check_present(choice: EncoderChoice, archive: str) -> None:
    """Checks that the encoder that an archive names is there.

    Raises:
      InputError: if not: the archive or the encoder was moved, or this is another working directory.
    """
    if not os.path.isdir(split_encoder(choice.spec)[1]):
        problem = f"the encoder of the archive was not found: {choice.spec}"
        kind = choice.spec.partition(":")[0]
        remedy = f"run this in the folder of the first run, or say where the encoder is: --encoder {kind}:DIR"
        raise InputError(problem, path=archive, remedy=remedy)


def check_training(choice: EncoderChoice) -> None:
    """Checks what a training needs, before anything else is done.

    Raises:
      InputError: for a model that cannot be trained, or an extra that is not installed.
    """
    kind, _, model = choice.spec.partition(":")
    if kind != "model":
        problem = f"got {choice.spec}: a SavedModel has no checkpoint to train from"
        remedy = "start an archive with the folder of the model, model:DIR"
        raise InputError(problem, field="--encoder", remedy=remedy)
    require(_TRAIN)
    from ..studies.retrain.conduct import check_trainable

    check_trainable(model)


def retrain(
    archive: str,
    choice: EncoderChoice,
    options: RetrainOptions,
    beam_args: Sequence[str],
    *,
    is_asked: bool,
) -> None:
    """Trains on an archive and lets the better model serve; says what it did.

    Args:
      archive: its folder.
      choice: the model that serves.
      options: of the training.
      beam_args: Beam's own options.
      is_asked: whether nothing else is; too few new articles are an error then.

    Raises:
      InputError: see :class:`~newsembed.studies.retrain.conduct.Retraining`.
    """
    from ..studies.retrain.conduct import Retraining

    model = choice.spec.partition(":")[2]
    with locked(training_work(archive), "--train"):
        training = Retraining(archive, model, choice.reading(), options, beam_args)
        if missing := training.missing_articles():
            problem = f"{counted(missing, 'more article')} {'is' if missing == 1 else 'are'} needed to train again"
            if is_asked:
                raise InputError(
                    problem, path=archive, field="--train.least_new", remedy="wait, or give a lower number"
                )
            print(f"{archive}: not trained: {problem} (--train.least_new={options.least_new})")
            return
        outcome = training.run()
        print_trial(outcome.trial)
        if not outcome.trial["accepted"]:
            keep_decision(archive, outcome.number, {**outcome.trial, "version": None})
            print(f"{archive}: the model stays; the trained one is in {trained_model(archive, outcome.number)}")
            return
        encoder = encoder_from_spec(f"model:{outcome.model}", progress=False, **choice.reading())
        spec = f"model:{trained_model(archive, outcome.number)}"
        own = EncoderChoice(spec, **choice.reading(), training=outcome.number, first=choice.first or choice.spec)
        version = replace_encoder(archive, encoder, own, outcome.trial)
        print(f"{archive}: version {version} has the trained model, {trained_model(archive, outcome.number)}")


def print_trial(trial: Mapping[str, Any]) -> None:
    """Prints the scores of both models and what they decide."""
    from ..studies.retrain.trial import summary

    names = ("events", "number", "mAP now", "trained", "difference", "95 %")
    print_table(names, summary(trial), numbers=names[1:])
    verdict = "accepted" if trial["accepted"] else "refused"
    print(f"{verdict}; a model is accepted if {trial['rule']} ({trial['tolerance']:g})")


def _given_choice(args: argparse.Namespace) -> EncoderChoice | None:
    """The encoder on the command line, if there is one.

    Raises:
      InputError: for another kind than those of archives, or how to read documents without it.
    """
    if args.encoder is None:
        for name in ("max_length", "prompt", "long_documents"):
            if getattr(args, name) is not None:
                raise InputError("got no --encoder", field=f"--{name}", remedy="give both, or neither")
        return None
    choice = EncoderChoice(args.encoder, args.max_length, args.prompt, args.long_documents)
    if choice.spec.partition(":")[0] not in _KINDS:
        problem = f"got {choice.spec!r}, expected one of {', '.join(f'{kind}:DIR' for kind in _KINDS)}"
        raise InputError(problem, field="--encoder", remedy="name the folder of a trained or exported model")
    return choice


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
        "--encoder",
        metavar="KIND:DIR",
        help="savedmodel:DIR, or model:DIR[@STEP]; the same in all runs, or left out after the first",
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
    parser.add_argument("--train", action="store_true", help="train the model further, and use it if it is not worse")
    add_options(parser.add_argument_group("training options"), RetrainOptions, "train.")
    for name, options in _GROUPS.items():
        add_options(parser.add_argument_group(f"{name} options"), options, f"{name}.")
    return parser
