"""Articles that users bring: JSONL and Parquet read the same, what is missing or broken is named."""

import datetime
import gzip
import hashlib
import io
import json
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from json_lines import write_rows
from newsembed.errors import InputError
from newsembed.formats import articles as articles_module
from newsembed.formats.articles import ArticleText, article_files, article_of, read_articles, read_rows, write_articles

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ARTICLES = st.builds(
    ArticleText,
    doc_id=st.text("0123456789abcdef", min_size=16, max_size=16),
    url=TEXT,
    publisher=TEXT,
    title=TEXT,
    body=TEXT,
    language=TEXT,
    byline_date=st.none() | st.dates(datetime.date(1971, 1, 1), datetime.date(2026, 1, 1)),
)


def as_row(article):
    return {name: getattr(article, name) for name in ArticleText.__slots__}


@settings(max_examples=30, deadline=None)
@given(st.lists(ARTICLES, min_size=1, max_size=5))
def test_jsonl_and_parquet_come_back(tmp_path_factory, articles):
    folder, rows = tmp_path_factory.mktemp("articles"), [as_row(article) for article in articles]
    (folder / "a.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
    schema = pa.schema([(name, pa.date32() if name == "byline_date" else pa.string()) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "a.parquet")
    assert list(read_articles(str(folder / "a.jsonl"))) == articles
    assert list(read_articles(str(folder / "a.parquet"))) == articles


def test_a_folder_is_read_in_the_order_of_its_names_and_has_files_of_one_kind(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("b.jsonl", "inner/a.jsonl.gz", "c.jsonl.zst", "notes.txt", "b.jsonl.0123456789ab.tmp"):
        (tmp_path / name).touch()
    assert article_files(str(tmp_path)) == [
        str(tmp_path / name) for name in ("b.jsonl", "c.jsonl.zst", "inner/a.jsonl.gz")
    ]
    (tmp_path / "b.jsonl.0").mkdir()
    (tmp_path / "d.jsonl").mkdir()
    assert len(article_files(str(tmp_path))) == 3
    (tmp_path / "z.parquet").touch()
    with pytest.raises(InputError, match=r"the folder holds \.parquet and \.jsonl files"):
        article_files(str(tmp_path))


def test_a_folder_of_single_articles_and_what_to_do_with_other_files(tmp_path):
    (tmp_path / "news.zip").touch()
    with pytest.raises(InputError, match=r"no \.parquet, .*, there is \.zip\n.*unpack it"):
        article_files(str(tmp_path))
    with pytest.raises(InputError, match=r"the name ends in none of (.|\n)*unpack it"):
        article_files(str(tmp_path / "news.zip"))
    (tmp_path / "news.xlsx").touch()
    with pytest.raises(InputError, match=r"save it as CSV"):
        article_files(str(tmp_path / "news.xlsx"))
    names = ["a.csv.gz", "b.json", "c.ndjson"]  # news-please writes a file for each article
    for name in names:
        (tmp_path / name).touch()
    assert article_files(str(tmp_path)) == [str(tmp_path / name) for name in names]


def test_the_folder_of_a_job_stands_for_its_articles(tmp_path):
    for name in ("articles/part-0.parquet", "clusters/part-0.parquet", "dead_letters/rules/part-0.parquet"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert len(article_files(str(tmp_path))) == 3  # a folder of the user's own
    (tmp_path / "manifest.json").write_text("{}")
    assert article_files(str(tmp_path)) == [str(tmp_path / "articles/part-0.parquet")]


def test_rows_name_their_place(tmp_path):
    (tmp_path / "a.jsonl").write_text('\n{"title": "t"}\n')
    pq.write_table(pa.table({"title": ["t", "u"], "other": [1, 2]}), tmp_path / "a.parquet")
    found = list(read_rows([str(tmp_path / "a.jsonl"), str(tmp_path / "a.parquet")], ["title"], ["url"]))
    assert found == [
        (f"{tmp_path}/a.jsonl:2", {"title": "t"}),
        (f"{tmp_path}/a.parquet:row 1", {"title": "t"}),
        (f"{tmp_path}/a.parquet:row 2", {"title": "u"}),
    ]


def test_doc_id_is_the_start_of_the_canonical_urls_sha1(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"title": "t", "body": "b", "url": "https://x.example/"}\n{"title": "t", "body": null, "doc_id": "d"}\n'
    )
    first, second = read_articles(str(tmp_path / "a.jsonl"))
    assert first.doc_id == hashlib.sha1(b"http://x.example/").hexdigest()[:16]
    assert (second.doc_id, second.body) == ("d", "")


EAST, WEST = (datetime.timezone(datetime.timedelta(hours=hours)) for hours in (9, -5))
DAY = datetime.date(2024, 1, 2)


class NoTime(datetime.datetime):
    """As pandas.NaT: a datetime without a day."""

    def date(self):
        raise ValueError("NaTType does not support date")


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2024-01-02", DAY),
        ("2024-01-02T23:30:00", DAY),
        ("2024-01-02T23:30:00Z", DAY),
        ("2024-01-01T20:30:00-05:00", DAY),
        ("2024-01-03T08:59:00+09:00", DAY),
        ("2024-01-02, in the evening", DAY),
        ("0001-01-01T00:00:00+09:00", None),  # a placeholder
        (DAY, DAY),
        (datetime.datetime(2024, 1, 2, 23, 30), DAY),
        (datetime.datetime(2024, 1, 1, 20, 30, tzinfo=WEST), DAY),
        (datetime.datetime(2024, 1, 3, 8, 59, tzinfo=EAST), DAY),
        ("2024-02-30", None),
        ("yesterday", None),
        ("1/21", None),
        (3.5, None),
        (None, None),
        (NoTime(1, 1, 1), None),
    ],
)
def test_dates_and_times_are_utc_days(value, day):
    found = article_of({"title": "t", "body": "b", "byline_date": value}, "here").byline_date
    assert found == day
    assert type(found) is type(day)  # a datetime is a date, but cannot be compared with one


def test_the_time_of_publication_is_the_date_where_there_is_no_byline_date(tmp_path):
    rows = [
        {"published_at": "2024-01-02T23:30:00Z"},
        {"published_at": "2024-01-02", "byline_date": None},
        {"published_at": "2024-01-02", "byline_date": "soon"},
        {"published_at": "2024-05-05", "byline_date": "2024-01-02"},
    ]
    full = [{"title": "t", "body": "b", "byline_date": None, **row} for row in rows]
    write_rows(tmp_path / "a.jsonl", full)
    pq.write_table(pa.Table.from_pylist(full), tmp_path / "b.parquet")
    for name in ("a.jsonl", "b.parquet"):
        assert [one.byline_date for one in read_articles(str(tmp_path / name))] == [DAY] * 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"title": "t", "x": 1}', r"a\.jsonl:1: body: the field is missing, there is x, title\n"),
        ("a.jsonl", b'{"title": 3, "body": ""}', "title: got 3, expected a string"),
        ("a.parquet", b"junk", "not a Parquet file, or damaged"),
        ("a.txt", b"", "the name ends in none"),
    ],
)
def test_bad_articles(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_articles(str(tmp_path / name)))


def test_a_parquet_file_without_bodies_is_named(tmp_path):
    pq.write_table(pa.table({"title": ["t"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: body: the column is missing, there is title\n"):
        list(read_articles(str(tmp_path / "a.parquet")))


@pytest.fixture
def standard_input(monkeypatch):
    """Sets what is on standard input."""
    articles_module._spooled_input.cache_clear()
    given = io.BytesIO()
    monkeypatch.setattr(articles_module.sys, "stdin", types.SimpleNamespace(buffer=given))
    yield given.__init__
    articles_module._spooled_input.cache_clear()


def test_a_dash_is_jsonl_on_standard_input_and_may_be_read_twice(standard_input):
    standard_input(b'{"title": "Storm", "body": "Wind."}\n{"title": "Vote", "body": "Close."}\n')
    for _ in range(2):
        assert [one.title for one in read_articles("-")] == ["Storm", "Vote"]


@pytest.mark.parametrize(("line", "problem"), [(b'{"title": "t"}', "body: the field is missing"), (b"{", "not JSON")])
def test_errors_name_the_line_of_standard_input(standard_input, line, problem):
    standard_input(b'{"title": "Storm", "body": "Wind."}\n' + line)
    with pytest.raises(InputError, match=f"^standard input:2: {problem}"):
        list(read_articles("-"))


ROWS = [
    {"title": "Stürm", "body": "b", "byline_date": DAY, "note": "x"},
    {"title": "u", "body": "", "url": "https://x.example/"},
]
OPENED = {
    ".jsonl": lambda path: path.read_bytes(),
    ".jsonl.gz": lambda path: gzip.decompress(path.read_bytes()),
    ".jsonl.zst": lambda path: zstandard.decompress(path.read_bytes()),
}


@pytest.mark.parametrize("ending", OPENED)
def test_articles_are_written_as_json_lines(tmp_path, ending):
    path = tmp_path / "new" / f"a{ending}"
    assert write_articles(str(path), ROWS) == 2
    lines = OPENED[ending](path).decode("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [ROWS[0] | {"byline_date": "2024-01-02"}, ROWS[1]]
    assert "Stürm" in lines[0]
    if ending == ".jsonl.gz":
        assert path.read_bytes()[4:8] == bytes(4)  # no time of writing: equal articles are equal files
    assert [one.title for one in read_articles(str(path))] == ["Stürm", "u"]


def test_articles_are_written_as_parquet_with_all_their_columns(tmp_path):
    path = tmp_path / "a.parquet"
    assert write_articles(str(path), iter(ROWS)) == 2
    table = pq.read_table(path)
    assert table.column_names == ["title", "body", "byline_date", "note", "url"]
    assert table.column("note").to_pylist() == ["x", None]
    assert pq.read_metadata(path).row_group(0).column(0).compression == "ZSTD"
    assert [(one.title, one.byline_date) for one in read_articles(str(path))] == [("Stürm", DAY), ("u", None)]
    raw = path.read_bytes()
    place = raw.index("Stürm".encode())
    path.write_bytes(raw[:place] + b"s" + raw[place + 1 :])
    with pytest.raises(InputError, match="not a Parquet file, or damaged"):
        list(read_articles(str(path)))


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.parquet"
    write_articles(str(path), ROWS)
    before = path.read_bytes()
    with pytest.raises(InputError, match="article 2: body: the field is missing"):
        write_articles(str(path), [ROWS[0], {"title": "t"}])
    with pytest.raises(pa.ArrowException):  # a column has one type
        write_articles(str(path), [ROWS[0], ROWS[1] | {"note": 3}])
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]
    assert path.read_bytes() == before
    with pytest.raises(InputError, match=r"a\.txt: the name ends in none of"):
        write_articles(str(tmp_path / "a.txt"), ROWS)
