"""Compares encoders that learned from translations: topics across languages by seed, and a paired t-test over folds.

    newsembed newsroom --output mldoc --format mldoc --scale 0.1
    python benchmarks/topic_folds.py --mldoc mldoc --languages english german --folds 10 --control T-MDE \
        --models T-MDE=tmde-0,tmde-1 cT-MDE=ctmde-0,ctmde-1

The suite is `mldoc_svm`. Every system has one model folder for each seed, in the same order. Prints Cross and Same, and
each system minus the control with the variance of Nadeau and Bengio, in which a fold counts with its mean over seeds.
"""

import argparse

from newsembed.evaluation.benchmark import Score
from newsembed.evaluation.encoders import normalised
from newsembed.evaluation.mldoc import LinearSvm, MlDoc
from newsembed.evaluation.paired import paired_test
from newsembed.serving.encoder import load_encoder

SHOWN = ("Cross", "Same")


def arguments() -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mldoc", required=True, help="folder in MLDoc's layout")
    parser.add_argument("--languages", nargs="+", required=True)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=DIR,DIR…")
    parser.add_argument("--control", required=True)
    parser.add_argument("--length", type=int, default=96, help="tokens of a text that the models read")
    return parser.parse_args()


def scores_of(folder: str, suite: MlDoc, length: int) -> dict[str, Score]:
    """Returns the scores of a model folder by their part."""
    documents = suite.documents()
    encoder = load_encoder(folder, max_length=length)
    embeddings = encoder.encode([one.title for one in documents], [one.body for one in documents])
    return {score.part: score for score in suite.score(normalised(embeddings))}


def main() -> None:
    """Prints both tables."""
    args = arguments()
    suite = MlDoc(args.mldoc, "mldoc_svm", languages=tuple(args.languages), folds=args.folds, head=LinearSvm())
    found = {
        name: [scores_of(folder, suite, args.length) for folder in folders.split(",")]
        for name, _, folders in (one.partition("=") for one in args.models)
    }
    print("| system | Cross | Cross by seed | Same | Same by seed |\n|---|--:|--:|--:|--:|")
    for name, seeds in found.items():
        cells = []
        for part in SHOWN:
            values = [scores[part].value for scores in seeds]
            cells += [f"{sum(values) / len(values):.3f}", ", ".join(f"{value:.3f}" for value in values)]
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"\n| minus {args.control} | part | difference | 95 % | p | p by seed |\n|---|---|--:|--:|--:|--:|")
    for name in [name for name in found if name != args.control]:
        for part in SHOWN:
            own, others = ([scores[part] for scores in found[system]] for system in (name, args.control))
            alone = [paired_test([one], [other]) for one, other in zip(own, others, strict=True)]
            test = paired_test(own, others)
            assert test is not None, "all encoders have the same folds"
            ps = ", ".join(f"{one.p:.3f}" for one in alone if one is not None)
            interval = f"{test.low:+.3f} to {test.high:+.3f}"
            print(f"| {name} | {part} | {test.difference:+.3f} | {interval} | {test.p:.3f} | {ps} |")


if __name__ == "__main__":
    main()
