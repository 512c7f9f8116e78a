r"""Compares `newsembed serve` under load with a plain FastAPI server around sentence-transformers, in one run.

    python benchmarks/serve_load.py --model work/minilm --peer_model all-MiniLM-L6-v2 \
        --peer_python /path/to/venv/bin/python --texts newsapi-headlines.jsonl.zst

`--model` is a folder that `newsembed import-hf` made of `--peer_model`, so both serve the same weights; the first
vectors of both are compared. The peer (`serve_load_peer.py`) is what one writes in 30 lines: `SentenceTransformer` and
a matrix product in routes that FastAPI runs in threads. It has no limits, no queue and no shared batches.

Both search the same random unit vectors (the time of a search does not depend on what they say), with a URL and a title
each. Searches are headlines; a request to /embed holds 4 documents of 4 headlines each. Clients send the next request
when they have the answer. Servers and clients share the cores.
"""

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import importlib.metadata
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

DOCUMENTS = 4  # of a request to /embed
HEADLINES = 4  # of a document
CLOSEST = 0.9999


@dataclasses.dataclass
class Load:
    """What some clients saw: seconds of each answer, the statuses, and how long they asked."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    statuses: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    wall: float = 0.0

    def cells(self) -> list[str]:
        milliseconds = 1_000 * np.percentile(self.seconds or [np.nan], (50, 99))
        return [f"{value:,.1f}" for value in (len(self.seconds) / self.wall, *milliseconds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a model folder")
    parser.add_argument("--peer_model", required=True, help="the same model as a sentence-transformers folder")
    parser.add_argument("--peer_python", default=sys.executable, help="an interpreter with the peer's libraries")
    parser.add_argument("--texts", required=True, help="JSONL (.gz, .zst) of articles; the titles are read")
    parser.add_argument("--indexed", type=int, default=20_000, metavar="N", help="documents in the index")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=2, help="of each measurement; servers take turns")
    parser.add_argument("--warm", type=float, default=60.0, help="seconds in which our server compiles, idle")
    args = parser.parse_args()
    print(f"load average before: {', '.join(f'{value:.1f}' for value in os.getloadavg())}")
    from newsembed.formats.jsonl import read_jsonl

    rows = itertools.islice(read_jsonl(args.texts), 40_000)
    titles = list(dict.fromkeys(row["title"].strip() for _, row in rows if (row.get("title") or "").strip()))
    with tempfile.TemporaryDirectory() as folder:
        prepare(args, folder, titles)
        compare_clients(args, folder, titles)
    print(f"load average after: {', '.join(f'{value:.1f}' for value in os.getloadavg())}")
    versions = ("jax", "fastapi", "starlette", "uvicorn")
    print("; ".join(f"{name} {importlib.metadata.version(name)}" for name in versions))


def prepare(args: argparse.Namespace, folder: str, titles: list[str]) -> None:
    """Writes an index of random vectors, for both sides."""
    from newsembed.formats.articles import ArticleText
    from newsembed.serving.encoder import load_encoder
    from newsembed.serving.index_command import build_index

    encoder = load_encoder(args.model)
    vectors = np.random.default_rng(0).normal(size=(args.indexed, encoder.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    documents = [
        ArticleText(f"{row}", f"https://a.example/{row}", "a.example", titles[row % len(titles)], "")
        for row in range(args.indexed)
    ]
    rows = iter(vectors)
    encoder.encode = lambda given, _: np.array([next(rows) for _ in given])
    build_index(encoder, iter(documents), f"{folder}/index", spec=f"model:{os.path.abspath(args.model)}")
    np.save(f"{folder}/vectors.npy", vectors)
    Path(folder, "titles.json").write_text(json.dumps([document.title for document in documents]), encoding="utf-8")


@contextlib.contextmanager
def serving(args: argparse.Namespace, folder: str, side: str) -> Iterator[int]:
    """Runs a server; yields its port."""
    if side == "ours":
        command = [sys.executable, "-m", "newsembed", "serve", "--index", f"{folder}/index", "--port", "0"]
    else:
        command = [args.peer_python, str(Path(__file__).parent / "serve_load_peer.py"), args.peer_model, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout or ():
            if line.startswith("listening on"):
                time.sleep(args.warm if side == "ours" else 0)
                yield int(line.rsplit(":", 1)[1])
                return
        raise ChildProcessError(f"{side} did not start")
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:  # the peer computes what it has accepted
            process.kill()


def search_request(titles: list[str], number: int) -> bytes:
    words = urllib.parse.quote(titles[number * 7 % len(titles)])
    return f"GET /search?q={words}&count=10 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def embed_request(titles: list[str], number: int) -> bytes:
    documents = []
    for row in range(DOCUMENTS):
        chosen = [titles[(number * 131 + row * 97 + place) % len(titles)] for place in range(HEADLINES)]
        documents.append({"body": " ".join(chosen)})
    body = json.dumps({"documents": documents}).encode()
    head = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bytes]:
    writer.write(request)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return int(head[9:12]), await reader.readexactly(length)


async def clients(port: int, make: Callable[[int], bytes], count: int, seconds: float) -> Load:
    """Asks with some clients, after a second that is not measured."""
    load, numbers = Load(), itertools.count()
    begin = time.perf_counter() + 1.0

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        while time.perf_counter() < begin + seconds:
            request = make(next(numbers))
            start = time.perf_counter()
            status, _ = await exchange(reader, writer, request)
            if time.perf_counter() >= begin:
                load.seconds.append(time.perf_counter() - start)
                load.statuses[status] += 1
        writer.close()

    await asyncio.gather(*(client() for _ in range(count)))
    load.wall = time.perf_counter() - begin
    return load


def joined(loads: list[Load]) -> Load:
    """All rounds as one."""
    statuses = sum((load.statuses for load in loads), collections.Counter())
    return Load([one for load in loads for one in load.seconds], statuses, sum(load.wall for load in loads))


def compare_clients(args: argparse.Namespace, folder: str, titles: list[str]) -> None:
    sides = ["ours", "peer"]
    makers = {"search": lambda n: search_request(titles, n), "embed": lambda n: embed_request(titles, n)}
    found: dict[tuple[str, int, str], list[Load]] = {}
    vectors: dict[str, np.ndarray] = {}
    with contextlib.ExitStack() as stack:
        ports = {side: stack.enter_context(serving(args, folder, side)) for side in sides}
        for side, port in ports.items():
            vectors[side] = asyncio.run(first_vectors(port, titles))
            for count in args.clients:  # compiles and fills caches
                asyncio.run(clients(port, makers["search"], count, 1.0))
                asyncio.run(clients(port, makers["embed"], count, 1.0))
        for number in range(args.rounds):
            for route, count in itertools.product(makers, args.clients):
                for side in sides if number % 2 else sides[::-1]:
                    load = asyncio.run(clients(ports[side], makers[route], count, args.seconds))
                    found.setdefault((route, count, side), []).append(load)
                    print(route, count, side, *load.cells(), load.statuses, file=sys.stderr, flush=True)
    closest = float((vectors["ours"] * vectors["peer"]).sum(axis=1).min())
    assert closest >= CLOSEST, f"the vectors differ: the least cosine is {closest}"
    names = ("requests/s", "p50 ms", "p99 ms", "statuses")
    print("\n| route | clients | " + " | ".join(f"{side} {name}" for side in sides for name in names) + " |")
    print("|---" * (2 + 4 * len(sides)) + "|")
    for route, count in itertools.product(makers, args.clients):
        cells = [route, f"{count}"]
        for side in sides:
            load = joined(found[route, count, side])
            cells += [*load.cells(), json.dumps(load.statuses).strip("{}").replace('"', "")]
        print("| " + " | ".join(cells) + " |", flush=True)


async def first_vectors(port: int, titles: list[str]) -> np.ndarray:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    _, body = await exchange(reader, writer, embed_request(titles, 0))
    writer.close()
    return np.array(json.loads(body)["embeddings"])


if __name__ == "__main__":
    main()
