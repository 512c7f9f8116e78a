"""The mutation runner: the faults that it makes, the tree that the tests see, and its table of files."""

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mutmut", reason="mutmut is not installed: make setup")
sys.path.insert(0, str(Path(__file__).parent))

import modules
import mutants
import run

ROOT = Path(__file__).parents[2]


def faults(source):
    """The changed lines of all mutants of a piece of code."""
    found = mutants.sample_mutants("m.py", source, 1000, 0)
    before = source.splitlines()
    return {
        line.strip() for mutant in found for line in mutant.code.splitlines() if line not in before and line.strip()
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < 2\n", {"x = a <= 2", "x = a < 3", "x = a < 1"}),
        ("x = a + b\n", {"x = a - b", "x = a", "x = b"}),
        ("x = a and b\n", {"x = a or b", "x = a", "x = b"}),
        ("x = f(a, b)\n", {"x = f(b, a)"}),
        ("x = f(a, key=b)\n", {"x = f(a)"}),
        ("f(a)\n", {"pass"}),
        ("x += 1\n", {"x -= 1", "x = 1", "x += 2", "x += 0", "pass"}),
        ("x = not a\n", {"x = a"}),
        ("x = [i for i in a if i]\n", {"x = [i for i in a]", "x = [i for i in a if not (i)]"}),
        ("x = a if b else c\n", {"x = a if (b) and False else c", "x = a if (b) or True else c"}),
        ("x = s.lstrip()\n", {"x = s.rstrip()"}),
        ("x = a in b\n", {"x = a not in b"}),
    ],
)
def test_the_faults_of_each_kind(source, expected):
    assert expected <= faults(source)


@pytest.mark.parametrize(
    "source",
    [
        '"""Text with 1 number."""\n',
        "x: int | None\n",
        "raise InputError(1 + a)\n",
        "_logger.warning(1, 2)\n",
        "_LOG.info(1, exc_info=True)\n",
        "@cache(1)\ndef f(): ...\n",
        "from a import b\n",
        "x = zip(*a, strict=True)\n",
        "x = min(a, b)\n",
        "x = np.maximum(a, b)\n",
    ],
)
def test_texts_types_and_messages_are_left_alone(source):
    assert faults(source) == set()


def test_the_sample_repeats_by_seed_and_every_mutant_is_python():
    path = "evaluation/benchmark.py"
    source = (ROOT / path).read_text()
    one, again, other = (mutants.sample_mutants(path, source, 8, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert len({mutant.code for mutant in one}) == 8
    for mutant in one:
        ast.parse(mutant.code)
        changed = [line for line in mutant.diff.splitlines() if line.startswith(("+", "-")) and line[1:3] not in "++--"]
        assert changed


def test_a_sample_has_mutants_of_every_module_and_as_many_as_asked():
    paths = ["evaluation/shots.py", "models/greedy.py", "updates/report.py"]
    for count, expected in ((8, [2, 3, 3]), (3, [1, 1, 1]), (1, [1, 1, 1])):
        drawn = run.draw(paths, count, 0)
        assert sorted(sum(mutant.path == path for mutant in drawn) for path in paths) == expected


def test_every_module_and_test_file_of_the_table_exists():
    for module, tests in modules.TESTS.items():
        for path in (module, *tests):
            assert (ROOT / path.partition("::")[0]).exists(), path


def test_the_defaults_of_a_module_are_among_its_tests():
    first, *_ = modules.TESTS["training/guards.py"]
    assert first.endswith("::test_defaults_of_a_module_are_those_on_record[training/guards.py]")
    assert not any("::" in test for test in modules.TESTS["models/masking.py"])


def test_the_tree_is_the_repository_with_one_file_changed(tmp_path):
    mutant = mutants.Mutant("evaluation/diagnostics/pairs.py", 1, "number", "CHANGED = 1\n", "")
    run.linked_tree(str(tmp_path), mutant)
    tree = tmp_path / "newsembed"
    assert (tree / mutant.path).read_text() == "CHANGED = 1\n"
    for path in (
        "__init__.py",
        "errors.py",
        "models/losses.py",
        "evaluation/retrieval.py",
        "evaluation/diagnostics/articles.py",
    ):
        assert (tree / path).samefile(ROOT / path)
    assert not (tree / mutant.path).samefile(ROOT / mutant.path)
    assert not (tree / "evaluation/__pycache__").exists()


def test_the_faults_without_effect_are_lines_of_their_modules_and_have_reasons():
    for (module, line, instead), reason in run.equivalents().items():
        present = [one.strip() for one in (ROOT / module).read_text().splitlines()]
        for part in line.splitlines():
            assert part in present, (module, part)
        assert instead != line, module
        assert len(reason.split()) >= 4, (module, line)


def test_a_fault_is_found_in_the_list_by_its_lines_alone(tmp_path):
    listed = tmp_path / "equivalent.toml"
    listed.write_text('[[fault]]\nmodule = "m.py"\nline = "x = a < 2"\ninstead = "x = a < 3"\nreason = "a is even"\n')
    reasons = {}
    for mutant in mutants.sample_mutants("m.py", "def f(a):\n    x = a < 2\n", 100, 0):
        reason = run.equivalents(listed).get(run.fault_key(mutant.path, mutant.diff))
        if reason:
            reasons[mutant.code] = reason
    assert reasons == {"def f(a):\n    x = a < 3\n": "a is even"}


def test_the_table_gives_the_share_with_and_without_the_faults_that_change_no_result():
    counts = {"a/b.py": run.collections.Counter(killed=6, timeout=1, equivalent=2, survived=1)}
    counts["c/d.py"] = run.collections.Counter(killed=2)
    *_, one, other, every = run.table(counts)
    assert one == "a: 7 of 10 found by a test (70.0%), of those that change a result 7 of 8 (87.5%)"
    assert other == "c: 2 of 2 found by a test (100.0%)"
    assert every == "all: 9 of 12 found by a test (75.0%), of those that change a result 9 of 10 (90.0%)"


TOY_TEST = """
import time
from newsembed.errors import VALUE

def test_value():
    while VALUE == "forever":
        pass
    assert VALUE == "right"
"""


def in_another_process(code):
    """What a piece of code with ``run`` prints last; in a process of its own, since this one imported newsembed."""
    code = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nimport mutants\nimport run\n{code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def toy_jobs(folder, test, *values):
    """Code that makes jobs with faults that give errors.VALUE a value each, and an empty folder of programs."""
    test_file = folder / "test_toy.py"
    test_file.write_text(test)
    source = (ROOT / "errors.py").read_text()
    return f"""
def job(value, seconds=100):
    code = {source!r} + f"\\nVALUE = {{value!r}}\\n"
    return mutants.Mutant("errors.py", 1, "name", code, value), {str(test_file)!r}, run.Limits(600, seconds)

folder = run.Path({str(folder)!r})
programs = run.Compiled(folder / "programs")
programs.folder.mkdir()
jobs = (job(*value) for value in {values!r})
"""


def test_a_fork_sees_the_fault_and_has_a_limit_of_cpu_seconds(tmp_path):
    code = toy_jobs(tmp_path, TOY_TEST, ("right",), ("wrong",), ("forever", 6))
    code += "print(*(outcome.name for outcome in run.run_trials(jobs, 1, programs)))"
    assert in_another_process(code) == "survived killed timeout"


LEAVES_A_FILE = """
import tempfile

def test_value():
    tempfile.mkdtemp()
    from newsembed.errors import VALUE
    if VALUE == "forever":
        import subprocess
        subprocess.run(["sleep", "600"])
"""


def test_neither_a_fork_that_ended_nor_one_that_runs_leaves_a_folder(tmp_path):
    (tmp_path / "temporary").mkdir()
    code = f"import tempfile\ntempfile.tempdir = {str(tmp_path / 'temporary')!r}\n"
    code += toy_jobs(tmp_path, LEAVES_A_FILE, ("right",), ("forever",))
    code += "trials = run.run_trials(jobs, 2, programs)\nfirst = next(trials)\n"
    code += "there = run.os.path.exists(first.trial.folder)\ntrials.close()\n"
    code += "print(first.name, there, run.os.listdir(tempfile.tempdir))"
    assert in_another_process(code) == "survived True []"


def test_a_run_in_parts_tries_each_mutant_with_each_test_file_once(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "TESTS", {"m.py": ("quick", "slow"), "n.py": ("quick",)})
    drawn = [
        mutants.Mutant(f"{fault[0]}.py", 1, "name", "code", f"- {fault}") for fault in ("m1", "m2", "m3", "n4", "n5")
    ]
    noticed = {("quick", "- m1"), ("quick", "- n5"), ("slow", "- m3")}
    tried = []

    def trials(jobs, processes, compiled):
        for number, (mutant, test, limits) in enumerate(jobs):
            assert limits == (run.Limits(3600, 900) if mutant is None else run.Limits(140.0, 22))
            tried.append((test, mutant and mutant.diff))
            (tmp_path / run.PROGRAMS).mkdir(exist_ok=True)
            trial = run.Trial(mutant, test, 0, 0, str(tmp_path))
            yield run.Outcome(trial, int(tried[-1] in noticed), 2.0, 3.0)
            if number == 2:
                return  # as at the end of a part's minutes

    monkeypatch.setattr(run, "run_trials", trials)
    for _ in range(2):
        run.try_mutants(drawn, 1, run.Compiled(tmp_path), run.Journal.read(tmp_path / "tried.jsonl"))
    first = [("quick", None), *(("quick", f"- {fault}") for fault in ("m1", "m2", "m3"))]
    assert tried == [
        *first,
        *(("slow", None), ("slow", "- m2"), ("slow", "- m3")),
        *(("quick", "- n4"), ("quick", "- n5")),
    ]
    outcomes = run.Journal.read(tmp_path / "tried.jsonl").outcomes
    assert {diff: outcome for (_, diff), outcome in outcomes.items()} == {
        "- m1": "killed",
        "- m2": "survived",
        "- m3": "killed",
        "- n4": "survived",
        "- n5": "killed",
    }


def test_what_a_library_does_to_logging_while_it_is_imported_is_undone(tmp_path, monkeypatch):
    """As Beam does: it logs, which gives the root a handler that prints all messages."""
    code = "import logging\nlogging.getLogger().addHandler(logging.StreamHandler())\nIMPORTED = True\n"
    (tmp_path / "noisy_library.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(run, "LIBRARIES", ("noisy_library",))
    monkeypatch.setattr(run.importlib.metadata, "entry_points", lambda **_: [])
    monkeypatch.setattr(run.gc, "freeze", lambda: None)
    before = list(logging.getLogger().handlers)
    run.import_libraries()
    assert sys.modules["noisy_library"].IMPORTED
    assert logging.getLogger().handlers == before


def test_no_mutant_starts_after_the_time():
    jobs = run.while_time(iter("abc"), run.math.inf)
    assert next(jobs) == "a"
    assert list(run.while_time(iter("abc"), run.time.monotonic())) == []
