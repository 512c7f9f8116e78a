"""What all pages share: escaping, numbers to the right, one self-contained file."""

from newsembed.studies.shared.pages import escaped, in_language, page, table


def test_text_is_escaped_and_floats_are_short():
    assert escaped("<b>&") == "&lt;b&gt;&amp;"
    assert escaped(0.123456) == "0.1235"
    assert escaped(1234567.0) == "1.235e+06"
    assert escaped(3) == "3"


def test_a_page_has_its_title_once_as_heading_and_links_to_its_parts():
    made = page("A & B", "p{margin:0}", [("one", "First <part>")], ["<p id=one>here</p>"])
    assert made.startswith("<!doctype html><html lang=en><meta charset=utf-8>")
    assert "<title>A &amp; B</title>" in made
    assert "<h1>A &amp; B</h1>" in made
    assert "p{margin:0}</style>" in made
    assert '<a href="#one">First &lt;part&gt;</a>' in made
    assert made.endswith("<p id=one>here</p>\n</html>")
    assert "<script" not in made


def test_a_title_names_its_language_if_it_is_known():
    assert in_language("Über <uns>", "de") == '<span lang="de">Über &lt;uns&gt;</span>'
    assert in_language("a", 'x"y') == '<span lang="x&quot;y">a</span>'
    assert in_language("<a>", "") == "&lt;a&gt;"


def test_columns_of_numbers_are_found():
    made = table(["name", "share", "mixed", "empty"], [["a", "12%", "1", ""], ["b", "-1,234.5e-3", "x", ""]])
    assert "<th scope=col>name</th><th scope=col class=n>share</th><th scope=col>mixed</th><th scope=col>empty" in made
    assert "<tr><td>a</td><td class=n>12%</td><td>1</td><td></td></tr>" in made


def test_given_columns_of_numbers_are_obeyed():
    made = table(["a", "b"], [["1", "x"]], numbers={1}, caption="c < d")
    assert "<caption>c &lt; d</caption><tr><th scope=col>a</th><th scope=col class=n>b</th></tr>" in made
    assert "<tr><td>1</td><td class=n>x</td></tr>" in made


def test_a_table_without_headings_has_no_row_for_them():
    assert table(["", ""], [["a", "b"]]) == "<div class=wide><table><tr><td>a</td><td>b</td></tr></table></div>"
    assert table(["a"], []) == "<div class=wide><table><tr><th scope=col>a</th></tr></table></div>"
