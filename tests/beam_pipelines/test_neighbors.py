"""Indexes against brute force, date windows, merging and the job ``neighbors``."""

import datetime
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from newsembed.beam_pipelines.neighbors import JOB, DateMode, NeighborsOptions, search
from newsembed.beam_pipelines.neighbors.index import Engine, Index, build_index, choose_engine
from newsembed.beam_pipelines.neighbors.search import Side, keep_best, read_blocks, write_blocks
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.arrays import highest
from newsembed.formats.records import Neighbor, Space, Vector, make_doc_id
from newsembed.tests.example_inputs import manifest_of, split, write_stream

FIRST = datetime.date(2019, 1, 1)
EDGES = (0, 1, 2, 3, 364, 365, 366, 367)


def clustered(rows, dimensions=16, seed=0):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(20, dimensions))
    return (centers[random.integers(0, 20, rows)] + 0.5 * random.normal(size=(rows, dimensions))).astype(np.float32)


def cosines(left, right):
    left, right = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (left, right))
    return left @ right.T


def test_exact_index_sorts_by_cosine_then_row():
    vectors = np.array([[1, 0], [2, 0], [0, 1], [1, 1], [3, 0]], np.float32)
    rows, values = Index(vectors, Engine.EXACT).search(np.array([[5, 0]], np.float32), 3)
    assert rows.tolist() == [[0, 1, 4]]
    np.testing.assert_allclose(values, [[1, 1, 1]])
    rows, _ = Index(vectors, Engine.EXACT).search(np.array([[5, 0]], np.float32), 9)
    assert rows.tolist() == [[0, 1, 4, 3, 2]]
    many = clustered(20_000)  # compared in parts
    rows, values = Index(many, Engine.EXACT).search(many[:200], 5)
    assert rows[:, 0].tolist() == list(range(200))
    np.testing.assert_allclose(values, -np.sort(-cosines(many[:200], many))[:, :5], atol=1e-5)


def test_choice_of_engine(monkeypatch):
    many = 100_000
    assert choose_engine(Engine.SCANN, 10, 100, many) is Engine.EXACT
    assert choose_engine(Engine.EXACT, 1_000, 100, many) is Engine.EXACT
    assert choose_engine(Engine.AUTO, 1_000, 100, 1_000) is Engine.EXACT  # an index takes longer to build than it saves
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "scann" else object())
    assert choose_engine(Engine.AUTO, 1_000, 100, 9_000) is Engine.FAISS
    assert choose_engine(Engine.AUTO, 1_000, 100, many) is Engine.FAISS
    with pytest.raises(InputError, match="scann is not installed"):
        choose_engine(Engine.SCANN, 1_000, 100, 1_000)
    assert build_index(clustered(50), Engine.AUTO, 100, many).engine is Engine.EXACT


@given(
    arrays(
        np.float32, st.tuples(st.integers(0, 5), st.integers(1, 40)), elements=st.sampled_from([-math.inf, 0, 1, 2.5])
    ),
    st.integers(1, 30),
)
def test_the_highest_are_those_of_a_stable_sort(scores, count):
    count = min(count, scores.shape[1])
    columns, values = highest(scores, count)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


def test_tasks_cover_every_pair_of_days_that_can_be_far_the_longest_first():
    documents = {0: 10, 1: 200, 2: 5, 5: 1_000, 40: 30}
    tasks = search.plan_tasks(documents, NeighborsOptions(max_index_rows=300))
    far = {task.blocks: task.query_blocks for task in tasks if task.side is Side.NEGATIVE}
    # Blocks 1 and 5 are 273 to 455 days apart; 2 and 5 are 364 days apart at most.
    assert far == {(0, 1): (5, 40), (2,): (40,), (5,): (0, 1, 40), (40,): (0, 1, 2, 5)}
    assert sorted(task.part for task in tasks if task.blocks == (5,) and task.side is Side.NEGATIVE) == [0, 1, 2, 3]
    near = [task for task in tasks if task.side is Side.POSITIVE]
    assert [task.blocks for task in near] == [*[(5,)] * 4, (1,), (40,), (0,), (2,)]
    assert [(task.part, task.parts) for task in near] == [*((part, 4) for part in range(4)), *[(0, 1)] * 4]
    assert (tasks[0].side, tasks[0].blocks) == (Side.NEGATIVE, (0, 1))


@st.composite
def found_pairs(draw):
    rows = draw(
        st.lists(
            st.tuples(*[st.integers(0, 3)] * 2, st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)), max_size=30
        )
    )
    array = np.zeros(len(rows), search.FOUND)
    for number, (query, neighbor, side, space, similarity) in enumerate(rows):
        array[number] = (query, neighbor, side, space, 0, (math.nan,) * len(Space))
        array[number]["similarity"][space] = (neighbor * 7 + query * 3 + side + space + 0 * similarity) % 5 / 4
    return array


@settings(deadline=None)
@given(found_pairs(), st.integers(0, 30))
def test_merging_does_not_depend_on_the_cut(found, cut):
    counts = {Side.POSITIVE: 2, Side.NEGATIVE: 1}
    whole = keep_best(found, counts)
    parts = [keep_best(part, counts) for part in (found[cut:], found[:cut])]
    assert keep_best(np.concatenate(parts), counts).tobytes() == whole.tobytes()
    groups = {}
    for pair in whole:
        groups.setdefault((pair["query"], pair["side"], pair["space"]), []).append(int(pair["neighbor"]))
    for (_, side, _), neighbors in groups.items():
        assert len(set(neighbors)) == len(neighbors) <= counts[Side(side)]


def write_vectors(folder, documents, vectors, spaces, shards=2):
    """``spaces[i]`` holds the spaces of document i; its vector is the same in each."""
    for space in Space:
        rows = [
            Vector(doc_id, space.value, day, "p", "en", tuple(map(float, vector)))
            for (doc_id, day), vector, own in zip(documents, vectors, spaces, strict=True)
            if space in own
        ]
        write_stream(folder, space.value, split(sorted(rows, key=lambda row: row.doc_id), shards), Vector)
    return {"vectors": [str(folder)]}


def day_of(number):
    return FIRST + datetime.timedelta(days=number)


def corpus(rows=150):
    random = np.random.default_rng(1)
    days = random.integers(0, 4, rows) + 400 * random.integers(0, 3, rows)
    return [(make_doc_id(str(number)), day_of(day)) for number, day in enumerate(days.tolist())], clustered(rows)


def run(inputs, output, **options):
    manifest = manifest_of(JOB, inputs, output, NeighborsOptions(**options))
    return manifest["counts"], list(parquet.read_stream(str(output / "neighbors"), Neighbor))


@pytest.mark.parametrize(
    ("options", "sides"),
    [
        (
            {"positives": 5, "negatives": 4, "block_days": 30},
            [(5, lambda gap: abs(gap) <= 1), (4, lambda gap: abs(gap) >= 365)],
        ),
        ({"dates": DateMode.GLOBAL, "neighbors": 6}, [(6, lambda _: True)]),
    ],
)
def test_search_equals_brute_force(tmp_path, options, sides):
    documents, vectors = corpus()
    inputs = write_vectors(tmp_path / "vectors", documents, vectors, [{Space.TEXT}] * len(documents))
    counts, found = run(inputs, tmp_path / "out", max_index_rows=20, **options)
    assert (counts["in"], counts["out"], counts["rejected"]) == (150, 150, {})
    scores, days = cosines(vectors, vectors), dict(documents)
    for count, allowed in sides:
        measured = {doc_id: set() for doc_id in days}
        for row in found:
            assert row.day_gap == (days[row.neighbor] - days[row.query]).days
            if allowed(row.day_gap):
                measured[row.query].add(row.neighbor)
        for query, (doc_id, day) in enumerate(documents):
            others = [row for row, (_, other) in enumerate(documents) if row != query and allowed((other - day).days)]
            best = sorted(others, key=lambda row: (-round(float(scores[query, row]), 5), documents[row][0]))[:count]
            assert measured[doc_id] == {documents[row][0] for row in best}


@pytest.mark.parametrize(
    ("block_days", "days"),
    [(1, EDGES), (2, EDGES), (2, (1, 2, 366)), (91, EDGES)],  # of the two days 1 and 2, one is far enough from 366
)
def test_the_limits_of_the_day_gaps_are_inclusive_in_every_partition(tmp_path, block_days, days):
    """Gaps of 0 to 3 and of 361 to 367 days, on both sides of borders between blocks."""
    documents = [(make_doc_id(f"{day} {number}"), day_of(day)) for day in days for number in range(3)]
    inputs = write_vectors(tmp_path / "vectors", documents, clustered(len(documents)), [{Space.TEXT}] * len(documents))
    _, found = run(inputs, tmp_path / "out", positives=30, negatives=30, block_days=block_days)
    expected = {
        (query, neighbor, gap)
        for (query, day), (neighbor, other) in itertools.permutations(documents, 2)
        if abs(gap := (other - day).days) <= 1 or abs(gap) >= 365
    }
    assert {(row.query, row.neighbor, row.day_gap) for row in found} == expected


def test_pairs_get_the_similarity_of_every_space_both_have(tmp_path):
    documents = [(make_doc_id(name), day_of(day)) for name, day in (("a", 0), ("b", 0), ("c", 0), ("far", 90))]
    spaces = [{Space.TEXT, Space.ENTITY}, {Space.TEXT, Space.ENTITY}, {Space.TEXT}, {Space.TEXT}]
    inputs = write_vectors(tmp_path / "vectors", documents, clustered(4), spaces)
    counts, found = run(inputs, tmp_path / "out")
    a, b, c = (make_doc_id(name) for name in "abc")
    pairs = {(row.query, row.neighbor, row.space) for row in found}
    assert {(a, b, "text"), (a, b, "entity"), (a, c, "text")} <= pairs
    assert (a, c, "entity") not in pairs
    assert counts["rejected"] == {"no_neighbor": 1}
    assert counts["in"] == counts["out"] + 1


@pytest.mark.parametrize(("engine", "recall"), [(Engine.FAISS, 0.9), (Engine.SCANN, 0.95)])
def test_approximate_indexes_find_most_of_the_nearest_rows_once(engine, recall):
    vectors = clustered(4_000)
    found, values = Index(vectors, engine).search(vectors[:100], 10)
    exact, _ = Index(vectors, Engine.EXACT).search(vectors[:100], 10)
    assert np.mean([len(set(left) & set(right)) / 10 for left, right in zip(found, exact, strict=True)]) > recall
    assert all(len(set(rows)) == 10 for rows in found.tolist()), "a row that is in two leaves is found once"
    assert (np.diff(values, axis=1) <= 1e-6).all()


def test_a_positive_is_nearer_than_a_negative():
    assert NeighborsOptions(positive_days=364).positive_days == 364
    with pytest.raises(InputError, match="--positive_days"):
        NeighborsOptions(positive_days=365)


def test_scann_does_not_load_tensorflow():
    code = """
import sys
import numpy as np
from newsembed.beam_pipelines.neighbors.index import Engine, Index
vectors = np.eye(64, dtype=np.float32)
assert Index(vectors, Engine.SCANN).search(vectors[:1], 1)[0].tolist() == [[0]]
print([name for name in sys.modules if name.partition(".")[0] == "tensorflow"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_only_the_days_that_are_asked_are_read(tmp_path):
    write_blocks(str(tmp_path), 0, dated_rows([1, 3, 5, 8]), 4)
    write_blocks(str(tmp_path), 1, dated_rows([2, 5, 6], first=10), 4)
    found = read_blocks(str(tmp_path), range(3), (3, 5))
    assert found.days.tolist() == [3, 5, 5]
    assert found.ids.tolist() == [1, 2, 11]
    for space in Space:
        np.testing.assert_array_equal(found.vectors[space][:, 0], found.ids)
    assert len(read_blocks(str(tmp_path), range(3))) == 7


def dated_rows(days, first=0):
    ids = np.arange(first, first + len(days), dtype=np.uint64)
    values = ids[:, None].astype(np.float32) * np.ones((1, 2), np.float32)
    return search.Rows(ids, np.array(days, np.int32), dict.fromkeys(Space, values))
