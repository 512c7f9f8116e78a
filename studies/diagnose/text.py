"""The words that both reports of a diagnosis use, and the Markdown report."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Section = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the report: its heading and the meaning of its numbers."""

    title: str
    note: str


PARTS: Final[Mapping[str, Part]] = {
    "neighbors": Part(
        "Neighbors side by side",
        "The articles with the highest cosine, by encoder. In common: the share of an article's nearest articles on "
        "which two encoders agree, as a mean over all articles.",
    ),
    "similarities": Part(
        "Similarities of pairs",
        "Cosines of two articles. Random: any two articles. Nearer than random: the probability that such a pair has a "
        "higher cosine than a random pair (area under the ROC curve).",
    ),
    "geometry": Part(
        "Alignment and uniformity",
        "Wang and Isola 2020, on unit vectors. Alignment: mean squared distance of same-event pairs, 0 is best. "
        "Uniformity: log of the mean of exp(-2 d²) over all pairs; the lower, the more evenly articles are spread.",
    ),
    "attention": Part(
        "Attention by part of speech",
        "The attention that words get in the last layer from the tokens of which the embedding is made ([CLS], or all "
        "tokens by their weight in the pooling), as a mean over heads and articles; the parts add up to 1. Ratio: "
        "attention over share of tokens; 1 is an even spread. All layers: the mean over layers. Per word: the "
        "attention of one word, as a mean over all words of this part of speech, in thousandths.",
    ),
    "redundancy": Part(
        "Redundancy by length",
        "How repetitive an article is, by its length in word pieces (truncated as the encoder truncates).",
    ),
    "repetition": Part(
        "Repeated words by length",
        "Nouns and verbs over their distinct lemmas, as a mean over articles of similar length (SimLTE, Table 3): 1 if "
        "no lemma is repeated.",
    ),
    "map": Part(
        "Map",
        "Embeddings in two dimensions. Similar articles are close together; distances between far points mean little. "
        "Hover over a dot for its title.",
    ),
}
REDUNDANCY_NOTE: Final = (
    "R of the text: 1 - H / log2 n with H the entropy of its n word pieces (Shannon); 0 if none occurs twice. R of the "
    "encoder: mean cosine between the top-layer vectors of two different tokens; close to 1 if all are alike."
)
REPETITION_HEADINGS: Final = ("words", "articles", "R of the words")
PAIR_HEADINGS: Final = (
    *("pairs", "number", "mean cosine", "5th percentile", "median", "95th percentile"),
    "nearer than random",
)
REDUNDANCY_HEADINGS: Final = ("word pieces", "articles", "R of the text", "R of the encoder")


def number(value: float | None) -> str:
    """A number with three decimals, or "-" for None."""
    return "-" if value is None else f"{value:.3f}"


def facts_rows(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The articles, encoders and versions of a diagnosis, as (name, value)."""
    articles = report["articles"]
    read = f"{articles['kept']:,} of {articles['read']:,}"
    languages = ", ".join(f"{language} {count:,}" for language, count in articles["languages"].items())
    rows = [
        (
            "articles",
            f"{read}, {articles['empty']:,} without text: {articles.get('path', '')}",
        ),
        ("languages", languages),
        ("events, topics", f"{articles['events']:,}, {articles['topics']:,}"),
    ]
    for name, facts in report["encoders"].items():
        zeros = f", {facts['zero_vectors']:,} vectors of zeros" if facts["zero_vectors"] else ""
        rows.append(
            (f"encoder {name}", f"{facts['spec']}, {facts['dimensions']:,} dimensions{zeros}, {facts['digest'][:24]}")
        )
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return [*rows, ("written", f"{report['written_at']}, {versions}"), ("command", " ".join(report.get("command", [])))]


def attention_rows(found: Section) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of one encoder's attention."""
    headings = ["part of speech", "words", "share of tokens", "attention", "ratio", "all layers", "per word, ‰"]
    rows = [
        [
            row["tag"],
            f"{row['words']:,}",
            number(row["tokens"]),
            number(row["attention"][-1]),
            number(row["lift"][-1]),
            number(sum(row["attention"]) / len(row["attention"])),
            number(1000 * row["per_word"][-1]),
        ]
        for row in found["tags"]
    ]
    return headings, rows


def tagger_line(section: Section) -> str:
    """The tagger, and the languages that it left out."""
    left_out = ", ".join(f"{language} ({count:,})" for language, count in section["languages_left_out"].items())
    return f"Tagger: {section['tagger']}, {section['documents']:,} articles." + (
        f" Left out, by language: {left_out}." if left_out else ""
    )


def report_text(report: Mapping[str, Any]) -> str:
    """The whole report as GitHub-flavoured Markdown; plots and the map are only in the page."""
    blocks = ["# newsembed diagnosis", _table(["", ""], facts_rows(report))]
    for name, part in PARTS.items():
        section = report["sections"][name]
        blocks += [f"## {part.title}", _escape(part.note)]
        blocks += [f"Missing: {_escape(section['missing'])}."] if "missing" in section else _BLOCKS[name](section)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _neighbors(section: Section) -> list[str]:
    shared = [
        [" and ".join(row["encoders"]), number(row["shared"]), number(section["by_chance"])]
        for row in section["shared"]
    ]
    blocks = [_table(["encoders", "neighbors in common", "by chance"], shared)] if shared else []
    for query in section["queries"]:
        names = list(query["neighbors"])
        rows = [
            [str(rank), *(_near(query["neighbors"][name][rank - 1]) for name in names)]
            for rank in range(1, section["k"] + 1)
        ]
        blocks += [f"### {_escape(query['title'])} ({_escape(query['id'])})", _table(["", *names], rows)]
    return blocks


def _near(article: Section) -> str:
    marks = [
        mark for mark, holds in (("same event", article["same_event"]), ("same topic", article["same_topic"])) if holds
    ]
    return f"{number(article['cosine'])} {article['title']}" + (f" [{', '.join(marks)}]" if marks else "")


def _similarities(section: Section) -> list[str]:
    rows = [
        [
            name,
            kind,
            f"{values['pairs']:,}",
            *(number(value) for value in (values["mean"], *values["quantiles"], values["auc"])),
        ]
        for name, found in section["encoders"].items()
        for kind, values in found["kinds"].items()
    ]
    return [_table(["encoder", *PAIR_HEADINGS], rows), *_absent(section["absent"])]


def _geometry(section: Section) -> list[str]:
    rows = [
        [name, number(values["alignment"]), number(values["uniformity"])]
        for name, values in section["encoders"].items()
    ]
    return [_table(["encoder", "alignment", "uniformity"], rows), *_absent(section["absent"])]


def _attention(section: Section) -> list[str]:
    blocks = [_escape(tagger_line(section))]
    for name, found in section["encoders"].items():
        blocks.append(f"### {_escape(name)}")
        blocks.append(
            f"Missing: {_escape(found['missing'])}." if "missing" in found else _table(*attention_rows(found))
        )
    return blocks


def _redundancy(section: Section) -> list[str]:
    blocks = [REDUNDANCY_NOTE]
    for name, found in section["encoders"].items():
        rows = [
            [
                f"{row['shortest']:,} to {row['longest']:,}",
                f"{row['documents']:,}",
                number(row["text"]),
                number(row["encoder"]),
            ]
            for row in found.get("bins", ())
        ]
        table = _table(REDUNDANCY_HEADINGS, rows)
        blocks += [f"### {_escape(name)}", table if rows else f"Missing: {_escape(found['missing'])}."]
    return blocks


def repetition_rows(section: Section) -> list[list[str]]:
    """The rows below `REPETITION_HEADINGS`."""
    return [
        [
            f"{row['shortest']:,} or more" if row["longest"] is None else f"{row['shortest']:,} to {row['longest']:,}",
            f"{row['documents']:,}",
            number(row["repetition"]),
        ]
        for row in section["bins"]
    ]


def _repetition(section: Section) -> list[str]:
    return [_table(REPETITION_HEADINGS, repetition_rows(section))]


def _map(section: Section) -> list[str]:
    shown = ", ".join(section["encoders"])
    return [
        f"{len(section['articles']):,} articles by {_escape(shown)} ({section['method']}); report.html shows it.",
        *_absent(section["absent"]),
    ]


def _absent(reasons: Mapping[str, str]) -> list[str]:
    return [f"Missing: {_escape(name)}: {_escape(reason)}." for name, reason in reasons.items()]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_escape(cell) for cell in line) + " |" for line in lines)


def _escape(text: str) -> str:
    """Text without line breaks, bars or HTML, for a Markdown table."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace("[CLS]", r"\[CLS]")


_BLOCKS: Final[Mapping[str, Callable[[Section], list[str]]]] = {
    "neighbors": _neighbors,
    "similarities": _similarities,
    "geometry": _geometry,
    "attention": _attention,
    "redundancy": _redundancy,
    "repetition": _repetition,
    "map": _map,
}
