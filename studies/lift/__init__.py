r"""Continues a public checkpoint on the pairs that a build has mined, and evaluates both.

The outcome is a hybrid encoder (`models.encoders.hybrid`): the checkpoint, which reads for meaning, and a lexical part,
which knows the names, places and numbers of the corpus. In order:

1. import: the checkpoint becomes a model folder (`newsembed import-hf`); of a model folder, the result of a lift
   included, the transformer is copied;
2. examples: the mined triplets in the checkpoint's word pieces (`newsembed examples`);
3. words: a static model is trained on them from latent semantics (`runs/train_static.gin`), and TF-IDF of all articles
   is projected at random;
4. teacher: which articles are near to each other, by TF-IDF and the checkpoint's embeddings together;
5. layers: the checkpoint learns to find the articles that the teacher calls near, and the positives of the triplets,
   among all articles (`runs/lift_distillation.gin`);
6. untrained: the checkpoint and the words as one model, to compare with;
7. model: the trained layers and the words as one model. It reads longer texts than the checkpoint, in windows.

Without --start there are only steps 2 and 3, in the word pieces of the build, and the result is a static model: any
language, no checkpoint.

Every step is a folder in --output. The same command continues where it stopped. With --suite, all of these models and
TF-IDF are evaluated.

example:
  newsembed lift --start minilm --work work --output lifted
  newsembed lift --start bge-small-en-v1.5 --work work --output lifted --suite events=heldout.jsonl --cross_publisher
  newsembed lift --work work --output words
  newsembed index --model lifted/model --input articles.jsonl --output lifted/index
"""

import argparse
import os
import sys

from ...errors import InputError
from ..shared import arguments
from .conduct import RECIPES, Lift, Settings

_DEFAULT = Settings()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed lift``."""
    parser.add_argument(
        "--start",
        metavar="DIR",
        help="a Hugging Face folder or minilm (see import-hf), or a model folder, also of a lift; without it, the "
        "result is the words alone, a static model from nothing, and the options of layers are not read",
    )
    parser.add_argument("--work", required=True, metavar="DIR", help="folder of a finished `newsembed build`")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for all steps; the result is in model/")
    integers = (
        ("words_steps", "N", "steps of the static model; 0 leaves it out"),
        (
            "projection_size",
            "N",
            "numbers of a random projection of TF-IDF next to the static model; 0 leaves it out",
        ),
        ("train_steps", "N", "steps of the layers; 0 leaves them as they are"),
        ("batch_size", "N", "pairs or triplets in a step of the layers"),
        (
            "train_length",
            "TOKENS",
            "tokens of a text that the layers read while they train, if the start has so many",
        ),
        ("context_length", "TOKENS", "tokens of a text that the layers of the result read"),
        ("max_length", "TOKENS", "tokens of a text that the lexical part of the result reads"),
    )
    arguments.add_numbers(parser, _DEFAULT, int, *integers)
    shares = (
        ("learning_rate", "peak learning rate of the layers"),
        ("teacher_share", "share of TF-IDF in the teacher's similarity, from 0 to 1; the rest is the checkpoint's"),
        ("words_share", "share of the lexical part in the cosine, between 0 and 1"),
        (
            "average",
            "share of the trained weights in the result's layers, above 0 to 1; the rest is the start's",
        ),
    )
    arguments.add_numbers(parser, _DEFAULT, float, *((name, "X", text) for name, text in shares))
    _add_layers(parser)
    arguments.add_repeated(parser, "--gin", "NAME=VALUE", "a binding for the run file of the layers")
    arguments.add_suite_arguments(parser)


def _add_layers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trained_layers",
        type=int,
        default=_DEFAULT.trained_layers,
        metavar="N",
        help="layers from the top that the distillation trains; the number of all layers, or more, trains the "
        "embeddings too (default: the upper half, which takes a third less time)",
    )
    parser.add_argument(
        "--recipe",
        choices=RECIPES,
        default=_DEFAULT.recipe,
        help="how the layers are trained: by a teacher and the triplets, or by the triplets and their negatives alone "
        f"(default: {_DEFAULT.recipe})",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
      0, or the exit code of the step that failed.

    Raises:
      InputError: for options out of range, a folder that is not a build or not a model, and an output of another lift.
    """
    arguments.require_positive(args, "batch_size", "train_length", "context_length", "max_length")
    for suite in args.suite:
        if "=" not in suite:
            raise InputError(f"got {suite!r}", field="--suite", remedy="write SUITE=PATH, such as events=heldout.jsonl")
    names = [field for field in vars(_DEFAULT) if hasattr(args, field)]
    settings = Settings(**{name: getattr(args, name) for name in names if name != "gin"}, gin=tuple(args.gin))
    lift = Lift(args.start, args.work, os.path.abspath(args.output), settings)
    code = lift.run() or lift.evaluate(args.suite, cross_publisher=args.cross_publisher)
    if code == 0:
        print(f"the lifted model: {args.output.rstrip('/')}/model", file=sys.stderr)
    return code
