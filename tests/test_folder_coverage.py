"""The table of coverage by folder sums up files and reports a folder below its floor."""

from pathlib import Path

import folder_coverage


def report(**counts):
    names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    return {
        "files": {
            path.replace("__", "/") + ".py": {"summary": dict(zip(names, numbers, strict=True))}
            for path, numbers in counts.items()
        }
    }


def test_files_are_summed_by_folder():
    counts = {"models__a": (10, 10, 2, 1), "models__deep__b": (6, 5, 2, 2), "errors": (4, 4, 0, 0)}
    found = folder_coverage.by_folder(report(**counts))
    assert set(found) == {"models", "."}
    assert folder_coverage.percent(found["models"]) == 100 * 18 / 20
    assert folder_coverage.percent(found["."]) == 100
    lines, low = folder_coverage.table(found)
    assert not low
    assert lines[-1].split() == ["all", "20", "4", "91.7%"]  # 22 of 24


def test_a_folder_and_the_sum_have_floors():
    for counts, name in (
        ({"models__a": (95, 95, 0, 0), "tasks__a": (5, 3, 0, 0)}, "tasks"),
        ({"models__a": (100, 85, 0, 0)}, "all"),
    ):
        lines, low = folder_coverage.table(folder_coverage.by_folder(report(**counts)))
        assert low
        assert lines[-1].endswith(name)


def test_modules_of_a_library_that_is_not_installed_are_left_out():
    modules = [f"t5x_bridge/{name}.py" for name in ("model", "optimizer", "partitioner")]
    assert folder_coverage.untestable(lambda name: None) == modules
    assert folder_coverage.untestable(lambda name: name) == []
    root = Path(__file__).parents[1]
    for path in sorted(root.glob("t5x_bridge/*.py")):
        imports = any(line.startswith(("import t5x", "from t5x")) for line in path.read_text().splitlines())
        assert imports == (f"t5x_bridge/{path.name}" in modules)
    found = folder_coverage.by_folder(report(t5x_bridge__rows=(5, 5, 0, 0), t5x_bridge__model=(9, 0, 0, 0)), modules)
    assert folder_coverage.percent(found["t5x_bridge"]) == 100
