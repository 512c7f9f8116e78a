"""Same-event retrieval by each way to read long documents, over all articles and over the long ones alone.

    python benchmarks/long_documents.py --model minilm --events heldout.jsonl --words 512

The long articles are those with more than --words words; among them, only they are candidates.
"""

import argparse
import time

import numpy as np
from newsembed.evaluation.retrieval import SameEventRetrieval
from newsembed.serving.encoder import load_encoder
from newsembed.serving.interface import DocumentEncoder
from newsembed.serving.long_documents import LONG_DOCUMENTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--events", required=True, help="JSONL as for the suite events")
    parser.add_argument("--words", type=int, default=512)
    parser.add_argument("--ways", nargs="+", default=list(LONG_DOCUMENTS), choices=list(LONG_DOCUMENTS))
    options = parser.parse_args()
    everything = SameEventRetrieval(options.events, cross_publisher=True)
    documents = everything.documents()
    is_long = np.array([len(document.text.split()) > options.words for document in documents])
    short = frozenset(document for document, long in zip(documents, is_long, strict=True) if not long)
    long_ones = SameEventRetrieval(options.events, cross_publisher=True, excluded=short)
    assert len(long_ones.documents()) == is_long.sum(), "two documents have the same texts"
    print(f"{is_long.sum()} of {len(documents)} articles are long")
    print("| long documents | documents/s | mAP, all | mAP, long | hit@1, long |\n|---|---|---|---|---|")
    for how in options.ways:
        encoder = DocumentEncoder(load_encoder(options.model, long_documents=how))
        encoder.encode(documents[:32])
        started = time.perf_counter()
        embeddings = encoder.encode(documents)
        rate = len(documents) / (time.perf_counter() - started)
        scores = [everything.query_scores(embeddings), long_ones.query_scores(embeddings[is_long])]
        means = [np.nanmean(scores[0]["mAP"]), np.nanmean(scores[1]["mAP"]), np.nanmean(scores[1]["hit@1"])]
        print(f"| {how} | {rate:.1f} | " + " | ".join(f"{mean:.4f}" for mean in means) + " |", flush=True)


if __name__ == "__main__":
    main()
