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

import dataclasses
import functools
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import InputError
from ...formats import files
from ...formats.arrays import read_folder, write_folder
from ...formats.articles import read_articles
from ...formats.command_line import Options, option, required
from ...formats.folders import locked
from ...formats.model_folder import ModelFolder
from ...formats.remote import local_folder
from ...formats.vocabulary import VOCABULARY_FILE, VocabularyFile, read_vocabulary, vocabulary_bytes
from ..shared.mining import build_folder
from ..shared.runs import run_command
from ..shared.static import count_pieces, write_static_model
from ..shared.steps import Command, claim, once, train_model, write_examples
from . import table

if TYPE_CHECKING:  # TensorFlow Text comes with it
    from ...tasks.vocabulary import Vocabulary

_TOGETHER: Final = 8192  # pieces in one folder of vectors
_PATHS: Final = ("model", "vocabulary", "articles", "work")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistilOptions(Options):
    """The options of ``newsembed distil``."""

    model: str = required("the encoder: any model folder or safetensors export", metavar="DIR")
    output: str = required("folder for all steps; the result is in model/", metavar="DIR", local=True)
    vocabulary: str | None = option(
        None, "vocab.txt of the result, of any tokenizer (default: the encoder's)", metavar="FILE"
    )
    articles: str | None = option(
        None, "a corpus, for weights, components and words (default: the articles of --work)", metavar="FILE|DIR"
    )
    work: str | None = option(None, "folder of a finished `newsembed build`, to train on its triplets", metavar="DIR")
    size: int = option(256, "principal components of the encoder's vectors", ge=1)
    words: int = option(0, "frequent words of the corpus that become pieces, with newsembed's own tokenizer", ge=0)
    weights: str | None = option(
        None,
        "of pieces: smooth inverse frequency or inverse document frequency in the corpus, by rank in the vocabulary "
        "(Zipf's law), or none (default: sif with a corpus, otherwise zipf)",
        choices=table.WEIGHTS,
    )
    whitening: float = option(
        1.0,
        "power of the standard deviations by which components are divided; 1: all vary the same",
        ge=0,
        le=1,
    )
    lexical_size: int = option(0, "random units to add to them", ge=0)
    lexical_share: float = option(0.85, "share of the random units in the variance of texts", gt=0, lt=1)
    lead_length: int = option(
        256, "a token at position p counts 1 / (1 + p / TOKENS); 0: all the same", ge=0, metavar="TOKENS"
    )
    max_length: int = option(1024, "tokens of a text that the result reads", ge=1)
    train_steps: int = option(0, "steps on the triplets; 0 trains nothing", ge=0)
    batch_size: int = option(256, "triplets in a step", ge=1)
    gin: tuple[str, ...] = option(
        (), "bindings for runs/train_static.gin", metavar="NAME=VALUE", many=True, repeated=True
    )


OPTIONS: Final = DistilOptions


def run(options: DistilOptions) -> int:
    """Runs the command; returns 0, or the exit code of the step that failed."""
    with locked(os.path.abspath(options.output)):
        code = Distillation(options).run()
    if code == 0:
        print(f"the distilled model: {options.output.rstrip('/')}/model", file=sys.stderr)
    return code


class Distillation:
    """The steps of a distillation: each is a folder that is made once.

    Args:
      options: of the command.
      command: runs a command of newsembed and returns its exit code.
    """

    def __init__(self, options: DistilOptions, command: Command = run_command) -> None:
        articles = options.articles or (options.work and f"{options.work.rstrip('/')}/clean/articles")
        # With articles pieces weigh by their counts, without by their ranks.
        self.kind_of_weights = options.weights or ("sif" if articles else "zipf")
        self.options, self.articles, self.command = options, articles, command
        self.output = os.path.abspath(options.output)

    def folder(self, step: str) -> str:
        """The folder of a step."""
        return f"{self.output}/{step}"

    def run(self) -> int:
        """Makes what is not there yet; returns 0, or the exit code of the command that failed."""
        self._check()
        options = self.options
        work = build_folder(options.work) if options.train_steps and options.work else None
        asked = dataclasses.asdict(options) | {"articles": self.articles, "work": work and options.work}
        del asked["output"]
        claim(self.output, "distil.json", asked, _PATHS, study="distillation")
        once(self.folder("vocabulary"), self._write_vocabulary)
        self._write_vectors()
        if work is None:
            return once(self.folder("model"), self._write_model)
        once(self.folder("untrained"), self._write_model)
        place = f"{self.folder('vocabulary')}/{VOCABULARY_FILE}"
        return write_examples(self.command, work, place, self.folder("examples")) or self._train(place)

    def _check(self) -> None:
        """Refuses options that need something else before anything is written."""
        from ...serving.encoder import read_description

        model, options = read_description(local_folder(self.options.model)), self.options
        width = model.config.embedding_size
        if options.size > width:
            problem = f"got {options.size}, expected at most the width of the model's embeddings, {width}"
            raise InputError(problem, path=options.model, field="--size", remedy="Give a smaller size.")
        needed = {"words": options.words > 0, "weights": self.kind_of_weights in table.CORPUS_WEIGHTS}
        if self.articles is None and (names := [name for name, needs in needed.items() if needs]):
            problem = f"{getattr(options, names[0])} needs counts of a corpus"
            raise InputError(problem, field=f"--{names[0]}", remedy="Give --articles or --work.")
        if options.train_steps and options.work is None:
            raise InputError("training needs pairs", field="--train_steps", remedy="Give --work, a finished build.")
        if options.words and read_vocabulary(options.vocabulary or model.vocabulary_path).tokenizer is not None:
            problem = "words cannot be added to the imported tokenizer of this model"
            remedy = "Give a vocabulary of newsembed, such as --vocabulary work/vocabulary/vocab.txt."
            raise InputError(problem, path=options.model, field="--words", remedy=remedy)

    def _write_vocabulary(self, target: str) -> None:
        """Writes the pieces of the result: those of the vocabulary, and the most frequent other words of the corpus."""
        from ...serving.encoder import read_description

        source = read_vocabulary(
            self.options.vocabulary or read_description(local_folder(self.options.model)).vocabulary_path
        )
        if self.options.words:
            more = table.frequent_words(read_articles(self.articles or ""), self.options.words, source.pieces)
            raw = vocabulary_bytes([*source.pieces, *more])
            source = VocabularyFile(source.path, raw, source.size + len(more), None)
        for name, content in source.files.items():
            files.write_whole(f"{target}/{name}", content)

    @functools.cached_property
    def _vocabulary(self) -> "Vocabulary":
        from ...tasks.vocabulary import Vocabulary

        return Vocabulary.load(f"{self.folder('vocabulary')}/{VOCABULARY_FILE}")

    def _vector_folders(self) -> list[str]:
        return [self.folder(f"vectors-{start}") for start in range(0, self._vocabulary.size, _TOGETHER)]

    def _write_vectors(self) -> None:
        """Embeds the pieces, a folder of them at a time; folders that are there stay."""
        folders = self._vector_folders()
        if all(map(os.path.isdir, folders)):
            return
        from ...serving.encoder import load_encoder

        encoder, vocabulary = load_encoder(local_folder(self.options.model), progress=True), self._vocabulary
        is_own = vocabulary.digest == encoder.vocabulary.digest
        rows = table.piece_rows(encoder.vocabulary, vocabulary.pieces, is_own=is_own, max_length=encoder.max_length)
        for start, folder in zip(range(0, len(rows), _TOGETHER), folders, strict=True):

            def write(target: str, start: int = start) -> None:
                part = rows[start : start + _TOGETHER]
                names = [str(start + number) for number in range(len(part))]
                write_folder(target, iter([(names, encoder.encode_tokens(part))]), encoder.dimensions)

            once(folder, write)

    def _write_model(self, target: str) -> None:
        """Writes the static model that computes the weighted mean of the vectors of the pieces."""
        options, vocabulary = self.options, self._vocabulary
        vectors = np.concatenate([read_folder(path) for path in self._vector_folders()])
        terms, counts = None, dict[str, Any]()
        lengths = {"max_length": options.max_length, "lead_length": options.lead_length}
        if self.articles is not None:
            found = count_pieces(read_articles(self.articles), vocabulary, **lengths)
            terms, counts = found.terms, {"counts": found.counts, "texts": found.texts}
        weights = table.piece_weights(self.kind_of_weights, vocabulary.size, **counts)
        vectors = table.distilled(vectors, options.size, terms, weights, whitening=options.whitening)
        if options.lexical_size:
            parts = [(vectors, 1 - options.lexical_share)]
            parts.append((table.random_units(len(vectors), options.lexical_size), options.lexical_share))
            vectors = table.beside(terms, weights, parts)
        places, asked = (*_PATHS, "output"), dataclasses.asdict(options)
        origin = {"distilled_from": os.path.basename(os.path.abspath(options.model))}
        origin |= {name: value for name, value in asked.items() if name not in places}
        write_static_model(target, vocabulary.file(), vectors, weights, terms=terms, origin=origin, **lengths)

    def _train(self, vocabulary: str) -> int:
        """Trains the untrained model on the examples."""
        start, options = self.folder("untrained"), self.options
        values = {
            "DATA_DIR": self.folder("examples"),
            "VOCABULARY_PATH": vocabulary,
            "INITIAL_CHECKPOINT_PATH": start,
            "TRAIN_STEPS": options.train_steps,
            "BATCH_SIZE": options.batch_size,
            "MIXTURE_OR_TASK_NAME": "triplets",
            "TEXT_LENGTH": options.max_length,
            "WHITENING_ROWS": 0,
            "LATENT_SEMANTICS": False,
        }
        gin_files = ["runs/train_static.gin", ModelFolder(start).architecture_file]
        return train_model(self.command, self.folder("model"), gin_files, values, options.gin)
