r"""Fine-tunes models on XTREME's supervised tasks: trained on English, tested on all languages (Tables 2 and 9).

The encoder, of any architecture with layers, and a head are trained together, for sentence pairs (xnli, pawsx), words
(udpos, panx) or answers (xquad, mlqa, tydiqa; xquad and mlqa share one training, on SQuAD). --data is the folder that
XTREME's scripts/download_data.sh makes. Epochs, batch size, learning rate and lengths are those of its scripts for
base models (train_xnli.sh and so on). Pairs and words take the checkpoint that is best on the English dev part.

Several models are compared in one table, such as one before and one after weak supervision. A public model is
imported first, by newsembed import-hf. XTREME's test files have no labels: predictions are written as its evaluate.py
reads them, below OUTPUT/NAME/predictions, and --labels names its folder of labels. Scores are in results.json and .md;
`newsembed tables newsembed-2 newsembed-9 --finetuned OUTPUT` shows them beside the paper's.

The same command continues where it stopped.

example:
  newsembed finetune --task xnli panx --model before=pretrained after=trained --data download --output finetuned
  newsembed finetune --task mlqa --model minilm=minilm --data download --output finetuned --epochs 0.1 --batch_size 8
"""

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...errors import InputError, counted
from ...evaluation.xtreme import TASKS, XtremeTask, languages_of, read_part
from ...formats.command_line import Options, option, required, several
from ...formats.folders import locked
from ...formats.manifest import DataSet, read_example_counts, write_manifest
from ...formats.model_folder import ModelFolder
from ...formats.tfrecords import TFRecordShardWriter
from ..shared.runs import run_command
from ..shared.steps import Command, claim, once, train_model
from .results import best_step, results_of, write_predictions
from .rows import TASK_OF_HEAD, RowMaker

if TYPE_CHECKING:
    from ...evaluation.benchmark import Results

_RUN_FILE: Final = "runs/finetune.gin"
_PLACES: Final = ("task", "model", "data", "output", "labels")  # options that change no training


@dataclasses.dataclass(frozen=True)
class Training:
    """The hyper-parameters of a training, in XTREME's scripts for models of BERT-base's size.

    Attributes:
      epochs: passes over the training part.
      length: tokens of a row.
      period: steps between two looks at the dev part.
      learning_rate: at its peak, from which it falls linearly to 0.
      warmup_steps: until the peak.
      weight_decay: of AdamW.
      batch_size: rows of a step: `per_gpu_train_batch_size` times `gradient_accumulation_steps`.
    """

    epochs: float
    length: int
    period: int
    learning_rate: float = 2e-5
    warmup_steps: int = 0
    weight_decay: float = 0.0
    batch_size: int = 32


_QUESTIONS: Final = Training(3, 384, 1_000, 3e-5, warmup_steps=500, weight_decay=1e-4)
TRAININGS: Final[Mapping[str, Training]] = {
    "xnli": Training(5, 128, 100),
    "pawsx": Training(5, 128, 200),
    "udpos": Training(10, 128, 500),
    "panx": Training(10, 128, 1_000),
    "squad": _QUESTIONS,
    "tydiqa": _QUESTIONS,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneOptions(Options):
    """The options of ``newsembed finetune``; those of None are XTREME's for each task."""

    task: tuple[str, ...] = required("tasks of XTREME", many=True, choices=tuple(TASKS))
    model: tuple[str, ...] = required("model folders, each with a name for tables", many=True, metavar="NAME=DIR")
    data: str = required("folder that XTREME's download_data.sh made, with a folder for each task", metavar="DIR")
    output: str = required("folder for trainings, predictions and tables", metavar="DIR", local=True)
    labels: str | None = option(None, "folder of XTREME's labels of the test files", metavar="DIR")
    epochs: float | None = option(None, "passes over the training part (default: XTREME's)", gt=0)
    batch_size: int | None = option(None, "rows in a step (default: 32)", ge=1)
    learning_rate: float | None = option(None, "peak learning rate (default: 2e-5, questions 3e-5)", gt=0)
    max_length: int | None = option(None, "tokens of a row (default: 128, questions 384)", ge=16)
    seed: int = option(0, "of the head, the order and dropout")
    gin: tuple[str, ...] = several("bindings for the run file", "NAME=VALUE")

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        names = [model.partition("=")[0] for model in self.model]
        for name, model in zip(names, self.model, strict=True):
            if "=" not in model or not name or os.sep in name or names.count(name) > 1:
                remedy = "write NAME=DIR, each with a name of its own"
                raise InputError(f"got {model!r}", field="--model", remedy=remedy)
        if self.labels and not os.path.isdir(self.labels):
            raise InputError("no such folder", path=self.labels, field="--labels", remedy="check the path")


OPTIONS: Final = FinetuneOptions


def run(options: FinetuneOptions) -> int:
    """Runs the command; returns 0, or the exit code of a training that failed."""
    import rich

    from ...evaluation.suites import RESULTS_FILE, TABLE_FILE, write_results
    from ...evaluation.table import console

    with locked(options.output):
        study = Finetune(options)
        if code := study.train():
            return code
        results = study.results()
        write_results(results, options.output)
    for table in console(results):
        rich.print(table)
    for one in results.results:
        if not one.scores:
            print(f"{one.encoder} on {one.benchmark}: predictions only; the test files have no labels, give --labels")
    print(f"tables: {options.output}/{TABLE_FILE}   all numbers: {options.output}/{RESULTS_FILE}")
    return 0


class Finetune:
    """The trainings, predictions and scores of all models and tasks; each is made once.

    Args:
      options: of the command.
      command: runs a command of newsembed and returns its exit code.
    """

    def __init__(self, options: FinetuneOptions, command: Command = run_command) -> None:
        self.options, self.command = options, command
        self.output, self.data = os.path.abspath(options.output), os.path.abspath(options.data)
        self.tasks = [TASKS[name] for name in dict.fromkeys(options.task)]
        self.models = {name: os.path.abspath(path) for name, _, path in (one.partition("=") for one in options.model)}
        self.languages = {task.name: languages_of(task, self.data) for task in self.tasks}
        for path in self.models.values():
            self._check(path)

    def training(self, task: XtremeTask) -> Training:
        """The hyper-parameters of a task, with those that the user gave."""
        options = self.options
        given = {"epochs": options.epochs, "length": options.max_length, "learning_rate": options.learning_rate}
        own: dict[str, Any] = {**given, "batch_size": options.batch_size}
        own = {name: value for name, value in own.items() if value is not None}
        return dataclasses.replace(TRAININGS[task.training], **own)

    def folder(self, model: str, task: XtremeTask, step: str) -> str:
        """The folder of a step of a training."""
        return f"{self.output}/{model}/{task.training}/{step}"

    def train(self) -> int:
        """Makes the trainings and predictions that are not there; returns 0, or the exit code of a training."""
        settings = {name: value for name, value in dataclasses.asdict(self.options).items() if name not in _PLACES}
        for model, path in self.models.items():
            asked = {**settings, "model": path, "data": self.data}
            claim(f"{self.output}/{model}", "finetune.json", asked, ("model", "data"), study="fine-tuning")
            for task in self.tasks:
                if code := self._train(model, task):
                    return code
                once(self._predictions(model, task), functools.partial(self._predict, model, task))
        return 0

    def results(self) -> "Results":
        """The scores of all models and tasks."""
        facts = {task.name: dataclasses.asdict(self.training(task)) for task in self.tasks}
        found = {(model, task.name): self._predictions(model, task) for task in self.tasks for model in self.models}
        return results_of(found, self.models, facts, self.data, self.options.labels)

    def _predictions(self, model: str, task: XtremeTask) -> str:
        return f"{self.output}/{model}/predictions/{task.name}"

    def _predict(self, model: str, task: XtremeTask, to: str) -> None:
        trained = self.folder(model, task, "model")
        rows = self._rows(self.models[model], task)
        write_predictions(to, trained, best_step(trained, task), rows, self.data, self.languages[task.name])

    def _check(self, folder: str) -> None:
        """Refuses a model without layers.

        Raises:
          InputError: naming the folder.
        """
        from ...models.encoders import Capability, require
        from ...serving.encoder import read_description

        config = read_description(folder).config
        remedy = "Give a model with layers."
        require(config, Capability.SEQUENCE, by="a head for tokens", remedy=remedy)
        for task in self.tasks:
            if (length := self.training(task).length) > config.max_length:
                problem = f"{task.name} has rows of {length} tokens, the model reads {config.max_length}"
                raise InputError(problem, path=folder, field="--max_length", remedy="Give a shorter length.")
        if not getattr(config, "num_layers", 1):
            raise InputError("the model has no layers", path=folder, field="--model", remedy=remedy)

    def _rows(self, path: str, task: XtremeTask) -> RowMaker:
        from ...tasks.vocabulary import Vocabulary

        return RowMaker(task, Vocabulary.load(ModelFolder(path).vocabulary_file), self.training(task).length)

    def _train(self, model: str, task: XtremeTask) -> int:
        """Trains a model unless it is trained; returns 0, or the exit code of the training."""
        path, examples = self.models[model], self.folder(model, task, "examples")
        once(examples, lambda to: self._write_examples(to, path, task))
        name = TASK_OF_HEAD[task.head]
        rows, training = read_example_counts(examples)[DataSet(name, "en")], self.training(task)
        steps = max(1, int(training.epochs * max(1, rows // training.batch_size)))
        period = min(training.period, steps)
        files = ModelFolder(path)
        description = files.read_description()
        values: dict[str, Any] = {
            "DATA_DIR": examples,
            "VOCABULARY_PATH": files.vocabulary_file,
            "INITIAL_CHECKPOINT_PATH": {"encoder": path},
            "MIXTURE_OR_TASK_NAME": name,
            "TASK_FEATURE_LENGTHS": {"tokens": training.length},
            "ENCODER": {**description.encoder, "kind": description.kind or "news"},
            "HEAD": task.head,
            "OUTPUTS": len(task.labels) or 2,
            "TRAIN_STEPS": steps,
            "BATCH_SIZE": training.batch_size,
            "LEARNING_RATE": training.learning_rate,
            "WARMUP_STEPS": min(training.warmup_steps, steps // 2),
            "WEIGHT_DECAY": training.weight_decay,
            "CHECKPOINT_PERIOD": period,
            "SEED": self.options.seed,
        }
        bindings = list(self.options.gin)
        if task.dev:
            values |= {"EVAL_PERIOD": period, "KEEP_BEST": f"eval/dev/{task.metric}", "KEEP_BEST_MODE": "max"}
            evaluator = {"task": task.name, "data": self.data}
            bindings += [f"XtremeEvaluator.{key}={json.dumps(value)}" for key, value in evaluator.items()]
            bindings.append("EVALUATOR=@XtremeEvaluator()")
        return train_model(self.command, self.folder(model, task, "model"), [_RUN_FILE], values, bindings)

    def _write_examples(self, to: str, path: str, task: XtremeTask) -> None:
        from ...tasks.registry import get

        part = read_part(task, self.data, "train")
        own = DataSet(TASK_OF_HEAD[task.head], "en")
        with TFRecordShardWriter(f"{to}/{own.stream}/part-00000-of-00001.tfrecord") as shard:
            for row in self._rows(path, task)(part):
                shard.write({"tokens": row.tokens, **row.labels}, get(own.task).features)
        write_manifest(to, {"examples": {str(own): shard.rows}})
        counts = f"{counted(len(part.examples), 'example')}, {counted(shard.rows, 'row')}"
        print(f"{task.training}: {counts}", file=sys.stderr)
