"""Prints line and branch coverage by folder from the JSON report of coverage.py; exits with 1 below the floors.

python tests/folder_coverage.py .coverage.json

Modules that import a library that newsembed does not depend on can only be tested where it is installed. Elsewhere
they are left out, and the last line says so.
"""

import collections
import importlib.util
import json
import sys
from pathlib import Path, PurePath

FLOOR = 90.0  # percent of lines and branches in all folders together
FOLDER_FLOOR = 80.0  # percent of lines and branches in each folder
NEEDS = {"t5x": tuple(f"t5x_bridge/{name}.py" for name in ("model", "optimizer", "partitioner"))}
_COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def untestable(is_installed=importlib.util.find_spec):
    """The modules that need a library which is not installed."""
    return [module for library, modules in NEEDS.items() if not is_installed(library) for module in modules]


def by_folder(report, left_out=()):
    """Folder ("." for the root) -> Counter of the numbers in ``_COUNTS``, summed over its files and subfolders."""
    folders = collections.defaultdict(collections.Counter)
    for name, file in report["files"].items():
        if name in left_out:
            continue
        parts = PurePath(name).parts
        folders[parts[0] if len(parts) > 1 else "."].update({key: file["summary"][key] for key in _COUNTS})
    return folders


def percent(counts):
    """Covered lines and branches over all lines and branches, in percent; 100 where there is nothing to cover."""
    every = counts["num_statements"] + counts["num_branches"]
    return 100.0 * (counts["covered_lines"] + counts["covered_branches"]) / every if every else 100.0


def table(folders):
    """Lines of the table, and whether a floor is missed."""
    total = sum(folders.values(), collections.Counter())
    lines = [f"{'folder':20}{'lines':>10}{'branches':>10}{'covered':>10}"]
    for name, counts in [*sorted(folders.items()), ("all", total)]:
        lines.append(f"{name:20}{counts['num_statements']:10}{counts['num_branches']:10}{percent(counts):9.1f}%")
    low = [name for name, counts in sorted(folders.items()) if percent(counts) < FOLDER_FLOOR]
    if percent(total) < FLOOR:
        low.append("all")
    if low:
        lines.append(f"below the floor ({FLOOR:.0f} % in all, {FOLDER_FLOOR:.0f} % in each folder): {', '.join(low)}")
    return lines, bool(low)


def main():
    left_out = untestable()
    lines, low = table(by_folder(json.loads(Path(sys.argv[1]).read_text()), left_out))
    print("\n".join(lines))
    if left_out:
        print(f"left out, because the library that they need is not installed: {', '.join(left_out)}")
    return int(low)


if __name__ == "__main__":
    sys.exit(main())
