"""Puts small faults into modules, one at a time, and prints those that no test notices.

    python tests/mutants.py --sample 300 --seed 1 --output mutants
    python tests/mutants.py --sample 60 --only 'evaluation/*'

The operators are mutmut's, and a few that it lacks. mutmut's own runner copies sources below one folder, but here the
root of the repository is the package. So this script writes a changed copy of one module into a tree of links, forks
(the libraries are imported once) and runs the test files that import the module, until one of them fails. What was
tried is in ``OUTPUT/tried.jsonl``; the same command goes on from there. Survivors are in ``OUTPUT/survivors.diff``.
"""

import argparse
import contextlib
import difflib
import fnmatch
import importlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import libcst as cst
import libcst.matchers as m
from mutmut.mutation import mutators

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
LIBRARIES = (
    "numpy scipy.stats sklearn.linear_model sklearn.metrics pyarrow.dataset pyarrow.parquet tensorflow tensorflow_text "
    "jax flax.linen optax orbax.checkpoint grain seqio apache_beam faiss scann trafilatura lxml.html fastwarc "
    "resiliparse.parse.html tokenizers rensa pytest gin hypothesis.extra.numpy"
).split()
MOST_FILES = 6  # test files that a mutant meets
SECONDS = 300  # of a test file with a mutant, before it counts as a fault that hangs
# Texts for people, types, and calls whose loss no test should notice.
SKIPPED = (
    m.Annotation()
    | m.Raise()
    | m.Decorator()
    | m.Import()
    | m.ImportFrom()
    | m.FormattedString()
    | m.Call(func=m.Name("InputError") | m.Name("option") | m.Name("required"))
    | m.Arg(keyword=m.Name("strict") | m.Name("encoding") | m.Name("remedy"))
)


def negated(node):
    """The opposite condition."""
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def one_side(node):
    """One of two terms, factors or conditions."""
    yield node.left
    yield node.right


def dropped_statement(node):
    """A call or an augmented assignment left out."""
    if m.matches(node, m.SimpleStatementLine(body=[m.Expr(value=m.Call() & ~SKIPPED) | m.AugAssign()])):
        yield node.with_changes(body=[cst.Pass()])


OPERATORS = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.IfExp, mutators.operator_if_exp),
    ((cst.BinaryOperation, cst.BooleanOperation), one_side),
    ((cst.If, cst.While, cst.CompIf), negated),
    (cst.SimpleStatementLine, dropped_statement),
)


def faults(node):
    """(node, what replaces it) of every fault below a node."""
    docstring = m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString() | m.ConcatenatedString())])
    if m.matches(node, SKIPPED) or m.matches(node, docstring):
        return
    for kinds, operator in OPERATORS:
        if isinstance(node, kinds):
            yield from ((node, changed) for changed in operator(node))
    for child in node.children:
        yield from faults(child)


def mutants(path, source, count, seed):
    """At most `count` (code, diff) of a module; the same for the same seed."""
    module, found = cst.parse_module(source), {}
    every = list(faults(module))
    random.Random(f"{seed} {path}").shuffle(every)
    for node, changed in every:
        code = module.deep_replace(node, changed).code
        if len(found) < count and code != source:
            with contextlib.suppress(SyntaxError):
                compile(code, path, "exec")
                lines = difflib.unified_diff(source.splitlines(), code.splitlines(), path, path, "", "", 2, "")
                found[code] = "\n".join(lines)
    return list(found.items())


def test_files(path, tests):
    """The test files that import a module: the one of its name first, then the shortest."""
    dotted = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parent, _, name = f"newsembed.{dotted}".rpartition(".")
    imports = (f"{parent}.{name}", f"from {parent} import {name}")
    using = [
        file for file, text in tests.items() if any(words in text for words in imports) or name in _listed(text, parent)
    ]
    return sorted(using, key=lambda file: (f"test_{name}.py" not in file, len(tests[file])))[:MOST_FILES]


def _listed(text, parent):
    """The names that a test imports from a package."""
    lines = [line.partition(" import ")[2] for line in text.splitlines() if line.startswith(f"from {parent} import ")]
    return {name.strip(" ()") for line in lines for name in line.split(",")}


def linked_tree(folder, path, code):
    """Makes `newsembed` in a folder of links to the repository, with another text for one module."""
    source, target = ROOT, Path(folder, "newsembed")
    *folders, name = Path(path).parts
    for inner in [*folders, name]:
        target.mkdir()
        for entry in source.iterdir():
            if entry.name not in {inner, "__pycache__", ".git", ".venv"}:
                (target / entry.name).symlink_to(entry)
        source, target = source / inner, target / inner
    target.write_text(code, encoding="utf-8")


def notices(path, code, files):
    """The first test file that fails with the fault, or None."""
    for file in files:
        folder = tempfile.mkdtemp(prefix="mutant-")
        linked_tree(folder, path, code)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            try:
                result = _run_tests(folder, file)
            except BaseException:  # noqa: BLE001 - a fork must never return into its caller
                result = 1
            os._exit(result)
        deadline, status = time.monotonic() + SECONDS, None
        while status is None:
            ended, code_of = os.waitpid(pid, os.WNOHANG)
            late = time.monotonic() > deadline
            status = code_of if ended else 1 if late else None
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        shutil.rmtree(folder, ignore_errors=True)
        if status:
            return file
    return None


def _run_tests(folder, file):
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.dont_write_bytecode = True
    sys.path[:0] = [folder, str(ROOT)]
    tempfile.tempdir = folder
    os.environ.update(PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1", TMPDIR=folder)
    os.chdir(ROOT)
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, f"--basetemp={folder}/tmp", file]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300, metavar="N", help="mutants to try")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="modules to try")
    parser.add_argument("--output", default="mutants", metavar="DIR")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no mutant after that")
    options = parser.parse_args()
    names = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    tests = {name: text for name, text in texts.items() if Path(name).name.startswith("test_")}
    paths = [name for name in names if name.split("/")[0] in PACKAGES and fnmatch.fnmatch(name, options.only)]
    # A module is drawn as often as its size asks for.
    drawn = random.Random(options.seed).choices(paths, [len(texts[path]) for path in paths], k=options.sample)
    chosen = [
        (path, code, diff)
        for path in sorted(set(drawn))
        for code, diff in mutants(path, texts[path], drawn.count(path), options.seed)
    ]
    os.makedirs(options.output, exist_ok=True)
    journal = Path(options.output, "tried.jsonl")
    tried = {one["diff"]: one for one in map(json.loads, journal.read_text().splitlines())} if journal.exists() else {}
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    end = time.monotonic() + 60 * options.minutes
    for path, code, diff in chosen:
        if diff not in tried and time.monotonic() < end:
            by = notices(path, code, test_files(path, tests))
            tried[diff] = {"path": path, "diff": diff, "noticed by": by}
            with open(journal, "a", encoding="utf-8") as sink:
                sink.write(json.dumps(tried[diff]) + "\n")
            print(f"{'noticed ' if by else 'SURVIVED'} {path} {by or ''}", flush=True)
    done = [tried[diff] for _, _, diff in chosen if diff in tried]
    survivors = [one["diff"] for one in done if not one["noticed by"]]
    Path(options.output, "survivors.diff").write_text("\n\n".join(survivors))
    print(
        f"{len(done) - len(survivors)} of {len(done)} noticed by a test; {len(chosen) - len(done)} of the sample left"
    )


if __name__ == "__main__":
    main()
