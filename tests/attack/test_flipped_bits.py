"""One flipped bit in a result is noticed when the result is read, and `newsembed verify` names the file."""

import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from json_lines import write_rows
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.clean import JOB
from newsembed.beam_pipelines.extract import JOB as EXTRACT
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.archive import Archive
from newsembed.formats.records import Article
from newsembed.launch import cli
from targets import rows, table_files, written_index

ONE = ["--direct_num_workers=1"]


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extracted")
    path = write_rows(folder / "articles.jsonl", rows(60))
    jobs.execute(EXTRACT, {"articles": [path]}, str(folder / "work"), beam_args=ONE)
    return folder / "work"


def flip(path, place, bit):
    raw = bytearray(path.read_bytes())
    raw[place % len(raw)] ^= 1 << bit
    path.write_bytes(raw)


def test_jobs_refuse_an_input_with_a_flipped_bit_and_verify_names_the_file(extracted, tmp_path, capsys):
    (path,) = (extracted / "articles").glob("*.parquet")
    whole, generator = path.read_bytes(), random.Random(0)
    try:
        for number in range(8):
            flip(path, generator.randrange(len(whole)), generator.randrange(8))
            with pytest.raises(InputError, match=r"of other content than written: articles/part-00000"):
                jobs.execute(JOB, {"articles": [str(extracted)]}, str(tmp_path / f"out{number}"), beam_args=ONE)
            assert cli.main(["verify", str(extracted)]) == 1
            assert "missing or changed: articles/part-00000" in capsys.readouterr().out
            path.write_bytes(whole)
    finally:
        path.write_bytes(whole)
    assert cli.main(["verify", str(extracted)]) == 0
    assert "as written" in capsys.readouterr().out


def test_parquet_without_its_manifest_is_right_or_refused(extracted, tmp_path):
    """Page checksums cover the data; nothing covers the few bytes of headers, which hold sizes and encodings."""
    (source,) = (extracted / "articles").glob("*.parquet")
    truth = list(parquet.read_records(str(source), Article))
    metadata = pq.ParquetFile(source).metadata
    columns = [metadata.row_group(0).column(number) for number in range(metadata.num_columns)]
    first = min(column.dictionary_page_offset or column.data_page_offset for column in columns)
    size = sum(column.total_compressed_size for column in columns)
    path, generator, accepted = tmp_path / "part-00000-of-00001.parquet", random.Random(1), 0
    for _ in range(100):
        path.write_bytes(source.read_bytes())
        flip(path, first + generator.randrange(size), generator.randrange(8))
        try:
            found = list(parquet.read_records(str(path), Article))
        except InputError as error:
            accepted += str(path) not in str(error)
        else:
            accepted += found != truth
    assert accepted == 0


def test_an_index_with_a_flipped_bit_is_refused(tmp_path):
    generator = np.random.default_rng(0)
    written_index(tmp_path)
    assert len(Archive(str(tmp_path))) == 12
    for name in table_files(tmp_path, "articles", "terms", "runs").values():
        whole = (tmp_path / name).read_bytes()
        for place in generator.integers(len(whole), size=10):
            flip(tmp_path / name, int(place), int(place) % 8)
            with pytest.raises(InputError, match="no readable archive"):
                Archive(str(tmp_path))
            (tmp_path / name).write_bytes(whole)
    assert len(Archive(str(tmp_path))) == 12
