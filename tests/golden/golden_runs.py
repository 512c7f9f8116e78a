"""Command lines of the golden test. Their folders are relative to where they run."""

import json

NEWSROOM = ["newsroom", "--output", "newsroom", "--scale=0.1"]
BUILD = (
    "build --warc warc/*.warc --bitext newsroom/bitext.tsv --output work --vocabulary.size=2000 --pack.max_length=64 "
    "--examples.max_length=48 --examples.augmentations_per_triplet=2 --direct_num_workers=1"
).split()
# The only gin keys here that are not macros. model_before/ was trained by train_demo.gin with the first ones.
_SIXTEEN_WIDE = [
    "--gin.EncoderConfig.hidden_size=16",
    "--gin.EncoderConfig.embedding_size=16",
    "--gin.EncoderConfig.mlp_size=32",
    "--gin.EncoderConfig.max_length=32",
    "--gin.NUM_TOPICS=8",
]


def train(gin_file, output, data, vocabulary, length, *options, **macros):
    """A training that logs every step and cuts texts at `length` tokens."""
    names = ("anchor_tokens", "positive_tokens", "negative_tokens", "tokens")
    lengths = {"tokens": length} if "pretrain" in gin_file else {**dict.fromkeys(names, length), "topic_ids": 8}
    values = {
        "MODEL_DIR": output,
        "DATA_DIR": data,
        "VOCABULARY_PATH": vocabulary,
        "LOG_PERIOD": 1,
        "TASK_FEATURE_LENGTHS": lengths,
        **macros,
    }
    bindings = [f"--gin.{name}={'None' if value is None else json.dumps(value)}" for name, value in values.items()]
    return ["train", f"--gin_file=runs/{gin_file}.gin", *bindings, *options]


def _train_again(output, data, **macros):
    """A training of the size of model_before/."""
    macros = {"BATCH_SIZE": 8, "CHECKPOINT_PERIOD": 2, **macros}
    return train("train_demo", output, data, "model_before/vocab.txt", 24, *_SIXTEEN_WIDE, **macros)


# Wider than the texts' rank, latent semantics would be noise.
_NARROW = ["--gin.EncoderConfig.hidden_size=32", "--gin.EncoderConfig.embedding_size=32"]
# Adam divides a gradient that is 0 but for its rounding by its own size: with a small epsilon, processors that round in
# another way give another model after a few steps.
_STEADY = ["--gin.adam.moments=@Moments()", "--gin.Moments.epsilon=1e-3"]
_VOCABULARY = "work/vocabulary/vocab.txt"
ENCODER = [
    train(
        "pretrain_demo",
        "pretrained",
        "work/pack",
        _VOCABULARY,
        64,
        TRAIN_STEPS=20,
        BATCH_SIZE=16,
        CHECKPOINT_PERIOD=10,
        WHITENING_ROWS=256,
    ),
    train(
        "train_demo",
        "trained",
        "work/examples",
        _VOCABULARY,
        48,
        *_STEADY,
        TRAIN_STEPS=20,
        BATCH_SIZE=16,
        CHECKPOINT_PERIOD=10,
        INITIAL_CHECKPOINT_PATH="pretrained",
    ),
    ["export", "--model", "trained", "--output", "weights", "--format=safetensors"],
    ["export", "--model", "trained@10", "--output", "huggingface", "--format=huggingface"],
    ["embed", "--model", "trained", "--input", "newsroom/heldout.jsonl", "--output", "vectors"],
    ["embed", "--model", "weights", "--input", "newsroom/heldout.jsonl", "--output", "vectors.parquet"],
    ["index", "--model", "trained", "--input", "work/clean/articles", "--output", "index"],
    ["search", "--index", "index", "--json", "--count=5", "--mode=vectors", "flood in the river valley"],
    ["cluster", "--index", "index", "--threshold=0.9", "--max_day_gap=1", "--output", "groups.tsv"],
    [
        "evaluate",
        *("--encoder", "tfidf=tfidf", "--encoder", "random=random:trained", "--encoder", "trained=model:trained"),
        *("--suite", "events", "--data", "newsroom/heldout.jsonl", "--suite", "sts", "--data", "newsroom/sts.tsv"),
        *("--cross_publisher", "--output", "evaluation"),
    ],
]
STATIC = [
    train(
        "train_static",
        "static",
        "work/examples",
        _VOCABULARY,
        48,
        *_NARROW,
        *_STEADY,
        TRAIN_STEPS=5,
        BATCH_SIZE=32,
        CHECKPOINT_PERIOD=5,
        WHITENING_ROWS=512,
    ),
    ["export", "--model", "static", "--output", "static_huggingface", "--format=huggingface"],
    ["embed", "--model", "static", "--input", "newsroom/heldout.jsonl", "--output", "static_vectors"],
]
_ARTICLES = "clean_before/articles"
_FIRST_URL = "http://wirelight.example/article/1056"
# Over folders that the code of before wrote: clean_before/, examples_before/, index_before/, model_before/.
BEFORE = [
    ["embed", "--model", "model_before", "--input", _ARTICLES, "--output", "vectors"],
    ["search", "--index", "index_before", "--json", "--count=5", "flood in the river valley"],
    ["search", "--index", "index_before", "--json", "--count=5", _FIRST_URL, "--days=400"],
    _train_again("from_model", "examples_before", TRAIN_STEPS=2, INITIAL_CHECKPOINT_PATH="model_before"),
    # Goes on from step 4, with the optimizer's state and the places in the data.
    _train_again("model_before", "examples_before", TRAIN_STEPS=6, INITIAL_CHECKPOINT_PATH=None),
    ["export", "--model", "model_before@4", "--output", "saved", "--platforms=cpu"],
    ["embed", "--saved_model", "saved", "--input", _ARTICLES, "--output", "saved_vectors"],
    ["index", "--saved_model", "saved", "--input", _ARTICLES, "--output", "index"],
    ["search", "--index", "index", "--json", "--count=5", "--mode=vectors", "election of a mayor"],
    ["vocabulary", "--articles", "clean_before", "--output", "vocabulary", "--size=300", "--direct_num_workers=1"],
    [
        "pack",
        *("--articles", "clean_before", "--vocabulary", "vocabulary", "--output", "pack", "--max_length=32"),
        "--direct_num_workers=1",
    ],
    ["entities", "--articles", "clean_before", "--output", "entities", "--direct_num_workers=1"],
]
