"""Manifests: what a job writes comes back, other files are refused, training data by sets."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.formats.manifest import (
    DataSet,
    Manifest,
    example_paths,
    has_manifest,
    read_example_counts,
    read_manifest,
    read_row_sizes,
    read_seconds,
    recorded_digests,
    recorded_files,
    write_manifest,
    write_seconds,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=9,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
MANIFESTS = st.builds(
    Manifest,
    job=NAMES,
    code_version=NAMES,
    digest=NAMES,
    options=OBJECTS,
    inputs=OBJECTS,
    counts=OBJECTS,
    phases=st.dictionaries(NAMES, OBJECTS, max_size=3),
    extra=st.fixed_dictionaries({"examples": OBJECTS}),
    files=st.dictionaries(NAMES, st.integers(0, 1 << 40), max_size=3),
)


@settings(max_examples=30, deadline=None)
@given(MANIFESTS)
def test_what_is_written_comes_back(tmp_path_factory, manifest):
    folder = str(tmp_path_factory.mktemp("result"))
    assert not has_manifest(folder)
    write_manifest(folder, manifest.to_json())
    assert has_manifest(f"{folder}/")
    assert read_manifest(folder) == {
        "job": manifest.job,
        "code_version": manifest.code_version,
        "digest": manifest.digest,
        "options": manifest.options,
        "inputs": manifest.inputs,
        "counts": manifest.counts,
        "phases": manifest.phases,
        "examples": manifest.extra["examples"],
        "files": manifest.files,
        "sha256": manifest.sha256,
    }
    path = Path(folder) / "manifest.json"
    assert (
        path.read_text()
        == json.dumps(json.loads(path.read_text()), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )


@pytest.mark.parametrize(("read", "field", "value"), [(recorded_files, "files", 3), (recorded_digests, "sha256", "ab")])
def test_lists_of_files_are_checked(read, field, value):
    assert read({"digest": "x"}, "folder") == {}
    assert read({field: {"a/part": value}}, "folder") == {"a/part": value}
    for damaged in (["a"], {"a": 3.5}):
        with pytest.raises(InputError, match=f"folder/manifest.json: {field}: got"):
            read({field: damaged}, "folder")


def test_the_seconds_are_in_a_file_of_their_own(tmp_path):
    assert read_seconds(str(tmp_path)) == 0.0
    write_seconds(str(tmp_path), 12.3456)
    assert json.loads((tmp_path / "timing.json").read_text()) == {"seconds": 12.35}
    assert read_seconds(f"{tmp_path}/") == 12.35


def test_a_folder_that_is_not_a_result_is_named(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path}/manifest.json: cannot be read: No such file"):
        read_manifest(str(tmp_path))


def test_empty_sets_are_left_out(tmp_path):
    (tmp_path / "manifest.json").write_text('{"examples": {"mlm/en": 3, "tlm/de-en": 1, "topics/en": 0}}')
    assert read_example_counts(str(tmp_path)) == {DataSet("mlm", "en"): 3, DataSet("tlm", "de-en"): 1}


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ("[]", 'no JSON object with the key "examples"'),
        ('{"mlm": 3}', "got 'mlm': 3, expected"),
        ('{"mlm/": 3}', "got 'mlm/': 3, expected"),
        ('{"/en": 3}', "got '/en': 3, expected"),
        ('{"mlm/en": "3"}', "got 'mlm/en': '3', expected"),
    ],
)
def test_counts_that_are_none_are_named(tmp_path, examples, message):
    (tmp_path / "manifest.json").write_text(f'{{"examples": {examples}}}')
    with pytest.raises(InputError, match=f"manifest.json: examples: .*{message}"):
        read_example_counts(str(tmp_path))


def test_the_files_of_a_set_are_sorted(tmp_path):
    folder = tmp_path / "a[1]" / "task=mlm" / "language=en"
    folder.mkdir(parents=True)
    for name in ("part-00001-of-00002.tfrecord", "part-00000-of-00002.tfrecord", "part-00000-of-00002.tfrecord.tmp"):
        (folder / name).touch()
    paths = example_paths(str(tmp_path / "a[1]"), DataSet("mlm", "en"))
    assert paths == [str(folder / f"part-0000{number}-of-00002.tfrecord") for number in range(2)]
    with pytest.raises(InputError, match="no file of mlm/de is here"):
        example_paths(str(tmp_path / "a[1]"), DataSet("mlm", "de"))


@pytest.mark.parametrize("sizes", [{}, {"topics": {"documents": 3, "topic_ids": 40}, "other": {}}])
def test_sizes_of_rows_come_back(tmp_path, sizes):
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "row_sizes": sizes}))
    assert read_row_sizes(str(tmp_path)) == sizes
    (tmp_path / "manifest.json").write_text("{}")
    assert read_row_sizes(str(tmp_path)) == {}
