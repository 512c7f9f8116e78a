"""The order of the mining jobs and the inputs of each: from WARC and article files to TFRecords for training."""

import datetime
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..errors import InputError, counted
from ..formats.parquet import read_batches, shard_paths
from .jobs import Job, Outcome, execute
from .progress import JobProgress, job_row, why_empty
from .triplets.rules import TripletsOptions
from .workers import end_fork_server


class Step(NamedTuple):
    """A job of the build.

    Attributes:
      job: its name.
      inputs: the source of each of its inputs: an earlier job, "@name" for an input of the user, or both with "+".
      only_with: an input of the user without which the build leaves the job out.
    """

    job: str
    inputs: Mapping[str, str]
    only_with: str = ""

    def sources(self) -> frozenset[str]:
        """The sources of all inputs: earlier jobs, and "@name" for inputs of the user."""
        return frozenset(part for source in self.inputs.values() for part in source.split("+"))

    def is_wanted(self, given: Mapping[str, Sequence[str]]) -> bool:
        """Whether the build runs the job, given the user's inputs."""
        return not self.only_with or bool(given.get(self.only_with))


def _step(job: str, only_with: str = "", **sources: str) -> Step:
    """A step whose inputs named "=" come from the job of their name, and those named "@" from the user's of theirs."""
    inputs = {name: {"=": name, "@": f"@{name}"}.get(source, source) for name, source in sources.items()}
    return Step(job, inputs, only_with)


STEPS = (
    _step("extract", warc="@", articles="@"),
    _step("clean", articles="extract", bad_words="@"),
    _step("vocabulary", articles="clean"),
    _step("entities", articles="clean", knowledge_base="@"),
    _step("vectors", articles="clean", entities="=", alias_file="@", entity_embeddings="@"),
    _step("bitext", "bitext_encoder", articles="clean", vectors="=", encoder="@bitext_encoder", known_pairs="@"),
    _step("pack", articles="clean", vocabulary="=", bitext="@bitext+bitext"),
    _step("neighbors", vectors="="),
    _step("triplets", articles="clean", neighbors="="),
    _step("topics", articles="clean", hubs="extract", entities="=", alias_file="@", topics_file="@"),
    _step("examples", articles="clean", triplets="=", topics="=", vocabulary="=", translation_models="@"),
)
# Options by job for the data that `gin/runs/*_paper.gin` reads. No values of rho and C of Algorithm 1 are known to us
# (min_fill and capacity): these are our defaults.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "clean": {"require_author": True},
        "vocabulary": {"size": 500_000, "alpha": 0.7},
        "pack": {"max_length": 512, "min_fill": 0.99, "capacity": 1_000},
        "topics": {"max_topics": 600, "positive_ratio": 0.25},
        "examples": {"max_length": 512, "documents_per_example": 3},
    }
}
_LEAST_SPAN: Final = 60  # days of an archive of which triplets of a shorter time are worth a try
USER_INPUTS = {
    "warc": "WARC files or patterns, as `newsembed crawl` or CC-NEWS writes them",
    "articles": "pre-extracted articles: JSONL (plain, .gz, .zst) or Parquet",
    "bad_words": "files with one word on each line; the clean job rejects articles that contain one",
    "bitext": "translation pairs: TSV, TMX, or two aligned files (x.de,x.en); see `newsembed pack --help`",
    "bitext_encoder": "encoder, such as model:DIR, that finds translation pairs; see `newsembed bitext --help`",
    "known_pairs": "known translations that determine the least margin, in the formats of --bitext",
    "alias_file": "your own alias table for entity linking: TSV of alias, entity id, prior; with --entity_embeddings",
    "knowledge_base": "names of known entities in many languages: TSV or Parquet; see `newsembed knowledge --help`",
    "entity_embeddings": "embeddings of its entities: X.npy with keys in X.tsv, or word2vec text",
    "topics_file": "an edited copy of a topics.tsv, which the topics job then follows",
    "translation_models": "a CTranslate2 model into English for each language; see `newsembed examples --help`",
}


def build(
    given: Mapping[str, Sequence[str]],
    output: str,
    options: Mapping[str, Any],
    beam_args: Sequence[str] = (),
    note: Callable[[str, Outcome], None] = lambda _n, _o: None,
    reused: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Runs every step of the build.

    Args:
      given: the user's inputs by name, see :data:`USER_INPUTS`.
      output: work folder; each job publishes in a folder of its name.
      options: options dataclasses by job; a job without one gets its defaults.
      beam_args: Beam's own options.
      note: called with the name and the outcome of each job when it finishes.
      reused: folders of jobs that have run elsewhere; they are read instead of running these jobs.

    Returns:
      One row of numbers for each job that belongs to this build, see :func:`~.progress.job_row`.

    Raises:
      InputError: from the first job that fails, where no article is left, and before the long jobs where neither
        triplets nor topics can come out.
    """
    rows = []
    folders = {step.job: f"{output}/{step.job}" for step in STEPS} | dict(reused or {})
    left_out = {step.job for step in STEPS if not step.is_wanted(given) and step.job not in (reused or {})}
    for step in (step for step in STEPS if step.job not in {*left_out, *(reused or {})}):
        inputs = {
            name: tuple(
                path
                for part in source.split("+")
                for path in (given.get(part[1:], ()) if part.startswith("@") else (folders[part],))
                if part not in left_out
            )
            for name, source in step.inputs.items()
        }
        with JobProgress(step.job) as progress:
            folder, job = f"{output}/{step.job}", load_job(step.job)
            outcome = execute(job, inputs, folder, options.get(step.job), beam_args, progress)
        note(step.job, outcome)
        rows.append(job_row(step.job, outcome))
        is_needed = step.job in ("extract", "clean")  # without the articles of these no later job has anything to do
        if is_needed and (empty := why_empty(job, inputs, outcome.manifest, folder, f"{step.job}.")):
            raise empty
        if step.job == "clean":
            print(foresee(folders["clean"], folders["extract"], options.get("triplets"), given), file=sys.stderr)
    end_fork_server()  # a study or the demo goes on in this process
    return rows


def foresee(clean: str, extract: str, triplets: TripletsOptions | None, given: Mapping[str, Sequence[str]]) -> str:
    """What can be mined of the articles that ``clean`` has kept, in one line.

    Args:
      clean: folder of that job.
      extract: folder of that job, with the hubs.
      triplets: options of the job ``triplets``.
      given: the user's inputs by name.

    Raises:
      InputError: if there can be neither triplets nor topics.
    """
    options = triplets or TripletsOptions()
    count, authors, publishers, days = 0, 0, set[str](), list[datetime.date]()
    for path in shard_paths(f"{clean}/articles"):
        for batch in read_batches(path, ["publisher", "byline_date", "authors"]):
            count += batch.num_rows
            publishers.update(batch.column("publisher").unique().to_pylist())
            authors += sum(map(bool, batch.column("authors").to_pylist()))
            days += [day for day in batch.column("byline_date").unique().to_pylist() if day]
    hubs = any(batch.num_rows for path in shard_paths(f"{extract}/hubs") for batch in read_batches(path, ["hub_id"]))
    span = (max(days) - min(days)).days if days else 0
    has_publishers = len(publishers) > 1 or not options.cross_publisher
    has_triplets = has_publishers and span >= options.min_negative_days
    has_topics = hubs or given.get("topics_file")
    dated = f"of {min(days)} to {max(days)} ({counted(span, 'day')})" if days else "without dates"
    found = f"{counted(count, 'article')} {dated}, {counted(len(publishers), 'publisher')}, {authors:,} with authors"
    if has_triplets or has_topics:
        lacking = "" if has_triplets else "; there will be no triplets"
        lacking += "" if has_topics else "; there will be no topics, which need hubs"
        return f"note: {found}{lacking}"
    needed = f"{options.min_negative_days} days apart" if has_publishers else "of several publishers"
    remedy = f"give articles {needed}, or with `feeds`"
    if has_publishers and span >= _LEAST_SPAN:
        remedy += f"; or mine triplets of a shorter time: --triplets.min_negative_days={span // 2}"
    remedy += "; search, events and the page need no mining: `newsembed update --archive archive --articles FILES`"
    raise InputError(f"{found}: triplets need articles {needed}, and topics need hubs", path=clean, remedy=remedy)


def load_job(name: str) -> Job:
    """The declaration of a mining job."""
    return importlib.import_module(f".{name}", __package__).JOB
