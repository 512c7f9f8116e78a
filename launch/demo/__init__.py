"""The whole road on a generated newsroom: crawl, mine, pretrain, train, evaluate, export, search.

Every step is a command of its own and is printed before it runs. A step that has finished is skipped on the next run.

example:
  newsembed demo --output demo-output
"""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from ...errors import InputError
from ...formats import files
from ...studies.report import write_report
from .. import cli
from . import checks, road

_MINING = ("generate", "crawl", "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed demo``."""
    parser.add_argument(
        "--output",
        default="demo-output",
        metavar="DIR",
        help="folder for everything the demo makes (default: demo-output)",
    )
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="seed of the newsroom (default: 7)")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="size of the newsroom; 1 is about 2,400 articles (default: 1)",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the demo; 0 if every step ran and every check of the report is met, 1 if a check is missed."""
    places = road.Places(args.output.rstrip("/"))
    diary = _open_diary(places, {"seed": args.seed, "scale": args.scale})
    for step in road.steps(places, args.seed, args.scale):
        seconds = run_step(step)
        if seconds is not None:
            diary["seconds"][step.name] = max(seconds, diary["seconds"].get(step.name, 0.0))
            files.write_json(places.diary, diary)
    sections: dict[str, Any] = checks.score(places)
    sections["seconds"] = {**diary["seconds"], "in all": round(sum(diary["seconds"].values()), 1)}
    write_report(places.work, road.job_rows(places), sections)
    checks.show(sections)
    print(f"\nnumbers: {places.work}/report.json   plots and samples: {places.work}/report.html")
    print(
        f'search more: newsembed search --index {places.index} "words"   serve: newsembed serve --saved_model {places.saved_model} --index {places.index}'
    )
    return 0 if all(check["met"] for check in sections["checks"]) else 1


def make_newsroom(
    output: str, seed: int, scale: float, turnover: float = 0.0, beam_args: Sequence[str] = ()
) -> road.Places:
    """Generates, crawls and mines a newsroom as the demo does, up to the training data; what the demo has done there is not done again.

    Raises:
      InputError: if the folder holds another newsroom, or a step fails.
    """
    places = road.Places(output.rstrip("/"))
    _open_diary(places, {"seed": seed, "scale": scale, **({"turnover": turnover} if turnover else {})})
    for step in road.steps(places, seed, scale, turnover):
        if step.name in _MINING:
            run_step(dataclasses.replace(step, command=[*step.command, *beam_args]) if step.name == "build" else step)
    return places


def _open_diary(places: road.Places, options: dict[str, Any]) -> dict[str, Any]:
    """What the folder holds: the options of its newsroom, and how long each step took when it did its work.

    Raises:
      InputError: if the folder holds another newsroom.
    """
    diary: dict[str, Any] = files.read_json(places.diary) if files.exists(places.diary) else {**options, "seconds": {}}
    found = {name: diary[name] for name in options}
    if found != options:
        raise InputError(
            f"the folder holds a demo with {found}, asked for is {options}",
            path=places.output,
            field="--output",
            remedy="name another folder",
        )
    files.write_json(places.diary, diary)
    return diary


def run_step(step: road.Step) -> float | None:
    """Runs a step unless it is finished; its seconds, None if it was.

    Raises:
      InputError: if it fails.
    """
    if step.is_finished():
        print(f"\n== {step.name}: done earlier, skipped")
        return None
    started = time.monotonic()
    with step.around() as extra:
        command = [*step.command, *extra]
        print(f"\n== {step.name}\n$ newsembed {' '.join(command)}", flush=True)
        code = cli.main(command)
    if code:
        raise InputError(
            f"the step ended with exit code {code}",
            field=step.name,
            remedy="see the message above; run the demo again to go on from here",
        )
    return round(time.monotonic() - started, 1)
