"""The whole road on a generated newsroom: crawl, mine, pretrain, train, evaluate, export, search.

Every step is a command of its own and is printed before it runs. A step that has finished is skipped on the next run.

example:
  newsembed demo --output demo-output
"""

import argparse
import time
from typing import Any

from ...tasks.errors import InputError
from .. import cli
from ..report import write_report
from . import checks, road


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed demo``."""
    parser.add_argument(
        "--output", default="demo-output", metavar="DIR", help="folder for everything the demo makes (default: demo-output)"
    )
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="seed of the newsroom (default: 7)")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="X", help="size of the newsroom; 1 is about 2,400 articles (default: 1)"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the demo; 0 if every step ran and every check of the report is met, 1 if a check is missed."""
    places = road.Places(args.output.rstrip("/"))
    started = time.monotonic()
    seconds: dict[str, float] = {}
    for step in road.steps(places, args.seed, args.scale):
        seconds[step.name] = _run_step(step)
    sections: dict[str, Any] = checks.score(places)
    sections["seconds"] = {**seconds, "in all": round(time.monotonic() - started, 1)}
    write_report(places.work, road.job_rows(places), sections)
    checks.show(sections)
    print(f"\nnumbers: {places.work}/report.json   plots and samples: {places.work}/report.html")
    print(
        f'search more: newsembed search --index {places.index} "words"   serve: newsembed serve --saved_model {places.saved_model} --index {places.index}'
    )
    return 0 if all(check["met"] for check in sections["checks"]) else 1


def _run_step(step: road.Step) -> float:
    if step.done():
        print(f"\n== {step.name}: done earlier, skipped")
        return 0.0
    started = time.monotonic()
    with step.around() as extra:
        command = [*step.command, *extra]
        print(f"\n== {step.name}\n$ newsembed {' '.join(command)}", flush=True)
        code = cli.main(command)
    if code:
        raise InputError(
            f"the step ended with exit code {code}", field=step.name, remedy="see the message above; run the demo again to go on from here"
        )
    return round(time.monotonic() - started, 1)
