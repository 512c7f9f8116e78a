"""Hot keys: one text in half of the articles, one publisher, one day, one name everywhere. No worker gets it all."""

import datetime
import functools

import numpy as np
import pytest
from newsembed.beam_pipelines.clean import CleanOptions, duplicates
from newsembed.beam_pipelines.clean.duplicates import sign
from newsembed.beam_pipelines.entities.cooccurrence import ppmi_svd
from newsembed.beam_pipelines.examples.rows import send_rows
from newsembed.beam_pipelines.neighbors import NeighborsOptions
from newsembed.beam_pipelines.neighbors.found import Side
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.beam_pipelines.shuffle import Rows, blocks_of, send
from newsembed.beam_pipelines.triplets.candidates import CANDIDATE
from newsembed.beam_pipelines.triplets.dates import DateStats
from newsembed.beam_pipelines.triplets.events import crowded_out
from newsembed.beam_pipelines.triplets.evergreen import default_model
from newsembed.beam_pipelines.triplets.mine import TripletsOptions, by_evidence, mine
from newsembed.beam_pipelines.triplets.table import read_table
from newsembed.formats.parquet import write_shard
from newsembed.formats.records import Article, Triplet, make_doc_id
from newsembed.tasks.triplets import TRIPLETS
from newsembed.tests import document_table

RECEIVERS = 16
OPTIONS = CleanOptions()


@functools.cache
def body(number):
    return " ".join(f"w{word}" for word in np.random.default_rng(number).integers(0, 10_000, 60))


def article(number, text):
    url = f"https://hot.example/{number}"
    return Article(make_doc_id(url), url, "hot.example", "Title", text, byline_date=datetime.date(2020, 1, 1))


def entries_of(articles):
    signed = [sign(one, 0, row, OPTIONS) for row, one in enumerate(articles)]
    return np.concatenate([entries for entries, _ in signed])


def rows_by_receiver(phase, stream):
    counts = np.zeros(RECEIVERS, int)
    for receiver, (_, _, start, end, _) in blocks_of(0, phase, Rows(stream, np.dtype("u1")), with_bytes=False):
        counts[receiver] += end - start
    return counts


def test_a_hot_publisher_and_day_send_equal_shares_to_all_shards(tmp_path):
    articles = [article(number, body(number)) for number in range(300)]
    write_shard(f"{tmp_path}/articles.parquet", articles, Article)
    phase = Phase(str(tmp_path / "rules"), "rules", 1)
    entries = entries_of(articles)
    with Shard(phase, 0) as shard:
        send(shard, "_buckets", entries, entries["digest"] % np.uint64(RECEIVERS))
    share = rows_by_receiver(phase, "_buckets")
    assert share.sum() == len(entries)
    assert share.max() < 1.2 * share.mean()
    # One document is the positive, another the negative of all.
    ids = [one.doc_id for one in articles]
    triplets = [Triplet(one, ids[0], ids[1], "en", (0.5,) * 3, (0.5,) * 3, 0, 400, 0.1) for one in ids[2:]]
    write_shard(f"{tmp_path}/triplets.parquet", triplets, Triplet)
    phase = Phase(str(tmp_path / "send"), "send", 1)
    with Shard(phase, 0) as shard:
        send_rows(shard, (TRIPLETS.name, f"{tmp_path}/triplets.parquet"), RECEIVERS)
    share = rows_by_receiver(phase, "_triplets")
    assert share.sum() == len(triplets)
    assert share.max() < 2 * share.mean()


def test_a_text_in_half_of_the_articles_is_compared_in_linear_time(monkeypatch):
    compared = []

    def count(one, _two, _sketches):
        compared[-1] += len(one)
        return np.ones(len(one))

    monkeypatch.setattr(duplicates, "_similarities", count)
    for size in (200, 400):
        compared.append(0)
        edges = duplicates.find_edges(entries_of([article(number, body(0)) for number in range(size)]), ["0."], 0.8)
        decisions = duplicates.find_clusters([edges])
        assert (decisions["reason"] == duplicates.KEPT).sum() == 1
        assert len(decisions) == size
    # Of each member: a pair with the first and one with the one before it, which are the same in all bands.
    assert compared == [2 * size - 3 for size in (200, 400)]


def test_a_hot_day_is_searched_by_several_workers_and_no_index_exceeds_the_limit():
    options = NeighborsOptions(max_index_rows=1_000)
    documents = {200 + block: 500 for block in range(8)}
    even = options.tasks(documents)
    hot = options.tasks(documents | {204: 20_000})
    for side in (Side.POSITIVE, Side.NEGATIVE):
        of_hot = [task for task in hot if task.side is side and 204 in task.blocks]
        assert [task.parts for task in of_hot] == [20] * 20
        assert sorted(task.part for task in of_hot) == list(range(20))
    assert max(task.queries / task.parts for task in hot if task.side is Side.POSITIVE) <= 1_000
    assert len(hot) == len(even) + 2 * 19


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Forty documents, of which 0 to 19 are of one publisher."""
    folder = tmp_path_factory.mktemp("table")
    rows = [
        DateStats(f"{number:016x}", "hot" if number < 20 else f"p{number}", "en", 0.1, 0.9, 0.1) for number in range(40)
    ]
    document_table.write_table(f"{folder}/table.npz", rows)
    return read_table(f"{folder}/table.npz")


def test_a_hot_publisher_gives_an_anchor_no_more_positives_than_another(table):
    near = [(30, other, 0) for other in range(40) if other != 30]
    far = [(30, other, 400) for other in (31, 32)]
    candidates = np.zeros(len(near) + len(far), CANDIDATE)
    for row, (anchor, other, gap) in enumerate(near + far):
        candidates[row] = (anchor, other, gap, (0.9, np.nan, 0.9, np.nan))
    options = TripletsOptions(max_positives_per_publisher=2, max_positives=10)
    strengths = functools.partial(by_evidence, options=options)
    triplets, _ = mine(np.array([30], np.uint64), candidates, table, default_model(), options, strengths)
    positives = np.unique(triplets["positive"])
    assert (positives < 20).sum() == 2
    assert len(positives) <= 10


def test_an_event_of_half_the_corpus_keeps_this_many_anchors():
    pairs = np.array([(0, other) for other in range(1, 500)] + [(501, 502)], np.uint64)
    anchors = np.unique(pairs)
    assert len(anchors) - len(crowded_out(anchors, pairs, 7)) == 7 + 2


def test_a_name_in_all_documents_leaves_the_vectors_of_others_apart():
    hot, items, documents = 0, 41, 200
    lists = [np.array([hot, 1 + number % 40, 1 + (number + 1) % 40]) for number in range(documents)]
    parts = [(np.concatenate(lists), np.full(documents, 3))]
    vectors = ppmi_svd(items, parts, 8)
    assert np.isfinite(vectors).all()
    without = ppmi_svd(items, [(np.concatenate([one[1:] for one in lists]), np.full(documents, 2))], 8)
    near, far = vectors[1] @ vectors[3], vectors[1] @ vectors[20]
    assert near > far
    assert np.sign(near - far) == np.sign(without[1] @ without[3] - without[1] @ without[20])
