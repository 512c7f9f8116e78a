"""Fuzz target: any bytes give a page, a feed or an error; never a crash, or text that cannot be encoded.

With atheris (in the `dev` extra on Linux):

    python tests/beam_pipelines/extract/fuzz_page.py -max_total_time=60 FOLDER_OF_PAGES

`test_fuzz.py` runs it on examples from hypothesis, and briefly with atheris if that is installed.
"""

import contextlib
import sys

if __name__ == "__main__":
    import atheris

    watched = atheris.instrument_imports(include=["newsembed"])
else:
    watched = contextlib.nullcontext()
with watched:
    from newsembed.beam_pipelines.extract.page import ExtractedPage
    from newsembed.beam_pipelines.extract.payload import read_payload

SEED = b"""<html lang="en"><head><title>Title - Site</title><meta property="og:type" content="article">
<script type="application/ld+json">
{"@type": "NewsArticle", "headline": "Title", "datePublished": "2021-03-01T23:30:00-05:00",
"author": [{"name": "By Ann Lee"}]}</script></head>
<body><article class="story-body"><h1>Title</h1>
<p class="byline">By Ann Lee, <a rel="author" href="/x">The Paper</a><time datetime="2021-03-01">1 March 2021</time></p>
<p>The council of the river town voted late on Tuesday to raise the embankment before the autumn rains arrive.<br><br>
Read more: <a href="/b">next</a></p>
<ul><li><a href="//s.example/a?utm_source=x">A headline about something new</a></ul></article></body></html>"""


def check(raw: bytes) -> None:
    """One input, as a page and as a feed.

    Raises:
      AssertionError: if what comes out cannot be written as a record.
    """
    page = read_payload("page", raw, "", "http://s.example/2021/03/01/story")
    if isinstance(page, ExtractedPage):
        assert (page.article is not None) + (page.hub_title is not None) + (page.rejection is not None) == 1
        for target, words in page.links:
            assert target.startswith("http://")
            words.encode()
        if page.article is not None:
            article = page.article
            assert article.title
            for text in (
                article.url,
                article.title,
                article.body,
                article.language,
                article.image_url,
                *article.authors,
                *article.keywords,
            ):
                text.encode()
            assert len(article.body) <= 50_000
            assert set(article.sources) <= {"title", "body", "authors", "byline_date", "modified_date", "keywords"}
    read_payload("feed", raw, "", "http://s.example/feed")


if __name__ == "__main__":
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()
