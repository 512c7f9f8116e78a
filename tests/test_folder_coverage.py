"""The table of coverage by folder sums up files and reports a folder below its floor."""

import importlib.util
from pathlib import Path

_SPEC = importlib.util.spec_from_file_location("folder_coverage", Path(__file__).parent / "folder_coverage.py")
folder_coverage = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(folder_coverage)


def report(**counts):
    names = ("num_statements", "covered_lines", "num_branches", "covered_branches")
    return {
        "files": {
            path.replace("__", "/") + ".py": {"summary": dict(zip(names, numbers, strict=True))}
            for path, numbers in counts.items()
        }
    }


def test_files_are_summed_by_folder():
    found = folder_coverage.by_folder(
        report(models__a=(10, 10, 2, 1), models__deep__b=(6, 5, 2, 2), errors=(4, 4, 0, 0))
    )
    assert set(found) == {"models", "."}
    assert folder_coverage.percent(found["models"]) == 100 * 18 / 20
    assert folder_coverage.percent(found["."]) == 100
    lines, low = folder_coverage.table(found)
    assert not low
    assert lines[-1].split() == ["all", "20", "4", "91.7%"]  # 22 of 24


def test_a_folder_below_its_floor_is_reported_although_the_sum_is_not():
    lines, low = folder_coverage.table(
        folder_coverage.by_folder(report(models__a=(95, 95, 0, 0), tasks__a=(5, 3, 0, 0)))
    )
    assert low
    assert lines[-1].endswith("tasks")


def test_the_sum_has_a_floor_of_its_own():
    lines, low = folder_coverage.table(folder_coverage.by_folder(report(models__a=(100, 85, 0, 0))))
    assert low
    assert lines[-1].endswith("all")
