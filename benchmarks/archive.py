"""An archive of generated articles: time to write, to add a day, to search, and how much the index of vectors finds.

    python benchmarks/archive.py --articles 100000 --day 10000 --output /tmp/archive

The articles have 150 words of a Zipf law and vectors of 384 numbers around 3,000 centers, over 1,000 days; those of a
week around one center are an event. Queries are five words of that law and vectors around the centers. "exact" is the
product of all vectors with the query. The routes of the page are asked in this process, each twice. With `--peers`
the same articles are in Qdrant's local mode, and in faiss and bm25s in memory. bm25s gets words as they are.
"""

import argparse
import contextlib
import datetime
import functools
import hashlib
import os
import resource
import time

import numpy as np
from fastapi.testclient import TestClient
from newsembed.formats.archive import Archive
from newsembed.formats.archive_writer import Writer
from newsembed.formats.articles import ArticleText
from newsembed.serving import hybrid
from newsembed.serving.filters import DateRange, Filters
from newsembed.serving.index import DocumentIndex
from newsembed.serving.index_command import table_rows
from newsembed.serving.server import create_app
from newsembed.serving.service import Service
from newsembed.serving.specs import settings_of

WIDTH, CENTERS, WORDS, DAYS, QUERIES = 384, 3_000, 150, 1_000, 100
FIRST = datetime.date(2020, 1, 1)
CHUNK = 5_000


class Generated:
    """In place of an encoder: of texts of equal length, whose vectors say nothing."""

    digest, dimensions, tokenizer_name = "generated", WIDTH, "none"

    def encode_queries(self, texts):
        return vectors_around(np.random.default_rng(len(texts[0])), len(texts))

    def preparations(self):
        return iter(())


@functools.cache
def centers():
    return np.random.default_rng(0).normal(size=(CENTERS, WIDTH)).astype(np.float32)


def vectors_around(generator, count, chosen=None):
    rows = centers()[generator.integers(0, CENTERS, count) if chosen is None else chosen]
    rows = rows + 0.7 * generator.normal(size=(count, WIDTH)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def words_of(generator, count):
    return " ".join(f"w{number}" for number in np.minimum(generator.zipf(1.2, count), 500_000).tolist())


def doc_id_of(number):
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()[:16]


def chunk_of(start, count):
    """Articles from a number on, their vectors, and their events."""
    generator = np.random.default_rng(start)
    days = generator.integers(0, DAYS, count).tolist()
    chosen = generator.integers(0, CENTERS, count)
    articles = [
        ArticleText(
            doc_id_of(start + n),
            f"https://p{n % 500}.example/{start + n}",
            f"p{n % 500}.example",
            words_of(generator, 8),
            words_of(generator, WORDS),
            "en",
            FIRST + datetime.timedelta(days[n]),
        )
        for n in range(count)
    ]
    events = [doc_id_of(f"{center} {day // 7}") for center, day in zip(chosen.tolist(), days, strict=True)]
    return articles, vectors_around(generator, count, chosen), events


@contextlib.contextmanager
def timed(what):
    start = time.perf_counter()
    yield
    print(f"| {what} | {time.perf_counter() - start:.1f} s |", flush=True)


def write(uri, start, count, *, first):
    from newsembed.formats.archive import schema

    shape = schema(WIDTH, Generated.digest)
    parts = (chunk_of(begin, min(CHUNK, start + count - begin)) for begin in range(start, start + count, CHUNK))
    with Writer(uri) as writer:
        if first:
            writer.create(shape, (batch for part in parts for batch in rows_of(part, shape).to_batches()))
        else:
            for part in parts:
                writer.change(rows_of(part, shape))
        settings = settings_of(uri, "", Generated(), None, None)
        settings |= {"languages": ["en"], "ranking": None, "events": {}}
        with timed("of which indexes"):
            run = writer.finish(settings, {})
        writer.publish(run)


def rows_of(part, shape):
    articles, vectors, events = part
    return table_rows(articles, vectors, shape, events)


def ask_page(index):
    """Prints how long the routes of the page take: when the server starts, then again."""
    start = time.perf_counter()
    service = Service(Generated(), index)
    service.prepare()
    client = TestClient(create_app(service), base_url="http://127.0.0.1")
    print(f"| service ready | {time.perf_counter() - start:.1f} s |", flush=True)
    while client.get("/events").status_code == 503:
        time.sleep(0.1)
    print(f"| events of the page there | {time.perf_counter() - start:.1f} s |", flush=True)
    event = client.get("/events?count=1").json()["events"][0]["id"]
    routes = ["/events", "/events?days=366", f"/event?id={event}", "/map", "/map?days=366", "/search?q=w5 w70 w901"]
    for route in routes:
        taken = []
        for _ in range(2):
            start = time.perf_counter()
            answer = client.get(route)
            taken.append(f"{1e3 * (time.perf_counter() - start):.0f} ms")
            assert answer.status_code == 200, answer.text
        name = route.replace(event, "ID")
        print(f"| `{name}` | {', '.join(taken)} |", flush=True)


def tenth(index, queries):
    """The tenth highest cosine of each query with all articles, which may be more than memory holds."""
    best = np.zeros((len(queries), 0), np.float32)
    for batch in index.archive.batches(["vector"]):
        rows = batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(-1, WIDTH)
        best = np.sort(np.concatenate([best, queries @ rows.T], axis=1), axis=1)[:, -10:]
    return best[:, 0]


def latencies(name, search):
    generator, taken = np.random.default_rng(7), []
    for vector in vectors_around(generator, QUERIES):
        query = words_of(generator, 5)
        start = time.perf_counter()
        search(query, vector)
        taken.append(1e3 * (time.perf_counter() - start))
    print(f"| {name} | p50 {np.percentile(taken, 50):.1f} ms, p99 {np.percentile(taken, 99):.1f} ms |", flush=True)


def ask_peers(count, month):
    """Prints how long other libraries take for the same articles."""
    import bm25s
    import faiss
    from qdrant_client import QdrantClient, models

    parts = [chunk_of(start, min(CHUNK, count - start)) for start in range(0, count, CHUNK)]
    articles = [article for part in parts for article in part[0]]
    vectors = np.concatenate([part[1] for part in parts])
    with timed("bm25s: index"):
        words = bm25s.BM25()
        words.index([f"{one.title} {one.title} {one.body}".split() for one in articles], show_progress=False)
    lists = round(4 * count**0.5)
    with timed(f"faiss: IVF{lists},Flat"):
        near = faiss.index_factory(WIDTH, f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
        near.train(vectors[:: max(1, count // (64 * lists))])
        near.add(vectors)
        near.nprobe = lists // 5  # the share that ours reads
    latencies("words, bm25s", lambda query, _: words.retrieve([query.split()], k=10, show_progress=False))
    latencies("vectors, faiss", lambda _, vector: near.search(vector[None], 10))
    client, days = QdrantClient(":memory:"), [{"day": one.byline_date.toordinal()} for one in articles]
    with timed("Qdrant: create"):
        client.create_collection("a", models.VectorParams(size=WIDTH, distance=models.Distance.DOT))
        client.upload_collection("a", vectors, days)
    bounds = models.Range(gte=month.since.toordinal(), lte=month.until.toordinal())
    of_month = models.Filter(must=[models.FieldCondition(key="day", range=bounds)])
    for name, where in (("", None), (", a month", of_month)):
        ask = functools.partial(client.query_points, "a", query_filter=where, limit=10)
        latencies(f"vectors, Qdrant{name}", lambda _, vector, ask=ask: ask(query=vector))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=100_000)
    parser.add_argument("--day", type=int, default=10_000)
    parser.add_argument("--output", required=True)
    parser.add_argument("--peers", action="store_true", help="other libraries, too; in memory")
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}\n| | |\n|---|---|")
    with timed(f"create {args.articles:,} articles"):
        write(args.output, 0, args.articles, first=True)
    with timed(f"add {args.day:,}"):
        write(args.output, args.articles, args.day, first=False)
    start = time.perf_counter()
    index = DocumentIndex(Archive(args.output))
    index.search(vectors_around(np.random.default_rng(1), 1)[0], 10)
    index.deviations(np.ones(WIDTH, np.float32), np.zeros(1), np.zeros(1, np.int64))
    print(f"| open and first search | {time.perf_counter() - start:.1f} s |")
    month = Filters(DateRange(FIRST + datetime.timedelta(500), FIRST + datetime.timedelta(530)))
    latencies("words", lambda query, _: index.matching(index.read(query), 10))
    latencies("vectors", lambda _, vector: index.nearest(vector, 10))
    latencies("hybrid", lambda query, vector: hybrid.find(index, query, vector, 10))
    latencies("hybrid, a month", lambda query, vector: hybrid.find(index, query, vector, 10, filters=month))
    ask_page(index)
    print(f"| memory of the process at most | {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB |")
    queries = vectors_around(np.random.default_rng(3), QUERIES)
    found = [index.nearest(query, 10)[1] for query in queries]
    shared = [(own >= least - 1e-5).mean() for own, least in zip(found, tenth(index, queries), strict=True)]
    print(f"| recall@10 against exact search | {np.mean(shared):.3f} |")
    if args.peers:
        ask_peers(args.articles, month.dates)


if __name__ == "__main__":
    main()
