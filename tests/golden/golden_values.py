"""Readable values of what commands wrote: counts, ids, sampled rows and means; a difference says what changed."""

import json
import math
import zlib

import numpy as np
import pyarrow.parquet as pq

_ROWS = 4  # of a stream, sampled evenly
_TEXT = 16  # characters shown of a longer text


def job_values(folder):
    """Counts of a job and, for each of its streams, the number of rows, all ids, sampled rows and means of floats."""
    counts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["counts"]
    streams = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name not in ("manifest.json", "timing.json"):
            name = str((path.parent if path.name.startswith("part-") else path).relative_to(folder))
            streams.setdefault(name, []).append(path)
    return {"counts": counts, "streams": {name: _stream(paths) for name, paths in streams.items()}}


def _stream(paths):
    kind = paths[0].suffix
    if kind == ".parquet":
        return _table([row for path in paths for row in pq.read_table(path).to_pylist()])
    if kind == ".tfrecord":
        return _table([features for path in paths for features in _examples(path)])
    if kind in (".npy", ".npz"):
        loaded = np.load(paths[0])
        arrays = {name: loaded[name] for name in loaded} if kind == ".npz" else {"array": loaded}
        return {name: f"{array.dtype.kind}{list(array.shape)} mean {_number(array)}" for name, array in arrays.items()}
    lines = paths[0].read_text(encoding="utf-8").splitlines()
    return {"rows": len(lines), "sample": [_short(line, 80) for line in _sampled(lines)]}


def _examples(path):
    import tensorflow as tf

    for raw in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        yield {
            name: list(getattr(feature, feature.WhichOneof("kind")).value)
            for name, feature in sorted(tf.train.Example.FromString(raw).features.feature.items())
            if feature.WhichOneof("kind")
        }


def _table(rows):
    floats = {}
    for row in rows:
        for name, value in row.items():
            found = value if isinstance(value, list) else [value]
            if found and isinstance(found[0], float):
                floats.setdefault(name, []).extend(found)
    exact = sorted(" ".join(f"{name}={_cell(row[name])}" for name in row if name not in floats) for row in rows)
    values = {"rows": len(rows), "crc": f"{zlib.crc32(chr(10).join(exact).encode()):08x}", "sample": _sampled(exact)}
    if rows and isinstance(rows[0].get("doc_id"), str):
        values["ids"] = " ".join(sorted({row["doc_id"][:6] for row in rows}))
    return values | {f"mean {name}": _number(found) for name, found in floats.items()}


def _cell(value):
    if isinstance(value, list):
        text = ",".join(map(_cell, value[:8]))
        return f"[{text}…{len(value)}:{zlib.crc32(repr(value).encode()):08x}]" if len(value) > 8 else f"[{text}]"
    if isinstance(value, bytes):
        return value.hex() if len(value) <= 8 else f"{len(value)}:{zlib.crc32(value):08x}"
    return _short(str(value), 2 * _TEXT)


def _short(text, most):
    return text if len(text) <= most else f"{text[:_TEXT]}…{len(text)}:{zlib.crc32(text.encode()):08x}"


def _sampled(values):
    return values[:: max(1, len(values) // _ROWS)][:_ROWS]


def _number(values):
    if np.asarray(values).dtype.kind not in "biuf":
        return None
    found = np.asarray(values, np.float64)
    return float(f"{np.nanmean(found):.5g}") if found.size and not np.isnan(found).all() else None


def losses(folder):
    """The loss of each step of a training, and the parameters and checkpoints that it left."""
    with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    found = [(record["step"], name, value) for record in records for name, value in record.items() if "loss" in name]
    return {
        "losses": {f"{step} {name}": float(f"{value:.6g}") for step, name, value in found},
        "checkpoints": sorted(path.name for path in (folder / "checkpoints").iterdir()),
    }


def differences(found, expected, rtol, where=""):
    """One line for each value that differs; texts of several words by the words that came and went."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lines = [f"{where}/{name}: missing" for name in expected.keys() - found.keys()]
        lines += [f"{where}/{name}: new: {str(found[name])[:200]}" for name in found.keys() - expected.keys()]
        for name in expected.keys() & found.keys():
            lines += differences(found[name], expected[name], rtol, f"{where}/{name}")
        return sorted(lines)
    if isinstance(expected, float) and isinstance(found, int | float):
        is_equal = math.isclose(found, expected, rel_tol=rtol, abs_tol=rtol)
        return [] if is_equal else [f"{where}: got {found}, expected {expected}"]
    if found == expected:
        return []
    old, new = (value.split() if isinstance(value, str) else value for value in (expected, found))
    if isinstance(old, list) and isinstance(new, list):
        gone, came = [one for one in old if one not in new], [one for one in new if one not in old]
        return [f"{where}: gone {gone[:5]}, came {came[:5]}{'' if gone or came else ', another order'}"]
    return [f"{where}: got {found}, expected {expected}"]
