"""The whole pipeline on a generated newsroom: crawl, mine, pretrain, train, evaluate, export, search.

Every step is a separate command and is printed before it runs. The next run skips the steps that are finished.

example:
  newsembed demo --output demo-output
"""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ...beam_pipelines.jobs import Outcome
from ...beam_pipelines.progress import job_row
from ...beam_pipelines.workflow import STEPS
from ...errors import InputError, raise_if_stopped
from ...evaluation.suites import RESULTS_FILE
from ...formats import files
from ...formats.command_line import Options, option
from ...formats.digests import SUMS
from ...formats.manifest import read_manifest, read_seconds
from ...formats.model_folder import graph_file
from ...newsroom import NewsroomServer
from ...studies.report import write_report
from ...studies.shared import newsroom
from .. import cli

# Searches that end the demo, and the newsroom's topic that each asks for.
QUERIES = {
    "flood river evacuation": "floods",
    "election mayor vote": "elections",
    "striker goal cup final": "football",
}
_TRAIN: Final = (
    'train --gin_file=runs/{run}_demo.gin --gin.MODEL_DIR="{model}" --gin.DATA_DIR="{data}" '
    '--gin.VOCABULARY_PATH="{at.work}/vocabulary/vocab.txt"'
)
_EVALUATE: Final = (
    "evaluate --encoder tfidf=tfidf --encoder random=random:{at.trained} --encoder pretrained=model:{at.pretrained} "
    "--encoder trained=model:{at.trained} --suite events --data {at.newsroom}/heldout.jsonl "
    "--suite events --data {at.newsroom}/paraphrases.jsonl --suite clustering --data {at.newsroom}/heldout.jsonl "
    "--suite sts --data {at.newsroom}/sts.tsv --cross_publisher --seeds=3 --output {at.evaluation}"
)
_INDEX: Final = "index --model {at.trained} --input {at.work}/clean/articles --output {at.index} --overwrite"


@dataclasses.dataclass(frozen=True)
class Places(newsroom.Places):
    """The folders of the demo: the mined newsroom's, and those of the models, benchmarks, export and index."""

    pretrained = property(lambda self: f"{self.work}/pretrained")
    trained = property(lambda self: f"{self.work}/trained")
    evaluation = property(lambda self: f"{self.output}/evaluation")
    saved_model = property(lambda self: f"{self.output}/saved_model")
    index = property(lambda self: f"{self.output}/index")


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
    around: Callable[[], contextlib.AbstractContextManager[Sequence[str] | None]] = contextlib.nullcontext

    def is_finished(self) -> bool:
        """Whether there is nothing to do."""
        if not self.result or not os.path.exists(self.result):
            return False
        return not self.source or os.path.getmtime(self.result) >= os.path.getmtime(self.source)


def steps(places: Places, seed: int, scale: float) -> list[Step]:
    """All steps in order."""

    def words(text: str, **values: Any) -> list[str]:
        return [word.format(at=places, **values) for word in text.split()]  # paths may have spaces

    crawl = words("crawl --seeds {at.seeds} --output {at.crawl}")
    crawl += [f"--{name}={str(value).lower()}" for name, value in newsroom.CRAWL_OPTIONS.items()]
    build = words("build --warc {at.warc} --bitext {at.bitext} --output {at.work}")
    for job, values in newsroom.BUILD_OPTIONS.items():
        build += [f"--{job}.{name}={value}" for name, value in values.items()]
    pretrain = words(_TRAIN, run="pretrain", model=places.pretrained, data=f"{places.work}/pack")
    train = words(_TRAIN, run="train", model=places.trained, data=f"{places.work}/examples")
    train += words('--gin.INITIAL_CHECKPOINT_PATH="{at.pretrained}"')
    weights, saved_model = f"{places.trained}/checkpoints", graph_file(places.saved_model)
    generate = words("newsroom --output {at.newsroom} --seed={seed} --scale={scale}", seed=seed, scale=scale)
    return [
        Step("generate", generate, places.seeds),
        Step("crawl", crawl, places.crawl_manifest, around=lambda: _serving(places.newsroom)),
        Step("build", build),
        Step("pretrain", pretrain),
        Step("train", train),
        Step("evaluate", words(_EVALUATE), f"{places.evaluation}/{RESULTS_FILE}", weights),
        Step("export", words("export --model {at.trained} --output {at.saved_model}"), saved_model, weights),
        Step("index", words(_INDEX), f"{places.index}/{SUMS}", weights),
        *(
            Step(f"search {number}", [*words("search --index {at.index} --count=5"), query])
            for number, query in enumerate(QUERIES, 1)
        ),
    ]


def job_rows(places: Places) -> list[dict[str, Any]]:
    """The numbers of the crawl and of every job of the build, from their manifests and timings."""
    folders = {"crawl": places.crawl}
    folders |= {step.job: f"{places.work}/{step.job}" for step in STEPS if not step.only_with}
    return [
        job_row(name, Outcome(read_manifest(folder), skipped=False, seconds=read_seconds(folder)))
        for name, folder in folders.items()
    ]


@contextlib.contextmanager
def _serving(folder: str) -> Iterator[Sequence[str]]:
    """Serves the newsroom while it is crawled; its fictional hosts resolve to the server's port."""
    with NewsroomServer(folder) as server:
        yield [f"--resolve=*.example=127.0.0.1:{server.port}"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """Options of ``newsembed demo``."""

    output: str = option("demo-output", "folder for everything that the demo makes", metavar="DIR", local=True)
    seed: int = option(newsroom.NEWSROOM_SEED, "seed of the newsroom")
    scale: float = option(1.0, "size of the newsroom; 1 is about 2,500 articles, which the checks are made for", gt=0)


OPTIONS = DemoOptions


def run(options: DemoOptions) -> int:
    """Runs the demo; returns 0 if every step runs and every check is met, 1 if a check is missed."""
    from . import checks

    places = Places(options.output.rstrip("/"))
    diary = newsroom.open_diary(places, {"seed": options.seed, "scale": options.scale})
    for step in steps(places, options.seed, options.scale):
        seconds = run_step(step)
        if seconds is not None:
            diary["seconds"][step.name] = max(seconds, diary["seconds"].get(step.name, 0.0))
            files.write_json(places.diary, diary)
    sections: dict[str, Any] = checks.score(places)
    sections["seconds"] = {**diary["seconds"], "in all": round(sum(diary["seconds"].values()), 1)}
    write_report(places.work, job_rows(places), sections)
    checks.show(sections["checks"])
    is_met = all(check["met"] for check in sections["checks"])
    if options.scale < 1 and not is_met:
        print(f"The checks are made for --scale 1: with {options.scale:g} there is less to learn from.")
    print(f"\nnumbers: {places.work}/report.json   plots and samples: {places.work}/report.html")
    print(f'search more: newsembed search --index {places.index} "words"')
    print(f"serve: newsembed serve --model {places.trained} --index {places.index}")
    return 0 if is_met else 1


def run_step(step: Step) -> float | None:
    """Runs a step unless it is finished; returns its seconds, or None if it was finished.

    Raises:
      InputError: if it fails.
      KeyboardInterrupt: if Ctrl-C or SIGTERM stopped it.
    """
    if step.is_finished():
        print(f"\n== {step.name}: already finished, skipped")
        return None
    started = time.monotonic()
    with step.around() as extra:
        command = [*step.command, *(extra or ())]
        print(f"\n== {step.name}\n$ newsembed {' '.join(command)}", flush=True)
        code = cli.main(command)
    raise_if_stopped(code)
    if code:
        remedy = "see the message above; run the demo again to resume it"
        raise InputError(f"the step ended with exit code {code}", field=step.name, remedy=remedy)
    return round(time.monotonic() - started, 1)
