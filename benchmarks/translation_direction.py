"""Topic classification across languages by encoders that learned from translations alone: does each part help?

Trains T-MDE, cT-MDE, T-MDE_F and others on the records of ``newsembed translations`` with the trainer's own batches,
objective, optimizer and step. Evaluates them by the suite ``mldoc_xy`` on labelled articles of a newsroom in MLDoc's
layout, where no event is in both the training and the test part.

  newsembed newsroom --output newsroom --scale 0.5
  newsembed translations --bitext newsroom/bitext.tsv --vocabulary vocab.txt --pivots en,es,de --output translations
  python benchmarks/translation_direction.py --data translations --vocabulary vocab.txt --heldout newsroom/heldout.jsonl
"""

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from newsembed.evaluation.crosslingual import CrossLingual
from newsembed.formats.jsonl import read_jsonl
from newsembed.formats.manifest import read_manifest
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.learning.mixture import MixtureBatches, select_sets, smoothed_weights
from newsembed.learning.objectives import Model, Objectives
from newsembed.learning.objectives.translation import Translation
from newsembed.learning.optimizers import Moments, adam, learning_rate_schedule
from newsembed.learning.partitioning import Partitioner, shard_batch
from newsembed.models.encoders import LaserConfig, TranslatorConfig
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.training.train_state import plan_state
from newsembed.training.train_step import make_train_step

LANGUAGES = {"en": "english", "de": "german", "es": "spanish"}
BETA = 0.25


def systems(vocab_size, languages, size):
    shared = {"vocab_size": vocab_size, "num_languages": languages, "dropout_rate": 0.1}
    encoder = TranslatorConfig(**shared, hidden_size=size, num_layers=3, num_heads=4, mlp_size=4 * size)
    laser = LaserConfig(**shared, token_size=size, hidden_size=size // 2, num_layers=1, decoder_size=2 * size)
    return {
        "T-MDE": (encoder, 0.0),
        "cT-MDE": (encoder, BETA),
        "T-MDE_F": (dataclasses.replace(encoder, bottleneck="none"), 0.0),
        "cT-MDE_P": (dataclasses.replace(encoder, bottleneck="pooled"), BETA),
        "LASER_1": (laser, 0.0),
        "cLASER_1": (laser, BETA),
    }


def train(config, weight, seed, args):
    """The parameters after the last step."""
    counts = select_sets(args.data, "translation")
    lengths = dict.fromkeys(("source_tokens", "target_tokens"), args.length)
    bounds = {"pieces": config.vocab_size, "languages": config.num_languages}
    options = BatchOptions(args.data, lengths, args.batch, bounds, seed)
    batches = MixtureBatches(smoothed_weights(counts, 0.0), GrainBatches, options)
    rate = learning_rate_schedule(args.rate, args.steps // 6, "inverse_root")
    optimizer = adam(rate, Moments(0.9, 0.98), 1e-4, 1.0)
    partitioner = Partitioner()
    mesh = partitioner.make_mesh()
    layout = plan_state(config.module(), optimizer, partitioner, mesh)
    objectives = Objectives(Model(config), {"translation": Translation(distance_weight=weight)})
    step = make_train_step("translation", objectives, optimizer, layout.abstract, partitioner, mesh)
    state, key = layout.create(jax.random.key(seed)), jax.random.key(seed + 1)
    for number in range(args.steps):
        state, metrics = step(state, shard_batch(batches.draw(number).batch, mesh), key)
    return state.params, float(metrics["translation_loss"])


def embed(config, params, rows, length):
    call = jax.jit(lambda p, tokens: config.module().apply({"params": p}, tokens, method="embed"))
    tokens = np.zeros((-(-len(rows) // 64) * 64, length), np.int32)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = row
    parts = [np.asarray(call(params, tokens[start : start + 64])) for start in range(0, len(tokens), 64)]
    return np.concatenate(parts)[: len(rows)]


def write_mldoc(heldout, folder):
    """Every second event of a topic goes to the test part."""
    articles = [row for _, row in read_jsonl(heldout) if row.get("language") in LANGUAGES and row.get("topic")]
    events = sorted({(row["topic"], row["event"]) for row in articles})
    is_test = {event: number % 2 for number, (_, event) in enumerate(events)}
    lines = {f"{name}.{part}": [] for name in LANGUAGES.values() for part in ("train.1000", "test")}
    for row in articles:
        part = "test" if is_test[row["event"]] else "train.1000"
        text = " ".join(f"{row['title']} {row['body']}".split())
        lines[f"{LANGUAGES[row['language']]}.{part}"].append(f"{row['topic']}\t{text}\n")
    for name, found in lines.items():
        Path(folder, name).write_text("".join(found))
    return {name: len(found) for name, found in lines.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("data", "vocabulary", "heldout"):
        parser.add_argument(f"--{name}", required=True)
    for name, default in (("steps", 400), ("seeds", 3), ("size", 64), ("batch", 32), ("length", 24), ("text", 96)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--systems", default="T-MDE,cT-MDE,T-MDE_F")
    args = parser.parse_args()
    vocabulary = Vocabulary.load(args.vocabulary)
    pivots = read_manifest(args.data)["pivots"]
    known = systems(vocabulary.size, len(pivots), args.size)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(write_mldoc(args.heldout, folder)), flush=True)
        benchmark = CrossLingual(folder, "mldoc", "newsroom")
        documents = benchmark.documents()
        rows = vocabulary.encode_documents(
            [document.title for document in documents], [document.body for document in documents], args.text
        )
        for seed in range(args.seeds):
            for name in args.systems.split(","):
                config, weight = known[name]
                started = time.process_time()
                params, loss = train(config, weight, seed, args)
                scores = benchmark.score(embed(config, params, rows, args.text))
                found = {score.part: round(score.value, 4) for score in scores if score.part in ("Same", "Cross")}
                seconds = round(time.process_time() - started)
                print(
                    json.dumps({"system": name, "seed": seed, **found, "nats": round(loss, 2), "cpu_s": seconds}),
                    flush=True,
                )


if __name__ == "__main__":
    main()
