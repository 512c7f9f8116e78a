"""A study of several models: the runner that mines, trains and scores each of them with every seed."""

import dataclasses
import functools
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from ...errors import InputError
from ...evaluation.encoders import Encoder
from ...formats import files
from ...formats.command_line import named_imports
from .runs import Run, Trainer, train_all, train_in_process, write_run_file

T = TypeVar("T")

LANGUAGE_GROUPS: Final = ("English", "other languages")  # the columns of the paper's Tables 10 and 11


def load_checkpoint(run: Run, step: int) -> Encoder:
    """The encoder of a checkpoint."""
    from ...serving import factories

    return factories()["model"](f"{run.model}@{step}")


@dataclasses.dataclass(frozen=True)
class Tools:
    """The functions that do the work of a study, which tests replace: mine, train, load an encoder, print a line."""

    mine: Callable[..., dict[str, str]]
    trainer: Trainer = train_in_process
    make_encoder: Callable[[Run, int], Encoder] = load_checkpoint
    say: Callable[[str], None] = print


@dataclasses.dataclass(frozen=True)
class Variant:
    """One model of a study, which is trained with every seed.

    Attributes:
      name: in the table.
      mine: makes its data; returns the folder of each job.
      runs: its trainings, from the seed and these folders: those that it starts from, last its own. None of an encoder
        that is not trained here.
    """

    name: str
    mine: Callable[[], dict[str, str]]
    runs: Callable[[int, dict[str, str]], list[Run]]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a variant.

    Attributes:
      name: of the variant.
      problems: what went wrong, by "mining" or "seed N".
      scores: what the study's function of scores returned, by seed.
      jobs: the folder of each job.
      seconds: wall time of the trainings that it does not share.
    """

    name: str
    problems: Mapping[str, str]
    scores: Mapping[int, Any] = dataclasses.field(default_factory=dict)
    jobs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0


def conduct(
    variants: Sequence[Variant],
    seeds: int,
    score: Callable[[str, Run | None], Any] | None,
    parallel: int,
    tools: Tools,
) -> list[Outcome]:
    """Mines, trains and scores whatever is not finished yet; the failure of one variant stops no other.

    All trainings run before the first evaluation, because this process holds the accelerator once it evaluates.

    Args:
      variants: with distinct names.
      seeds: number of them.
      score: the scores of a variant by its name and its training, None for one that is not trained. Without it, only
        what variants share is trained, and the commands of the other trainings are printed.
      parallel: trainings at a time.
      tools: see `Tools`.
    """
    jobs, problems = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for variant in variants:
        found, problem = attempt(variant.mine)
        jobs[variant.name], problems[variant.name] = found or {}, {"mining": problem} if problem else {}
        if problem:
            tools.say(f"{variant.name}: mining failed: {problem}")
    mined = [variant for variant in variants if not problems[variant.name]]
    runs = {(one.name, seed): one.runs(seed, jobs[one.name]) for one in mined for seed in range(seeds)}
    for run in (run for several in runs.values() for run in several):
        write_run_file(run)
    first = {run.folder: run for several in runs.values() for run in several[:-1] if score or run.is_shared}
    wrong = train_all(list(first.values()), parallel, tools.trainer, tools.say)
    if score:
        ready = [several[-1] for several in runs.values() if several and not _wrong(several, wrong)]
        wrong |= train_all(ready, parallel, tools.trainer, tools.say)
        score = functools.cache(score)
    else:
        print_commands(list(runs.values()))
    scores: dict[str, dict[int, Any]] = {variant.name: {} for variant in variants}
    seconds = {variant.name: 0.0 for variant in variants}
    for (name, seed), several in runs.items():
        seconds[name] += sum(run.seconds() for run in several if not run.is_shared)
        problem = _wrong(several, wrong)
        if score and not problem:
            found, problem = attempt(functools.partial(score, name, several[-1] if several else None))
            scores[name] |= {} if problem else {seed: found}
            problem = problem and f"evaluation: {problem}"
            tools.say(f"{name}, seed {seed}: {problem or 'evaluated'}")
        problems[name] |= {f"seed {seed}": problem} if problem else {}
    return [Outcome(name, problems[name], scores[name], jobs[name], round(own, 1)) for name, own in seconds.items()]


def print_commands(runs: Sequence[Sequence[Run]]) -> None:
    """Prints the commands of the trainings that are not finished, a line for those that follow each other."""
    print("# at the same time, in any order; then the first command again, without --print_commands:")
    program = ["newsembed", *(f"--import={one}" for one in named_imports())]
    for several in runs:
        if words := [[*program, *run.command] for run in several if not run.is_trained()]:
            print(" && ".join(map(shlex.join, words)))


def _wrong(several: Sequence[Run], wrong: Mapping[str, str]) -> str:
    """What went wrong with the trainings of a variant with a seed; "" if nothing."""
    return "; ".join(
        f"{'training' if run is several[-1] else 'pretraining'}: {wrong[run.folder]}"
        for run in several
        if run.folder in wrong
    )


def attempt(work: Callable[[], T]) -> tuple[T | None, str]:
    """The result of ``work``, or None and what went wrong: a failure must not end the study."""
    try:
        return work(), ""
    except Exception as error:  # noqa: BLE001 - whatever it was, it is shown
        return None, str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"


def tell(outcomes: Sequence[Outcome]) -> int:
    """Prints what went wrong; returns the exit code: 1 if anything did."""
    lines = problem_lines(outcomes)
    for line in lines:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if lines else 0


def language_group(language: str) -> str:
    """The one of `LANGUAGE_GROUPS` that has a language."""
    return LANGUAGE_GROUPS[language != "en"]


def problem_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What went wrong, a line each."""
    return [f"{one.name}, {where}: {text}" for one in outcomes for where, text in one.problems.items()]


def write_files(output: str, numbers: Mapping[str, Any], text: str, plot: str | None) -> str:
    """Writes ``table.json``, ``table.md`` and, if there is one, ``plot.svg``; returns their paths, for the terminal."""
    files.write_json(f"{output}/table.json", numbers)
    for name, content in {"table.md": text, "plot.svg": plot}.items():
        if content is not None:
            files.write_whole(f"{output}/{name}", content.encode())
    return f"table: {output}/table.md   numbers: {output}/table.json   plot: {output}/plot.svg"
