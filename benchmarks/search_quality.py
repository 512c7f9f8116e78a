r"""How often search finds the right articles: by vectors, by words, and by both, with bm25s as a peer.

    python benchmarks/search_quality.py --encoder savedmodel:demo/saved_model --articles demo/work/clean/articles \
        --truth demo/newsroom/truth.jsonl
    python benchmarks/search_quality.py --encoder model:minilm --articles allsides.jsonl.zst --sample 3000
    python benchmarks/search_quality.py --encoder model:e5 --ntrex ../shared/data/parallel/ntrex128 --across

Queries come from sampled articles: the whole title, three words of the title, and three to five words of title and
lead. With `--truth` right are the other articles of the same event, and the article itself is left out of the results.
With `--known` right is the article itself, for a reader who remembers words of it. With neither, right is the article
itself, which is indexed without its title and its first two sentences, so that no query is part of what is searched;
all other articles are indexed as they are. With `--across` right are only reports in other languages, and those in the
article's language are left out of the results; with `--ntrex` the articles are the first 1,000 sentences in four
languages, and reports of one event are its translations. The index learns its weights from a sample of its own
(`serving.tuning`), which does not know the truth; no query comes from an article of that sample.

``bm25s`` reads the title, twice, and the body as one
text, with its English stop words and without stems.
"""

import argparse
import dataclasses
import json
import random
import re
import tempfile

import bm25s
import numpy as np
from newsembed.benchmarks.languages import sentences
from newsembed.formats.articles import ArticleText, read_articles
from newsembed.serving import hybrid
from newsembed.serving.index_command import build_index
from newsembed.serving.ranking import DEFAULT, LATENT_SEMANTICS, Ranking
from newsembed.serving.specs import encoder_from_spec
from newsembed.serving.tuning import ARTICLES, queries_of

KINDS = ("whole title", "three words of the title", "three to five words of title and lead")
WAYS = ("vectors", "words", "bm25s", "hybrid")
DEPTH = 100
SENTENCES = 1_000  # of NTREX-128, in each language
RANKINGS = {"own": None, "default": DEFAULT, "latent": LATENT_SEMANTICS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, metavar="KIND:DIR")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--articles")
    source.add_argument("--ntrex", metavar="FOLDER", help="of NTREX-128")
    parser.add_argument("--across", action="store_true", help="reports in other languages are right")
    parser.add_argument("--truth", help="JSON lines with url and event")
    parser.add_argument("--known", action="store_true", help="the article itself, as it is, is right")
    parser.add_argument("--sample", type=int, default=100_000, metavar="N", help="articles, evenly spaced")
    parser.add_argument("--max_length", type=int)
    parser.add_argument("--queries", type=int, default=200, help="sampled articles")
    parser.add_argument("--ranking", choices=RANKINGS, default="own", help="own: that the index has learned")
    args = parser.parse_args()
    if args.ntrex:
        articles, right = translations(args.ntrex)
    else:
        articles = [article for article in read_articles(args.articles) if article.title and article.body]
        articles = articles[:: max(1, len(articles) // args.sample)][: args.sample]
        right = same_events(articles, args.truth) if args.truth else [{number} for number in range(len(articles))]
    generator = random.Random(1_000)
    left_out = [{number} if args.truth or args.ntrex else set() for number in range(len(articles))]
    if args.across:
        own = [
            {n for n in others if articles[n].language == one.language}
            for one, others in zip(articles, right, strict=True)
        ]
        left_out = [numbers | same for numbers, same in zip(left_out, own, strict=True)]
        right = [others - same for others, same in zip(right, own, strict=True)]
    learned = {*random.Random(0).sample(range(len(articles)), min(ARTICLES, len(articles)))}
    chosen = generator.sample([number for number, others in enumerate(right) if others], args.queries * 2)
    chosen = [number for number in chosen if number not in learned][: args.queries]
    asked = [list(queries_of(articles[number].title, articles[number].body, generator)) for number in chosen]
    if not (args.truth or args.known or args.ntrex):
        for number in chosen:
            articles[number] = without_head(articles[number])
    encoder = encoder_from_spec(args.encoder, max_length=args.max_length)
    index = build_index(encoder, iter(articles), tempfile.mkdtemp())
    ranking = RANKINGS[args.ranking] or Ranking.from_dict(index.settings["ranking"])
    print(f"{len(index)} articles, {args.queries} queries of each kind; {args.ranking} ranking")
    peer = bm25s.BM25()
    texts = [f"{article.title}\n{article.title}\n{article.body}" for article in articles]
    peer.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    print("| queries | " + " | ".join(WAYS) + " |\n|" + "---|" * (len(WAYS) + 1))
    means = np.zeros((len(KINDS), len(WAYS), 3))
    for kind, name in enumerate(KINDS):
        vectors = encoder.encode_queries([queries[kind] for queries in asked])
        for number, queries, vector in zip(chosen, asked, vectors, strict=True):
            answers = answers_of(index, peer, queries[kind], vector, left_out[number], ranking)
            means[kind] += [figures(answer, right[number]) for answer in answers]
        print(row(name, means[kind] / len(chosen)), flush=True)
    print(row("mean", means.mean(axis=0) / len(chosen)))
    mrr = means[:, :, 2].mean(axis=0)
    print(f"\nMRR of hybrid over words: {mrr[3] / mrr[1] - 1:+.1%}; over bm25s: {mrr[3] / mrr[2] - 1:+.1%}")


def same_events(articles, path):
    """The other articles of the event of each, by their numbers."""
    with open(path, encoding="utf-8") as file:
        events = {host_and_path(row["url"]): row["event"] for row in map(json.loads, file) if row["event"]}
    found = [events.get(host_and_path(article.url)) for article in articles]
    by_event = {}
    for number, event in enumerate(found):
        by_event.setdefault(event, set()).add(number)
    return [by_event[event] - {number} if event else set() for number, event in enumerate(found)]


def translations(folder):
    """The first sentences of NTREX-128 in four languages, and the translations of each, by their numbers."""
    articles = []
    for language in ("en", "de", "es", "ru"):
        for number, line in enumerate(sentences(folder, language)[:SENTENCES]):
            articles.append(ArticleText(f"{language}{number}", "", "", line, "", language))
    every = range(len(articles))
    return articles, [{n for n in every[number % SENTENCES :: SENTENCES] if n != number} for number in every]


def host_and_path(url):
    return re.sub(r"^https?://(www\.)?", "", url)


def without_head(article):
    """The article without its title and its first two sentences."""
    rest = re.split(r"(?<=[.!?])\s+", article.body.strip())[2:]
    return dataclasses.replace(article, title="", body=" ".join(rest) or article.body)


def answers_of(index, peer, query, vector, left_out, ranking):
    """The numbers that each way finds, best first, without those that are left out."""
    words = index.read(query)
    depth = DEPTH + len(left_out)
    by_vectors = index.nearest(vector, depth)[0].tolist()
    by_words = index.matching(words, depth)[0].tolist()
    tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
    numbers, scores = peer.retrieve(tokens, k=min(depth, len(index)), show_progress=False)
    by_peer = [int(number) for number, score in zip(numbers[0], scores[0], strict=True) if score > 0]
    lists = [
        [number for number in found if number not in left_out][:DEPTH] for found in (by_vectors, by_words, by_peer)
    ]
    evidence = hybrid.evidence(index, words, vector)
    best = evidence.numbers[np.argsort(-ranking.scores(evidence), kind="stable")].tolist()
    return [*lists, [number for number in best if number not in left_out]]


def figures(answer, right):
    """hit@1, hit@10 and the reciprocal rank."""
    first = next((rank for rank, number in enumerate(answer, 1) if number in right), None)
    return [first == 1, first is not None and first <= 10, 1 / first if first else 0]


def row(name, values):
    return f"| {name} | " + " | ".join("/".join(f"{value:.3f}" for value in way) for way in values) + " |"


if __name__ == "__main__":
    main()
