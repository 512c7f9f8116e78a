"""The first steps of an update, in its work folder: crawl, extract, rules. Each is a job that resumes.

The rules are the first phase of ``newsembed clean``: those that need no other article. What they let pass is compared
with the archive in :mod:`.duplicates`.
"""

import collections
import dataclasses
import glob
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..beam_pipelines.clean import clean_articles, with_latest_date
from ..beam_pipelines.clean.rules import CleanOptions
from ..beam_pipelines.crawl import JOB as CRAWL_JOB
from ..beam_pipelines.extract import JOB as EXTRACT
from ..beam_pipelines.jobs import InputSpec, Job, JobRun, execute, input_digest, resolve_inputs
from ..beam_pipelines.progress import examples_of, remarks
from ..beam_pipelines.shards import Counts, Shard
from ..errors import InputError
from ..formats import files
from ..formats.archive import CRAWL, Archive
from ..formats.folders import read_json, written
from ..formats.manifest import has_manifest, read_manifest
from ..formats.parquet import read_records, read_stream
from ..formats.records import Article, DeadLetter, Rejection
from .duplicates import Seen, Signature, signature
from .options import Sources, UpdateOptions

_ONE_PROCESS_BYTES: Final = 20_000_000  # starting others takes longer than reading this
_ONE_PROCESS: Final = "--direct_num_workers=1"
_ARTICLES, _SIGNATURES = "articles", "signatures"


@dataclasses.dataclass(frozen=True)
class Intake:
    """What a run has read.

    Attributes:
      articles: those that passed the rules, in the order of the input.
      seen: their signatures.
      read: number of records other than hubs and images.
      hubs_and_images: number of those.
      rejected: number of rejected records by reason.
      failed: number of records that could not be read, by reason.
      dead_letters: one for each of both, and for each URL that the crawls did not fetch, except those without a change.
      notes: what the user should know of the article files.
      crawl: counts of the crawls, one after another.
      crawl_state: folder of the crawl's state; "" if nothing was crawled.
    """

    articles: list[Article]
    seen: Seen
    read: int = 0
    hubs_and_images: int = 0
    rejected: Mapping[str, int] = dataclasses.field(default_factory=dict)
    failed: Mapping[str, int] = dataclasses.field(default_factory=dict)
    dead_letters: Sequence[DeadLetter] = ()
    notes: Sequence[str] = ()
    crawl: Sequence[Mapping[str, Any]] = ()
    crawl_state: str = ""


def gather(
    work: str,
    base: Archive | None,
    sources: Sources,
    options: UpdateOptions,
    beam_args: Sequence[str],
    reached: Callable[[str], None],
) -> Intake:
    """Crawls what changed, extracts, and applies the rules.

    A crawl that an earlier run had finished before it was cut off is read, too: its pages will not be sent again.

    Args:
      work: folder of the run.
      base: the current version; None before the first.
      sources: what to read.
      options: of the jobs.
      beam_args: Beam's own options.
      reached: called with the name of each step when it is done.
    """
    os.makedirs(work, exist_ok=True)
    crawls = _crawl(work, base, sources, options, beam_args)
    reached("crawl")
    warc = [path for folder in crawls for path in sorted(glob.glob(f"{glob.escape(folder)}/warc/*.warc.gz"))]
    inputs = {"warc": [*warc, *sources.warc], "articles": list(sources.articles)}
    if not any(inputs.values()):
        return Intake([], Seen.of([], options.clean))
    args = [*beam_args, *_workers(beam_args, inputs)]
    extracted = execute(EXTRACT, inputs, f"{work}/extract", options.extract, args)
    reached("extract")
    given = {"articles": [f"{work}/extract"], "bad_words": sources.bad_words}
    checked = execute(RULES, given, f"{work}/rules", options.clean, args)
    reached("rules")
    before, after = (Counts.from_json(done.manifest["counts"]) for done in (extracted, checked))
    others = before.written - after.read
    letters = [*_letters(f"{work}/extract"), *_letters(f"{work}/rules")]
    letters += [one for folder in crawls for one in _letters(folder) if one.reason != Rejection.NOT_MODIFIED]
    return Intake(
        list(read_stream(f"{work}/rules/{_ARTICLES}", Article)),
        Seen.of(read_stream(f"{work}/rules/{_SIGNATURES}", Signature), options.clean),
        before.read - others,
        others,
        dict(collections.Counter(before.rejected) + collections.Counter(after.rejected)),
        dict(collections.Counter(before.failed) + collections.Counter(after.failed)),
        letters,
        [*remarks(EXTRACT.name, before.tallies), *map("".join, examples_of(f"{work}/extract").items())],
        [read_manifest(folder)["counts"] for folder in crawls],
        f"{work}/state-{len(crawls) - 1:03d}" if crawls else "",
    )


def _letters(folder: str) -> Iterator[DeadLetter]:
    for path in files.list_files("dead_letters/**", folder):
        yield from read_records(path, DeadLetter)


def check_sources(sources: Sources) -> None:
    """Refuses sources that are not there, before anything is loaded."""
    if not (sources.feeds or sources.warc or sources.articles):
        remedy = "give feeds to crawl, WARC files or article files"
        raise InputError("no input", field="--feeds, --warc, --articles", remedy=remedy)
    if sources.feeds and not os.path.isfile(sources.feeds):
        remedy = "give a file with one URL on each line"
        raise InputError("no such file", path=sources.feeds, field="--feeds", remedy=remedy)
    found = resolve_inputs(EXTRACT, {"warc": sources.warc, "articles": sources.articles})
    for name, paths in found.items():
        for path in paths:
            if "://" not in path and not path.startswith("@") and not os.path.isfile(path):
                raise InputError("no such file", path=path, field=f"--{name}", remedy="check the path")


def _crawl(
    work: str, base: Archive | None, sources: Sources, options: UpdateOptions, beam_args: Sequence[str]
) -> list[str]:
    """Crawls, if feeds are given; returns the folders of all crawls that no version has yet, oldest first."""
    done = [path for path in sorted(glob.glob(f"{glob.escape(work)}/crawl-???")) if has_manifest(path)]
    if not sources.feeds:
        return done
    number = len(done)
    folder, state, plan_path = f"{work}/crawl-{number:03d}", f"{work}/state-{number:03d}", f"{work}/crawl.json"
    plan = {"feeds": input_digest(sources.feeds), "options": str(options.crawl)}
    if read_json(plan_path) != plan:  # the crawl that was cut off is not the one to resume
        files.delete([folder, state])
        files.write_json(plan_path, plan)
    if not os.path.isdir(state):
        with written(state) as target:
            if number:
                shutil.copytree(f"{work}/state-{number - 1:03d}", target, dirs_exist_ok=True)
            for name, content in () if number else crawl_state(base).items():
                files.write_whole(f"{target}/{name}", content)
    execute(CRAWL_JOB, {"seeds": [sources.feeds]}, folder, dataclasses.replace(options.crawl, state=state), beam_args)
    return [*done, folder]


def crawl_state(archive: Archive | None) -> dict[str, bytes]:
    """The files of the state of an archive's crawls, by name."""
    rows = archive.whole(CRAWL) if archive else None
    return {} if rows is None else {row["name"]: row["content"] for row in rows.to_pylist()}


def _workers(beam_args: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """The option that keeps a small input in this process."""
    if any(argument.startswith(("--direct_num_workers", "--runner")) for argument in beam_args):
        return []
    paths = [path for found in resolve_inputs(EXTRACT, inputs).values() for path in found]
    is_small = all(map(os.path.isfile, paths)) and sum(map(os.path.getsize, paths)) <= _ONE_PROCESS_BYTES
    return [_ONE_PROCESS] if is_small else []


def _run_rules(job: JobRun) -> None:
    """Applies the rules to each shard. Streams: ``articles``, and ``signatures`` in the same order."""
    facts: dict[str, Any] = {"options": with_latest_date(job.options), "bad_words": job.inputs["bad_words"]}
    job.map_shards("rules", _apply_rules, job.shards("articles"), **facts)


def _apply_rules(shard: Shard, path: str, options: CleanOptions, bad_words: Sequence[str]) -> None:
    kept, signatures = shard.records(_ARTICLES, Article), shard.records(_SIGNATURES, Signature)
    for article in clean_articles(shard, path, options, bad_words):
        kept.write(article)
        signatures.write(signature(article, options))


RULES: Final = Job(
    name="rules",
    example="newsembed update --archive archive --encoder savedmodel:saved_model --articles today.jsonl",
    inputs=(
        InputSpec("articles", "folder that `newsembed extract` wrote"),
        InputSpec("bad_words", "files with one word per line", required=False, many=True),
    ),
    options=CleanOptions,
    run=_run_rules,
)
