"""Files of JSON lines."""

import json


def write_rows(path, rows):
    """Writes rows as JSON lines, with the folder of the file; returns the path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)
