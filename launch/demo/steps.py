"""The steps of the demo in order: the command of each, when it counts as finished, and what must run meanwhile."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...beam_pipelines.workflow import STEPS
from ...evaluation.suites import RESULTS_FILE
from ...formats.index import facts_file
from ...formats.manifest import read_manifest, read_seconds
from ...formats.saved_model import graph_file
from ...formats.vocabulary import VOCABULARY_FILE
from ...newsroom import NewsroomServer
from ...studies.shared import newsroom

# Searches that end the demo, and the newsroom's topic that each asks for.
QUERIES = {
    "flood river evacuation": "floods",
    "election mayor vote": "elections",
    "striker goal cup final": "football",
}


@dataclasses.dataclass(frozen=True)
class Places(newsroom.Places):
    """The folders of the demo: the mined newsroom's, and those of the models."""

    @property
    def pretrained(self) -> str:
        """The model folder of pretraining."""
        return f"{self.work}/pretrained"

    @property
    def trained(self) -> str:
        """The model folder of weak supervision."""
        return f"{self.work}/trained"

    @property
    def evaluation(self) -> str:
        """The results of the benchmarks."""
        return f"{self.output}/evaluation"

    @property
    def saved_model(self) -> str:
        """The exported model."""
        return f"{self.output}/saved_model"

    @property
    def index(self) -> str:
        """The search index over the clean articles."""
        return f"{self.output}/index"


@contextlib.contextmanager
def _nothing() -> Iterator[Sequence[str]]:
    yield ()


@dataclasses.dataclass(frozen=True)
class Step:
    """One step of the demo.

    Attributes:
      command: arguments of ``newsembed``.
      result: the last file that this step writes; "" if its command skips finished work by itself.
      source: an input of the step, which is finished while the result is newer; "" if the result may have any age.
      around: makes a context that yields further arguments, such as the port of a server that runs meanwhile.
    """

    name: str
    command: Sequence[str]
    result: str = ""
    source: str = ""
    around: Callable[[], contextlib.AbstractContextManager[Sequence[str]]] = _nothing

    def is_finished(self) -> bool:
        """Whether there is nothing to do."""
        if not self.result or not os.path.exists(self.result):
            return False
        return not self.source or os.path.getmtime(self.result) >= os.path.getmtime(self.source)


def steps(places: Places, seed: int, scale: float) -> list[Step]:
    """All steps in order."""
    work, weights = places.work, f"{places.trained}/checkpoints"
    saved_model, clean = graph_file(places.saved_model), f"{work}/clean/articles"
    generate = ["newsroom", "--output", places.newsroom, f"--seed={seed}", f"--scale={scale}"]
    pretrain = _train(places, "runs/pretrain_demo.gin", places.pretrained, f"{work}/pack")
    train = _train(places, "runs/train_demo.gin", places.trained, f"{work}/examples")
    export = ["export", "--model", places.trained, "--output", places.saved_model]
    index = ["index", "--saved_model", places.saved_model, "--input", clean, "--output", places.index, "--overwrite"]
    return [
        Step("generate", generate, places.seeds),
        Step("crawl", _crawl(places), places.crawl_manifest, around=lambda: _serving(places.newsroom)),
        Step("build", _build(places)),
        Step("pretrain", pretrain),
        Step("train", [*train, _gin("INITIAL_CHECKPOINT_PATH", places.pretrained)]),
        Step("evaluate", _evaluate(places), f"{places.evaluation}/{RESULTS_FILE}", weights),
        Step("export", export, saved_model, weights),
        Step("index", index, facts_file(places.index), saved_model),
        *(
            Step(f"search {number}", ["search", "--index", places.index, "--count=5", query])
            for number, query in enumerate(QUERIES, 1)
        ),
    ]


def job_rows(places: Places) -> list[dict[str, Any]]:
    """The numbers of the crawl and of every job of the build, from their manifests and timings."""
    rows = []
    for name, folder in [
        ("crawl", places.crawl),
        *((step.job, f"{places.work}/{step.job}") for step in STEPS if not step.only_with),
    ]:
        counts, seconds = read_manifest(folder)["counts"], read_seconds(folder)
        rate = round(counts["in"] / seconds, 1) if seconds else None
        rows.append({"job": name, **counts, "seconds": seconds, "documents_per_second": rate, "skipped": False})
    return rows


@contextlib.contextmanager
def _serving(folder: str) -> Iterator[Sequence[str]]:
    """Serves the newsroom while it is crawled; its fictional hosts resolve to the server's port."""
    with NewsroomServer(folder) as server:
        yield [f"--resolve=*.example=127.0.0.1:{server.port}"]


def _option(name: str, value: Any) -> str:
    """The argument that sets an option of a job."""
    return f"--{name}={str(value).lower() if isinstance(value, bool) else value}"


def _crawl(places: Places) -> list[str]:
    options = [_option(name, value) for name, value in newsroom.CRAWL_OPTIONS.items()]
    return ["crawl", "--seeds", places.seeds, "--output", places.crawl, *options]


def _build(places: Places) -> list[str]:
    changes = newsroom.BUILD_OPTIONS.items()
    options = [_option(f"{job}.{name}", value) for job, values in changes for name, value in values.items()]
    return ["build", "--warc", places.warc, "--bitext", places.bitext, "--output", places.work, *options]


def _gin(name: str, value: str) -> str:
    return f'--gin.{name}="{value}"'


def _train(places: Places, gin_file: str, model_dir: str, data_dir: str) -> list[str]:
    vocabulary = f"{places.work}/vocabulary/{VOCABULARY_FILE}"
    values = {"MODEL_DIR": model_dir, "DATA_DIR": data_dir, "VOCABULARY_PATH": vocabulary}
    return ["train", f"--gin_file={gin_file}", *(_gin(name, value) for name, value in values.items())]


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
