"""A generated newsroom that is crawled and mined: the data of the demo, and of a study that is given no data."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...beam_pipelines.jobs import execute
from ...beam_pipelines.progress import JobProgress, print_outcomes, print_rows
from ...beam_pipelines.workflow import build, load_job
from ...errors import InputError
from ...formats import files
from ...formats.manifest import manifest_path
from ...newsroom import NewsroomOptions, NewsroomServer, generate_newsroom
from ...newsroom.generate import write_across_languages
from ...newsroom.mldoc import write_mldoc
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
    """The folders of a mined newsroom below its output folder."""

    output: str

    @property
    def diary(self) -> str:
        """The file with the options of the newsroom and the seconds of each step."""
        return f"{self.output}/demo.json"

    @property
    def newsroom(self) -> str:
        """The generated site and the files next to it."""
        return f"{self.output}/newsroom"

    @property
    def seeds(self) -> str:
        """The addresses that a crawl starts from; the last file that the generator writes."""
        return f"{self.newsroom}/seeds.txt"

    @property
    def bitext(self) -> str:
        """The newsroom's translation pairs."""
        return f"{self.newsroom}/bitext.tsv"

    @property
    def crawl(self) -> str:
        """The output of the crawl."""
        return f"{self.output}/crawl"

    @property
    def crawl_manifest(self) -> str:
        """The manifest of the crawl, which exists when the crawl is finished."""
        return manifest_path(self.crawl)

    @property
    def warc(self) -> str:
        """The pattern of the crawl's WARC files."""
        return f"{self.crawl}/warc/*.warc.gz"

    @property
    def work(self) -> str:
        """The work folder of the build."""
        return f"{self.output}/work"


def find_newsroom(named: str, output: str, turnover: float = 0.0, beam_args: Sequence[str] = ()) -> Places:
    """Mines the newsroom in the folder ``named``, which keeps its options, or a new one in the folder of the study.

    Args:
      named: a folder that `newsembed demo` or an earlier study made; "" stands for ``output/newsroom``, where a
        newsroom is made if there is none.
      output: folder of the study.
      turnover: of a new newsroom, see ``NewsroomOptions``.
      beam_args: Beam's own options for the build.

    Raises:
      InputError: if the folder ``named`` holds no newsroom, or a step fails.
    """
    places = Places((named or f"{output}/newsroom").rstrip("/"))
    if named and not os.path.exists(places.diary):
        raise InputError(
            f"no newsroom of a demo or a study: no {os.path.basename(places.diary)} in it"
            if os.path.isdir(named)
            else "no such folder",
            path=named,
            field="--newsroom",
            remedy=f"name a folder that `newsembed demo` made, or give --newsroom without a folder: it makes one in "
            f"{output}/newsroom",
        )
    found = files.read_json(places.diary) if os.path.exists(places.diary) else {}
    options = NewsroomOptions(
        int(found.get("seed", NEWSROOM_SEED)),
        float(found.get("scale", _SCALE)),
        float(found.get("turnover", 0.0) if found else turnover),
    )
    make_newsroom(places, options, beam_args)
    return places


def make_newsroom(places: Places, options: NewsroomOptions, beam_args: Sequence[str] = ()) -> None:
    """Generates, crawls and mines a newsroom; what is finished in the folder is not repeated.

    Raises:
      InputError: if the folder holds another newsroom, or a step fails.
    """
    values = dataclasses.asdict(options)
    open_diary(places, {name: value for name, value in values.items() if name != "turnover" or value})
    print("== generate", flush=True)
    if not os.path.exists(places.seeds):
        generate_newsroom(places.newsroom, options)
    print("== crawl", flush=True)
    if not os.path.exists(places.crawl_manifest):
        _crawl(places)
    print("== build", flush=True)
    _build(places, beam_args)


def write_labelled(places: Places) -> None:
    """Writes the labelled articles of a newsroom's world in MLDoc's layout, unless they are there."""
    folder = f"{places.newsroom}/{LABELLED}"
    if os.path.isdir(folder):
        return
    seed = int(files.read_json(places.diary)["seed"])
    # Under its name it is complete.
    write_mldoc(f"{folder}.new", NewsroomOptions(seed, _LABELLED_SCALE))
    os.replace(f"{folder}.new", folder)


def write_across(places: Places) -> None:
    """Writes the held-out events of a newsroom as every language tells them, unless they are there."""
    path = f"{places.newsroom}/{ACROSS_LANGUAGES}"
    if os.path.exists(path):
        return
    diary = files.read_json(places.diary)
    options = NewsroomOptions(int(diary["seed"]), float(diary["scale"]), float(diary.get("turnover", 0.0)))
    # Under its name it is complete.
    write_across_languages(f"{path}.new", options)
    os.replace(f"{path}.new", path)


def open_diary(places: Places, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the folder's newsroom and the seconds of each finished step, by name; written if there are none.

    Raises:
      InputError: if the folder holds a newsroom with other options.
    """
    new = {**options, "seconds": {}}
    diary: dict[str, Any] = files.read_json(places.diary) if files.exists(places.diary) else new
    found = {name: diary[name] for name in options}
    if found != options:
        raise InputError(
            f"the folder holds a newsroom with {found}, expected {dict(options)}",
            path=places.output,
            field="--output",
            remedy="name another folder",
        )
    files.write_json(places.diary, diary)
    return diary


def _crawl(places: Places) -> None:
    job = load_job("crawl")
    with NewsroomServer(places.newsroom) as server, JobProgress(job.name) as progress:
        options = job.options(**CRAWL_OPTIONS, resolve=(f"*.example=127.0.0.1:{server.port}",))
        outcome = execute(job, {"seeds": (places.seeds,)}, places.crawl, options, (), progress, progress.say)
    print_outcomes([(job.name, outcome)])


def _build(places: Places, beam_args: Sequence[str]) -> None:
    options = {job: load_job(job).options(**values) for job, values in BUILD_OPTIONS.items()}
    rows = build({"warc": (places.warc,), "bitext": (places.bitext,)}, places.work, options, beam_args)
    print_rows(rows)
    write_report(places.work, rows)
