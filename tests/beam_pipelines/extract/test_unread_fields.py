"""Rows of article files: the fields that nothing reads are counted and shown."""

import json

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.job import ExtractOptions
from newsembed.beam_pipelines.extract.rows import row_to_article, row_to_post, unread_fields
from newsembed.beam_pipelines.progress import print_outcome
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article, Hub
from newsembed.tests.example_inputs import manifest_of


def extracted(tmp_path, *rows, fields=()):
    """The counts of extract, its articles by URL, and its hubs by title."""
    base = {"title": "A title", "body": "Some text."}
    lines = [json.dumps(base | {"url": f"https://n.example/{place}"} | row) for place, row in enumerate(rows)]
    path, out = tmp_path / "a.jsonl", str(tmp_path / "out")
    path.write_text("\n".join(lines))
    manifest = manifest_of(JOB, {"articles": [str(path)]}, out, ExtractOptions(fields=fields))
    articles = {one.url[-1:]: one for one in parquet.read_stream(f"{out}/articles", Article)}
    return manifest["counts"], articles, {hub.title: hub for hub in parquet.read_stream(f"{out}/hubs", Hub)}


def test_dates_that_nothing_reads_and_bodies_in_html_are_counted_and_shown(tmp_path, capsys):
    html = '<!-- a --><p>Rain &amp; <a href="/">wind</a>.</p>\n<script>x</script><ul><li>One<br><br/>Two</ul>\n\nThree'
    tags = {"body": html, "byline_date": "2024-01-02"}
    unread = ({"byline_date": "03/05/2018"}, {"published_at": "soon"}, {"byline_date": "", "published_at": None})
    long = {"byline_date": "2024-01-02", "text": "rain " * 10_001, "body": None, "\x1b[31mred": 1}
    whole = {"byline_date": "2024-01-02", "body": "rain " * 10_000}
    counts, articles, _ = extracted(tmp_path, *unread, tags, long, whole)
    assert [counts["tallies"][name] for name in ("unread_dates", "markup_in_bodies", "cut_bodies")] == [2, 1, 1]
    assert articles["3"].body == "Rain & wind.\nOne\nTwo\nThree"
    print_outcome("extract", jobs.Outcome({"counts": counts}, skipped=False, seconds=1.0))
    shown = capsys.readouterr().out
    assert "note: extract cannot read the dates of 2 articles, or they are in the future; write" in shown
    assert "note: extract does not read these fields: �[31mred 1\n" in shown
    assert "note: extract has cut the bodies of 1 article to 50,000 characters\n" in shown
    assert "note: extract has taken the text out of HTML in the bodies of 1 article\n" in shown


def test_a_chosen_field_that_rows_lack_is_counted_and_shown(tmp_path, capsys):
    fields = ("title=head", "authors=by.name")
    counts, articles, _ = extracted(tmp_path, {"head": "Rain", "by": {"name": "Ann Lee"}}, {}, fields=fields)
    assert [articles[place].title for place in "01"] == ["Rain", "A title"]
    print_outcome("extract", jobs.Outcome({"counts": counts}, skipped=False, seconds=1.0))
    assert "has found rows without these fields of --fields: by.name 1, head 1\n" in capsys.readouterr().out


def test_texts_of_another_type_fail_and_one_text_is_one_feed(tmp_path):
    attributes = " ".join(f"a{number}=1" for number in range(2_000))
    wrong = ({"title": 4}, {"body": 3}, {"title": [], "body": "x"}, {"body": f"<p {attributes}>x</p>"})
    right = {"feeds": "top", "keywords": "flood, rain"}
    counts, articles, hubs = extracted(tmp_path, *wrong, right, {"feeds": 5})
    assert (counts["in"], counts["out"], counts["failed"]) == (6, 2, {"missing_field": 4})
    assert articles["4"].keywords == ("flood", "rain")
    assert list(hubs) == ["top"]


def test_a_body_of_very_many_tags_is_cut():
    row = {"url": "https://n.example/1", "title": "A title", "body": "<b>x</b><br>" * 200_000}
    assert 0 < len(row_to_article(row).body) <= 50_000


def test_notices_of_the_site_are_no_lines_of_a_body_unless_it_has_no_others():
    notice = "Get all the latest news delivered daily to your inbox. Sign up here."
    row = {"url": "https://n.example/1", "title": "A title"}
    picture = "Image copyrightGetty ImagesImage caption"
    assert row_to_article(row | {"body": f"{notice}\n{picture}\nRain.\n\nWind."}).body == "Rain.\n\nWind."
    assert row_to_article(row | {"body": notice}).body == notice
    for line in ("SCROLL TO CONTINUE WITH CONTENT", "Baca juga: Hujan", "관련 기사", "김 기자 a.kim@n.example.kr"):
        assert row_to_article(row | {"body": f"Rain.\n{line}\nWind."}).body == "Rain.\nWind."


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"title": ["a", "b"]}, "title: got ['a', 'b'], expected a string"),
        ({"title": 3}, "title: got 3, expected a string"),
        ({"title": ""}, "title: empty or absent"),
        ({"body": None}, "body: empty or absent"),
        ({"title": None, "Kopf": "A", "doc_id": "1"}, "title: empty or absent; the row has Kopf"),
    ],
)
def test_the_field_that_is_missing_or_of_another_type_is_named(row, problem):
    full = {"url": "https://n.example/1", "title": "A title", "body": "Some text."}
    with pytest.raises(InputError) as raised:
        row_to_article(full | row)
    assert str(raised.value) == problem


def test_an_aggregator_is_not_the_publisher():
    row = {"title": "A title", "body": "Some text.", "publisher": "The Echo"}
    for url, publisher in (
        ("https://news.google.com/rss/articles/CBMi", "The Echo"),
        ("https://uk.finance.yahoo.com/news/a-1.html", "The Echo"),
        ("https://www.echo.example/a", "echo.example"),
        ("", "The Echo"),
    ):
        assert row_to_article(row | {"url": url}).publisher == publisher
    assert row_to_article(row | {"url": "https://www.msn.com/a", "publisher": None}).publisher == "msn.com"


def test_an_article_without_a_url_is_known_by_its_title_and_body(tmp_path, capsys):
    given = {"url": "", "publisher": "The Echo"}
    other = given | {"url": "/news/1", "body": "Another text."}
    counts, articles, _ = extracted(tmp_path, given, other, {})
    assert (articles[""].publisher, articles[""].url) == ("The Echo", "")
    assert (articles[""].key, articles["2"].key) == (articles[""].doc_id, "https://n.example/2")
    ids = {row_to_article({"title": "A title", "body": "Some text."} | row).doc_id for row in (given, given, other, {})}
    assert len(ids) == 2
    print_outcome("extract", jobs.Outcome({"counts": counts}, skipped=False, seconds=1.0))
    shown = capsys.readouterr().out
    assert "note: extract has found no absolute http(s) URL of 2 articles, known by title and text now" in shown
    with pytest.raises(InputError, match="url: got None, expected an absolute"):
        row_to_post({"text": "Rain"})


def test_of_fields_that_nothing_reads_the_first_twenty_are_counted():
    known = set()
    assert unread_fields({f"f{number}": 1 for number in range(18)}, known) == [f"f{number}" for number in range(18)]
    assert unread_fields({"f0": 1} | {f"g{number}": 1 for number in range(5)}, known) == ["f0", "g0", "g1"]
    assert unread_fields({"g4": 1, "f3": 1, "url": 1, "date_source": "given"}, known) == ["f3"]
    assert len(known) == 20


def test_dates_and_authors_of_rows_in_other_forms(tmp_path):
    rows = [
        {"byline_date": 1715587200, "authors": "['Ann Lee', 'Bo Chen']"},
        {"byline_date": 1715587200000, "authors": [{"name": "Lee, Ann"}, "Bo Chen"]},
        {"published_at": "May 13, 2024, 8:00 PM", "authors": "Ann Lee; Bo Chen"},
        {"byline_date": "13.05.2024", "authors": "[1, 2]"},
        {"byline_date": "05/12/2024", "language": "en", "authors": "[]"},
    ]
    counts, articles, _ = extracted(tmp_path, *rows)
    assert [str(articles[str(place)].byline_date) for place in range(5)] == ["2024-05-13"] * 4 + ["2024-05-12"]
    assert [articles[str(place)].authors for place in range(4)] == [("Ann Lee", "Bo Chen")] * 3 + [()]
    assert counts["tallies"]["guessed_dates"] == counts["tallies"]["no_persons"] == 1


@pytest.mark.parametrize(
    ("days", "read"),
    [
        (["03/04/2024", "13/04/2024"], ["2024-04-03", "2024-04-13"]),
        (["03/04/2024", "04/13/2024"], ["2024-03-04", "2024-04-13"]),
        (["03/04/2024", "13/04/2024", "04/13/2024"], ["None", "2024-04-13", "2024-04-13"]),
        (["03/04/2024", "13.04.2024"], ["None", "2024-04-13"]),
    ],
)
def test_the_days_of_a_file_show_the_order_of_day_and_month(tmp_path, days, read):
    counts, articles, _ = extracted(tmp_path, *({"byline_date": day} for day in days))
    assert [str(articles[str(place)].byline_date) for place in range(len(days))] == read
    assert counts["tallies"].get("unread_dates", 0) == read.count("None")
    assert "guessed_dates" not in counts["tallies"]


def test_the_order_of_a_file_is_that_of_rows_in_any_language(tmp_path):
    days = ({"byline_date": "3. März 2024", "language": "de"}, {"byline_date": "03/04/2024", "language": "de"})
    _, articles, _ = extracted(tmp_path, *days, {"byline_date": "04/13/2024"})
    assert [str(articles[place].byline_date) for place in "01"] == ["2024-03-03", "2024-03-04"]


def test_the_day_of_a_row_without_a_date_is_that_in_its_url(tmp_path, capsys):
    url = "https://n.example/2024/05/13/"
    counts, articles, _ = extracted(tmp_path, {"url": f"{url}0"}, {"url": f"{url}1", "byline_date": "2024-05-14"}, {})
    assert [str(articles[place].byline_date) for place in "012"] == ["2024-05-13", "2024-05-14", "None"]
    assert [articles[place].date_source for place in "012"] == ["url", "given", ""]
    assert counts["tallies"]["without_date"] == 1
    print_outcome("extract", jobs.Outcome({"counts": counts}, skipped=False, seconds=1.0))
    assert "note: extract has found no date of 1 article, which events need; --fields" in capsys.readouterr().out


def test_a_title_that_is_the_whole_body_is_its_first_line():
    text = "\nFlood in the valley \nThe river rose.\nIt fell."
    assert row_to_article({"title": text, "body": text}).title == "Flood in the valley"
    assert row_to_article({"title": "Flood\nin the valley", "body": text}).title == "Flood in the valley"


def test_the_title_is_no_line_of_a_body_unless_it_has_no_others():
    row = {"title": "Flood &amp; storm"}
    assert row_to_article(row | {"body": "\n Flood &amp; storm\nThe river rose."}).body == "The river rose."
    assert row_to_article(row | {"body": "Flood and storm\nFlood & storm"}).body == "Flood and storm\nFlood & storm"
    assert row_to_article(row | {"body": "Flood & storm\n"}).body == "Flood & storm"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("Siegfried &amp; Roy&#39;s show, &#x201c;magic&rdquo;", "Siegfried & Roy's show, “magic”"),
        ("AT&T and B&copy=1 &nosuch; &amp", "AT&T and B&copy=1 &nosuch; &amp"),
        ("&lt;p&gt;One &amp;amp; two.&lt;/p&gt;&lt;p&gt;Three.&lt;/p&gt;", "One & two.\nThree."),
        ("<p>Q&amp;A &amp;lt;b&amp;gt;</p><p>Three.</p>", "Q&A &lt;b&gt;\nThree."),
        ("help drive reopening busines… [+5568 chars]", "help drive reopening busines…"),
        ("help drive reopening fu... [5577 chars]", "help drive reopening fu..."),
        ("Rain. The post A &#8211; B: Rain appeared first on The News.\n", "Rain."),
        ("The post office appeared first on the map of 1850, and " + "the map " * 12, None),
        ("The mark [+12 chars] is inside.", "The mark [+12 chars] is inside."),
    ],
)
def test_texts_of_rows_as_other_tools_write_them(given, read):
    article = row_to_article({"url": "https://n.example/1", "title": "A &amp; B", "body": given})
    assert (article.title, article.body) == ("A & B", given.strip() if read is None else read)
