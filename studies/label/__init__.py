"""``newsembed label``: label far neighbors as false or true negatives, to fit the evergreen filter.

Shows two articles side by side, on a page that only this machine can open or in the terminal, and asks whether they
report the same story or are the same evergreen piece. Uncertain pairs come first, with random ones between them. Every
answer is saved before the next question; the same command resumes the work. Both articles are in one language, unless
--language names the languages that the annotator reads.

example:
  newsembed label --work work --output labels.tsv
  newsembed label --work work --output labels.tsv --language en de
  newsembed label --work work --output labels.tsv --report
  newsembed triplets --articles work/clean --neighbors work/neighbors --labels labels.tsv --output work/triplets
"""

import argparse
import getpass
import itertools
import os
from collections.abc import Sequence

from ... import __version__
from ...errors import InputError
from ...formats import files
from .pairs import Pair, Work, read_pairs, read_work, readable_pairs
from .report import count_labels, make_report, show_counts, show_report
from .sample import questions
from .session import Session
from .store import LabelFile
from .texts import read_texts

_SPARE = 2  # questions prepared for each label, since some are skipped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed label``."""
    parser.add_argument(
        "--work",
        required=True,
        metavar="DIR",
        help="work folder of newsembed build; reads clean, neighbors and triplets",
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="labels file (TSV); an existing one is continued"
    )
    parser.add_argument(
        "--count", type=int, default=300, metavar="N", help="stop when the file has N labels (default: 300)"
    )
    parser.add_argument(
        "--random_share",
        type=float,
        default=0.4,
        metavar="X",
        help="share of random pairs among the questions (default: 0.4)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the random pairs and the folds (default: 0)"
    )
    parser.add_argument(
        "--language",
        nargs="+",
        default=[],
        metavar="TAG",
        help="languages that the annotator reads; each article of a pair is in one of them, so a pair may cross "
        "languages (default: any language, the same for both articles)",
    )
    parser.add_argument("--annotator", metavar="NAME", help="name saved with each answer (default: the login name)")
    parser.add_argument(
        "--port", type=int, default=8001, metavar="N", help="port of the page; 0 takes a free one (default: 8001)"
    )
    parser.add_argument("--terminal", action="store_true", help="ask in the terminal instead of on a page")
    parser.add_argument(
        "--report", action="store_true", help="ask nothing; only evaluate filters on the labels of the file"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns 0 even if the annotator stops early.

    Raises:
      InputError: for bad options, an unfinished work folder, an unusable labels file or, with --report, too few labels.
    """
    _check(args)
    work = read_work(args.work)
    if args.report:
        if not os.path.exists(args.output):
            raise InputError(
                "no such file", path=args.output, field="--output", remedy="label some pairs first: leave --report out"
            )
        report = make_report(work, args.output, args.seed)
        show_counts(report.counts)
        show_report(report)
        return 0
    pairs = readable_pairs(work, read_pairs(work)[0], args.language)  # before there is a file
    with LabelFile(args.output, args.annotator or _login(), origin(work, args)) as file:
        session = _session(work, pairs, file, args)
        try:
            _ask(session, args)
        except KeyboardInterrupt:
            print("\nstopped; run the same command again to resume")
    _conclude(work, args)
    return 0


def origin(work: Work, args: argparse.Namespace) -> list[str]:
    """The lines above the answers: the version, the inputs, and the filter that chose the pairs."""
    filter_digest = files.file_digest(f"{work.path}/triplets/evergreen.json")
    sampling = f"threshold {work.threshold:g} min_negative_days {work.options.min_negative_days}"
    languages = f" language {' '.join(args.language)}" if args.language else " one language"
    return [
        f"code_version {__version__}",
        *(f"{name} {digest}" for name, digest in work.digests.items()),
        f"evergreen.json {filter_digest}",
        f"sampling seed {args.seed} random_share {args.random_share:g} {sampling}{languages}",
    ]


def _check(args: argparse.Namespace) -> None:
    if args.count < 1:
        raise InputError(
            f"got {args.count}, expected at least 1", field="--count", remedy="a few hundred labels are enough"
        )
    if not 0 <= args.random_share <= 1:
        raise InputError(
            f"got {args.random_share}, expected 0 to 1", field="--random_share", remedy="0.4 suits most work"
        )


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:  # a container's user may have no name
        raise InputError("this login has no name", field="--annotator", remedy="give one") from error


def _session(work: Work, pairs: Sequence[Pair], file: LabelFile, args: argparse.Namespace) -> Session:
    unknown = (
        one for one in questions(pairs, work.threshold, args.seed, args.random_share) if not file.knows(one.pair.both)
    )
    chosen = list(itertools.islice(unknown, _SPARE * max(0, args.count - len(file.labels))))
    texts = read_texts(f"{work.path}/clean/articles", {doc_id for one in chosen for doc_id in one.pair.both})
    return Session(chosen, texts, file, args.count)


def _ask(session: Session, args: argparse.Namespace) -> None:
    if session.question is None:
        return
    if args.terminal:
        from rich.console import Console

        from .terminal import run_terminal, single_keys

        with single_keys() as read_key:
            run_terminal(session, read_key, Console())
        return
    from .server import LabelServer

    with LabelServer(session, args.port) as server:
        print(f"open {server.address}\nonly this machine can; Ctrl-C stops, every answer is kept", flush=True)
        server.wait()


def _conclude(work: Work, args: argparse.Namespace) -> None:
    """The current state; too few labels to cross-validate are not an error here."""
    counts = count_labels(args.output)
    show_counts(counts)
    if counts[-1][1] < args.count:
        print(f"{counts[-1][1]} of {args.count} labels; run the same command to add more, if there are pairs left")
    try:
        show_report(make_report(work, args.output, args.seed))
    except InputError as error:
        print(f"no cross-validation yet: {error.problem}")
    else:
        print(f"fit the filter on them: newsembed triplets … --labels {args.output}")
