"""A small corpus that tests of the trainer write: TFRecords by our own writer, a vocabulary, a manifest."""

import json

import jax
import numpy as np
import orbax.checkpoint as ocp
from newsembed.formats.manifest import DataSet
from newsembed.formats.records import doc_id_to_words
from newsembed.formats.tfrecords import encode_example, frame
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.learning.objectives import OBJECTIVES, Model, Objectives
from newsembed.tasks import registry
from small_encoders import small

VOCAB_SIZE = 64
LENGTH = 16
NUM_TOPICS = 6
BOUNDS = {"pieces": VOCAB_SIZE, "topics": NUM_TOPICS}


def write_vocabulary(path, size=VOCAB_SIZE):
    pieces = [*SPECIAL_TOKENS, *(f"w{number}" for number in range(size - len(SPECIAL_TOKENS)))]
    path.write_text("\n".join(pieces) + "\n")
    return str(path)


def write_records(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for record in records:
            file.write(frame(record))


def write_sets(directory, sets, shards=2):
    """`sets`: "task/language" -> examples."""
    for key, examples in sets.items():
        task, language = key.split("/")
        for shard in range(shards):
            records = [encode_example(example, registry.get(task).features) for example in examples[shard::shards]]
            write_records(
                directory / f"task={task}" / f"language={language}" / f"part-{shard:05d}-of-{shards:05d}.tfrecord",
                records,
            )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "manifest.json").write_text(
        json.dumps({"examples": {key: len(examples) for key, examples in sets.items()}})
    )
    return str(directory)


def document(rng, low=3, high=20):
    pieces = rng.integers(len(SPECIAL_TOKENS), VOCAB_SIZE, rng.integers(low, high))
    return [CLS_ID, *map(int, pieces), SEP_ID]


def packed_row(rng):
    rows = [document(rng, 2, 6), document(rng, 2, 6)]
    words = iter(range(1, 100))
    return {
        "tokens": [token for row in rows for token in row],
        "segment_ids": [number for number, row in enumerate(rows, 1) for _ in row],
        "positions": [place for row in rows for place in range(len(row))],
        "word_ids": [0 if token in (CLS_ID, SEP_ID) else next(words) for row in rows for token in row],
    }


def packed_row_of(rng, length):
    """A row of one piece of this length."""
    tokens = document(rng, length - 2, length - 1)
    return {
        "tokens": tokens,
        "segment_ids": [1] * length,
        "positions": list(range(length)),
        "word_ids": [0, *range(1, length - 1), 0],
    }


def triplet(rng, number, **events):
    ids = [list(doc_id_to_words(f"{number:08x}{role:08x}")) for role in range(3)]
    return {
        "anchor_tokens": document(rng),
        "positive_tokens": document(rng),
        "negative_tokens": document(rng),
        "augmentation": 0,
        "translated": number % 2,
        "language": "en",
        "anchor_doc_id": ids[0],
        "positive_doc_id": ids[1],
        "negative_doc_id": ids[2],
    } | events


def event(story, day):
    """The feature of a document's event."""
    return [*doc_id_to_words(f"{story:016x}"), day]


def topics(rng, number):
    count = int(rng.integers(1, 4))
    return {
        "tokens": document(rng),
        "topic_ids": sorted(map(int, rng.choice(NUM_TOPICS, count, replace=False))),
        "topic_labels": list(map(int, rng.integers(0, 2, count))),
        "doc_id": list(doc_id_to_words(f"{number:016x}")),
    }


def write_corpus(directory, seed=0, count=23):
    rng = np.random.default_rng(seed)
    return write_sets(
        directory,
        {
            "mlm/en": [packed_row(rng) for _ in range(count)],
            "tlm/de": [packed_row(rng) for _ in range(count // 2)],
            "triplets/en": [triplet(rng, number) for number in range(count)],
            "triplets/de": [triplet(rng, 1000 + number) for number in range(count // 2)],
            "topics/en": [topics(rng, number) for number in range(count)],
        },
    )


LENGTHS = {
    "anchor_tokens": LENGTH,
    "positive_tokens": LENGTH,
    "negative_tokens": LENGTH,
    "tokens": LENGTH,
    "topic_ids": 4,
}


def bindings_of(model_dir, data_dir, vocabulary, **values):
    """Of a short run: its places and these values."""
    places = {"MODEL_DIR": str(model_dir), "DATA_DIR": data_dir, "VOCABULARY_PATH": vocabulary}
    sizes = {"BATCH_SIZE": 8, "CHECKPOINT_PERIOD": 2}
    return [f"{name} = {value!r}" for name, value in (places | sizes | values).items()]


def tiny_bindings(*places, **changes):
    """Of a run of the tiny news encoder on `write_corpus`."""
    sizes = {"num_layers": 1, "hidden_size": 16, "mlp_size": 32, "embedding_size": 16, "max_length": LENGTH}
    values = {f"EncoderConfig.{name}": size for name, size in sizes.items()} | {
        "TRAIN_STEPS": 6,
        "WARMUP_STEPS": 2,
        "TASK_FEATURE_LENGTHS": LENGTHS,
        "LOG_PERIOD": 2,
        "WHITENING_ROWS": 0,
        "TEXT_LENGTH": None,
        "NUM_TOPICS": NUM_TOPICS,
        "DROPOUT_RATE": 0.1,
    }
    return bindings_of(*places, **values | changes)


def saved_params(model_dir, step):
    """The parameters of a checkpoint as NumPy arrays, whatever devices saved them."""
    path, checkpointer = model_dir / "checkpoints" / str(step) / "params", ocp.PyTreeCheckpointer()
    restore_args = jax.tree.map(
        lambda _: ocp.RestoreArgs(restore_type=np.ndarray), checkpointer.metadata(path).item_metadata.tree
    )
    return checkpointer.restore(path, ocp.args.PyTreeRestore(restore_args=restore_args))


def toy_config(**changes):
    """One layer over the toy vocabulary."""
    sizes = {"vocab_size": VOCAB_SIZE, "num_layers": 1, "max_length": LENGTH, "num_topics": NUM_TOPICS, "norm": "pre"}
    return small(**(sizes | changes))


def toy_objectives(config, task, **options):
    """The registered objective of one task with these options; pieces from 40 on continue a word."""
    return Objectives(Model(config, np.arange(VOCAB_SIZE) >= 40), {task: OBJECTIVES[task](**options)})


def first_batch(corpus, task, rows):
    """The first batch of a set of `write_corpus`."""
    batch = next(GrainBatches(DataSet(task, "en"), BatchOptions(corpus, LENGTHS, rows, BOUNDS)))
    return {name: np.array(values) for name, values in batch.items()}
