"""HTML of articles and hubs in four layouts, and feeds: RSS 2.0, Atom or JSON Feed, as the publisher prefers."""

import dataclasses
import datetime
import email.utils
import html
import json
import random
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from .articles import Story, slug
from .prose import load_prose
from .world import Publisher

_LONGEST_FEED = 60  # a feed holds the newest articles only


@dataclasses.dataclass(frozen=True)
class Link:
    """A link with its text."""

    text: str
    url: str

    def html(self) -> str:
        """The link as HTML."""
        return f'<a href="{html.escape(self.url)}">{html.escape(self.text, quote=False)}</a>'


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """The parts of a page around the article.

    Attributes:
      navigation: sections of the site.
      inline: links inside the text.
      most_read: teasers next to the article.
      related: teasers below it.
      image_url: address of the thumbnail.
    """

    navigation: Sequence[Link]
    inline: Sequence[Link]
    most_read: Sequence[Link]
    related: Sequence[Link]
    image_url: str


def author_url(publisher: Publisher, author: str) -> str:
    """The address of an author's page."""
    return f"{publisher.home}/author/{slug(author)}/"


def article_page(story: Story, around: Surroundings, random: random.Random) -> str:
    """The whole page of an article."""
    says = story.publisher.says
    image = f'<figure><img src="{around.image_url}" alt=""><figcaption>{says("caption")}</figcaption></figure>'
    body = _paragraphs(story, around, random)
    return _layout(
        story.publisher,
        around.navigation,
        story.title,
        head=_head(story, around),
        content=image + body,
        byline=_byline(story, random),
        after=f"<h2>{says('related')}</h2><ul>{_items(around.related)}</ul>",
        aside=f"<h3>{says('most_read')}</h3><ol>{_items(around.most_read)}</ol><p>{says('newsletter')}</p>",
    )


def hub_page(
    publisher: Publisher, title: str, entries: Sequence[Link], further: Sequence[Link], navigation: Sequence[Link]
) -> str:
    """A list of links below a heading; ``further`` are links to the other pages and lists of the hub."""
    teasers = "".join(f'<li class="teaser"><h3>{entry.html()}</h3></li>' for entry in entries)
    pages = f'<p class="pages">{" ".join(link.html() for link in further)}</p>' if further else ""
    head = f'<meta property="og:type" content="website"><meta property="og:title" content="{html.escape(title)}">'
    content = f'<ul class="list">{teasers}</ul>{pages}'
    return _layout(publisher, navigation, title, head=head, content=content, byline="", after="", aside="")


def _items(links: Sequence[Link]) -> str:
    return "".join(f"<li>{link.html()}</li>" for link in links)


def _paragraphs(story: Story, around: Surroundings, random: random.Random) -> str:
    """Paragraphs of one to three sentences, with the links to other articles between them."""
    more = story.publisher.says("more")
    sentences = [html.escape(sentence, quote=False) for sentence in story.sentences]
    paragraphs: list[str] = []
    while sentences:
        size = random.randint(1, 3)
        paragraphs.append(f"<p>{' '.join(sentences[:size])}</p>")
        sentences = sentences[size:]
    for link in around.inline:
        paragraphs.insert(random.randint(1, len(paragraphs)), f'<p class="more">{more}: {link.html()}</p>')
    return "\n".join(paragraphs)


def _head(story: Story, around: Surroundings) -> str:
    """Machine-readable facts, as far as the publisher's habits go."""
    publisher = story.publisher
    tags = [
        f'<link rel="canonical" href="{story.url}">',
        '<meta property="og:type" content="article">',
        f'<meta property="og:title" content="{html.escape(story.title)}">',
        f'<meta property="og:image" content="{around.image_url}">',
        f'<meta property="og:url" content="{story.url}">',
        f'<meta property="og:site_name" content="{html.escape(publisher.name)}">',
    ]
    if story.keywords:
        tags.append(f'<meta name="keywords" content="{html.escape(", ".join(story.keywords))}">')
    stamp = story.published.isoformat()
    if story.shows_date and publisher.date_habit == "open_graph":
        tags.append(f'<meta property="article:published_time" content="{stamp}">')
    if story.shows_date and publisher.date_habit == "dublin_core":
        tags.append(f'<meta name="DC.date.issued" content="{stamp[:10]}">')
    if story.author and publisher.author_habit == "meta":
        tags.append(f'<meta name="author" content="{html.escape(story.author)}">')
    if publisher.date_habit == "json_ld":
        tags.append(_json_ld(story, around))
    return "\n".join(tags)


def _json_ld(story: Story, around: Surroundings) -> str:
    data: dict[str, object] = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": story.title,
        "mainEntityOfPage": story.url,
        "image": [around.image_url],
        "inLanguage": story.publisher.language,
        "publisher": {"@type": "Organization", "name": story.publisher.name},
    }
    if story.shows_date:
        data["datePublished"] = story.published.isoformat()
        data["dateModified"] = (story.published + datetime.timedelta(minutes=35)).isoformat()
    if story.author:
        data["author"] = [{"@type": "Person", "name": story.author, "url": author_url(story.publisher, story.author)}]
    return f'<script type="application/ld+json">{json.dumps(data, ensure_ascii=False)}</script>'


def _byline(story: Story, random: random.Random) -> str:
    publisher, author, day = story.publisher, story.author, story.published
    by, parts = publisher.says("by"), list[str]()
    if author:
        url = author_url(publisher, author)
        parts.append(
            {
                "link": f'<span class="byline">{by} <a rel="author" class="author" href="{url}">{author}</a></span>',
                "plain_text": f'<span class="author">{by} {author}</span>',
            }.get(publisher.author_habit, f'<span class="writer"><a href="{url}">{author}</a></span>')
        )
    ago = publisher.says("ago", n=random.randint(2, 20))
    month = load_prose(publisher.language).words("month")[day.month - 1]
    match publisher.date_habit:
        case "plain_text" if story.shows_date:
            shown = publisher.says("long_date", day=day.day, month=month, year=day.year)
            parts.append(f'<span class="date">{shown}</span>')
        case "relative_time" if story.shows_date:
            parts.append(f'<time datetime="{day.isoformat()}">{ago}</time>')
        case "relative_url":
            parts.append(f'<span class="age">{ago}</span>')
    return f'<div class="meta">{" | ".join(parts)}</div>'


def _layout(publisher: Publisher, navigation: Sequence[Link], title: str, **parts: str) -> str:
    """A page in the layout of a publisher; the title is text, the parts (head, content and others) are HTML."""
    words = {word: lines[0] for word, lines in load_prose(publisher.language).sections["interface"].items()}
    title = html.escape(title, quote=False)
    values: dict[str, object] = words | parts | {"publisher": publisher, "title": title, "nav": _items(navigation)}
    values |= {part: _filled("page", part, values) for part in ("footer", "banner")}
    inner = "".join(load_prose("pages").lines("layout", str(publisher.layout))).format(**values)
    return f"{_filled('page', 'page', values | {'inner': inner})}\n"


def _filled(section: str, slot: str, values: Mapping[str, object]) -> str:
    """A template of ``prose_pages.txt`` with its values."""
    return "\n".join(load_prose("pages").lines(section, slot)).format(**values)


def feed_url(publisher: Publisher, section: str) -> str:
    """The address of a section's feed; ``section`` is its slug."""
    ending = {"rss": "rss.xml", "atom": "atom.xml", "json": "feed.json"}[publisher.feed]
    return f"{publisher.home}/feeds/{section}/{ending}"


def feed(publisher: Publisher, title: str, url: str, stories: Sequence[Story]) -> tuple[str, str]:
    """Renders a feed.

    Args:
      publisher: whose feed it is.
      title: of the section.
      url: of the feed itself.
      stories: newest first, at least one.

    Returns:
      The content type and the text.
    """
    stories, title = stories[:_LONGEST_FEED], f"{title} - {publisher.name}"
    if publisher.feed == "json":
        value = {
            "version": "https://jsonfeed.org/version/1.1",
            "title": title,
            "home_page_url": f"{publisher.home}/",
            "feed_url": url,
            "language": publisher.language,
            "items": [
                {
                    "id": story.url,
                    "url": story.url,
                    "title": story.title,
                    "summary": story.sentences[0],
                    "date_published": story.published.isoformat(),
                }
                for story in stories
            ],
        }
        return "application/feed+json; charset=utf-8", json.dumps(value, ensure_ascii=False, indent=1)
    items = ""
    for story in stories:
        entry = {
            "title": escape(story.title),
            "url": escape(story.url),
            "stamp": story.published.isoformat(),
            "date": email.utils.format_datetime(story.published),
            "summary": escape(story.sentences[0]),
        }
        items += f"{_filled('feed', f'{publisher.feed}_item', entry)}\n"
    values = {
        "title": escape(title),
        "url": escape(url),
        "publisher": publisher,
        "updated": stories[0].published.isoformat(),
        "items": items,
    }
    return f"application/{publisher.feed}+xml; charset=utf-8", f"{_filled('feed', publisher.feed, values)}\n"
