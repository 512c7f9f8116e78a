"""Articles of files have URLs of images and no images."""

import json

from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract import JOB
from newsembed.formats import parquet
from newsembed.formats.records import Article


def test_articles_alone_send_no_urls_of_images_to_a_join_that_has_none(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("images are joined")

    monkeypatch.setattr("newsembed.beam_pipelines.extract.join._keyed_by_image", fail)
    row = {
        "url": "http://s.example/a",
        "title": "A title",
        "body": "Text. " * 30,
        "image_url": "http://s.example/i.png",
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    inputs = {"articles": [str(tmp_path / "rows.jsonl")]}
    jobs.execute(JOB, inputs, str(tmp_path / "out"), beam_args=["--direct_num_workers=1"])
    (found,) = parquet.read_stream(str(tmp_path / "out/articles"), Article)
    assert (found.image_url, found.image_hash) == ("http://s.example/i.png", None)
