"""A SavedModel beside the Flax model with the parameters of a checkpoint of T5X, read without the code that exports."""

import json

import numpy as np
from newsembed.formats.model_folder import read_tree
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from newsembed.models.encoders.news import EncoderConfig, NewsEncoder

TITLES, BODIES = (("w1", "w2"), ("w7",)), (("w3",), ("w50", "w0", "w11", "w4"))


def equals_flax(saved, checkpoint):
    """Compares the embeddings of a few texts.

    Args:
      saved: the SavedModel.
      checkpoint: "checkpoint_<step>" of T5X, in its MODEL_DIR.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - its operations

    config = EncoderConfig(**json.loads((checkpoint.parent / "model.json").read_text())["encoder"])
    params = read_tree(str(checkpoint / "state"))["target"]
    rows = np.zeros((2, 8), np.int32)
    for row, title, body in zip(rows, TITLES, BODIES, strict=True):
        ids = [CLS_ID, *map(id_of, title), SEP_ID, *map(id_of, body), SEP_ID]
        row[: len(ids)] = ids
    expected = NewsEncoder(config).apply({"params": params}, rows, method="embed")
    signature = tf.saved_model.load(str(saved)).signatures["serving_default"]
    texts = [tf.constant([" ".join(words) for words in part]) for part in (TITLES, BODIES)]
    found = signature(title=texts[0], body=texts[1])["embedding"].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def id_of(word):
    """The id of a word of the toy vocabulary."""
    return len(SPECIAL_TOKENS) + int(word[1:])
