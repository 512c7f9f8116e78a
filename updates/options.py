"""What an update reads, and the options that an archive keeps from its first run on."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from ..beam_pipelines.clean.options import CleanOptions
from ..beam_pipelines.crawl.options import CrawlOptions
from ..beam_pipelines.extract.job import ExtractOptions
from ..errors import InputError
from ..serving.events import EventOptions

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
    """

    spec: str
    max_length: int | None = None
    document_prompt: str | None = None
    long_documents: str | None = None

    def reading(self) -> dict[str, Any]:
        """All but the name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name != "spec"}


@dataclasses.dataclass(frozen=True)
class UpdateOptions:
    """Options of the steps."""

    crawl: CrawlOptions = dataclasses.field(default_factory=CrawlOptions)
    extract: ExtractOptions = dataclasses.field(default_factory=ExtractOptions)
    clean: CleanOptions = dataclasses.field(default_factory=CleanOptions)
    events: EventOptions = dataclasses.field(default_factory=EventOptions)

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
          InputError: if a folder for the state of the crawl is given.
        """
        if self.crawl.state:
            raise InputError(
                "the archive keeps the state of its crawls", field="--crawl.state", remedy="leave this option out"
            )

    def to_json(self, encoder: str, encoder_digest: str, encoder_options: Mapping[str, Any]) -> dict[str, Any]:
        """The options as the archive keeps them.

        Args:
          encoder: ``KIND:REST``.
          encoder_digest: of the encoder.
          encoder_options: how it reads documents.
        """
        values: dict[str, Any] = {
            name: dataclasses.asdict(getattr(self, name)) for name in ("crawl", "extract", "clean", "events")
        }
        values |= {"encoder": encoder, "encoder_digest": encoder_digest, "encoder_options": dict(encoder_options)}
        plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return plain


def check_same(archive: str, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuses options that would make the articles of a run differ in kind from those of the runs before.

    Raises:
      InputError: naming the first option that differs.
    """
    for group in _LASTING:
        before, now = kept.get(group), given.get(group)
        if before == now:
            continue
        field, shown = f"--{group}", f"got {now}, expected {before} as in the runs before"
        if isinstance(before, dict) and isinstance(now, dict):
            name = next(name for name in sorted({*before, *now}) if before.get(name) != now.get(name))
            field = f"--{group}.{name}" if group in ("clean", "events") else f"--{name}"
            shown = f"got {now.get(name)}, expected {before.get(name)} as in the runs before"
        if group == "encoder_digest":
            field, shown = "--encoder", "not the encoder of the runs before, whose vectors would not compare"
        raise InputError(shown, path=archive, field=field, remedy="give it as before, or start a new archive")
