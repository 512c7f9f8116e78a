"""What a response is: its type by header and bytes, and XML that is sent with mistakes."""

import time

import pytest
from newsembed.beam_pipelines.extract.feeds import parse_feed
from newsembed.beam_pipelines.extract.isolation import read_payload
from newsembed.beam_pipelines.extract.responses import kind_of, media_type
from newsembed.beam_pipelines.extract.xml_text import html_of, root_of

HTML = '<!DOCTYPE html PUBLIC "x" "y">\n<html xmlns="http://www.w3.org/1999/xhtml"><body/></html>'
XHTML = f'<?xml version="1.0"?>\n{HTML}'


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ("", "")),
        (['Text/HTML; Charset="GBK"'], ("text/html", "GBK")),
        (["text/html;charset=gbk", "text/html"], ("text/html", "gbk")),
        (["text/html;charset=gbk", "text/plain, */*"], ("text/plain", "")),
        (["html", "text/xml ; x=1; charset=utf-8"], ("text/xml", "utf-8")),
        (["html"], ("", "")),
    ],
)  # fmt: skip
def test_the_last_valid_type_counts(values, expected):
    assert media_type(values) == expected


@pytest.mark.parametrize(
    ("content_type", "payload", "kind"),
    [
        ("", b"\xef\xbb\xbf \n<!doctype HTML><p>x", "page"),
        ("unknown/unknown", b"<!-- x --><p>", "page"),
        ("", b"<p>x", "page"),
        ("", XHTML.encode(), "xhtml"),
        ("", "<html>".encode("utf-16"), "page"),
        ("", b"\x89PNG\r\n\x1a\n", "image"),
        ("", b"%PDF-1.4", None),
        ("", b"plain text", None),
        ("", b"<?xml version='1.0'?><!-- x --><rss>", "feed"),
        ("application/xml", XHTML.encode(), "xhtml"),
        ("text/xml", f"<!-- {'x' * 9_000} -->{HTML}".encode(), "xhtml"),
        ("text/xml", b"<rss>", "feed"),
        ("text/plain", b"<!DOCTYPE html><p>source", None),
        ("text/plain", b"<?xml version='1.0'?><rss>", "feed"),
        ("application/octet-stream", b"<feed>", "feed"),
        ("image/svg+xml", b"<svg>", "feed"),
        ("text/html", b"anything", "page"),
    ],
)
def test_header_and_bytes_say_how_a_response_is_read(content_type, payload, kind):
    assert kind_of(content_type, payload) == kind


def test_xhtml_is_read_by_the_rules_of_xml():
    head, text = '<head><script src="x"/><title/></head>', "A&nbsp;B <![CDATA[<b> & c]]>"
    found = html_of(XHTML.replace("<body/>", f"{head}<body><p>{text}</p></body>").encode(), "")
    assert '<script src="x"></script>' in found
    assert "A\xa0B &lt;b&gt; &amp; c" in found
    assert html_of(b"<html><p>not well-formed</html>", "") is None
    body = "".join(f"<p>The council of the river town voted on Tuesday, item {place}.</p>" for place in range(20))
    head = '<head><title>News</title><script src="x"/></head>'
    page = XHTML.replace("<body/>", f"{head}<body><article>{body}</article></body>")
    assert read_payload(9, "xhtml", page.encode(), "", "http://s.example/1").article.title == "News"


def rss(link, title="One", start="<rss>"):
    return f"{start}<item><title>{title}</title><link>{link}</link></item></rss>"


LINKS = '<link rel="enclosure" href="a"/><link rel="alternate" type="application/pdf" href="b"/><link href="c"/>'
ATOM = f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/x/"><entry xml:base="y/">{LINKS}</entry></feed>'
RUSSIAN = "\u041d\u043e\u0432\u043e\u0441\u0442\u0438"
COUNTED = "<rss><item><link>/count/1</link><feedburner:origLink>/1</feedburner:origLink></item></rss>"
PHOTO = rss("/1", "1 &lt; 2 &amp;amp; &nbsp;&eacute;&#146;\x0b").replace("<item>", "<item><media:title>P</media:title>")
DECLARED = "<?xml version='1.0' encoding='windows-1251'?><rss>"
FEEDS = {
    "a long comment": (rss("/1", start=f"<!--{'x' * 9_000}--><rss>"), "/1", "One"),
    "a warning": (rss("/1", start="<br />\n<b>Warning</b>: line 3\n<?xml version='1.0'?><rss>"), "/1", "One"),
    "an ampersand": (rss("/v?a=1&b=2&copy=3"), "/v?a=1&b=2&copy=3", "One"),
    "escaped twice": (rss("/v?a=1&amp;amp;b=2"), "/v?a=1&b=2", "One"),
    "CDATA": (rss("<![CDATA[ /v?a=1&b=2 ]]>"), "/v?a=1&b=2", "One"),
    "a photo": (PHOTO, "/1", "1 < 2 & \u00e9\u2019"),
    "a counter": (COUNTED, "/1", ""),
    "XML Base": (ATOM, "/x/y/c", ""),
    "an entity": (rss("/1", "&p; &x;", '<!DOCTYPE rss [<!ENTITY p "Paper">]><rss>'), "/1", "Paper &x;"),
    "UTF-16": (rss("/1").encode("utf-16-le"), "/1", "One"),
    "windows-1251": (rss("/1", RUSSIAN, DECLARED).encode("cp1251"), "/1", RUSSIAN),
}


@pytest.mark.parametrize(("raw", "path", "title"), FEEDS.values(), ids=FEEDS)
def test_feeds_with_mistakes_are_read(raw, path, title):
    payload = raw if isinstance(raw, bytes) else raw.encode()
    assert parse_feed(payload, "http://s.example/feed").entries == ((f"http://s.example{path}", title),)


@pytest.mark.parametrize("piece", ["<!-- x -->", "<!-- ", "<![CDATA[", "&amp", "<", "<?xml ", "<!DOCTYPE x ["])
def test_hostile_markup_takes_linear_time(piece):
    started = time.process_time()
    for start in ("", "<rss>"):
        parse_feed((start + piece * 50_000).encode())
        root_of(start + piece * 50_000)
    assert time.process_time() - started < 5
