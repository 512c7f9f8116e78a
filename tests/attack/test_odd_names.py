"""Commands take a path that a user gives as a name, whatever characters it has; only inputs may be patterns."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from json_lines import write_rows
from newsembed.formats import files
from newsembed.launch import cli
from targets import ONE, rows, written_model

NAMES = ("news [2024]", "arch*", "a?b", "{a,b}", " in front", "a\nb", "~", "50%s", "Zürich 新聞", "n" * 180)
ALL = "news [2024] *?{a,b}\n~ 50%s Zürich"


def run(*words):
    assert cli.main([str(word) for word in words]) == 0


@pytest.fixture
def articles(tmp_path):
    return Path(write_rows(tmp_path / "articles.jsonl", rows()))


@pytest.fixture
def neighbour(tmp_path):
    """Folders that the names match as patterns, each with a file that stays."""
    for name in ("news 2", "archive", "arch", "axb", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
    return tmp_path


def count(folder):
    """How many articles a job wrote."""
    return sum(pq.read_metadata(path).num_rows for path in (folder / "articles").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_job_writes_into_the_folder_of_this_name(articles, neighbour, name):
    before = {path: path.read_bytes() for path in neighbour.rglob("*.json")}
    output = neighbour / name
    run("extract", "--articles", articles, "--output", output, ONE)
    run("extract", "--articles", articles, "--output", output, ONE)  # skipped: its manifest is found
    assert count(output) == 8
    files.delete([f"{output}/manifest.json"])
    assert not (output / "manifest.json").exists()
    assert before.items() <= {path: path.read_bytes() for path in neighbour.rglob("*.json")}.items()


def test_an_input_that_is_there_is_no_pattern(articles, tmp_path):
    odd = tmp_path / "[a]"
    odd.mkdir()
    articles.rename(odd / "articles*.jsonl")
    (odd / "articles2.jsonl").write_text("not JSON")
    run("extract", "--articles", odd / "articles*.jsonl", "--output", tmp_path / "out", ONE)
    assert count(tmp_path / "out") == 8


def test_the_commands_of_a_build(articles, tmp_path, capsys):
    at = tmp_path / ALL
    at.mkdir()
    written_model(tmp_path / "model")  # Orbax reads folders of this name, and writes none
    (tmp_path / "model").rename(at / "model")
    run("extract", "--articles", articles, "--output", at / "extract", ONE)
    rules = ("--min_words=1", "--min_sentences=1")
    run("clean", "--articles", at / "extract", "--output", at / "clean", *rules, ONE)
    assert count(at / "clean") == 7
    run("vocabulary", "--articles", at / "clean", "--size=200", "--output", at / "vocabulary", ONE)
    run("pack", "--articles", at / "clean", "--vocabulary", at / "model/vocab.txt", "--output", at / "pack", ONE)
    run("embed", "--model", at / "model", "--input", at / "clean", "--output", at / "vectors")
    run("embed", "--model", at / "model", "--input", at / "clean", "--output", at / "vectors.parquet")
    assert (
        cli.main(["index", "--model", str(at / "model"), "--input", str(articles), "--output", str(at / "index")]) == 2
    )
    at = at.rename(tmp_path / ALL.replace("\n", ""))  # LanceDB takes no control characters
    run("index", "--model", at / "model", "--input", at / "clean", "--output", at / "index")
    run("index", "--model", at / "model", "--input", at / "clean", "--output", at / "index", "--append")
    run("search", "--index", at / "index", "river")
    run("dedup", "--index", at / "index", "--threshold=0.9", "--output", at / "groups.tsv")
    run("export", "--model", at / "model", "--format", "safetensors", "--output", at / "weights")
    run("export", "--model", at / "model", "--format", "safetensors", "--output", at / "weights", "--overwrite")
    for _ in range(2):
        run("update", "--archive", at / "archive", "--encoder", f"model:{at / 'weights'}", "--articles", articles, ONE)
    run("verify", at)
    capsys.readouterr()
    assert sorted(tmp_path.iterdir()) == [articles, at]
