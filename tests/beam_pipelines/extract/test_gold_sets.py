"""Gold pages: public sets are converted to one folder format, which is read back as it was."""

import gzip
import json

import pytest
from newsembed.benchmarks import gold_pages, gold_sets
from newsembed.benchmarks.gold_pages import GoldPage, Match


def test_a_folder_is_read_back_as_it_was_written(tmp_path):
    pages = [
        GoldPage("one", "http://news.a.co.uk/1", b"<p>One \xff</p>", "Ein Satz.", ("Eine Zeile",)),
        GoldPage("two", "", b"<p>Two</p>", "Two"),
        GoldPage("empty", "http://b.example/2", b"<p></p>", " \n"),
    ]
    assert gold_sets.write_folder(iter(pages), tmp_path / "gold") == 2
    one, two = gold_pages.read_folder(tmp_path / "gold")
    assert (one.name, one.url, one.html, one.body, one.optional) == (
        "one",
        pages[0].url,
        *pages[0].html.splitlines(),
        "Ein Satz.",
        ("Eine Zeile",),
    )
    assert (one.publisher, two.publisher, two.url) == ("a.co.uk", "two", "http://two.example/story")
    with pytest.raises(FileExistsError):
        gold_sets.write_folder(iter(pages), tmp_path / "gold")


def test_wcxb_has_splits_and_kinds(tmp_path):
    for split, name, kind in (("dev", "1", "article"), ("dev", "2", "forum"), ("test", "3", "article")):
        (tmp_path / split / "ground-truth").mkdir(parents=True, exist_ok=True)
        (tmp_path / split / "html").mkdir(exist_ok=True)
        truth = {"url": f"http://a.example/{name}", "_internal": {"page_type": {"primary": kind}}}
        truth["ground_truth"] = {"main_content": f"Text {name}"}
        (tmp_path / split / "ground-truth" / f"{name}.json").write_text(json.dumps(truth))
        (tmp_path / split / "html" / f"{name}.html.gz").write_bytes(gzip.compress(name.encode()))
    assert [(page.name, page.body, page.html) for page in gold_sets.wcxb(tmp_path)] == [("1", "Text 1", b"1")]
    assert [page.name for page in gold_sets.wcxb(tmp_path, "dev", "forum")] == ["2"]
    assert [page.name for page in gold_sets.wcxb(tmp_path, "test")] == ["3"]


def test_versions_of_a_fundus_parser_follow_the_days_of_the_pages(tmp_path):
    folder = tmp_path / "us"
    folder.mkdir()
    body = {"summary": ["Sum"], "sections": [{"headline": ["Head"], "paragraphs": ["A", "B"]}]}
    (folder / "Paper.json").write_text(json.dumps({"V1": {"body": body}, "V2": {"body": body | {"summary": []}}}))
    days = ["2024_01_01", "2023_01_01"]
    (folder / "meta.info").write_text(
        json.dumps({f"Paper_{day}.html.gz": {"url": f"http://p.example/{day}"} for day in days})
    )
    for day in days:
        (folder / f"Paper_{day}.html.gz").write_bytes(gzip.compress(day.encode()))
    first, second = gold_sets.fundus(tmp_path)
    assert (first.name, first.url, first.body) == ("us-Paper_2023_01_01", "http://p.example/2023_01_01", "Head\nA\nB")
    assert (first.optional, second.optional, second.html) == (("Sum",), (), b"2024_01_01")
    (folder / "Paper_2025_01_01.html.gz").write_bytes(b"")  # more pages than versions: which is which is not known
    assert list(gold_sets.fundus(tmp_path)) == []


def test_readability_gives_one_line_for_each_block(tmp_path):
    (tmp_path / "001").mkdir()
    (tmp_path / "001/source.html").write_bytes(b"<p>source</p>")
    (tmp_path / "001/expected.html").write_text("<div><h2>Titel</h2><p>Ein <b>Satz</b>\n mit é.</p>Ende</div>", "utf-8")
    (page,) = gold_sets.readability(tmp_path)
    assert (page.name, page.html, page.body) == ("001", b"<p>source</p>", "Titel\nEin Satz mit é.\nEnde")


@pytest.mark.parametrize(
    ("both", "extra", "missed", "f1"),
    [(1, 0, 0, 1), (0, 0, 0, 1), (0.5, 0.5, 0, 2 / 3), (0.5, 0, 0.5, 2 / 3), (0, 0, 1, 0)],
)
def test_f1_of_a_page_counts_extra_and_missed_shingles_alike(both, extra, missed, f1):
    assert Match(both, extra, missed).f1 == pytest.approx(f1)
