"""Stories: connected components of pairs, which pairs they are made of, and their lookup."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.triplets.candidates import CANDIDATE
from newsembed.beam_pipelines.triplets.events import Stories, links_of, read_stories, stories_of, write_stories
from newsembed.beam_pipelines.triplets.mine import TripletsOptions, by_evidence, same_event_pairs
from newsembed.beam_pipelines.triplets.table import DocumentTable

IDS = st.integers(1, 2**64 - 1)


@given(
    st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)), max_size=20),
    st.lists(IDS, min_size=15, max_size=15, unique=True),
)
def test_a_story_is_what_pairs_connect_and_has_its_smallest_id(links, ids):
    pairs = np.array([(ids[one - 1], ids[other - 1]) for one, other in links], np.uint64).reshape(-1, 2)
    documents, stories = stories_of(pairs)
    expected = {}
    for one in {int(one) for pair in pairs for one in pair}:
        reached, border = {one}, [one]
        while border:
            at = border.pop()
            for pair in pairs.tolist():
                if at in pair:
                    border += [other for other in pair if other not in reached]
                    reached |= set(pair)
        expected[one] = min(reached)
    assert dict(zip(documents.tolist(), stories.tolist(), strict=True)) == expected
    assert documents.tolist() == sorted(expected)


@given(st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)).filter(lambda pair: pair[0] != pair[1]), max_size=30))
def test_links_of_parts_make_the_stories_of_all_pairs(found):
    pairs = np.array(found, np.uint64).reshape(-1, 2)
    parts = [links_of(pairs[number::3]) for number in range(3)]
    for one, other in zip(stories_of(np.concatenate(parts)), stories_of(pairs), strict=True):
        np.testing.assert_array_equal(one, other)
    documents, stories = stories_of(pairs[::3])
    assert len(parts[0]) == len(documents) - len(set(stories.tolist()))


def test_a_document_without_a_story_has_none(tmp_path):
    path = str(tmp_path / "documents" / "stories.npz")
    pairs = np.array([[5, 2**63], [2**63, 7], [11, 12]], np.uint64)
    write_stories(path, *stories_of(pairs))
    found = read_stories(path)
    assert [found.of(doc_id) for doc_id in (5, 7, 2**63, 11, 12, 1, 6, 2**64 - 1)] == [5, 5, 5, 11, 11, 0, 0, 0]
    assert read_stories(str(tmp_path / "older")).of(5) == 0
    assert Stories(np.zeros(0, np.uint64), np.zeros(0, np.uint64)).of(5) == 0


def test_stories_link_all_that_is_near_in_time_and_similar_whoever_published_it():
    ids = np.arange(1, 8, dtype=np.uint64)
    table = DocumentTable(
        {
            "ids": ids[:6],
            "numbers": np.zeros((6, 3), np.float32),
            "codes": np.zeros((6, 2), np.int32),  # one publisher
            "languages": np.array(["en"]),
        }
    )
    rows = [
        (1, 2, 1, (0.9, np.nan, np.nan, np.nan)),
        (1, 3, -1, (np.nan, np.nan, 0.9, np.nan)),
        (1, 4, 2, (0.9, np.nan, 0.9, np.nan)),  # another day
        (1, 5, 0, (0.4, np.nan, np.nan, np.nan)),  # not similar
        (1, 6, 0, (0.55, np.nan, 0.7, np.nan)),  # similar in two spaces
        (1, 7, 0, (0.9, np.nan, np.nan, np.nan)),  # not in the table
    ]
    options = TripletsOptions()
    found = same_event_pairs(np.array(rows, CANDIDATE), table, options, partial(by_evidence, options=options))
    assert found.tolist() == [[1, 2], [1, 3], [1, 6]]
