"""Our side of `encoding_speed.py`: encodes the texts when the parent asks."""

import importlib.metadata
import json
import sys
import time

import numpy as np
from newsembed.serving.specs import make_encoder
from train_speed import serve


def main() -> None:
    texts_path, threads, folder, kind, vectors_path = sys.argv[1:]
    with open(texts_path, encoding="utf-8") as file:
        texts = json.load(file)
    if kind == "savedmodel":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(int(threads))
        tf.config.threading.set_inter_op_parallelism_threads(1)
    encoder = make_encoder(kind, folder, progress=False)
    titles = [""] * len(texts)
    start = time.perf_counter()
    np.save(vectors_path, encoder.encode(titles, texts))
    first = time.perf_counter() - start
    tokens = float(np.mean([len(row) for row in encoder.tokenize(titles, texts)])) if kind == "model" else 0.0

    def run(_: int) -> float:
        encoder.encode(titles, texts)
        return 0.0

    packages = ("jax", "flax") if kind == "model" else ("tensorflow", "tensorflow-text")
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    serve({"first": first, "tokens": tokens, "versions": versions}, run)


if __name__ == "__main__":
    main()
