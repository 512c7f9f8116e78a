"""One update of an archive: from the lock to the row of the run, which shows its changes in one step."""

import collections
import contextlib
import dataclasses
import datetime
import glob
import hashlib
import itertools
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..beam_pipelines.arrays import doc_id_of, doc_numbers_of
from ..beam_pipelines.graph import Progress
from ..errors import InputError
from ..formats import files, stores
from ..formats.archive import CRAWL, DEAD_LETTERS, LAST_RUN, SEEN, WORK, Archive, EventMerge, schema
from ..formats.archive_writer import Writer
from ..formats.arrays import DAMAGE, Array, read_arrays, unit_rows, write_arrays
from ..formats.articles import ArticleText
from ..formats.folders import now, read_json
from ..formats.parquet import write_shard
from ..formats.records import Article, DeadLetter
from ..serving.analysis import base_language
from ..serving.embed import embedded
from ..serving.events import NO_EVENT, UNDATED, Ids, Merge, Vectors, assign
from ..serving.index_command import table_rows
from ..serving.interface import TextEncoder
from ..serving.specs import settings_of
from .duplicates import Duplicates, Seen, find, record_digest
from .intake import Intake, check_sources, crawl_state, gather
from .options import EncoderChoice, Sources, UpdateOptions, check_same
from .report import Report

KEEP_VERSIONS: Final = 7
TEXTS: Final = ("doc_id", "url", "publisher", "title", "body", "language", "byline_date")
_BASE: Final = "base.json"  # in the work folder: the run that it began from, 0 for none
_LETTERS: Final = f"{DEAD_LETTERS}/part-00000-of-00001.parquet"
_SAMPLE: Final = 500  # characters of a dead letter
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_ROWS: Final = 4_096  # of a new table, made at a time
_CHUNK: Final = 64  # articles that are embedded at a time, and lost if a run is cut off
# An article: its doc_id, the ordinal of its byline date or `UNDATED`, its event or `NO_EVENT`, the number of its row in
# the archive, -1 for a new one, and its language without region and script.
_MEMBER: Final = np.dtype([("doc_id", "<u8"), ("day", "<i8"), ("event", "<u8"), ("number", "<i8"), ("language", "S8")])
_PHASES: Final = {
    "read": ("crawl", "extract", "rules", "duplicates"),
    "write": ("embed", "events", "write", "index", "publish", "tidy"),
}
STEPS: Final = tuple(itertools.chain.from_iterable(_PHASES.values()))


def update(
    archive: str,
    encoder: TextEncoder,
    choice: EncoderChoice,
    sources: Sources,
    options: UpdateOptions,
    *,
    beam_args: Sequence[str] = (),
    keep_versions: int = KEEP_VERSIONS,
    progress: Progress = lambda *_: None,
) -> Report:
    """Adds what is new in the sources to an archive, or changes nothing.

    Args:
      archive: its folder or URI; made by the first run.
      encoder: what embeds the articles.
      choice: how the command line names it.
      sources: what to read.
      options: of the steps.
      beam_args: Beam's own options.
      keep_versions: that can be opened afterwards.
      progress: called with (phase, steps or articles that are done, all of them, the step that ended or "").

    Raises:
      InputError: for bad options or input, if another run works on the archive, if the archive is damaged, if it was
        made with other options, or for a folder with other files.
      RuntimeError: if the counts do not add up.
    """
    archive = archive.rstrip("/") or archive
    check_sources(sources)
    stores.use_options(beam_args)
    with Writer(archive, "--archive") as writer:
        return _Run(writer, encoder, choice, options, keep_versions, progress).do(sources, beam_args)


def work_folder(archive: str) -> str:
    """The local folder of the run in progress: in the archive, or a temporary one where that is on an object store."""
    if "://" not in archive:
        return os.path.join(archive, WORK)
    return os.path.join(tempfile.gettempdir(), f"newsembed-{hashlib.sha256(archive.encode()).hexdigest()[:16]}")


def unit_vectors(encoder: TextEncoder, articles: Sequence[Any], counts: dict[str, int]) -> Vectors:
    """Embeds articles as float32 ``[n, D]``, and counts them; a `RuntimeError` if the encoder leaves one out."""
    texts = (ArticleText(*(getattr(article, name) for name in TEXTS)) for article in articles)
    vectors = np.concatenate([vectors for _, vectors in embedded(encoder, texts, counts)])
    if len(vectors) != len(articles):  # each would become that of another article
        raise RuntimeError(f"{len(vectors)} vectors of {len(articles)} articles")
    return unit_rows(vectors)


def vectors_by_record(
    encoder: TextEncoder, articles: Iterable[Article | ArticleText], cache: str
) -> dict[int, Vectors]:
    """Unit vectors of articles by their :func:`~.duplicates.record_digest`.

    Args:
      encoder: what embeds.
      articles: any number.
      cache: a folder where each chunk is kept, so that a run that was cut off does not embed it again.
    """
    known = dict[int, Vectors]()
    for path in sorted(glob.glob(f"{glob.escape(cache)}/*.npz")):
        with contextlib.suppress(InputError, *DAMAGE):
            found = read_arrays(path)
            if str(found["encoder"]) == encoder.digest:
                known.update(zip(found["records"].tolist(), found["vectors"], strict=True))
    waiting, counts = iter(articles), dict[str, int]()
    while chunk := {record_digest(article): article for article in itertools.islice(waiting, _CHUNK)}:
        if new := {record: article for record, article in chunk.items() if record not in known}:
            vectors, records = unit_vectors(encoder, [*new.values()], counts), np.array([*new], np.uint64)
            known.update(zip(new, vectors, strict=True))
            os.makedirs(cache, exist_ok=True)
            path = os.path.join(cache, f"{records.min():016x}-{len(records)}.npz")
            write_arrays(path, {"encoder": np.array(encoder.digest), "records": records, "vectors": vectors})
    return known


def members_of(archive: Archive | None) -> Array:
    """The articles of an archive, none before its first version; see `_MEMBER`."""
    if archive is None:
        return _new_members([])
    rows = archive.rows(["doc_id", "byline_date", "event_id", "language"])
    members = np.zeros(len(rows), _MEMBER)
    members["doc_id"], members["number"] = doc_numbers_of(rows["doc_id"]), rows["_rowid"].to_numpy()
    members["day"] = rows["byline_date"].cast(pa.int32()).fill_null(UNDATED - _EPOCH).to_numpy().astype(int) + _EPOCH
    members["event"] = [int(event, 16) if event else NO_EVENT for event in rows["event_id"].to_pylist()]
    members["language"] = [base_language(language).encode() for language in rows["language"].to_pylist()]
    return members


def _new_members(articles: Sequence[Article]) -> Array:
    """Articles that have no event yet."""
    rows = [
        (
            int(article.doc_id, 16),
            article.byline_date.toordinal() if article.byline_date else UNDATED,
            NO_EVENT,
            -1,
            base_language(article.language).encode(),
        )
        for article in articles
    ]
    return np.array(rows, _MEMBER)


@dataclasses.dataclass
class _Run:
    """A run that holds the lock; its values are those of `update`."""

    _writer: Writer
    _encoder: TextEncoder
    _choice: EncoderChoice
    _options: UpdateOptions
    _keep: int
    _progress: Progress

    def __post_init__(self) -> None:
        base, self._uri = self._writer.base, self._writer.uri
        self._work, self._seconds = work_folder(self._uri), dict[str, float]()
        self._kept_options = self._options.to_json(self._choice, self._encoder.digest)
        self._started, self._step_started = now(), time.monotonic()
        self._number = base.number if base else 0
        self._base = Archive(self._uri) if base else None
        self._before = members_of(self._base)
        if base:
            check_same(self._uri, base.settings, self._kept_options)
            self._kept_options["ranking"] = self._kept_options["ranking"] or base.settings.get("ranking")

    def do(self, sources: Sources, beam_args: Sequence[str]) -> Report:
        """Runs all steps."""
        self._progress("read", 0, len(_PHASES["read"]), "")
        marker = os.path.join(self._work, _BASE)
        if read_json(marker) != self._number:  # of a run that was published
            files.delete([self._work])
            files.write_json(marker, self._number)
        intake = gather(self._work, self._base, sources, self._options, beam_args, self._reached)
        seen = Seen.read(self._base, self._options.clean)
        is_known, folder = seen.knows(intake.seen.digests), intake.crawl_state
        crawl = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())} if folder else {}
        if is_known.all() and (not crawl or crawl == crawl_state(self._base)):
            self._reached("duplicates")
            report, letters = self._report(intake, is_known, {}, self._before), list(intake.dead_letters)
        else:
            report, letters = self._write(intake, seen, is_known, crawl)
        files.delete([self._work])
        files.write_json(f"{self._uri}/{LAST_RUN}", report.to_json())
        files.delete([f"{self._uri}/{DEAD_LETTERS}"])
        if letters:
            write_shard(f"{self._uri}/{_LETTERS}", letters, DeadLetter)
        self._reached("tidy")
        return report

    def _write(
        self, intake: Intake, seen: Seen, is_known: npt.NDArray[np.bool_], crawl: Mapping[str, bytes]
    ) -> tuple[Report, list[DeadLetter]]:
        """Writes and publishes a new version; returns the dead letters, too."""
        new, candidates = intake.seen.only(~is_known), [intake.articles[row] for row in np.flatnonzero(~is_known)]
        found = find(seen, new, self._options.clean.near_duplicate_threshold)
        kept = [row for row in range(len(candidates)) if len(seen) + row not in found.reasons]
        articles = [candidates[row] for row in kept]
        self._reached("duplicates")
        vectors = self._embedded(articles, new.digests["record"][kept].tolist())
        self._reached("embed")
        doc_ids = np.concatenate([seen.digests["doc_id"], new.digests["doc_id"]])
        heirs = {int(doc_ids[row]): int(doc_ids[found.root(row)]) for row in found.superseded.tolist()}
        members, merges = self._events(articles, vectors, heirs)
        self._reached("events")
        self._write_articles(articles, vectors, heirs, members)
        del vectors  # gigabytes of a first run, which the indexes need
        self._write_state(seen, new, found, crawl)
        self._reached("write")
        report = self._report(intake, is_known, found.reasons, members, articles, len(heirs), len(merges))
        run = self._writer.finish(self._settings(articles), report.to_json(), merges, self._keep)
        self._reached("index")
        self._writer.publish(run)
        self._reached("publish")
        letters = list(intake.dead_letters)
        for row, reason in sorted(found.reasons.items()):
            article = candidates[row - len(seen)]
            sample = f"{article.title}\n{article.body}"[:_SAMPLE]
            letters.append(DeadLetter(article.key, "rejected", reason.value, "", sample))
        return dataclasses.replace(report, seconds=self._seconds), letters

    def _embedded(self, articles: Sequence[Article], records: Sequence[int]) -> Vectors:
        """The vectors of articles whose records have these digests, float32 ``[n, D]``."""
        known = vectors_by_record(self._encoder, self._shown(articles), os.path.join(self._work, "vectors"))
        return np.array([known[record] for record in records], np.float32).reshape(-1, self._encoder.dimensions)

    def _events(
        self, articles: Sequence[Article], vectors: Vectors, heirs: Mapping[int, int]
    ) -> tuple[Array, list[EventMerge]]:
        """Assigns events to the new articles. An article that replaces another belongs to the event of the latter.

        Args:
          articles: the new ones.
          vectors: theirs.
          heirs: for each article that goes, the one that takes its place, both as numbers.

        Returns:
          The articles that stay and after them the new ones, see `_MEMBER`, and the merges.
        """
        gone = np.isin(self._before["doc_id"], np.array(list(heirs), np.uint64))
        lost, members = self._before[gone], np.concatenate([self._before[~gone], _new_members(articles)])
        place_of = {doc_id: place for place, doc_id in enumerate(members["doc_id"].tolist())} if gone.any() else {}
        places, events = [place_of[heirs[doc_id]] for doc_id in lost["doc_id"].tolist()], members["event"]
        for event, heir in zip(lost["event"].tolist(), places, strict=True):
            if events[heir] == NO_EVENT:
                events[heir] = event
        stayed = len(members) - len(articles)

        def read(rows: npt.NDArray[np.int64]) -> Vectors:
            result = np.zeros((len(rows), self._encoder.dimensions), np.float32)
            is_new = rows >= stayed
            result[is_new] = vectors[rows[is_new] - stayed]
            if self._base is not None:
                result[~is_new] = self._base.vectors(members["number"][rows[~is_new]].tolist())
            return result

        merges = _emptied(lost["event"], places, events, members["doc_id"])
        languages = members["language"].astype(str).tolist()
        members["event"], found = assign(
            members["doc_id"], members["day"], events, languages, read, self._options.events
        )
        merges += found
        return members, [EventMerge(*map(doc_id_of, dataclasses.astuple(merge))) for merge in merges]

    def _write_articles(
        self, articles: Sequence[Article], vectors: Vectors, heirs: Mapping[int, int], members: Array
    ) -> None:
        shape, stayed = schema(self._encoder.dimensions, self._encoder.digest), len(members) - len(articles)
        names = [doc_id_of(event) if event != NO_EVENT else "" for event in members["event"].tolist()]
        if self._base is None:  # a table of all would hold the vectors and texts of an archive twice
            slices = (slice(start, start + _ROWS) for start in range(0, max(len(articles), 1), _ROWS))
            tables = (table_rows(articles[some], vectors[some], shape, names[some]) for some in slices)
            self._writer.create(shape, itertools.chain.from_iterable(table.to_batches() for table in tables))
            return
        if articles or heirs:
            rows = table_rows(articles, vectors, shape, names[stayed:])
            self._writer.change(rows, map(doc_id_of, heirs))
        event_of = dict(self._before[["doc_id", "event"]].tolist())
        olds = zip(members[["doc_id", "event"]][:stayed].tolist(), names, strict=False)
        self._writer.set_events({doc_id_of(doc): name for (doc, event), name in olds if event_of[doc] != event})

    def _write_state(self, seen: Seen, new: Seen, found: Duplicates, crawl: Mapping[str, bytes]) -> None:
        """Writes what the search for duplicates knows, and the state of the crawls."""
        before, after = found.parents[: len(seen)], found.parents[len(seen) :]
        self._writer.append(SEEN, new.table(len(seen), after))
        if len(changed := np.flatnonzero(before != seen.parents)):
            self._writer.update_rows(SEEN, "row", pa.table({"row": changed, "parent": before[changed]}))
        if crawl:
            contents = pa.array(crawl.values(), pa.large_binary())
            self._writer.overwrite(CRAWL, pa.table({"name": list(crawl), "content": contents}))

    def _settings(self, articles: Sequence[Article]) -> dict[str, Any]:
        choice, known = self._choice, self._base.run.settings["languages"] if self._base else ()
        languages = sorted({*known, *(article.language for article in articles)})
        own = settings_of(self._uri, choice.spec, self._encoder, choice.document_prompt, choice.long_documents)
        return {**own, **self._kept_options, "languages": languages}

    def _report(
        self,
        intake: Intake,
        is_known: npt.NDArray[np.bool_],
        reasons: Mapping[int, str],
        members: Array,
        new: Sequence[Article] | None = None,
        superseded: int = 0,
        merged: int = 0,
    ) -> Report:
        """Counts the records by their outcome."""
        rejected = collections.Counter(intake.rejected) + collections.Counter(map(str, reasons.values()))
        events = set(members["event"].tolist()) - {NO_EVENT}
        report = Report(
            version=self._number + (new is not None),
            published=new is not None,
            started=self._started,
            read=intake.read,
            new=len(new or ()),
            known=int(np.count_nonzero(is_known)),
            rejected=dict(sorted(rejected.items())),
            failed=intake.failed,
            hubs_and_images=intake.hubs_and_images,
            superseded=superseded,
            articles=len(members),
            events=len(events),
            opened=len(events - set(self._before["event"].tolist())),
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
        phase, steps = next(item for item in _PHASES.items() if step in item[1])
        self._progress(phase, steps.index(step) + 1, len(steps), step)

    def _shown(self, articles: Sequence[Article]) -> Iterator[Article]:
        """The articles, each counted when the next one is read."""
        for count, article in enumerate(articles):
            self._progress("vectors", count, len(articles), "")
            yield article
        self._progress("vectors", len(articles), len(articles), "")


def _emptied(lost: Ids, heirs: Sequence[int], events: Ids, doc_ids: Ids) -> list[Merge]:
    """The events whose last article was replaced by one of another event, with which they are merged."""
    merges = list[Merge]()
    for event, heir in zip(lost.tolist(), heirs, strict=True):
        if event != NO_EVENT and not np.any(events == event) and event not in {merge.event for merge in merges}:
            merges.append(Merge(event, int(events[heir]), int(doc_ids[heir])))
    return merges
