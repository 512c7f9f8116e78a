"""Our side of `encoding_speed.py`: encodes the texts when the parent asks."""

import importlib.metadata
import json
import sys
import time

import numpy as np
from newsembed.serving.specs import make_encoder
from train_speed import serve


def main() -> None:
    texts_path, folder, vectors_path = sys.argv[1:]
    with open(texts_path, encoding="utf-8") as file:
        texts = json.load(file)
    encoder = make_encoder("model", folder, progress=False, long_documents="head")  # as the peer reads
    titles = [""] * len(texts)
    start = time.perf_counter()
    np.save(vectors_path, encoder.encode(titles, texts))
    first = time.perf_counter() - start
    tokens = encoder.count_tokens(titles, texts) / len(texts)

    def run(_: int) -> float:
        encoder.encode(titles, texts)
        return 0.0

    packages = (f"{package} {importlib.metadata.version(package)}" for package in ("jax", "openvino"))
    versions = ", ".join([type(encoder).__name__, *packages])
    serve({"first": first, "tokens": tokens, "versions": versions}, run)


if __name__ == "__main__":
    main()
