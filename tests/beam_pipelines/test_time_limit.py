"""A limit of time for the work on one record."""

import dataclasses
import datetime
import threading
import time
import types

import numpy as np
import pytest
from newsembed.beam_pipelines import clean, entities, pairs, shards, vectors
from newsembed.beam_pipelines.bitext import documents
from newsembed.beam_pipelines.entities.linking import Mentions
from newsembed.beam_pipelines.extract import read
from newsembed.beam_pipelines.shards import Phase, RecordTimeoutError, Shard, time_limit
from newsembed.formats import files
from newsembed.formats.articles import ArticleText
from newsembed.formats.parquet import read_records, write_shard
from newsembed.formats.records import Article, DeadLetter, make_doc_id


def endless():
    while True:
        time.sleep(0.001)


def in_thread(function):
    """What a function raises in a thread, as the workers of Beam run it."""
    raised = []

    def run():
        try:
            function()
        except RecordTimeoutError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    return raised


def test_work_without_end_ends_in_its_own_thread():
    def work():
        with time_limit(0.05):
            endless()

    assert len(in_thread(work)) == 1
    with pytest.raises(RecordTimeoutError):
        work()


def test_what_has_ended_is_not_disturbed_later(monkeypatch):
    def spin():
        return sum(range(1_000)) + sum(number for number in range(1_000))

    with time_limit(9):
        pass
    shards._look(time.monotonic() + 99)
    spin()
    raised = []
    monkeypatch.setattr(shards, "_raise_in", lambda *given: raised.append(given[1]))
    with time_limit(9):  # it is raised on the way out
        shards._look(time.monotonic() + 8)
        assert raised == []
        shards._look(time.monotonic() + 10)
        shards._look(time.monotonic() + 11)
    assert raised == [RecordTimeoutError, None]


def test_other_errors_pass():
    with pytest.raises(KeyError), time_limit(9):
        raise KeyError


SLOW = 1  # the number of the article whose work has no end
CLEAN = clean.CleanOptions(min_words=1, min_sentences=1, require_language=False, require_terminal_punctuation=False)
MENTIONS = Mentions("0" * 16, None, "", "en", (), (), (), None)
ZEROS = np.zeros((1, 2), np.float32)
NO_TABLES = types.SimpleNamespace(linker=None, word_rows={}, word_weights=(), entities=ZEROS, words=ZEROS)
ENTITIES = entities.EntitiesOptions()


def pairs_of(shard, path):
    texts = [text_of(article) for article in read_records(path, Article)]
    vocabulary = types.SimpleNamespace(encode_texts=lambda texts: [np.ones(9, np.int32) for _ in texts])
    list(pairs._examples_of(shard, texts, {}, vocabulary, pairs.PairsOptions()))


def sentences_of(shard, path):
    for article in read_records(path, Article):
        list(documents._sentences_of(shard, text_of(article), {int(article.doc_id, 16): [0]}))


def rows_of(shard, path):
    outputs = {kind: shard.records(name, kind) for kind, name in read.STREAMS.items()}
    read._read_articles(shard, outputs, path, ())


def text_of(article):
    return ArticleText(*(getattr(article, field.name) for field in dataclasses.fields(ArticleText)))


@pytest.mark.parametrize(
    ("module", "name", "work"),
    [
        pytest.param(clean, "checked", lambda *of: clean._apply_rules(*of, CLEAN, []), id="clean"),
        pytest.param(read, "row_to_article", rows_of, id="extract"),
        pytest.param(entities, "_uses_and_head", lambda *of: entities._count_words(*of, ENTITIES), id="words"),
        pytest.param(entities, "_candidate_names", entities._count_names, id="names"),
        pytest.param(entities, "find_mentions", lambda *of: entities._link(*of, ENTITIES), id="entities"),
        pytest.param(vectors, "find_mentions", lambda *of: vectors._link(*of, 60, None), id="vectors"),
        pytest.param(documents, "split_article", sentences_of, id="bitext"),
        pytest.param(pairs, "_pairs_of", pairs_of, id="pairs"),
    ],
)
def test_each_job_that_reads_text_gives_an_article_a_limit(tmp_path, monkeypatch, module, name, work):
    rows = [record(number) for number in range(3)]
    write_shard(str(tmp_path / "in.parquet"), rows, Article)
    given = [{"url": row.url, "title": row.title, "body": row.body} for row in rows]
    monkeypatch.setattr(shards, "RECORD_SECONDS", 0.3)
    monkeypatch.setattr(shards, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(entities, "_word_uses", lambda _: {})
    monkeypatch.setattr(entities, "_link_tables", lambda _: (None, {}))
    monkeypatch.setattr(vectors, "_load_tables", lambda _: NO_TABLES)
    monkeypatch.setattr(read, "read_rows", lambda _: ((f"in:{number}", row) for number, row in enumerate(given)))
    function = getattr(module, name)
    if name == "find_mentions":
        function = lambda *_, **__: MENTIONS  # noqa: E731 - the tables are not there

    def slow(*values, **named):
        words = " ".join(str(value) for value in values[:2])
        return endless() if f"town {SLOW} met" in words or rows[SLOW].url in words else function(*values, **named)

    monkeypatch.setattr(module, name, slow)
    with Shard(Phase(str(tmp_path), "work", 1), 0) as shard:
        work(shard, str(tmp_path / "in.parquet"))
    counts = files.read_json(f"{tmp_path}/_reports/work/00000.json")
    assert (counts["in"], counts["out"], counts["failed"]) == (3, 2, {"timeout": 1})
    (letter,) = read_records(files.list_files("dead_letters/work/*.parquet", str(tmp_path))[0], DeadLetter)
    assert letter.key in (rows[SLOW].url, rows[SLOW].doc_id, f"in:{SLOW}")
    assert (letter.outcome, letter.reason, letter.detail) == ("failed", "timeout", "more than 0.3 s")


def record(number):
    url = f"http://a.example/{number}"
    words = " ".join(f"The council of town {number} met on day {day} to vote." for day in range(30))
    day = datetime.date(2024, 1, 1)
    return Article(make_doc_id(url), url, "a.example", f"Title {number}", words, ("Ann Lee",), day, language="en")
