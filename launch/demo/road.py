"""The demo's steps in order: each a command, when it counts as done, and what must run around it."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...beam_pipelines.jobs import MANIFEST, read_seconds
from ...evaluation.suites import RESULTS_FILE
from ...formats import files
from ...serving.index import INDEX_FILE
from ..build import STEPS

# Small enough for two cores and eight minutes; every other option is the job's default.
_BUILD_OPTIONS = (
    "--vocabulary.size=6000",
    "--pack.max_length=128",
    "--examples.max_length=96",
    "--examples.augmentations_per_triplet=2",
)
QUERIES = ("flood river evacuation", "election mayor vote", "striker goal cup final")


@dataclasses.dataclass(frozen=True)
class Places:
    """Folders of the demo below its output folder."""

    output: str

    @property
    def diary(self) -> str:
        return f"{self.output}/demo.json"

    @property
    def newsroom(self) -> str:
        return f"{self.output}/newsroom"

    @property
    def crawl(self) -> str:
        return f"{self.output}/crawl"

    @property
    def work(self) -> str:
        return f"{self.output}/work"

    @property
    def pretrained(self) -> str:
        return f"{self.work}/pretrained"

    @property
    def trained(self) -> str:
        return f"{self.work}/trained"

    @property
    def evaluation(self) -> str:
        return f"{self.output}/evaluation"

    @property
    def saved_model(self) -> str:
        return f"{self.output}/saved_model"

    @property
    def index(self) -> str:
        return f"{self.output}/index"


@contextlib.contextmanager
def _alone() -> Iterator[Sequence[str]]:
    yield ()


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the demo.

    Attributes:
      command: arguments of ``newsembed``.
      result: the file that this step writes last; empty if its command skips finished work by itself.
      source: what the result is made from; the step is finished while the result is newer.
      around: a context that yields further arguments, such as the port of a server that runs meanwhile.
    """

    name: str
    command: Sequence[str]
    result: str = ""
    source: str = ""
    around: Callable[[], contextlib.AbstractContextManager[Sequence[str]]] = _alone

    def is_finished(self) -> bool:
        """Whether there is nothing to do."""
        if not self.result or not os.path.exists(self.result):
            return False
        return not self.source or os.path.getmtime(self.result) >= os.path.getmtime(self.source)


def steps(places: Places, seed: int, scale: float, turnover: float = 0.0) -> list[Step]:
    """All steps in order."""
    weights = f"{places.trained}/checkpoints"
    return [
        Step(
            "generate",
            [
                "newsroom",
                "--output",
                places.newsroom,
                f"--seed={seed}",
                f"--scale={scale}",
                *([f"--turnover={turnover}"] if turnover else []),
            ],
            f"{places.newsroom}/seeds.txt",
        ),
        Step("crawl", _crawl(places), f"{places.crawl}/{MANIFEST}", around=lambda: _serving(places.newsroom)),
        Step("build", _build(places)),
        Step("pretrain", _train(places, "runs/pretrain_demo.gin", places.pretrained, f"{places.work}/pack")),
        Step(
            "train",
            [
                *_train(places, "runs/train_demo.gin", places.trained, f"{places.work}/examples"),
                _gin("INITIAL_CHECKPOINT_PATH", places.pretrained),
            ],
        ),
        Step("evaluate", _evaluate(places), f"{places.evaluation}/{RESULTS_FILE}", weights),
        Step(
            "export",
            ["export", "--model", places.trained, "--output", places.saved_model],
            f"{places.saved_model}/saved_model.pb",
            weights,
        ),
        Step(
            "index",
            [
                "index",
                "--saved_model",
                places.saved_model,
                "--input",
                f"{places.work}/clean/articles",
                "--output",
                places.index,
            ],
            f"{places.index}/{INDEX_FILE}",
            f"{places.saved_model}/saved_model.pb",
        ),
        *(
            Step(f"search {number}", ["search", "--index", places.index, "--count=5", query])
            for number, query in enumerate(QUERIES, 1)
        ),
    ]


def job_rows(places: Places) -> list[dict[str, Any]]:
    """Numbers of the crawl and of every job of the build, from their manifests, with the seconds of the run that did the work."""
    rows = []
    for name, folder in [("crawl", places.crawl), *((step.job, f"{places.work}/{step.job}") for step in STEPS)]:
        counts, seconds = files.read_json(f"{folder}/{MANIFEST}")["counts"], read_seconds(folder)
        rows.append(
            {
                "job": name,
                **counts,
                "seconds": seconds,
                "documents_per_second": round(counts["in"] / seconds, 1) if seconds else None,
                "skipped": False,
            }
        )
    return rows


@contextlib.contextmanager
def _serving(newsroom: str) -> Iterator[Sequence[str]]:
    """Serves the newsroom while it is crawled; its fictional hosts resolve to the server's port."""
    from ...newsroom.server import NewsroomServer

    with NewsroomServer(newsroom) as server:
        yield [f"--resolve=*.example=127.0.0.1:{server.port}"]


def _crawl(places: Places) -> list[str]:
    return [
        "crawl",
        "--seeds",
        f"{places.newsroom}/seeds.txt",
        "--output",
        places.crawl,
        "--delay_seconds=0",
        "--backoff_seconds=0.1",
        "--allow_private_addresses=true",
    ]


def _build(places: Places) -> list[str]:
    inputs = ["--warc", f"{places.crawl}/warc/*.warc.gz", "--bitext", f"{places.newsroom}/bitext.tsv"]
    return ["build", *inputs, "--output", places.work, *_BUILD_OPTIONS]


def _gin(name: str, value: str) -> str:
    return f'--gin.{name}="{value}"'


def _train(places: Places, gin_file: str, model_dir: str, data_dir: str) -> list[str]:
    vocabulary = f"{places.work}/vocabulary/vocab.txt"
    return [
        "train",
        f"--gin_file={gin_file}",
        _gin("MODEL_DIR", model_dir),
        _gin("DATA_DIR", data_dir),
        _gin("VOCABULARY_PATH", vocabulary),
    ]


def _evaluate(places: Places) -> list[str]:
    specs = [
        "tfidf=tfidf",
        f"random=random:{places.trained}",
        f"pretrained=model:{places.pretrained}",
        f"trained=model:{places.trained}",
    ]
    encoders = [part for spec in specs for part in ("--encoder", spec)]
    suites = [
        ("events", "heldout.jsonl"),
        ("events", "paraphrases.jsonl"),
        ("clustering", "heldout.jsonl"),
        ("sts", "sts.tsv"),
    ]
    chosen = [part for suite, name in suites for part in ("--suite", suite, "--data", f"{places.newsroom}/{name}")]
    return ["evaluate", *encoders, *chosen, "--cross_publisher", "--seeds=3", "--output", places.evaluation]
