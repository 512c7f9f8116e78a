"""Canonical URLs and registered domains, by values worked by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.formats.urls import canonical_url, parsed_url, registered_domain

PAGE = "http://s.example/town/1"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("http://s.example", "http://s.example/"),
        ("https://s.example/a/b///", "http://s.example/a/b"),
        ("http://s.example//a//b", "http://s.example/a/b"),
        ("HTTP://WWW.S.Example./A", "http://s.example/A"),
        ("http://www./a", "http://www/a"),  # nothing would be left of the host
        ("http://s.example:80/a", "http://s.example/a"),
        ("https://s.example:443/a", "http://s.example/a"),
        ("http://s.example:8080/a", "http://s.example:8080/a"),
        ("http://me:secret@s.example/a", "http://s.example/a"),
        ("http://[2001:DB8::1]:81/a", "http://[2001:db8::1]:81/a"),
        ("http://s.example/a?b=2&a=&b=1", "http://s.example/a?a=&b=1&b=2"),
        ("http://s.example/a?utm_medium=x&GCLID=y&refresh=1", "http://s.example/a?refresh=1"),
        ("http://s.example/a;p?x=1#top", "http://s.example/a;p?x=1"),
        ("http://s.example/ä b%20c", "http://s.example/%C3%A4%20b%20c"),
        ("  http://s.example/a\n", "http://s.example/a"),
        ("HTTPS:/s.example/a", "http://s.example/a"),
        ("http:///a", ""),
        ("ftp://s.example/a", ""),
        ("http://s.example:port/a", ""),
        ("http://[s.example/a", ""),
        ("/a", ""),
        # Parameters that choose a page stay, others go.
        *((f"http://s.example/{page}", f"http://s.example/{page}") for page in ("v?action=1", "v?ref=2", "v?region=n")),
        ("http://www.nytimes.com/a?action=click&region=top&id=1", "http://nytimes.com/a?id=1"),
        ("http://news.bbc.co.uk/a?ocid=x&b=1&at_medium=RSS", "http://news.bbc.co.uk/a?b=1"),
        ("http://s.example/a?fbclid=1&gclid=2&mc_cid=3&_ga=4&UTM_Source=5&utm_x=6", "http://s.example/a"),
        ("http://s.example/a;jsessionid=0A1B.node2?b=1", "http://s.example/a?b=1"),
        ("http://s.example/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "http://s.example/a.aspx"),
        ("http://s.example/a?PHPSESSID=abc&sid=0123456789abcdef0123456789abcdef", "http://s.example/a"),
        ("http://s.example/a?sid=1234&session=2", "http://s.example/a?session=2&sid=1234"),
        ("http://s.example/%d8%a7?q=%e4%f6", "http://s.example/%D8%A7?q=%E4%F6"),  # not UTF-8, and yet two pages
        (
            "http://s.example/a?PHPSESSIONID=abc&BV_SessionID=@1&s=0123456789abcdef0123456789abcdef",
            "http://s.example/a",
        ),
        ("http://s.example/%7Ea/%61%2f%28b%27%29", "http://s.example/~a/a%2F(b')"),
        ("http://s.example/a/../b/./%2e%2e/c", "http://s.example/c"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("http://stra\u00dfe.example/", "http://xn--strae-oqa.example/"),
    ],
)
def test_canonical_urls(url, canonical):
    assert canonical_url(url) == canonical == canonical_url(canonical)


def test_relative_urls_are_resolved_on_their_page():
    assert canonical_url("../2", PAGE) == "http://s.example/2"
    assert canonical_url("", PAGE) == PAGE
    assert canonical_url("//t.example/3", PAGE) == "http://t.example/3"
    assert canonical_url("http://t.example/3", PAGE) == "http://t.example/3"


# Pieces of URLs, ordinary and odd.
PIECES = [
    *("http://", "https://", "HTTP://", "http:/", "//", "/", "?", "&", "=", "#", ";", ":", "@", ".", "..", "www."),
    *"www.s.example s.example S.Example news a-1 A %20 %C3 %2e % + utm_source= ref b=".split(),
    *("80", ":81", "[", "]", "\\", "'", "(", ",", "~", "_", "-", "|", "{", '"', "<", "ü", "日", "\x00", "\u2029"),
    *(" ", "\t", "\n"),
]
URLS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
PLAIN = st.lists(
    st.sampled_from(
        ["https://www.s.example", "/town", "/", "/.", "/..", ".htm", "?", "q=1", "&", "utm_id=2", "a", "="]
    ),
    max_size=8,
).map("".join)
BASES = st.sampled_from(["", PAGE, "https://www.S.example:81", "http://[x", "ftp://x/a", "mailto:a", "town/2", "//t/a"])


@settings(max_examples=500, deadline=None)
@given(st.one_of(URLS, PLAIN), st.one_of(BASES, URLS))
def test_the_short_way_gives_what_parsing_gives(url, base):
    assert canonical_url(url, base) == parsed_url(url, base)


@settings(max_examples=200, deadline=None)
@given(st.one_of(URLS, PLAIN))
def test_a_canonical_url_is_its_own_canonical_url_and_keeps_its_domain(url):
    canonical = canonical_url(url, PAGE)
    assert canonical_url(canonical) == canonical
    if canonical:
        parsed = registered_domain(canonical.replace("http://", "http://user@"))
        assert registered_domain(canonical) == parsed


def test_a_query_has_one_spelling():
    for query in ("q=a%20b&p=%C3%BC", "p=\u00fc&q=a+b", "q=a+b&&p=%c3%bc", "utm_source=x%20y&q=a b&p=\u00fc"):
        assert canonical_url(f"http://s.example/?{query}") == "http://s.example/?p=%C3%BC&q=a+b"
    assert canonical_url("http://s.example/?b&a=&c=1") == "http://s.example/?a=&b=&c=1"


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("http://a.b.bbc.co.uk:80/x", "bbc.co.uk"),
        ("http://s.example/", "s.example"),
        ("http://a.b.c.zz-unknown/", "c.zz-unknown"),
        ("http://NEWS.S.example./", "s.example"),
        ("http://[::1]/", "::1"),
        ("/a", ""),
        ("http://[x", ""),
    ],
)
def test_registered_domains(url, domain):
    assert registered_domain(url) == domain
