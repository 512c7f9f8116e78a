"""Lists of WARC files, as Common Crawl publishes them: one shard per file; errors name the line."""

import gzip

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract.job import warc_digest
from newsembed.beam_pipelines.extract.sources import Slice, is_path_list, read_path_list, warc_slices
from newsembed.errors import InputError
from newsembed.tests.warcs import write_warc

NAMES = ("crawl-data/CC-NEWS/2024/03/a.warc.gz", "crawl-data/CC-NEWS/2024/03/b.warc.gz")


@pytest.fixture
def bucket(tmp_path):
    for number, name in enumerate(NAMES):
        pages = ((f"http://a.example/{number}/{page}", "text/html", "<title>Nothing</title>") for page in range(3))
        write_warc(tmp_path / "bucket" / name, *pages)
    return tmp_path / "bucket"


def write_list(tmp_path, *lines, name="warc.paths"):
    path = tmp_path / name
    raw = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


@pytest.mark.parametrize("name", ["warc.paths.gz", "warc.paths", "files.txt", "files.txt.gz", "@list"])
def test_lists_are_recognised_by_their_names(tmp_path, bucket, name):
    path = write_list(tmp_path, "# March", "", *NAMES, name=name.removeprefix("@"))
    given = f"@{path}" if name.startswith("@") else path
    assert is_path_list(given)
    assert read_path_list(given, str(bucket)) == [f"{bucket}/{one}" for one in NAMES]
    assert warc_slices((given,), f"{bucket}/") == [Slice(f"{bucket}/{one}", "warc", 0, -1) for one in NAMES]


def test_paths_may_be_absolute_or_beside_the_list(tmp_path, bucket):
    absolute = f"{bucket}/{NAMES[0]}"
    assert read_path_list(write_list(tmp_path, absolute), "s3://elsewhere") == [absolute]
    assert read_path_list(write_list(bucket, *NAMES)) == [f"{bucket}/{one}" for one in NAMES]
    assert not is_path_list(absolute)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            (NAMES[0], "# comment", "crawl-data/c.warc.gz"),
            r"warc\.paths:3: --warc: no such file: .*crawl-data/c\.warc\.gz",
        ),
        (("# none",), "contains no path"),
    ],
)
def test_errors_in_a_list_name_the_line(tmp_path, bucket, lines, problem):
    with pytest.raises(InputError, match=problem):
        read_path_list(write_list(tmp_path, *lines), str(bucket))


@pytest.mark.parametrize("raw", [b"\x1f\x8bno gzip", b"\xff\xfe\x00", gzip.compress(b"x" * 99, mtime=0)[:-9]])
def test_an_invalid_list_is_reported(tmp_path, raw):
    path = tmp_path / "warc.paths.gz"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"warc\.paths\.gz: cannot be read"):
        read_path_list(str(path))
    with pytest.raises(InputError, match="no such file"):
        read_path_list(str(tmp_path / "none.txt"))


def test_the_digest_of_a_list_is_that_of_its_text(tmp_path, bucket):
    plain = write_list(tmp_path, *NAMES)
    before = warc_digest(plain)
    assert warc_digest(f"@{plain}") == before
    assert warc_digest(write_list(tmp_path, NAMES[0])) != before
    assert warc_digest(f"{bucket}/{NAMES[0]}") == jobs.input_digest(f"{bucket}/{NAMES[0]}")


def test_a_folder_in_place_of_warc_files_names_those_in_it(tmp_path):
    crawl = tmp_path / "crawl [1]"
    (crawl / "warc").mkdir(parents=True)
    for given, pattern in ((crawl, f"{crawl}/*.warc.gz"), (tmp_path, f"{tmp_path}/*.warc.gz")):
        with pytest.raises(InputError, match="is a folder, expected a WARC file") as caught:
            warc_slices((str(given),))
        assert f"'{pattern}'" in caught.value.remedy
    (crawl / "warc" / "a.example.warc.gz").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        warc_slices((f"{crawl}/",))
    assert caught.value.remedy.endswith(f"'{crawl}/warc/*.warc*'")
