"""Recipes: what they read and refuse, and the table of main scores."""

import pytest
from benchmarking import parse, write_events
from newsembed.evaluation import command
from newsembed.evaluation.command import read_recipe
from newsembed.evaluation.suites import read_results
from refusals import refuses

RECIPE = """
[encoders]
words = "tfidf"
mine = "model:models/mine"

[[benchmarks]]
name = "2019"
suite = "events"
data = "events.jsonl"
metric = "hit@1"
cross_publisher = true
note = "options were chosen on 2018"

[[benchmarks]]
name = "topics"
suite = "clustering"
data = "events.jsonl"
seeds = 2
"""


@pytest.fixture
def folder(tmp_path):
    write_events(tmp_path / "events.jsonl")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return tmp_path


def test_paths_are_relative_to_the_recipe_and_options_reach_the_protocol(folder, monkeypatch):
    monkeypatch.chdir("/")
    recipe = read_recipe(str(folder / "recipe.toml"))
    assert recipe.encoders == {"words": "tfidf", "mine": f"model:{folder}/models/mine"}
    events, topics = recipe.benchmarks
    assert (events.path, events.cross_publisher, events.intervals) == (str(folder / "events.jsonl"), True, True)
    assert topics.seeds == 2
    assert recipe.metrics == {"2019": "hit@1", "topics": ""}
    assert recipe.notes == {"2019": "options were chosen on 2018"}


def test_the_first_table_has_a_column_for_each_benchmark(folder, capsys):
    (folder / "recipe.toml").write_text(RECIPE.replace('mine = "model:models/mine"', 'lsa = "lsa:2"'))
    output = str(folder / "out")
    arguments = parse("--recipe", str(folder / "recipe.toml"), "--encoder", "again=tfidf", "--output", output)
    assert command.run(arguments, {}) == 0
    lines = (folder / "out/results.md").read_text().splitlines()
    assert lines[:3] == ["## Main scores", "", "| encoder | 2019, hit@1 | topics, ARI |"]
    assert [line.split(" | ")[0] for line in lines[4:7]] == ["| words", "| lsa", "| again"]
    assert lines[4].startswith("| words | 1.0000 [1.0000, 1.0000] | 1.0000 ± 0.0000")
    assert "- 2019: options were chosen on 2018" in lines
    assert "Main scores" in capsys.readouterr().out
    results = read_results(output)
    assert [score.low for score in results.results[0].scores] == [1.0, 1.0]
    assert results.manifest["recipe"]["notes"] == {"2019": "options were chosen on 2018"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[encoders]", "[encoders", "cannot be read"),
        ("[encoders]", "[models]", "unknown key 'models'"),
        ('words = "tfidf"', "words = 3", "encoders"),
        ('name = "topics"', 'name = "2019"', "two benchmarks are named 2019"),
        ('suite = "events"', 'suite = "event"', r"benchmarks\[0\].suite"),
        ("cross_publisher = true", 'cross_publisher = "yes"', "expected true or false"),
        ("cross_publisher = true", "cross_publishers = true", "unknown key 'cross_publishers'"),
        ("seeds = 2", "seeds = true", "expected a number"),
        ("seeds = 2", "label = 1", "expected a string"),
        ('data = "events.jsonl"\nseeds', "seeds", "data is missing"),
        ('note = "options were chosen on 2018"', "note = 2018", r"benchmarks\[0\].note"),
        ('metric = "hit@1"', "intervals = false", "unknown key 'intervals'"),
    ],
)
def test_a_broken_recipe_is_refused_by_name(folder, old, new, message):
    assert old in RECIPE
    path = folder / "recipe.toml"
    path.write_text(RECIPE.replace(old, new))
    caught = refuses(message, read_recipe, str(path))
    assert str(path) in str(caught)


def test_a_recipe_without_benchmarks_and_a_missing_one_are_refused(folder):
    (folder / "empty.toml").write_text("[encoders]\n")
    for name in ("empty.toml", "absent.toml"):
        refuses(name, read_recipe, str(folder / name))
