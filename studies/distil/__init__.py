r"""Makes a small and fast static model from any encoder: a table of vectors, and a weight for each word piece.

Every piece of the vocabulary is passed through the encoder. The principal components of these vectors are the table of
a static model, and rare pieces weigh more than frequent ones (Model2Vec). An embedding then is a weighted mean, which
takes no layers. With --words, the most frequent words of a corpus are pieces too. With --lexical_size, random units
are added to the distilled ones, which keeps names apart that the encoder confuses. With --train_steps,
the model continues on the pairs that a build has mined.

Every step is a folder in --output; the result is in model/. The same command continues where it stopped.

example, with a checkpoint that import-hf converted:
  newsembed import-hf --from minilm --output minilm
  newsembed distil --model minilm --output small
  newsembed distil --model minilm --output small --size 256 --lexical_size 768 --articles articles.jsonl
  newsembed distil --model minilm --output small --vocabulary work/vocabulary/vocab.txt --words 30000 --work work \
      --train_steps 60
  newsembed index --model small/model --input articles.jsonl --output small/index
"""

import argparse
import os
import sys

from ..shared import arguments
from .conduct import Distillation, Settings
from .table import WEIGHTS

_DEFAULT = Settings()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed distil``."""
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="the encoder: any model folder or safetensors export"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for all steps; the result is in model/")
    parser.add_argument(
        "--vocabulary", metavar="FILE", help="vocab.txt of the result, of any tokenizer (default: the encoder's)"
    )
    parser.add_argument(
        "--articles",
        metavar="FILE|DIR",
        help="a corpus, for weights, components and words (default: the articles of --work)",
    )
    parser.add_argument(
        "--work", metavar="DIR", help="folder of a finished `newsembed build`, to train on its triplets"
    )
    integers = (
        ("size", "D", "principal components of the encoder's vectors"),
        ("words", "N", "frequent words of the corpus that become pieces, with newsembed's own tokenizer"),
        ("lexical_size", "D", "random units to add to them"),
        ("lead_length", "TOKENS", "a token at position p counts 1 / (1 + p / TOKENS); 0: all the same"),
        ("max_length", "TOKENS", "tokens of a text that the result reads"),
        ("train_steps", "N", "steps on the triplets; 0 trains nothing"),
        ("batch_size", "N", "triplets in a step"),
    )
    arguments.add_numbers(parser, _DEFAULT, int, *integers)
    shares = (
        ("whitening", "power of the standard deviations by which components are divided; 1: all vary the same"),
        ("lexical_share", "share of the random units in the variance of texts"),
    )
    arguments.add_numbers(parser, _DEFAULT, float, *((name, "X", text) for name, text in shares))
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        help="of pieces: smooth inverse frequency or inverse document frequency in the corpus, by rank in the "
        "vocabulary (Zipf's law), or none (default: sif with a corpus, otherwise zipf)",
    )
    arguments.add_repeated(parser, "--gin", "NAME=VALUE", "a binding for runs/train_static.gin")


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
      0, or the exit code of the step that failed.

    Raises:
      InputError: for options out of range or that do not fit the model, and an output of another distillation.
    """
    arguments.require_positive(args, "size", "max_length", "batch_size")
    names = [name for name in vars(_DEFAULT) if name != "gin"]
    settings = Settings(**{name: getattr(args, name) for name in names}, gin=tuple(args.gin))
    articles = args.articles or (args.work and f"{args.work.rstrip('/')}/clean/articles")
    distillation = Distillation(
        args.model, os.path.abspath(args.output), settings, args.vocabulary, articles, args.work
    )
    code = distillation.run()
    if code == 0:
        print(f"the distilled model: {args.output.rstrip('/')}/model", file=sys.stderr)
    return code
