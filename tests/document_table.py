"""Articles of `triplets`, and their table as one process makes it, from all documents at once."""

import datetime

import numpy as np
from newsembed.beam_pipelines.triplets.table import DocumentTable
from newsembed.formats.arrays import write_arrays
from newsembed.formats.records import Article, Triplet, make_doc_id
from scipy.stats import rankdata

DAY = datetime.date(2021, 6, 1)


def doc(name):
    """The id of an article by its name."""
    return make_doc_id(f"http://{name}.example/")


def article(name, publisher, days=0, language="en"):
    """An article whose words name its month, some days after `DAY`."""
    date = DAY + datetime.timedelta(days=days)
    words = f"In {date:%B} of {date.year} something happened that is called {name}. "
    return Article(doc(name), f"http://{name}.example/", publisher, name, words * 10, ("A B",), date, language=language)


def numbered_triplet(*numbers):
    """A triplet of documents whose ids are numbers."""
    near = (0.5, 0.5, 0.5)
    return Triplet(*(f"{number:016x}" for number in numbers), "en", near, near, 1, 400, 0.1)


def write_table(path, stats):
    """Writes the table of a list of `DateStats`."""
    ordered = sorted(stats, key=lambda one: one.doc_id)
    columns = [[getattr(one, name) for one in ordered] for name in ("entropy", "own_mass", "expected_gap")]
    entropy, own_mass, gap = np.array(columns, np.float32)
    ranks = [((rankdata(values) - 0.5) / max(1, len(ordered))).astype(np.float32) for values in (entropy, own_mass)]
    publishers, languages = (sorted({getattr(one, name) for one in stats}) for name in ("publisher", "language"))
    codes = [(publishers.index(one.publisher), languages.index(one.language)) for one in ordered]
    arrays = {
        "ids": np.array([int(one.doc_id, 16) for one in ordered], np.uint64),
        "numbers": np.stack([*ranks, gap], axis=1),
        "codes": np.array(codes, np.int32).reshape(-1, 2),
        "publishers": np.array(publishers, str),
        "languages": np.array(languages, str),
    }
    write_arrays(path, arrays)


def make_table(ids, numbers=None, publishers=None):
    """A table of sorted ids, with a publisher of its own and ranks of 1 for each document unless they are given."""
    codes = np.stack([np.arange(len(ids)) if publishers is None else publishers, np.zeros(len(ids), int)], axis=1)
    numbers = np.ones((len(ids), 3), np.float32) if numbers is None else numbers
    ids = np.array(ids, np.uint64)
    return DocumentTable({"ids": ids, "numbers": numbers, "codes": codes, "languages": np.array(["en"])})
