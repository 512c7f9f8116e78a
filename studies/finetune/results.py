"""Predictions of fine-tuned models in XTREME's files, and their scores as results of ``newsembed evaluate``."""

import json
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...errors import counted
from ...evaluation.benchmark import ALL, Result, Results, Score
from ...evaluation.files import digest
from ...evaluation.suites import run_manifest
from ...evaluation.xtreme import TASKS, Gold, XtremeTask, part_file, read_labels, read_part, scores
from ...formats.arrays import unflatten
from ...formats.files import read_json, writing_text
from ...formats.model_folder import ModelFolder
from .rows import Apply, RowMaker

SUITE: Final = "finetune"
_OVERALL: Final = ("precision", "recall")  # not of each language: a table would be too wide


def best_step(folder: str, task: XtremeTask) -> int:
    """The checkpoint of a training that is best on the dev part, or the last one where none is looked at."""
    from ...training.checkpoints import Checkpoints
    from ...training.options import CheckpointOptions

    steps = ModelFolder(folder).steps()
    if not task.dev:
        return steps[-1]
    options = CheckpointOptions(keep=len(steps), keep_best=f"eval/dev/{task.metric}", keep_best_mode="max")
    with Checkpoints(folder, options) as saved:
        return saved.best_step() or steps[-1]


def logits_of(folder: str, step: int) -> Apply:
    """The head of a fine-tuned model: rows int32 [B, L] to logits."""
    import jax

    from ...models.encoders import config_from_dict

    files = ModelFolder(folder)
    description = files.read_description()
    module = config_from_dict(description.encoder, description.kind, path=files.description_file).module()
    params = jax.device_put(unflatten(files.read_params(step)[0]))
    apply = jax.jit(lambda params, tokens: module.apply({"params": params}, tokens, method="label_logits"))
    return lambda tokens: np.asarray(apply(params, tokens))


def write_predictions(to: str, trained: str, step: int, rows: RowMaker, data: str, languages: Sequence[str]) -> None:
    """Writes the predictions of the test files of a task, a file for each language.

    Args:
      to: folder of the files.
      trained: the fine-tuned model.
      step: its checkpoint.
      rows: of the task.
      data: the folder of all tasks.
      languages: of the test files.
    """
    apply, task = logits_of(trained, step), rows.task
    for language in languages:
        part = read_part(task, data, "test", language)
        found = rows.predictions(part, apply)
        with writing_text(os.path.join(to, os.path.basename(task.labels_file.format(language)))) as file:
            if task.head == "span":
                json.dump(found, file, indent=1, ensure_ascii=False)
            else:
                lines = found if task.head == "pair" else ["\n".join(labels) + "\n" for labels in found]
                file.write("\n".join(lines) + "\n")
        print(f"{task.name}, {language}: {counted(len(part.examples), 'prediction')}", file=sys.stderr)


def results_of(
    predictions: Mapping[tuple[str, str], str],
    models: Mapping[str, str],
    facts: Mapping[str, Any],
    data: str,
    labels: str | None,
) -> Results:
    """The scores of predictions, and where they come from.

    Args:
      predictions: the folder of each model and task, by their names.
      models: the folder of each model.
      facts: the hyper-parameters of each task.
      data: the folder of all tasks.
      labels: that of XTREME's labels; None where the test files have some.
    """
    encoders = {name: {"spec": f"model:{path}"} for name, path in models.items()}
    manifest = run_manifest([], encoders)
    gold = {name: _gold(TASKS[name], data, labels) for _, name in predictions}
    manifest["benchmarks"] = {
        f"{name}, fine-tuned": {
            "protocol": {
                "suite": f"{SUITE} {name}",
                "trained_on": TASKS[name].training,
                "languages": list(own),
                **facts[name],
            },
            "data": [{"path": os.path.join(data, name), "sha256": digest(os.path.join(data, name))}],
        }
        for name, own in gold.items()
    }
    results = []
    for (model, name), folder in predictions.items():
        task = TASKS[name]
        found = {language: read_predictions(task, os.path.dirname(folder), language) for language in gold[name]}
        results.append(_result(model, task, gold[name], found))
    return Results(tuple(results), manifest)


def read_predictions(task: XtremeTask, folder: str, language: str) -> Gold:
    """The predictions of a test file; of questions, one answer by key."""
    if task.head == "span":
        return read_json(os.path.join(folder, task.labels_file.format(language)), kind=dict)
    return read_labels(task, folder, language)


def _gold(task: XtremeTask, data: str, labels: str | None) -> dict[str, Gold]:
    """The labels of each test file that is there; None for a file without."""
    files = [one for one in task.languages if os.path.exists(part_file(task, data, "test", one))]
    if labels is not None and os.path.isdir(os.path.join(labels, task.name)):
        return {language: read_labels(task, labels, language) for language in files}
    return {language: read_part(task, data, "test", language).gold for language in files}


def _result(model: str, task: XtremeTask, gold: Mapping[str, Gold], found: Mapping[str, Gold]) -> Result:
    """The scores of each language, after their means; languages without labels have none."""
    by_language = {
        language: scores(task, language, own, found[language]) for language, own in gold.items() if own is not None
    }
    counts = {language: len(found[language]) for language in gold}
    metrics = next(iter(by_language.values()), {})
    made = [
        Score(metric, statistics.fmean(own[metric] for own in by_language.values()), ALL, sum(counts.values()))
        for metric in metrics
    ]
    made += [
        Score(metric, value, language, counts[language])
        for language, own in by_language.items()
        for metric, value in own.items()
        if metric not in _OVERALL
    ]
    return Result(model, f"{task.name}, fine-tuned", "ok", tuple(made), texts=sum(counts.values()))
