"""An archive on an object store: written, searched, appended to, and locked; and what a lock leaves behind."""

import datetime

import numpy as np
import object_store
import pytest
from json_lines import write_rows
from letters import Letters
from newsembed.errors import InputError
from newsembed.formats import archive_writer
from newsembed.formats.archive import Archive, connect, is_archive, read_runs, reading_tables
from newsembed.formats.archive_writer import Writer
from newsembed.formats.articles import ArticleText
from newsembed.serving.index_command import append
from stream import article, run, told
from tables import indexed

ARTICLES = [ArticleText(f"d{n}", f"https://a.example/{n}", "a", f"storm {n}", "", "en") for n in range(5)]


@pytest.fixture
def stored(monkeypatch):
    with object_store.running() as store:
        for name, value in (
            ("AWS_ENDPOINT", store.endpoint),
            ("AWS_ACCESS_KEY_ID", store.access_key),
            ("AWS_SECRET_ACCESS_KEY", store.secret_key),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ALLOW_HTTP", "true"),
        ):
            monkeypatch.setenv(name, value)
        yield f"{store.folder}/archive", store.options


def test_an_archive_on_an_object_store(stored):
    uri, _ = stored
    assert (is_archive(uri), read_runs(uri)) == (False, [])
    index = indexed(ARTICLES[:3], Letters(), uri)
    assert index.matching(index.read("storm 2"), 1)[0].tolist() == [2]
    assert len(append(uri, Letters(), iter(ARTICLES))) == 5
    with Writer(uri), pytest.raises(InputError, match=r"(?s)another process writes this .*delete .*lock\.lance"):
        append(uri, Letters(), iter(ARTICLES))
    with Writer(uri) as writer:  # a run that is cut off before it publishes
        writer.change(Archive(uri)._articles.to_arrow(), ["d0"])
    assert len(Archive(uri)) == 5
    with Writer(uri) as writer:
        assert writer.roll_back(1).number == 3
    assert len(Archive(uri)) == 3
    np.testing.assert_allclose(Archive(uri).vectors([0]), index.embeddings[:1])


def test_an_update_of_an_archive_on_an_object_store(stored, tmp_path):
    uri, options = stored
    news = [write_rows(tmp_path / f"{n}.jsonl", [article(n, told("e", n), 1)]) for n in range(2)]
    for number, path in enumerate(news, 1):
        report = run(uri, path, beam_args=options)
        assert (report.version, report.articles, report.events) == (number, number, 1)
    assert len(Archive(uri)) == 2


def test_rows_of_runs_are_put_together_from_time_to_time(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_writer, "_RUNS_APART", 4)
    indexed(ARTICLES[:1], Letters(), tmp_path)
    for _ in range(8):
        with Writer(str(tmp_path)) as writer:
            writer.roll_back(1)
    assert [run.number for run in read_runs(str(tmp_path))] == [*range(1, 10)]
    assert connect(str(tmp_path)).open_table("runs").stats()["fragment_stats"]["num_fragments"] == 2  # 1 to 8, and 9


class Versions:
    """A table with versions of these years; it keeps the age from which it was told to remove them."""

    def __init__(self, *years):
        self.years, self.removed = years, None

    def list_versions(self):
        times = (datetime.datetime(year, 1, 1) for year in self.years)
        return [{"version": number, "timestamp": time} for number, time in enumerate(times, 1)]

    def optimize(self, cleanup_older_than):
        self.removed = datetime.datetime.now(datetime.UTC) - cleanup_older_than


@pytest.mark.parametrize(
    ("years", "oldest", "before"),
    [
        ((2020, 2021, 2022), 2, 2021),
        ((2020, 2022, 2021), 2, 2021),  # the clock jumped back: the third version is kept, too
        ((2020, 2021), 1, None),
        ((2020, 2021), 9, None),
        ((2020, 2900, 2901), 2, None),  # the clock was ahead
    ],
)
def test_no_version_that_is_kept_is_removed_whatever_the_clock_said(years, oldest, before):
    table = Versions(*years)
    archive_writer._prune(table, oldest)
    assert (table.removed is None) == (before is None)
    if before is not None:
        start = datetime.datetime(before, 1, 1).astimezone()
        assert start - datetime.timedelta(minutes=1) < table.removed < start


def test_a_panic_of_the_database_names_the_archive_and_memory_that_ran_out_does_not():
    class Panic(Exception):
        """The database's own has no module that can be imported."""

    with pytest.raises(InputError, match="folder: no readable archive: rust future panicked"), reading_tables("folder"):
        raise Panic("rust future panicked: unknown error")
    with pytest.raises(MemoryError), reading_tables("folder"):
        raise MemoryError


@pytest.mark.parametrize("table", ["runs", "terms"])
def test_the_error_of_a_damaged_table_names_it(tmp_path, table):
    uri = str(tmp_path / "index")
    indexed(ARTICLES, Letters(), uri)
    (data,) = (tmp_path / f"index/{table}.lance/data").iterdir()
    data.write_bytes(b"damaged")
    (tmp_path / "index/SHA256SUMS").unlink()
    with pytest.raises(InputError, match=f"index: table {table}: no readable archive"):
        Archive(uri).whole(table)
