"""``newsembed diagnose`` from articles to report: every part is made, or the report says why it is missing."""

import hashlib
import html.parser
import json
import re

import numpy as np
import pytest
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.models.encoders.news import EncoderConfig
from newsembed.studies.diagnose import page as pages
from newsembed.studies.diagnose import text as texts

WORDS = {
    "storm": ["storm", "coast", "wind", "rain"],
    "vote": ["budget", "vote", "parliament", "law"],
    "cup": ["match", "goal", "cup", "team"],
}
PARTS = ["neighbors", "similarities", "geometry", "attention", "redundancy", "repetition", "map"]
TAGGER = (
    "def tag(text, language):\n    return [(word, 'LONG' if len(word) > 4 else 'SHORT') for word in text.split()]\n"
)
BROKEN = "import numpy as np\n\n\ndef embed(texts):\n    return np.full((len(texts), 3), np.nan)\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    pieces = [*SPECIAL_TOKENS, "<", ">", *(word for group in WORDS.values() for word in group)]
    vocabulary = "".join(f"{piece}\n" for piece in pieces).encode()
    (folder / "vocab.txt").write_bytes(vocabulary)
    config = EncoderConfig(
        len(pieces),
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        mlp_size=32,
        max_length=24,
        embedding_size=8,
        num_topics=3,
    )
    (folder / "model.json").write_text(
        json.dumps({"encoder": config.to_dict(), "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest()})
    )
    return str(folder)


def articles():
    draw, rows = np.random.default_rng(0), []
    for number in range(18):
        event = list(WORDS)[number % 3]
        text = [" ".join(draw.choice(WORDS[event], size)) for size in (3, 12)]
        language = ("en", "de")[number // 9]
        topic = "news" if event != "cup" else "sport"
        title = f"{text[0]} < >"
        rows.append(
            {"id": f"a{number}", "title": title, "body": text[1], "event": event, "topic": topic, "language": language}
        )
    return rows


def diagnose(tmp_path, rows, *arguments):
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return cli.main(["diagnose", "--articles", str(path), "--output", str(tmp_path / "out"), *arguments])


def written(tmp_path):
    out = tmp_path / "out"
    return (
        json.loads((out / "report.json").read_text()),
        (out / "report.html").read_text(),
        (out / "report.md").read_text(),
    )


class Page(html.parser.HTMLParser):
    """Collects what a page would fetch, run, or name."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.tags, self.ids, self.shown = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        self.fetched += [
            value
            for name, value in attributes
            if name in ("src", "href", "xlink:href", "data", "srcset") and not value.startswith("#")
        ]

    def handle_data(self, data):
        self.shown.append(data)


def test_every_part_is_made(tmp_path, model, capsys):
    (tmp_path / "mine.py").write_text(TAGGER)
    tags, chosen = f"{tmp_path}/mine.py:tag", tmp_path / "ids.txt"
    chosen.write_text("a3\n\na7\n")
    encoders = ["--encoder", f"ours=random:{model}", "--encoder", "tfidf=tfidf"]
    assert (
        diagnose(tmp_path, articles(), *encoders, "--tags", tags, "--neighbors", "4", "--queries", "a1", f"@{chosen}")
        == 0
    )
    assert "report.html" in capsys.readouterr().out
    report, page, text = written(tmp_path)
    sections = report["sections"]
    assert list(sections) == PARTS == list(texts.PARTS)
    assert [name for name in sections if "missing" in sections[name]] == ["repetition"]
    assert sections["repetition"]["missing"] == f"{tags} gives no lemmas"
    assert report["articles"]["languages"] == {"en": 9, "de": 9}

    assert [query["id"] for query in sections["neighbors"]["queries"]] == ["a1", "a3", "a7"]
    near = sections["neighbors"]["queries"][0]["neighbors"]
    assert set(near) == {"ours", "tfidf"}
    assert all(len(found) == 4 and "a1" not in {one["id"] for one in found} for found in near.values())
    assert all(one["same_event"] for one in near["tfidf"])
    assert 0 <= sections["neighbors"]["shared"][0]["shared"] <= 1

    kinds = sections["similarities"]["encoders"]["tfidf"]["kinds"]
    assert {kind: values["pairs"] for kind, values in kinds.items()} == {
        "same event": 3 * 15,
        "same event, two languages": 3 * 9,
        "same topic, not the same event": 36,
        "random": 153,
    }
    assert all(sum(values["counts"]) == values["pairs"] for values in kinds.values())
    assert kinds["same event"]["auc"] > 0.8
    assert sections["geometry"]["encoders"]["tfidf"]["alignment"] < 2

    seen = sections["attention"]["encoders"]["ours"]
    assert (seen["documents"], seen["unmatched"], seen["layers"]) == (18, 0, 2)
    assert {row["tag"] for row in seen["tags"]} == {"LONG", "SHORT", "[CLS], [SEP]"}
    assert sum(row["attention"][-1] for row in seen["tags"]) == pytest.approx(1, abs=1e-4)
    assert sections["redundancy"]["without"] == ["tfidf"]
    assert sum(row["documents"] for row in sections["redundancy"]["encoders"]["ours"]["bins"]) == 18
    assert sections["map"]["labels"] == ["topic", "language", "event"]
    assert np.array(sections["map"]["encoders"]["tfidf"]).shape == (18, 2)

    parsed = Page(page)
    assert parsed.fetched == []
    assert "script" not in parsed.tags
    assert "url(http" not in page
    assert "@import" not in page
    assert set(PARTS) <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert parsed.tags.count("circle") == 2 * 18
    shown = "".join(parsed.shown)
    for part in texts.PARTS.values():
        assert part.title in shown
        assert f"## {part.title}" in text
    assert sections["neighbors"]["queries"][0]["title"] in shown  # with its < and >
    assert "prefers-color-scheme:dark" in page
    assert re.findall(r"<svg (?![^>]*role=\"img\" aria-label)", page) == []


def test_what_cannot_be_made_says_why(tmp_path, capsys):
    rows = [
        {"url": f"http://x.example/{number}", "title": f"嵐が海岸に {number}", "body": "" if number else "風と雨"}
        for number in range(4)
    ]
    assert diagnose(tmp_path, [*rows, {"url": "u", "title": "", "body": " "}], "--encoder", "tfidf=tfidf") == 0
    report, page, text = written(tmp_path)
    sections = report["sections"]
    assert (report["articles"]["kept"], report["articles"]["empty"]) == (4, 1)
    assert sections["attention"] == sections["redundancy"]
    assert "only model: and random: encoders" in sections["attention"]["missing"]
    assert "a map needs at least 5" in sections["map"]["missing"]
    assert sections["similarities"]["absent"] == {
        "same event": "no article has a value for event",
        "same topic, not the same event": "no article has a value for topic",
    }
    assert sections["geometry"]["encoders"]["tfidf"]["alignment"] is None
    assert page.count("Missing: ") == text.count("Missing: ") == 7
    assert "map: 4 articles" in capsys.readouterr().err
    assert Page(page).fetched == []


def test_one_event_only(tmp_path):
    rows = [row | {"event": "storm", "topic": "news"} for row in articles()]
    assert diagnose(tmp_path, rows, "--encoder", "tfidf=tfidf") == 0
    section = written(tmp_path)[0]["sections"]["similarities"]
    assert section["absent"] == {
        "same topic, not the same event": "all articles that share their topic share their event"
    }
    assert section["encoders"]["tfidf"]["kinds"]["same event"]["auc"] == pytest.approx(
        0.5
    )  # they are all the pairs there are


def test_no_two_of_an_event(tmp_path):
    rows = [row | {"event": row["id"]} for row in articles()]
    assert diagnose(tmp_path, rows, "--encoder", "tfidf=tfidf") == 0
    assert written(tmp_path)[0]["sections"]["similarities"]["absent"] == {
        "same event": "no two articles share their event"
    }


def test_repeated_words_by_length(tmp_path):
    pytest.importorskip("HanTa")
    rows = [
        {"url": f"http://x/{size}", "title": "", "body": "The storm hit the house. " * size, "language": "en"}
        for size in (4, 8, 20)
    ]
    assert diagnose(tmp_path, rows, "--encoder", "tfidf=tfidf") == 0
    report, page, text = written(tmp_path)
    section = report["sections"]["repetition"]
    assert [(row["documents"], row["repetition"]) for row in section["bins"]] == [(2, 6.0), (1, 20.0)]
    assert "| 51 to 100 | 1 | 20.000 |" in text
    assert "51 to 100" in page


def test_languages_without_a_tagger(tmp_path, model, monkeypatch):
    from newsembed.tasks import parts_of_speech as words

    english = words.Tagger("english only", ("en",), lambda text, language: [(word, "W") for word in text.split()])
    monkeypatch.setattr(words, "load_tagger", lambda spec: english)
    rows = articles()
    assert diagnose(tmp_path, rows, "--encoder", f"ours=random:{model}") == 0
    section = written(tmp_path)[0]["sections"]["attention"]
    assert section["languages_left_out"] == {"de": 9}
    assert section["encoders"]["ours"]["documents"] == 9
    for row in rows:
        del row["language"]
    assert diagnose(tmp_path, rows, "--encoder", f"ours=random:{model}") == 0
    assert (
        "the articles' languages: none named (18). --language sets"
        in written(tmp_path)[0]["sections"]["attention"]["missing"]
    )
    assert diagnose(tmp_path, rows, "--encoder", f"ours=random:{model}", "--language", "en-US") == 0
    assert written(tmp_path)[0]["sections"]["attention"]["encoders"]["ours"]["documents"] == 18


def test_without_a_tagger_the_rest_is_made(tmp_path, model, monkeypatch):
    from newsembed.tasks import parts_of_speech as words

    find_spec = words.importlib.util.find_spec
    monkeypatch.setattr(words.importlib.util, "find_spec", lambda name: None if name == "HanTa" else find_spec(name))
    assert diagnose(tmp_path, articles(), "--encoder", f"ours=random:{model}") == 0
    sections = written(tmp_path)[0]["sections"]
    assert "HanTa is not installed; pip install newsembed[tags]" in sections["attention"]["missing"]
    assert [name for name in sections if "missing" in sections[name]] == ["attention", "repetition"]


def test_words_that_are_not_the_encoder_s_are_left_out(tmp_path, model):
    (tmp_path / "mine.py").write_text("def tag(text, language):\n    return [('storm', 'W')]\n")
    assert diagnose(tmp_path, articles(), "--encoder", f"ours=random:{model}", "--tags", f"{tmp_path}/mine.py:tag") == 0
    assert (
        "the words of none of 18 articles"
        in written(tmp_path)[0]["sections"]["attention"]["encoders"]["ours"]["missing"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--encoder", "a=tfidf", "--queries", "a99"], "no article has the id 'a99'"),
        (["--encoder", "a=tfidf", "--queries", "@nowhere.txt"], "nowhere.txt: --queries: cannot be read"),
        (["--encoder", "a=tfidf", "--neighbors", "0"], "--neighbors: got 0, expected at least 1"),
        (["--encoder", "a=tfidf", "--encoder", "a=lsa"], "two encoders share a name"),
        (["--encoder", "a=nothing"], "got the encoder 'nothing'"),
        (["--encoder", "a=model:nowhere"], "encoder a: cannot be read"),
        (["--encoder", "a=BROKEN"], "encoder a: the encoder returned 54 values of NaN"),
        (["--encoder", "a=tfidf", "--max_articles", "1"], "--max_articles: keeps"),
    ],
)
def test_bad_input(tmp_path, capsys, arguments, message):
    (tmp_path / "broken.py").write_text(BROKEN)
    arguments = [text.replace("BROKEN", f"{tmp_path}/broken.py:embed") for text in arguments]
    assert diagnose(tmp_path, articles(), *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_pages_escape_what_articles_say():
    title = "<b>|x</b>\nnext"
    article = {"id": "<i>", "title": title, "topic": "", "language": "", "event": ""}
    near = article | {"cosine": 0.5, "same_event": True, "same_topic": False}
    section = {"k": 1, "by_chance": 0.5, "shared": [], "queries": [article | {"neighbors": {"a": [near]}}]}
    assert "<b>" not in pages._neighbors(section)
    assert "&lt;b&gt;" in pages._neighbors(section)
    table = texts._neighbors(section)[-1]
    assert table.splitlines()[-1] == r"| 1 | 0.500 &lt;b>\|x&lt;/b> next [same event] |"
