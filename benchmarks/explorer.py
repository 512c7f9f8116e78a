"""How long the explorer takes over many articles: to find their events once, and to answer its requests.

    python benchmarks/explorer.py --articles 100000 --days 365

The articles are generated: events of one to twelve reports within three days, vectors of 384 numbers around a center
for each event. Answers are timed through the application, without a network.
"""

import argparse
import datetime
import time

import numpy as np
from newsembed.formats.index import IndexedDocument
from newsembed.serving import server
from newsembed.serving.explorer import Books
from newsembed.serving.index import DocumentIndex
from starlette.testclient import TestClient

START = datetime.date(2024, 1, 1)
WIDTH = 384
NOISE = 0.5  # of a report around its event, as a share of the length of the center


class NoEncoder:
    """Stands in for an encoder: nothing is embedded here."""

    digest, dimensions, tokenizer_name = "none", WIDTH, "none"

    def preparations(self):
        """Nothing to compile."""
        return iter(())


def made(count: int, days: int) -> DocumentIndex:
    """An index of generated articles."""
    draw = np.random.default_rng(0)
    sizes = draw.geometric(0.35, count).clip(1, 12)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), count) + 1]
    of = np.repeat(np.arange(len(sizes)), sizes)[:count]
    centers = draw.normal(size=(len(sizes), WIDTH)).astype(np.float32)
    vectors = centers[of] + NOISE * draw.normal(size=(count, WIDTH)).astype(np.float32)
    dates = draw.integers(0, days - 2, len(sizes))[of] + draw.integers(0, 3, count)
    publishers = draw.integers(0, 500, count)
    documents = [
        IndexedDocument(
            f"{n:016x}",
            f"https://p{p}.example/{n}",
            f"p{p}.example",
            f"report of event {e}",
            START + datetime.timedelta(d),
        )
        for n, (p, e, d) in enumerate(zip(publishers.tolist(), of.tolist(), dates.tolist(), strict=True))
    ]
    return DocumentIndex(vectors, documents, exact_limit=count)


def main() -> None:
    """Prints the seconds of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    index, books = made(options.articles, options.days), Books()
    clock, cpu = time.perf_counter(), time.process_time()
    book = books.prepare(index).result()
    print(
        f"{len(index)} articles of {options.days} days: {len(book.ids)} events in {time.perf_counter() - clock:.1f} s, "
        f"{time.process_time() - cpu:.1f} s of CPU"
    )
    last = START + datetime.timedelta(options.days - 8)
    week = {"since": str(last - datetime.timedelta(6)), "until": str(last)}
    with TestClient(server.create_app(server.Service(NoEncoder(), index, books=books)), "http://localhost") as client:
        event = client.get("/events", params=week).json()["events"][0]
        url = event["lead"]["url"]
        for name, path, given in (
            ("events of a week", "/events", week),
            ("events of all days", "/events", {"since": str(START), "count": 30}),
            ("an event", "/event", {"id": event["id"]}),
            ("an article, its event and similar ones", "/event", {"url": url}),
            ("map of a week, first time", "/map", week),
            ("map of a week, again", "/map", week),
        ):
            times = []
            for _ in range(1 if "first" in name else options.repeats):
                clock = time.perf_counter()
                client.get(path, params=given).raise_for_status()
                times.append(time.perf_counter() - clock)
            print(f"{name:40} p50 {np.median(times) * 1e3:8.1f} ms, longest {max(times) * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
