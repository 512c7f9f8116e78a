"""What the child process makes of the bytes of a response, by their kind, read in this process."""

import io

import numpy as np
import pytest
from newsembed.beam_pipelines.extract.feeds import Feed
from newsembed.beam_pipelines.extract.page import ExtractedPage
from newsembed.beam_pipelines.extract.payload import read_payload
from PIL import Image

URL = "http://a.example/2024/05/storm"
PARAGRAPH = "The storm reached the coast in the night, and the harbour was closed for two days after it. "
PAGE = (
    "<html><head><title>Störm</title></head>"
    f"<body><article><h1>Störm</h1><p>{PARAGRAPH * 5}</p></article></body></html>"
)
FEED = f"<rss version='2.0'><channel><title>A</title><item><title>T</title><link>{URL}</link></item></channel></rss>"


def png(picture):
    sink = io.BytesIO()
    Image.fromarray(picture).save(sink, "PNG")
    return sink.getvalue()


@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
def test_a_page_is_decoded_by_its_charset(charset):
    found = read_payload("page", PAGE.encode(charset), charset, URL)
    assert isinstance(found, ExtractedPage)
    assert PARAGRAPH.strip() in found.article.body
    assert found.article.title == "Störm"


def test_a_page_that_is_a_feed_is_read_as_one():
    found = read_payload("page", FEED.encode(), "", URL)
    assert isinstance(found, Feed)
    assert found == read_payload("feed", FEED.encode(), "", URL)


@pytest.mark.parametrize(("kind", "payload"), [("feed", PAGE.encode()), ("page", bytes(range(256)) * 20)])
def test_a_feed_that_is_not_a_feed_and_a_page_that_is_not_text_are_none(kind, payload):
    assert read_payload(kind, payload, "", URL) is None


def test_images_have_one_hash_in_every_size_and_another_if_they_show_something_else():
    left = np.zeros((64, 64), np.uint8)
    left[:, :32] = 255
    found = read_payload("image", png(left), "", URL)
    assert len(found) == 8
    assert read_payload("image", png(left.repeat(3, 0).repeat(3, 1)), "", URL) == found
    different = int.from_bytes(found, "big") ^ int.from_bytes(read_payload("image", png(left.T.copy()), "", URL), "big")
    assert different.bit_count() > 16


def test_an_image_that_would_fill_the_memory_is_an_error(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1_000)
    with pytest.raises(Image.DecompressionBombWarning):
        read_payload("image", png(np.zeros((40, 40), np.uint8)), "", URL)
