"""`newsembed explore`: any articles become an archive that can be searched, without training."""

import csv
import dataclasses
import functools
import http.server
import json
import os
import re
import threading
import time

import newsembed
import pytest
from newsembed.errors import InputError
from newsembed.launch import cli, exploration
from newsembed.launch.exploration import _seeds
from newsembed.launch.explore import inputs_of
from newsembed.serving import server
from newsembed.serving.index import DocumentIndex
from newsembed.serving.ranking import LATENT_SEMANTICS, Ranking
from newsembed.serving.specs import encoder_from_spec
from newsembed.studies.shared import runs

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


def run(source, output, *more):
    return cli.main(["explore", str(source), "--output", str(output), "--serve=false", *more])


@pytest.fixture(scope="module")
def explored(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("explore")
    write_csv(folder / "first.csv", rows[:-1])
    assert run(folder / "first.csv", folder / "explored") == 0
    return folder


def found(folder, printed, query, mode):
    hits = printed("search", "--index", f"{folder}/explored/archive", "--json", f"--mode={mode}", query)
    return [hit["url"] for hit in json.loads(hits)]


def test_the_ranking_is_that_of_latent_semantics(explored):
    index = DocumentIndex.load(f"{explored}/explored/archive")
    kept = index.settings["ranking"]
    assert index.archive.dimensions > 512  # of the projection of TF-IDF, and those of latent semantics
    assert Ranking.from_dict(kept).weights.tolist() == LATENT_SEMANTICS.weights.tolist()


@pytest.mark.parametrize("mode", ["hybrid", "words", "vectors"])
def test_articles_of_a_table_are_found_by_words_and_by_vectors(explored, printed, mode):
    hits = found(explored, printed, "flood of the river in the old town", mode)
    assert set(hits[:2]) == {"http://a.example/flood", "http://b.example/flood"}


def test_a_second_run_adds_what_is_new(explored, rows, capsys, printed):
    write_csv(explored / "second.csv", rows)
    assert run(explored / "second.csv", explored / "explored") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "in 8 new 1 already known 7" in shown
    assert "latent semantics" in shown
    assert "http://b.example/strike" in found(explored, printed, "strike at the harbour", "vectors")[:2]


def test_folders_and_patterns_are_searched_for_both_kinds(tmp_path):
    (tmp_path / "crawl/warc").mkdir(parents=True)
    (tmp_path / "rows [1]").mkdir()
    for name in ("crawl/warc/a.warc.gz", "crawl/warc/a.warc.gz.cdx", "rows [1]/b.jsonl", "c.csv"):
        (tmp_path / name).touch()
    given = inputs_of([f"{tmp_path}/crawl", f"{tmp_path}/rows [1]", f"{tmp_path}/*.csv"])
    assert given == {
        "crawl": [],
        "warc": [f"{tmp_path}/crawl/warc/a.warc.gz"],
        "articles": [f"{tmp_path}/rows [1]/b.jsonl", f"{tmp_path}/c.csv"],
    }
    with pytest.raises(InputError, match="no file matches"):
        inputs_of([f"{tmp_path}/*.parquet"])


def test_too_few_articles_are_refused_and_leave_nothing_half_made(tmp_path, rows, capsys):
    write_csv(tmp_path / "a.csv", rows[:1])
    assert run(tmp_path / "a.csv", tmp_path / "out") == 2
    assert "got 1 article with text, expected at least 3" in capsys.readouterr().err
    assert not (tmp_path / "out/words").exists()


@pytest.fixture
def without_pauses(monkeypatch):
    """A crawl that asks this machine again at once."""
    quick = functools.partial(exploration.CrawlOptions, delay_seconds=0.0, backoff_seconds=0.0)
    monkeypatch.setattr(exploration, "CrawlOptions", quick)


@pytest.fixture
def site(tmp_path, rows, without_pauses):
    """A site on this machine: a front page, and a feed, each with links to four articles."""
    folder = tmp_path / "site"
    folder.mkdir()
    names = [row["Link"].rpartition("/")[2] for row in rows[::2]]
    for name, row in zip(names, rows[::2], strict=True):
        texts = "".join(f"<p>{text}</p>" for text in re.split(r"(?<=\.) ", row["Content"]))
        head = f"<title>{row['Headline']}</title><meta property='og:type' content='article'>"
        page = f"<html lang=en><head>{head}</head><article><h1>{row['Headline']}</h1>{texts}</article>"
        (folder / f"{name}.html").write_text(page)
    (folder / "index.html").write_text("".join(f"<a href='/{name}.html'>all about {name}</a>" for name in names))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_site_is_crawled_within_a_limit_and_again_for_what_is_new(site, tmp_path, capsys):
    for expected in ("in 4 new 3", "in 1 new 1"):
        assert run(f"{site}/index.html", tmp_path / "out", "--pages=4") == 0
        said = capsys.readouterr()
        assert expected in " ".join(said.out.split())
        assert f"reading {site}/index.html" in said.err
        assert not list((tmp_path / "out").glob("crawl-*"))


def test_lists_of_urls_are_text_or_opml(tmp_path):
    (tmp_path / "feeds.txt").write_text("# news\nhttps://a.example/feed\n")
    (tmp_path / "feeds.opml").write_text(
        '<opml version="2.0"><body><outline text="News"><outline xmlUrl="https://b.example/rss" htmlUrl="https://b.example"/>'
        '<outline htmlUrl="https://c.example/"/></outline></body></opml>'
    )
    (tmp_path / "empty.opml").write_text("<opml><body/></opml>")
    names = [f"{tmp_path}/feeds.txt", f"{tmp_path}/feeds.opml", "https://d.example"]
    assert inputs_of(names) == {"crawl": names, "warc": [], "articles": []}
    found = [url for name in names for url in _seeds(name)]
    assert found == ["https://a.example/feed", "https://b.example/rss", "https://c.example/", "https://d.example"]
    with pytest.raises(InputError, match="has no outline with xmlUrl"):
        list(_seeds(f"{tmp_path}/empty.opml"))


@pytest.mark.parametrize("known", [False, True])
def test_a_row_that_cannot_be_read_is_named_with_the_option_that_helps(tmp_path, rows, known, capsys):
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    for text in [lines, lines.replace("Headline", "Kopf")][not known :]:
        (tmp_path / "a.jsonl").write_text(text)
        got, said = run(tmp_path / "a.jsonl", tmp_path / "out"), capsys.readouterr()
    example = r"missing_field, for example \S*a.jsonl:\d: title: empty or absent; the row has Kopf\b"
    assert re.search(example, said.out + said.err)
    assert (got, "name the columns, such as --fields title=headline;" in said.err) == (0 if known else 2, not known)


def test_an_archive_keeps_its_rules_and_its_old_and_changed_articles(tmp_path, rows, monkeypatch):
    dated = [{**row, "date": "1987-04-21", "updated_at": "2018-01-01"} for row in rows]
    monkeypatch.setattr(exploration, "_RULES", dataclasses.replace(exploration._RULES, min_words=6))  # of old
    write_csv(tmp_path / "a.csv", dated[:-1])
    assert run(tmp_path / "a.csv", tmp_path / "out") == 0
    monkeypatch.undo()
    write_csv(tmp_path / "a.csv", dated)
    assert run(tmp_path / "a.csv", tmp_path / "out") == 0
    assert len(newsembed.open(f"{tmp_path}/out/archive")) == len(rows)


def test_a_site_that_cannot_be_reached_is_an_error(tmp_path, capsys, without_pauses):
    assert run("http://127.0.0.1:9/", tmp_path / "out") == 2
    assert "nothing is left: 1 of 1" in capsys.readouterr().err


def test_python_takes_rows_and_paths(tmp_path, rows):
    output = str(tmp_path / "out")
    articles = [{"title": row["Headline"], "body": row["Content"], "url": row["Link"]} for row in rows]
    index = newsembed.explore(articles, output)
    assert {hit.document.url for hit in index.search("the flood in the old town", k=2)} == {
        "http://a.example/flood",
        "http://b.example/flood",
    }
    teaser = {"Link": "/ferry", "Headline": "No ferry today", "Content": "The island waits for calmer seas"}
    write_csv(tmp_path / "more.csv", [teaser])
    assert len(newsembed.explore(f"{tmp_path}/more.csv", output)) == len(index) + 1


def test_articles_that_are_all_rejected_are_an_error(explored, tmp_path, capsys):
    write_csv(tmp_path / "a.csv", [{"Link": "http://a.example/short", "Headline": "Short", "Content": ""}])
    assert run(tmp_path / "a.csv", tmp_path / "out", "--model", f"{explored}/explored/words") == 2
    shown = capsys.readouterr()
    assert re.search(r"failed: \w+ +1\b", shown.out)
    assert "no article was accepted" in shown.err
    assert "newsembed rejected" in shown.err


@pytest.fixture(scope="module")
def model(tmp_path_factory, rows):
    """Latent semantics of other articles."""
    folder = tmp_path_factory.mktemp("model")
    write_csv(folder / "a.csv", rows[:5])
    assert run(f"{folder}/a.csv", f"{folder}/explored") == 0
    return f"{folder}/explored/words"


def test_with_a_model_the_page_begins_with_latent_semantics_and_changes_to_the_model(
    explored, model, tmp_path, monkeypatch
):
    output, told = f"{tmp_path}/out", []

    def serve(options, notice=lambda _: ""):
        first = DocumentIndex.load(options.index)
        told.append((first, notice(first)))
        deadline = time.monotonic() + 60
        while notice(index := DocumentIndex.load(options.index)) and time.monotonic() < deadline:
            told.append((index, notice(index)))
            time.sleep(0.1)
        told.append((index, ""))
        return 0

    monkeypatch.setattr(server, "run", serve)
    command = ["explore", f"{explored}/first.csv", "--output", output, "--model", model]
    assert cli.main(command) == 0
    assert told[0][1].startswith(f"{model} has read 0 of 7 articles.")
    first, last = told[0][0], told[-1][0]
    assert os.path.realpath(first.encoder.partition(":")[2]) == os.path.realpath(f"{output}/words")
    assert last.encoder_digest == encoder_from_spec(f"model:{model}").digest != first.encoder_digest
    assert (len(first), len(last)) == (7, 7)
    assert (first.settings["ranking"], last.settings["ranking"]) == (LATENT_SEMANTICS.to_dict(), None)
    told.clear()
    monkeypatch.chdir(tmp_path)
    assert cli.main([*command, "--output", "./out/"]) == 0  # it has the model now
    assert [one for _, one in told] == ["", ""]


def test_a_model_that_fails_is_told_and_the_archive_stays(explored, model, tmp_path, monkeypatch):
    output, told = f"{tmp_path}/out", []
    child = runs.child
    monkeypatch.setattr(runs, "child", lambda _: child(["no-such-command"]))

    def serve(options, notice):
        index = DocumentIndex.load(options.index)
        deadline = time.monotonic() + 60
        while "failed" not in notice(index) and time.monotonic() < deadline:
            time.sleep(0.1)
        told.append(notice(index))
        return 0

    monkeypatch.setattr(server, "run", serve)
    assert cli.main(["explore", f"{explored}/first.csv", "--output", output, "--model", model]) == 0
    assert told == [f"{model} has failed, see the terminal. The same command goes on where it stopped."]
    assert len(DocumentIndex.load(f"{output}/archive")) == 7


def test_a_model_for_many_languages_is_imported_without_what_tells_them_apart(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(exploration.import_hf, "run", asked.append)
    assert [exploration._spec(name, str(tmp_path)) for name in ("e5", "a/b")] == [
        f"model:{tmp_path}/{name}" for name in ("e5", "a--b")
    ]
    assert [options.without_languages for options in asked] == [None, None]  # the import asks what the model knows


def test_an_archive_of_words_takes_a_model_later(explored, model, tmp_path):
    first, output = f"{explored}/first.csv", tmp_path / "out"
    assert run(first, output) == 0
    assert run(first, output, "--model", model) == 0
    changed = DocumentIndex.load(f"{output}/archive")
    assert changed.encoder_digest == encoder_from_spec(f"model:{model}").digest
    assert changed.archive.run.number == 2
    assert run(first, output) == 0  # goes on with the model
    assert DocumentIndex.load(f"{output}/archive").archive.run.number == 2


def test_a_model_that_is_not_there_is_noticed_first(tmp_path, rows, capsys):
    write_csv(tmp_path / "a.csv", rows)
    assert run(tmp_path / "a.csv", tmp_path / "out", "--model", "minlm") == 2
    assert "minilm" in capsys.readouterr().err
    assert not os.path.exists(tmp_path / "out")


def test_a_model_is_advised_where_there_is_none(explored, capsys):
    exploration.advise(f"{explored}/explored")
    assert capsys.readouterr().out.endswith("--model e5\n")
