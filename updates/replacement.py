"""After a training on the archive: a new version with the vectors of the new model, or a record that it is worse.

Either way ``trainings/NUMBER/`` gets the model and its evaluation, and ``decision.json`` last. Until the pointer names
the new version, readers see the version before; the same command resumes a run that was cut off.
"""

import contextlib
import datetime
import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from ..beam_pipelines.output_lock import locked
from ..errors import InputError
from ..formats.archive import (
    CRAWL_STATE,
    MODEL,
    TRIAL,
    VersionWriter,
    decision_file,
    publish,
    read_json,
    read_pointer,
    read_version,
    remove_other_versions,
    trained_model,
    training_folder,
    training_work,
    trainings,
    version_folder,
    work_folder,
    write_json,
)
from ..formats.archive_parts import (
    ARTICLES,
    PARENTS,
    SIGNATURES,
    SKETCHES,
    VECTORS,
    part_paths,
    read_array_part,
    write_array,
)
from ..formats.arrays import DAMAGE, read_arrays, write_arrays
from ..formats.manifest import manifest_path
from ..formats.parquet import read_records
from ..formats.records import Article
from ..serving.interface import TextEncoder
from .indexing import unit_vectors, write_index
from .options import EncoderChoice, encoder_values
from .signatures import record_digest

_CHUNK: Final = 2_048  # articles that are embedded at a time, and lost if a run is cut off
_CARRIED: Final = (ARTICLES, SIGNATURES, SKETCHES, PARENTS, "events", CRAWL_STATE)
_EMBEDDED: Final = "vectors"
REPLACEMENT_STEPS: Final = ("embed", "move", "write", "publish", "record", "tidy")
Known = dict[int, npt.NDArray[np.float32]]


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
      RuntimeError: if an article has no vector.
    """
    cache = os.path.join(training_work(archive), _EMBEDDED)
    pointer = read_pointer(archive)
    if pointer is not None:  # most of the work is done while other runs may use the archive
        _embed_missing(version_folder(archive, pointer.version), encoder, cache)
    reached("embed")
    with locked(archive, "--archive"):
        number = _published(archive, choice.training)
        if number is None:
            _check_ready(archive)
            number = _write_version(archive, encoder, choice, trial, reached)
    keep_decision(archive, choice.training, {**trial, "version": number}, reached)
    return number


def keep_decision(
    archive: str, number: int, decision: Mapping[str, Any], reached: Callable[[str], None] = lambda _: None
) -> None:
    """Keeps a model with its evaluation, accepted or not, and removes what the training no longer needs.

    Models of earlier trainings are deleted, but for those of this version of the archive and the one before.
    """
    _move_model(archive, number)
    evidence, target = os.path.join(training_work(archive), TRIAL), training_folder(archive, number)
    if os.path.isdir(evidence):
        shutil.rmtree(os.path.join(target, TRIAL), ignore_errors=True)
        os.replace(evidence, os.path.join(target, TRIAL))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    write_json(decision_file(archive, number), {"training": number, "decided": now, **decision})
    reached("record")
    _tidy(archive, number)
    reached("tidy")


def _published(archive: str, training: int) -> int | None:
    """The version that a run before has published with the model of a training; None if there is none."""
    pointer = read_pointer(archive)
    if pointer is None or read_version(archive, pointer)["options"].get("training") != training:
        return None
    return pointer.version


def _check_ready(archive: str) -> None:
    if os.path.isdir(work_folder(archive)):
        problem = "an update was cut off, and what it has crawled belongs to the current encoder"
        raise InputError(problem, path=archive, field="--archive", remedy="run the update again first")


def _write_version(
    archive: str,
    encoder: TextEncoder,
    choice: EncoderChoice,
    trial: Mapping[str, Any],
    reached: Callable[[str], None],
) -> int:
    pointer = read_pointer(archive)
    if pointer is None:
        raise InputError("the archive has no version", path=archive, remedy="run newsembed update")
    options = read_version(archive, pointer)["options"]
    if options["encoder_digest"] != trial["serving"]:
        problem = "the archive has had another encoder since the training was evaluated"
        remedy = f"delete {training_work(archive)}, and train again"
        raise InputError(problem, path=archive, field="--train", remedy=remedy)
    known = _embed_missing(
        version_folder(archive, pointer.version), encoder, os.path.join(training_work(archive), _EMBEDDED)
    )
    _move_model(archive, choice.training)
    reached("move")
    writer = VersionWriter(archive, pointer.version + 1, pointer.version)
    for name in _CARRIED:
        writer.carry(name)
    articles = _write_vectors(writer, encoder.dimensions, known)
    write_index(writer, encoder, choice)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    report = {"version": writer.number, "started": now, "articles": articles, "training": choice.training}
    writer.add_history(report)
    values = encoder_values(choice, encoder.digest) | {"encoder_first": choice.first or options["encoder"]}
    writer.finish({**options, **values}, report)
    reached("write")
    publish(archive, writer.number)
    remove_other_versions(archive, {writer.number, writer.number - 1})
    reached("publish")
    return writer.number


def _write_vectors(writer: VersionWriter, dimensions: int, known: Known) -> int:
    """Writes a part of vectors for each part of articles; returns the number of articles.

    Raises:
      RuntimeError: if the parts of the version before were not in one order.
    """
    total = 0
    for path in part_paths(writer.base, ARTICLES):
        name = f"{VECTORS}/{os.path.basename(path).replace('.parquet', '.npy')}"
        rows = [known[record_digest(article)] for article in read_records(path, Article)]
        before = os.path.join(writer.base, name)
        if not os.path.exists(before) or len(read_array_part(before)) != len(rows):
            raise RuntimeError(f"{before}: no vectors in the order of {path}")
        write_array(writer.path(name), np.array(rows, np.float32).reshape(-1, dimensions))
        total += len(rows)
    return total


def _embed_missing(version: str, encoder: TextEncoder, cache: str) -> Known:
    """Vectors of all articles of a version by :func:`~.signatures.record_digest`; the new ones go to the cache, too."""
    known = _cached(cache, encoder.digest)
    total = sum(1 for _ in _articles(version))
    with tqdm(total=total, desc="embed", unit=" articles", disable=None) as bar:
        articles = _articles(version)
        while chunk := list(itertools.islice(articles, _CHUNK)):
            bar.update(len(chunk))
            new = {record_digest(article): article for article in chunk}
            new = {digest: article for digest, article in new.items() if digest not in known}
            if not new:
                continue
            vectors = unit_vectors(encoder, list(new.values()))
            records = np.array(list(new), np.uint64)
            os.makedirs(cache, exist_ok=True)
            path = os.path.join(cache, f"{records.min():016x}-{len(records)}.npz")
            write_arrays(path, {"encoder": np.array(encoder.digest), "records": records, "vectors": vectors})
            known.update(zip(new, vectors, strict=True))
    return known


def _cached(cache: str, digest: str) -> Known:
    known: Known = {}
    for name in sorted(os.listdir(cache)) if os.path.isdir(cache) else []:
        with contextlib.suppress(InputError, *DAMAGE):  # of a run that was cut off
            found = read_arrays(os.path.join(cache, name))
            if str(found["encoder"]) == digest:
                known.update(zip(found["records"].tolist(), found["vectors"], strict=True))
    return known


def _articles(version: str) -> Any:
    return itertools.chain.from_iterable(read_records(path, Article) for path in part_paths(version, ARTICLES))


def _move_model(archive: str, number: int) -> None:
    """Moves the model of a training to its lasting place, unless it is there."""
    source, target = os.path.join(training_work(archive), MODEL), trained_model(archive, number)
    if os.path.isdir(source):
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(source, target)


def _tidy(archive: str, number: int) -> None:
    """Deletes the work of a training, and models that no version and no last decision has."""
    pointer = read_pointer(archive)
    current = pointer.version if pointer else 0
    used = {number}
    for version in (current, current - 1):
        options = (read_json(manifest_path(version_folder(archive, version))) or {}).get("options", {})
        used.add(int(options.get("training", 0)))
    for old in trainings(archive):
        if old not in used:
            shutil.rmtree(trained_model(archive, old), ignore_errors=True)
    shutil.rmtree(training_work(archive), ignore_errors=True)
