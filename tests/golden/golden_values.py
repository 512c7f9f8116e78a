"""Values of files that commands wrote, and their comparison with recorded ones.

Values other than floats go into digests and must be equal. The last digits of floats depend on the processor: for a
column of floats the count, the sum and the sum of squares are kept.
"""

import collections
import csv
import hashlib
import json
import math
import os
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_FLOAT = re.compile(r"-?(\d+\.\d*|\d*\.\d+|\d+)(e[-+]?\d+)?|-?inf|nan", re.IGNORECASE)
_SECONDS = {"seconds", "documents_per_second"}
_TIMED = {"seconds_per_step", "tokens_per_second", "input_wait", "mfu", "peak_device_bytes"}
_DIMENSIONS, _ROWS = 8, 20  # kept of embeddings
_ROUNDING = 1e-6  # of a parameter that has no gradient
SUMS = "SHA256SUMS"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_sums(folder):
    """Compares SHA256SUMS with the files; a folder of a version that did not write it has none.

    The digests are compared with the files, not recorded: those of floats depend on the processor.
    """
    if not (folder / SUMS).exists():
        assert folder.parts[-3:-1] == ("model_before", "checkpoints"), folder
        return
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    assert lines == [f"{sha256(folder / name)}  {name}" for name in names]


def job_values(folder):
    """Names of all files of a job, its manifest, and the content of each stream.

    The sizes in the manifest are compared with the files, not recorded: those of compressed floats depend on the
    processor.
    """
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    streams = collections.defaultdict(list)
    for name in files:
        if name not in ("manifest.json", "timing.json"):
            stream, _, file = name.rpartition("/")
            streams[stream if file.startswith("part-") else name].append(folder / name)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    sizes = {name: (folder / name).stat().st_size for name in files if name not in ("manifest.json", "timing.json")}
    assert manifest.pop("files") == sizes
    assert manifest.pop("sha256") == {name: sha256(folder / name) for name in sizes}
    return {
        "files": files,
        "manifest": manifest,
        "streams": {name: stream_values(paths) for name, paths in streams.items()},
    }


def stream_values(paths):
    """The content of files, in their order, by the kind of the first."""
    kind = paths[0].suffix
    if kind == ".parquet":
        return _parquet_values(paths)
    if kind == ".tfrecord":
        return _tfrecord_values(paths)
    if kind in (".npy", ".npz"):
        return _array_values(paths[0])
    if kind == ".tsv":
        return _table_values(paths[0])
    if kind == ".json":
        return without_seconds(json.loads(paths[0].read_text(encoding="utf-8")))
    content = b"".join(path.read_bytes() for path in paths)
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def without_seconds(value):
    """JSON without what differs from run to run."""
    if isinstance(value, dict):
        return {name: without_seconds(item) for name, item in value.items() if name not in _SECONDS}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def moments(values):
    """What is kept of floats."""
    found = np.asarray(values, np.float64).ravel()
    known = found[~np.isnan(found)]
    return {
        "count": found.size,
        "nan": int(found.size - known.size),
        "sum": float(known.sum()),
        "squares": float((known**2).sum()),
    }


def _parquet_values(paths, without=()):
    digest, floats, rows = hashlib.sha256(), collections.defaultdict(list), 0
    for path in paths:
        table = pq.read_table(path)
        table = table.drop_columns([name for name in without if name in table.column_names])
        rows += table.num_rows
        exact = []
        for field in table.schema:
            column = table.column(field.name).combine_chunks()
            if _is_float(field.type):
                leaves = column.flatten() if pa.types.is_nested(field.type) else column
                floats[field.name] += leaves.to_pylist()
                if pa.types.is_list(field.type):
                    exact.append(pa.compute.list_value_length(column).to_pylist())
            else:
                exact.append(column.to_pylist())
        for row in zip(*exact, strict=True):
            digest.update(repr(row).encode())
    return {
        "rows": rows,
        "schema": [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in table.schema],
        "sha256": digest.hexdigest(),
        "floats": {name: moments(values) for name, values in floats.items()},
    }


def _is_float(kind):
    return pa.types.is_floating(kind.value_type if pa.types.is_list(kind) else kind)


def _tfrecord_values(paths):
    digest, count = hashlib.sha256(), 0
    for path in paths:
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            (length,) = struct.unpack_from("<Q", raw, at)
            digest.update(raw[at : at + 8] + raw[at + 12 : at + 12 + length])
            at += length + 16
            count += 1
    return {"records": count, "sha256": digest.hexdigest()}


def _array_values(path):
    loaded = np.load(path)
    arrays = {name: loaded[name] for name in loaded} if path.suffix == ".npz" else {"array": loaded}
    values = {}
    for name, array in arrays.items():
        is_float = np.issubdtype(array.dtype, np.floating)
        content = moments(array) if is_float else hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        values[name] = {"dtype": str(array.dtype), "shape": list(array.shape), "content": content}
    return values


def _table_values(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    digest, floats = hashlib.sha256(), collections.defaultdict(list)
    for row in rows:
        for number, cell in enumerate(row):
            if _FLOAT.fullmatch(cell) and not cell.lstrip("-").isdigit():
                floats[str(number)].append(float(cell))
            else:
                digest.update(f"{number}\t{cell}\n".encode())
        digest.update(b"\0")
    return {
        "rows": len(rows),
        "sha256": digest.hexdigest(),
        "floats": {name: moments(values) for name, values in floats.items()},
    }


def model_values(folder):
    """What training wrote, but for the configuration, the times and the bytes of checkpoints."""
    with open(folder / "metrics.jsonl", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    checkpoints = folder / "checkpoints"
    for step in checkpoints.iterdir():
        check_sums(step)
    return {
        "metrics": [{name: value for name, value in record.items() if name not in _TIMED} for record in records],
        "model": json.loads((folder / "model.json").read_text(encoding="utf-8")),
        "vocabulary": hashlib.sha256((folder / "vocab.txt").read_bytes()).hexdigest(),
        "files": sorted({path.name.partition(".tfevents")[0] for path in folder.iterdir()}),
        "checkpoints": sorted(
            str(path.relative_to(checkpoints)) for path in checkpoints.glob("*/*") if path.name != SUMS
        ),
    }


def export_values(folder):
    """Names of an exported model's files, what its JSON says, and the names and shapes of its arrays."""
    check_sums(folder)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    values = {"files": [str(path.relative_to(folder)) for path in paths], "json": {}, "arrays": {}}
    for path in paths:
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            values["json"][name] = _small(json.loads(path.read_text(encoding="utf-8")))
        elif path.suffix == ".safetensors":
            values["arrays"][name] = _safetensors(path.read_bytes())
    return values


def _small(value):
    """JSON without digests of floats and versions of libraries; long texts as their digests."""
    kept = _without(value)
    text = json.dumps(kept, sort_keys=True)
    return kept if len(text) < 3000 else {"sha256": hashlib.sha256(text.encode()).hexdigest()}


def _without(value):
    if not isinstance(value, dict):
        return value
    left_out = ("digest", "versions", "__version__")
    return {name: _without(item) for name, item in value.items() if name not in left_out}


def _safetensors(raw):
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, facts in header.items():
        first, end = (8 + length + offset for offset in facts["data_offsets"])
        content = moments(np.frombuffer(raw[first:end], "<f4")) if facts["dtype"] == "F32" else None
        arrays[name] = {"dtype": facts["dtype"], "shape": facts["shape"], "content": content}
    return {"metadata": {name: value for name, value in metadata.items() if name != "digest"}, "arrays": arrays}


def first_vectors(folder):
    """The first dimensions of the first articles of `newsembed embed`."""
    vectors = np.load(folder / "embeddings.npy")
    ids = (folder / "ids.txt").read_text(encoding="utf-8").split()
    return {
        "dtype": str(vectors.dtype),
        "shape": list(vectors.shape),
        "ids": ids[:_ROWS],
        "vectors": vectors[:_ROWS, :_DIMENSIONS].astype(float).tolist(),
    }


def first_cosines(folder):
    """Cosines of the first articles of `newsembed embed`: a head that was computed may be turned on another machine."""
    found = first_vectors(folder)
    rows = np.load(folder / "embeddings.npy")[:_ROWS].astype(float)
    return {**found, "vectors": (rows @ rows.T).tolist()}


def parquet_column(path, name):
    """A column of lists of floats as a matrix."""
    return np.array(pq.read_table(path).column(name).to_pylist(), np.float32)


def index_values(folder):
    """A search index."""
    facts = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    facts.pop("encoder_digest")
    facts.pop("encoder_beside", None)  # the place of the model, which differs from run to run
    facts.pop("sha256")  # of the facts
    facts.pop("ranking", None)  # learned, to many digits
    check_sums(folder)
    return {
        "files": sorted(path.name for path in folder.iterdir() if path.name != SUMS),
        "facts": facts,
        "documents": _parquet_values([folder / "part-00001" / "documents.parquet"], without=["language"]),
        "embeddings": stream_values([folder / "part-00001" / "embeddings.npy"]),
    }


def differences(found, expected, rtol, atol=0.0, where=""):
    """Lines that name each value that differs."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if "squares" in expected and "squares" in found:
            return _moment_differences(found, expected, rtol, where)
        lines = [f"{where}/{name}: missing" for name in expected if name not in found]
        lines += [f"{where}/{name}: new, {str(found[name])[:200]}" for name in found if name not in expected]
        for name in expected:
            if name in found:
                lines += differences(found[name], expected[name], rtol, atol, f"{where}/{name}")
        return lines
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for i, (one, other) in pairs for line in differences(one, other, rtol, atol, f"{where}/{i}")]
    if _is_number(found) and _is_number(expected) and (isinstance(found, float) or isinstance(expected, float)):
        is_same = math.isclose(found, expected, rel_tol=rtol, abs_tol=atol) or (found != found and expected != expected)
    else:
        is_same = found == expected and type(found) is type(expected)
    return [] if is_same else [f"{where}: got {str(found)[:300]}, expected {str(expected)[:300]}"]


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment_differences(found, expected, rtol, where):
    # A sum near zero has the error of its terms, and parameters without a gradient (biases of keys) are only rounding.
    count = expected["count"]
    scale = math.sqrt(count * expected["squares"])
    is_same = (
        (found["count"], found["nan"]) == (expected["count"], expected["nan"])
        and math.isclose(found["sum"], expected["sum"], rel_tol=0, abs_tol=rtol * scale + _ROUNDING * count)
        and math.isclose(found["squares"], expected["squares"], rel_tol=rtol, abs_tol=_ROUNDING**2 * count)
    )
    return [] if is_same else [f"{where}: got {found}, expected {expected}"]


class Golden:
    """Recorded values by section; with NEWSEMBED_RECORD_GOLDEN=1 they are recorded again."""

    def __init__(self, path):
        self._path = path
        self._is_recording = os.environ.get("NEWSEMBED_RECORD_GOLDEN") == "1"
        self._values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def check(self, section, found, rtol=1e-4, atol=1e-9):
        """Compares, or records."""
        found = json.loads(json.dumps(found))
        if self._is_recording:
            self._values[section] = found
            text = json.dumps(self._values, indent=1, sort_keys=True, ensure_ascii=False)
            self._path.write_text(text + "\n", encoding="utf-8")
            return
        lines = differences(found, self._values[section], rtol, atol, section)
        assert not lines, "\n".join(lines[:60])
