"""Rows of article files: the fields that nothing reads are counted and shown."""

import json

from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract import JOB
from newsembed.beam_pipelines.extract.rows import unread_fields
from newsembed.beam_pipelines.progress import print_outcomes


def test_fields_that_nothing_reads_are_named(tmp_path, capsys):
    row = {"url": "https://n.example/1", "title": "A title", "body": "text", "doc_id": "x", "feeds": ["f"]}
    wrong = {"author": "A. Name", "date": "2024-01-01", "authors": ["A. Name"], "published": None, "tags": []}
    lines = [{**row, **wrong}, {**row, "url": "https://n.example/2", "date": "2024-01-02"}]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    counts = jobs.execute(
        JOB, {"articles": [str(path)]}, str(tmp_path / "out"), beam_args=["--direct_num_workers=1"]
    ).manifest["counts"]
    print_outcomes([("extract", jobs.Outcome({"counts": counts}, skipped=False, seconds=1.0))])
    assert "note: extract does not read these fields: date 2, author 1\n" in capsys.readouterr().out


def test_of_fields_that_nothing_reads_the_first_twenty_are_counted():
    known = set()
    assert unread_fields({f"f{number}": 1 for number in range(18)}, known) == [f"f{number}" for number in range(18)]
    assert unread_fields({"f0": 1} | {f"g{number}": 1 for number in range(5)}, known) == ["f0", "g0", "g1"]
    assert unread_fields({"g4": 1, "f3": 1, "url": 1}, known) == ["f3"]
    assert len(known) == 20
