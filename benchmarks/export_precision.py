"""Size, speed and loss of SavedModels in float32, float16 and int8.

    python benchmarks/export_precision.py --model distilled/model --events heldout.jsonl --output work

Exports the model three times and embeds the documents of a same-event file: megabytes, documents per second (after one
pass that compiles), the least and mean cosine to float32, and mAP with candidates of other publishers.
"""

import argparse
import os
import time

import numpy as np
from newsembed.evaluation.retrieval import SameEventRetrieval
from newsembed.serving.export import export_saved_model
from newsembed.serving.precision import PRECISIONS
from newsembed.serving.saved_model import SavedModelEncoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--events", required=True, help="JSONL as for the suite events")
    parser.add_argument("--output", required=True, help="folder of the exports; those that are there are not repeated")
    parser.add_argument("--max_length", type=int, help="tokens of a document (default: the model's)")
    options = parser.parse_args()
    events = SameEventRetrieval(options.events, cross_publisher=True)
    titles, bodies = zip(*((document.title, document.body) for document in events.documents()), strict=True)
    print("| numbers | MB | documents/s | least cosine | mean cosine | mAP |\n|---|---|---|---|---|---|")
    exact = None
    for precision in PRECISIONS:
        folder = os.path.join(options.output, precision)
        if not os.path.isdir(folder):
            export_saved_model(
                options.model, folder, precision=precision, platforms=("cpu",), max_length=options.max_length
            )
        encoder = SavedModelEncoder(folder)
        encoder.encode(titles[:64], bodies[:64])
        started = time.perf_counter()
        embeddings = encoder.encode(titles, bodies)
        rate = len(titles) / (time.perf_counter() - started)
        exact = embeddings if exact is None else exact
        cosines = np.sum(embeddings * exact, axis=1)
        score = np.nanmean(events.query_scores(embeddings)["mAP"])
        size = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(folder) for name in names)
        print(
            f"| {precision} | {size / 1e6:.1f} | {rate:.0f} | {cosines.min():.5f} | {cosines.mean():.5f} "
            f"| {score:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
