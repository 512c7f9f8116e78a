"""Small sets in the shape of XTREME's, which an encoder can learn in a hundred steps, and a small encoder."""

import json
import random

import jax
import jax.numpy as jnp
import numpy as np
from drawn_parameters import write_model
from flax import linen as nn
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.models.encoders import EncoderConfig

FILLERS = [f"w{number}" for number in range(12)]
RELATIONS = {"yes": "entailment", "maybe": "neutral", "no": "contradiction"}
TAGS = {"dog": "NOUN", "cat": "NOUN", "runs": "VERB", "sleeps": "VERB", "the": "DET", "red": "ADJ"}
ANSWERS = {"colour": ["red", "blue", "green"], "number": ["one", "two", "three"], "animal": ["dog", "cat", "cow"]}
NAMES = {"alice": "PER", "bob": "PER", "paris": "LOC", "rome": "LOC", "acme": "ORG", "globex": "ORG"}
WORDS = sorted({*FILLERS, *RELATIONS, *TAGS, *NAMES, *ANSWERS, *(word for words in ANSWERS.values() for word in words)})


def write_sets(folder, *, languages=("en", "de"), train=160, test=24):
    """A folder as `download_data.sh` makes it, with labels in the test files."""
    drawn = random.Random(0)
    for language in languages:
        for part, count in (("train", train), ("dev", test), ("test", test)):
            if part != "train" or language == "en":
                write(folder / "xnli" / f"{part}-{language}.tsv", "".join(_relation(drawn) for _ in range(count)))
                write(folder / "pawsx" / f"{part}-{language}.tsv", "".join(_paraphrase(drawn) for _ in range(count)))
                write(folder / "udpos" / f"{part}-{language}.tsv", "\n".join(_tagged(drawn) for _ in range(count)))
                write(folder / "panx" / f"{part}-{language}.tsv", "\n".join(_named(drawn) for _ in range(count)))
        write_questions(folder / "xquad" / f"xquad.{language}.json", drawn, test)
        write_questions(folder / "mlqa/MLQA_V1/test" / f"test-context-{language}-question-{language}.json", drawn, test)
        write_questions(folder / "tydiqa/tydiqa-goldp-v1.1-dev" / f"tydiqa.goldp.{language}.dev.json", drawn, test)
    write_questions(folder / "squad" / "train-v1.1.json", drawn, train)
    write_questions(folder / "tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.en.train.json", drawn, train)
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _some(drawn, count):
    return " ".join(drawn.choices(FILLERS, k=count))


def _relation(drawn):
    word = drawn.choice([*RELATIONS])
    return f"{_some(drawn, 3)}\t{_some(drawn, 2)} {word}\t{RELATIONS[word]}\n"


def _paraphrase(drawn):
    word = drawn.choice(["yes", "no"])
    return f'"{_some(drawn, 2)} ""{word}"""\t{_some(drawn, 3)}\t{int(word == "yes")}\n'


def _tagged(drawn):
    return "".join(f"{word}\t{TAGS[word]}\n" for word in drawn.choices([*TAGS], k=5))


def _named(drawn):
    lines = []
    for _ in range(3):
        name = drawn.choice([*NAMES])
        lines += [f"{drawn.choice(FILLERS)}\tO", f"{name}\tB-{NAMES[name]}"]
        lines += [f"{name}\tI-{NAMES[name]}"] * drawn.randrange(2)
    return "\n".join(lines) + "\n"


def write_questions(path, drawn, count):
    """Which word of a kind is in a text?"""
    paragraphs = []
    for number in range(count):
        chosen = {kind: drawn.choice(words) for kind, words in ANSWERS.items()}
        words = [*chosen.values(), *drawn.choices(FILLERS, k=6)]
        drawn.shuffle(words)
        context, kind = " ".join(words), drawn.choice([*ANSWERS])
        answer = {"text": chosen[kind], "answer_start": context.index(chosen[kind])}
        question = {"id": f"{path.stem}-{number}", "question": kind, "answers": [answer]}
        paragraphs.append({"context": context, "qas": [question]})
    write(path, json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))


def write_encoder(folder, *, seed=0, **shape):
    """A model folder with parameters as drawn."""
    pieces = [*SPECIAL_TOKENS, *WORDS, *'"']
    shape = {"hidden_size": 32, "num_layers": 1, "num_heads": 2, "mlp_size": 64, "embedding_size": 8} | shape
    config = EncoderConfig(len(pieces), max_length=48, num_topics=1, **shape)
    params = config.module().init(jax.random.key(seed), jnp.zeros((1, 2), jnp.int32))["params"]
    return write_model(folder, config, pieces, 48, jax.tree.map(np.asarray, nn.meta.unbox(params)))
