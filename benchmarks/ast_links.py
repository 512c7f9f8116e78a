"""Compares encoders that link titles to articles: pooled AP by seed, and a paired bootstrap over articles.

    python benchmarks/ast_links.py --articles heldout.jsonl --articles_count 600 --control ast \
        --models ast=runs/ast_small-0,runs/ast_small-1 softmax=runs/ast_softmax-0,runs/ast_softmax-1

The title of each article is its post (suite title_links). Every system has one model folder for each seed, in the same
order. Prints AP, ROC AUC and mRP (mean over seeds), each system minus the control with the 95 % interval of the
bootstrap over articles, in which seeds are blocks, the paper's case study (how many of the links of 100 posts at a
cosine of 0.7 or more are right), and the alphas that the heads of star encoders learned (Figure 3 of the paper). TF-IDF
is the yardstick that needs no training.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.encoders import Document, TfidfEncoder
from newsembed.evaluation.links import PostLinking, link_scores, pooled_cosines, resampled_ap
from newsembed.evaluation.paired import paired_test
from newsembed.models.star_attention import learned_alphas
from newsembed.serving.encoder import JaxEncoder, load_encoder

SHOWN = ("AP", "ROC AUC", "mRP")
CASES, CASE_BAR = 100, 0.7  # the paper's case study: 36 right and 10 wrong links


def arguments() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", required=True, help="JSONL with title and body")
    parser.add_argument("--articles_count", type=int, default=600, help="of them, evenly spread")
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=DIR,DIR…")
    parser.add_argument("--control", required=True)
    parser.add_argument("--length", type=int, default=256, help="tokens of a text that the models read")
    parser.add_argument("--resamples", type=int, default=200)
    return parser.parse_args()


def suite_of(path: str, count: int) -> PostLinking:
    """Returns the suite over this many articles, evenly spread over the file."""
    lines = [line for line in Path(path).read_text().splitlines() if line.strip()]
    kept = [json.loads(lines[place]) for place in np.linspace(0, len(lines) - 1, min(count, len(lines))).astype(int)]
    rows = [
        {"title": row["title"], "body": row["body"]} for row in kept if row["title"].strip() and row["body"].strip()
    ]
    unique = {row["body"]: row for row in rows}.values()
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.write("".join(json.dumps(row) + "\n" for row in unique))
    return PostLinking(file.name, titles=True)


def encode(folder: str, documents: list[Document], length: int) -> tuple[np.ndarray, str]:
    """Returns the embeddings of a model folder, and what its heads learned."""
    encoder = load_encoder(folder, max_length=length)
    return encoder.encode([one.title for one in documents], [one.body for one in documents]), alphas(encoder)


def alphas(encoder: JaxEncoder) -> str:
    """Returns the alpha of each head of each attention, ascending; nothing for encoders that learn none."""
    attentions = {
        name: sorted(float(alpha) for alpha in learned_alphas(part["alpha_logits"]))
        for name, part in encoder.model.params.items()
        if isinstance(part, Mapping) and "alpha_logits" in part
    }
    return "; ".join(f"{name} {', '.join(f'{alpha:.2f}' for alpha in found)}" for name, found in attentions.items())


def case_study(cosines: np.ndarray, relevant: np.ndarray) -> tuple[int, int]:
    """Returns how many links of the first posts are right and wrong, where a link is a cosine above the bar."""
    linked, right = cosines[:, :CASES] >= CASE_BAR, relevant[:, :CASES]
    return int((linked & right).sum()), int((linked & ~right).sum())


def main() -> None:
    """Prints both tables."""
    args = arguments()
    suite = suite_of(args.articles, args.articles_count)
    documents, owners = list(suite.documents()), suite.owners()
    count = len(documents) - len(owners)
    relevant = owners[None, :] == np.arange(count)[:, None]
    systems = {name: folders.split(",") for name, _, folders in (one.partition("=") for one in args.models)}
    cosines, learned = {}, {}
    tfidf = TfidfEncoder().encode(documents)
    cosines["tfidf"] = [pooled_cosines(tfidf[:count], tfidf[count:])] * len(next(iter(systems.values())))
    for name, folders in systems.items():
        embeddings, learned[name] = zip(*(encode(folder, documents, args.length) for folder in folders), strict=True)
        cosines[name] = [pooled_cosines(one[:count], one[count:]) for one in embeddings]
    drawn: dict[str, list[Score]] = {}
    case = f"links of {min(CASES, len(owners))} titles at {CASE_BAR}, right and wrong, by seed"
    print(f"{count} articles, {len(owners)} titles\n\n| system | {' | '.join(SHOWN)} | AP by seed | {case} |")
    print(f"|---|{'--:|' * 5}")
    for name, found in cosines.items():
        scores = [link_scores(one, relevant) for one in found]
        drawn[name] = [
            Score("AP", score["AP"], draws=tuple(resampled_ap(one, owners, resamples=args.resamples)))
            for one, score in zip(found, scores, strict=True)
        ]
        by_seed = ", ".join(f"{score['AP']:.4f}" for score in scores)
        means = " | ".join(f"{np.mean([score[metric] for score in scores]):.4f}" for metric in SHOWN)
        cases = ", ".join("{} and {}".format(*case_study(one, relevant)) for one in found)
        print(f"| {name} | {means} | {by_seed} | {cases} |")
    print(f"\n| minus {args.control} | AP | 95 % | p |\n|---|--:|--:|--:|")
    for name in cosines:
        if name != args.control:
            test = paired_test(drawn[name], drawn[args.control])
            assert test is not None, "both have the same seeds and resamples"
            print(f"| {name} | {test.difference:+.4f} | {test.low:+.4f} to {test.high:+.4f} | {test.p:.3f} |")
    for name, of_seeds in learned.items():
        for seed, found in enumerate(of_seeds):
            if found:
                print(f"alphas of {name}, model {seed}: {found}")


if __name__ == "__main__":
    main()
