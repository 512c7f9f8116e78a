"""The parts of a diagnosis: what each computes from the encoders, and how it is shown.

A part, or the entry of an encoder in it, that cannot be made gives the reason.
"""

import collections
import dataclasses
import functools
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import InputError, counted
from ...evaluation import similarity
from ...evaluation import tokens as of_tokens
from ...evaluation.encoders import Embeddings, Encoder, encode_checked
from ...evaluation.events import Collection, EventDocument
from ...formats.model_folder import ONNX_FILE, ModelFolder
from ...tasks import parts_of_speech
from ..shared.charts import BESIDE, DASHES, SERIES, make_axes, svg_of
from ..shared.pages import Block, Cell, Heading, Included, Missing, Part, Plot, Table
from . import DiagnoseOptions

if TYPE_CHECKING:
    from ...serving.encoder import JaxEncoder, Probed

_TITLE: Final = 160  # characters of a title that are shown
_BINS: Final = 50  # of a histogram
_PAIRS: Final = 20_000  # of each kind
_PROBED: Final = 300  # articles that encoders of ours read token by token
_COLOURED: Final = 8  # labels of a map with a colour of their own
_SIDE, _RADIUS = 420, 3.2  # of a map and its dots, in SVG units
_UNLABELLED: Final = "no article has a value for {}"
_NOT_OURS: Final = "only model: and random: encoders give access to their tokens"
_LABELS: Final = ("topic", "language", "event")


class _MissingError(Exception):
    """Why something cannot be made."""


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What the parts are made of.

    Attributes:
      options: of the command.
      collection: the articles.
      embeddings: by encoder.
      models: those of the encoders that are ours in JAX.
      probed: places of the articles that these read token by token.
      tokens: what these saw, by encoder.
    """

    options: DiagnoseOptions
    collection: Collection
    embeddings: Mapping[str, Embeddings]
    models: "Mapping[str, JaxEncoder]" = dataclasses.field(default_factory=dict)
    probed: Sequence[int] = ()
    tokens: "Mapping[str, Probed]" = dataclasses.field(default_factory=dict)

    @property
    def articles(self) -> Sequence[EventDocument]:
        """All articles."""
        return self.collection.articles

    @functools.cached_property
    def pairs(self) -> Mapping[similarity.PairKind, Any]:
        """Pairs of articles, by kind."""
        return similarity.draw_pairs(self.articles, _PAIRS, self.options.seed)

    @functools.cached_property
    def tagger(self) -> parts_of_speech.Tagger:
        """The tagger of parts of speech."""
        return parts_of_speech.load_tagger(self.options.tags)

    def language(self, place: int) -> str:
        """The language of an article, or that of those which do not name theirs."""
        return self.articles[place].language or self.options.language

    def parts(self) -> Iterator[Part]:
        """All parts, each when it is made; one that cannot be made gives the reason."""
        for part in PARTS:
            title, _, note = (part.__doc__ or "").partition(".\n")
            blocks = _made(functools.partial(part, self))
            yield Part(part.__name__.removesuffix("_part"), title, blocks, " ".join(note.split()))


def diagnose(
    makers: Mapping[str, Callable[[], Encoder]], collection: Collection, options: DiagnoseOptions
) -> tuple[Diagnosis, dict[str, str]]:
    """Embeds the articles; returns what the parts are made of, and a line about each encoder."""
    from ...serving.encoder import probe

    documents = [article.document for article in collection.articles]
    probed, embeddings, facts, models, tokens = sample(len(documents), options.seed), {}, {}, {}, {}
    for name, make in makers.items():
        try:
            encoder = make()
            found = encode_checked(encoder, documents, options.cache).embeddings
        except InputError as error:
            raise InputError(error.problem, path=error.path, field=f"encoder {name}", remedy=error.remedy) from error
        embeddings[name] = found
        print(f"{name}: {counted(len(documents), 'article')} embedded", file=sys.stderr)
        zeros = int((np.asarray(abs(found).sum(axis=1)).reshape(-1) == 0).sum())
        empty = f", {zeros:,} vectors of zeros" if zeros else ""
        facts[name] = f"{found.shape[1]:,} dimensions{empty}, {encoder.digest[:24]}"
        if (model := _model_of(encoder)) is not None:
            read = [documents[place] for place in probed]
            models[name] = model
            tokens[name] = probe(model, [one.title for one in read], [one.body for one in read])
    return Diagnosis(options, collection, embeddings, models, probed, tokens), facts


def sample(count: int, seed: int, most: int = _PROBED) -> list[int]:
    """Places of at most ``most`` of ``count`` articles, in order."""
    drawn = np.random.default_rng(seed).choice(count, most, replace=False) if count > most else np.arange(count)
    return sorted(drawn.tolist())


def _model_of(encoder: Encoder) -> "JaxEncoder | None":
    """The model behind a benchmark's encoder, where it is one of ours in JAX and has attention to show."""
    from ...models.encoders import Capability
    from ...serving.encoder import JaxEncoder, load_encoder
    from ...serving.interface import DocumentEncoder, TokenizedEncoder

    inner: Any = encoder.encoder if isinstance(encoder, DocumentEncoder) else None
    if isinstance(inner, TokenizedEncoder) and not isinstance(inner, JaxEncoder):
        files = ModelFolder(inner.model.folder)
        if os.path.isfile(os.path.join(files.path, ONNX_FILE)):
            return None
        step = None if files.is_exported else inner.model.step
        inner = load_encoder(files.path, step, max_length=inner.max_length)
    if not isinstance(inner, JaxEncoder) or Capability.ATTENTION not in inner.model.config.capabilities:
        return None
    return inner


def _made(make: Callable[[], Iterator[Block]]) -> list[Block]:
    try:
        return list(make())
    except (_MissingError, parts_of_speech.UnavailableError) as error:
        return [Missing(str(error))]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _title(article: EventDocument) -> str:
    title = article.title.strip() or article.body.strip()
    return title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"


def _labels(article: EventDocument) -> str:
    return " · ".join(text for text in (article.id, article.language, article.topic, article.event) if text)


def neighbors_part(made: Diagnosis) -> Iterator[Block]:
    """Neighbors side by side.

    The articles with the highest cosine, by encoder. In common: the share of an article's nearest articles on which
    two encoders agree, as a mean over all articles.
    """
    articles, queries = made.articles, made.collection.queries
    k = min(made.options.neighbors, len(articles) - 1)
    shared = [
        (f"{one} and {two}", similarity.shared_neighbors(made.embeddings[one], made.embeddings[two], k))
        for one, two in itertools.combinations(made.embeddings, 2)
    ]
    if shared:
        by_chance = _number(k / (len(articles) - 1))
        rows = [[names, _number(share), by_chance] for names, share in shared]
        yield Table(["encoders", "neighbors in common", "by chance"], rows)
    nearest = {name: similarity.nearest(matrix, queries, k) for name, matrix in made.embeddings.items()}
    for line, place in enumerate(queries):
        query = articles[place]
        found: list[list[str | Cell]] = [[str(rank)] for rank in range(1, k + 1)]
        for at, near in nearest.values():
            for row, other, cosine in zip(found, at[line], near[line], strict=True):
                row.append(_neighbor(query, articles[other], cosine))
        yield Heading(Cell(_title(query), language=query.language, note=_labels(query)))
        yield Table(["", *nearest], found)


def _neighbor(query: EventDocument, other: EventDocument, cosine: float) -> Cell:
    is_same = {name: getattr(query, name) == getattr(other, name) != "" for name in ("event", "topic")}
    marks = ", ".join(f"same {name}" for name, same in is_same.items() if same)
    text = f"{_number(cosine)} {_title(other)}" + (f" [{marks}]" if marks else "")
    return Cell(text, language=other.language, note=_labels(other))


def _no_pairs(made: Diagnosis, kind: similarity.PairKind, field: str) -> Iterator[Block]:
    """Why there are no pairs of articles with one value of a field."""
    if kind not in made.pairs:
        has_values = any(getattr(article, field) for article in made.articles)
        yield Missing(f"{kind}: {'no two articles are' if has_values else _UNLABELLED.format(field)}")


def similarities_part(made: Diagnosis) -> Iterator[Block]:
    """Similarities of pairs.

    Cosines of two articles. Random: any two articles. Nearer than random: the probability that such a pair has a
    higher cosine than a random pair (area under the ROC curve).
    """
    yield from _no_pairs(made, similarity.PairKind.SAME_EVENT, "event")
    yield from _no_pairs(made, similarity.PairKind.SAME_TOPIC, "topic")
    quantiles = ("5th percentile", "median", "95th percentile")
    for name, matrix in made.embeddings.items():
        kinds = similarity.similarities(matrix, made.pairs)
        low = min(0.0, *(float(kind.cosines.min()) for kind in kinds.values()))
        edges = np.linspace(math.floor(low * 10) / 10, 1.0, _BINS + 1)
        rows = [
            [str(kind), f"{len(one.cosines):,}", *map(_number, (one.mean, *one.quantiles, one.auc))]
            for kind, one in kinds.items()
        ]
        yield Heading(name)
        yield Plot(histograms(name, edges, {str(kind): one.cosines for kind, one in kinds.items()}))
        yield Table(["pairs", "number", "mean cosine", *quantiles, "nearer than random"], rows)


def histograms(title: str, edges: Any, cosines: Mapping[str, Any]) -> str:
    """Outlined histograms of cosines of several kinds over one axis, each of area 1."""
    figure, place = make_axes(7.2, 2.6)
    for (name, values), colour, dashes in zip(cosines.items(), SERIES, itertools.cycle(DASHES), strict=False):
        density = np.histogram(np.clip(values, edges[0], edges[-1]), edges, density=True)[0]
        place.stairs(density, edges, color=colour, linestyle=dashes, linewidth=1.6, label=name)
        place.stairs(density, edges, fill=True, color=colour, alpha=0.12)
    place.set_xlabel("cosine")
    place.set_ylabel("density")
    place.legend(**BESIDE)
    return svg_of(figure, f"{title}: histograms of {', '.join(cosines)} over cosine")


def geometry_part(made: Diagnosis) -> Iterator[Block]:
    """Alignment and uniformity.

    Wang and Isola 2020, on unit vectors. Alignment: mean squared distance of same-event pairs, 0 is best.
    Uniformity: log of the mean of exp(-2 d²) over all pairs; the lower, the more evenly articles are spread.
    """
    yield from _no_pairs(made, similarity.PairKind.SAME_EVENT, "event")
    same = made.pairs.get(similarity.PairKind.SAME_EVENT)
    rows = []
    for name, matrix in made.embeddings.items():
        aligned = None if same is None else similarity.alignment(matrix, same)
        rows.append([name, _number(aligned), _number(similarity.uniformity(matrix))])
    yield Table(["encoder", "alignment", "uniformity"], rows)


def attention_part(made: Diagnosis) -> Iterator[Block]:
    """Attention by part of speech.

    The attention that words get in the last layer from the tokens of which the embedding is made ([CLS], or all
    tokens by their weight in the pooling), as a mean over heads and articles; the parts add up to 1. Ratio:
    attention over share of tokens; 1 is an even spread. All layers: the mean over layers. Per word: the attention
    of one word, as a mean over all words of this part of speech, in thousandths.
    """
    if not made.models:
        raise _MissingError(_NOT_OURS)
    tagger, unknown = made.tagger, collections.Counter[str]()
    longest = max(model.max_length for model in made.models.values())
    tagged = {}
    for number, place in enumerate(made.probed):
        article, language = made.articles[place], made.language(place)
        if not tagger.knows(language):
            unknown[language or "none named"] += 1
            continue
        # At most as many words as the encoders read tokens, so that long articles cost no more.
        texts = [parts_of_speech.first_words(text, longest) for text in (article.title, article.body)]
        tagged[number] = [word for text in texts for word in tagger.tag(text, language)]
    left_out = ", ".join(f"{language} ({count:,})" for language, count in unknown.most_common())
    if not tagged:
        spoken = ", ".join(tagger.languages or ())
        raise _MissingError(
            f"{tagger.name} knows {spoken}; the articles' languages: {left_out}. --language sets the language of "
            "articles that do not name theirs"
        )
    rest = f" Left out, by language: {left_out}." if left_out else ""
    yield f"Tagger: {tagger.name}, {len(tagged):,} articles.{rest}"
    for name, model in made.models.items():
        yield Heading(name)
        yield from _made(functools.partial(_attention, model, made.tokens[name], tagged))


def _attention(
    model: "JaxEncoder", probed: "Probed", tagged: Mapping[int, Sequence[parts_of_speech.Word]]
) -> Iterator[Block]:
    if probed.attention and not len(probed.attention[0]):
        raise _MissingError("a model of no layers has no attention")
    read = []
    for place, own in tagged.items():
        pieces = model.vocabulary.encode_texts([word for word, _ in own])
        if found := of_tokens.tag_tokens(probed.tokens[place], own, pieces):
            read.append((probed.attention[place], found[0], [tag for _, tag in own[: found[1]]]))
    if not read:
        raise _MissingError(f"the words of none of {len(tagged)} articles are the encoder's words")
    rows = []
    for row in of_tokens.attention_by_tag(*zip(*read, strict=True)):
        layers = row.attention
        values = (row.tokens, layers[-1], row.lift[-1], sum(layers) / len(layers), 1000 * row.per_word[-1])
        rows.append([row.tag, f"{row.words:,}", *map(_number, values)])
    caption = (
        f"{len(read):,} articles; {len(tagged) - len(read):,} left out because the tagger and the encoder "
        "split them into different words"
    )
    headings = ["share of tokens", "attention", "ratio", "all layers", "per word, ‰"]
    yield Table(["part of speech", "words", *headings], rows, caption)


def redundancy_part(made: Diagnosis) -> Iterator[Block]:
    """Redundancy by length.

    How repetitive an article is, by its length in word pieces (truncated as the encoder truncates). R of the text:
    1 - H / log2 n with H the entropy of its n word pieces (Shannon); 0 if none occurs twice. R of the encoder: mean
    cosine between the top-layer vectors of two different tokens; close to 1 if all are alike.
    """
    if not made.tokens:
        raise _MissingError(_NOT_OURS)
    for name in made.embeddings:
        yield Heading(name)
        if name not in made.tokens:
            yield Missing("its tokens cannot be seen")
            continue
        bins = of_tokens.redundancy_by_length(made.tokens[name].tokens, made.tokens[name].similarity)
        yield _means(["word pieces", "articles", "R of the text", "R of the encoder"], bins) or Missing(
            "no document has two word pieces"
        )


def _means(headings: Sequence[str], bins: Sequence[of_tokens.LengthBin]) -> Table | None:
    """A table of means by length; None without documents."""
    rows = [
        [
            f"{one.shortest:,} or more" if one.longest is None else f"{one.shortest:,} to {one.longest:,}",
            *(f"{one.documents:,}", *map(_number, one.means)),
        ]
        for one in bins
    ]
    return Table(headings, rows) if rows else None


def repetition_part(made: Diagnosis) -> Iterator[Block]:
    """Repeated words by length.

    Nouns and verbs over their distinct lemmas, as a mean over articles of similar length (SimLTE, Table 3): 1 if no
    lemma is repeated.
    """
    tagger, chosen = made.tagger, parts_of_speech.NOUNS | parts_of_speech.VERBS
    if tagger.lemmas is None:
        raise _MissingError(f"{tagger.name} gives no lemmas")
    counts, values = [], []
    for place in made.probed:
        article, language = made.articles[place], made.language(place)
        if tagger.knows(language):
            found = [row for text in (article.title, article.body) for row in tagger.lemmas(text, language)]
            counts.append(sum(any(map(str.isalnum, word)) for word, _, _ in found))
            values.append(of_tokens.word_repetition([lemma for _, tag, lemma in found if tag in chosen]))
    yield _means(["words", "articles", "R of the words"], of_tokens.repetition_by_length(counts, values)) or Missing(
        f"no article with nouns or verbs in a language that {tagger.name} knows"
    )


def map_part(made: Diagnosis) -> Iterator[Block]:
    """Map.

    Embeddings in two dimensions. Similar articles are close together; distances between far points mean little.
    Hover over a dot for its title.
    """
    articles = made.articles
    if len(articles) < similarity.FEWEST:
        raise _MissingError(f"{len(articles)} articles, and a map needs at least {similarity.FEWEST}")
    labels = [label for label in _LABELS if any(getattr(article, label) for article in articles)]
    for label in _LABELS:
        if label not in labels:
            yield Missing(f"{label}: {_UNLABELLED.format(label)}")
    yield f"{len(articles):,} articles by {', '.join(made.embeddings)} (t-SNE), in report.html."
    keys = {label: largest([getattr(article, label) for article in articles]) for label in labels}
    colours = {label: {name: str(place) for place, (name, _) in enumerate(key)} for label, key in keys.items()}
    dots = []
    for article in articles:
        own = {label: getattr(article, label) for label in labels}
        classes = " ".join(f"{label[0]}{colours[label].get(value, 'x')}" for label, value in own.items())
        dots.append((classes, f"{_title(article)} ({', '.join(filter(None, own.values())) or article.id})"))
    encoders = {
        name: list(zip(placed(similarity.project(matrix, made.options.seed)), dots, strict=True))
        for name, matrix in made.embeddings.items()
    }
    others = {label: len(articles) - sum(count for _, count in key) for label, key in keys.items()}
    values = {"colours": keys, "others": others, "encoders": encoders, "side": _SIDE, "radius": _RADIUS}
    yield Included("diagnose/map.html", values)


def largest(values: Sequence[str]) -> list[tuple[str, int]]:
    """The most frequent labels with their numbers, which have colours; ties in the order of letters."""
    counts = collections.Counter(value for value in values if value)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_COLOURED]


def placed(points: Any) -> list[tuple[str, str]]:
    """The places of dots ``[N, 2]`` on a map, in SVG units: proportions are kept, and y points up."""
    array = np.asarray(points, np.float64)
    low, high = array.min(axis=0), array.max(axis=0)
    span = float((high - low).max()) or 1.0
    scaled = (array - (low + high) / 2) / span * (_SIDE - 4 * _RADIUS) * [1, -1] + _SIDE / 2
    return [(f"{x:.1f}", f"{y:.1f}") for x, y in scaled.tolist()]


# In the order of the report; the docstring of each is its heading and the meaning of its numbers.
PARTS: Final = (
    neighbors_part,
    similarities_part,
    geometry_part,
    attention_part,
    redundancy_part,
    repetition_part,
    map_part,
)
