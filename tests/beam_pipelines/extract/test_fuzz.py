"""Any bytes give a page, a feed or an error; never a crash, or text that cannot be encoded."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.extract.isolation import read_payload
from newsembed.beam_pipelines.extract.page import ExtractedPage

SEED = b"""<html lang="en"><head><title>Title - Site</title><meta property="og:type" content="article">
<script type="application/ld+json">
{"@type": "NewsArticle", "headline": "Title", "datePublished": "2021-03-01T23:30:00-05:00",
"author": [{"name": "By Ann Lee"}]}</script></head>
<body><article class="story-body"><h1>Title</h1>
<p class="byline">By Ann Lee, <a rel="author" href="/x">The Paper</a><time datetime="2021-03-01">1 March 2021</time></p>
<p>The council of the river town voted late on Tuesday to raise the embankment before the autumn rains arrive.<br><br>
Read more: <a href="/b">next</a></p>
<ul><li><a href="//s.example/a?utm_source=x">A headline about something new</a></ul></article></body></html>"""


def check(raw):
    """One input, as a page and as a feed: what comes out can be written as a record."""
    page = read_payload(99, "page", raw, "", "http://s.example/2021/03/01/story")
    if isinstance(page, ExtractedPage):
        assert (page.article is not None) + (page.hub_title is not None) + (page.rejection is not None) == 1
        for target, words in page.links:
            assert target.startswith("http://")
            words.encode()
        if page.article is not None:
            article = page.article
            assert article.title
            texts = (article.url, article.title, article.body, article.language, article.image_url)
            "".join((*texts, *article.authors, *article.keywords)).encode()
            assert len(article.body) <= 50_000
            assert all(": " in source for source in article.sources)
    read_payload(99, "feed", raw, "", "http://s.example/feed")


TAGS = (
    "div p a article span h1 ul li table td br time script title meta form aside blockquote svg template a:b 1"
).split()
NAMES = "class id href itemprop rel style datetime property content type charset hidden".split()
VALUES = (
    "byline|story-body|comment|/a/1|http://[|author name|display:none|2021-13-40|og:title|application/ld+json|utf-4|"
).split("|")
attribute = st.builds(' {}="{}"'.format, st.sampled_from(NAMES), st.sampled_from(VALUES) | st.text(max_size=8))
opening = st.builds("<{}{}>".format, st.sampled_from(TAGS), st.lists(attribute, max_size=3).map("".join))
closing = st.sampled_from(TAGS).map("</{}>".format)
prose = "The council voted late on Tuesday, it said, to raise the embankment. " * 3
fragments = ["By Ann Lee", prose, "Read more", '{"@type": "NewsArticle"', "&#xd800;", "\x00"]
words = st.text(max_size=30) | st.sampled_from(fragments)
page = st.lists(opening | closing | words, max_size=40).map("".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(page)
def test_any_markup_is_read_or_refused(text):
    check(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.integers(0, len(SEED)), st.integers(0, 60))
def test_a_page_with_bytes_overwritten_is_read_or_refused(junk, at, gone):
    check(SEED[:at] + junk + SEED[at + gone :])
