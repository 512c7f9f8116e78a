"""The peer's side of `encoding_speed.py`: sentence-transformers.

Imports nothing of newsembed, so torch may be in another environment.
"""

import json
import sys
import time

import numpy as np
import sentence_transformers
import torch
import transformers
from train_speed import serve

FIRST_BATCH = 32  # sentence-transformers' own default


def main() -> None:
    texts_path, threads, folder, vectors_path = sys.argv[1:]
    torch.set_num_threads(int(threads))
    with open(texts_path, encoding="utf-8") as file:
        texts = json.load(file)
    model = sentence_transformers.SentenceTransformer(
        folder, device="cpu", local_files_only=True, trust_remote_code=True
    )

    def encode(batch: int) -> np.ndarray:
        return model.encode_document(texts, batch_size=batch, show_progress_bar=False, convert_to_numpy=True)

    start = time.perf_counter()
    np.save(vectors_path, encode(FIRST_BATCH))
    first = time.perf_counter() - start

    def run(batch: int) -> float:
        encode(batch)
        return 0.0

    modules = {"torch": torch, "transformers": transformers, "sentence-transformers": sentence_transformers}
    versions = ", ".join(f"{name} {module.__version__}" for name, module in modules.items())
    serve({"first": first, "versions": versions}, run)


if __name__ == "__main__":
    main()
