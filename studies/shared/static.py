"""A static model that is written down: a table of vectors and a weight for each word piece, without training.

Shapes: V pieces, D units of the result, H units of the static architecture.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError, counted
from ...formats.arrays import Array
from ...formats.articles import ArticleText
from ...formats.model_folder import ModelFolder
from ...formats.vocabulary import SPECIAL_TOKENS, VocabularyFile
from ...models.encoders.news import EncoderConfig
from ...serving.analysis import base_language

if TYPE_CHECKING:  # TensorFlow Text comes with it
    from ...tasks.vocabulary import Vocabulary

IntArray = npt.NDArray[np.int64]

_SPECIAL_LOGIT: Final = -60.0  # [CLS] and [SEP] count only in a text that has nothing else
_LEAST_WEIGHT: Final = 1e-6  # of the largest: a shorter vector has no direction worth keeping
_LONGEST: Final = 2048  # tokens of a text; there are no positions to learn
_TOPICS: Final = 600
_TOGETHER: Final = 1024  # articles whose texts are in memory at once
_LEAST_TEXTS: Final = 3
_LSA_SIZE: Final = 256
_LSA_LEAD: Final = 64  # as in architectures/static.gin
_MATRIX_TEXTS: Final = 16_384  # more change means and covariances little
LEAST_OF_LANGUAGE: Final = 64  # texts of a language whose means and frequencies count as those of a language
# A piece that the articles have less than a twentieth as often as the texts of the tokenizer belongs to a language of
# which they have little. A language has 2 % of those texts, and one text 400 pieces.
_FOREIGN, _SHARE_OF_LANGUAGE, _PIECES_OF_TEXT = 0.05, 0.02, 400


@dataclasses.dataclass(frozen=True)
class Corpus:
    """How often the pieces of a vocabulary occur in some articles; special tokens never do.

    Attributes:
      counts: of each piece, [V].
      texts: with each piece, and last the number of all, [V + 1].
      of_language: the same for each language of `LEAST_OF_LANGUAGE` texts or more, [L, V + 1].
      terms: sparse [N, V], of the first articles: what each piece counts in the weighted mean of each text, apart from
        the weight of the piece; see `models.attention.term_weights`.
      languages: of these articles, without script and region.
      elsewhere: the share of each piece in the texts of which the tokenizer was learned, [V]; 0 if unknown.
    """

    counts: IntArray
    texts: IntArray
    of_language: IntArray
    terms: Any
    languages: Sequence[str]
    elsewhere: npt.NDArray[np.float64]

    @property
    def rarity(self) -> npt.NDArray[np.float64]:
        """The inverse document frequency of each piece, [V]: scikit-learn's smooth one, ln((1 + n) / (1 + df)) + 1.

        Of several languages it is that of the language that has the piece most often: "the" is in every English text,
        but in a quarter of those of an archive of four languages. In an English archive "der" is as rare as a name; it
        counts as in texts of its own language, as far as the tokenizer tells how frequent it is.
        """
        rows = np.vstack([self.texts, self.of_language])
        shares = ((1 + rows[:, :-1]) / (1 + rows[:, -1:])).max(axis=0)
        foreign = self.counts < _FOREIGN * self.elsewhere * self.counts.sum()
        at_home = -np.expm1(-_PIECES_OF_TEXT / _SHARE_OF_LANGUAGE * self.elsewhere)  # of the texts, by a Poisson law
        return 1 - np.log(np.where(foreign, np.maximum(shares, at_home), shares))


def count_pieces(
    articles: Iterator[ArticleText], vocabulary: "Vocabulary", *, max_length: int, lead_length: int
) -> Corpus:
    """How often each piece occurs in the first `max_length` tokens of some articles."""
    from scipy.sparse import csr_array

    counts, of_language = np.zeros(vocabulary.size, np.int64), dict[str, IntArray]()
    pieces, terms, languages = list[Any](), list[Any](), list[str]()
    for chunk in chunks(articles):
        titles, bodies = [article.title for article in chunk], [article.body for article in chunk]
        for article, row in zip(chunk, vocabulary.encode_documents(titles, bodies, max_length), strict=True):
            own, values = term_counts(row, lead_length)
            np.add.at(counts, row, 1)
            language = base_language(article.language)
            texts = of_language.setdefault(language, np.zeros(vocabulary.size + 1, np.int64))
            texts[own] += 1
            texts[-1] += 1
            if len(own) and len(terms) < _MATRIX_TEXTS:
                pieces.append(own)
                terms.append(values)
                languages.append(language)
    counts[: len(SPECIAL_TOKENS)] = 0
    if not terms:
        raise InputError("no article of the corpus has a word", remedy="Give articles with texts.")
    ends = np.cumsum([0, *map(len, pieces)])
    matrix = csr_array((np.concatenate(terms), np.concatenate(pieces), ends), shape=(len(terms), vocabulary.size))
    known = [name for name, texts in of_language.items() if name and texts[-1] >= LEAST_OF_LANGUAGE]
    each = np.array([of_language[name] for name in sorted(known)], np.int64).reshape(-1, vocabulary.size + 1)
    return Corpus(counts, np.sum([*of_language.values()], axis=0), each, matrix, languages, vocabulary.shares)


def term_counts(row: npt.NDArray[Any], lead_length: int) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The different pieces of a text without special tokens, and what their copies count together.

    A token at position p counts 1 / (1 + p / lead_length), and copies that count s together count ln(1 + s).

    >>> term_counts(np.array([2, 7, 9, 7, 3]), 0)
    (array([7, 9]), array([1.09861229, 0.69314718]))
    """
    places = np.flatnonzero(row >= len(SPECIAL_TOKENS))
    pieces, copies = np.unique(row[places].astype(np.int64), return_inverse=True)
    counts = np.bincount(copies, 1 / (1 + places / lead_length) if lead_length else None)
    return pieces, np.log1p(counts)


def chunks(articles: Iterable[ArticleText]) -> Iterator[list[ArticleText]]:
    """Lists of some of the articles, one after the other."""
    rest = iter(articles)
    while chunk := list(itertools.islice(rest, _TOGETHER)):
        yield chunk


def write_static_model(
    target: str,
    vocabulary: VocabularyFile,
    vectors: Array,
    weights: Array,
    *,
    terms: Any = None,
    lead_length: int,
    max_length: int,
    origin: Mapping[str, Any],
) -> None:
    """Writes the model folder of the weighted mean of `vectors`.

    Args:
      target: the folder.
      vocabulary: of V pieces.
      vectors: [V, D].
      weights: [V], see `static_params`.
      terms: see `static_params`.
      lead_length: a token at position p counts 1 / (1 + p / lead_length); 0: all the same.
      max_length: tokens of a text that the model reads.
      origin: where it comes from, JSON values.
    """
    import flax.linen as nn
    import jax

    from ...learning.model_files import architecture_gin, write_model_files

    config = static_config(len(vectors), vectors.shape[1], num_topics=_TOPICS, lead_length=lead_length)
    init = jax.jit(config.module().init)  # as one program it is compiled in a third of the time
    created = nn.unbox(init(jax.random.key(0), np.ones((1, 2), np.int32)))["params"]
    params = static_params(config, jax.tree.map(np.asarray, created), vectors, weights, terms)
    write_model_files(target, config, vocabulary, max_length)
    ModelFolder(target).write_import(params, architecture_gin(config), origin)


def write_latent_semantics(target: str, vocabulary: str, articles: Iterable[ArticleText], projection: int = 0) -> None:
    """Writes a static model whose vectors are latent semantics of articles (Deerwester et al. 1990).

    Args:
      target: the model folder.
      vocabulary: file of the word pieces.
      articles: of which the singular vectors are computed; as many as `Corpus` keeps.
      projection: size of a random projection of TF-IDF that is appended, with an equal share of the cosine; 0 appends
        none. In a large collection, latent semantics alone hardly distinguish two articles on the same topic.

    Raises:
      InputError: if fewer than three have text.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize
    from threadpoolctl import threadpool_limits

    from ...formats.vocabulary import read_vocabulary
    from ...tasks.vocabulary import Vocabulary
    from ...training import lexical

    corpus = count_pieces(iter(articles), Vocabulary.load(vocabulary), max_length=_LONGEST, lead_length=_LSA_LEAD)
    if (count := corpus.terms.shape[0]) < _LEAST_TEXTS:
        problem = f"got {counted(count, 'article')} with text, expected at least {_LEAST_TEXTS}"
        raise InputError(problem, remedy="Give more articles.")
    weights = corpus.rarity
    words = normalize(corpus.terms.multiply(weights).tocsr())
    size = min(_LSA_SIZE, *(length - 1 for length in words.shape))
    with threadpool_limits(1):  # twice as fast as two threads
        svd = TruncatedSVD(size, n_iter=3, random_state=0).fit(words)
    part = lexical.part_of(weights[:, None] * svd.components_.T, _LSA_LEAD)
    if projection:
        tfidf = lexical.random_projection_of_tfidf(weights, projection, lead_length=_LSA_LEAD)
        part = lexical.joined([part, tfidf], corpus.terms)
    origin = {"latent_semantics_of": count}
    write_static_model(
        target,
        read_vocabulary(vocabulary),
        part.table,
        np.exp(part.logits),
        terms=corpus.terms,
        lead_length=_LSA_LEAD,
        max_length=_LONGEST,
        origin=origin,
    )


def unit_rows(vectors: Array) -> Array:
    """Rows of length 1; rows of zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def weighted_means(terms: Any, weights: Array, vectors: Array) -> Array:
    """The weighted mean of the vectors of the pieces of each text, [N, D]."""
    return terms @ (weights[:, None] * vectors) / (terms @ weights)[:, None]


def static_config(vocab_size: int, size: int, *, num_topics: int, lead_length: int) -> EncoderConfig:
    """The shape of a static model with D = `size`.

    It is one unit wider than its embedding, or two where that is odd: its layer norm removes one direction, and rotary
    positions need an even number. Without layers no positions act.
    """
    return EncoderConfig(
        vocab_size=vocab_size,
        hidden_size=size + 2 - size % 2,
        num_layers=0,
        num_heads=1,
        mlp_size=1,
        max_length=_LONGEST,
        embedding_size=size,
        num_topics=num_topics,
        dropout_rate=0.0,
        norm="pre",
        pooling="weighted",
        embedding_init="t5",
        positions="rotary",
        lead_length=lead_length,
        sublinear=True,
    )


def static_params(
    config: EncoderConfig, created: Mapping[str, Any], vectors: Array, weights: Array, terms: Any
) -> dict[str, Any]:
    """The parameters with which a static model computes the weighted mean of `vectors`.

    The layer norm of the architecture keeps the direction of a vector in the plane of mean 0. An orthonormal basis B
    [H, D] of directions in that plane takes each vector there, its length goes into the weight of the piece, and the
    head takes the mean back: ``sum_i w_i |v_i| (B v_i / |v_i|)^T B = sum_i w_i v_i``.

    Args:
      config: see `static_config`.
      created: the parameters of the architecture as drawn at random; its other heads stay.
      vectors: [V, D].
      weights: [V], positive; those of special tokens are not read.
      terms: sparse [N, V], see `Corpus`: the head subtracts the mean embedding of these texts.
        None: nothing.

    Returns:
      Nested float32 arrays.
    """
    width, size = config.hidden_size, config.embedding_size
    draws = np.random.default_rng(0).normal(size=(width, size))
    basis = np.linalg.qr(np.column_stack([np.ones(width), draws]))[0][:, 1:]
    lengths = np.linalg.norm(vectors, axis=1)
    known = weights * lengths
    known = np.maximum(known, _LEAST_WEIGHT * known.max()) / known.max()
    units = np.where(lengths[:, None] > 0, unit_rows(vectors), np.eye(1, size))
    logits = np.log(known)
    logits[: len(SPECIAL_TOKENS)] = _SPECIAL_LOGIT
    # Of the norm, each vector has the length sqrt(H).
    bias = np.zeros(size) if terms is None else -(width**0.5) * weighted_means(terms, known, units).mean(axis=0)
    return dict(created) | {
        "token_embedding": (units @ basis.T * width**0.5).astype(np.float32),
        "pooling_logits": logits.astype(np.float32),
        "embedding_head": {"kernel": basis.astype(np.float32), "bias": bias.astype(np.float32)},
    }
