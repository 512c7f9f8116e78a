"""The first steps of an update, in the archive's work folder: crawl, extract, rules. Each is a job that resumes."""

import dataclasses
import glob
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..beam_pipelines.accounting import Counts
from ..beam_pipelines.crawl import JOB as CRAWL
from ..beam_pipelines.extract import JOB as EXTRACT
from ..beam_pipelines.jobs import execute, input_digest, resolve_inputs
from ..beam_pipelines.progress import remarks
from ..errors import InputError
from ..formats import files
from ..formats.archive import CRAWL_STATE, copy_folder, read_json, work_folder, write_json
from ..formats.arrays import Array
from ..formats.manifest import has_manifest
from ..formats.parquet import read_records, read_stream
from ..formats.records import Article, DeadLetter
from . import rules
from .options import Sources, UpdateOptions
from .signatures import SKETCH_TYPE, signature_type

_ONE_PROCESS_BYTES: Final = 20_000_000  # starting others takes longer than reading this
_FAILED: Final = "failed"
_ONE_PROCESS: Final = "--direct_num_workers=1"


@dataclasses.dataclass(frozen=True)
class Intake:
    """What a run has read.

    Attributes:
      articles: those that passed the rules, in the order of the input.
      signatures: ``[n]``, see :mod:`.signatures`.
      sketches: theirs, one after another.
      read: number of records other than hubs and images.
      hubs_and_images: number of those.
      rejected: number of rejected records by reason.
      failed: number of records that could not be read, by reason.
      dead_letters: one for each of both, and for each URL that the crawls could not fetch.
      notes: what the user should know of the article files.
      crawl: counts of the crawls, one after another.
      crawl_state: folder of the crawl's state; "" if nothing was crawled.
    """

    articles: list[Article]
    signatures: Array
    sketches: Array
    read: int = 0
    hubs_and_images: int = 0
    rejected: Mapping[str, int] = dataclasses.field(default_factory=dict)
    failed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    dead_letters: Sequence[DeadLetter] = ()
    notes: Sequence[str] = ()
    crawl: Sequence[Mapping[str, Any]] = ()
    crawl_state: str = ""


def gather(
    archive: str,
    base: str,
    sources: Sources,
    options: UpdateOptions,
    beam_args: Sequence[str],
    reached: Callable[[str], None],
) -> Intake:
    """Crawls what changed, extracts, and applies the rules.

    A crawl that an earlier run had finished before it was cut off is read, too: its pages will not be sent again.

    Args:
      archive: its folder.
      base: folder of the current version; "" before the first.
      sources: what to read.
      options: of the jobs.
      beam_args: Beam's own options.
      reached: called with the name of each step when it is done.

    Raises:
      InputError: from a job.
    """
    work = work_folder(archive)
    os.makedirs(work, exist_ok=True)
    crawls = _crawl(work, base, sources, options, beam_args)
    reached("crawl")
    warc = [*(path for folder in crawls for path in sorted(glob.glob(f"{glob.escape(folder)}/warc/*.warc.gz")))]
    inputs = {"warc": [*warc, *sources.warc], "articles": list(sources.articles)}
    if not any(inputs.values()):
        return Intake([], np.zeros(0, signature_type(options.clean)), np.zeros(0, SKETCH_TYPE))
    args = [*beam_args, *_workers(beam_args, inputs)]
    extracted = execute(EXTRACT, inputs, f"{work}/extract", options.extract, args)
    reached("extract")
    checked = execute(
        rules.JOB,
        {"articles": [f"{work}/extract"], "bad_words": sources.bad_words},
        f"{work}/rules",
        options.clean,
        args,
    )
    reached("rules")
    return _read(work, options, Counts.from_json(extracted.manifest["counts"]), checked.manifest["counts"], crawls)


def check_sources(sources: Sources) -> None:
    """Refuses sources that are not there, before anything is loaded.

    Raises:
      InputError: if nothing is given, or a path does not exist.
    """
    if not sources.feeds and not sources.warc and not sources.articles:
        raise InputError(
            "no input", field="--feeds, --warc, --articles", remedy="give feeds to crawl, WARC files or article files"
        )
    if sources.feeds and not os.path.isfile(sources.feeds):
        raise InputError(
            "no such file", path=sources.feeds, field="--feeds", remedy="give a file with one URL on each line"
        )
    found = resolve_inputs(EXTRACT, {"warc": sources.warc, "articles": sources.articles})
    for name, paths in found.items():
        for path in paths:
            if "://" not in path and not path.startswith("@") and not os.path.isfile(path):
                raise InputError("no such file", path=path, field=f"--{name}", remedy="check the path")


def crawl_folders(work: str) -> list[str]:
    """The folders of finished crawls, oldest first."""
    return [path for path in sorted(glob.glob(f"{glob.escape(work)}/crawl-???")) if has_manifest(path)]


def _crawl(work: str, base: str, sources: Sources, options: UpdateOptions, beam_args: Sequence[str]) -> list[str]:
    """Crawls, if feeds are given; returns the folders of all crawls that no version has yet."""
    done = crawl_folders(work)
    if not sources.feeds:
        return done
    number = len(done)
    folder, state, plan_path = f"{work}/crawl-{number:03d}", f"{work}/state-{number:03d}", f"{work}/crawl.json"
    plan = {"feeds": input_digest(sources.feeds), "options": str(options.crawl)}
    if read_json(plan_path) != plan:  # the crawl that was cut off is not the one to resume
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(state, ignore_errors=True)
        write_json(plan_path, plan)
    if not os.path.isdir(state):
        copy_folder(f"{work}/state-{number - 1:03d}" if number else os.path.join(base, CRAWL_STATE), state)
    execute(CRAWL, {"seeds": [sources.feeds]}, folder, dataclasses.replace(options.crawl, state=state), beam_args)
    return [*done, folder]


def _workers(beam_args: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """The option that keeps a small input in this process."""
    if any(argument.startswith(("--direct_num_workers", "--runner")) for argument in beam_args):
        return []
    paths = [path for found in resolve_inputs(EXTRACT, inputs).values() for path in found]
    is_small = all(map(os.path.isfile, paths)) and sum(map(os.path.getsize, paths)) <= _ONE_PROCESS_BYTES
    return [_ONE_PROCESS] if is_small else []


def _read(
    work: str, options: UpdateOptions, extracted: Counts, checked: Mapping[str, Any], crawls: Sequence[str]
) -> Intake:
    from ..formats.manifest import read_manifest

    kept = Counts.from_json(checked)
    others = extracted.written - kept.read
    signatures = [np.load(path) for path in files.list_files(f"{work}/rules/{rules.SIGNATURES}/part-*.npy")]
    sketches = [np.load(path) for path in files.list_files(f"{work}/rules/{rules.SKETCHES}/part-*.npy")]
    letters = [
        letter
        for job in ("extract", "rules")
        for path in files.list_files(f"{work}/{job}/dead_letters/**")
        for letter in read_records(path, DeadLetter)
    ]
    letters += [
        letter
        for folder in crawls
        for path in files.list_files(f"{folder}/dead_letters/**")
        for letter in read_records(path, DeadLetter)
        if letter.outcome == _FAILED  # the others are mostly those that did not change
    ]
    return Intake(
        list(read_stream(f"{work}/rules/{rules.ARTICLES}", Article)),
        np.concatenate([np.zeros(0, signature_type(options.clean)), *signatures]),
        np.concatenate([np.zeros(0, SKETCH_TYPE), *sketches]),
        extracted.read - others,
        others,
        {**_sum(extracted.rejected, kept.rejected)},
        {**_sum(extracted.failed, kept.failed)},
        letters,
        list(remarks(EXTRACT.name, extracted.tallies)),
        [read_manifest(folder)["counts"] for folder in crawls],
        f"{work}/state-{len(crawls) - 1:03d}" if crawls else "",
    )


def _sum(one: Mapping[str, int], two: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + two.get(name, 0) for name in sorted({*one, *two})}
