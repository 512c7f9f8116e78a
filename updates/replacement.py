"""Another encoder for an archive: of a training on it, whose events stay, or any other, whose events are found anew.

After a training ``trainings/NUMBER/`` gets the model and its evaluation, and ``decision.json`` last, also where the
model is worse and does not replace the one before. Until the new version is published, readers see the version before;
the same command resumes a run that was cut off.
"""

import dataclasses
import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..beam_pipelines.arrays import doc_id_of
from ..errors import InputError
from ..formats.archive import Archive, EventMerge, read_runs, schema, vector_column
from ..formats.archive_writer import Writer
from ..formats.articles import ArticleText
from ..formats.bars import bar
from ..formats.files import delete, write_json
from ..formats.folders import (
    MODEL,
    TRIAL,
    decision_file,
    empty,
    locked,
    now,
    trained_model,
    training_folder,
    training_work,
    trainings,
)
from ..serving.events import NO_EVENT, EventOptions, Vectors, assign, inherited
from ..serving.interface import TextEncoder
from ..serving.specs import settings_of
from .duplicates import record_digest
from .options import EncoderChoice, encoder_values
from .run import KEEP_VERSIONS, TEXTS, members_of, vectors_by_record, work_folder

REPLACEMENT_STEPS: Final = ("embed", "move", "write", "publish", "record", "tidy")


def replace_encoder(
    archive: str,
    encoder: TextEncoder,
    choice: EncoderChoice,
    trial: Mapping[str, Any],
    reached: Callable[[str], None] = lambda _: None,
) -> int:
    """Embeds all articles by a new encoder and publishes them as a new version; events and their ids stay.

    Args:
      archive: its folder.
      encoder: of the training.
      choice: how it is named, with the number of its training.
      trial: what the encoder was accepted for, JSON values.
      reached: called with the name of each step, see :data:`REPLACEMENT_STEPS`, when it is done.

    Returns:
      The number of the version.

    Raises:
      InputError: if another run works on the archive, it is damaged, or it has had another encoder since the trial.
    """
    if read_runs(archive):  # most of the work is done while other runs may use the archive
        _embedded(Archive(archive), encoder)
    reached("embed")
    with Writer(archive, "--archive") as writer:
        if writer.base and writer.base.settings.get("training") == choice.training:  # a run before has published it
            number = writer.base.number
        else:
            number = _write_version(writer, encoder, choice, trial, reached)
    keep_decision(archive, choice.training, {**trial, "version": number}, reached)
    return number


def change_encoder(archive: str, encoder: TextEncoder, choice: EncoderChoice) -> int:
    """Embeds all articles by another encoder, finds their events anew, and publishes both as a new version.

    Events keep the ids of those before as far as they have articles in common, see `inherited`. The search has the
    default ranking.

    Args:
      archive: its folder.
      encoder: the other one; where it is that of the archive, nothing is done.
      choice: how it is named.

    Returns:
      The number of the version.

    Raises:
      InputError: if another run works on the archive or was cut off, it is damaged, or it is on an object store.
    """
    if "://" in archive:
        problem, remedy = "is not a local archive", "change the encoder of a local copy"
        raise InputError(problem, path=archive, field="--replace_encoder", remedy=remedy)
    runs = read_runs(archive)
    if not runs:
        raise _no_version(archive)
    if runs[-1].settings["encoder_digest"] == encoder.digest:
        return runs[-1].number
    with locked(training_work(archive), "--replace_encoder"):  # a training has its work there, too
        _embedded(Archive(archive), encoder)  # most of the work is done while other runs may use the archive
        with Writer(archive, "--archive") as writer:
            before, started = _version_before(writer), now()
            known = _embedded(before, encoder)
            event_of, merges = _events_anew(before, known, [merge for one in writer.runs for merge in one.merges])
            report = {"version": before.run.number + 1, "started": started, "articles": len(before)}
            values = {**_written(writer, before, encoder, choice, known, event_of), "ranking": None}
            run = writer.finish(values, report, merges, KEEP_VERSIONS)
            writer.publish(run)
        empty(training_work(archive))
    return run.number


def embedded_so_far(archive: str) -> int:
    """How many articles the run of `change_encoder` in progress has embedded, or one that was cut off."""
    names = glob.glob(f"{glob.escape(_vectors_folder(archive))}/*.npz")
    return sum(int(name.removesuffix(".npz").rpartition("-")[2]) for name in names)


def keep_decision(
    archive: str, number: int, decision: Mapping[str, Any], reached: Callable[[str], None] = lambda _: None
) -> None:
    """Keeps a model with its evaluation, accepted or not, and removes what the training no longer needs.

    Models of earlier trainings are deleted, but for those of the versions that are kept.
    """
    _move_model(archive, number)
    evidence, target = os.path.join(training_work(archive), TRIAL), training_folder(archive, number)
    if os.path.isdir(evidence):
        delete([os.path.join(target, TRIAL)])
        os.replace(evidence, os.path.join(target, TRIAL))
    write_json(decision_file(archive, number), {"training": number, "decided": now(), **decision})
    reached("record")
    _tidy(archive, number)
    reached("tidy")


def _write_version(
    writer: Writer,
    encoder: TextEncoder,
    choice: EncoderChoice,
    trial: Mapping[str, Any],
    reached: Callable[[str], None],
) -> int:
    archive, before = writer.uri, _version_before(writer)
    settings = before.run.settings
    if settings["encoder_digest"] != trial["serving"]:
        problem = "the archive has had another encoder since the training was evaluated"
        remedy = f"delete {training_work(archive)}, and train again"
        raise InputError(problem, path=archive, field="--train", remedy=remedy)
    known = _embedded(before, encoder)
    _move_model(archive, choice.training)
    reached("move")
    report = {"version": before.run.number + 1, "started": now(), "articles": len(before), "training": choice.training}
    values = _written(writer, before, encoder, choice, known)
    values["encoder_first"] = choice.first or settings["encoder"]
    run = writer.finish(values, report, keep=KEEP_VERSIONS)
    reached("write")
    writer.publish(run)
    reached("publish")
    return run.number


def _no_version(archive: str) -> InputError:
    return InputError("the archive has no version", path=archive, remedy="run newsembed update")


def _version_before(writer: Writer) -> Archive:
    if writer.base is None:
        raise _no_version(writer.uri)
    if os.path.isdir(work_folder(writer.uri)):
        problem = "an update was cut off, and what it has crawled belongs to the current encoder"
        raise InputError(problem, path=writer.uri, field="--archive", remedy="run the update again first")
    return Archive(writer.uri)


def _events_anew(
    archive: Archive, known: Mapping[int, Vectors], ended: Sequence[EventMerge]
) -> tuple[dict[int, str], list[EventMerge]]:
    """The events of all articles by other vectors, by doc_id, and those before that were merged with them."""
    members = members_of(archive)
    records = {int(one.doc_id, 16): record_digest(one) for one in _articles(archive.batches(TEXTS))}
    doc_ids, languages = members["doc_id"], members["language"].astype(str).tolist()
    vectors = np.array([known[records[doc_id]] for doc_id in doc_ids.tolist()], np.float32)
    nothing = np.full(len(members), NO_EVENT, np.uint64)
    options = EventOptions(**archive.run.settings["events"])
    found, _ = assign(doc_ids, members["day"], nothing, languages, lambda rows: vectors[rows], options)
    events, merges = inherited(members["event"], found, doc_ids, [int(merge.event_id, 16) for merge in ended])
    names = [doc_id_of(event) if event != NO_EVENT else "" for event in events.tolist()]
    joined = [EventMerge(*map(doc_id_of, dataclasses.astuple(merge))) for merge in merges]
    return dict(zip(doc_ids.tolist(), names, strict=True)), joined


def _written(
    writer: Writer,
    before: Archive,
    encoder: TextEncoder,
    choice: EncoderChoice,
    known: Mapping[int, Vectors],
    event_of: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """Writes the articles with other vectors, by record, and other events, by doc_id; returns the settings."""
    shape = schema(encoder.dimensions, encoder.digest)

    def changed(batch: pa.RecordBatch) -> pa.RecordBatch:
        vectors = np.array([known[record_digest(article)] for article in _articles([batch])], np.float32)
        columns = {**{name: batch.column(name) for name in batch.schema.names}, "vector": vector_column(vectors)}
        if event_of is not None:
            events = [event_of[int(doc_id, 16)] for doc_id in batch.column("doc_id").to_pylist()]
            columns["event_id"] = pa.array(events, shape.field("event_id").type)
        return pa.RecordBatch.from_pydict({name: columns[name] for name in shape.names}, schema=shape)

    writer.create(shape, map(changed, before.batches()))
    own = settings_of(writer.uri, choice.spec, encoder, choice.document_prompt, choice.long_documents)
    return {**before.run.settings, **own, **encoder_values(choice, encoder.digest)}


def _embedded(archive: Archive, encoder: TextEncoder) -> dict[int, Vectors]:
    """Vectors of all articles; a run that was cut off has left some of them."""
    articles = bar(len(archive), "article", over=_articles(archive.batches(TEXTS)))
    return vectors_by_record(encoder, articles, _vectors_folder(archive.uri))


def _vectors_folder(archive: str) -> str:
    return os.path.join(training_work(archive), "vectors")


def _articles(batches: Any) -> Iterator[ArticleText]:
    return (ArticleText(**row) for batch in batches for row in batch.select(TEXTS).to_pylist())


def _move_model(archive: str, number: int) -> None:
    """Moves the model of a training to its lasting place, unless it is there."""
    source, target = os.path.join(training_work(archive), MODEL), trained_model(archive, number)
    if os.path.isdir(source):
        delete([target])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(source, target)


def _tidy(archive: str, number: int) -> None:
    """Deletes the work of a training, and models that no version and no last decision has."""
    kept = read_runs(archive)[-KEEP_VERSIONS:]
    used = {number, *(int(run.settings.get("training", 0)) for run in kept)}
    delete(trained_model(archive, old) for old in trainings(archive) if old not in used)
    empty(training_work(archive))
