r"""One update of a growing archive, for a job that runs each day: crawl, extract, clean, embed, index, events.

Only what changed is crawled, only articles that the archive does not have are embedded, and the index grows by them.
Articles join the events of the days around them; events keep their ids. A new version appears as a whole or not at all:
after a crash, run the same command again. `newsembed serve --index ARCHIVE` shows new versions without a restart.

example:
  newsembed update --archive archive --encoder savedmodel:saved_model --feeds feeds.txt --crawl.max_depth=1
  newsembed update --archive archive --encoder model:work/trained --articles today.jsonl --clean.min_words=80

  newsembed update --archive archive --feeds feeds.txt --train --train.least_new=2000
  newsembed update --archive archive --train --train.held_out_days=30
  newsembed update --archive archive --encoder model:e5 --replace_encoder
  newsembed update --archive archive --rollback 31

Options of a step are prefixed with its name. Those of clean and events are the same in all runs of an archive: later
runs take those of the first.
--train mines the archive, trains its model further, and compares it with the current model on the last days; it
takes its place if it is not worse.
"""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..beam_pipelines.clean.rules import CleanOptions
from ..beam_pipelines.crawl.options import CrawlOptions
from ..beam_pipelines.extract.job import ExtractOptions
from ..beam_pipelines.progress import JobProgress, print_table
from ..errors import InputError, counted
from ..formats.archive import read_runs
from ..formats.archive_writer import Writer
from ..formats.command_line import Options, option, required
from ..formats.folders import locked, trained_model, training_work
from ..serving.events import EventOptions
from ..serving.specs import ReadingOptions, encoder_from_spec, split_encoder
from ..studies.retrain import Retraining, RetrainOptions, check_trainable
from ..studies.retrain.trial import summary
from ..updates.intake import check_sources
from ..updates.options import EncoderChoice, Sources, UpdateOptions, current_choice, lasting_arguments
from ..updates.replacement import change_encoder, keep_decision, replace_encoder
from ..updates.report import print_report
from ..updates.run import KEEP_VERSIONS, update
from .extras import require
from .parsing import beam_arguments, value_of

_KINDS: Final = ("model", "savedmodel")
_TRAIN: Final = ("train", "evaluate")
_READING: Final = {field.name: field.metadata for field in dataclasses.fields(ReadingOptions)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateCommandOptions(Options):
    """Options of ``newsembed update``."""

    archive: str = required("folder or URI; the first run makes it", metavar="DIR|URI")
    encoder: str | None = option(
        None,
        "savedmodel:DIR or model:DIR[@STEP]; same in all runs, or left out after the first",
        metavar="KIND:DIR",
    )
    feeds: str = option("", "crawl these: one URL per line, as `newsembed crawl --seeds`", metavar="FILE")
    warc: tuple[str, ...] = option((), "WARC files or patterns", many=True, metavar="PATH")
    articles: tuple[str, ...] = option((), "pre-extracted articles: JSONL or Parquet", many=True, metavar="PATH")
    bad_words: tuple[str, ...] = option(
        (), "lists of words; articles that contain one are rejected", many=True, metavar="PATH"
    )
    max_length: int | None = dataclasses.field(default=None, metadata=_READING["max_length"])
    replace_encoder: bool = option(
        False, "--encoder is another one than that of the archive: embed all articles anew, and find their events anew"
    )
    prompt: str | None = dataclasses.field(default=None, metadata=_READING["prompt"])
    long_documents: str | None = dataclasses.field(default=None, metadata=_READING["long_documents"])
    # The version before is needed while one is written.
    keep_versions: int = option(KEEP_VERSIONS, "versions to keep, for --rollback", ge=2)
    rollback: int | None = option(None, "show this version again, and do nothing else", metavar="N")
    train: bool = option(False, "train the model further, and use it if it is not worse")
    training: RetrainOptions = dataclasses.field(default_factory=RetrainOptions, metadata={"prefix": "train."})
    crawl: CrawlOptions = dataclasses.field(default_factory=CrawlOptions)
    extract: ExtractOptions = dataclasses.field(default_factory=ExtractOptions)
    clean: CleanOptions = dataclasses.field(default_factory=CleanOptions)
    events: EventOptions = dataclasses.field(default_factory=EventOptions)
    beam_args: tuple[str, ...] = beam_arguments()

    @classmethod
    def expanded(cls, arguments: Sequence[str]) -> list[str]:
        """The arguments after those that must be as in earlier runs of the archive."""
        archive = value_of("archive", arguments)
        runs = read_runs(archive) if archive else []
        return [*(lasting_arguments(runs[-1].settings) if runs else ()), *arguments]

    def __post_init__(self) -> None:
        """Checks the encoder."""
        super().__post_init__()
        if self.encoder is None:
            for name in ("max_length", "prompt", "long_documents", "replace_encoder"):
                if getattr(self, name) not in (None, False):
                    raise InputError("got no --encoder", field=f"--{name}", remedy="give both, or neither")
        elif self.encoder.partition(":")[0] not in _KINDS:
            problem = f"got {self.encoder!r}, expected one of {', '.join(f'{kind}:DIR' for kind in _KINDS)}"
            raise InputError(problem, field="--encoder", remedy="name the folder of a trained or exported model")

    @property
    def choice(self) -> EncoderChoice | None:
        """The encoder, if one is given."""
        return EncoderChoice(self.encoder, self.max_length, self.prompt, self.long_documents) if self.encoder else None


OPTIONS = UpdateCommandOptions


def run(options: UpdateCommandOptions) -> int:
    """Runs ``newsembed update``."""
    archive = options.archive
    if options.rollback is not None:
        with Writer(archive, "--archive") as writer:
            version = writer.roll_back(options.rollback)
        print(f"{archive}: version {version.number} is version {options.rollback} again")
        return 0
    sources = Sources(options.feeds, options.warc, options.articles, options.bad_words)
    steps = UpdateOptions(options.crawl, options.extract, options.clean, options.events)
    has_sources = any((sources.feeds, sources.warc, sources.articles))
    if has_sources or not (options.train or options.replace_encoder):
        check_sources(sources)  # a wrong path is noticed before the model is read
    choice = current_choice(archive, None if options.replace_encoder else options.choice)
    if options.replace_encoder and options.choice:
        choice = options.choice
    if options.encoder is None and not os.path.isdir(split_encoder(choice.spec)[1]):
        problem = f"the encoder of the archive was not found: {choice.spec}"
        kind = choice.spec.partition(":")[0]
        remedy = f"run this in the folder of the first run, or say where the encoder is: --encoder {kind}:DIR"
        raise InputError(problem, path=archive, remedy=remedy)
    if options.replace_encoder:
        encoder = encoder_from_spec(choice.spec, progress=False, **choice.reading())
        print(f"{archive}: version {change_encoder(archive, encoder, choice)} has the vectors of {choice.spec}")
    if options.train:
        check_training(choice, archive, is_named=options.encoder == choice.spec)
    if has_sources:
        print(f"loading {choice.spec}", file=sys.stderr, flush=True)
        encoder = encoder_from_spec(choice.spec, progress=False, **choice.reading())
        with JobProgress("update") as progress:
            report = update(
                archive,
                encoder,
                choice,
                sources,
                steps,
                beam_args=options.beam_args,
                keep_versions=options.keep_versions,
                progress=progress,
            )
        print_report(archive, report)
    if options.train:
        retrain(archive, choice, options.training, options.beam_args, is_asked=not has_sources)
    return 0


def check_training(choice: EncoderChoice, archive: str, *, is_named: bool = False) -> None:
    """Checks what a training needs, before anything else is done; `is_named`: see `check_trainable`."""
    if "://" in archive:
        raise InputError("trains local archives only", path=archive, field="--train", remedy="train on a copy of it")
    kind, _, model = choice.spec.partition(":")
    if kind != "model":
        problem = f"got {choice.spec}: a SavedModel has no checkpoint to train from"
        raise InputError(problem, field="--encoder", remedy="start an archive with the folder of the model, model:DIR")
    require(_TRAIN)
    check_trainable(model, is_named=is_named)


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
    """
    model = choice.spec.partition(":")[2]
    with locked(training_work(archive), "--train"):
        training = Retraining(archive, model, choice.reading(), options, beam_args)
        if missing := training.missing_articles():
            problem = f"{counted(missing, 'more article')} {'is' if missing == 1 else 'are'} needed to train again"
            if is_asked:
                remedy = "wait, or give a lower number"
                raise InputError(problem, path=archive, field="--train.least_new", remedy=remedy)
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
    names = ("events", "number", "mAP now", "trained", "difference", "95 %")
    print_table(names, summary(trial), numbers=names[1:])
    verdict = "accepted" if trial["accepted"] else "refused"
    print(f"{verdict}; a model is accepted if {trial['rule']} ({trial['tolerance']:g})")
