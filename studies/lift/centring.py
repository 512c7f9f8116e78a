"""The start of a lift without what its embeddings of an archive have in common.

Encoders such as E5 give all texts a cosine of 0.7 and more. The hybrid adds these cosines to those of words, which are
near 0 for unrelated texts, and the teacher compares them with limits that mean something else for each encoder. Without
their mean, unrelated texts have a cosine near 0 by every start (Mu and Viswanath 2018, "All-but-the-Top"). The texts of
one language have a direction of their own, which puts a text nearer to unrelated texts of its language than to its
translation; an archive of several languages shows these directions, and they are taken out, too (Yang et al. 2021, "A
Simple and Effective Method To Eliminate the Self Language Bias in Multilingual Representations"). Both are changes of
the embedding head, so they cost nothing when the model is used. Words have such directions, too: of the table of the
lexical part they are taken out.

The directions of languages that an archive lacks are shown by ten reports of one sentence in 25 languages
(``reports.json``). All languages tell the same, so few texts suffice.

Shapes: N texts, H units of the transformer, D of its embedding, L languages, V word pieces, K units of their table.
"""

import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...formats.arrays import Array
from ...formats.articles import ArticleText
from ...formats.files import packaged
from ...serving.analysis import base_language
from ...serving.model import Model
from ..shared.static import LEAST_OF_LANGUAGE, Corpus, unit_rows

if TYPE_CHECKING:
    from ...training.lexical import LexicalPart

MOST_ARTICLES: Final = 256  # of a language; their mean is known to a sixteenth of the spread of one article
_REPORT_LENGTH: Final = 96  # tokens
_LEAST_FOUND: Final = 0.9  # of the reports in a language that a model knows


def sampled(articles: Iterable[ArticleText]) -> list[ArticleText]:
    """The `MOST_ARTICLES` of each language with the lowest ids, which are digests and so a random sample."""
    found = collections.defaultdict[str, list[ArticleText]](list)
    for article in sorted(articles, key=lambda article: article.doc_id):
        of_language = found[base_language(article.language)]
        if not article.is_empty and len(of_language) < MOST_ARTICLES:
            of_language.append(article)
    return [article for language in sorted(found) for article in found[language]]


def centred_head(model: Model, articles: Sequence[ArticleText], max_length: int) -> Mapping[str, Array]:
    """Returns the embedding head of a model, kernel [H, D] and bias [D], for which the articles have the mean 0.

    Args:
      model: with an embedding head that has no activation.
      articles: of an archive, see `sampled`.
      max_length: tokens of each that are read.
    """
    vectors = _unscaled(
        model, [article.title for article in articles], [article.body for article in articles], max_length
    )
    return _without(model, *_directions(vectors, [base_language(article.language) for article in articles]))


def head_without_languages(model: Model) -> Mapping[str, Array] | None:
    """Returns the embedding head of a model without what tells apart the languages of ``reports.json`` that it knows.

    It knows a language if its reports and those in English find each other, apart from the means of both languages.
    The result is None for a model that does not know most of them, or whose embedding head has an activation.
    """
    if model.config.embedding_activation != "identity":  # a direction before it is none behind it
        return None
    reports, length = _reports(), min(_REPORT_LENGTH, model.text_length)
    texts = [text for of_language in reports.values() for text in of_language]
    vectors = _unscaled(model, [""] * len(texts), texts, length).reshape(len(reports), len(reports["en"]), -1)
    means = vectors.mean(axis=1)
    rest = [unit_rows(part) for part in vectors - means[:, None]]
    cosines = [part @ rest[list(reports).index("en")].T for part in rest]
    right = np.arange(len(reports["en"]))
    found = [np.mean([one.argmax(axis=0) == right, one.argmax(axis=1) == right]) for one in cosines]
    known = means[np.array(found) >= _LEAST_FOUND]
    if len(known) <= len(reports) / 2:
        return None
    return _without(model, np.zeros(means.shape[1]), _between(known)[1])


def _reports() -> Mapping[str, Sequence[str]]:
    """Reports by language, in the same order in each."""
    return json.loads(packaged(__package__, "reports.json"))


def _without(model: Model, mean: Array, directions: Array) -> Mapping[str, Array]:
    """The embedding head of a model without a mean, [D], and orthogonal unit vectors, [L - 1, D]."""
    head = model.params["embedding_head"]
    kernel, bias = (part - part @ directions.T @ directions for part in (head["kernel"], head["bias"] - mean))
    return {"kernel": kernel.astype(np.float32), "bias": bias.astype(np.float32)}


def words_without_languages(words: "LexicalPart", corpus: Corpus) -> "LexicalPart":
    """The lexical part without what tells apart the languages of the corpus, whose pieces it knows."""
    from ...training.lexical import part_of

    vectors = words.vectors
    own = _directions(unit_rows(corpus.terms @ vectors), corpus.languages)[1]
    return part_of(vectors - vectors @ own.T @ own, words.lead_length) if len(own) else words


def _directions(vectors: Array, languages: Sequence[str]) -> tuple[Array, Array]:
    """The mean of the means of languages, [D], and orthogonal unit vectors that span what separates them, [L - 1, D].

    Args:
      vectors: of articles, [N, D].
      languages: of each; one of fewer than `LEAST_OF_LANGUAGE` articles has no mean of its own.
    """
    names = np.array(languages)
    means = [
        vectors[names == name].mean(axis=0)
        for name, count in collections.Counter(languages).items()
        if count >= LEAST_OF_LANGUAGE
    ] or [vectors.mean(axis=0)]
    return _between(np.stack(means))


def _between(means: Array) -> tuple[Array, Array]:
    """The mean of means, [L, D] -> [D], and orthogonal unit vectors that span what separates them, [L - 1, D]."""
    mean = means.mean(axis=0)
    return mean, np.linalg.svd(means - mean, full_matrices=False)[2][: len(means) - 1]


def _unscaled(model: Model, titles: Sequence[str], bodies: Sequence[str], max_length: int) -> Array:
    """The embeddings before they are scaled to length 1, [N, D].

    One more unit, which is 1 before scaling, tells by how much each was scaled.
    """
    from ...serving.encoder import JaxEncoder
    from ...serving.rows import HEAD

    head = model.params["embedding_head"]
    wider = {"kernel": np.pad(head["kernel"], ((0, 0), (0, 1))), "bias": np.append(head["bias"], np.float32(1))}
    config = dataclasses.replace(model.config, embedding_size=model.config.embedding_size + 1)
    changed = dataclasses.replace(model, config=config, params={**model.params, "embedding_head": wider})
    encoder = JaxEncoder(changed, max_length=max_length, long_documents=HEAD)
    vectors = encoder.encode(titles, bodies)
    return vectors[:, :-1].astype(np.float64) / vectors[:, -1:]
