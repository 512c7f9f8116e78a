"""Rows of other tools under our names."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from newsembed.errors import InputError
from newsembed.formats.articles import read_articles
from newsembed.formats.fields import chosen, columns_of, read_as, standard

URL, IMAGE = "https://a.example/1", "https://a.example/1.jpg"
WHOLE = {"url": URL, "title": "Storm", "body": "It rained.", "byline_date": "2024-05-13"}
ROWS = {
    "news-please": {
        "authors": ["Ann Lee"],
        "date_download": "2024-06-01 00:00:00",
        "date_publish": "2024-05-13",
        "image_url": IMAGE,
        "language": "en",
        "maintext": "It rained.",
        "source_domain": "a.example",
        "title": "Storm",
        "title_page": "Storm - A News",
        "url": URL,
    },
    "newspaper4k": {
        "url": URL,
        "title": "Storm",
        "top_image": IMAGE,
        "keywords": [],
        "authors": ["Ann Lee"],
        "publish_date": "2024-05-13",
        "summary": "Rain.",
        "meta_site_name": "A News",
        "canonical_link": URL,
        "text": "It rained.",
    },
    "trafilatura": {
        "title": "Storm",
        "author": "Ann Lee",
        "hostname": "a.example",
        "date": "2024-05-13",
        "raw_text": "Menu It rained.",
        "text": "It rained.",
        "language": "en",
        "image": IMAGE,
        "source": URL,
        "source-hostname": "A News",
    },
    "fundus": {
        "title": "Storm",
        "authors": ["Ann Lee"],
        "publishing_date": "2024-05-13",
        "body": {"summary": [], "sections": [{"headline": [], "paragraphs": ["It rained."]}]},
        "html": {"requested_url": "https://a.example/short", "responded_url": URL},
        "lang": "en",
    },
    "NewsAPI": {
        "source": {"id": None, "name": "A News"},
        "author": "Ann Lee",
        "title": "Storm",
        "description": "Rain.",
        "url": URL,
        "urlToImage": IMAGE,
        "content": "It rained.",
        "date": "2024-05-13",
    },
    "the Guardian": {
        "webUrl": URL,
        "webTitle": "Storm",
        "webPublicationDate": "2024-05-13",
        "fields": {"headline": "Storm", "bodyText": "It rained.", "byline": "Ann Lee"},
    },
    "the New York Times": {
        "web_url": URL,
        "headline": {"main": "Storm", "kicker": None},
        "byline": {"original": "By Ann Lee"},
        "pub_date": "2024-05-13",
        "lead_paragraph": "It rained.",
    },
    "a table": {"Link": URL, "Headline": "Storm", "Full Text": "It rained.", "Date": "2024-05-13", "Author": "Ann Lee"},
}


@pytest.mark.parametrize("tool", ROWS)
def test_the_rows_of_public_tools(tool):
    found = standard(ROWS[tool])
    assert {name: found[name] for name in WHOLE} == WHOLE
    assert found["authors"] in (["Ann Lee"], "Ann Lee", "By Ann Lee")


@pytest.mark.parametrize(
    ("field", "value", "row"),
    [
        ("body", "It rained.", {"summary": "Rain.", "content": [{"type": "text/html", "value": "It rained."}]}),
        ("body", "4 May\n\nRain.", {"content": [{"tag": "time", "text": "4 May"}, {"tag": "p", "text": "Rain."}]}),
        ("body", "It rained.", {"excerpt": "Rain.", "html": "It rained."}),
        ("body", "It rained.", {"html": " <!DOCTYPE html>Menu. It rained.", "description": "It rained."}),
        ("body", "It rained.", {"summary": "Rain.", "paragraphs": ["It rained."]}),
        ("title", "Storm", {"name": "Storm", "_type": "NewsArticle"}),
        (
            "body",
            "Two buses have met. " * 9,
            {"text": "Two buses met https://a.example/1", "content": "Two buses have met. " * 9},
        ),
        ("authors", "Ann Lee", {"authors": [], "author": "Ann Lee"}),
        ("publisher", "A News", {"publisher": {"href": URL, "title": "A News"}}),
        ("publisher", "A News", {"provider": [{"_type": "Organization", "name": "A News"}]}),
        ("byline_date", "2024-05-13", {"published_time": "2024-05-13"}),
        ("language", "en", {"lang": "eng"}),
        ("language", "fil", {"lang": "fil"}),
        ("keywords", ["Rain"], {"tags": [{"name": "subject", "value": "Rain"}]}),
        ("keywords", ["Rain", "Sea"], {"tags": [{"term": "Rain", "label": None}, {"webTitle": "Sea"}, 12]}),
    ],
)
def test_the_value_of_a_field_in_other_forms(field, value, row):
    assert standard(row)[field] == value


def test_our_names_win_unless_they_are_empty_and_other_fields_stay():
    row = {"title": "", "headline": "Storm", "body": "ours", "text": "theirs", "rank": 3}
    assert standard(row) == {"title": "Storm", "body": "ours", "rank": 3}
    assert list(read_as(row)) == [("title", "headline")]
    assert standard({"url": "", "title": None}) == {"url": "", "title": None}


def test_a_source_is_a_url_or_a_publisher_and_languages_may_have_names():
    assert standard({"source": URL}) == {"url": URL}
    assert standard({"author_name": "Ann Lee"}) == {"authors": "Ann Lee"}
    assert standard({"source": "A News", "language": "German"}) == {"publisher": "A News", "language": "de"}
    assert [standard({"lang": tag})["language"] for tag in ("eng", "DEU", "pt-BR", "fil")] == [
        "en",
        "de",
        "pt-BR",
        "fil",
    ]


@pytest.mark.parametrize(
    ("body", "description", "is_fuller"),
    [
        ("Windows 10 . \r\n14 Microsoft , . — « »", "Плановое обновление Windows 10 принесло проблемы", True),
        ("NASA/Goddard Space Flight Center Conceptual Image Lab / 2020", "Возраст источника", True),
        ("Subscribe", "The ferry has left the harbour again", True),
        ("Rain has filled the harbour", "Rain fills the harbour and the river", False),
        ("Rain. " * 100, "Rain, a long day", False),
    ],
)
def test_a_summary_with_twice_the_letters_is_the_body(body, description, is_fuller):
    row = {"title": "A", "content": body, "description": description}
    assert standard(row)["body"] == (description if is_fuller else body)
    assert dict(read_as(row))["body"] == ("description" if is_fuller else "content")
    assert standard(row, (("body", "content"),))["body"] == body


@pytest.mark.parametrize(
    "names",
    [
        "Titel Inhalt Datum Quelle Autor",
        "TÍTULO Contenido fecha_publicación fuente autor",
        "judul isi_berita tanggal sumber penulis",
        "Tiêu_đề Nội_dung Ngày_đăng Nguồn Tác_giả",
        "Tie\u0302u_\u0111e\u0302\u0300 No\u0323\u0302i_dung Nga\u0300y Nguo\u0302\u0300n Ta\u0301c_gia\u0309",
        "заголовок текст дата источник автор",
        "العنوان النص التاريخ المصدر الكاتب",
        "标题 正文 日期 来源 作者",
        "제목 본문 날짜 언론사 기자",
        "başlık içerik tarih kaynak yazar",
        "tieu_de noi_dung ngay_dang nguon tac_gia",
        "tytul tresc datum zrodlo autor",
        "titulo resumo data veiculo autor",
        "otsikko teksti päivämäärä lähde author",
        "τίτλος κείμενο ημερομηνία πηγή author",
        "כותרת תוכן תאריך מקור author",
        "หัวข้อข่าว เนื้อหาข่าว วันที่ แหล่งที่มา author",
        "سرخی متن تاریخ منبع نویسنده",
        "headline short_description date publication reporter",
        "headline_text snippet publish_time source_title Journalist",
    ],
)
def test_columns_in_other_languages_and_of_other_tables(names):
    ours = ("title", "body", "byline_date", "publisher", "authors")
    assert standard(dict(zip(names.split(), ours, strict=True))) == {name: name for name in ours}


def test_the_user_chooses_a_field_also_inside_another():
    row = {"title": "Storm", "lead": "Rain", "meta": {"head": "Flood"}}
    assert standard(row, chosen(["title=lead"])) == {"title": "Rain"} | {"meta": {"head": "Flood"}}
    assert standard(row, chosen(["title=meta.head"]))["title"] == "Flood"
    for wrong in ("heading=x", "title", "title="):
        with pytest.raises(InputError, match="write OURS=THEIRS"):
            chosen([wrong])


def test_tables_in_every_format(tmp_path):
    row = ROWS["a table"]
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "a.json").write_text(json.dumps({"status": "ok", "totalResults": 1, "articles": [row]}))
    (tmp_path / "a.csv").write_text(";".join(row) + "\n" + ";".join(row.values()) + "\n")
    (tmp_path / "a.tsv").write_text("\ufeff" + "\t".join(row) + "\r\n" + "\t".join(row.values()) + "\r\n")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    found = [list(read_articles(str(path))) for path in sorted(tmp_path.iterdir())]
    assert found == [found[0]] * 5
    (article,) = found[0]
    assert (article.url, article.title, article.body, str(article.byline_date)) == tuple(WHOLE.values())


def test_columns_that_may_hold_a_field():
    assert columns_of("body", ["text", "html", "rank"]) == ["text", "html"]
    assert columns_of("rank", ["text", "rank"]) == ["rank"]
    assert columns_of("rank", ["text"]) == []
