"""Mutates one input file of a command, runs the command in this process, and says how it ended.

    make attack
    python tests/attack/fuzz.py --tries 400 --seed 1 --only "WARC and HTML"

Every try must end in one of these ways: a clear error (exit code 1 or 2, a message that names the file, no traceback),
a result that counts what was lost, or the result without the mutation. "Another input" is a result that differs where
nothing could tell that the file was changed: a letter of a text is another letter.
"""

import argparse
import collections
import contextlib
import copy
import dataclasses
import io
import json
import random
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import targets

SECONDS = 120  # for one try
WAYS = ("clear error", "counted", "survived", "another input", "SILENT", "UNCLEAR", "CRASHED")
BAD = ("SILENT", "UNCLEAR", "CRASHED")


@dataclasses.dataclass(frozen=True)
class Try:
    """One try: target, mutation, seed, how it ended (one of ``WAYS``), and the message."""

    target: str
    mutation: str
    seed: int
    way: str
    detail: str


@dataclasses.dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code, or the traceback, and what it printed."""

    code: int | None
    out: str
    err: str


def run(command):
    """Runs a command of newsembed in this process."""
    from newsembed.launch import cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), alarm():
        try:
            code = cli.main([str(part) for part in command])
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:  # noqa: BLE001 - whatever the command does not report is what is looked for
            code = None
            err.write(traceback.format_exc())
    return Ran(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def alarm():
    """Raises TimeoutError in a command that does not end."""

    def end(*_):
        raise TimeoutError(f"longer than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Attack:
    """Tries mutations of targets.

    Args:
      folder: where tries are made.
      chosen: the targets.
    """

    def __init__(self, folder, chosen):
        self.folder = folder
        self.targets = chosen
        self._expected = {}

    def expected(self, target):
        """The result without a mutation."""
        if target.name not in self._expected:
            place = self.folder / f"expected-{len(self._expected)}"
            ran = run(target.command(targets.copied(target, place), place / "out"))
            if ran.code is None or (ran.code and target.name != "gin file"):
                raise AssertionError(f"{target.name} without a mutation ends with {ran.code}\n{ran.err}")
            text = ran.out + (ran.err if ran.code else "")
            self._expected[target.name] = target.result(place / "out", text.replace(str(place), ""))
        return self._expected[target.name]

    def one(self, target, mutation, seed):
        """One try."""
        expected = self.expected(target)
        place = self.folder / f"try-{seed}"
        copied = targets.copied(target, place)
        path = copied / target.file if target.file else copied
        raw = path.read_bytes()
        changed = target.mutations[mutation](raw, random.Random(seed))
        path.unlink()
        if changed is not None:
            path.write_bytes(changed)
        try:
            ran = run(target.command(copied, place / "out"))
            way, detail = self._judged(target, ran, place, expected, same=changed == raw)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return Try(target.name, mutation, seed, way, detail.strip()[-1500:])

    def _judged(self, target, ran, place, expected, *, same):
        if ran.code is None or "Traceback (most recent call last)" in ran.err:
            return "CRASHED", ran.err
        if ran.code:
            if target.name == "gin file" and (ran.out + ran.err).replace(str(place), "") == expected:
                return "survived", ""
            # An empty gin file makes the options on the command line those of nothing: the message names one.
            where = (str(place / target.source.name), "usage:", *(["--gin."] if target.name == "gin file" else []))
            named = any(words in ran.err for words in where)
            return ("clear error" if ran.code in (1, 2) and named else "UNCLEAR"), ran.err
        found = target.result(place / "out", ran.out.replace(str(place), ""))
        if same or found == expected:
            return "survived", ""
        if _lost(found) != _lost(expected):
            return "counted", ""
        return ("SILENT" if target.guarded else "another input"), f"got {found}\nexpected {expected}"


def _lost(result):
    """The counts of a job's result that say what was not read as it is."""
    if not isinstance(result, dict) or "counts" not in result:
        return None
    counts = copy.deepcopy(result["counts"])
    return {name: counts.get(name) for name in ("in", "rejected", "failed", "tallies")}


def tries(chosen, count, seed):
    """So many (target, mutation, seed): each target in turn, each with its mutations in turn, in a seeded order."""
    generator = random.Random(seed)
    orders = {target.name: generator.sample(sorted(target.mutations), len(target.mutations)) for target in chosen}
    for number in range(count):
        target = chosen[number % len(chosen)]
        order = orders[target.name]
        yield target, order[number // len(chosen) % len(order)], seed * 100_000 + number


def table(done):
    """How the tries of each target ended, as a table."""
    lines = [f"| input | tried | {' | '.join(WAYS)} |", f"|---|{'---|' * (len(WAYS) + 1)}"]
    names = list(dict.fromkeys(one.target for one in done))
    for name in [*names, "all"]:
        ways = collections.Counter(one.way for one in done if name in (one.target, "all"))
        lines.append(f"| {name} | {ways.total()} | {' | '.join(str(ways[way]) for way in WAYS)} |")
    return "\n".join(lines)


def main():
    """Prints the table and the failures; returns 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="names of targets")
    parser.add_argument("--fast", action="store_true", help="leave out what loads TensorFlow")
    parser.add_argument("--log", type=Path, help="a file that gets every try as a line of JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newsembed-attack-") as folder:
        sources = Path(folder) / "sources"
        sources.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            every = targets.built(sources, slow=not args.fast)
        chosen = [target for target in every if not args.only or target.name in args.only]
        attack, done = Attack(Path(folder), chosen), []
        for target, mutation, seed in tries(chosen, args.tries, args.seed):
            done.append(attack.one(target, mutation, seed))
            if done[-1].way in BAD:
                print(f"{done[-1].way}: {target.name}, {mutation}, seed {seed}\n{done[-1].detail}\n", flush=True)
            if args.log:
                with args.log.open("a") as sink:
                    sink.write(json.dumps(dataclasses.asdict(done[-1])) + "\n")
    print(table(done))
    return int(any(one.way in BAD for one in done))


if __name__ == "__main__":
    sys.exit(main())
