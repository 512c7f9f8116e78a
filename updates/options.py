"""What an update reads, and the options that an archive keeps from its first run on."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from ..beam_pipelines.clean.rules import CleanOptions
from ..beam_pipelines.crawl.options import CrawlOptions
from ..beam_pipelines.extract.job import ExtractOptions
from ..errors import InputError
from ..formats.archive import check_startable, read_runs
from ..formats.folders import trained_model
from ..formats.trust import check_encoder
from ..serving.events import EventOptions
from ..serving.specs import found_encoder

_LASTING = ("clean", "events", "encoder_digest", "encoder_options")


@dataclasses.dataclass(frozen=True)
class Sources:
    """Where new articles come from.

    Attributes:
      feeds: file with one URL per line, as ``newsembed crawl --seeds`` reads it; "" for no crawl.
      warc: WARC files, patterns or lists.
      articles: files of pre-extracted articles, or patterns.
      bad_words: files with one word per line.
    """

    feeds: str = ""
    warc: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    bad_words: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class EncoderChoice:
    """The encoder as the command line names it.

    Attributes:
      spec: ``KIND:REST``.
      max_length: tokens read of each document; None as in training.
      document_prompt: in place of the encoder's own; None for its own.
      long_documents: in place of the encoder's own way to read them; None for its own.
      training: number of the training of the archive that made the encoder; 0 for an encoder from elsewhere.
      first: the ``KIND:REST`` that the archive began with, where a training has replaced it.
    """

    spec: str
    max_length: int | None = None
    document_prompt: str | None = None
    long_documents: str | None = None
    training: int = 0
    first: str = ""

    def reading(self) -> dict[str, Any]:
        """How it reads documents."""
        return {name: getattr(self, name) for name in ("max_length", "document_prompt", "long_documents")}


@dataclasses.dataclass(frozen=True)
class UpdateOptions:
    """Options of the steps; `ranking` is that of the search, `Ranking.to_dict`, None for that of earlier runs."""

    crawl: CrawlOptions = dataclasses.field(default_factory=CrawlOptions)
    extract: ExtractOptions = dataclasses.field(default_factory=ExtractOptions)
    clean: CleanOptions = dataclasses.field(default_factory=CleanOptions)
    events: EventOptions = dataclasses.field(default_factory=EventOptions)
    ranking: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuses a folder for the state of the crawl."""
        if self.crawl.state:
            problem, remedy = "the archive keeps the state of its crawls", "leave this option out"
            raise InputError(problem, field="--crawl.state", remedy=remedy)

    def to_json(self, choice: EncoderChoice, encoder_digest: str) -> dict[str, Any]:
        """The options as the archive keeps them.

        Args:
          choice: of the encoder.
          encoder_digest: of the encoder.
        """
        values = {**dataclasses.asdict(self), **encoder_values(choice, encoder_digest)}
        plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return plain


def encoder_values(choice: EncoderChoice, digest: str) -> dict[str, Any]:
    """What the archive keeps of its encoder, by name."""
    values = {"encoder": choice.spec, "encoder_digest": digest, "encoder_options": choice.reading()}
    return values | {"training": choice.training, "encoder_first": choice.first}


def current_choice(archive: str, given: EncoderChoice | None) -> EncoderChoice:
    """The encoder of an archive: the given one, or the model of the training that has replaced it.

    Args:
      archive: its folder.
      given: on the command line; None takes that of earlier runs.

    Raises:
      InputError: if there is none, another one is given than the archive began with, or the folder has other files.
    """
    runs = read_runs(archive)
    if not runs:
        check_startable(archive)  # before the model is read
        if given is None:
            remedy = "give the encoder of the new archive, such as model:work/trained"
            raise InputError("the archive has no version yet", path=archive, field="--encoder", remedy=remedy)
        return given
    kept = runs[-1].settings
    if "clean" not in kept:
        problem, remedy = "is an index of newsembed index", "start an archive in another folder"
        raise InputError(problem, path=archive, field="--archive", remedy=remedy)
    training = int(kept.get("training", 0))
    if not training:
        if given:
            return given
        spec = found_encoder(archive, kept)
        check_encoder(spec)
        return EncoderChoice(spec, **kept["encoder_options"])
    own, first = f"model:{trained_model(archive, training)}", kept["encoder_first"]
    if given and given.spec not in (own, first):
        problem = f"got {given.spec}, but the archive began with {first} and its training {training} has replaced that"
        raise InputError(problem, path=archive, field="--encoder", remedy="leave it out, or start a new archive")
    reading = given.reading() if given else kept["encoder_options"]
    return EncoderChoice(own, **reading, training=training, first=first)


def lasting_arguments(kept: Mapping[str, Any]) -> list[str]:
    """The options of clean and events of an archive's runs, as ``--GROUP.NAME=VALUE``."""
    values = ((group, *item) for group in ("clean", "events") for item in kept.get(group, {}).items())
    return [f"--{group}.{name}={value}" for group, name, value in values if value is not None]


def check_same(archive: str, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuses options that would make the articles of a run differ in kind from those of earlier runs.

    Raises:
      InputError: naming the first option that differs.
    """
    for group in _LASTING:
        before, now = kept.get(group), given.get(group)
        if before == now:
            continue
        field, shown = f"--{group}", f"got {now}, expected {before} as in earlier runs"
        if isinstance(before, dict) and isinstance(now, dict):
            name = next(name for name in sorted({*before, *now}) if before.get(name) != now.get(name))
            field = f"--{group}.{name}" if group in ("clean", "events") else f"--{name}"
            shown = f"got {now.get(name)}, expected {before.get(name)} as in earlier runs"
        if group == "encoder_digest":
            field, shown = "--encoder", "not the encoder of earlier runs; --replace_encoder embeds all articles anew"
        raise InputError(shown, path=archive, field=field, remedy="leave it out, or start a new archive")
