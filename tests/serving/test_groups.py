"""Groups of like documents: every pair compared, chains joined; what the TSV files hold."""

import csv
import datetime
import itertools
import types

import numpy as np
import pytest
import tables
from hypothesis import given
from hypothesis import strategies as st
from letters import parsed, run
from newsembed.formats.archive import IndexedDocument
from newsembed.serving import cluster, dedup
from refusals import refuses
from vectors import circle


def index_of(degrees, days=None, uri=None):
    days = [datetime.date(2024, 1, day) for day in days or [1] * len(degrees)]
    titles = [f"title\t{number}\n" for number in range(len(degrees))]
    return tables.index_of(circle(*degrees), tables.numbered(titles, days), uri)


def cosine(degrees):
    return float(np.cos(np.deg2rad(degrees)))


def check_pairs(rows, threshold, block, allowed, *days):
    """Compares the near pairs, found in blocks of rows, with those of a plain product among the allowed pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "_BLOCK", block)
        blocks = [[part.tolist() for part in found] for found in cluster.near_pairs(rows, threshold, *days)]
    found = [pair for block in blocks for pair in zip(*block, strict=True)]
    similarities = rows @ rows.T
    expected = {pair for pair in allowed if similarities[pair] >= threshold}
    assert {pair[:2] for pair in found} == expected
    assert len(found) == len(expected)
    assert all(abs(similarities[i, j] - value) < 1e-6 for i, j, value in found)


@given(st.lists(st.integers(0, 359), min_size=1, max_size=30), st.integers(1, 170), st.sampled_from([1, 3, 7, 2048]))
def test_pairs_are_all_pairs(degrees, angle, block):
    rows, threshold = circle(*degrees), cosine(angle + 0.5)
    check_pairs(rows, threshold, block, {*itertools.combinations(range(len(rows)), 2)})


@given(
    st.lists(st.tuples(st.integers(0, 359), st.none() | st.integers(1, 31)), min_size=1, max_size=30),
    st.integers(1, 170),
    st.integers(0, 31),
    st.sampled_from([1, 3, 2048]),
)
def test_pairs_within_days_are_those_of_all_pairs(articles, angle, days, block):
    rows, threshold = circle(*(degrees for degrees, _ in articles)), cosine(angle + 0.5)
    dates = [day and datetime.date(2024, 1, day) for _, day in articles]
    dated = itertools.combinations([number for number, date in enumerate(dates) if date], 2)
    near = {(i, j) for i, j in dated if abs((dates[i] - dates[j]).days) <= days}
    check_pairs(rows, threshold, block, near, dates, days)


def test_a_chain_is_one_group():
    assert cluster.cluster(index_of([0, 20, 40, 60, 180]), cosine(25)).tolist() == [0, 0, 0, 0, 1]


def test_days_keep_articles_apart():
    index = index_of([0, 1, 2, 3], [1, 2, 20])
    assert cluster.cluster(index, 0.9).tolist() == [0, 0, 0, 0]
    assert cluster.cluster(index, 0.9, 3).tolist() == [0, 0, 1, 2]


def test_groups_are_written_by_size_then_by_number(tmp_path):
    documents = [IndexedDocument(f"d{n}", f"u{n}", "p", f"t {n}\x0b") for n in range(6)]
    labels = np.array([0, 1, 2, 1, 2, 3])
    assert cluster.write_groups(str(tmp_path / "g"), labels, documents) == (2, 4)
    assert [(row["group"], row["size"], row["doc_id"]) for row in rows_of(tmp_path / "g")] == [
        *(("0", "2", "d1"), ("0", "2", "d3"), ("1", "2", "d2"), ("1", "2", "d4"))
    ]
    assert rows_of(tmp_path / "g")[0]["title"] == "t 1"


def test_titles_of_strangers_run_neither_in_a_terminal_nor_on_request_in_a_spreadsheet(tmp_path):
    titles = ["=1+2", " +1", "-1", "@a", "a=1", "\x1b]0;b\x07"]
    documents = [IndexedDocument(f"d{n}", "=u", "-p", title) for n, title in enumerate(titles)]
    index = types.SimpleNamespace(documents=documents)
    cluster.write_groups(str(tmp_path / "g"), np.zeros(6, int), cluster.listed(index, False))
    assert [row["title"] for row in rows_of(tmp_path / "g")] == ["=1+2", "+1", "-1", "@a", "a=1", "\ufffd]0;b\ufffd"]
    cluster.write_groups(str(tmp_path / "g"), np.zeros(6, int), cluster.listed(index, True))
    rows = rows_of(tmp_path / "g")
    assert [row["title"] for row in rows] == ["'=1+2", "' +1", "'-1", "'@a", "a=1", "\ufffd]0;b\ufffd"]
    assert (rows[0]["url"], rows[0]["publisher"]) == ("'=u", "'-p")


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_cluster_command(tmp_path, capsys):
    index_of([90, 0, 1, 91, 92, 180], uri=tmp_path / "i")
    output = str(tmp_path / "c.tsv")
    assert run(cluster, "--index", tmp_path / "i", "--output", output, "--threshold", "0.99") == 0
    assert "2 groups with 5 of 6 articles" in capsys.readouterr().out
    rows = rows_of(output)
    assert [f"{row['group']} {row['doc_id']}" for row in rows] == ["0 d0", "0 d3", "0 d4", "1 d1", "1 d2"]
    assert rows[0] == {
        "group": "0", "size": "3", "doc_id": "d0", "date": "2024-01-01", "publisher": "a.example", "title": "title 0",
        "url": "https://a.example/0",
    }  # fmt: skip
    none = str(tmp_path / "new" / "none.tsv")
    assert run(cluster, "--index", tmp_path / "i", "--output", none, "--threshold", "0.99999") == 0
    printed = capsys.readouterr()
    assert "0 groups" in printed.out
    assert printed.err == "note: a --threshold below 0.99999 joins more articles\n"
    assert rows_of(none) == []


def test_dedup_command(tmp_path, capsys):
    index_of([0, 0.1, 50, 100, 100], uri=tmp_path / "i")
    output, pairs = str(tmp_path / "d.tsv"), str(tmp_path / "p.tsv")
    assert run(dedup, "--index", tmp_path / "i", "--output", output, "--pairs", pairs) == 0
    assert "2 groups with 4 of 5 articles, 2 could go" in capsys.readouterr().out
    assert [row["doc_id"] for row in rows_of(output)] == ["d0", "d1", "d3", "d4"]
    assert [(row["first"], row["second"]) for row in rows_of(pairs)] == [("d0", "d1"), ("d3", "d4")]
    assert float(rows_of(pairs)[1]["cosine"]) == pytest.approx(1)


def test_dedup_does_not_join_events_of_other_years_unless_told(tmp_path):
    """Undated articles are compared with one another: they could join events that are years apart."""
    days = [datetime.date(2016, 11, 8), datetime.date(2020, 11, 3), None, datetime.date(2020, 11, 10)]
    tables.index_of(circle(0, 0, 0, 0, 0), tables.numbered(["t"] * 5, days), tmp_path / "i")
    output, pairs = str(tmp_path / "d.tsv"), str(tmp_path / "p.tsv")

    def groups_of(*options):
        given = ("--index", str(tmp_path / "i"), "--output", output, "--pairs", pairs, *options)
        assert run(dedup, *given) == 0
        written = [(row["first"], row["second"]) for row in rows_of(pairs)]
        return [(row["group"], row["doc_id"]) for row in rows_of(output)], written

    by_default = [("0", "d1"), ("0", "d3"), ("1", "d2"), ("1", "d4")], [("d1", "d3"), ("d2", "d4")]
    assert groups_of() == by_default
    assert groups_of("--max_day_gap", "7") == by_default
    assert groups_of("--max_day_gap", "6")[1] == [("d2", "d4")]
    assert len(groups_of("--max_day_gap", "none")[1]) == 10
    refuses("--max_day_gap: got 'soon'", parsed, dedup, "--index", "i", "--output", "o", "--max_day_gap", "soon")


def thin(tmp_path, ranking, *options, degrees=(0, 2, 40, 41, 90)):
    index_of(degrees, uri=tmp_path / "i")
    (tmp_path / "ranking.tsv").write_text(ranking, encoding="utf-8", newline="")
    files = ["--order", str(tmp_path / "ranking.tsv"), "--output", str(tmp_path / "shown.tsv")]
    assert run(dedup, "--index", tmp_path / "i", "--greedy", *files, *options) == 0
    return rows_of(str(tmp_path / "shown.tsv"))


def test_greedy_walks_along_the_list_and_the_list_decides(tmp_path, capsys):
    rows = thin(tmp_path, "doc_id\tscore\nd3\t9\nd2\t8\n\nd1\t7\nd0\t6\nd4\t5\n", "--threshold", "0.9")
    assert [(row["rank"], row["doc_id"], row["shown"], row["nearest"]) for row in rows] == [
        ("1", "d3", "yes", ""),
        ("2", "d2", "no", "d3"),
        ("3", "d1", "yes", "d3"),
        ("4", "d0", "no", "d1"),
        ("5", "d4", "yes", "d3"),
    ]
    assert float(rows[1]["cosine"]) == pytest.approx(cosine(1), abs=1e-5)
    assert rows[0]["title"] == "title 3"
    assert "3 of 5 articles shown, 2 skipped, 0 not looked at" in capsys.readouterr().out


def test_greedy_stops_when_enough_are_shown(tmp_path, capsys):
    rows = thin(tmp_path, "\ufeffd0\r\nd1\r\nd2\nd3\nd4\n", "--threshold", "0.9", "--most", "2")
    assert [row["doc_id"] for row in rows] == ["d0", "d1", "d2"]
    assert "2 of 3 articles shown, 1 skipped, 2 not looked at" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ranking", "options", "problem"),
    [
        ("d0\nd9\n", (), r"ranking\.tsv:2: the article 'd9' is not in the index"),
        ("d0\nd1\nd0\n", (), r"ranking\.tsv:3: the article 'd0' is in the list twice"),
        ("d0\n\t0.5\n", (), r"ranking\.tsv:2: the article '' is not in the index"),
        ("x" * 5000, (), f"the article '{'x' * 80}…' is not in the index"),
        ("doc_id\n", (), "names no article"),
        ("d0\n", ("--pairs", "p.tsv"), "--pairs"),
        ("d0\n", ("--max_day_gap", "3"), "--max_day_gap: cannot be used with --greedy"),
    ],
)
def test_greedy_refuses(tmp_path, ranking, options, problem):
    refuses(problem, thin, tmp_path, ranking, *options)


def test_a_list_and_greedy_need_each_other(tmp_path):
    index_of((0, 2), uri=tmp_path / "i")
    given = ["--index", str(tmp_path / "i"), "--output", str(tmp_path / "o.tsv")]
    refuses("--order: not given", run, dedup, *given, "--greedy")
    refuses("--order: needs --greedy", run, dedup, *given, "--order", "x.tsv")
