"""The parts of a diagnosis as JSON values.

``{"missing": reason}`` replaces a part, or the entry of an encoder in it, that cannot be made.
"""

import collections
import dataclasses
import datetime
import itertools
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError
from ...evaluation.diagnostics import geometry, neighbors, pairs, projection, redundancy
from ...evaluation.diagnostics.articles import Collection
from ...evaluation.diagnostics.attention import attention_by_tag, tag_tokens
from ...evaluation.diagnostics.projection import Method
from ...evaluation.encoders import Embeddings, Encoder, encode_checked
from ...evaluation.events import EventDocument
from ...evaluation.suites import versions
from ...tasks import parts_of_speech

if TYPE_CHECKING:
    from ...serving.encoder import JaxEncoder
    from ...serving.probe import Probed

_TITLE = 160  # characters of a title that are shown
_HISTOGRAM_BINS = 50
_UNLABELLED = "no article has a value for {}"
_NOT_OURS = "only model: and random: encoders give access to their tokens"

Section = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line may change; see its help."""

    neighbors: int
    max_pairs: int
    probed: int
    tags: str | None
    language: str
    projection: Method
    cache: str | None
    seed: int


def diagnose(
    makers: Mapping[str, Callable[[], Encoder]], specs: Mapping[str, str], collection: Collection, options: Options
) -> dict[str, Any]:
    """The whole report as JSON values.

    Args:
      makers: of the encoders, by name.
      specs: how each was specified.
      collection: the articles.
      options: see `Options`.

    Raises:
      InputError: if an encoder cannot be loaded or its embeddings have NaN; if the chosen tagger or projection is not
        available.
    """
    documents = [article.document for article in collection.articles]
    probed = _draw(len(documents), options.probed, options.seed)
    embeddings: dict[str, Embeddings] = {}
    facts: dict[str, Section] = {}
    tokens: dict[str, Probed] = {}
    models: dict[str, JaxEncoder] = {}
    for name, make in makers.items():
        try:
            encoder = make()
            encoded = encode_checked(encoder, documents, options.cache)
        except InputError as error:
            raise InputError(error.problem, path=error.path, field=f"encoder {name}", remedy=error.remedy) from error
        embeddings[name] = encoded.embeddings
        facts[name] = {
            "spec": specs[name],
            "digest": encoder.digest,
            "dimensions": int(encoded.embeddings.shape[1]),
            "zero_vectors": int((np.asarray(abs(encoded.embeddings).sum(axis=1)).reshape(-1) == 0).sum()),
        }
        if (model := _model_of(encoder)) is not None:
            models[name], tokens[name] = model, _probe(model, [documents[place] for place in probed])
    sections = {
        "neighbors": neighbors_section(embeddings, collection, options.neighbors),
        "similarities": similarities_section(embeddings, collection.articles, options),
        "geometry": geometry_section(embeddings, collection.articles, options),
        "attention": attention_section(models, tokens, [collection.articles[place] for place in probed], options),
        "redundancy": redundancy_section(embeddings, tokens),
        "repetition": repetition_section([collection.articles[place] for place in probed], options),
        "map": map_section(embeddings, collection.articles, options),
    }
    return {
        "written_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": versions(),
        "options": dataclasses.asdict(options),
        "articles": _articles(collection, len(probed)),
        "encoders": facts,
        "sections": sections,
    }


def neighbors_section(embeddings: Mapping[str, Embeddings], collection: Collection, k: int) -> Section:
    """The nearest articles of every query, and the share of neighbors that two encoders have in common."""
    articles = collection.articles
    found = {name: neighbors.nearest(matrix, collection.queries, k) for name, matrix in embeddings.items()}
    rows = []
    for line, place in enumerate(collection.queries):
        query = articles[place]
        near = {
            name: [
                _neighbor(query, articles[other], float(cosine))
                for other, cosine in zip(places[line], cosines[line], strict=True)
            ]
            for name, (places, cosines) in found.items()
        }
        rows.append(_article(query) | {"neighbors": near})
    shared = [
        {"encoders": [one, other], "shared": neighbors.shared_neighbors(embeddings[one], embeddings[other], k)}
        for one, other in itertools.combinations(embeddings, 2)
    ]
    counted = min(k, len(articles) - 1)
    return {"k": counted, "by_chance": counted / (len(articles) - 1), "shared": shared, "queries": rows}


def similarities_section(
    embeddings: Mapping[str, Embeddings], articles: Sequence[EventDocument], options: Options
) -> Section:
    """Cosines of pairs of each kind by every encoder.

    Number, mean, quantiles, area under the ROC curve against random pairs, and histogram.
    """
    drawn = pairs.draw_pairs(articles, options.max_pairs, options.seed)
    absent = {}
    if pairs.PairKind.SAME_EVENT not in drawn:
        absent[pairs.PairKind.SAME_EVENT] = _why_no_pairs(articles, "event")
    if pairs.PairKind.SAME_TOPIC not in drawn:
        absent[pairs.PairKind.SAME_TOPIC] = _why_no_pairs(articles, "topic")
    found = {}
    for name, matrix in embeddings.items():
        kinds = pairs.similarities(matrix, drawn)
        low = min(0.0, *(float(kind.cosines.min()) for kind in kinds.values()))
        edges = np.linspace(math.floor(low * 10) / 10, 1.0, _HISTOGRAM_BINS + 1)
        found[name] = {"edges": [round(float(edge), 6) for edge in edges]} | {
            "kinds": {
                str(kind): {
                    "pairs": len(values.cosines),
                    "mean": values.mean,
                    "quantiles": list(values.quantiles),
                    "auc": values.auc,
                    "counts": np.histogram(np.clip(values.cosines, edges[0], 1.0), edges)[0].tolist(),
                }
                for kind, values in kinds.items()
            }
        }
    return {"absent": {str(kind): reason for kind, reason in absent.items()}, "encoders": found}


def geometry_section(
    embeddings: Mapping[str, Embeddings], articles: Sequence[EventDocument], options: Options
) -> Section:
    """Alignment over same-event pairs and uniformity over all articles, by encoder."""
    same = pairs.draw_pairs(articles, options.max_pairs, options.seed).get(pairs.PairKind.SAME_EVENT)
    rows = {
        name: {
            "alignment": None if same is None else geometry.alignment(matrix, same),
            "uniformity": geometry.uniformity(matrix),
        }
        for name, matrix in embeddings.items()
    }
    absent = {} if same is not None else {"alignment": _why_no_pairs(articles, "event")}
    return {"absent": absent, "pairs": 0 if same is None else len(same), "encoders": rows}


def attention_section(
    models: "Mapping[str, JaxEncoder]",
    tokens: "Mapping[str, Probed]",
    articles: Sequence[EventDocument],
    options: Options,
) -> Section:
    """Attention by part of speech, by encoder of ours."""
    if not models:
        return {"missing": _NOT_OURS}
    try:
        tagger = parts_of_speech.load_tagger(options.tags)
    except parts_of_speech.UnavailableError as error:
        return {"missing": str(error)}
    languages = [article.language or options.language for article in articles]
    known = [place for place, language in enumerate(languages) if tagger.knows(language)]
    unknown = collections.Counter(language or "none named" for language in languages if not tagger.knows(language))
    if not known:
        shown = ", ".join(f"{language} ({count})" for language, count in unknown.most_common())
        spoken = ", ".join(tagger.languages or ())
        return {
            "missing": f"{tagger.name} knows {spoken}; the articles' languages: {shown}. --language sets the "
            "language of articles that do not name theirs"
        }
    longest = max(model.max_length for model in models.values())
    tagged = {place: _tagged(tagger, articles[place], languages[place], longest) for place in known}
    found = {name: _attention(model, tokens[name], tagged) for name, model in models.items()}
    return {"tagger": tagger.name, "languages_left_out": dict(unknown), "documents": len(known), "encoders": found}


def redundancy_section(embeddings: Mapping[str, Embeddings], tokens: "Mapping[str, Probed]") -> Section:
    """Redundancy of texts and of token vectors by length, for model: and random: encoders."""
    if not tokens:
        return {"missing": _NOT_OURS}
    found: dict[str, Section] = {}
    for name in tokens:
        bins = redundancy.redundancy_by_length(tokens[name].tokens, tokens[name].similarity)
        found[name] = (
            {"bins": [dataclasses.asdict(row) for row in bins]}
            if bins
            else {"missing": "no document has two word pieces"}
        )
    return {"encoders": found, "without": [name for name in embeddings if name not in tokens]}


def repetition_section(articles: Sequence[EventDocument], options: Options) -> Section:
    """How often articles repeat their nouns and verbs, by length."""
    try:
        tagger = parts_of_speech.load_tagger(options.tags)
    except parts_of_speech.UnavailableError as error:
        return {"missing": str(error)}
    if tagger.lemmas is None:
        return {"missing": f"{tagger.name} gives no lemmas"}
    counts, values = [], []
    for article in articles:
        language = article.language or options.language
        if tagger.knows(language):
            found = [row for text in (article.title, article.body) for row in tagger.lemmas(text, language)]
            counts.append(sum(any(map(str.isalnum, word)) for word, _, _ in found))
            values.append(
                redundancy.word_repetition(
                    [row[2] for row in found if row[1] in parts_of_speech.NOUNS | parts_of_speech.VERBS]
                )
            )
    bins = redundancy.repetition_by_length(counts, values)
    if not bins:
        return {"missing": f"no article with nouns or verbs in a language that {tagger.name} knows"}
    return {"tagger": tagger.name, "documents": len(counts), "bins": [dataclasses.asdict(row) for row in bins]}


def map_section(embeddings: Mapping[str, Embeddings], articles: Sequence[EventDocument], options: Options) -> Section:
    """The map of every encoder, and the labels that colour it."""
    if len(articles) < projection.FEWEST:
        return {"missing": f"{len(articles)} articles, and a map needs at least {projection.FEWEST}"}
    maps = {
        name: projection.project(matrix, options.projection, options.seed).round(4).tolist()
        for name, matrix in embeddings.items()
    }
    labels = [label for label in ("topic", "language", "event") if any(getattr(article, label) for article in articles)]
    absent = {label: _UNLABELLED.format(label) for label in ("topic", "language", "event") if label not in labels}
    return {
        "method": options.projection,
        "labels": labels,
        "absent": absent,
        "articles": [_article(article) for article in articles],
        "encoders": maps,
    }


def _tagged(
    tagger: parts_of_speech.Tagger, article: EventDocument, language: str, longest: int
) -> list[parts_of_speech.Word]:
    """The words of title and body, at most as many as the encoder reads tokens, so that long articles cost no more."""
    return [
        word
        for text in (article.title, article.body)
        for word in tagger.tag(parts_of_speech.first_words(text, longest), language)
    ]


def _attention(model: "JaxEncoder", probed: "Probed", tagged: Mapping[int, Sequence[parts_of_speech.Word]]) -> Section:
    if probed.attention and not len(probed.attention[0]):
        return {"missing": "a model of no layers has no attention"}
    received, tags, kept = [], [], []
    for place, own in tagged.items():
        pieces = model.vocabulary.encode_texts([word for word, _ in own])
        found = tag_tokens(probed.tokens[place], own, pieces)
        if found is not None:
            received.append(probed.attention[place])
            tags.append(found[0])
            kept.append([tag for _, tag in own[: found[1]]])
    unmatched = len(tagged) - len(received)
    if not received:
        return {"missing": f"the words of none of {len(tagged)} articles are the encoder's words"}
    rows = [
        {
            "tag": row.tag,
            "words": row.words,
            "tokens": row.tokens,
            "attention": list(row.attention),
            "lift": list(row.lift),
            "per_word": list(row.per_word),
        }
        for row in attention_by_tag(received, tags, kept)
    ]
    return {
        "documents": len(received),
        "unmatched": unmatched,
        "layers": len(received[0]),
        "pooling": getattr(model.model.config, "pooling", None),
        "tags": rows,
    }


def _model_of(encoder: Encoder) -> "JaxEncoder | None":
    """The model behind a benchmark's encoder, where it is one of ours in JAX and has attention to show."""
    from ...models.encoders import Capability
    from ...serving.encoder import JaxEncoder, load_encoder
    from ...serving.interface import DocumentEncoder
    from ...serving.static import StaticEncoder

    inner = encoder.encoder if isinstance(encoder, DocumentEncoder) else None
    if isinstance(inner, StaticEncoder):
        inner = load_encoder(inner.folder, inner.step, max_length=inner.max_length)
    if not isinstance(inner, JaxEncoder) or Capability.ATTENTION not in inner.model.config.capabilities:
        return None
    return inner


def _probe(model: "JaxEncoder", documents: Sequence[Any]) -> "Probed":
    from ...serving.probe import probe

    return probe(model, [document.title for document in documents], [document.body for document in documents])


def _draw(count: int, limit: int, seed: int) -> list[int]:
    """Places of at most ``limit`` of ``count`` articles, in order."""
    if count <= limit:
        return list(range(count))
    return sorted(np.random.default_rng(seed).choice(count, limit, replace=False).tolist())


def _article(article: EventDocument) -> Section:
    title = article.title.strip() or article.body.strip()
    return {
        "id": article.id,
        "title": title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…",
        "topic": article.topic,
        "language": article.language,
        "event": article.event,
    }


def _neighbor(query: EventDocument, other: EventDocument, cosine: float) -> Section:
    return _article(other) | {
        "cosine": cosine,
        "same_event": bool(query.event) and query.event == other.event,
        "same_topic": bool(query.topic) and query.topic == other.topic,
    }


def _why_no_pairs(articles: Sequence[EventDocument], field: str) -> str:
    values = [getattr(article, field) for article in articles if getattr(article, field)]
    if not values:
        return _UNLABELLED.format(field)
    if len(set(values)) == len(values):
        return f"no two articles share their {field}"
    return f"all articles that share their {field} share their event"


def _articles(collection: Collection, probed: int) -> Section:
    articles = collection.articles
    languages = collections.Counter(article.language or "none named" for article in articles)
    return {
        "read": collection.read,
        "empty": collection.empty,
        "kept": len(articles),
        "probed": probed,
        "events": len({article.event for article in articles if article.event}),
        "topics": len({article.topic for article in articles if article.topic}),
        "languages": dict(languages.most_common()),
    }
