"""`newsembed explore`: any articles become an archive that can be searched, without training."""

import csv
import json

import pytest
from newsembed.errors import InputError
from newsembed.launch import cli
from newsembed.launch.explore import inputs_of

STORIES = {
    "flood": "The river rose over night and the flood reached the old town before the dam was closed.",
    "vote": "The parliament passed the budget late at night after a long debate about the new tax on fuel.",
    "match": "The striker scored twice in the second half and the home team won the cup final on Sunday.",
    "strike": "Dock workers began a strike at the harbour and ships with containers wait outside the port.",
}


@pytest.fixture(scope="module")
def rows():
    """Two reports of each story, without authors and dates, under the names of another tool."""
    return [
        {"Link": f"http://{paper}.example/{story}", "Headline": f"{opening} the {story}", "Content": f"{text} {ending}"}
        for story, text in STORIES.items()
        for paper, opening, ending in (
            ("a", "News of", "Officials said more would be known in the coming days, and people were asked to wait."),
            ("b", "More about", "Witnesses told the paper what they had seen, and experts gave their first opinion."),
        )
    ]


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def explored(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("explore")
    write_csv(folder / "first.csv", rows[:-1])
    command = ["explore", str(folder / "first.csv"), "--output", str(folder / "explored"), "--serve=false"]
    assert cli.main(command) == 0
    return folder


def found(folder, capsys, query, mode):
    capsys.readouterr()
    assert cli.main(["search", "--index", f"{folder}/explored/archive", "--json", f"--mode={mode}", query]) == 0
    return [hit["url"] for hit in json.loads(capsys.readouterr().out)]


@pytest.mark.parametrize("mode", ["hybrid", "words", "vectors"])
def test_articles_of_a_table_are_found_by_words_and_by_vectors(explored, capsys, mode):
    hits = found(explored, capsys, "flood of the river in the old town", mode)
    assert set(hits[:2]) == {"http://a.example/flood", "http://b.example/flood"}


def test_a_second_run_adds_what_is_new(explored, rows, capsys):
    write_csv(explored / "second.csv", rows)
    output = str(explored / "explored")
    assert cli.main(["explore", str(explored / "second.csv"), "--output", output, "--serve=false"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "in 8 new 1 already known 7" in shown
    assert "latent semantics" in shown
    assert "http://b.example/strike" in found(explored, capsys, "strike at the harbour", "vectors")[:2]


def test_folders_and_patterns_are_searched_for_both_kinds(tmp_path):
    (tmp_path / "crawl/warc").mkdir(parents=True)
    (tmp_path / "rows [1]").mkdir()
    for name in ("crawl/warc/a.warc.gz", "crawl/warc/a.warc.gz.cdx", "rows [1]/b.jsonl", "c.csv"):
        (tmp_path / name).touch()
    given = inputs_of([f"{tmp_path}/crawl", f"{tmp_path}/rows [1]", f"{tmp_path}/*.csv"])
    assert given == {
        "warc": [f"{tmp_path}/crawl/warc/a.warc.gz"],
        "articles": [f"{tmp_path}/rows [1]/b.jsonl", f"{tmp_path}/c.csv"],
    }
    with pytest.raises(InputError, match="no file matches"):
        inputs_of([f"{tmp_path}/*.parquet"])


def test_too_few_articles_are_refused_and_leave_nothing_half_made(tmp_path, rows, capsys):
    write_csv(tmp_path / "a.csv", rows[:2])
    command = ["explore", str(tmp_path / "a.csv"), "--output", str(tmp_path / "out"), "--serve=false"]
    assert cli.main(command) == 2
    assert "got 2 articles with text, expected at least 3" in capsys.readouterr().err
    assert not (tmp_path / "out/words").exists()
