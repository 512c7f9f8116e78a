r"""Whether an encoder has one space for all languages: rated pairs of news, and translations in a pool of ten of them.

    python benchmarks/languages.py --data ../shared/data --encoder e5=model:e5 --encoder lifted=model:lifted/model \
        --output languages

SemEval 2022 task 8 (training half): 100 times Pearson of the cosine and the rating, of all pairs, of pairs in one
language, across two, and by languages. NTREX-128: each of the first `--sentences` in ten languages is a query against
the same in the nine others and all other sentences in all ten, so unrelated texts of the query's language are there.
``first``: the share of the nine translations that are among the first nine; ``near``: the share of translations that
are above every unrelated sentence of the query's language. All embeddings are those of documents.

Embeddings are kept in `--output`, so the command continues where it stopped.
"""

import argparse
import collections
import csv
import os

import numpy as np
from newsembed.serving.specs import encoder_from_spec

_NTREX = (
    "en:src.eng de:ref.deu fr:ref.fra it:ref.ita es:ref.spa sw:ref.swa ru:ref.rus ar:ref.arb hi:ref.hin zh:ref.zho-CN"
)
NTREX = dict(pair.split(":") for pair in _NTREX.split())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the shared data")
    parser.add_argument("--encoder", action="append", required=True, metavar="NAME=KIND:DIR")
    parser.add_argument("--max_length", type=int, default=256, help="tokens of an article")
    parser.add_argument("--sentences", type=int, default=100, help="of NTREX, in each language")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="read every N-th pair")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    pairs = read_pairs(options.data)[:: options.every]
    folder = f"{options.data}/parallel/ntrex128"
    of_ntrex = [line for language in NTREX for line in sentences(folder, language)[: options.sentences]]
    texts = [[pair[side] for pair in pairs for side in ("text1", "text2")], of_ntrex]
    for name, spec in (value.split("=", 1) for value in options.encoder):
        vectors = []
        for part, part_texts in zip(("pairs", "sentences"), texts, strict=True):
            path = f"{options.output}/{name}-{part}-{options.max_length}-{len(part_texts)}.npy"
            if not os.path.exists(path):
                encoder = encoder_from_spec(spec, max_length=options.max_length)
                np.save(path, encoder.encode(*titles_and_bodies(part_texts)))
            vectors.append(np.load(path))
        rated = correlations(pairs, np.sum(vectors[0][::2] * vectors[0][1::2], axis=1))
        print(name, "STS22", *(f"{key} {value:.1f}" for key, value in rated.items()))
        print(name, "NTREX", *(f"{key} {first:.3f}/{near:.3f}" for key, (first, near) in found(vectors[1]).items()))


def read_pairs(data):
    with open(f"{data}/benchmarks/sts22/training.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def titles_and_bodies(texts):
    """The parts before and after the first two spaces, where the title of an article ends; a sentence has no title."""
    parts = [text.partition("  ") for text in texts]
    return [title if body else "" for title, _, body in parts], [body or title for title, _, body in parts]


def sentences(folder, language):
    """The sentences of NTREX-128 in a language, those of one number in all languages translations of each other."""
    with open(f"{folder}/NTREX-128/newstest2019-{NTREX[language]}.txt", encoding="utf-8") as file:
        return [line.strip() for line in file]


def correlations(pairs, similarities):
    """100 times Pearson, by group."""
    groups = collections.defaultdict(list)
    for number, pair in enumerate(pairs):
        one, other = sorted((pair["lang1"], pair["lang2"]))
        for group in ("all", "within" if one == other else "across", one if one == other else f"{one}-{other}"):
            groups[group].append(number)
    ratings = -np.array([float(pair["Overall"]) for pair in pairs])
    first = ("all", "within", "across")
    order = [*first, *sorted(set(groups) - {*first})]
    return {key: 100 * np.corrcoef(similarities[groups[key]], ratings[groups[key]])[0, 1] for key in order}


def found(vectors):
    """By language of the query: the two shares of the module's text; last their means."""
    languages = len(NTREX)
    count = len(vectors) // languages
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    shares = {}
    for place, language in enumerate(NTREX):
        values = []
        for number in range(count):
            row = cosines[place * count + number]
            right = np.array([other * count + number for other in range(languages) if other != place])
            best = np.argpartition(-row, len(right))[: len(right)]
            own = row[place * count : (place + 1) * count].max()  # the query itself is at minus infinity
            values.append([np.isin(best, right).mean(), (row[right] > own).mean()])
        shares[language] = np.mean(values, axis=0)
    shares["mean"] = np.mean(list(shares.values()), axis=0)
    return shares


if __name__ == "__main__":
    main()
