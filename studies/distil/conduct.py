"""The steps of a distillation: each is a folder that is made once."""

import dataclasses
import functools
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...formats import files
from ...formats.articles import read_articles
from ...formats.embeddings import read_folder, write_folder
from ...formats.model_folder import ModelFolder
from ...formats.vocabulary import VOCABULARY_FILE, VocabularyFile, read_vocabulary, vocabulary_bytes
from ..shared import corpus
from ..shared.mining import build_folder
from ..shared.static import write_static_model
from ..shared.steps import Command, absolute, claim, once, run_command, train_model, write_examples
from . import pieces, table

if TYPE_CHECKING:  # TensorFlow Text comes with it
    from ...tasks.vocabulary import Vocabulary

_SETTINGS: Final = "distil.json"
_TOGETHER: Final = 8192  # pieces in one folder of vectors
_ROW: Final = 256  # tokens of a text in training


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of a distillation, see ``newsembed distil --help``."""

    size: int = 256
    words: int = 0
    weights: str | None = None
    whitening: float = 1.0
    lexical_size: int = 0
    lexical_share: float = 0.85
    lead_length: int = 256
    max_length: int = 1024
    train_steps: int = 0
    batch_size: int = 256
    gin: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("words", self.words >= 0, "0 or more"),
            ("whitening", 0 <= self.whitening <= 1, "a number from 0 to 1"),
            ("lexical_size", self.lexical_size >= 0, "0 or more"),
            ("lexical_share", 0 < self.lexical_share < 1, "a number between 0 and 1"),
            ("lead_length", self.lead_length >= 0, "0 or more"),
            ("train_steps", self.train_steps >= 0, "0 or more"),
        ):
            if not fits:
                value = getattr(self, name)
                raise InputError(f"got {value}, expected {expected}", field=f"--{name}", remedy="see distil --help")


@dataclasses.dataclass(frozen=True)
class Distillation:
    """One distillation.

    Attributes:
      model: the folder of the encoder.
      output: absolute.
      settings: the options.
      vocabulary: path of another vocabulary; None for the encoder's.
      articles: path of the corpus; None: there is none.
      work: of a build, whose triplets train the result; None where nothing is trained.
      command: runs a command of newsembed and returns its exit code.
    """

    model: str
    output: str
    settings: Settings
    vocabulary: str | None = None
    articles: str | None = None
    work: str | None = None
    command: Command = run_command

    def folder(self, step: str) -> str:
        """The folder of a step."""
        return f"{self.output}/{step}"

    def run(self) -> int:
        """Makes what is not there yet; returns 0, or the exit code of the command that failed.

        Raises:
          InputError: for options that do not fit the model, and folders that do not fit.
        """
        self._check()
        work = build_folder(self.work) if self.settings.train_steps and self.work else None
        asked = {name: path and absolute(path) for name, path in self._inputs().items()}
        asked |= dataclasses.asdict(self.settings) | {"gin": list(self.settings.gin)}
        claim(self.output, _SETTINGS, asked, study="distillation")
        once(self.folder("vocabulary"), self._write_vocabulary)
        self._write_vectors()
        if work is None:
            return once(self.folder("model"), self._write_model)
        once(self.folder("untrained"), self._write_model)
        vocabulary = f"{self.folder('vocabulary')}/{VOCABULARY_FILE}"
        examples = self.folder("examples")
        return write_examples(self.command, work, vocabulary, examples, row_length=_ROW) or self._train(vocabulary)

    @property
    def kind_of_weights(self) -> str:
        """The kind of weights: with articles by their counts, without by the ranks of the pieces."""
        return self.settings.weights or ("sif" if self.articles else "zipf")

    def _inputs(self) -> dict[str, str | None]:
        return {
            "model": self.model,
            "vocabulary": self.vocabulary,
            "articles": self.articles,
            "work": self.work if self.settings.train_steps else None,
        }

    def _check(self) -> None:
        """Refuses options that need something else before anything is written.

        Raises:
          InputError: naming the option.
        """
        from ...serving.checkpoint import read_description

        config, vocabulary_path, _, _ = read_description(self.model)
        width, settings = config.embedding_size, self.settings
        if settings.size > width:
            problem = f"got {settings.size}, expected at most the width of the model's embeddings, {width}"
            raise InputError(problem, path=self.model, field="--size", remedy="Give a smaller size.")
        needed = {"words": settings.words > 0, "weights": self.kind_of_weights in table.CORPUS_WEIGHTS}
        for name, needs_counts in needed.items():
            if needs_counts and self.articles is None:
                problem = f"{getattr(settings, name)} needs counts of a corpus"
                raise InputError(problem, field=f"--{name}", remedy="Give --articles or --work.")
        if settings.train_steps and self.work is None:
            raise InputError("training needs pairs", field="--train_steps", remedy="Give --work, a finished build.")
        if settings.words and read_vocabulary(self.vocabulary or vocabulary_path).tokenizer is not None:
            problem = "words cannot be added to the imported tokenizer of this model"
            remedy = "Give a vocabulary of newsembed, such as --vocabulary work/vocabulary/vocab.txt."
            raise InputError(problem, path=self.model, field="--words", remedy=remedy)

    def _write_vocabulary(self, target: str) -> None:
        """Writes the pieces of the result: those of the vocabulary, and the most frequent other words of the corpus."""
        from ...serving.checkpoint import read_description

        source, words = read_vocabulary(self.vocabulary or read_description(self.model)[1]), self.settings.words
        if words:
            more = pieces.frequent_words(read_articles(self.articles or ""), words, source.pieces)
            source = VocabularyFile(
                source.path, vocabulary_bytes([*source.pieces, *more]), source.size + len(more), None
            )
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

        encoder, vocabulary = load_encoder(self.model, progress=True), self._vocabulary
        is_own = vocabulary.digest == encoder.vocabulary.digest
        rows = pieces.piece_rows(encoder.vocabulary, vocabulary.pieces, is_own=is_own, max_length=encoder.max_length)
        for start, folder in zip(range(0, len(rows), _TOGETHER), folders, strict=True):
            part = rows[start : start + _TOGETHER]
            names = [str(start + number) for number in range(len(part))]

            def write(target: str, part: list[Any] = part, names: list[str] = names) -> None:
                write_folder(target, iter([(names, encoder.encode_tokens(part))]), encoder.dimensions)

            once(folder, write)

    def _write_model(self, target: str) -> None:
        """Writes the static model that computes the weighted mean of the vectors of the pieces."""
        settings, vocabulary = self.settings, self._vocabulary
        vectors = np.concatenate([read_folder(path) for path in self._vector_folders()])
        found = None
        if self.articles is not None:
            lengths = {"max_length": settings.max_length, "lead_length": settings.lead_length}
            found = corpus.count_pieces(read_articles(self.articles), vocabulary, **lengths)
        counts = {} if found is None else {"counts": found.counts, "texts": found.texts}
        weights = table.piece_weights(self.kind_of_weights, vocabulary.size, **counts)
        terms = None if found is None else found.terms
        vectors = distilled_vectors(vectors, weights, terms, settings)
        write_static_model(
            target,
            vocabulary.file(),
            vectors,
            weights,
            terms=terms,
            lead_length=settings.lead_length,
            max_length=settings.max_length,
            origin={"distilled_from": os.path.basename(os.path.abspath(self.model)), **dataclasses.asdict(settings)},
        )

    def _train(self, vocabulary: str) -> int:
        """Trains the untrained model on the examples."""
        start, settings = self.folder("untrained"), self.settings
        values = {
            "DATA_DIR": self.folder("examples"),
            "VOCABULARY_PATH": vocabulary,
            "INITIAL_CHECKPOINT_PATH": start,
            "TRAIN_STEPS": settings.train_steps,
            "BATCH_SIZE": settings.batch_size,
            "MIXTURE_OR_TASK_NAME": "triplets",
            "TEXT_LENGTH": settings.max_length,
            "WHITENING_ROWS": 0,
            "LATENT_SEMANTICS": False,
        }
        gin_files = ["runs/train_static.gin", ModelFolder(start).architecture_file]
        return train_model(self.command, self.folder("model"), gin_files, values, settings.gin)


def distilled_vectors(
    vectors: npt.NDArray[Any], weights: npt.NDArray[Any], terms: Any, settings: Settings
) -> npt.NDArray[Any]:
    """The vector of each piece in the result: from the encoder, followed by random units if asked for.

    Args:
      vectors: of the encoder, [V, E].
      weights: [V].
      terms: sparse [N, V], see `corpus.Corpus`: the principal components are those of these texts. None: those of the
        pieces.
      settings: the options.

    Returns:
      [V, size + lexical_size].
    """
    if terms is None:
        result = table.distilled(vectors, settings.size, whitening=settings.whitening)
    else:
        result = table.distilled_for(terms, weights, vectors, settings.size, whitening=settings.whitening)
    if not settings.lexical_size:
        return result
    random = table.random_units(len(vectors), settings.lexical_size)
    share = settings.lexical_share
    return table.beside(terms, weights, [(result, 1 - share), (random, share)])
