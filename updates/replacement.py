"""After a training on the archive: a new version with the vectors of the new model, or a record that it is worse.

Either way ``trainings/NUMBER/`` gets the model and its evaluation, and ``decision.json`` last. Until the new version is
published, readers see the version before; the same command resumes a run that was cut off.
"""

import datetime
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tqdm import tqdm

from ..errors import InputError
from ..formats.archive import Archive, read_runs, schema, vector_column
from ..formats.archive_writer import Writer
from ..formats.articles import ArticleText
from ..formats.files import delete, write_json
from ..formats.folders import (
    MODEL,
    TRIAL,
    decision_file,
    empty,
    trained_model,
    training_folder,
    training_work,
    trainings,
)
from ..serving.interface import TextEncoder
from ..serving.specs import settings_of
from .duplicates import record_digest
from .options import EncoderChoice, encoder_values
from .run import KEEP_VERSIONS, TEXTS, vectors_by_record, work_folder

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
        if writer.base is None:
            raise InputError("the archive has no version", path=archive, remedy="run newsembed update")
        if writer.base.settings.get("training") == choice.training:  # a run before has published it
            number = writer.base.number
        else:
            number = _write_version(writer, encoder, choice, trial, reached)
    keep_decision(archive, choice.training, {**trial, "version": number}, reached)
    return number


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
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    write_json(decision_file(archive, number), {"training": number, "decided": now, **decision})
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
    archive, before = writer.uri, Archive(writer.uri)
    settings = before.run.settings
    if os.path.isdir(work_folder(archive)):
        problem = "an update was cut off, and what it has crawled belongs to the current encoder"
        raise InputError(problem, path=archive, field="--archive", remedy="run the update again first")
    if settings["encoder_digest"] != trial["serving"]:
        problem = "the archive has had another encoder since the training was evaluated"
        remedy = f"delete {training_work(archive)}, and train again"
        raise InputError(problem, path=archive, field="--train", remedy=remedy)
    known = _embedded(before, encoder)
    _move_model(archive, choice.training)
    reached("move")
    shape = schema(encoder.dimensions, encoder.digest)

    def with_vectors(batch: pa.RecordBatch) -> pa.RecordBatch:
        vectors = np.array([known[record_digest(article)] for article in _articles([batch])], np.float32)
        columns = {name: batch.column(name) for name in shape.names if name != "vector"}
        return pa.RecordBatch.from_pydict({**columns, "vector": vector_column(vectors)}, schema=shape)

    writer.create(shape, map(with_vectors, before.batches()))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    report = {"version": before.run.number + 1, "started": now, "articles": len(before), "training": choice.training}
    own = settings_of(archive, choice.spec, encoder, choice.document_prompt, choice.long_documents)
    own |= encoder_values(choice, encoder.digest) | {"encoder_first": choice.first or settings["encoder"]}
    run = writer.finish({**settings, **own}, report, keep=KEEP_VERSIONS)
    reached("write")
    writer.publish(run)
    reached("publish")
    return run.number


def _embedded(archive: Archive, encoder: TextEncoder) -> dict[int, npt.NDArray[np.float32]]:
    """Vectors of all articles; a run that was cut off has left some of them."""
    articles = tqdm(_articles(archive.batches(TEXTS)), total=len(archive), desc="embed", unit=" articles", disable=None)
    return vectors_by_record(encoder, articles, os.path.join(training_work(archive.uri), "vectors"))


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
