"""A map of events: similar events are near each other, and groups of them have the words that set them apart."""

import collections
import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ..analysis import base_language, clean, written
from ..cluster import IntArray
from ..index import DocumentIndex
from ..interface import FloatArray
from .telling import distinct, names

LARGEST: Final = 300  # events of a map
_EVENTS_PER_TOPIC: Final = 12
_MOST_TOPICS: Final = 14
_WORDS: Final = 3  # of a label
_SAMPLE: Final = 20_000  # titles of the index that say how common a word is
_WORD: Final = r"(?u)\b[^\W\d_]{3,}\b"
# What is a word in scripts without spaces, or a piece of one: Han, Katakana and Hangul. Hiragana has mostly endings.
_RUN: Final = re.compile("[\u3005\u3400-\u9fff]{2,}|[\u30a1-\u30fe]{2,}|[\uac00-\ud7a3]{2,}")
_PIECE: Final = 5  # characters of Han at most; longer runs are clauses
_LONGEST: Final = 20  # characters of a word; in Thai, longer ones are clauses
_PERPLEXITY: Final = 15.0
_LEAST_COMMON: Final = 10  # titles; in few titles every word is in a twentieth
_LEAST: Final = 4  # events that have a shape


@dataclasses.dataclass(frozen=True)
class TopicMap:
    """Places and topics of n events.

    Attributes:
      places: float ``[n, 2]``, from 0 to 1.
      topics: ``[n]``, the topic of each event.
      labels: of the topics: names that their articles share, or words of titles.
    """

    places: FloatArray
    topics: IntArray
    labels: tuple[str, ...]


def draw(rows: Sequence[FloatArray], titles: list[list[str]], index: DocumentIndex, texts: Sequence[str]) -> TopicMap:
    """Projects events by t-SNE (van der Maaten and Hinton 2008) and groups them by bisecting k-means.

    The label of a topic has the names that tell its texts from those of the others: those with the largest
    p log(p / q), where p is the share of the topic's texts that have the name and q that of all texts (the name's part
    of the Kullback-Leibler divergence). Where no two texts share a name, as in scripts without capitals, it has words
    of titles by the same measure, q being the share of all titles. Words of more than a twentieth of the titles of a
    language, or of more than half of all texts, are left out: a topic of one language would else be called by its
    "the" and "of".

    Args:
      rows: unit vectors ``[D]`` of n events.
      titles: of the articles of each event.
      index: whose titles say how common a word is.
      texts: of the lead of each event, for names.

    Raises:
      ModuleNotFoundError: if scikit-learn is not installed.
    """
    from sklearn.cluster import BisectingKMeans
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    count = len(rows)
    if count < _LEAST:
        places, topics = np.linspace([0.2, 0.5], [0.8, 0.5], count), np.arange(count)
    else:
        model = TSNE(
            2,
            metric="cosine",
            init="random",
            max_iter=500,
            perplexity=min(_PERPLEXITY, (count - 1) / 3),
            random_state=0,
        )
        centers, number = np.asarray(rows, np.float32), min(_MOST_TOPICS, max(2, count // _EVENTS_PER_TOPIC))
        with threadpool_limits(1):  # so few events take 15 times as long in threads that wait for each other
            places = model.fit_transform(centers)
            # Always the largest group is cut in two, so that none has most events.
            model = BisectingKMeans(number, random_state=0, n_init=3, bisecting_strategy="largest_cluster")
            topics = model.fit_predict(centers)
        low, high = places.min(0), places.max(0)
        places = (places - low) / np.maximum(high - low, 1e-9)
    labels = _labels(titles, topics, index)
    labels = tuple(name or words for name, words in zip(_named(texts, topics), labels, strict=True))
    return TopicMap(np.asarray(places, np.float32), np.asarray(topics, np.int64), labels)


def _named(texts: Sequence[str], topics: IntArray) -> list[str]:
    """The names that set each topic apart, "" where its texts share none."""
    found = [collections.Counter(dict.fromkeys(names(text), 1)) for text in texts]
    overall = sum(found, collections.Counter[str]())
    small = collections.Counter(word for text in texts for word in {*re.findall(_WORD, text)})
    for held in found:  # what is mostly written small is a word of a headline
        for name in [name for name in held if small[name.lower()] > overall[name]]:
            del held[name]
    labels = []
    for topic in range(int(topics.max(initial=-1)) + 1):
        own = np.flatnonzero(topics == topic).tolist()
        counts = sum((found[event] for event in own), collections.Counter[str]())
        weights = {
            name: count / len(own) * math.log(count * len(texts) / len(own) / overall[name])
            for name, count in counts.items()
            if count > 1
        }
        ordered = sorted(weights, key=lambda name: (-weights[name], name))
        labels.append(" · ".join(distinct((name for name in ordered if weights[name] > 0), _WORDS)))
    return labels


def _labels(titles: list[list[str]], topics: IntArray, index: DocumentIndex) -> tuple[str, ...]:
    """A label for each topic."""
    from sklearn.feature_extraction.text import CountVectorizer

    sample = index.documents[:: -(-len(index) // _SAMPLE)]
    vectorizer = CountVectorizer(analyzer=_words)
    try:
        vectorizer.fit([*itertools.chain(*titles)])
    except ValueError:  # no word of three letters in any title
        return ("",) * (int(topics.max(initial=-1)) + 1)
    has_word = vectorizer.transform(document.title for document in sample) > 0
    names, labels = vectorizer.get_feature_names_out(), list[str]()
    shortness = -np.array([*map(len, names)])
    everywhere = np.asarray(has_word.sum(0)).ravel()
    is_common = np.zeros(len(names), bool)
    languages = np.array([base_language(document.language) for document in sample])
    for language in np.unique(languages):
        of_language = np.flatnonzero(languages == language)
        found = np.asarray(has_word[of_language].sum(0)).ravel()
        is_common |= found > max(_LEAST_COMMON, len(of_language) // 20)
    for topic in range(int(topics.max()) + 1):
        own = [title for event in np.flatnonzero(topics == topic) for title in titles[event]]
        inside = np.asarray((vectorizer.transform(own) > 0).sum(0)).ravel()
        share, overall = inside / len(own), np.maximum(everywhere, 1) / len(sample)
        weight = share * np.log(np.maximum(share, 1e-9) / overall)
        weight[is_common] = 0
        best = (str(names[word]) for word in np.lexsort((shortness, -weight)) if weight[word] > 0)
        # By the words of the index, too: in few titles none is common.
        half = len(index) / 2
        telling = (name for name in best if not any(word.frequency > half for word in index.read(name)))
        labels.append(" · ".join(distinct(telling, _WORDS)))
    return tuple(labels)


def _words(title: str) -> Iterator[str]:
    """Words of three letters and more; of a run of Han, all pieces, as no spaces tell where a word ends."""
    for word in written(clean(title).lower()):
        runs = _RUN.findall(word)
        if not runs and 3 <= len(word) <= _LONGEST and not any(map(str.isdigit, word)):
            yield word
        for run in runs:
            sizes = range(2, _PIECE + 1) if "\u3400" <= run[0] <= "\u9fff" else (len(run),)
            yield from {run[place : place + size] for size in sizes for place in range(len(run) - size + 1)}
