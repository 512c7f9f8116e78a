"""Quality against size and speed of distilled models, beside their encoder and TF-IDF.

    python benchmarks/distil_quality.py --model minilm --events heldout.jsonl --articles before.jsonl --output work \
        --also trained=distilled/model

Distils the encoder to each size by `newsembed distil`, with words of the corpus as pieces and with random units beside
them. Then, for all of them, the encoder and TF-IDF: same-event mAP and hit@1 over the events (`heldout_days.py` makes
such a file), candidates of other publishers only; and documents per second over the same documents, each encoder in
turn and after one pass that compiles. The corpus must end before the events.
"""

import argparse
import os
import subprocess
import sys
import time

import numpy as np
from newsembed.evaluation.encoders import TfidfEncoder, normalised
from newsembed.evaluation.retrieval import SameEventRetrieval
from newsembed.serving.encoder import load_encoder
from newsembed.serving.interface import DocumentEncoder

WAYS = {
    "plain (Model2Vec)": ("--weights", "zipf"),
    "components of texts": ("--weights", "idf"),
    "components of texts, words": ("--weights", "idf", "--words", "40000"),
    "components of texts, random units": ("--weights", "idf", "--lexical_size", "640", "--lexical_share", "0.85"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the encoder")
    parser.add_argument("--events", required=True, help="JSONL as for the suite events")
    parser.add_argument("--articles", required=True, help="the corpus of counts and components")
    parser.add_argument("--output", required=True, help="folder of the distilled models; what is there is not repeated")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128, 256, 384])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--also", nargs="*", default=[], metavar="NAME=DIR", help="more model folders")
    parser.add_argument("--speed_documents", type=int, default=256)
    options = parser.parse_args()
    models = {"encoder": options.model} | dict(pair.split("=", 1) for pair in options.also)
    for way in options.ways:
        for size in options.sizes:
            models[f"{way}, {size}"] = distilled(options, way, size)
    events = SameEventRetrieval(options.events, cross_publisher=True)
    print("| model | D | MB | documents/s | times the encoder | mAP | hit@1 |\n|---|---|---|---|---|---|---|")
    rate = None
    for name, folder in models.items():
        encoder = load_encoder(folder)
        size = sum(array.nbytes for array in arrays(encoder.model.params)) / 1e6
        found = row(events, DocumentEncoder(encoder), options.speed_documents)
        rate = rate or found[0]
        show(name, encoder.dimensions, f"{size:.1f}", found, rate)
    show("TF-IDF", "-", "-", row(events, TfidfEncoder(), options.speed_documents), rate or 1.0)


def distilled(options: argparse.Namespace, way: str, size: int) -> str:
    """The folder of the distilled model; `newsembed distil` makes it unless it is there."""
    output = os.path.join(options.output, f"{list(WAYS).index(way)}-{size}")
    corpus = () if way.startswith("plain") else ("--articles", options.articles)
    arguments = ["--model", options.model, "--output", output, "--size", str(size), *corpus, *WAYS[way]]
    subprocess.run([sys.executable, "-m", "newsembed", "distil", *arguments], check=True)
    return f"{output}/model"


def arrays(params: object) -> list[np.ndarray]:
    """The leaves of nested parameters."""
    if isinstance(params, dict):
        return [array for value in params.values() for array in arrays(value)]
    return [np.asarray(params)]


def row(events: SameEventRetrieval, encoder: object, count: int) -> tuple[float, float, float]:
    """Documents per second, mAP and hit@1."""
    documents = events.documents()
    embeddings = normalised(encoder.encode(documents))
    part = documents[:count] if not isinstance(encoder, TfidfEncoder) else documents  # TF-IDF is fitted, too
    started = time.perf_counter()
    encoder.encode(part)
    rate = len(part) / (time.perf_counter() - started)
    scores = events.query_scores(embeddings)
    return rate, float(np.nanmean(scores["mAP"])), float(np.nanmean(scores["hit@1"]))


def show(name: str, width: object, size: str, found: tuple[float, float, float], rate: float) -> None:
    """Prints one line of the table."""
    speed, precision, hit = found
    print(f"| {name} | {width} | {size} | {speed:.0f} | {speed / rate:.1f} | {precision:.4f} | {hit:.4f} |", flush=True)


if __name__ == "__main__":
    main()
