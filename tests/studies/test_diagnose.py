"""``newsembed diagnose`` from articles to report: every part is made, or the report says why it is missing."""

import html.parser
import json
import pathlib
import re

import numpy as np
import pytest
from drawn_parameters import write_model
from json_lines import write_rows
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.learning.model_files import write_model_files
from newsembed.models.encoders.news import EncoderConfig
from newsembed.serving.static import is_static
from newsembed.studies.diagnose.parts import PARTS as FUNCTIONS
from newsembed.tasks.vocabulary import Vocabulary
from small_encoders import static

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
    folder = str(tmp_path_factory.mktemp("model"))
    pieces = [*SPECIAL_TOKENS, "<", ">", *(word for group in WORDS.values() for word in group)]
    sizes = {"hidden_size": 16, "mlp_size": 32, "embedding_size": 8, "max_length": 24}
    config = EncoderConfig(len(pieces), num_layers=2, num_heads=2, num_topics=3, **sizes)
    write_model_files(folder, config, Vocabulary(pieces).file(), None)
    return folder


def articles():
    draw, rows = np.random.default_rng(0), []
    for number in range(18):
        event = list(WORDS)[number % 3]
        text = [" ".join(draw.choice(WORDS[event], size)) for size in (3, 12)]
        language = ("en", "de")[number // 9]
        topic = "news" if event != "cup" else "sport"
        title = f"{text[0]} < >"
        labels = {"event": event, "topic": topic, "language": language}
        rows.append({"id": f"a{number}", "title": title, "body": text[1], **labels})
    return rows


def diagnose(tmp_path, rows, *arguments):
    path = write_rows(tmp_path / "articles.jsonl", rows)
    return cli.main(["diagnose", "--articles", path, "--output", str(tmp_path / "out"), *arguments])


def written(tmp_path):
    """The blocks of each part, the page, and the Markdown."""
    out = tmp_path / "out"
    report = json.loads((out / "report.json").read_text())
    parts = {part["id"]: part["blocks"] for part in report["parts"]}
    return parts, (out / "report.html").read_text(), (out / "report.md").read_text()


def missing(blocks):
    """The reasons for what is missing in a part."""
    return [block["missing"] for block in blocks if isinstance(block, dict) and "missing" in block]


def rows(blocks):
    """The rows of all tables of a part, as text."""
    tables = [block["rows"] for block in blocks if isinstance(block, dict) and "rows" in block]
    return [[cell if isinstance(cell, str) else cell["text"] for cell in row] for table in tables for row in table]


class Page(html.parser.HTMLParser):
    """Collects what a page would fetch, run, or name."""

    def __init__(self, text):
        super().__init__()
        self.fetched, self.tags, self.ids, self.shown = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        places = {"src", "href", "xlink:href", "data", "srcset"}
        self.fetched += [value for name, value in attributes if name in places and not value.startswith("#")]

    def handle_data(self, data):
        self.shown.append(data)


def test_every_part_is_made(tmp_path, model, capsys):
    (tmp_path / "mine.py").write_text(TAGGER)
    tags, chosen = f"{tmp_path}/mine.py:tag", tmp_path / "ids.txt"
    chosen.write_text("a3\n\na7\n")
    encoders = ["--encoder", f"ours=random:{model}", "--encoder", "tfidf=tfidf"]
    more = ["--tags", tags, "--neighbors", "4", "--queries", "a1", f"@{chosen}"]
    assert diagnose(tmp_path, articles(), *encoders, *more) == 0
    said = capsys.readouterr()
    assert "report.html" in said.out
    assert said.err.startswith("ours: 18 articles embedded\ntfidf: 18 articles embedded\nneighbors: made\n")
    parts, page, text = written(tmp_path)
    assert list(parts) == PARTS == [part.__name__.removesuffix("_part") for part in FUNCTIONS]
    assert {name: missing(blocks) for name, blocks in parts.items() if missing(blocks)} == {
        "redundancy": ["its tokens cannot be seen"],  # of tfidf
        "repetition": [f"{tags} gives no lemmas"],
    }
    assert "| languages | en 9, de 9 |" in text
    assert [block["heading"]["note"][:2] for block in parts["neighbors"] if "heading" in block] == ["a1", "a3", "a7"]
    shared, *near = rows(parts["neighbors"])
    assert 0 <= float(shared[1]) <= 1
    assert [row[0] for row in near] == ["1", "2", "3", "4"] * 3
    assert all("[same event" in row[2] for row in near)  # of tfidf
    pairs = rows(parts["similarities"])[-4:]
    assert {row[0]: row[1] for row in pairs} == {
        "same event": str(3 * 15),
        "same event, two languages": str(3 * 9),
        "same topic, not the same event": "36",
        "random": "153",
    }
    assert float(pairs[0][-1]) > 0.8
    assert float(rows(parts["geometry"])[1][1]) < 2
    assert parts["attention"][0].startswith(f"Tagger: {tags}, 18 articles.")
    assert parts["attention"][2]["caption"].startswith("18 articles; 0 left out")
    tagged = rows(parts["attention"])
    assert {row[0] for row in tagged} == {"LONG", "SHORT", "[CLS], [SEP]"}
    assert sum(float(row[3]) for row in tagged) == pytest.approx(1, abs=2e-3)
    assert sum(int(row[1]) for row in rows(parts["redundancy"])) == 18
    parsed = Page(page)
    assert parsed.fetched == []
    assert "script" not in parsed.tags
    assert "url(http" not in page
    assert "@import" not in page
    assert set(PARTS) <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert parsed.tags.count("circle") == 2 * 18
    assert page.count('type="radio"') == 3
    assert "".join(parsed.shown).count("Neighbors side by side") == 2
    assert "## Neighbors side by side" in text
    assert "prefers-color-scheme: dark" in page
    assert re.findall(r"<svg (?![^>]*role=\"img\" aria-label)", page.replace('<svg class="dots" ', "<svg ")) == []


def test_what_cannot_be_made_says_why(tmp_path, capsys):
    given = [
        {"url": f"http://x.example/{number}", "title": f"嵐が海岸に {number}", "body": "" if number else "風と雨"}
        for number in range(4)
    ]
    assert diagnose(tmp_path, [*given, {"url": "u", "title": "", "body": " "}], "--encoder", "tfidf=tfidf") == 0
    parts, page, text = written(tmp_path)
    assert "| articles | 4 of 5, 1 without text: " in text
    assert missing(parts["attention"]) == missing(parts["redundancy"])
    assert "only model: and random: encoders" in missing(parts["attention"])[0]
    assert "a map needs at least 5" in missing(parts["map"])[0]
    assert missing(parts["similarities"]) == [
        "same event: no article has a value for event",
        "same topic, not the same event: no article has a value for topic",
    ]
    assert rows(parts["geometry"])[0][1] == "-"
    assert page.count("Missing: ") == text.count("Missing: ") == 7
    assert "map: 4 articles" in capsys.readouterr().err
    assert Page(page).fetched == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: {"event": "storm", "topic": "news"}, "same topic, not the same event: no two articles are"),
        (lambda row: {"event": row["id"]}, "same event: no two articles are"),
    ],
)
def test_why_there_are_no_pairs(tmp_path, change, reason):
    assert diagnose(tmp_path, [row | change(row) for row in articles()], "--encoder", "tfidf=tfidf") == 0
    (found,) = missing(written(tmp_path)[0]["similarities"])
    assert found.endswith(reason)


def test_repeated_words_by_length(tmp_path):
    pytest.importorskip("HanTa")
    bodies = {f"http://x/{size}": "The storm hit the house. " * size for size in (4, 8, 20)}
    texts = [{"url": url, "title": "", "body": body, "language": "en"} for url, body in bodies.items()]
    assert diagnose(tmp_path, texts, "--encoder", "tfidf=tfidf") == 0
    parts, page, text = written(tmp_path)
    assert [row[1:] for row in rows(parts["repetition"])] == [["2", "6.000"], ["1", "20.000"]]
    assert "| 51 to 100 | 1 | 20.000 |" in text
    assert "51 to 100" in page


def test_languages_without_a_tagger(tmp_path, model, monkeypatch):
    from newsembed.tasks import parts_of_speech as words

    english = words.Tagger("english only", ("en",), lambda text, language: [(word, "W") for word in text.split()])
    monkeypatch.setattr(words, "load_tagger", lambda spec: english)
    given, encoder = articles(), ("--encoder", f"ours=random:{model}")
    assert diagnose(tmp_path, given, *encoder) == 0
    assert written(tmp_path)[0]["attention"][0] == "Tagger: english only, 9 articles. Left out, by language: de (9)."
    for row in given:
        del row["language"]
    assert diagnose(tmp_path, given, *encoder) == 0
    (found,) = missing(written(tmp_path)[0]["attention"])
    assert "the articles' languages: none named (18). --language sets" in found
    assert diagnose(tmp_path, given, *encoder, "--language", "en-US") == 0
    assert written(tmp_path)[0]["attention"][0] == "Tagger: english only, 18 articles."


def test_words_that_are_not_the_encoder_s_are_left_out(tmp_path, model):
    (tmp_path / "mine.py").write_text("def tag(text, language):\n    return [('storm', 'W')]\n")
    assert diagnose(tmp_path, articles(), "--encoder", f"ours=random:{model}", "--tags", f"{tmp_path}/mine.py:tag") == 0
    assert "the words of none of 18 articles" in missing(written(tmp_path)[0]["attention"])[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--encoder", "a=tfidf", "--queries", "a99"], "no article has the id 'a99'"),
        (["--encoder", "a=BROKEN"], "encoder a: the encoder returned 54 values of NaN"),
        (["--encoder", "a=tfidf", "--max_articles", "1"], "--max_articles: keeps"),
        (["--encoder", "a=model:nowhere", "--tags", "hanto"], "got 'hanto'\n  remedy: give module:function"),
    ],
)
def test_bad_input(tmp_path, capsys, arguments, message):
    (tmp_path / "broken.py").write_text(BROKEN)
    arguments = [text.replace("BROKEN", f"{tmp_path}/broken.py:embed") for text in arguments]
    assert diagnose(tmp_path, articles(), *arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_that_numpy_computes_shows_its_pieces_too(model, tmp_path):
    pieces = pathlib.Path(model, "vocab.txt").read_text().split()
    folder = write_model(tmp_path / "static", static(len(pieces)), pieces)
    assert is_static(folder)
    assert diagnose(tmp_path, articles(), "--encoder", f"words=model:{folder}") == 0
    parts, _, _ = written(tmp_path)
    assert missing(parts["attention"]) == ["a model of no layers has no attention"]
    assert rows(parts["redundancy"])
