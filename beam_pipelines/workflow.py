"""The order of the mining jobs and the inputs of each: from WARC and article files to TFRecords for training."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .emptiness import why_empty
from .jobs import Job, Outcome, execute
from .progress import JobProgress, job_row
from .worker_forks import FORKS


@dataclasses.dataclass(frozen=True)
class Step:
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


STEPS = (
    Step("extract", {"warc": "@warc", "articles": "@articles"}),
    Step("clean", {"articles": "extract", "bad_words": "@bad_words", "history": "@history"}),
    Step("vocabulary", {"articles": "clean"}),
    Step("entities", {"articles": "clean", "knowledge_base": "@knowledge_base"}),
    Step(
        "vectors",
        {
            "articles": "clean",
            "entities": "entities",
            **{name: f"@{name}" for name in ("alias_file", "entity_embeddings", "word_embeddings", "space")},
        },
    ),
    Step(
        "bitext",
        {"articles": "clean", "vectors": "vectors", "encoder": "@bitext_encoder", "known_pairs": "@known_pairs"},
        only_with="bitext_encoder",
    ),
    Step("pack", {"articles": "clean", "vocabulary": "vocabulary", "bitext": "@bitext+bitext"}),
    Step("neighbors", {"vectors": "vectors"}),
    Step("triplets", {"articles": "clean", "neighbors": "neighbors"}),
    Step(
        "topics",
        {
            "articles": "clean",
            "hubs": "extract",
            "entities": "entities",
            **{name: f"@{name}" for name in ("alias_file", "topics_file")},
        },
    ),
    Step(
        "examples",
        {
            "articles": "clean",
            "triplets": "triplets",
            "topics": "topics",
            "vocabulary": "vocabulary",
            "translation_models": "@translation_models",
        },
    ),
)
# Options by job for the data that `gin/runs/*_paper.gin` reads. No values of rho and C of Algorithm 1 are known to us
# (min_fill and capacity): these are our defaults.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "vocabulary": {"size": 500_000, "alpha": 0.7},
        "pack": {"max_length": 512, "min_fill": 0.99, "capacity": 1_000},
        "topics": {"max_topics": 600, "positive_ratio": 0.25},
        "examples": {"max_length": 512, "documents_per_example": 3},
    }
}
_NEEDED = ("extract", "clean")  # without their articles no later job has anything to do
USER_INPUTS = {
    "warc": "WARC files or patterns, as `newsembed crawl` or CC-NEWS writes them",
    "articles": "pre-extracted articles: JSONL (plain, .gz, .zst) or Parquet",
    "bad_words": "files with one word on each line; the clean job rejects articles that contain one",
    "history": "clean folders of earlier builds; the clean job warns of publishers whose yield has dropped since",
    "bitext": "translation pairs: TSV, TMX, or two aligned files joined by a comma (x.de,x.en); "
    "see `newsembed pack --help`",
    "bitext_encoder": "encoder, such as model:DIR, with which the build finds translation pairs in the articles, "
    "for the pack job; see `newsembed bitext --help`",
    "known_pairs": "known translations that determine the least margin, in the formats of --bitext",
    "alias_file": "your own alias table for entity linking: TSV of alias, entity id, prior; with --entity_embeddings",
    "knowledge_base": "names of known entities in many languages: TSV or Parquet of entity id, language, alias and "
    "optionally prior; see `newsembed knowledge --help`",
    "entity_embeddings": "embeddings of its entities: X.npy with keys in X.tsv, or word2vec text",
    "topics_file": "an edited copy of a topics.tsv, which the topics job then follows",
    "translation_models": "folder with a CTranslate2 model into English for each language; "
    "see `newsembed examples --help`",
    "space": "learned=ENCODER, such as learned=model:lifted/model: neighbors and triplets are also found by an encoder "
    "that was trained on the triplets of an earlier build; see `newsembed vectors --help`",
    "word_embeddings": "your own word vectors: X.npy with word and relative frequency in X.tsv",
}


@FORKS.kept()
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
      InputError: from the first job that fails, and where no article is left.
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
            folder, own = f"{output}/{step.job}", _options_of(step.job, options)
            outcome = execute(load_job(step.job), inputs, folder, own, beam_args, progress, progress.say)
        note(step.job, outcome)
        rows.append(job_row(step.job, outcome))
        empty = why_empty(load_job(step.job), outcome.manifest, f"{output}/{step.job}", f"{step.job}.")
        if empty is not None and step.job in _NEEDED:
            raise empty
    return rows


def _options_of(job: str, options: Mapping[str, Any]) -> Any:
    """The options of a job of a build, with what a later job needs of it."""
    given = options.get(job)
    if job == "neighbors" and getattr(options.get("triplets"), "rule", None) == "rarity":
        return dataclasses.replace(load_job(job).options() if given is None else given, rarity=True)
    return given


def load_job(name: str) -> Job:
    """The declaration of a mining job.

    Raises:
      TypeError: if its module does not declare one.
    """
    job = importlib.import_module(f".{name}", __package__).JOB
    if not isinstance(job, Job):
        raise TypeError(f"beam_pipelines.{name}.JOB: got {type(job).__name__}, expected a Job")
    return job
