"""HTML of articles and hubs in four layouts."""

import dataclasses
import datetime
import html
import json
import random
from collections.abc import Sequence

from .articles import Story, slug
from .interface_words import WORDS
from .prose import load_prose
from .publishers import AuthorHabit, DateHabit, Publisher


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


def long_date(language: str, day: datetime.date) -> str:
    """A date as a byline prints it."""
    month = load_prose(language).words("month")[day.month - 1]
    return {
        "en": f"{day.day} {month} {day.year}",
        "de": f"{day.day}. {month} {day.year}",
        "es": f"{day.day} de {month} de {day.year}",
        "ru": f"{day.day} {month} {day.year}",
    }[language]


def author_url(publisher: Publisher, author: str) -> str:
    """The address of an author's page."""
    return f"{publisher.home}/author/{slug(author)}/"


def article_page(story: Story, around: Surroundings, random: random.Random) -> str:
    """The whole page of an article."""
    publisher, words = story.publisher, WORDS[story.publisher.language]
    heading = f"<h1>{html.escape(story.title, quote=False)}</h1>"
    image = f'<figure><img src="{around.image_url}" alt=""><figcaption>{words["caption"]}</figcaption></figure>'
    body = _paragraphs(story, around, random)
    related = f"<h2>{words['related']}</h2><ul>{_items(around.related)}</ul>"
    aside = f"<h3>{words['most_read']}</h3><ol>{_items(around.most_read)}</ol><p>{words['newsletter']}</p>"
    parts = _Parts(
        story.title,
        _head(story, around),
        heading,
        image + body,
        byline=_byline(story, random),
        after=related,
        aside=aside,
    )
    return _layout(publisher, parts, around.navigation)


def hub_page(
    publisher: Publisher, title: str, entries: Sequence[Link], further: Sequence[Link], navigation: Sequence[Link]
) -> str:
    """A list of links below a heading; ``further`` are links to the other pages and lists of the hub."""
    teasers = "".join(f'<li class="teaser"><h3>{entry.html()}</h3></li>' for entry in entries)
    pages = f'<p class="pages">{" ".join(link.html() for link in further)}</p>' if further else ""
    heading = f"<h1>{html.escape(title, quote=False)}</h1>"
    head = f'<meta property="og:type" content="website"><meta property="og:title" content="{html.escape(title)}">'
    content = f'<ul class="list">{teasers}</ul>{pages}'
    return _layout(publisher, _Parts(title, head, heading, content), navigation)


def _items(links: Sequence[Link]) -> str:
    return "".join(f"<li>{link.html()}</li>" for link in links)


def _paragraphs(story: Story, around: Surroundings, random: random.Random) -> str:
    """Paragraphs of one to three sentences, with the links to other articles between them."""
    words = WORDS[story.publisher.language]
    sentences = [html.escape(sentence, quote=False) for sentence in story.sentences]
    paragraphs: list[str] = []
    while sentences:
        size = random.randint(1, 3)
        paragraphs.append(f"<p>{' '.join(sentences[:size])}</p>")
        sentences = sentences[size:]
    for link in around.inline:
        paragraphs.insert(random.randint(1, len(paragraphs)), f'<p class="more">{words["more"]}: {link.html()}</p>')
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
    if story.shows_date and publisher.date_habit is DateHabit.OPEN_GRAPH:
        tags.append(f'<meta property="article:published_time" content="{stamp}">')
    if story.shows_date and publisher.date_habit is DateHabit.DUBLIN_CORE:
        tags.append(f'<meta name="DC.date.issued" content="{stamp[:10]}">')
    if story.author and publisher.author_habit is AuthorHabit.META:
        tags.append(f'<meta name="author" content="{html.escape(story.author)}">')
    if publisher.date_habit is DateHabit.JSON_LD:
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
    publisher, words = story.publisher, WORDS[story.publisher.language]
    parts: list[str] = []
    if story.author and publisher.author_habit is AuthorHabit.LINK:
        url = author_url(publisher, story.author)
        parts.append(
            f'<span class="byline">{words["by"]} <a rel="author" class="author" href="{url}">{story.author}</a></span>'
        )
    elif story.author and publisher.author_habit is AuthorHabit.PLAIN_TEXT:
        parts.append(f'<span class="author">{words["by"]} {story.author}</span>')
    elif story.author:
        parts.append(f'<span class="writer"><a href="{author_url(publisher, story.author)}">{story.author}</a></span>')
    ago = words["ago"].format(n=random.randint(2, 20))
    match publisher.date_habit:
        case DateHabit.PLAIN_TEXT if story.shows_date:
            parts.append(f'<span class="date">{long_date(publisher.language, story.published.date())}</span>')
        case DateHabit.RELATIVE_TIME if story.shows_date:
            parts.append(f'<time datetime="{story.published.isoformat()}">{ago}</time>')
        case DateHabit.RELATIVE_URL:
            parts.append(f'<span class="age">{ago}</span>')
    return f'<div class="meta">{" | ".join(parts)}</div>'


@dataclasses.dataclass(frozen=True)
class _Parts:
    """What a layout arranges: the title as text, the rest as HTML."""

    title: str
    head: str
    heading: str
    content: str
    byline: str = ""
    after: str = ""
    aside: str = ""


def _layout(publisher: Publisher, parts: _Parts, navigation: Sequence[Link]) -> str:
    """A page in the layout of a publisher."""
    heading, byline, content, aside = parts.heading, parts.byline, parts.content, parts.aside
    words = WORDS[publisher.language]
    links = _items(navigation)
    footer_links = " · ".join(
        Link(words[key], f"{publisher.home}/{path}/").html()
        for key, path in (("archive", "archive"), ("authors", "author"), ("regions", "region"))
    )
    others = " · ".join(words[key] for key in ("imprint", "privacy", "contact"))
    footer = f"{footer_links} · {others} · {publisher.name}. {words['rights']}"
    cookies = (
        f'<div id="cookie-banner" class="cookie-consent"><p>{words["cookies"]}</p>'
        f"<button>{words['accept']}</button></div>"
    )
    match publisher.layout:
        case 0:
            inner = (
                f'<header><a href="{publisher.home}/">{publisher.name}</a><nav><ul>{links}</ul></nav></header>'
                f"<main><article>{heading}{byline}{content}</article>"
                f"<section class='related'>{parts.after}</section></main>"
                f"<aside>{aside}</aside><footer>{footer}</footer>{cookies}"
            )
        case 1:
            inner = (
                f"{cookies}<div class='wrap'>"
                f"<div class='topbar'>{publisher.name} | {words['subscribe']} | {words['search']}</div>"
                f"<div class='menu'><ul>{links}</ul></div><div class='col-left sidebar'>{aside}</div>"
                f"<div class='col-main'><div class='article'>{heading}{byline}"
                f"<div class='article-body'>{content}</div></div>"
                f"<div class='related'>{parts.after}</div></div><div class='footer'>{footer}</div></div>"
            )
        case 2:
            inner = (
                f"<div id='header'><b>{publisher.name}</b></div><div id='nav'><ul>{links}</ul></div>"
                f"<div id='content' class='post'>{heading}{byline}<div class='entry-content'>{content}</div>"
                f"<div class='share'>{words['share']}</div></div><div id='sidebar'>{aside}{parts.after}</div>"
                f"<div id='footer'>{footer}</div>{cookies}"
            )
        case _:
            inner = (
                f"<nav class='navbar'><ul class='nav'>{links}</ul></nav><div class='container'><div class='row'>"
                f"<main class='col-md-8'><article class='story'><header>{heading}{byline}</header>"
                f"<div class='story-body'>{content}</div>"
                f"</article><p class='comments'>{words['comments']}</p><div class='related'>{parts.after}</div></main>"
                f"<aside class='col-md-4'>{aside}</aside></div></div><footer><p>{footer}</p></footer>{cookies}"
            )
    page_title = f"{html.escape(parts.title, quote=False)} | {publisher.name}"
    return (
        f'<!DOCTYPE html>\n<html lang="{publisher.language}"><head><meta charset="utf-8"><title>{page_title}</title>\n'
        f"{parts.head}\n</head><body>\n{inner}\n</body></html>\n"
    )
