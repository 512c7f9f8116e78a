"""Embeddings of articles by `t5x.infer`: the articles as a seqio task, and the embeddings as lines of JSON.

In a gin file of T5X::

    utils.DatasetConfig.mixture_or_task_name = @inference.articles()
    infer_script.infer.write_fn = @inference.write_embeddings
"""

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..formats.articles import read_articles
from ..tasks.vocabulary import Vocabulary

SPLIT: Final = "test"
_AT_A_TIME: Final = 1024
_STRINGS: Final = ("doc_id", "url")


def articles(path: str, vocabulary_path: str, max_length: int, name: str = "newsembed_articles") -> str:
    """Registers the articles of a file as a seqio task and returns its name.

    Its features are "tokens", int32 [length] of `[CLS] title [SEP] body [SEP]`, and the strings "doc_id" and "url".
    Registering a name again replaces its task.

    Args:
      path: a file of articles, as for `newsembed embed --input`.
      vocabulary_path: of the model.
      max_length: longer articles are cut to this many tokens.
      name: of the task.

    Raises:
      InputError: if the vocabulary cannot be read.
    """
    import seqio
    import tensorflow as tf

    vocabulary = Vocabulary.load(vocabulary_path)
    specs = {"tokens": tf.TensorSpec((None,), tf.int32)} | {
        feature: tf.TensorSpec((), tf.string) for feature in _STRINGS
    }

    def dataset_of(split: str, shuffle_files: bool, seed: int | None = None) -> Any:
        del split, shuffle_files, seed
        return tf.data.Dataset.from_generator(lambda: _examples(path, vocabulary, max_length), output_signature=specs)

    feature = seqio.Feature(seqio.PassThroughVocabulary(vocabulary.size), add_eos=False, dtype=tf.int32)
    seqio.TaskRegistry.remove(name)
    seqio.TaskRegistry.add(
        name,
        source=seqio.FunctionDataSource(dataset_of, splits=[SPLIT]),
        preprocessors=[],
        output_features={"tokens": feature},
    )
    return name


def _examples(path: str, vocabulary: Vocabulary, max_length: int) -> Iterator[dict[str, Any]]:
    waiting = iter(read_articles(path))
    while found := list(itertools.islice(waiting, _AT_A_TIME)):
        titles, bodies = [article.title for article in found], [article.body for article in found]
        for article, tokens in zip(found, vocabulary.encode_documents(titles, bodies, max_length), strict=True):
            yield {"tokens": tokens} | {feature: getattr(article, feature) for feature in _STRINGS}


def write_embeddings(
    path: str, inferences: tuple[Sequence[Any], Mapping[str, Any]], task_ds: Any, mode: str, vocabulary: Any = None
) -> None:
    """Writes {"doc_id", "url", "embedding"} of each article as a line of JSON; `infer_script.infer.write_fn` of T5X.

    Examples of another task have those of the features that they have.

    Args:
      path: the file.
      inferences: embeddings [N, D], and nothing else.
      task_ds: the N examples.
      mode: of T5X, "predict".
      vocabulary: not used.
    """
    del mode, vocabulary
    embeddings = np.asarray(inferences[0], np.float32)
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        for embedding, example in zip(embeddings, task_ds.as_numpy_iterator(), strict=True):
            names = {feature: example[feature].decode() for feature in _STRINGS if feature in example}
            file.write(json.dumps(names | {"embedding": embedding.tolist()}, ensure_ascii=False) + "\n")
    os.replace(temporary, path)
