"""How well entity vectors cross languages: retrieval of the translation of a sentence by the entity vector alone.

    newsembed entities --articles work/clean --output work/entities
    python benchmarks/entity_retrieval.py ../shared/data/parallel --entities work/entities

The corpus of ``work/clean`` must not contain the parallel sentences. Each sentence is linked as an article of its own,
and the rarity of entities is that of both sides together. Coverage is the share of the sentences with a vector on both
sides. hit@1 is the share of these whose nearest vector among all sentences of the other side is that of the
translation; a tie of n vectors counts 1 / n. ``--links 50`` prints a sample of links for reading, with the sentences;
``--seed`` draws another one.
The ceiling bounds hit@1 for any ranking of sentences that share an entity, given the links that were found:
sentences with equal entities and counts are tied, and the best choice is made by the true pairs. "Unshared" is the
share of pairs with a vector on both sides and no common entity, and "equal" that of pairs with the same entities.
``--half first`` takes the first half of the documents of NTREX, on which rules may be developed, ``--half second`` the
other one; both leave out WMT.
"""

import argparse
import collections
import datetime
import random
import time
from pathlib import Path

import numpy as np
from newsembed.beam_pipelines.arrays import Floats
from newsembed.beam_pipelines.entities import tables
from newsembed.beam_pipelines.entities.linking import Linker, Mentions, find_mentions
from newsembed.beam_pipelines.vectors import entity_vector, rarity_of
from newsembed.formats.records import Article, make_doc_id

_NTREX = {
    "de": "deu",
    "fr": "fra",
    "it": "ita",
    "es": "spa",
    "sw": "swa",
    "ru": "rus",
    "ar": "arb",
    "hi": "hin",
    "zh": "zho-CN",
}
_WMT = {"de": "ref.A.de", "ru": "ref.A.ru"}


def sentences(root: Path, name: str, language: str) -> tuple[list[str], list[str]]:
    """The English sentences of a set and their translations."""
    if name == "ntrex":
        folder = root / "ntrex128/NTREX-128"
        paths = folder / "newstest2019-src.eng.txt", folder / f"newstest2019-ref.{_NTREX[language]}.txt"
    else:
        pair = f"newstest2021.en-{language}"
        paths = (
            root / f"wmt21_news/txt/sources/{pair}.src.en",
            root / f"wmt21_news/txt/references/{pair}.ref.A.{language}",
        )
    left, right = (path.read_text(encoding="utf-8").rstrip("\n").split("\n") for path in paths)
    assert len(left) == len(right), paths
    return left, right


def half_of(documents: list[str], half: str) -> list[int]:
    """The numbers of the sentences in the first or second half of the documents, or in all."""
    names = list(dict.fromkeys(documents))
    first = set(names[: len(names) // 2])
    return [n for n, name in enumerate(documents) if half == "all" or (name in first) == (half == "first")]


def link(texts: list[str], language: str, linker: Linker) -> list[Mentions]:
    """The mentions of each sentence as an article of its own."""
    articles = (
        Article(make_doc_id(f"{language}{n}"), "", "", "", text, language=language) for n, text in enumerate(texts)
    )
    return [find_mentions(article, linker, {}, 0) for article in articles]


def vectors(mentions: list[Mentions], embeddings: Floats, rarity: Floats) -> Floats:
    """Unit vectors, zero for sentences without entities: float32 ``[sentences, D]``."""
    found = np.zeros((len(mentions), embeddings.shape[1]), np.float32)
    for row, one in enumerate(mentions):
        vector = entity_vector(one, embeddings, rarity)
        if vector is not None and np.linalg.norm(vector) > 0:
            found[row] = vector / np.linalg.norm(vector)
    return found


def score(left: Floats, right: Floats) -> tuple[float, float]:
    """(hit@1, coverage) of finding row i of ``right`` by row i of ``left``."""
    both = np.flatnonzero(left.any(1) & right.any(1))
    similarity = left[both] @ right.T
    own, best = similarity[np.arange(len(both)), both], similarity.max(1)
    ties = (similarity >= best[:, None] - 1e-5).sum(1)
    return float(np.mean((own >= best - 1e-5) / ties)) if len(both) else 0.0, len(both) / len(left)


def ceiling(left: list[Mentions], right: list[Mentions]) -> tuple[float, float, float]:
    """(best hit@1 of any ranking by shared entities, share of pairs with none, share with the same entities)."""
    found = [
        [tuple(sorted(zip(one.entities, one.entity_counts, strict=True))) for one in side] for side in (left, right)
    ]
    size = collections.Counter(found[1])
    pairs = collections.Counter(pair for pair in zip(*found, strict=True) if all(pair))
    best: dict[tuple[tuple[int, int], ...], float] = {}
    unshared = equal = 0
    for (one, other), count in pairs.items():
        shared = {row for row, _ in one} & {row for row, _ in other}
        best[one] = max(best.get(one, 0.0), count / size[other] if shared else 0.0)
        unshared += 0 if shared else count
        equal += count if len(shared) == len(one) == len(other) else 0
    total = max(1, sum(pairs.values()))
    return sum(best.values()) / total, unshared / total, equal / total


def show_links(
    linked: list[Mentions], names: list[str], texts: tuple[list[str], list[str]], draw: tuple[int, int]
) -> None:
    """Prints a random sample of the links of translations with both sentences; ``draw`` is their number and a seed."""
    links = [(row, number) for number, one in enumerate(linked) for row in one.entities]
    for row, number in random.Random(draw[1]).sample(links, min(draw[0], len(links))):
        print(f"  {names[row]}\t{texts[1][number]}\t{texts[0][number]}")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parallel", type=Path, help="folder with ntrex128 and wmt21_news")
    parser.add_argument("--entities", required=True, help="folder that `newsembed entities` wrote")
    parser.add_argument("--links", type=int, default=0, help="print this many random links of each language")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of links")
    parser.add_argument("--languages", nargs="*", default=list(_NTREX), help="languages of NTREX")
    parser.add_argument("--half", choices=("all", "first", "second"), default="all", help="of the documents of NTREX")
    options = parser.parse_args()
    documents = (options.parallel / "ntrex128/DOCUMENT_IDS.tsv").read_text(encoding="utf-8").split()
    table = tables.read_embeddings(f"{options.entities}/entities.npy")
    names = [fields[2] for fields in tables.read_keys(f"{options.entities}/entities.tsv")]
    linker = Linker(tables.read_aliases(f"{options.entities}/aliases.tsv"), table.rows())
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d} {options.entities}: {len(table.keys)} entities")
    print(
        "| set | language | sentences | coverage | hit@1 | hit@1 from the other language "
        "| ceiling | unshared | equal | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    sets = [("ntrex", language) for language in options.languages]
    if options.half == "all":
        sets += [("wmt21", language) for language in _WMT]
    for name, language in sets:
        begin = time.process_time()
        texts = sentences(options.parallel, name, language)
        if name == "ntrex":
            kept = half_of(documents, options.half)
            texts = [texts[0][n] for n in kept], [texts[1][n] for n in kept]
        left, right = (link(part, tag, linker) for part, tag in zip(texts, ("en", language), strict=True))
        named = np.bincount([row for one in (*left, *right) for row in one.entities], minlength=len(table.keys))
        rarity = rarity_of({"documents": np.array(len(left) + len(right)), "entities": named})
        sides = [vectors(part, table.values, rarity) for part in (left, right)]
        (hit, coverage), (back, _) = score(*sides), score(sides[1], sides[0])
        most, unshared, equal = ceiling(left, right)
        seconds = time.process_time() - begin
        print(
            f"| {name} | {language} | {len(left):,} | {coverage:.3f} | {hit:.3f} | {back:.3f} "
            f"| {most:.3f} | {unshared:.3f} | {equal:.3f} | {seconds:.1f} |"
        )
        show_links(right, names, texts, (options.links, options.seed))


if __name__ == "__main__":
    main()
