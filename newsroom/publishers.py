"""The publishers: voice, layout and byline habits."""

import dataclasses
import enum


class DateHabit(enum.StrEnum):
    """Where a publisher shows the day of an article."""

    JSON_LD = "json_ld"
    OPEN_GRAPH = "open_graph"
    PLAIN_TEXT = "plain_text"  # "By X | 3 March 2022"
    RELATIVE_TIME = "relative_time"  # "2 hours ago" in a <time> with a machine-readable date
    RELATIVE_URL = "relative_url"  # "2 hours ago", and the date in the URL only
    DUBLIN_CORE = "dublin_core"


class AuthorHabit(enum.StrEnum):
    """Where a publisher names the author."""

    JSON_LD = "json_ld"
    META = "meta"
    PLAIN_TEXT = "plain_text"
    LINK = "link"  # rel="author"


class UrlHabit(enum.StrEnum):
    """Shape of an article's path."""

    DATED = "dated"  # /2022/03/14/slug
    SECTION = "section"  # /politics/slug-1234.html
    NUMBER = "number"  # /article/1234


@dataclasses.dataclass(frozen=True)
class Publisher:
    """One fictional news site.

    Attributes:
      slug: the host is ``www.<slug>.example``.
      voice: vocabulary and family of sentences; neighbours in number disagree on every choice of words.
      layout: number of the HTML layout.
      no_author / no_date: share of articles that lack them.
      logo_images: share of articles illustrated with the site's logo.
      feed: rss, atom or json.
      sitemap: whether robots.txt names one.
      keywords: whether pages carry a keywords meta.
      per_page: articles on one page of a hub.
    """

    slug: str
    name: str
    language: str
    voice: int
    layout: int
    date_habit: DateHabit
    author_habit: AuthorHabit
    url_habit: UrlHabit
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


_D, _A, _U = DateHabit, AuthorHabit, UrlHabit
PUBLISHERS = (
    Publisher(
        "harbourtimes", "Harbour Times", "en", 0, 0, _D.JSON_LD, _A.JSON_LD, _U.DATED, keywords=True, sitemap=True
    ),
    Publisher(
        "inlandledger", "Inland Ledger", "en", 1, 1, _D.OPEN_GRAPH, _A.META, _U.SECTION, feed="atom", keywords=True
    ),
    Publisher("copperbell", "The Copper Bell", "en", 2, 2, _D.PLAIN_TEXT, _A.PLAIN_TEXT, _U.SECTION, no_author=0.06),
    Publisher("morningferry", "Morning Ferry", "en", 3, 3, _D.RELATIVE_TIME, _A.LINK, _U.NUMBER, logo_images=0.4),
    Publisher(
        "quaysidepost", "Quayside Post", "en", 4, 0, _D.RELATIVE_URL, _A.META, _U.DATED, no_author=0.1, keywords=True
    ),
    Publisher("wirelight", "Wirelight", "en", 5, 1, _D.JSON_LD, _A.JSON_LD, _U.NUMBER, no_date=0.05, feed="json"),
    Publisher(
        "nordwindkurier", "Nordwind-Kurier", "de", 0, 1, _D.JSON_LD, _A.JSON_LD, _U.SECTION, keywords=True, sitemap=True
    ),
    Publisher("talbote", "Der Talbote", "de", 1, 2, _D.PLAIN_TEXT, _A.PLAIN_TEXT, _U.DATED, no_author=0.06),
    Publisher("abendlaterne", "Abendlaterne", "de", 2, 3, _D.RELATIVE_TIME, _A.LINK, _U.NUMBER, logo_images=0.3),
    Publisher(
        "stadtspiegelung",
        "Stadtspiegelung",
        "de",
        3,
        0,
        _D.OPEN_GRAPH,
        _A.META,
        _U.SECTION,
        no_date=0.04,
        keywords=True,
    ),
    Publisher("farodiario", "El Faro Diario", "es", 0, 2, _D.OPEN_GRAPH, _A.META, _U.DATED, keywords=True),
    Publisher("vozdelmuelle", "La Voz del Muelle", "es", 1, 0, _D.JSON_LD, _A.JSON_LD, _U.SECTION, sitemap=True),
    Publisher("cronicaserrana", "Crónica Serrana", "es", 2, 1, _D.DUBLIN_CORE, _A.META, _U.NUMBER, no_author=0.06),
    Publisher(
        "diariomolino",
        "Diario del Molino",
        "es",
        3,
        3,
        _D.PLAIN_TEXT,
        _A.PLAIN_TEXT,
        _U.DATED,
        logo_images=0.3,
        no_date=0.04,
    ),
    Publisher("vestnikgavani", "Вестник гавани", "ru", 0, 0, _D.JSON_LD, _A.JSON_LD, _U.SECTION, keywords=True),
    Publisher("severnyparom", "Северный паром", "ru", 1, 2, _D.OPEN_GRAPH, _A.META, _U.DATED, no_author=0.06),
)


def of_language(language: str) -> tuple[Publisher, ...]:
    """The publishers of a language."""
    return tuple(publisher for publisher in PUBLISHERS if publisher.language == language)
