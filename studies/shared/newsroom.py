"""A generated newsroom that is crawled and mined: the data of the demo, and of a study that is given no data."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...beam_pipelines.jobs import execute
from ...beam_pipelines.progress import JobProgress, print_outcome, print_rows
from ...beam_pipelines.workflow import build, load_job
from ...errors import InputError
from ...formats import files
from ...formats.manifest import manifest_path
from ...newsroom import NewsroomOptions, NewsroomServer, generate_newsroom
from ...newsroom.evaluation_sets import write_mldoc
from ...newsroom.generate import write_across_languages
from ..report import write_report

# Options that differ from the job's default.
CRAWL_OPTIONS: Final[Mapping[str, Any]] = {
    "delay_seconds": 0.0,
    "backoff_seconds": 0.1,
    "allow_private_addresses": True,
}
# Small enough for two cores and eight minutes.
BUILD_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "vocabulary": {"size": 6000},
    "pack": {"max_length": 128},
    "examples": {"max_length": 96, "augmentations_per_triplet": 2},
}
NEWSROOM_SEED: Final = 7
_SCALE: Final = 0.5
LABELLED: Final = "mldoc"  # folder of the labelled articles below the newsroom
ACROSS_LANGUAGES: Final = "across-languages.jsonl"  # held-out events that every language tells, below the newsroom
_LABELLED_SCALE: Final = 0.1  # of MLDoc's numbers: a classifier for each language, fold and model takes seconds


@dataclasses.dataclass(frozen=True)
class Places:
    """The files and folders of a mined newsroom below its output folder."""

    output: str

    diary = property(lambda self: f"{self.output}/demo.json")  # options of the newsroom, and the seconds of each step
    newsroom = property(lambda self: f"{self.output}/newsroom")
    seeds = property(lambda self: f"{self.newsroom}/seeds.txt")  # the last file that the generator writes
    bitext = property(lambda self: f"{self.newsroom}/bitext.tsv")
    crawl = property(lambda self: f"{self.output}/crawl")
    crawl_manifest = property(lambda self: manifest_path(self.crawl))
    warc = property(lambda self: f"{self.crawl}/warc/*.warc.gz")
    work = property(lambda self: f"{self.output}/work")


def find_newsroom(named: str, output: str, turnover: float = 0.0, beam_args: Sequence[str] = ()) -> Places:
    """Mines the newsroom in the folder ``named``, which keeps its options, or a new one in the folder of the study.

    Args:
      named: a folder that `newsembed demo` or an earlier study made; "" stands for ``output/newsroom``, where a
        newsroom is made if there is none.
      output: folder of the study.
      turnover: of a new newsroom, see ``NewsroomOptions``.
      beam_args: Beam's own options for the build.
    """
    own = f"{output}/newsroom"
    places = Places((named or own).rstrip("/"))
    is_there = os.path.exists(places.diary)
    if named and not is_there:
        problem = f"no newsroom of a demo or a study: no {os.path.basename(places.diary)} in it"
        problem = problem if os.path.isdir(named) else "no such folder"
        remedy = f"name a folder that `newsembed demo` made, or give --newsroom without a folder: it makes one in {own}"
        raise InputError(problem, path=named, field="--newsroom", remedy=remedy)
    make_newsroom(places, _options(files.read_json(places.diary) if is_there else {"turnover": turnover}), beam_args)
    return places


def _options(diary: Mapping[str, Any]) -> NewsroomOptions:
    seed, scale = int(diary.get("seed", NEWSROOM_SEED)), float(diary.get("scale", _SCALE))
    return NewsroomOptions(seed, scale, float(diary.get("turnover", 0.0)))


def make_newsroom(places: Places, options: NewsroomOptions, beam_args: Sequence[str] = ()) -> None:
    """Generates, crawls and mines a newsroom; what is finished in the folder is not repeated."""
    values = dataclasses.asdict(options)
    open_diary(places, {name: value for name, value in values.items() if name != "turnover" or value})
    print("== generate", flush=True)
    if not os.path.exists(places.seeds):
        generate_newsroom(places.newsroom, options)
    print("== crawl", flush=True)
    if not os.path.exists(places.crawl_manifest):
        job = load_job("crawl")
        with NewsroomServer(places.newsroom) as server, JobProgress(job.name) as progress:
            options_of_crawl = job.options(**CRAWL_OPTIONS, resolve=(f"*.example=127.0.0.1:{server.port}",))
            outcome = execute(job, {"seeds": (places.seeds,)}, places.crawl, options_of_crawl, (), progress)
        print_outcome(job.name, outcome)
    print("== build", flush=True)
    changed = {name: load_job(name).options(**own) for name, own in BUILD_OPTIONS.items()}
    rows = build({"warc": (places.warc,), "bitext": (places.bitext,)}, places.work, changed, beam_args)
    print_rows(rows)
    write_report(places.work, rows)


def write_set(places: Places, name: str) -> None:
    """Writes a set of held-out texts that the generator leaves out, below the newsroom; nothing if it is there."""
    path = f"{places.newsroom}/{name}"
    if name not in (LABELLED, ACROSS_LANGUAGES) or os.path.exists(path):
        return
    options = _options(files.read_json(places.diary))
    if name == LABELLED:
        write_mldoc(f"{path}.new", NewsroomOptions(options.seed, _LABELLED_SCALE))
    else:
        write_across_languages(f"{path}.new", options)
    os.replace(f"{path}.new", path)  # under its name it is complete


def open_diary(places: Places, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the folder's newsroom and the seconds of each finished step; written if there are none."""
    diary = {**options, "seconds": {}}
    if files.exists(places.diary):
        diary = files.read_json(places.diary)
    found = {name: diary[name] for name in options}
    if found != options:
        problem = f"the folder holds a newsroom with {found}, expected {dict(options)}"
        raise InputError(problem, path=places.output, field="--output", remedy="name another folder")
    files.write_json(places.diary, diary)
    return diary
