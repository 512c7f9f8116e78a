"""``newsembed label``: label far neighbors as false or true negatives, to fit the evergreen filter.

Shows two articles side by side, on a page that only this machine can open, and asks whether they report the same story
or are the same evergreen piece. Uncertain pairs come first, with random ones between them. Every answer is saved before
the next question; the same command resumes the work. Both articles are in one language, unless --language names the
languages that the annotator reads.

example:
  newsembed label --work work --output labels.tsv
  newsembed label --work work --output labels.tsv --language en de
  newsembed label --work work --output labels.tsv --report
  newsembed triplets --articles work/clean --neighbors work/neighbors --labels labels.tsv --output work/triplets
"""

import contextlib
import dataclasses
import getpass
import itertools
import os
from collections.abc import Iterator
from typing import Final

from ... import __version__
from ...errors import InputError, refusing
from ...formats import files
from ...formats.command_line import Options, option, required, several
from .pairs import RANDOM_SHARE, Work, questions, read_pairs, read_work, readable_pairs
from .report import count_labels, make_report, show_counts, show_report
from .session import LabelFile, Session, read_texts

_SPARE: Final = 2  # questions prepared for each label, since some are skipped


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """The options of ``newsembed label``."""

    work: str = required("work folder of newsembed build; reads clean, neighbors and triplets", metavar="DIR")
    output: str = required("labels file (TSV); an existing one is continued", metavar="FILE", local=True)
    count: int = option(300, "stop when the file has N labels", ge=1)
    seed: int = option(0, "seed of the random pairs and the folds")
    language: tuple[str, ...] = several(
        "languages that the annotator reads; each article of a pair is in one of them, so a pair may cross languages "
        "(default: any language, the same for both articles)",
        "TAG",
    )
    annotator: str | None = option(None, "name saved with each answer (default: the login name)", metavar="NAME")
    port: int = option(8001, "port of the page; 0 takes a free one", ge=0, le=65_535)
    report: bool = option(False, "ask nothing; only evaluate filters on the labels of the file")


OPTIONS: Final = LabelOptions


def run(options: LabelOptions) -> int:
    """Runs the command; returns 0 even if the annotator stops early."""
    work, path = read_work(options.work), options.output
    if options.report:
        if not os.path.exists(path):
            remedy = "label some pairs first: leave --report out"
            raise InputError("no such file", path=path, field="--output", remedy=remedy)
        report = make_report(work, path, options.seed)
        show_counts(report.counts)
        show_report(report)
        return 0
    with open_session(work, options) as session:
        try:
            if session.question is not None:
                from .server import LabelServer

                server = LabelServer(session, options.port)
                print(f"open {server.address}\nonly this machine can; Ctrl-C stops, every answer is kept", flush=True)
                server.run()
        except KeyboardInterrupt:
            print("\nstopped; run the same command again to resume")
    counts = count_labels(path)
    show_counts(counts)
    if counts[-1][1] < options.count:
        print(f"{counts[-1][1]} of {options.count} labels; run the same command to add more, if there are pairs left")
    try:
        show_report(make_report(work, path, options.seed))
    except InputError as error:  # too few labels to cross-validate
        print(f"no cross-validation yet: {error.problem}")
    else:
        print(f"fit the filter on them: newsembed triplets … --labels {path}")
    return 0


@contextlib.contextmanager
def open_session(work: Work, options: LabelOptions) -> Iterator[Session]:
    """The session of a command; an error before the first question leaves no file."""
    pairs = readable_pairs(work, read_pairs(work)[0], options.language)
    # A container's user may have no name.
    with refusing("this login has no name", OSError, KeyError, field="--annotator", remedy="give one"):
        annotator = options.annotator or getpass.getuser()
    with LabelFile(options.output, annotator, origin(work, options)) as file:
        asked = questions(pairs, work.threshold, options.seed)
        unknown = (one for one in asked if not file.knows(one.pair.both))
        chosen = list(itertools.islice(unknown, _SPARE * max(0, options.count - len(file.labels))))
        texts = read_texts(f"{work.path}/clean/articles", {doc_id for one in chosen for doc_id in one.pair.both})
        yield Session(chosen, texts, file, options.count)


def origin(work: Work, options: LabelOptions) -> list[str]:
    """The lines above the answers: the version, the inputs, and the filter that chose the pairs."""
    filter_digest = files.file_digest(f"{work.path}/triplets/evergreen.json")
    sampling = f"threshold {work.threshold:g} min_negative_days {work.options.min_negative_days}"
    languages = f" language {' '.join(options.language)}" if options.language else " one language"
    return [
        f"code_version {__version__}",
        *(f"{name} {digest}" for name, digest in work.digests.items()),
        f"evergreen.json {filter_digest}",
        f"sampling seed {options.seed} random_share {RANDOM_SHARE:g} {sampling}{languages}",
    ]
