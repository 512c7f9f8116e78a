"""How well entity vectors cross languages: retrieval of the translation of a sentence by the entity vector alone.

    newsembed entities --articles work/clean --output work/entities
    python benchmarks/entity_retrieval.py ../shared/data/parallel --entities work/entities

The corpus of ``work/clean`` must not contain the parallel sentences. Each sentence is linked as an article of its own,
and the rarity of entities is that of both sides together. Coverage is the share of the sentences with a vector on both
sides. hit@1 is the share of these whose nearest vector among all sentences of the other side is that of the
translation; a tie of n vectors counts 1 / n. ``--links 50`` prints a sample of links for reading, with the sentences.
"""

import argparse
import datetime
import random
import time

import numpy as np
from newsembed.beam_pipelines.arrays import Floats
from newsembed.beam_pipelines.entities import tables
from newsembed.beam_pipelines.entities.linking import Linker, Mentions, find_mentions
from newsembed.beam_pipelines.vectors import entity_vector, rarity_of
from newsembed.benchmarks.languages import NTREX, sentences
from newsembed.formats.records import Article, make_doc_id


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


def show_links(linked: list[Mentions], names: list[str], texts: list[list[str]], count: int) -> None:
    """Prints a random sample of the links of translations with both sentences."""
    links = [(row, number) for number, one in enumerate(linked) for row in one.entities]
    for row, number in random.Random(0).sample(links, min(count, len(links))):
        print(f"  {names[row]}\t{texts[1][number]}\t{texts[0][number]}")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parallel", help="folder with ntrex128")
    parser.add_argument("--entities", required=True, help="folder that `newsembed entities` wrote")
    parser.add_argument("--links", type=int, default=0, help="print this many random links of each language")
    parser.add_argument("--languages", nargs="*", default=list(NTREX)[1:], help="languages of NTREX")
    options = parser.parse_args()
    table = tables.read_embeddings(f"{options.entities}/entities.npy")
    names = [fields[2] for fields in tables.read_keys(f"{options.entities}/entities.tsv")]
    linker = Linker(tables.read_aliases(f"{options.entities}/aliases.tsv"), table.rows())
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d} {options.entities}: {len(table.keys)} entities")
    print("| language | sentences | coverage | hit@1 | CPU s |\n|---|---|---|---|---|")
    for language in options.languages:
        begin = time.process_time()
        texts = [sentences(f"{options.parallel}/ntrex128", tag) for tag in ("en", language)]
        left, right = (link(part, tag, linker) for part, tag in zip(texts, ("en", language), strict=True))
        named = np.bincount([row for one in (*left, *right) for row in one.entities], minlength=len(table.keys))
        rarity = rarity_of({"documents": np.array(len(left) + len(right)), "entities": named})
        hit, coverage = score(*(vectors(part, table.values, rarity) for part in (left, right)))
        seconds = time.process_time() - begin
        print(f"| {language} | {len(left):,} | {coverage:.3f} | {hit:.3f} | {seconds:.1f} |")
        show_links(right, names, texts, options.links)


if __name__ == "__main__":
    main()
