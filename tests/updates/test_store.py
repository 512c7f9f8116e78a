"""Where the articles of a version are removed and added, on a case by hand."""

import numpy as np
import pytest
from newsembed.serving.events import NO_EVENT, Merge
from newsembed.updates.duplicates import Found
from newsembed.updates.store import _check_ended, _emptied, find_change


def test_an_article_that_loses_its_place_has_the_article_that_takes_it_as_its_heir():
    # Of five signatures the third is a duplicate of the second, so there are four articles: rows 0, 1, 3, 4.
    before = np.array([0, 1, 1, 3, 4])
    # Of three new ones the first takes the place of row 1, and the second shows row 4 to be a duplicate of row 3.
    after = np.array([0, 5, 1, 3, 3, 5, 4, 7])
    found = Found(after, {}, np.array([1, 4]))
    assert [found.root(row) for row in range(8)] == [0, 5, 5, 3, 3, 5, 3, 7]
    change = find_change(before, found, ["first", "third"], np.eye(2, dtype=np.float32), [5, 7])
    assert change.removed.tolist() == [False, True, False, True]
    # The articles are then rows 0, 3, 5 and 7.
    assert change.heirs.tolist() == [2, 1]
    assert change.new == ["first", "third"]


def test_nothing_is_removed_where_nothing_is_superseded():
    found = Found(np.array([0, 1, 2]), {}, np.zeros(0, np.int64))
    change = find_change(np.array([0, 1]), found, ["new"], np.ones((1, 1), np.float32), [2])
    assert change.removed.tolist() == [False, False]
    assert change.heirs.tolist() == []


def test_an_event_whose_last_article_is_replaced_by_one_of_another_event_ends_in_that_event():
    # Events of the articles that stay or are new, once heirs of articles without one have taken theirs over.
    doc_ids, events = np.array([1, 2, 3, 4], np.uint64), np.array([90, 90, 70, 80], np.uint64)
    lost = np.array([50, 50, 70, 80, NO_EVENT], np.uint64)  # both of 50, one of 80 and the only one of 70, whose heir
    heirs = np.array([1, 0, 2, 0, 0])  # is in 70, too
    assert _emptied(lost, heirs, events, doc_ids) == [Merge(50, 90, 2)]


def test_an_article_in_an_event_that_has_ended_is_an_error():
    merges = [Merge(50, 90, 2)]
    _check_ended(np.array([90, 70], np.uint64), merges)
    with pytest.raises(RuntimeError, match="an event that has ended"):
        _check_ended(np.array([90, 50], np.uint64), merges)
