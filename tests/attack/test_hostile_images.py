"""Images of strangers: bombs, scripts and broken files have no hash, and are counted; the articles stay."""

import gzip
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.state import WarcWriter
from newsembed.beam_pipelines.vectors import Space
from newsembed.formats import parquet
from newsembed.formats.records import Article
from newsembed.launch import cli
from newsembed.studies.report import samples
from PIL import Image
from targets import ONE, rows

pytestmark = pytest.mark.filterwarnings("ignore")  # as in the command line
SVG = b"""<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script><text>&x;</text></svg>"""
EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
%%EndComments
(%pipe%touch /tmp/owned) (w) file closefile showpage
%%EOF
"""


def saved(kind, size=(64, 64), **options):
    """A picture, which is not of one colour, in a format."""
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(buffer, kind, **options)
    return buffer.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, data, *more):
    """A PNG that says that it has this size."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def zipped(depth):
    """A zip file in zip files."""
    raw = bytes(1_000_000)
    for _ in range(depth):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as sink:
            for name in "abcd":
                sink.writestr(name, raw)
        raw = buffer.getvalue()
    return raw


def icon(picture):
    """An icon that holds a PNG."""
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(picture), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + picture


def tiff(width, height):
    """A TIFF whose strips lie beyond its end, and whose next directory is itself."""
    tags = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 5), (262, 3, 1, 1)]
    tags += [(273, 4, 1, 0xFFFFFF00), (277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, 0xFFFFFF00)]
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<I", 8) + body + struct.pack("<I", 8)


PNG = saved("PNG")
BROKEN = {
    "huge PNG": png(60_000, 60_000, bytes(1_000)),
    "largest PNG": png(2**31 - 1, 2**31 - 1, bytes(9)),
    "PNG of no size": png(0, 0, b""),
    "bomb in a PNG": png(9_000, 9_000, bytes(9_000 * 9_001))[:-40],
    "bomb in a profile": png(8, 8, bytes(72), chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(80_000_000)))),
    "bomb in a text": png(8, 8, bytes(72), chunk(b"zTXt", b"t\0\0" + zlib.compress(bytes(80_000_000))))[:60],
    "PNG in an icon": icon(png(30_000, 30_000, bytes(99))),
    "zip in zip files": zipped(4),
    "PNG in gzip in gzip": gzip.compress(gzip.compress(PNG)),
    "huge GIF": b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0) + b",\0\0\0\0\xff\xff\xff\xff\0\x02\x01\0;",
    "huge BMP": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 2**31 - 1, 1 - 2**31, 1, 24, *[0] * 6),
    "TIFF with a loop": tiff(9_000, 9_000),
    "SVG as SVG": SVG,
    "SVG as PNG": SVG,
    "PostScript as PNG": EPS,
    "PostScript as EPS": EPS,
    "half a PNG": PNG[: len(PNG) // 2],
    "half a JPEG": saved("JPEG")[:200],
    "half a WebP": saved("WEBP")[:60],
    "nothing": b"",
    "zeros": bytes(5_000),
    "HTML": b"<script>alert(1)</script>",
}
TYPES = {"SVG as SVG": "image/svg+xml", "PostScript as EPS": "application/postscript"}
WHOLE = {"PNG": PNG, "JPEG": saved("JPEG"), "WebP": saved("WEBP"), "GIF": saved("GIF"), "BMP": saved("BMP")}


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    """The folder of a job that has read a page for each image; a program `gs` in the path says if it was started."""
    folder = tmp_path_factory.mktemp("images")
    sink, images = io.BytesIO(), {**BROKEN, **WHOLE}
    writer = WarcWriter(sink, "test")
    for number, ((name, payload), row) in enumerate(zip(images.items(), rows(len(images)), strict=True)):
        image = f"http://n0.example/{number}.png"
        body = "".join(f"<p>{sentence}.</p>" for sentence in row["body"].split(". "))
        head = f'<title>{name}</title><meta name="date" content="{row["byline_date"]}">'
        head += f'<meta property="og:title" content="{name}"><meta property="og:image" content="{image}">'
        page = f'<html lang="en"><head>{head}</head><body><article><h1>{name}</h1>{body}</article></body></html>'
        writer.write(Fetched(f"http://n0.example/{number}", 200, "OK", (("Content-Type", "text/html"),), page.encode()))
        writer.write(Fetched(image, 200, "OK", (("Content-Type", TYPES.get(name, "image/png")),), payload))
    (folder / "images.warc.gz").write_bytes(sink.getvalue())
    with pytest.MonkeyPatch.context() as patch:
        (folder / "bin").mkdir()
        (folder / "bin/gs").write_text(f"#!/bin/sh\ntouch {folder}/started\nexit 1\n")
        (folder / "bin/gs").chmod(0o755)
        patch.setenv("PATH", str(folder / "bin"), prepend=":")
        command = ["extract", "--warc", str(folder / "images.warc.gz"), "--output", str(folder / "out"), ONE]
        assert cli.main(command) == 0
    return folder


def articles_of(folder):
    return {one.title: one for one in parquet.read_stream(str(folder / "out/articles"), Article)}


def test_every_article_stays_and_only_whole_images_have_a_hash(extracted):
    found = articles_of(extracted)
    assert set(found) == {*BROKEN, *WHOLE}
    assert {name for name, one in found.items() if one.image_hash} == set(WHOLE)
    assert len({one.image_hash for one in found.values() if one.image_hash}) <= 2  # lossy formats may differ in a bit


def test_what_has_no_hash_is_counted_with_a_reason(extracted):
    manifest = json.loads((extracted / "out/manifest.json").read_text())
    counts = manifest["counts"]
    lost = sum(counts["rejected"].values()) + sum(counts["failed"].values())
    assert counts["in"] == counts["out"] + lost
    reasons = {group.reason: group.count for group in samples.rejected(str(extracted / "out"))}
    assert sum(reasons.values()) == lost
    assert lost == len(BROKEN), reasons


def test_no_image_starts_a_program(extracted):
    assert not (extracted / "started").exists()
    assert not Path("/tmp/owned").exists()


def test_the_image_space_has_the_whole_images_only(extracted, tmp_path):
    commands = [
        f"clean --articles {extracted}/out --output {tmp_path}/clean --require_author=false --min_words=5 {ONE}",
        f"entities --articles {tmp_path}/clean --output {tmp_path}/entities --built_in_names=false {ONE}",
        f"vectors --articles {tmp_path}/clean --entities {tmp_path}/entities --output {tmp_path}/vectors {ONE}",
    ]
    for command in commands:
        assert cli.main(command.split()) == 0
    counts = json.loads((tmp_path / "vectors/manifest.json").read_text())["counts"]
    kept = {one.title for one in parquet.read_stream(str(tmp_path / "clean/articles"), Article)}
    assert kept
    assert Space.IMAGE in json.dumps(counts) or not kept & set(WHOLE)
