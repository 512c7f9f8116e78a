"""Pages of small and unusual sites: short, laid out by tables, broken, or with more comments than text."""

import os
import sys

import pytest
from newsembed.beam_pipelines.extract import layout
from newsembed.beam_pipelines.extract.content import main_content
from newsembed.beam_pipelines.extract.hints import Name, judge_name
from newsembed.beam_pipelines.extract.layout import lay_out
from newsembed.beam_pipelines.extract.page import extract_page, parse
from newsembed.benchmarks import gold_pages

sys.path.insert(0, os.path.dirname(__file__))

from written_pages import FERRY, FOOTER, MARKET, NAV, RELATED, SCHOOL, WALLS, gold, page, paragraphs

H1 = "<h1>Council raises embankment</h1>"
COMMENTS = "".join(
    f"<p>I have lived at the river for {number} years, and nobody has ever asked us about the walls, which is a shame, "
    "because we know best how high the water stands in spring.</p>"
    for number in range(3, 23)
)
MENU = "".join(
    f'<li class="menu-item"><a href="/unit/{number}">Office of unit {number}</a></li>' for number in range(40)
)
WALLS_LIST = [
    "The wall is one metre high.",
    "The loan is two million crowns.",
    "The work begins in May, after the vote.",
]


def built(name, body, text, url="http://small.example/page"):
    return gold(name, url, page("<title>Council raises embankment</title>", body), text)


PAGES = [
    built("two sentences", f"{NAV}{H1}<p>{WALLS[0]}</p><p>{WALLS[1]}</p>{FOOTER}", WALLS[:2]),
    built(
        "body in a cell of a table of tables",
        f"<table><tr><td colspan=2><a href=/>Home</a></td></tr><tr><td><table><tr><td><a href=/a>A</a><br><a href=/b>B"
        f"</a></td></tr></table></td><td>{H1}<font size=2>{'<br><br>'.join(WALLS)}</font></td></tr></table>",
        WALLS,
    ),
    built(
        "readers' comments longer than the article",
        f"{NAV}<div class=post>{H1}<div class=entry-content>{paragraphs(FERRY)}</div></div>"
        f"<section id=comments>{COMMENTS}</section>{FOOTER}",
        FERRY,
    ),
    built(
        "menu that is never closed",
        f"<header><nav><div><ul>{MENU}</ul><div><main>{H1}<div>{paragraphs(WALLS)}</div></main></header>{FOOTER}",
        WALLS,
    ),
    built(
        "button that is never closed, without a main element",
        f"<header><div><button class=menu>Menu</div></header>"
        f"<div class=story>{H1}{paragraphs(WALLS * 3)}</div>{FOOTER}",
        WALLS * 3,
    ),
    built(
        "body in a widget of a page builder",
        f'<div class="widget-span widget-type-blog_content">{H1}<div class=entry-content>{paragraphs(WALLS)}</div>'
        f"</div><div class=insights><p>{MARKET[0]}</p><p>{MARKET[1]}</p><p>{MARKET[2]}</p></div>{FOOTER}",
        WALLS,
    ),
    built(
        "introduction in a part of its own",
        f'<div class=blog>{H1}<div class="rich-text">{paragraphs(WALLS[:1])}</div><div class=cover></div>'
        f'<div class="rich-text">{paragraphs(WALLS[1:] + FERRY + SCHOOL)}</div></div>{FOOTER}',
        [*WALLS, *FERRY, *SCHOOL],
    ),
    built(
        "short page of an institution with a large menu",
        f"<header><ul>{MENU}</ul></header><main>{H1}{paragraphs(WALLS)}</main><footer><ul>{RELATED}</ul></footer>",
        WALLS,
    ),
    built(
        "list in the middle",
        f"{NAV}<article>{H1}{paragraphs(WALLS[:2])}<ul>{''.join(f'<li>{line}</li>' for line in WALLS_LIST)}</ul>"
        f"{paragraphs(WALLS[2:])}</article>{FOOTER}",
        [*WALLS[:2], *WALLS_LIST, *WALLS[2:]],
    ),
    built(
        "headings whose ids are made of their words",
        f'<article>{H1}{paragraphs(WALLS[:2])}<h2 id="what-is-the-most-popular-social-network">The network</h2>'
        f"{paragraphs(WALLS[2:])}</article>",
        [*WALLS[:2], "The network", *WALLS[2:]],
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_unusual_pages_are_read_nearly_exactly(page):
    article = extract_page(page.html, page.url).article
    assert article is not None
    assert gold_pages.match(page, article.body).f1 >= 0.95, article.body


def test_posts_of_a_forum_are_read_as_one_text():
    posts = "".join(
        f'<div class="post"><div class="username">User</div><div class="msg">{text}</div></div>' for text in WALLS
    )
    article = extract_page(
        page("<title>The walls</title>", f"{NAV}<h1>The walls</h1>{posts}"), "http://forum.example/t/1"
    ).article
    assert [text in article.body for text in WALLS] == [True] * len(WALLS)


def test_teasers_with_links_remain_a_hub():
    teasers = "".join(
        f'<div><h3><a href="/s/{i}">A headline of story {i}</a></h3><p>{text}</p></div>'
        for i, text in enumerate(WALLS * 3)
    )
    found = extract_page(
        page("<title>Town</title>", f"<ul>{MENU}</ul><h1>Town</h1>{teasers}"), "http://rivernews.example/town"
    )
    assert found.hub_title == "Town"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("w-node-b5343ad4-d1b4", Name.NEUTRAL),
        ("ebb615ab col-a59aaa42", Name.NEUTRAL),
        ("ad", Name.BOILERPLATE),
        ("ad728", Name.BOILERPLATE),
        ("box-ad-300", Name.BOILERPLATE),
        ("widget widget_text", Name.BOILERPLATE),
        ("so-panel widget widget_text", Name.NEUTRAL),
        ("so-panel widget share", Name.BOILERPLATE),
        ("widget-span widget-type-rich_text", Name.NEUTRAL),
    ],
)
def test_generated_names_and_page_builders_say_nothing(names, expected):
    assert judge_name(names) is expected


def test_text_in_elements_left_open_is_found_only_where_there_is_little_other_text():
    swallowed, beside = paragraphs(WALLS * 3), paragraphs(FERRY)
    left_open = parse(page("", f"<div><button>Menu</div>{swallowed}"))
    assert layout.all_prose(lay_out(left_open)) > 1_000
    aside = parse(page("", f"<aside>{swallowed}</aside><div>{beside}</div>"))
    assert layout.all_prose(lay_out(aside)) == sum(map(len, FERRY))
    short = parse(page("", f"<aside>{paragraphs(WALLS)}</aside><p>{FERRY[0]}</p>"))
    assert layout.all_prose(lay_out(short)) == len(FERRY[0])


def test_a_second_reading_ignores_all_names_but_those_of_comments():
    layout = lay_out(
        parse(
            page(
                "",
                f"<div><div class=sidebar>{paragraphs(WALLS)}</div><div class=entry-content>{paragraphs(FERRY)}</div>"
                f"<div class=comments>{COMMENTS}</div></div>",
            )
        )
    )
    named, plain = main_content(layout), main_content(layout, by_names=False)
    assert named.text == "\n".join(FERRY)
    assert plain.text == "\n".join([*WALLS, *FERRY])
    share = sum(map(len, FERRY)) / sum(map(len, [*WALLS, *FERRY]))
    assert (named.share, plain.share) == (pytest.approx(share), 1.0)
