"""Tasks of MTEB (Muennighoff et al. 2023) over any encoder, by the library ``mteb``; its data are local folders.

``mteb`` computes the scores and writes its own JSON files, so that they can stand beside published ones. The data of a
task are a folder with the task's name: a copy of its dataset as ``mteb``'s metadata names it. Nothing is downloaded.
"""

import functools
import hashlib
import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError
from .encoders import Document, Encoder, dense_rows, normalised
from .files import digest
from .suites import EncoderFactory

_OF_COLLECTIONS: Final = ("tfidf", "lsa", "words", "headline")  # each call of mteb is a collection of its own


class MtebEncoder:
    """An encoder as ``mteb`` calls one (its ``EncoderProtocol``).

    Args:
      encoder: maps each text by itself.
      name: of the model in the results.
    """

    def __init__(self, encoder: Encoder, name: str) -> None:
        self._encoder, self._name = encoder, name

    @functools.cached_property
    def mteb_model_meta(self) -> Any:
        """The name, and the digest of the encoder as its revision."""
        meta: Any = importlib.import_module("mteb.models.model_meta")
        revision = hashlib.sha256(self._encoder.digest.encode()).hexdigest()[:16]  # a folder is named by it
        facts = {
            "name": f"newsembed/{self._name}",
            "revision": revision,
            "similarity_fn_name": meta.ScoringFunction.COSINE,
        }
        return meta.ModelMeta.create_empty(facts)

    def encode(self, inputs: Iterable[Mapping[str, Sequence[str]]], **facts: Any) -> Any:
        """Embeds texts as float32 ``[N, D]`` of length 1.

        Args:
          inputs: batches: ``text``, and of a corpus ``title`` and ``body``.
          facts: of the task; ``prompt_type`` of "query" asks for the prompt of queries.
        """
        is_query = getattr(facts.get("prompt_type"), "value", facts.get("prompt_type")) == "query"
        documents = [one for batch in inputs for one in _documents(batch, is_query)]
        embedded = [number for number, one in enumerate(documents) if one.text]
        if not embedded:
            raise InputError("no text to embed", remedy="look at the data of the task")
        rows = dense_rows(normalised(self._encoder.encode([documents[number] for number in embedded])))
        found = np.zeros((len(documents), rows.shape[1]), np.float32)  # MTEB has some empty texts
        found[embedded] = rows
        return found

    def similarity(self, first: Any, second: Any) -> Any:
        """The cosines ``[N, M]`` of embeddings."""
        return importlib.import_module("mteb.similarity_functions").cos_sim(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """The cosines ``[N]`` of embeddings."""
        return importlib.import_module("mteb.similarity_functions").pairwise_cos_sim(first, second)


def _documents(batch: Mapping[str, Sequence[str]], is_query: bool) -> list[Document]:
    if "title" in batch and "body" in batch and not is_query:
        return [Document(title or "", body) for title, body in zip(batch["title"], batch["body"], strict=True)]
    return [Document("", text, is_query=is_query) for text in batch["text"]]


def run_tasks(
    names: Sequence[str], data: str, encoders: Mapping[str, EncoderFactory], specs: Mapping[str, str], output: str
) -> list[tuple[str, str, float | str]]:
    """Runs tasks; ``mteb`` writes ``results/newsembed__NAME/DIGEST/TASK.json`` in the output folder.

    Args:
      names: of tasks, such as ``STS12``.
      data: the folder with a folder for each task.
      encoders: factories by name.
      specs: the SPEC of each encoder.
      output: folder.

    Returns:
      (encoder, task, its main score in [0, 1], or the error of a task that failed).

    Raises:
      InputError: if ``mteb``, or a library that it needs, is not installed, and for an encoder that is fitted on a
        collection, an unknown task and a task without a folder.
    """
    if fitted := [f"{name}={spec}" for name, spec in specs.items() if spec.partition(":")[0] in _OF_COLLECTIONS]:
        remedy = "leave it out: its vectors are fitted on a collection, and mteb embeds parts of one"
        raise InputError(f"got {', '.join(fitted)}", field="--encoder", remedy=remedy)
    os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"  # read when datasets is imported
    try:
        mteb: Any = importlib.import_module("mteb")
    except ModuleNotFoundError as error:  # mteb, or a library that it needs
        problem, remedy = f"{error.name} is not installed", "run: pip install 'newsembed[mteb]'"
        raise InputError(problem, field="--mteb", remedy=remedy) from error
    tasks = [_local_task(mteb, name, os.path.join(data, name)) for name in names]
    cache = mteb.ResultCache(cache_path=output)
    found: list[tuple[str, str, float | str]] = []
    for name, factory in encoders.items():
        model = MtebEncoder(factory(), name)
        for task in tasks:
            made = mteb.evaluate(model, task, cache=cache, overwrite_strategy="always", raise_error=False)
            errors = [one.exception for one in made.exceptions or ()]
            score = errors[0] if errors else float(made.task_results[0].get_score())
            found.append((name, task.metadata.name, score))
    return found


def _local_task(mteb: Any, name: str, folder: str) -> Any:
    """The task, whose data are a folder."""
    try:
        task = mteb.get_task(name)
    except KeyError as error:
        raise InputError(str(error.args[0]), field="--mteb", remedy="see mteb.get_tasks()") from error
    if not os.path.isdir(folder):
        remedy = f"put a copy of the dataset {task.metadata.dataset['path']} there"
        raise InputError("no such folder", path=folder, field="--data", remedy=remedy)
    facts = {**task.metadata.dataset, "path": folder, "revision": f"local-{digest(folder)[:16]}"}
    task.metadata = task.metadata.model_copy(update={"dataset": facts})
    return task
