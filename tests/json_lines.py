"""Files of JSON lines."""

import json


def write_rows(path, rows):
    """Writes rows as JSON lines, with the folder of the file; returns the path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def read_rows(path):
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
