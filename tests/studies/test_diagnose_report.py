"""The parts of a diagnosis from a few vectors, against numbers worked out here."""

import dataclasses
import re

import numpy as np
import pytest
from newsembed.evaluation.events import Collection, EventDocument
from newsembed.evaluation.tokens import LengthBin
from newsembed.studies.diagnose import DiagnoseOptions, parts
from newsembed.studies.diagnose.parts import Diagnosis
from newsembed.studies.shared.pages import Included, Part, Table, markdown, page
from scipy.spatial.distance import pdist
from vectors import circle

OPTIONS = DiagnoseOptions(encoder=("a",), articles="", output="", neighbors=2)


ARTICLES = [
    EventDocument("0", "Storm", "wind", language="en", event="A", topic="weather"),
    EventDocument("1", "", " rain and wind ", language="de", event="A", topic="weather"),
    EventDocument("2", "Vote | <b>", "law", language="en", event="B", topic="weather"),
    EventDocument("3", "x" * 161, "", language="", event="", topic=""),
    EventDocument("4", "y" * 160, "", language="en", event="", topic=""),
]
VECTORS = {"one": circle(0, 30, 10, 90, 180), "other": circle(0, 50, 120, 90, 70)}
MADE = Diagnosis(OPTIONS, Collection(ARTICLES, [0, 3], 7, 2), VECTORS)


def tables(made):
    return [block for block in made if isinstance(block, Table)]


def test_the_neighbors_of_chosen_articles():
    blocks = list(parts.neighbors_part(MADE))
    shared, storm, long = tables(blocks)
    # The two nearest of each article.
    nearest = {"one": [{2, 1}, {2, 0}, {0, 1}, {1, 2}, {3, 1}], "other": [{1, 4}, {4, 3}, {3, 4}, {4, 2}, {1, 3}]}
    share = np.mean([len(a & b) / 2 for a, b in zip(*nearest.values(), strict=True)])
    assert shared.rows == [["one and other", f"{share:.3f}", "0.500"]]
    assert storm.headings == ["", "one", "other"]
    assert [[str(cell) for cell in row] for row in storm.rows] == [
        ["1", "0.985 Vote | <b> [same topic]", "0.643 rain and wind [same event, same topic]"],
        ["2", "0.866 rain and wind [same event, same topic]", f"0.342 {'y' * 160}"],
    ]
    assert (storm.rows[0][2].language, storm.rows[0][2].note) == ("de", "1 · de · weather · A")
    assert blocks[3].heading.text == "x" * 159 + "…"
    assert not any("same" in str(cell) for row in long.rows for cell in row)  # "" is no label
    assert r"| 1 | 0.985 Vote \| &lt;b> [same topic] |" in markdown("", blocks)
    more = dataclasses.replace(MADE, options=dataclasses.replace(OPTIONS, neighbors=9))
    assert len(tables(parts.neighbors_part(more))[1].rows) == 4


def test_cosines_of_pairs_are_counted_by_kind(monkeypatch):
    drawn, svg_of = [], parts.svg_of
    monkeypatch.setattr(parts, "svg_of", lambda figure, label: drawn.append(figure) or svg_of(figure, label))
    blocks = list(parts.similarities_part(dataclasses.replace(MADE, embeddings={"one": VECTORS["one"]})))
    (table,) = tables(blocks)
    cosines = 1 - pdist(VECTORS["one"].astype(float), "cosine")
    numbers = [cosines.mean(), *np.quantile(cosines, [0.05, 0.5, 0.95])]
    kinds = {row[0]: row[1:] for row in table.rows}
    assert kinds["random"] == ["10", *(f"{value:.3f}" for value in numbers), "-"]
    assert kinds["same event"][:2] == kinds["same event, two languages"][:2] == ["1", f"{np.cos(np.radians(30)):.3f}"]
    assert kinds["same topic, not the same event"][0] == "2"
    (axes,) = drawn[0].axes
    patches = axes.patches
    counts = np.histogram(np.clip(cosines, -1, 1 - 1e-9), 50, (-1, 1), density=True)[0]
    found = [patch.get_data() for patch in patches if len(patch.get_data().values) == 50]
    assert any(np.allclose(one.values, counts) for one in found)
    assert (found[0].edges[0], found[0].edges[-1]) == (-1, 1)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(kinds)
    assert f'aria-label="one: histograms of {", ".join(kinds)} over cosine"' in blocks[1].svg


def test_a_map_has_a_dot_for_each_article_in_the_colours_of_its_labels(monkeypatch):
    monkeypatch.setattr(parts.similarity, "project", lambda *_: np.array([[0, 0], [2, 1], [1, 0.5], [0, 1], [1, 1]]))
    *_, included = parts.map_part(MADE)
    assert isinstance(included, Included)
    assert included.values["colours"] == {
        "topic": [("weather", 3)], "language": [("en", 3), ("de", 1)], "event": [("A", 2), ("B", 1)],
    }  # fmt: skip
    assert included.values["others"] == {"topic": 2, "language": 1, "event": 2}
    (_, (classes, title)), *_, (_, (last, unnamed)) = included.values["encoders"]["one"]
    assert (classes, title) == ("t0 l0 e0", "Storm (weather, en, A)")
    assert (last, unnamed) == ("tx l0 ex", f"{'y' * 160} (en)")
    shown = page("", Table([], []), [Part("map", "Map", [included])])
    assert len(re.findall(r'<circle cx="[\d.]+" cy="[\d.]+" r="3.2" class="t0 l0 e0"><title>Storm', shown)) == 2
    assert "#map:has(#by-event:checked) .e1{fill:var(--s1)}" in shown
    assert ".e2{" not in shown
    assert "A (2)</li>" in shown
    assert "other or none (2)" in shown
    assert 'aria-label="Map of 5 articles by other"' in shown


def test_colours_go_to_the_most_frequent_labels():
    values = ["b", "a", "a", "", "", "", *"cdefghij"]
    assert parts.largest(values) == [("a", 2), *((value, 1) for value in "bcdefgh")]


def test_a_map_keeps_proportions_and_points_up():
    size, middle = 420 - 4 * 3.2, 210
    low, high = 6.4, 6.4 + size
    expected = [(low, middle + size / 4), (high, middle + size / 4), (middle, middle - size / 4)]
    assert parts.placed([(0.0, 0.0), (4.0, 0.0), (2.0, 2.0)]) == [(f"{x:.1f}", f"{y:.1f}") for x, y in expected]
    assert parts.placed([(5.0, 5.0)]) == [("210.0", "210.0")]


@pytest.mark.parametrize(("longest", "span"), [(63, "1 to 63"), (1024, "1 to 1,024"), (None, "1 or more")])
def test_bins_say_their_lengths(longest, span):
    assert parts._means(["a", "b", "c"], [LengthBin(1, longest, 2000, (0.5,))]).rows == [[span, "2,000", "0.500"]]
