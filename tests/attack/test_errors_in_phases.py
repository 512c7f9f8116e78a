"""Errors inside Beam's pipelines: the user sees file, place and remedy; the traceback with --verbose."""

import dataclasses
import errno
import json
import os

import pytest
from full_disk import small_files
from newsembed.beam_pipelines import failures, jobs
from newsembed.errors import InputError, of_file_system, of_file_system_text
from newsembed.formats import parquet
from newsembed.formats.records import Hub
from newsembed.launch import cli

ONE = ["--direct_num_workers=1"]


@dataclasses.dataclass(frozen=True)
class Options:
    pass


def job_of(function, payloads):
    return jobs.Job("toy", "", (), Options, lambda run: run.map_shards("work", function, payloads))


def read_damaged(shard, path):
    for _ in parquet.read_records(path, Hub):
        shard.read()
        shard.written()


def write_much(shard, _):
    """Fails as on a full disk: this process may write small files only, and lines to the captured output."""
    with small_files(200_000):
        hubs = shard.records("hubs", Hub)
        for number in range(20_000):
            shard.read()
            hubs.write(Hub(f"{number:016x}", os.urandom(20).hex(), "h", "t", "feed", ()))
            shard.written()


def fail_in_our_code(shard, _):
    raise ZeroDivisionError("a bug")


@pytest.mark.parametrize("workers", [1, 2])  # in this process, and in others
def test_a_damaged_shard_is_named_with_its_remedy(tmp_path, workers):
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    for path in paths:
        parquet.write_shard(path, [Hub("0" * 16, "http://h.example", "h.example", "t", "feed", ("a",))] * 500, Hub)
    raw = bytearray((tmp_path / "1.parquet").read_bytes())
    raw[40] ^= 8
    (tmp_path / "1.parquet").write_bytes(raw)
    with pytest.raises(InputError) as raised:
        jobs.execute(
            job_of(read_damaged, paths), {}, str(tmp_path / "out"), beam_args=[f"--direct_num_workers={workers}"]
        )
    text = str(raised.value)
    assert text.startswith(f"{paths[1]}: not a Parquet file, or damaged: ")
    assert text.endswith("restore it from a copy; a partial upload looks like this")
    assert "while running" not in text


def test_a_full_disk_is_named(tmp_path):
    with pytest.raises(InputError) as raised:
        jobs.execute(job_of(write_much, [None, None]), {}, str(tmp_path / "out"), beam_args=ONE)
    assert "cannot be written: File too large" in raised.value.problem
    assert raised.value.path.startswith(str(tmp_path / "out"))
    assert "run the same command again" in raised.value.remedy


def test_a_bug_keeps_its_own_error(tmp_path):
    with pytest.raises(Exception, match="a bug") as raised:
        jobs.execute(job_of(fail_in_our_code, [None, None]), {}, str(tmp_path / "out"), beam_args=ONE)
    assert not isinstance(raised.value, InputError)


@pytest.mark.parametrize(
    ("error", "path", "words"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/b"), "/a/b", "No space left on device"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "given", "No space left on device"),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/a"), "/a", "Permission denied"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS), "/a"), "/a", "Read-only file system"),
        (FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), "/a"), "/a", "File exists"),
        (NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), "/a/b"), "/a/b", "Not a directory"),
        (IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "/a.tmp", None, "/a"), "/a", "Is a directory"),
        (OSError("512 requested and 0 written"), "given", "No space left on device"),
        (RuntimeError("Error in write: No space left on device"), "given", "No space left on device"),
    ],
)
def test_errors_of_the_file_system(error, path, words):
    found = of_file_system(error, "given")
    assert (found.path, words in found.problem, bool(found.remedy)) == (path, True, True)


def test_other_errors_are_not_of_the_file_system():
    assert of_file_system(FileNotFoundError(errno.ENOENT, "No such file", "/a")) is None
    assert of_file_system(ValueError("No space left on device")) is None
    assert of_file_system_text("all is well") is None


@pytest.mark.parametrize("command", ["embed", "index", "dedup", "cluster", "clean", "build"])
def test_an_output_of_the_wrong_kind_is_named_before_the_work(command, tmp_path, refused):
    """A file where a folder is needed, or a folder; the model is not even read."""
    articles, output = tmp_path / "articles.jsonl", tmp_path / "output"
    articles.write_text('{"title": "a", "body": "b", "url": "https://a.example/b"}\n')
    given = {"embed": "--model=m --input", "index": "--model=m --input", "dedup": "--threshold=1 --index"}
    given |= {"cluster": "--threshold=1 --index", "clean": "--articles", "build": "--articles"}
    output.mkdir() if command in ("dedup", "cluster") else output.write_text("")
    message = refused(command, *given[command].split(), str(articles), "--output", str(output))
    assert str(output) in message
    assert "name another path" in message
    assert "Traceback" not in message


def test_verbose_shows_the_traceback(tmp_path, capsys, refused, monkeypatch):
    monkeypatch.delenv(failures.VERBOSE, raising=False)
    command = ["extract", "--articles", str(tmp_path / "none.jsonl"), "--output", str(tmp_path / "out")]
    assert cli.main(command) == 2
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    monkeypatch.setenv(failures.VERBOSE, "")  # is set by the command and put back after the test
    assert "Traceback" in refused("--verbose", *command)


@pytest.mark.parametrize("damage", ["report", "shard", "missing"])
def test_a_damaged_workspace_is_discarded_with_a_sentence(tmp_path, caplog, damage):
    fuse = tmp_path / "fuse"
    job = job_of(_fail_once, [None, str(fuse)])
    with pytest.raises(Exception, match="fuse"):
        jobs.execute(job, {}, str(tmp_path / "out"), beam_args=ONE)
    (workspace,) = (tmp_path / "out").glob(".work-*")
    (report,) = workspace.glob("_reports/work/*.json")
    (shard,) = workspace.glob("hubs/*.parquet")
    assert list(json.loads(report.read_text())["sha256"]) == [f"hubs/{shard.name}"]
    if damage == "report":
        report.write_bytes(report.read_bytes()[:20])
    elif damage == "shard":
        shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    else:
        shard.unlink()
    done = jobs.execute(job, {}, str(tmp_path / "out"), beam_args=ONE)
    assert done.manifest["counts"]["out"] == 2
    assert len(list(parquet.read_stream(str(tmp_path / "out/hubs"), Hub))) == 2
    assert "it is discarded, and the job starts from the beginning" in caplog.text


def _fail_once(shard, fuse):
    shard.records("hubs", Hub).write(Hub(f"{shard.index:016x}", "u", "p", "t", "feed", ()))
    shard.read()
    shard.written()
    if fuse and not os.path.exists(fuse):
        with open(fuse, "w") as sink:
            sink.write("lit")
        raise ValueError("fuse")
