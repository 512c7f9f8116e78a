"""The publishers: voice, layout and byline habits."""

import dataclasses
import json

from .prose import load_prose


@dataclasses.dataclass(frozen=True)
class Publisher:
    """One fictional news site, a line of ``prose_names.txt``.

    Attributes:
      language: of its articles.
      slug: the host is ``www.<slug>.example``.
      name: as it calls itself.
      voice: vocabulary and family of sentences; neighbours in number disagree on every choice of words.
      layout: number of the HTML layout.
      date_habit: where it shows the day of an article: json_ld, open_graph, dublin_core, plain_text ("By X | 3 March
        2022"), relative_time ("2 hours ago" in a ``time`` element with a machine-readable date) or relative_url ("2
        hours ago", and the date in the URL only).
      author_habit: where it names the author: json_ld, meta, plain_text or link (rel="author").
      url_habit: shape of an article's path: dated (/2022/03/14/slug), section (/politics/slug-1234.html) or number
        (/article/1234).
      no_author / no_date: share of articles that lack them.
      logo_images: share of articles illustrated with the site's logo.
      feed: rss, atom or json.
      sitemap: whether robots.txt names one.
      keywords: whether pages carry a keywords meta.
      per_page: articles on one page of a hub.
    """

    language: str
    slug: str
    name: str
    voice: int
    layout: int
    date_habit: str
    author_habit: str
    url_habit: str
    no_author: float = 0.03
    no_date: float = 0.0
    logo_images: float = 0.0
    feed: str = "rss"
    sitemap: bool = False
    keywords: bool = False
    per_page: int = 15

    @property
    def host(self) -> str:
        """The host of its site."""
        return f"www.{self.slug}.example"

    @property
    def home(self) -> str:
        """The address of its site, without a final slash."""
        return f"http://{self.host}"

    def says(self, word: str, **values: object) -> str:
        """The words around its articles, such as those of the navigation."""
        return load_prose(self.language).say(word, **values)


def _publisher(language: str, line: str) -> Publisher:
    slug, name, voice, layout, date, author, url, *more = line.split(" | ")
    others = {key: json.loads(value) for key, value in (habit.split("=") for habit in more)}
    return Publisher(language, slug, name, int(voice), int(layout), date, author, url, **others)


PUBLISHERS = tuple(
    _publisher(language, line)
    for language, lines in load_prose("names").sections["publisher"].items()
    for line in lines
)


def of_language(language: str) -> tuple[Publisher, ...]:
    """The publishers of a language."""
    return tuple(publisher for publisher in PUBLISHERS if publisher.language == language)
