"""Texts of strangers are shown as text: in pages, in a model card, in a terminal and in a table."""

import dataclasses
import datetime
import html.parser
import re
from pathlib import Path

import newsembed
import pytest
from newsembed.formats import parquet
from newsembed.formats.huggingface import Prompts
from newsembed.formats.records import Article, DeadLetter, Triplet
from newsembed.serving import huggingface
from newsembed.serving.encoder import load_model
from newsembed.studies.report import write_report
from newsembed.studies.shared.pages import render
from targets import written_model

ROOT = Path(newsembed.__file__).parent
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>`\n\n# heading'


def test_no_page_of_the_product_makes_html_of_text():
    pages = [
        path
        for kind in ("html", "js")
        for path in ROOT.rglob(f"*.{kind}")
        if path.relative_to(ROOT).parts[0] not in ("tests", "build", ".venv")
    ]
    assert len(pages) >= 4
    makes_html = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\|\s*safe")
    found = [found[0] for path in pages for found in makes_html.finditer(path.read_text(encoding="utf-8"))]
    assert found == ["| safe"]  # the drawing of a chart, whose texts Matplotlib escapes


def test_templates_escape_what_they_are_given():
    shown = render("label/page.html", title=EVIL, nonce="n")
    assert "<script>alert" not in shown
    assert "onerror=alert(1)>" not in shown
    assert "&lt;script&gt;alert" in shown


class Elements(html.parser.HTMLParser):
    """The elements of a page with their attributes, and its texts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    def dangerous(self):
        """What could run or fetch something."""
        runs = {"script", "iframe", "object", "embed", "base", "link", "img", "form", "meta"}
        attributes = ("src", "href", "action", "formaction", "srcdoc", "style", "xlink:href")
        for tag, given in self.found:
            values = {name: value or "" for name, value in given.items() if name in attributes or name.startswith("on")}
            outside = {name: value for name, value in values.items() if not value.startswith("#")}
            if (tag in runs and not (tag == "meta" and given.keys() <= {"charset", "name", "content"})) or any(
                name.startswith("on") or ":" in value for name, value in outside.items() if name != "style"
            ):
                yield tag, given


HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</title></style></textarea><svg onload=alert(3)>",
    '"><img src=x onerror=alert(4)>',
    "' onmouseover='alert(5)",
    "javascript:alert(6)",
    "<!--<script>-->",
    "{{ 7 * 7 }}{% include 'shared/base.html' %}",
    "[click](javascript:alert(8)) ![](http://evil.example/pixel)",
    "&lt;script&gt;alert(9)&lt;/script&gt;",
    "\u202egnp.exe \u2067 rtl \u200f",
    "\x1b[31mred\x1b]0;title\x07",
    "\x00\ufffe\ud7ff",
    "]]><script>alert(10)</script>",
    "$\\nosuch{$",
]


def hostile_articles():
    """An article for each text, which is in all of its fields."""
    return [
        Article(
            f"{number:016x}", f"http://p.example/{number}?{text}", text, text, f"{text} {text}.", (text,),
            datetime.date(2021 + number % 3, 1, 1 + number), language=text[:20], keywords=(text,), image_url=text,
        )
        for number, text in enumerate(HOSTILE)
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Glyph")  # the font of plots lacks control characters
def test_the_report_page_of_a_build_shows_hostile_articles_as_text(tmp_path, monkeypatch):
    part = "part-00000-of-00001.parquet"
    articles = hostile_articles()
    parquet.write_shard(str(tmp_path / "clean/articles" / part), articles, Article)
    ids = [one.doc_id for one in articles]
    near, far = (1.0, 1.0, 1.0), (0.1, 0.1, 0.1)
    triplets = [Triplet(ids[n], ids[n - 1], ids[n - 2], "en", near, far, 0, 400, 0.1) for n in range(len(ids))]
    parquet.write_shard(str(tmp_path / "triplets/triplets" / part), triplets, Triplet)
    letters = [DeadLetter(text, "rejected", text, text, text) for text in HOSTILE]
    parquet.write_shard(str(tmp_path / "extract/dead_letters/pages" / part), letters, DeadLetter)
    monkeypatch.setattr("sys.argv", ["newsembed", "build", *HOSTILE])
    write_report(str(tmp_path), [], {"scores": [{"encoder": text, text: text} for text in HOSTILE]})
    page = Elements((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert list(page.dangerous()) == []
    shown = "".join(page.texts)
    for text in HOSTILE:
        assert text.replace("\x00", "\ufffd") in shown.replace("\x00", "\ufffd"), text


def test_the_model_card_of_an_export_with_hostile_prompts_is_text(tmp_path):
    written_model(tmp_path / "model")
    model = load_model(str(tmp_path / "model"))
    for text in (*HOSTILE, EVIL):
        made = dataclasses.replace(model, prompts=Prompts({"document": text, "query": text}))
        card = huggingface._card(made, text, needs_code=True)
        title = next(line for line in card.splitlines() if line.startswith("# "))
        assert not set("<>`\"'()") & set(title)
        prompt = next(line for line in card.splitlines() if "It wants" in line)
        assert prompt.count("`") == 4  # two spans of code, in which nothing is markup
        assert not set(card) & set("\x00\x1b\x07\u202e")
        outside = re.sub(r"`[^`\n]+`", "", card.replace("```python", "").replace("```", ""))
        for dangerous in ("alert", "evil.example"):  # names keep their letters, but no markup
            for line in outside.splitlines():
                assert dangerous not in line or not re.search(r"[<>()\[\]]", line) or "SentenceTransformer(" in line
        call = next(line for line in card.splitlines() if line.startswith("model = "))
        assert re.fullmatch(r'model = SentenceTransformer\("[\w .-]*", trust_remote_code=True\)', call)
        assert card.startswith("---\nlibrary_name: ")
        assert card.count("\n---\n") == 1


def test_each_promise_names_a_test_that_is_there():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    table = page.partition("## What newsembed promises")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    tests = [row[2].strip().strip("`") for row in rows]
    assert [name for name in tests if not (ROOT / "tests" / name).is_file()] == []
