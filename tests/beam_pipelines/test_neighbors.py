"""Indexes against brute force, date windows, merging and the job ``neighbors``."""

import datetime
import math
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.entities import cooccurrence
from newsembed.beam_pipelines.neighbors import JOB, DateMode, NeighborsOptions
from newsembed.beam_pipelines.neighbors.background import write_far_pairs
from newsembed.beam_pipelines.neighbors.found import FOUND, Side, keep_best
from newsembed.beam_pipelines.neighbors.index import (
    Engine,
    ExactIndex,
    FaissIndex,
    ScannIndex,
    build_index,
    choose_engine,
    highest,
    queries_at_once,
)
from newsembed.beam_pipelines.neighbors.rows import Rows, read_blocks, write_blocks
from newsembed.beam_pipelines.neighbors.search import plan_tasks
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.arrays import write_arrays
from newsembed.formats.records import Neighbor, Space, Vector, make_doc_id

FIRST = datetime.date(2019, 1, 1)


def clustered(rows, dimensions=16, seed=0):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(20, dimensions))
    return (centers[random.integers(0, 20, rows)] + 0.5 * random.normal(size=(rows, dimensions))).astype(np.float32)


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def test_exact_index_sorts_by_cosine_then_row():
    vectors = np.array([[1, 0], [2, 0], [0, 1], [1, 1], [3, 0]], np.float32)
    rows, values = ExactIndex.build(vectors).search(np.array([[5, 0]], np.float32), 3)
    assert rows.tolist() == [[0, 1, 4]]
    np.testing.assert_allclose(values, [[1, 1, 1]])
    rows, _ = ExactIndex.build(vectors).search(np.array([[5, 0]], np.float32), 9)
    assert rows.tolist() == [[0, 1, 4, 3, 2]]


@pytest.mark.parametrize("rows", [1, 700, 15_625, 100_000])
def test_queries_at_once_bound_the_scores_and_are_not_too_few(rows):
    scores = queries_at_once(rows) * rows
    assert scores <= max(1_000_000, 64 * rows)
    assert queries_at_once(rows) >= 64


def test_exact_index_gives_the_same_in_parts(monkeypatch):
    vectors = clustered(300)
    whole = ExactIndex.build(vectors).search(vectors, 5)
    monkeypatch.setattr("newsembed.beam_pipelines.neighbors.index.queries_at_once", lambda _: 7)
    for part, expected in zip(ExactIndex.build(vectors).search(vectors, 5), whole, strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-6)


def test_faiss_finds_most_of_the_nearest_rows():
    vectors = clustered(1_000)
    index = FaissIndex.build(vectors)
    rows, _ = index.search(vectors[:100], 10)
    exact, _ = ExactIndex.build(vectors).search(vectors[:100], 10)
    assert np.mean([len(set(left) & set(right)) / 10 for left, right in zip(rows, exact, strict=True)]) > 0.9


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
    assert isinstance(build_index(clustered(50), Engine.AUTO, 100, many), ExactIndex)


@given(
    arrays(
        np.float32, st.tuples(st.integers(0, 5), st.integers(1, 30)), elements=st.sampled_from([-math.inf, 0, 1, 2.5])
    ),
    st.integers(1, 30),
)
def test_the_highest_are_those_of_a_stable_sort(scores, count):
    count = min(count, scores.shape[1])
    columns, values = highest(scores, count)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


@pytest.mark.parametrize("kind", ["distinct", "tied", "mostly masked", "one tied row"])
@pytest.mark.parametrize("count", [1, 7, 20])
def test_the_highest_of_wide_rows_are_those_of_a_stable_sort(kind, count):
    draw = np.random.default_rng(count)
    scores = draw.standard_normal((9, 403)).astype(np.float32)
    if kind == "tied":
        scores = np.round(scores)
    elif kind == "mostly masked":
        scores[draw.random(scores.shape) < 0.97] = -math.inf
    elif kind == "one tied row":
        scores[4] = 0.5
    columns, values = highest(scores, count)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(columns, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))


def test_tasks_cover_every_pair_of_days_that_can_be_far_the_longest_first():
    documents = {0: 10, 1: 200, 2: 5, 5: 1_000, 40: 30}
    tasks = plan_tasks(documents, (Side.POSITIVE, Side.NEGATIVE), 2, 300, 91, 365)
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
            st.tuples(*[st.integers(0, 3)] * 2, st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)), max_size=30
        )
    )
    array = np.zeros(len(rows), FOUND)
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
        for index in range(shards):
            rows = [
                Vector(doc_id, space.value, day, "p", "en", tuple(map(float, vector)))
                for number, ((doc_id, day), vector) in enumerate(zip(documents, vectors, strict=True))
                if number % shards == index and space in spaces[number]
            ]
            parquet.write_shard(
                str(folder / space.value / f"part-{index:05d}-of-{shards:05d}.parquet"),
                sorted(rows, key=lambda row: row.doc_id),
                Vector,
            )
    (folder / "manifest.json").write_text('{"digest": "v"}')
    return {"vectors": [str(folder)]}


def corpus(rows=150):
    random = np.random.default_rng(1)
    days = [
        FIRST + datetime.timedelta(days=int(day))
        for day in random.integers(0, 4, rows) + 400 * random.integers(0, 3, rows)
    ]
    return [(make_doc_id(str(number)), day) for number, day in enumerate(days)], clustered(rows)


def brute_force(documents, vectors, count, allowed):
    """The nearest documents of every document among those that ``allowed(day gap)`` lets through."""
    scores = cosines(vectors)
    found = {}
    for query, (doc_id, day) in enumerate(documents):
        others = [row for row, (_, other) in enumerate(documents) if row != query and allowed((other - day).days)]
        best = sorted(others, key=lambda row: (-round(float(scores[query, row]), 5), documents[row][0]))[:count]
        found[doc_id] = {documents[row][0] for row in best}
    return found


def run(inputs, output, **options):
    outcome = jobs.execute(JOB, inputs, str(output), NeighborsOptions(**options), ["--direct_num_workers=1"])
    return outcome.manifest["counts"], list(parquet.read_stream(str(output / "neighbors"), Neighbor))


def test_windowed_search_equals_brute_force(tmp_path):
    documents, vectors = corpus()
    inputs = write_vectors(tmp_path / "vectors", documents, vectors, [{Space.TEXT}] * len(documents))
    counts, found = run(inputs, tmp_path / "out", positives=5, negatives=4, block_days=30, max_index_rows=20)
    assert (counts["in"], counts["out"], counts["rejected"]) == (150, 150, {})
    near = brute_force(documents, vectors, 5, lambda gap: abs(gap) <= 1)
    far = brute_force(documents, vectors, 4, lambda gap: abs(gap) >= 365)
    days = dict(documents)
    for side, expected in ((1, near), (-1, far)):
        measured = {doc_id: set() for doc_id in days}
        for row in found:
            assert row.day_gap == (days[row.neighbor] - days[row.query]).days
            if (abs(row.day_gap) <= 1) == (side == 1):
                measured[row.query].add(row.neighbor)
        assert measured == expected


@pytest.mark.parametrize(
    ("block_days", "days"),
    [
        (1, (0, 1, 2, 3, 364, 365, 366, 367)),
        (2, (0, 1, 2, 3, 364, 365, 366, 367)),
        (2, (1, 2, 366)),  # a block of two days, one of which is far enough from the third day
        (91, (0, 1, 2, 3, 364, 365, 366, 367)),
    ],
)
def test_the_limits_of_the_day_gaps_are_inclusive_in_every_partition(tmp_path, block_days, days):
    """Gaps of 0 to 3 and of 361 to 367 days, on both sides of borders between blocks."""
    documents = [
        (make_doc_id(f"{day} {number}"), FIRST + datetime.timedelta(days=day)) for day in days for number in range(3)
    ]
    inputs = write_vectors(tmp_path / "vectors", documents, clustered(len(documents)), [{Space.TEXT}] * len(documents))
    _, found = run(inputs, tmp_path / "out", positives=30, negatives=30, block_days=block_days)
    day_of = dict(documents)
    expected = {
        (query, neighbor)
        for query, day in documents
        for neighbor, other in documents
        if query != neighbor and (abs((other - day).days) <= 1 or abs((other - day).days) >= 365)
    }
    assert {(row.query, row.neighbor) for row in found} == expected
    assert all(row.day_gap == (day_of[row.neighbor] - day_of[row.query]).days for row in found)


def test_global_search_equals_brute_force(tmp_path):
    documents, vectors = corpus(80)
    inputs = write_vectors(tmp_path / "vectors", documents, vectors, [{Space.TEXT}] * len(documents))
    _, found = run(inputs, tmp_path / "out", dates=DateMode.GLOBAL, neighbors=6, max_index_rows=30)
    measured = {doc_id: set() for doc_id, _ in documents}
    for row in found:
        measured[row.query].add(row.neighbor)
    assert measured == brute_force(documents, vectors, 6, lambda _: True)


def test_pairs_get_the_similarity_of_every_space_both_have(tmp_path):
    documents = [(make_doc_id(name), FIRST) for name in "abc"] + [
        (make_doc_id("far"), FIRST + datetime.timedelta(days=90))
    ]
    spaces = [{Space.TEXT, Space.ENTITY}, {Space.TEXT, Space.ENTITY}, {Space.TEXT}, {Space.TEXT}]
    inputs = write_vectors(tmp_path / "vectors", documents, clustered(4), spaces)
    counts, found = run(inputs, tmp_path / "out")
    a, b, c = (make_doc_id(name) for name in "abc")
    pairs = {(row.query, row.neighbor, row.space) for row in found}
    assert {(a, b, "text"), (a, b, "entity"), (a, c, "text")} <= pairs
    assert (a, c, "entity") not in pairs
    assert counts["rejected"] == {"no_neighbor": 1}
    assert counts["in"] == counts["out"] + 1


def test_output_does_not_depend_on_workers(tmp_path):
    documents, vectors = corpus(60)
    inputs = write_vectors(tmp_path / "vectors", documents, vectors, [{Space.TEXT, Space.IMAGE}] * 60)
    outputs = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        jobs.execute(JOB, inputs, str(out), NeighborsOptions(), [f"--direct_num_workers={workers}"])
        outputs.append([path.read_bytes() for path in sorted((out / "neighbors").iterdir())])
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("options", [{"positives": 0}, {"positive_days": 400}, {"block_days": 0}])
def test_bad_options(options):
    with pytest.raises(InputError):
        NeighborsOptions(**options)


def test_scann_finds_most_of_the_nearest_rows_once():
    vectors = clustered(4_000)
    found, values = ScannIndex.build(vectors).search(vectors[:100], 10)
    exact, _ = ExactIndex.build(vectors).search(vectors[:100], 10)
    assert np.mean([len(set(left) & set(right)) / 10 for left, right in zip(found, exact, strict=True)]) > 0.95
    assert all(len(set(rows)) == 10 for rows in found.tolist()), "a row that is in two leaves is found once"
    assert (np.diff(values, axis=1) <= 1e-6).all()


def test_every_index_of_scann_finds_the_same_rows():
    vectors = np.random.default_rng(1).normal(size=(4_000, 32)).astype(np.float32)
    found = [ScannIndex.build(vectors).search(vectors[:300], 10) for _ in range(2)]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_scann_does_not_load_tensorflow():
    code = """
import sys
import numpy as np
from newsembed.beam_pipelines.neighbors.index import ScannIndex
vectors = np.eye(64, dtype=np.float32)
assert ScannIndex.build(vectors).search(vectors[:1], 1)[0].tolist() == [[0]]
print([name for name in sys.modules if name.partition(".")[0] == "tensorflow"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_vectors_that_have_length_1_are_not_copied():
    unit = cooccurrence.unit_rows(clustered(9_000))
    unit[[3, 8_999]] = 0
    assert cooccurrence.unit_rows(unit) is unit
    unit[8_998] *= 1.1
    scaled = cooccurrence.unit_rows(unit)
    lengths = np.ones(9_000)
    lengths[[3, 8_999]] = 0
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), lengths, atol=1e-6)


def test_only_the_days_that_are_asked_are_read(tmp_path):
    write_blocks(str(tmp_path), 0, dated_rows([1, 3, 5, 8]), 4)
    write_blocks(str(tmp_path), 1, dated_rows([2, 5, 6], first=10), 4)
    found = read_blocks(str(tmp_path), range(3), (3, 5))
    assert found.days.tolist() == [3, 5, 5]
    assert found.ids.tolist() == [1, 2, 11]
    for space in Space:
        np.testing.assert_array_equal(found.vectors[space][:, 0], found.ids)
    assert len(read_blocks(str(tmp_path), range(3))) == 7


def write_sample_parts(folder, documents, width=8, at_once=200):
    """Documents of 60 days as the shards of a sample; the first shard has no vectors in the space of texts."""
    draw = np.random.default_rng(documents)
    every = []
    for start in range(0, documents, at_once):
        count = min(at_once, documents - start)
        vectors = cooccurrence.unit_rows(draw.normal(size=(count, width)).astype(np.float32))
        part = {
            "ids": draw.integers(0, 2**63, count).astype(np.uint64),
            "days": draw.integers(0, 60, count).astype(np.int32),
            "publishers": draw.integers(0, 9, count).astype(np.uint64),
            Space.ENTITY.value: vectors,
            Space.TEXT.value: vectors if start else np.zeros((count, 0), np.float32),
        }
        write_arrays(f"{folder}/_sample/part-{start:05d}.npz", part)
        every.append(part)
    return {name: np.concatenate([part[name] for part in every]) for name in ("ids", "days", "publishers", "entity")}


def test_far_pairs_are_in_the_order_of_days_and_ids_also_where_a_shard_lacks_a_space(tmp_path):
    sample = write_sample_parts(tmp_path, 300)
    with Shard(Phase(str(tmp_path), "far pairs", 1), 0) as shard:
        write_far_pairs(shard, (Space.ENTITY, Space.TEXT))
    order = np.lexsort((sample["ids"], sample["days"])).tolist()
    pairs = [(one, two) for one in order for two in order if 8 <= sample["days"][two] - sample["days"][one] <= 28]
    left, right = np.array(pairs).T
    entity = np.einsum("pd,pd->p", sample["entity"][left], sample["entity"][right])
    entity[sample["publishers"][left] == sample["publishers"][right]] = np.nan
    text = np.where((left < 200) | (right < 200), np.nan, entity)
    found = np.load(tmp_path / "far_pairs/part-00000-of-00001.npy")
    np.testing.assert_allclose(found[:, :2], np.stack([entity, text], axis=1), atol=1e-6)
    np.testing.assert_allclose(found[:, 2:], np.nan)  # no contrast was written


def test_the_memory_of_far_pairs_does_not_grow_with_the_documents(tmp_path):
    def peak(documents):
        folder = tmp_path / str(documents)
        write_sample_parts(folder, documents, width=64)
        with Shard(Phase(str(folder), "far pairs", 1), 0) as shard:
            tracemalloc.start()
            write_far_pairs(shard, (Space.ENTITY, Space.TEXT))
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return found

    peak(200)  # imports
    assert peak(1_600) < 1.2 * peak(400)  # 16 times as many pairs


def dated_rows(days, first=0):
    ids = np.arange(first, first + len(days), dtype=np.uint64)
    values = ids[:, None].astype(np.float32) * np.ones((1, 2), np.float32)
    return Rows(ids, np.array(days, np.int32), dict.fromkeys(Space, values))
