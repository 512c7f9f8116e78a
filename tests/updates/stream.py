"""Helpers for the tests of updates: a stream of articles, an encoder without a model, and runs over both."""

import datetime
import functools
import hashlib
import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from json_lines import write_rows
from newsembed.beam_pipelines.clean.rules import CleanOptions
from newsembed.formats.archive import Archive, read_runs
from newsembed.serving.events import EventOptions
from newsembed.updates.options import EncoderChoice, Sources, UpdateOptions
from newsembed.updates.run import update

FIRST = datetime.date(2024, 3, 1)
CLEAN = CleanOptions(
    min_words=5, min_sentences=1, require_author=False, require_language=False, latest_date=datetime.date(2025, 1, 1)
)
OPTIONS = UpdateOptions(clean=CLEAN, events=EventOptions(threshold=0.5))
CHOICE = EncoderChoice("model:words")


class Words:
    """The sum of a fixed random vector for each word: texts with the same words are alike."""

    digest, dimensions, tokenizer_name = "words", 48, "words"

    def __init__(self):
        self.embedded = 0

    def encode(self, titles, bodies):
        self.embedded += len(titles)
        rows = [np.sum([_vector(word) for word in body.lower().split()], axis=0) for body in bodies]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32).reshape(-1, self.dimensions)

    def encode_queries(self, texts):
        return self.encode(texts, texts)

    def preparations(self):
        return iter(())


@functools.cache
def _vector(word):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).normal(size=Words.dimensions)


def article(number, body, day, publisher="a.example"):
    url = f"https://{publisher}/{number}"
    date = (FIRST + datetime.timedelta(day)).isoformat()
    return {"url": url, "title": f"Title {number}", "body": body, "publisher": publisher, "byline_date": date}


def told(event, number, words=60):
    """A text about an event in an order of words of its own, so that no two are near duplicates."""
    order = random.Random(f"{event}/{number}")
    return " ".join(order.choices([f"{event}word{place}" for place in range(20)], k=words)) + "."


def days_of_news(days=4, seed=0):
    """For each day, the articles that arrive: reports of events, copies, pages again, junk; some are late."""
    draw = random.Random(seed)
    arriving = [[] for _ in range(days)]
    number = 0
    for day in range(days):
        for event in range(3):
            for _ in range(draw.randint(2, 4)):
                number += 1
                one = article(number, told(f"d{day}e{event}", number), min(day + draw.randint(0, 1), days - 1))
                late = draw.choice([0, 0, 0, 1, 2])
                arriving[min(day + late, days - 1)].append(one)
                if draw.random() < 0.3:  # another page prints it, and may be dated before
                    copy = article(1000 + number, one["body"].replace(".", " again."), max(day - 1, 0), "copy.example")
                    arriving[min(day + draw.randint(0, 2), days - 1)].append(copy)
        arriving[day].append(article(2000 + day, "Only four words here.", day))
        arriving[day].append(dict(arriving[max(day - 1, 0)][0]))  # the same page again
    return arriving


def run(archive, *inputs, encoder=None, options=OPTIONS, choice=CHOICE, **more):
    """Updates an archive from files, or from lists of articles."""
    folder, files = Path(f"{archive}-inputs"), []
    for one in inputs:
        path = folder / f"{len(list(folder.glob('*')))}.jsonl"
        files.append(write_rows(path, one) if isinstance(one, list) else str(one))
    return update(str(archive), encoder or Words(), choice, Sources(articles=tuple(files)), options, **more)


def articles_of(archive):
    """All columns by doc_id."""
    batches = Archive(str(archive)).batches()
    return pa.Table.from_batches(batches).sort_by("doc_id").to_pylist()


def events_of(archive):
    """Event by doc_id."""
    return {row["doc_id"]: row["event_id"] for row in articles_of(archive)}


def merges_of(archive):
    return [merge for run in read_runs(str(archive)) for merge in run.merges]


def b_cubed(found, truth):
    """F1 of two clusterings, item -> cluster, of the same items (Bagga and Baldwin 1998)."""
    assert found.keys() == truth.keys()
    sides = []
    for one, two in ((found, truth), (truth, found)):
        shares = []
        for item in one:
            own = {other for other in one if one[other] == one[item]}
            shares.append(sum(two[other] == two[item] for other in own) / len(own))
        sides.append(np.mean(shares))
    return 2 * sides[0] * sides[1] / sum(sides)


def copied(archive, target):
    shutil.copytree(archive, target)
    return target


class Killed(BaseException):
    """In place of a signal."""


def kill_at(step):
    """What ends a run when it has reached this step."""

    def reached(*said):
        if said[-1] == step:
            raise Killed(step)

    return reached
