"""The parts of a diagnosis from a few vectors, and its report in Markdown, line by line."""

import numpy as np
import pytest
from newsembed.evaluation.diagnostics.articles import Collection
from newsembed.evaluation.events import EventDocument
from newsembed.studies.diagnose import charts, sections
from newsembed.studies.diagnose.page import _largest, render
from newsembed.studies.diagnose.sections import Options
from newsembed.studies.diagnose.text import PARTS, REDUNDANCY_NOTE, report_text
from scipy.spatial.distance import pdist

OPTIONS = Options(neighbors=2, max_pairs=100, probed=9, tags=None, language="", projection="pca", cache=None, seed=0)


def circle(*degrees):
    """Unit vectors at some angles."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


ARTICLES = [
    EventDocument("0", "Storm", "wind", language="en", event="A", topic="weather"),
    EventDocument("1", "", " rain and wind ", language="de", event="A", topic="weather"),
    EventDocument("2", "Vote", "law", language="en", event="B", topic="weather"),
    EventDocument("3", "x" * 161, "", language="", event="", topic=""),
    EventDocument("4", "y" * 160, "", language="en", event="", topic=""),
]
COLLECTION = Collection(ARTICLES, [0, 3], 7, 2)
VECTORS = {"one": circle(0, 30, 10, 90, 180), "other": circle(0, 50, 120, 90, 70)}


def test_the_neighbors_of_chosen_articles():
    found = sections.neighbors_section(VECTORS, COLLECTION, 2)
    assert (found["k"], found["by_chance"]) == (2, 0.5)
    storm, long = found["queries"]
    assert {name: storm[name] for name in ("id", "title", "topic", "language", "event")} == {
        "id": "0", "title": "Storm", "topic": "weather", "language": "en", "event": "A",
    }  # fmt: skip
    assert long["title"] == "x" * 159 + "…"
    near = storm["neighbors"]["one"]
    assert [(one["id"], one["same_event"], one["same_topic"]) for one in near] == [
        ("2", False, True),
        ("1", True, True),
    ]
    assert [one["cosine"] for one in near] == pytest.approx(np.cos(np.radians([10, 30])), abs=1e-6)
    assert near[1]["title"] == "rain and wind"
    assert [one["id"] for one in storm["neighbors"]["other"]] == ["1", "4"]
    assert storm["neighbors"]["other"][1]["title"] == "y" * 160
    assert [one["id"] for one in long["neighbors"]["one"]] == ["1", "2"]
    assert not any(one["same_event"] or one["same_topic"] for one in long["neighbors"]["one"])  # "" is no label
    # The two nearest of each article.
    nearest = {"one": [{2, 1}, {2, 0}, {0, 1}, {1, 2}, {3, 1}], "other": [{1, 4}, {4, 3}, {3, 4}, {4, 2}, {1, 3}]}
    assert found["shared"] == [
        {
            "encoders": ["one", "other"],
            "shared": pytest.approx(np.mean([len(a & b) / 2 for a, b in zip(*nearest.values(), strict=True)])),
        }
    ]
    assert sections.neighbors_section(VECTORS, COLLECTION, 9)["k"] == 4


def test_cosines_of_pairs_are_counted_by_kind():
    found = sections.similarities_section({"one": VECTORS["one"]}, ARTICLES, OPTIONS)
    assert found["absent"] == {}
    kinds, edges = found["encoders"]["one"]["kinds"], found["encoders"]["one"]["edges"]
    assert (len(edges), edges[0], edges[-1]) == (51, -1.0, 1.0)
    cosines = 1 - pdist(VECTORS["one"].astype(float), "cosine")
    assert kinds["random"]["pairs"] == 10
    assert kinds["random"]["mean"] == pytest.approx(cosines.mean(), abs=1e-6)
    assert kinds["random"]["quantiles"] == pytest.approx(np.quantile(cosines, [0.05, 0.5, 0.95]).tolist(), abs=1e-6)
    assert kinds["random"]["counts"] == np.histogram(np.clip(cosines, -1, 1 - 1e-9), 50, (-1, 1))[0].tolist()
    assert kinds["same event"]["pairs"] == kinds["same event, two languages"]["pairs"] == 1
    assert kinds["same event"]["mean"] == pytest.approx(np.cos(np.radians(30)), abs=1e-6)
    assert kinds["same topic, not the same event"]["pairs"] == 2
    near = sections.similarities_section({"near": circle(0, 1, 2, 3, 4)}, ARTICLES, OPTIONS)
    assert near["encoders"]["near"]["edges"][0] == 0  # no cosine is negative


def test_alignment_and_uniformity():
    found = sections.geometry_section({"one": VECTORS["one"]}, ARTICLES, OPTIONS)
    vectors = VECTORS["one"].astype(float)
    assert found["pairs"] == 1
    assert found["encoders"]["one"] == {
        "alignment": pytest.approx(((vectors[0] - vectors[1]) ** 2).sum(), abs=1e-6),
        "uniformity": pytest.approx(np.log(np.mean(np.exp(-2 * pdist(vectors) ** 2))), abs=1e-5),
    }
    bare = sections.geometry_section({"one": VECTORS["one"][3:]}, ARTICLES[3:], OPTIONS)
    assert (bare["pairs"], bare["absent"]) == (0, {"alignment": "no article has a value for event"})


def test_why_there_are_no_pairs():
    def why(*events):
        return sections._why_no_pairs([EventDocument("", "", "", event=event) for event in events], "event")

    assert why("", "") == "no article has a value for event"
    assert why("A", "B", "") == "no two articles share their event"
    assert why("A", "A", "B") == "all articles that share their event share their event"


def test_a_sample_is_in_order_and_the_same_for_a_seed():
    assert sections._draw(5, 5, 0) == sections._draw(5, 9, 0) == [0, 1, 2, 3, 4]
    drawn = sections._draw(100, 7, 3)
    assert drawn == sorted(set(drawn)) == sections._draw(100, 7, 3)
    assert len(drawn) == 7
    assert drawn != sections._draw(100, 7, 4)


def test_the_articles_of_a_diagnosis_are_counted():
    assert sections._articles(COLLECTION, 3) == {
        "read": 7, "empty": 2, "kept": 5, "probed": 3, "events": 2, "topics": 1,
        "languages": {"en": 3, "de": 1, "none named": 1},
    }  # fmt: skip


def near_of(title, cosine, **marks):
    labels = {"id": "9", "language": "en", "topic": "", "event": "A|B"}
    return {"title": title, "cosine": cosine, "same_event": False, "same_topic": False, **labels, **marks}


def a_report():
    kinds = {"random": {"pairs": 1200, "mean": 0.125, "quantiles": [0.0, 0.25, 0.5], "auc": None, "counts": [1200]}}
    row = {
        "tag": "NOUN",
        "words": 1500,
        "tokens": 0.25,
        "attention": [0.125, 0.25, 0.5],
        "lift": [0.5, 1.0, 2.0],
        "per_word": [0.1, 0.2, 0.0625],
    }
    query = near_of("Storm | <b>", 0) | {
        "id": "0",
        "neighbors": {"one": [near_of("Rain", 0.5, same_event=True, same_topic=True)]},
    }
    bins = [{"shortest": 1, "longest": 1024, "documents": 2000, "text": 0.25, "encoder": 0.75}]
    words = [
        {"shortest": 1, "longest": 63, "documents": 5, "repetition": 1.25},
        {"shortest": 1000, "longest": None, "documents": 1, "repetition": None},
    ]
    return {
        "articles": {
            "kept": 1234, "read": 5678, "empty": 1000, "path": "in.jsonl", "languages": {"en": 1200, "de": 34},
            "events": 2000, "topics": 3,
        },
        "encoders": {
            "one": {"spec": "model:m", "dimensions": 1024, "zero_vectors": 1001, "digest": "d" * 30},
            "other": {"spec": "tfidf", "dimensions": 7, "zero_vectors": 0, "digest": "e"},
        },
        "versions": {"numpy": "2"}, "written_at": "today", "command": ["newsembed", "diagnose"],
        "sections": {
            "neighbors": {
                "k": 1, "by_chance": 0.5, "shared": [{"encoders": ["one", "other"], "shared": 0.25}],
                "queries": [query],
            },
            "similarities": {"absent": {"same event": "none"}, "encoders": {"one": {"edges": [0, 1], "kinds": kinds}}},
            "geometry": {"absent": {"alignment": "why"}, "encoders": {"one": {"alignment": None, "uniformity": -1.5}}},
            "attention": {
                "tagger": "ours", "documents": 1500, "languages_left_out": {"ja": 1002},
                "encoders": {"one": {"tags": [row], "documents": 1, "unmatched": 2}, "small": {"missing": "no layers"}},
            },
            "redundancy": {"encoders": {"one": {"bins": bins}, "small": {"missing": "no words"}}, "without": ["other"]},
            "repetition": {"bins": words},
            "map": {"missing": "4 articles"},
        },
    }  # fmt: skip


def test_the_report_in_markdown():
    lines = [line for line in report_text(a_report()).splitlines() if line]
    notes = {part.note.replace("[CLS]", r"\[CLS]") for part in PARTS.values()} | {REDUNDANCY_NOTE}
    assert notes <= {*lines, PARTS["map"].note, PARTS["repetition"].note}
    shown = [line for line in lines if line not in notes and set(line) - set("| -")]
    assert shown == [
        "# newsembed diagnosis",
        "| articles | 1,234 of 5,678, 1,000 without text: in.jsonl |",
        "| languages | en 1,200, de 34 |",
        "| events, topics | 2,000, 3 |",
        "| encoder one | model:m, 1,024 dimensions, 1,001 vectors of zeros, dddddddddddddddddddddddd |",
        "| encoder other | tfidf, 7 dimensions, e |",
        "| written | today, numpy 2 |",
        "| command | newsembed diagnose |",
        "## Neighbors side by side",
        "| encoders | neighbors in common | by chance |",
        "| one and other | 0.250 | 0.500 |",
        r"### Storm \| &lt;b> (0)",
        "|  | one |",
        "| 1 | 0.500 Rain [same event, same topic] |",
        "## Similarities of pairs",
        "| encoder | pairs | number | mean cosine | 5th percentile | median | 95th percentile | nearer than random |",
        "| one | random | 1,200 | 0.125 | 0.000 | 0.250 | 0.500 | - |",
        "Missing: same event: none.",
        "## Alignment and uniformity",
        "| encoder | alignment | uniformity |",
        "| one | - | -1.500 |",
        "Missing: alignment: why.",
        "## Attention by part of speech",
        "Tagger: ours, 1,500 articles. Left out, by language: ja (1,002).",
        "### one",
        "| part of speech | words | share of tokens | attention | ratio | all layers | per word, ‰ |",
        "| NOUN | 1,500 | 0.250 | 0.500 | 2.000 | 0.292 | 62.500 |",
        "### small",
        "Missing: no layers.",
        "## Redundancy by length",
        "### one",
        "| word pieces | articles | R of the text | R of the encoder |",
        "| 1 to 1,024 | 2,000 | 0.250 | 0.750 |",
        "### small",
        "Missing: no words.",
        "## Repeated words by length",
        "| words | articles | R of the words |",
        "| 1 to 63 | 5 | 1.250 |",
        "| 1,000 or more | 1 | - |",
        "## Map",
        "Missing: 4 articles.",
    ]


def test_the_page_has_the_same_numbers_and_a_map():
    report = a_report()
    labels = [
        {"id": str(number), "title": "t<", "topic": "", "language": language, "event": ""}
        for number, language in enumerate(["en", "en", "de"])
    ]
    report["sections"]["map"] = {
        "absent": {"topic": "none"}, "labels": ["language"], "articles": labels, "method": "pca",
        "encoders": {"one": [[0, 0], [2, 1], [1, 0.5]]},
    }  # fmt: skip
    page = render(report)
    for cell in ("0.292", "62.500", "1,000 or more", "1 to 1,024", "-1.500", "1,234 of 5,678"):
        assert cell in page
    assert "1 articles; 2 left out because the tagger and the encoder" in page
    assert page.count("Missing: ") == 6
    assert "its tokens cannot be seen" in page
    assert page.count('class="l0"') == 2
    assert page.count('class="l1"') == 1
    assert "t&lt; (en)" in page
    assert '<span class=bar style="width:120px">' in page
    assert ".l1{fill:var(--s1)}" in page
    assert ".l2{" not in page
    assert "(2)</li>" in page


def test_colours_go_to_the_most_frequent_labels():
    values = ["b", "a", "a", "", "", "", *"cdefghij"]
    assert _largest(values) == {"a": 0, **{value: number for number, value in enumerate("bcdefgh", 1)}}


def test_a_map_keeps_proportions_and_points_up():
    points = [(0.0, 0.0), (4.0, 0.0), (2.0, 2.0)]
    picture = charts.scatter(points, ["a", "b", "c&"], ["x0", "x1", "xx"], 'by "one"')
    size = 420 - 4 * 3.2
    low, high, middle = 6.4, 6.4 + size, 6.4 + size / 2
    quarter = size / 4
    expected = [
        (low, middle + quarter, "x0", "a"),
        (high, middle + quarter, "x1", "b"),
        (middle, middle - quarter, "xx", "c&amp;"),
    ]
    for x, y, own, title in expected:
        assert f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" class="{own}"><title>{title}</title></circle>' in picture
    assert 'viewBox="0 0 420 420" role="img" aria-label="by &quot;one&quot;"' in picture
    alone = charts.scatter([(5.0, 5.0)], ["a"], ["x"], "m")
    assert f'cx="{middle:.1f}" cy="{middle:.1f}"' in alone


def test_histograms_have_the_area_of_one(monkeypatch):
    drawn, finish = [], charts._finish
    monkeypatch.setattr(charts, "_finish", lambda figure, label: drawn.append(figure) or finish(figure, label))
    picture = charts.histograms("one", [0.0, 0.5, 1.0], {"random": [3, 1], "none": [0, 0]})
    assert 'aria-label="one: histograms of random, none over cosine"' in picture
    (axes,) = drawn[0].axes
    outline, filled, *none = axes.patches
    for patch in (outline, filled):
        assert (patch.get_data().values.tolist(), patch.get_data().edges.tolist()) == ([1.5, 0.5], [0.0, 0.5, 1.0])
    assert [patch.get_data().values.tolist() for patch in none] == [[0, 0]] * 2
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cosine", "density")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["random", "none"]
    assert "var(--s0)" in picture
    assert "currentColor" in picture
