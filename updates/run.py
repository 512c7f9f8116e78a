"""One update of an archive: from the lock to the new pointer."""

import contextlib
import dataclasses
import datetime
import filecmp
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..beam_pipelines.output_lock import locked
from ..errors import InputError
from ..formats import files
from ..formats.archive import (
    BASE,
    CRAWL_STATE,
    DEAD_LETTERS_FILE,
    INDEX,
    LAST_RUN,
    VersionWriter,
    check_startable,
    publish,
    read_json,
    read_pointer,
    read_version,
    remove_other_versions,
    remove_temporary_files,
    version_folder,
    work_folder,
    write_json,
)
from ..formats.archive_parts import PARENTS, read_array_part
from ..formats.arrays import DAMAGE, read_arrays, write_arrays
from ..formats.parquet import write_shard
from ..formats.records import Article, DeadLetter
from ..serving.events import NO_EVENT, Vectors
from ..serving.interface import TextEncoder
from .duplicates import Archive, Found, find
from .indexing import grow_index, unit_vectors
from .intake import Intake, check_sources, gather
from .options import EncoderChoice, Sources, UpdateOptions, check_same
from .report import Report
from .store import Change, Members, find_change, read_members, write_events, write_rest, write_streams

_SAMPLE: Final = 500  # characters of a dead letter
STEPS: Final = (
    *("crawl", "extract", "rules", "duplicates", "embed", "streams", "events", "index", "manifest", "publish", "tidy"),
)


def update(
    archive: str,
    encoder: TextEncoder,
    choice: EncoderChoice,
    sources: Sources,
    options: UpdateOptions,
    *,
    beam_args: Sequence[str] = (),
    reached: Callable[[str], None] = lambda _: None,
) -> Report:
    """Adds what is new in the sources to an archive, or changes nothing.

    Args:
      archive: its folder, local; made by the first run.
      encoder: what embeds the articles.
      choice: how the command line names it.
      sources: what to read.
      options: of the steps.
      beam_args: Beam's own options.
      reached: called with the name of each step, see :data:`STEPS`, when it is done.

    Raises:
      InputError: for bad options or input, if another run works on the archive, if the archive is damaged, if it was
        made with other options, or for a folder with other files.
      RuntimeError: if the counts do not add up.
    """
    archive = archive.rstrip("/") or archive
    if "://" in archive:
        problem = "an archive must be in a local folder: its versions share files"
        raise InputError(problem, path=archive, field="--archive", remedy="name a local folder")
    check_sources(sources)
    files.use_options(beam_args)
    with locked(archive, "--archive"):
        return _Run(archive, encoder, choice, options, reached).do(sources, beam_args)


class _Run:
    """A run that holds the lock."""

    def __init__(
        self,
        archive: str,
        encoder: TextEncoder,
        choice: EncoderChoice,
        options: UpdateOptions,
        reached: Callable[[str], None],
    ) -> None:
        self._archive, self._encoder, self._choice, self._options = archive, encoder, choice, options
        self._kept_options = options.to_json(choice, encoder.digest)
        self._report_step = reached
        self._started, self._step_started = datetime.datetime.now(datetime.UTC), time.monotonic()
        self._seconds: dict[str, float] = {}
        pointer = read_pointer(archive)
        if pointer is None:
            check_startable(archive)
        self._number = pointer.version if pointer else 0
        self._base = version_folder(archive, self._number) if pointer else ""
        if pointer:
            check_same(archive, read_version(archive, pointer)["options"], self._kept_options)

    def do(self, sources: Sources, beam_args: Sequence[str]) -> Report:
        """Runs all steps."""
        self._clear()
        intake = gather(self._archive, self._base, sources, self._options, beam_args, self._reached)
        known = Archive(self._base, self._options.clean)
        is_known = known.knows(intake.signatures)
        if is_known.all() and not self._has_new_crawl(intake):
            report, letters = self._report(intake, is_known, {}, read_members(self._base)), intake.dead_letters
        else:
            report, letters = self._write(intake, known, is_known)
        remove_other_versions(self._archive, {report.version, report.version - 1})
        shutil.rmtree(work_folder(self._archive), ignore_errors=True)
        write_json(os.path.join(self._archive, LAST_RUN), report.to_json())
        self._write_letters(letters)
        self._reached("tidy")
        return report

    def _clear(self) -> None:
        """Removes what a run that was cut off left, except for jobs that this run resumes."""
        work, marker = work_folder(self._archive), os.path.join(work_folder(self._archive), BASE)
        if read_json(marker) != self._number:  # of a run that was published
            shutil.rmtree(work, ignore_errors=True)
            write_json(marker, self._number)
        remove_other_versions(self._archive, {self._number, self._number - 1})
        remove_temporary_files(self._archive)

    def _write_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Replaces the dead letters of the run before, also where no version is made that could hold them."""
        path = os.path.join(self._archive, DEAD_LETTERS_FILE)
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        if letters:
            write_shard(path, letters, DeadLetter)

    def _write(self, intake: Intake, known: Archive, is_known: Any) -> tuple[Report, list[DeadLetter]]:
        """Writes and publishes a new version; returns the dead letters, too."""
        places = np.flatnonzero(~is_known).tolist()
        signatures, sketches = intake.signatures[~is_known], _sketches_of(intake, places)
        parents = np.array(read_array_part(os.path.join(self._base, PARENTS)) if self._base else [], np.int64)
        threshold = self._options.clean.near_duplicate_threshold
        found = find(known, parents, signatures, sketches, threshold)
        kept = [place for place in range(len(places)) if len(parents) + place not in found.reasons]
        articles = [intake.articles[places[place]] for place in kept]
        self._reached("duplicates")
        vectors = self._embed(articles, signatures["record"][kept])
        self._reached("embed")
        change = find_change(parents, found, articles, vectors, [len(parents) + place for place in kept])
        writer = VersionWriter(self._archive, self._number + 1, self._number if self._base else None)
        write_streams(writer, change, found, signatures, sketches)
        letters = [*intake.dead_letters, *_letters(intake, places, found, len(parents))]
        write_rest(writer, intake.crawl_state, letters)
        self._reached("streams")
        members, merges = self._events(writer, change)
        self._index(writer, change)
        report = self._report(intake, is_known, found.reasons, members, change, len(merges))
        writer.add_history(report.to_json())
        writer.finish(self._kept_options, report.to_json())
        self._reached("manifest")
        publish(self._archive, writer.number)
        self._reached("publish")
        return dataclasses.replace(report, seconds=self._seconds), letters

    def _events(self, writer: VersionWriter, change: Change) -> tuple[Members, list[Any]]:
        found = write_events(writer, read_members(self._base), change, self._options.events, self._started.date())
        self._reached("events")
        return found

    def _index(self, writer: VersionWriter, change: Change) -> None:
        if change.new or change.removed.any():
            grow_index(writer, change.new, change.vectors, self._encoder, self._choice)
        else:
            writer.carry(INDEX)
        self._reached("index")

    def _embed(self, articles: Sequence[Article], records: Any) -> Vectors:
        """Unit vectors of the new articles; those that a run had embedded before it was cut off are read.

        Raises:
          RuntimeError: if the encoder leaves out an article.
        """
        path = os.path.join(work_folder(self._archive), "vectors.npz")
        with contextlib.suppress(InputError, *DAMAGE):
            done = read_arrays(path)
            if str(done["encoder"]) == self._encoder.digest and np.array_equal(done["records"], records):
                return np.asarray(done["vectors"], np.float32)
        vectors = unit_vectors(self._encoder, articles)
        write_arrays(path, {"encoder": np.array(self._encoder.digest), "records": records, "vectors": vectors})
        return vectors

    def _has_new_crawl(self, intake: Intake) -> bool:
        """Whether the crawl has another state than the current version."""
        if not intake.crawl_state:
            return False
        before = os.path.join(self._base, CRAWL_STATE)
        names = sorted(os.listdir(intake.crawl_state))
        if not self._base or sorted(os.listdir(before) if os.path.isdir(before) else []) != names:
            return bool(names)
        return filecmp.cmpfiles(before, intake.crawl_state, names, shallow=False)[0] != names

    def _report(
        self,
        intake: Intake,
        is_known: Any,
        reasons: Mapping[int, str],
        members: Members,
        change: Change | None = None,
        merged: int = 0,
    ) -> Report:
        """Counts the records by their outcome.

        Raises:
          RuntimeError: if the counts do not add up.
        """
        rejected = dict(intake.rejected)
        for reason in reasons.values():
            rejected[str(reason)] = rejected.get(str(reason), 0) + 1
        events = set(members.events.tolist()) - {NO_EVENT}
        opened = events - set(read_members(self._base).events.tolist()) if change else ()
        report = Report(
            version=self._number + (change is not None),
            published=change is not None,
            started=self._started.isoformat(timespec="seconds"),
            read=intake.read,
            new=len(change.new) if change else 0,
            known=int(np.count_nonzero(is_known)),
            rejected=dict(sorted(rejected.items())),
            failed=intake.failed,
            hubs_and_images=intake.hubs_and_images,
            superseded=int(change.removed.sum()) if change else 0,
            articles=len(members),
            events=len(events),
            opened=len(opened),
            merged=merged,
            notes=intake.notes,
            crawl=intake.crawl,
            seconds=dict(self._seconds),
        )
        if report.balance:
            raise RuntimeError(f"{report.balance} records unaccounted for: {report.to_json()}")
        return report

    def _reached(self, step: str) -> None:
        now = time.monotonic()
        self._seconds[step] = round(now - self._step_started, 2)
        self._step_started = now
        self._report_step(step)


def _sketches_of(intake: Intake, places: Sequence[int]) -> Any:
    """The sketches of some articles, one after another."""
    bounds = np.cumsum([0, *intake.signatures["sketch"].tolist()])
    parts = [intake.sketches[bounds[place] : bounds[place + 1]] for place in places]
    return np.concatenate([intake.sketches[:0], *parts])


def _letters(intake: Intake, places: Sequence[int], found: Found, before: int) -> list[DeadLetter]:
    """A dead letter for each duplicate."""
    letters = []
    for row, reason in sorted(found.reasons.items()):
        article = intake.articles[places[row - before]]
        sample = f"{article.title}\n{article.body}"[:_SAMPLE]
        letters.append(DeadLetter(article.url, "rejected", reason.value, "", sample))
    return letters
