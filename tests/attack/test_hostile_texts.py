"""Texts of strangers are shown as text: in pages, in a model card, in a terminal and in a table."""

import dataclasses
import re
from pathlib import Path

import newsembed
from newsembed.formats.huggingface import Prompts
from newsembed.serving import huggingface
from newsembed.serving.encoder import load_model
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


def test_a_model_card_has_prompts_and_names_as_text(tmp_path):
    written_model(tmp_path / "model")
    model = load_model(str(tmp_path / "model"))
    model = dataclasses.replace(model, prompts=Prompts({"document": EVIL, "query": EVIL}))
    card = huggingface._card(model, EVIL, needs_code=False)
    title = next(line for line in card.splitlines() if line.startswith("# "))
    assert not set("<>`\"'()") & set(title)
    prompt = next(line for line in card.splitlines() if "It wants" in line)
    assert prompt.count("`") == 4  # two spans of code, in which nothing is markup
    assert "# heading" in prompt  # no line of its own


def test_each_promise_names_a_test_that_is_there():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    table = page.partition("## What newsembed promises")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    tests = [row[2].strip().strip("`") for row in rows]
    assert [name for name in tests if not (ROOT / "tests" / name).is_file()] == []
