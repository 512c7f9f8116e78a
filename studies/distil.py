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
  newsembed distil --model minilm --output hybrid --size 256 --lexical_size 768 --articles articles.jsonl
  newsembed distil --model minilm --output trained --vocabulary work/vocabulary/vocab.txt --words 30000 --work work \
      --train_steps 60
  newsembed index --model small/model --input articles.jsonl --output small/index
"""

import dataclasses
import functools
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats import files
from ..formats.arrays import Array, read_folder, write_folder
from ..formats.articles import ArticleText, read_articles
from ..formats.command_line import Options, option, required, several
from ..formats.folders import locked
from ..formats.model_folder import ModelFolder
from ..formats.remote import local_folder
from ..formats.vocabulary import (
    CLS_ID,
    CONTINUATION,
    SEP_ID,
    VOCABULARY_FILE,
    VocabularyFile,
    read_vocabulary,
    vocabulary_bytes,
)
from .shared.mining import build_folder
from .shared.runs import run_command
from .shared.static import chunks, count_pieces, unit_rows, weighted_means, write_static_model
from .shared.steps import Command, claim, once, train_model, write_examples

if TYPE_CHECKING:  # TensorFlow Text comes with it
    from ..tasks.vocabulary import Vocabulary


CORPUS_WEIGHTS: Final = ("sif", "idf")  # need counts
WEIGHTS: Final = (*CORPUS_WEIGHTS, "zipf", "none")
_SMOOTHING: Final = 1e-4  # a of a / (a + p), as Model2Vec has it
_RIDGE: Final = 1e-3  # of the mean variance
_LEAST_COUNT: Final = 3  # a rarer word is a misspelling as often as a name
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
        choices=WEIGHTS,
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
    gin: tuple[str, ...] = several("bindings for runs/train_static.gin", "NAME=VALUE")


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
        articles = options.articles or (options.work and f"{build_folder(options.work, ('clean',))}/clean/articles")
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
        from ..serving.encoder import read_description

        model, options = read_description(local_folder(self.options.model)), self.options
        width = model.config.embedding_size
        if options.size > width:
            problem = f"got {options.size}, expected at most the width of the model's embeddings, {width}"
            raise InputError(problem, path=options.model, field="--size", remedy="Give a smaller size.")
        needed = {"words": options.words > 0, "weights": self.kind_of_weights in CORPUS_WEIGHTS}
        if self.articles is None and (names := [name for name, needs in needed.items() if needs]):
            problem = f"{getattr(options, names[0])} needs counts of a corpus"
            raise InputError(problem, field=f"--{names[0]}", remedy="Give --articles or --work.")
        if options.gin and not options.train_steps:
            raise InputError("nothing is trained", field="--gin", remedy="Give --train_steps, too, or leave this out.")
        if options.train_steps and options.work is None:
            raise InputError("training needs pairs", field="--train_steps", remedy="Give --work, a finished build.")
        if options.words and read_vocabulary(options.vocabulary or model.vocabulary_path).tokenizer is not None:
            problem = "words cannot be added to the imported tokenizer of this model"
            remedy = "Give a vocabulary of newsembed, such as --vocabulary work/vocabulary/vocab.txt."
            raise InputError(problem, path=options.model, field="--words", remedy=remedy)

    def _write_vocabulary(self, target: str) -> None:
        """Writes the pieces of the result: those of the vocabulary, and the most frequent other words of the corpus."""
        from ..serving.encoder import read_description

        source = read_vocabulary(
            self.options.vocabulary or read_description(local_folder(self.options.model)).vocabulary_path
        )
        if self.options.words:
            more = frequent_words(read_articles(self.articles or ""), self.options.words, source.pieces)
            raw = vocabulary_bytes([*source.pieces, *more])
            source = VocabularyFile(source.path, raw, source.size + len(more), None)
        for name, content in source.files.items():
            files.write_whole(f"{target}/{name}", content)

    @functools.cached_property
    def _vocabulary(self) -> "Vocabulary":
        from ..tasks.vocabulary import Vocabulary

        return Vocabulary.load(f"{self.folder('vocabulary')}/{VOCABULARY_FILE}")

    def _vector_folders(self) -> list[str]:
        return [self.folder(f"vectors-{start}") for start in range(0, self._vocabulary.size, _TOGETHER)]

    def _write_vectors(self) -> None:
        """Embeds the pieces, a folder of them at a time; folders that are there stay."""
        folders = self._vector_folders()
        if all(map(os.path.isdir, folders)):
            return
        from ..serving.encoder import load_encoder

        encoder, vocabulary = load_encoder(local_folder(self.options.model), progress=True), self._vocabulary
        is_own = vocabulary.digest == encoder.vocabulary.digest
        rows = piece_rows(encoder.vocabulary, vocabulary.pieces, is_own=is_own, max_length=encoder.max_length)
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
        weights = piece_weights(self.kind_of_weights, vocabulary.size, **counts)
        vectors = distilled(vectors, options.size, terms, weights, whitening=options.whitening)
        if options.lexical_size:
            # Of length 1 about: the cosines of texts are those of TF-IDF, up to about 1 / sqrt(D).
            shape, scale = (len(vectors), options.lexical_size), options.lexical_size**-0.5
            units = np.random.default_rng(0).normal(scale=scale, size=shape)
            share = options.lexical_share
            vectors = beside(terms, weights, [(vectors, 1 - share), (units, share)])
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


def principal_components(vectors: Array, size: int, *, whitening: float = 0.0) -> Array:
    """The directions of the largest variance of some vectors, divided by powers of their standard deviations.

    Args:
      vectors: [N, E].
      size: D, E at most.
      whitening: the power: 0 leaves the components as they are, 1 gives all of them the same variance. The strongest
        directions of an encoder tell frequent pieces from rare ones, and hide the differences of texts.

    Returns:
      float64 [E, D], the strongest first: ``(vectors - mean) @ result`` are the components. A direction that hardly
      varies is noise, and is not made larger than one with 0.001 of the mean variance.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    strongest = np.argsort(variances)[::-1][:size]
    kept = np.maximum(variances[strongest], _RIDGE * variances.mean())
    return directions[:, strongest] * kept ** (-whitening / 2)


def distilled(vectors: Array, size: int, terms: Any, weights: Array, *, whitening: float) -> Array:
    """The principal components of the vectors of all pieces, [V, E] -> [V, D].

    Model2Vec, van Dongen and Tulkens 2024, https://github.com/MinishLab/model2vec.

    Args:
      vectors: [V, E].
      size: D, E at most.
      terms: sparse [N, V], see `studies.shared.static.Corpus`: the components are those of these texts. None: those of
        the pieces, each row of length 1.
      weights: [V].
      whitening: see `principal_components`.
    """
    centred = vectors - vectors.mean(axis=0)
    if terms is None:
        return unit_rows(centred @ principal_components(vectors, size, whitening=whitening))
    units = unit_rows(centred)
    return units @ principal_components(weighted_means(terms, weights, units), size, whitening=whitening)


def beside(terms: Any, weights: Array, parts: Sequence[tuple[Array, float]]) -> Array:
    """Several vectors of each piece as one, so that each part has its share of the variance of texts.

    Args:
      terms: sparse [N, V], see `studies.shared.static.Corpus`; None takes the variance of the pieces.
      weights: [V].
      parts: vectors [V, D of the part], and the share of the part.
    """
    scaled = []
    for vectors, share in parts:
        means = vectors if terms is None else weighted_means(terms, weights, vectors)
        scaled.append(vectors * (share / means.var(axis=0).sum()) ** 0.5)
    return np.hstack(scaled)


def piece_weights(kind: str, pieces: int, *, counts: Array | None = None, texts: Array | None = None) -> Array:
    """The weight of every piece, float64 [V]: a frequent one tells little.

    Smooth inverse frequencies are those of Arora, Liang and Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence
    Embeddings".

    Args:
      kind: "sif", a / (a + p), where p is the share of the piece among all tokens of a corpus; "zipf", the same where p
        is proportional to 1 / (rank + 2) for ranks from 0; "idf", ln((1 + n) / (1 + df)) + 1 as in scikit-learn; or
        "none", 1.
      pieces: V.
      counts: of each piece in the corpus, [V]; for "sif".
      texts: of the corpus with each piece, [V], and last the number of all, so [V + 1]; for "idf".
    """
    if kind == "none":
        return np.ones(pieces)
    if kind == "idf" and texts is not None:
        return np.log((1 + texts[-1]) / (1 + texts[:-1])) + 1
    if kind == "zipf" or counts is None:
        counts = 1.0 / np.arange(2, pieces + 2)
    shares = counts / max(counts.sum(), 1)
    return _SMOOTHING / (_SMOOTHING + shares)


def frequent_words(articles: Iterator[ArticleText], count: int, known: Collection[str]) -> list[str]:
    """The most frequent words of some articles that are not pieces yet, at most `count`; ties in the order of letters.

    Words are what newsembed's own tokenizer cuts into pieces. Those that occur less than 3 times are left out.
    """
    from ..tasks.vocabulary import normalize_for_learning

    counts: Counter[str] = Counter()
    for chunk in chunks(articles):
        for text in normalize_for_learning([part for article in chunk for part in (article.title, article.body)]):
            counts.update(text.split(" "))
    known = {*known, ""}
    found = [(-number, word) for word, number in counts.items() if number >= _LEAST_COUNT and word not in known]
    return [word for _, word in sorted(found)[:count]]


def piece_rows(
    own: "Vocabulary", pieces: Sequence[str], *, is_own: bool, max_length: int
) -> list[npt.NDArray[np.int32]]:
    """The row by which an encoder reads each piece, ``[CLS] … [SEP]``, int32.

    A piece that the encoder knows is its id. Another one is cut by the encoder's tokenizer, without the mark of its
    vocabulary that it continues a word.

    Args:
      own: the encoder's vocabulary.
      pieces: to be read.
      is_own: whether they are those of `own`, in its order.
      max_length: of a row.
    """
    ids = {piece: token for token, piece in enumerate(own.pieces)} if own.tokenizer is None else {}
    known = range(len(pieces)) if is_own else [ids.get(piece) for piece in pieces]
    rows: list[Any] = [None if token is None else np.array([CLS_ID, token, SEP_ID], np.int32) for token in known]
    others = [number for number, row in enumerate(rows) if row is None]
    texts = [pieces[number].removeprefix(CONTINUATION) or pieces[number] for number in others]
    for number, row in zip(others, own.encode_documents(texts, [""] * len(texts), max_length), strict=True):
        rows[number] = row
    return rows
