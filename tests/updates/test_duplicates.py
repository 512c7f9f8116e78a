"""Duplicates of an archive: what one run finds, several find, and so does the job ``clean``."""

import dataclasses
import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.clean.duplicates import KEPT, find_clusters, find_edges, sign, write_sketches
from newsembed.beam_pipelines.clean.rules import CleanOptions
from newsembed.formats.records import Article, Rejection, make_doc_id
from newsembed.updates.duplicates import Seen, find, record_digest, signature

OPTIONS = CleanOptions()
WORDS = [f"word{number}" for number in range(60)]


def make(url, body, day=1):
    return Article(make_doc_id(url), url, "a.example", "Title", body, byline_date=datetime.date(2024, 1, day))


def signed(articles, options=OPTIONS):
    return Seen.of((signature(one, options) for one in articles), options)


class Growing:
    """What an archive knows, run by run."""

    def __init__(self):
        self.seen = signed([])

    def add(self, articles):
        new = signed(articles)
        found = find(self.seen, new, OPTIONS.near_duplicate_threshold)
        digests = np.concatenate([self.seen.digests, new.digests])
        self.seen = Seen(digests, [*self.seen.sketches, *new.sketches], found.parents)
        return found

    def kept(self):
        return np.flatnonzero(self.seen.parents == np.arange(len(self.seen))).tolist()


def kept_by_clean(folder, articles):
    """The rows that the job keeps."""
    folder.mkdir(parents=True)
    entries, sketches = zip(*(sign(one, 0, row, OPTIONS) for row, one in enumerate(articles)), strict=True)
    write_sketches(f"{folder}/0.", sketches)
    edges = find_edges(np.concatenate(entries), [f"{folder}/0."], OPTIONS.near_duplicate_threshold)
    dropped = {row for _, row, reason, _ in find_clusters([edges]).tolist() if reason != KEPT}
    return [row for row in range(len(articles)) if row not in dropped]


# A text is 60 words, from a start, with up to four words changed: some pairs are near duplicates and some almost.
TEXT = st.tuples(st.integers(0, 2), st.lists(st.integers(0, 59), max_size=4))
ARTICLE = st.tuples(st.integers(0, 8), TEXT, st.integers(1, 5))


def from_drawn(drawn):
    url, (start, changed), day = drawn
    words = [f"s{start}{word}" for word in WORDS]
    for place in changed:
        words[place] = f"changed{place}"
    return make(f"https://a.example/{url}", " ".join(words), day)


@settings(max_examples=40, deadline=None)
@given(st.lists(ARTICLE, min_size=1, max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_any_number_of_runs_keeps_what_clean_keeps(tmp_path_factory, drawn, cuts):
    articles = [from_drawn(one) for one in drawn]
    folder = tmp_path_factory.mktemp("growing")
    growing = Growing()
    bounds = sorted({0, *(cut for cut in cuts if cut < len(articles)), len(articles)})
    for start, end in zip(bounds[:-1], bounds[1:], strict=True):
        growing.add(articles[start:end])
    assert growing.kept() == kept_by_clean(folder / "clean", articles)


def test_an_earlier_article_that_arrives_late_takes_the_place_of_the_kept_one():
    growing = Growing()
    body = " ".join(WORDS)
    assert growing.add([make("https://a.example/copy", body, day=5)]).superseded.tolist() == []
    found = growing.add([make("https://a.example/first", body, day=2)])
    assert (found.superseded.tolist(), found.reasons, found.root(0)) == ([0], {}, 1)
    found = growing.add([make("https://a.example/third", body, day=3)])
    assert (found.superseded.tolist(), found.reasons) == ([], {2: Rejection.DUPLICATE_BODY})


def test_a_corrected_text_takes_the_place_of_the_one_before_it_and_a_later_date_does_not():
    growing, url = Growing(), "https://a.example/1"
    growing.add([make(url, " ".join(WORDS), day=2), make("https://a.example/copy", " ".join(WORDS), day=3)])
    found = growing.add([make(url, "Corrected: " + " ".join(WORDS[::-1]), day=2)])
    assert (found.superseded.tolist(), found.root(1), growing.kept()) == ([0], 2, [2])
    found = growing.add([make(url, "Again, on another day.", day=3)])
    assert (found.superseded.tolist(), found.reasons) == ([], {3: Rejection.DUPLICATE_URL})


def test_a_new_article_can_join_two_that_are_kept():
    # Of 56 spans the middle text shares 51 with each of the others (51 / 61 = 0.84), these share 46 (46 / 66 = 0.70).
    left, middle = list(WORDS), list(WORDS)
    left[:5] = [f"left{number}" for number in range(5)]
    right = list(WORDS)
    right[-5:] = [f"right{number}" for number in range(5)]
    texts = [make(f"https://a.example/{name}", " ".join(words)) for name, words in (("l", left), ("r", right))]
    growing = Growing()
    assert growing.add(texts).reasons == {}
    found = growing.add([make("https://a.example/m", " ".join(middle))])
    (only,) = growing.kept()
    kept_id = min(make_doc_id(f"https://a.example/{name}") for name in "lrm")
    assert only == [make_doc_id(f"https://a.example/{name}") for name in "lrm"].index(kept_id)
    assert len(found.superseded) + len(found.reasons) == 2


def test_reasons_are_the_strongest():
    body = " ".join(WORDS)
    near = " ".join([*WORDS[:-1], "other"])
    articles = [
        make("https://a.example/1", body, 1),
        make("https://a.example/1", "something else with more than five words", 2),
        make("https://a.example/2", body.upper(), 2),
        make("https://a.example/3", near, 2),
    ]
    assert Growing().add(articles).reasons == {
        1: Rejection.DUPLICATE_URL,
        2: Rejection.DUPLICATE_BODY,
        3: Rejection.NEAR_DUPLICATE,
    }


def test_an_article_is_known_only_with_the_same_texts_and_date():
    one = make("https://a.example/1", " ".join(WORDS))
    growing = Growing()
    growing.add([one])
    others = [one, *(dataclasses.replace(one, **change) for change in ({"title": "New"}, {"body": "New."}))]
    others += [dataclasses.replace(one, byline_date=None), dataclasses.replace(one, keywords=("new",))]
    known = growing.seen.knows(signed(others).digests)
    assert known.tolist() == [True, False, False, False, True]


def test_a_digest_covers_where_one_text_ends_and_the_next_begins():
    one = make("https://a.example/1", "b c")
    assert record_digest(dataclasses.replace(one, title="a", body="b c")) != record_digest(
        dataclasses.replace(one, title="a b", body="c")
    )


def test_without_a_search_for_near_duplicates_only_equal_ones_are_found():
    options = dataclasses.replace(OPTIONS, near_duplicate_threshold=1.1)
    articles = [make(f"https://a.example/{number}", body) for number, body in enumerate((" ".join(WORDS),) * 2)]
    articles.append(make("https://a.example/9", " ".join([*WORDS, "more"])))
    found = find(signed([], options), signed(articles, options), 1.1)
    assert list(found.reasons.values()) == [Rejection.DUPLICATE_BODY]


@pytest.mark.parametrize("count", [200])
def test_a_bucket_of_many_copies_is_compared_once_for_each(monkeypatch, count):
    compared = []
    monkeypatch.setattr("newsembed.updates.duplicates.similarity", lambda *_: compared.append(1) or 1.0)
    articles = [make(f"https://a.example/{number}", " ".join([*WORDS, f"end{number}"])) for number in range(count)]
    assert len(Growing().add(articles).reasons) == count - 1
    assert len(compared) == count - 1
