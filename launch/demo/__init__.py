"""The whole pipeline on a generated newsroom: crawl, mine, pretrain, train, evaluate, export, search.

Every step is a separate command and is printed before it runs. The next run skips the steps that are finished.

example:
  newsembed demo --output demo-output
"""

import argparse
import time
from typing import Any

from ...errors import InputError, raise_if_stopped
from ...formats import files
from ...studies.report import write_report
from ...studies.shared.newsroom import NEWSROOM_SEED, open_diary
from .. import cli
from . import checks
from .steps import Places, Step, job_rows, steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed demo``."""
    parser.add_argument(
        "--output",
        default="demo-output",
        metavar="DIR",
        help="folder for everything that the demo makes (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=NEWSROOM_SEED, metavar="N", help="seed of the newsroom (default: %(default)s)"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="size of the newsroom; 1 is about 2,500 articles, and what the checks are made for (default: 1)",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the demo; returns 0 if every step runs and every check is met, 1 if a check is missed.

    Raises:
      InputError: if the folder holds another newsroom, or a step fails.
    """
    places = Places(args.output.rstrip("/"))
    diary = open_diary(places, {"seed": args.seed, "scale": args.scale})
    for step in steps(places, args.seed, args.scale):
        seconds = run_step(step)
        if seconds is not None:
            diary["seconds"][step.name] = max(seconds, diary["seconds"].get(step.name, 0.0))
            files.write_json(places.diary, diary)
    sections: dict[str, Any] = checks.score(places)
    sections["seconds"] = {**diary["seconds"], "in all": round(sum(diary["seconds"].values()), 1)}
    write_report(places.work, job_rows(places), sections)
    checks.show(sections["checks"])
    if args.scale < 1 and not all(check["met"] for check in sections["checks"]):
        print(
            f"The checks are made for --scale 1: with {args.scale:g} there is less to learn from, and some are missed."
        )
    print(f"\nnumbers: {places.work}/report.json   plots and samples: {places.work}/report.html")
    print(f'search more: newsembed search --index {places.index} "words"')
    print(f"serve: newsembed serve --saved_model {places.saved_model} --index {places.index}")
    return 0 if all(check["met"] for check in sections["checks"]) else 1


def run_step(step: Step) -> float | None:
    """Runs a step unless it is finished; returns its seconds, or None if it was finished.

    Raises:
      InputError: if it fails.
      KeyboardInterrupt: if Ctrl-C or SIGTERM stopped it.
    """
    if step.is_finished():
        print(f"\n== {step.name}: already finished, skipped")
        return None
    started = time.monotonic()
    with step.around() as extra:
        command = [*step.command, *extra]
        print(f"\n== {step.name}\n$ newsembed {' '.join(command)}", flush=True)
        code = cli.main(command)
    raise_if_stopped(code)
    if code:
        raise InputError(
            f"the step ended with exit code {code}",
            field=step.name,
            remedy="see the message above; run the demo again to resume it",
        )
    return round(time.monotonic() - started, 1)
