"""Classifies elements by their class and id: tokens that templates use for boilerplate and for the article's body."""

import enum
import itertools
import re
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """Returns the words of a text; keeps long constants readable."""
    return frozenset(text.split())


# Tokens of class and id, which are split at camelCase and at all characters but letters. A block element with one of
# these tokens is boilerplate with everything inside it, unless it contains most of the page's prose (see ``content``).
_BOILERPLATE = words(
    """
    ad ads advert advertisement advertorial adslot affiliate sponsor sponsored outbrain taboola promo promos promotion
    promotional respond related recirc recirculation recommend recommended recommendations popular trending mostpopular
    mostread readnext upnext morestories relatedcontent relatedlinks relatedarticles readmore seealso furthermore share
    shares sharing sharebar social socials facebook whatsapp addthis sharedaddy tweet newsletter newsletters signup
    subscribe subscription optin mailchimp donate donation membership sidebar rail nav navbar navigation menu breadcrumb
    breadcrumbs pagination pager toolbar ticker masthead footer colophon copyright legal disclaimer caption captions
    figcaption credit credits wp-caption cutline byline author authors bio authorbox contributor contributors timestamp
    dateline pubdate postmeta entrymeta meta tags taglist keywords topics gallery slideshow carousel player cookie
    cookies consent gdpr modal popup overlay lightbox tooltip banner interstitial screenreader noprint printonly login
    register poll quiz survey teaser teasers pullquote standfirst infobox factbox faktaboks saboxplugin
    excerpt feedback
    """
)
_NEVER = words("comment comments commenting disqus livefyre replies reply")
_BOILERPLATE_PAIRS = words(
    """
    read-more more-on more-from more-stories more-news see-also up-next read-next most-read most-popular most-viewed
    you-may also-like pull-quote screen-reader sr-only visually-hidden sign-up skip-link skip-to right-rail left-rail
    right-column side-bar inline-related inline-photo inline-image entry-meta post-meta article-meta story-meta
    article-tags post-tags article-header story-header article-footer post-footer entry-footer story-footer video-player
    photo-credit image-credit media-caption image-caption photo-caption twitter-tweet instagram-media fb-post key-points
    call-to back-to jump-to about-author fact-box info-box image-widget detail-img author-profile writer-profile
    after-content after-post after-entry below-content below-post latest-news latest-posts latest-stories recent-posts
    recent-news post-list article-list story-list news-list other-stories other-news top-stories story-highlights
    """
)
_BODY = words(
    """
    articlebody storybody postbody entrycontent postcontent articlecontent storycontent articletext storytext bodytext
    """
)
_BODY_HEADS = words("article story post entry news content body main")
_BODY_TAILS = words("body content text copy contents paragraphs")
_FIRST = words("widget widgets")  # as the first token only: "lb-widget-text" is a post of a live blog
_HIDDEN_NAMES = words(
    """
    visually-hidden visuallyhidden sr-only screen-reader-text screen-reader visually-hidden-focusable u-visually-hidden
    """
)
_HIDING = words("hidden d-none is-hidden u-hidden")
# Classes of Tailwind and Bootstrap that show an element on screens of one size.
_SHOWN = re.compile(r"\w+:|d-(?:sm|md|lg|xl|xxl|print)-|visible")
_PICTURE = words("caption figcaption credit credits cutline")
# First tokens of names that describe a state or a category instead of the element: "has-sidebar", "category-video".
_STATE = words("has with no is js without hide show not category cat tag term tax format type status postid")
_SWITCHES = words("enabled disabled")  # "sidebar-enabled--false"
# The element and the column of the page builders of HubSpot and SiteOrigin: whole pages consist of such widgets.
_BUILDERS = words("span type container")
_BUILDER_PANEL = "so-panel"
# Generated names, such as "b5343ad4", in which "ad" is not a word.
_HASH = re.compile(r"(?<![a-z])(?=[a-f]*\d)[\da-f]{6,}(?![a-z])")
_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Name(enum.IntEnum):
    """Classification of an element by its class and id."""

    NEUTRAL = 0
    BOILERPLATE = 1  # probably not part of the article's text
    NEVER = 2  # readers' comments: never part of the article, however much text there is


@lru_cache(maxsize=20_000)
def judge_name(names: str) -> Name:
    """Returns the classification of an element by its class and id.

    >>> judge_name("c-article-comments js-open"), judge_name("article-body")
    (<Name.NEVER: 2>, <Name.NEUTRAL: 0>)
    """
    parts = names[:1000].split()
    if _BUILDER_PANEL in parts:
        parts = [part for part in parts if not part.startswith("widget")]
    return max((_judge(part) for part in parts), default=Name.NEUTRAL)


def _judge(name: str) -> Name:
    tokens = [token.lower() for token in _TOKEN.findall(_HASH.sub(" ", name))]
    if not tokens or tokens[0] in _STATE or not _SWITCHES.isdisjoint(tokens[1:]):
        return Name.NEUTRAL
    if any(token in _NEVER for token in tokens):
        return Name.NEVER
    if tokens[0] in _FIRST and tokens[1:2] and tokens[1] in _BUILDERS:
        return Name.NEUTRAL
    if tokens[0] in _FIRST or any(token in _BOILERPLATE for token in tokens):
        return Name.BOILERPLATE
    pairs = (f"{first}-{second}" for first, second in itertools.pairwise(tokens))
    return Name.BOILERPLATE if any(pair in _BOILERPLATE_PAIRS for pair in pairs) else Name.NEUTRAL


@lru_cache(maxsize=20_000)
def classify_names(names: str) -> tuple[Name, bool]:
    """Returns the results of :func:`judge_name` and :func:`is_body_name`, cached because templates repeat names."""
    return judge_name(names), is_body_name(names)


def is_body_name(names: str) -> bool:
    """Returns whether class and id mark an article's body: "story-body", "entry-content", "articleText".

    >>> is_body_name("story-body__inner"), is_body_name("main-menu")
    (True, False)
    """
    for name in names[:1000].split():
        tokens = [token.lower() for token in _TOKEN.findall(name)]
        if any(token in _BODY for token in tokens):
            return True
        if any(first in _BODY_HEADS and second in _BODY_TAILS for first, second in itertools.pairwise(tokens)):
            return True
    return False


@lru_cache(maxsize=20_000)
def is_hidden_everywhere(names: str) -> bool:
    """Returns whether a class hides a block element, on screens of all sizes.

    >>> is_hidden_everywhere("offer hidden"), is_hidden_everywhere("hidden md:block")
    (True, False)
    """
    parts = names.lower().split()
    return not _HIDING.isdisjoint(parts) and not any(_SHOWN.match(part) for part in parts)


@lru_cache(maxsize=20_000)
def is_hidden_name(names: str) -> bool:
    """Returns whether the classes of an inline element mark text for screen readers or the caption of a picture."""
    return any(
        name.lower() in _HIDDEN_NAMES or any(token.lower() in _PICTURE for token in _TOKEN.findall(name))
        for name in names[:1000].split()
    )
