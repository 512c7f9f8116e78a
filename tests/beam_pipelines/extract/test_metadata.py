"""extract: titles, people, days and other metadata, one rule at a time."""

import datetime
import json

import pytest
from newsembed.beam_pipelines.extract.dates import day_in_text, day_in_url, parse_day
from newsembed.beam_pipelines.extract.feeds import parse_feed
from newsembed.beam_pipelines.extract.join import _join_id, _with_evidence
from newsembed.beam_pipelines.extract.json_ld import read_items, resolved
from newsembed.beam_pipelines.extract.page import extract_page, parse
from newsembed.beam_pipelines.extract.people import people
from newsembed.beam_pipelines.extract.structured import read_structured
from newsembed.beam_pipelines.extract.title import clean_title
from newsembed.formats.records import Article

URL = "http://rivernews.example/town/1"
SENTENCE = (
    "The council of the river town voted late on Tuesday to raise the embankment "
    "before the autumn rains arrive, it said. "
)
BODY = "".join(f"<p>{SENTENCE}Paragraph {number}.</p>" for number in range(6))


def html(head="", body=BODY):
    return f"<html><head><title>Council raises embankment</title>{head}</head><body>{body}</body></html>"


def meta(**content):
    """Meta elements; "__" stands for a colon in their names."""
    return "".join(f'<meta property="{name.replace("__", ":")}" content="{value}">' for name, value in content.items())


def ld(**fields):
    return f'<script type="application/ld+json">{json.dumps({"@type": "NewsArticle", **fields})}</script>'


def structured(head, url=URL):
    return read_structured(parse(html(head)), url)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("14 juillet 2016", (2016, 7, 14)),
        ("3 de agosto de 2016", (2016, 8, 3)),
        ("9. Jänner 2016", None),  # not a month in the list
        ("12 Jan 2016", (2016, 1, 12)),
        ("Sept. 30, 2016", (2016, 9, 30)),
        ("8 ноября 2016", (2016, 11, 8)),
        ("Tue, 8 Nov 2016 01:00:00 +0200", (2016, 11, 7)),
        ("1262304000", (2010, 1, 1)),  # seconds since 1970
        (1262304000, (2010, 1, 1)),
        (True, None),
        ("20161308", None),
        ("2016-11-08", (2016, 11, 8)),
        ("2016.11.8", (2016, 11, 8)),
    ],
)
def test_days_of_many_forms(written, day):
    assert parse_day(written) == (datetime.date(*day) if day else None)


def test_the_first_day_in_a_text_is_found():
    assert day_in_text("Posted 2016-11-08, updated 2016-11-09") == datetime.date(2016, 11, 8)
    assert day_in_text("Posted on Nov 8, 2016 at 10:41") == datetime.date(2016, 11, 8)
    assert day_in_text("Posted yesterday") is None
    assert day_in_url("http://s.example/2016-11-08-story") == datetime.date(2016, 11, 8)
    assert day_in_url("http://s.example/story-2016-11-08-") is None, "the day starts a part of the path"
    assert day_in_url("http://s.example/2016/11/08") is None, "the day ends with a separator"


def test_publication_precedes_creation_and_json_ld_precedes_meta():
    found = structured(
        ld(datePublished="2021-03-02", dateCreated="2021-03-01") + meta(article__published_time="2021-03-05")
    )
    assert (found.published, found.sources["byline_date"]) == (datetime.date(2021, 3, 2), "json-ld")
    found = structured(ld(dateCreated="2021-03-01"))
    assert found.published == datetime.date(2021, 3, 1)
    found = structured(meta(article__published_time="2021-03-05"))
    assert (found.published, found.sources["byline_date"]) == (datetime.date(2021, 3, 5), "meta")


def test_open_graph_precedes_twitter():
    assert structured(meta(twitter__title="Short", og__title="A long title")).headline == "A long title"
    assert structured(meta(twitter__title="Short")).headline == "Short"


def test_entities_that_are_escaped_twice_are_decoded():
    assert structured(ld(headline="Walls &amp;amp; gates")).headline == "Walls & gates"
    assert structured(ld(headline="<b>Walls</b> and\n gates")).headline == "Walls and gates"


def test_authors_may_be_creators_and_empty_names_are_none():
    assert structured(ld(creator="Ann Lee")).authors == ("Ann Lee",)
    assert structured(ld(author="Bo Chen", creator="Ann Lee")).authors == ("Bo Chen",)
    found = structured(
        ld(author=[{"name": ["", "Ann Lee"]}, {"name": "http://s.example/bo"}, {}], publisher={"name": ""})
    )
    assert (found.authors, found.site_names) == (("Ann Lee",), ())
    assert structured(meta(author="@ann", byl="Ann Lee")).authors == ("Ann Lee",)


def test_keywords_are_a_list_or_one_text_with_commas():
    assert structured(ld(keywords="flood, council , flood")).keywords == ("flood", "council")
    assert structured(ld(keywords=["Lee, Ann", "flood"])).keywords == ("Lee, Ann", "flood")


def test_the_first_canonical_link_counts():
    head = '<link rel="canonical" href="/town/2"><link rel="canonical" href="/town/3">'
    assert structured(head).canonical == "/town/2"


def test_live_blogs_and_paywalls_are_marked():
    assert structured("", "http://rivernews.example/live/flood").live_blog
    assert structured("", "http://rivernews.example/town/live-updates-flood").live_blog
    assert not structured("", "http://rivernews.example/town/lives-saved").live_blog
    assert structured(meta(og__type="liveblog")).live_blog
    assert not structured(meta(og__type="article")).live_blog
    assert structured(meta(article__content_tier="locked")).paywalled
    assert not structured(meta(article__content_tier="free")).paywalled
    assert structured(ld(isAccessibleForFree=False)).paywalled
    assert not structured(ld(isAccessibleForFree=True)).paywalled


@pytest.mark.parametrize(
    ("title", "clean"),
    [
        ("Council raises embankment - River News | River News", "Council raises embankment"),
        ("River News: Floods ahead", "River News: Floods ahead"),  # too short to be the title alone
        ("River News: Floods lie ahead", "Floods lie ahead"),
        ("Council raises embankment | The River News", "Council raises embankment"),
        ("Council raises embankment - Other News", "Council raises embankment - Other News"),
    ],
)
def test_the_name_of_the_site_is_removed_from_titles(title, clean):
    assert clean_title(title, ["River News"], URL) == clean


def test_a_short_heading_does_not_replace_a_title():
    assert clean_title("Town: council raises walls", [], URL, ["Town"]) == "Town: council raises walls"
    assert clean_title("Fifteen letters: more", [], URL, ["Fifteen letters"]) == "Fifteen letters"


@pytest.mark.parametrize(
    ("byline", "names"),
    [
        ("Ann Lee, Zorro", ("Ann Lee",)),  # a single word next to a full name
        ("Zorro", ("Zorro",)),
        ("Ana María de la Cruz", ("Ana María de la Cruz",)),
        ("Ann Lee is a reporter at the River News", ("Ann Lee",)),
        ("Ann Lee; ANN LEE; Ann lee", ("Ann Lee",)),
        ("Dr. Ann Lee, M.D.", ("Ann Lee",)),
        ("one two three four five six seven", ()),
        ("Ann Lee @annlee ann@river.example", ("Ann Lee",)),
    ],
)
def test_names_of_people(byline, names):
    assert people(byline) == names


def test_items_of_json_ld_are_found_at_depth_and_by_reference():
    nested = {
        "@graph": [{"mainEntity": {"mainEntityOfPage": {"@graph": [{"@type": "Person", "@id": "#a", "name": "Ann"}]}}}]
    }
    # The graph, its item, the entity and the page; the graph of the page is nested too deeply.
    assert [sorted(item) for item in read_items([json.dumps(nested), "no JSON"])] == [
        ["@graph"],
        ["mainEntity"],
        ["mainEntityOfPage"],
        ["@graph"],
    ]
    listed = [{"name": "a"}, {"@graph": [{"name": "b"}]}]
    assert [item.get("name") for item in read_items([json.dumps(listed)])] == ["a", None, "b"]
    people_items = [{"@id": "#a", "url": "/ann"}, {"@id": "#a", "name": "Ann Lee"}]
    assert resolved([{"@id": "#a"}, {"@id": "#b"}], people_items) == [people_items[1], {"@id": "#b"}]


def test_the_first_language_that_is_one_counts():
    def language(attributes, head=""):
        return read_structured(parse(html(head).replace("<html>", f"<html {attributes}>")), URL).language

    assert language('lang=" pt_BR "', ld(inLanguage="es")) == "pt-BR"
    assert language('lang="in English!"', ld(inLanguage="es")) == "es"
    assert language('lang=""', meta(og__locale="de_DE")) == "de-DE"
    assert language("") == ""


def test_scripts_of_json_ld_have_bounds():
    item = '{"name": "a"}'
    fill = 2_000_000 - len(item)
    assert read_items([item + " " * fill]) == [{"name": "a"}]
    assert read_items([item + " " * (fill + 1)]) == []
    assert len(read_items([json.dumps([{"name": "a"}] * 1_500)] * 2)) == 2_000, "objects of all scripts"


def test_the_date_in_the_url_may_be_a_day_off():
    shown = '<time class="entry-date" datetime="2021-03-02T09:00:00Z">2 March</time>'
    article = extract_page(
        html(body=f"<article>{shown}{BODY}</article>"), "http://rivernews.example/2021/03/01/walls"
    ).article
    assert (article.byline_date, article.date_source) == (datetime.date(2021, 3, 2), "markup")


def test_a_label_says_that_a_day_is_that_of_an_update():
    shown = "<span class=date>Updated March 9, 2021</span><span class=date>Published March 1, 2021</span>"
    article = extract_page(html(body=f"<article>{shown}{BODY}</article>"), URL).article
    assert (article.byline_date, article.modified_date) == (datetime.date(2021, 3, 1), datetime.date(2021, 3, 9))


def test_a_day_far_below_the_start_of_the_text_is_not_the_byline_date():
    from newsembed.beam_pipelines.extract.layout import lay_out
    from newsembed.beam_pipelines.extract.markup import days

    line = "<div>March 1, 2021</div>"
    for before, expected in ((2, datetime.date(2021, 3, 1)), (3, None)):
        tree = parse(
            html(body=f"<div>{''.join(BODY.split('Paragraph')[0] + '</p>' for _ in range(before))}{line}</div>")
        )
        assert days(tree, lay_out(tree))[0] == expected


def test_an_agency_is_the_author_where_no_person_is_named():
    byline = '<p class="byline">The Associated Press</p>'
    article = extract_page(html(body=f"{byline}<article>{BODY}</article>"), URL).article
    assert (article.authors, article.sources["authors"]) == (("The Associated Press",), "markup")


def test_a_page_of_headlines_with_long_teasers_is_an_article_beyond_sixty_characters_for_each():
    teasers = "".join(
        f'<div><a href="/a/{number}">A headline of the river, {number}</a><p>{SENTENCE}</p></div>'
        for number in range(9)
    )
    assert extract_page(html(body=teasers), "http://rivernews.example/town-news-of-the-day").hub_title is None
    short = teasers.replace(SENTENCE, SENTENCE[:30])
    assert extract_page(html(body=short), "http://rivernews.example/town-news-of-the-day").hub_title is not None


def test_the_text_in_json_ld_wins_where_the_page_shows_only_a_part():
    stated = "\n".join(f"{SENTENCE}Paragraph {number}." for number in range(6))
    shown = f"<article><p>{SENTENCE}Paragraph 0.</p><p>{SENTENCE}Paragraph 1.</p></article>"
    article = extract_page(html(ld(headline="A title", articleBody=stated), shown), URL).article
    assert article.body == stated.replace("  ", " ")
    more = extract_page(html(ld(headline="A title", articleBody=stated[: len(stated) // 2])), URL).article
    assert (more.body.count("Paragraph"), more.sources["body"]) == (6, "markup")


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><title>One</title>
<link rel="self" href="http://s.example/self"/><link rel="alternate" href="http://s.example/1"/></entry></feed>"""


def test_the_alternate_link_of_an_entry_is_its_page():
    assert parse_feed(ATOM.encode()).entries == (("http://s.example/1", "One"),)


def test_evidence_is_ranked_by_the_number_of_pages_that_give_it():
    anchors = [("anchor", "rare"), ("anchor", "usual"), ("anchor", "usual")]
    found = list(
        _join_id(
            ("id", [("article", 3), *anchors, ("day", "2021-03-02"), ("day", "2021-03-01"), ("day", "2021-03-02")])
        )
    )
    assert found == [
        (3, ("id", "anchor", 0, "usual")),
        (3, ("id", "anchor", 1, "rare")),
        (3, ("id", "day", 0, "2021-03-01")),
    ]
    assert list(_join_id(("id", anchors))) == [], "no article of this id"


def test_evidence_adds_what_the_page_lacks():
    bare = Article("id", URL, "rivernews.example", "A title", "Text.", sources=("body: markup", "byline_date: text"))
    evidence = {
        "anchor": ["A TITLE", "Walls"],
        "day": ["2021-03-01"],
        "author": ["Ann Lee; Bo Chen"],
        "image": ["00ff"],
    }
    found = _with_evidence(bare, evidence)
    assert (found.anchor_texts, found.authors, found.image_hash) == (("Walls",), ("Ann Lee", "Bo Chen"), b"\x00\xff")
    assert found.sources == ("authors: feed", "body: markup", "byline_date: feed")


@pytest.mark.parametrize(("source", "day"), [("", 1), ("text", 1), ("url", 9), ("json-ld", 9)])
def test_the_day_of_a_feed_replaces_only_a_guess(source, day):
    article = Article(
        "id", URL, "rivernews.example", "A title", "Text.", byline_date=datetime.date(2021, 3, 9), date_source=source
    )
    assert _with_evidence(article, {"day": ["2021-03-01"]}).byline_date == datetime.date(2021, 3, day)
