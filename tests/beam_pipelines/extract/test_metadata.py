"""extract: titles, people, days and other metadata, one rule at a time."""

import datetime
import json

import pytest
from newsembed.beam_pipelines.extract.job import _join_id, _with_evidence
from newsembed.beam_pipelines.extract.page import clean_title, extract_page, parse
from newsembed.beam_pipelines.extract.structured import _read_items, _resolved, read_structured
from newsembed.formats.records import Article, make_doc_id
from newsembed.tests.river_page import BODY, SENTENCE

URL = "http://rivernews.example/town/1"


def html(head="", body=BODY):
    return f"<html><head><title>Council raises embankment</title>{head}</head><body>{body}</body></html>"


def meta(**content):
    """Meta elements; "__" stands for a colon in their names."""
    return "".join(f'<meta property="{name.replace("__", ":")}" content="{value}">' for name, value in content.items())


def ld(**fields):
    return f'<script type="application/ld+json">{json.dumps({"@type": "NewsArticle", **fields})}</script>'


def structured(head, url=URL):
    return read_structured(parse(html(head)), url)


def test_publication_precedes_creation_and_json_ld_precedes_meta():
    time = meta(article__published_time="2021-03-05")
    for head, day, source in (
        (ld(datePublished="2021-03-02", dateCreated="2021-03-01") + time, 2, "json-ld"),
        (ld(dateCreated="2021-03-01"), 1, "json-ld"),
        (time, 5, "meta"),
    ):
        found = structured(head)
        assert (found.published, found.sources["byline_date"]) == (datetime.date(2021, 3, day), source)


def test_authors_may_be_creators_and_empty_names_are_none():
    assert structured(ld(creator="Ann Lee")).authors == ("Ann Lee",)
    assert structured(ld(author="Bo Chen", creator="Ann Lee")).authors == ("Bo Chen",)
    people = [{"name": ["", "Ann Lee"]}, {"name": "http://s.example/bo"}, {}]
    found = structured(ld(author=people, publisher={"name": ""}))
    assert (found.authors, found.site_names) == (("Ann Lee",), ())
    assert structured(meta(author="@ann", byl="Ann Lee")).authors == ("Ann Lee",)


def test_keywords_are_a_list_or_one_text_with_commas():
    assert structured(ld(keywords="flood, council , flood")).keywords == ("flood", "council")
    assert structured(ld(keywords=["Lee, Ann", "flood"])).keywords == ("Lee, Ann", "flood")


@pytest.mark.parametrize(
    ("head", "path", "marks"),
    [
        ("", "live/flood", "live_blog"),
        ("", "town/live-updates-flood", "live_blog"),
        ("", "town/lives-saved", ""),
        (meta(og__type="liveblog"), "town/1", "live_blog"),
        (meta(og__type="article"), "town/1", ""),
        (meta(article__content_tier="locked"), "town/1", "paywalled"),
        (meta(article__content_tier="free"), "town/1", ""),
        (ld(isAccessibleForFree=False), "town/1", "paywalled"),
        (ld(isAccessibleForFree="False"), "town/1", "paywalled"),
        (ld(isAccessibleForFree=True), "town/1", ""),
    ],
)
def test_live_blogs_and_paywalls_are_marked(head, path, marks):
    found = structured(head, f"http://rivernews.example/{path}")
    assert [name for name in ("live_blog", "paywalled") if getattr(found, name)] == marks.split()


def test_items_of_json_ld_are_found_at_depth_and_by_reference():
    person = {"@graph": [{"@type": "Person", "@id": "#a", "name": "Ann"}]}
    nested = {"@graph": [{"mainEntity": {"mainEntityOfPage": person}}]}
    # The graph, its item, the entity and the page; the graph of the page is nested too deeply.
    names = [[*item] for item in _read_items([json.dumps(nested), "no JSON"])]
    assert names == [["@graph"], ["mainEntity"], ["mainEntityOfPage"], ["@graph"]]
    listed = [{"name": "a"}, {"@graph": [{"name": "b"}]}]
    assert [item.get("name") for item in _read_items([json.dumps(listed)])] == ["a", None, "b"]
    people_items = [{"@id": "#a", "url": "/ann"}, {"@id": "#a", "name": "Ann Lee"}]
    assert _resolved([{"@id": "#a"}, {"@id": "#b"}], people_items) == [people_items[1], {"@id": "#b"}]


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
    assert _read_items([item + " " * fill]) == [{"name": "a"}]
    assert _read_items([item + " " * (fill + 1)]) == []
    assert len(_read_items([json.dumps([{"name": "a"}] * 1_500)] * 2)) == 2_000, "objects of all scripts"


def test_a_day_far_below_the_start_of_the_text_is_not_the_byline_date():
    from newsembed.beam_pipelines.extract.bylines import days
    from newsembed.beam_pipelines.extract.layout import lay_out
    from newsembed.beam_pipelines.extract.lists import Region

    line = "<div>March 1, 2021</div>"
    for before, expected in ((2, datetime.date(2021, 3, 1)), (3, None)):
        tree = parse(html(body=f"<div>{f'<p>{SENTENCE}</p>' * before}{line}</div>"))
        found = days(tree, Region(lay_out(tree)))[0]
        assert (found and found.day) == expected


def test_a_page_of_headlines_with_long_teasers_is_an_article_beyond_sixty_characters_for_each():
    for teaser, is_hub in ((SENTENCE, False), (SENTENCE[:30], True)):
        link = f'<div><a href="/a/{{}}">A headline of the river</a><p>{teaser}</p></div>'
        page = extract_page(html(body="".join(map(link.format, range(9)))), f"{URL}-town-news-of-the-day")
        assert (page.hub_title is not None) == is_hub


def test_evidence_is_ranked_by_the_number_of_pages_that_give_it():
    anchors = [("anchor", "rare"), ("anchor", "usual"), ("anchor", "usual")]
    days = [("day", f"2021-03-0{number}") for number in (2, 1, 2)]
    found = [(3, ("id", "anchor", 0, "usual")), (3, ("id", "anchor", 1, "rare")), (3, ("id", "day", 0, "2021-03-01"))]
    assert list(_join_id(("id", [("article", 3), *anchors, *days]))) == found
    assert list(_join_id(("id", anchors))) == [], "no article of this id"


def test_evidence_adds_what_the_page_lacks():
    bare = Article("id", URL, "rivernews.example", "A title", "Text.", sources=("body: markup", "byline_date: text"))
    evidence = {"anchor": ["A TITLE", "Walls"], "day": ["2021-03-01"], "author": ["Ann Lee; Bo Chen"]}
    found = _with_evidence(bare, {**evidence, "image": ["00ff"]})
    assert (found.anchor_texts, found.authors, found.image_hash) == (("Walls",), ("Ann Lee", "Bo Chen"), b"\x00\xff")
    assert found.sources == ("authors: feed", "body: markup", "byline_date: feed")


OWN = "http://rivernews.example/town/council-raises-embankment"
MINE = {"headline": "Council raises embankment", "datePublished": "2021-03-02", "author": {"name": "Ann Lee"}}
OTHER = {"headline": "Owl settles on roof", "datePublished": "2020-01-01", "author": {"name": "Bo Chen"}, "image": "i"}


@pytest.mark.parametrize(
    "statements",
    [
        [OTHER, MINE],  # its headline is the page's
        [OTHER, MINE | {"headline": "Walls rise", "url": OWN}],
        [OTHER, MINE | {"headline": "Walls rise", "url": [OWN]}],
        [OTHER, MINE | {"headline": "Walls rise", "url": OWN.replace("//", "//m.")}],
        [OTHER, MINE | {"headline": "Walls rise", "mainEntityOfPage": [{"@type": "WebPage", "@id": f"{OWN}/amp"}]}],
        [OTHER | {"url": "http://rivernews.example/owl"}, MINE | {"headline": "Walls rise"}],
        [OTHER | {"url": "http://rivernews.example/owl"}, MINE | {"mainEntityOfPage": {"@id": OWN}}],
        [{"headline": MINE["headline"], "url": OWN}, OTHER, MINE],  # the parts of two statements
    ],
)
def test_of_several_articles_the_one_of_this_page_counts(statements):
    page = extract_page(html("".join(ld(**one) for one in statements), f"<h1>{MINE['headline']}</h1>{BODY}"), OWN)
    assert page.article.authors == ("Ann Lee",)
    assert page.article.byline_date == datetime.date(2021, 3, 2)


def test_an_article_of_another_page_is_not_taken():
    page = parse(html(ld(**OTHER | {"url": "http://rivernews.example/owl"})))
    found = read_structured(page, OWN, ["Council raises embankment"])
    assert (found.authors, found.published, found.headline) == ((), None, "")


@pytest.mark.parametrize(
    ("canonical", "own"),
    [
        ("/town/council-raises-embankment-in-march", "/town/council-raises-embankment-in-march"),
        ("/a/123456", "/a/123456"),
        ("/view.php?id=7", "/view.php?id=7"),
        ("/view.php?id=7&a=1", "/view.php?a=1&id=7"),
        *((one, None) for one in ("http://rivernews.example/", "/town/", "/en", "/town/index.html", "undefined")),
        *((one, None) for one in ("/%7B%7Burl%7D%7D", "http://other.example/town/council-raises-embankment")),
    ],
)
def test_canonical_urls_of_sections_are_not_of_an_article(canonical, own):
    fetched = OWN.replace("http://", "https://www.") + "?utm_source=x"
    page = extract_page(html(f'<link rel="nofollow canonical" href="{canonical}">' + ld(**MINE)), fetched)
    assert page.article.url == (f"https://www.rivernews.example{canonical}" if own else fetched)
    assert page.article.doc_id == make_doc_id(f"http://rivernews.example{own}" if own else OWN)
    assert page.page_url == OWN


def test_a_placeholder_or_a_guess_gives_way_to_the_next_source():
    time = meta(article__published_time="2021-03-05")
    for stated in ("0001-01-01T00:00:00", "1970-01-01", "01/02/2021"):
        found = structured(ld(datePublished=stated, inLanguage="en") + time)
        assert (found.published, found.sources["byline_date"]) == (datetime.date(2021, 3, 5), "meta")
    page = extract_page(html(ld(datePublished="01/02/2021", inLanguage="en")), URL)
    assert page.article.byline_date == datetime.date(2021, 1, 2)
    assert "byline_date_order: guessed" in page.article.sources


def test_a_day_in_the_byline_counts_before_that_of_the_file():
    shown = f"<h1>Council raises embankment</h1><p class=date>2 March 2021</p>{BODY}"
    for name, body, day, source in (
        ("dcterms.date", shown, "2021-03-02", "markup"),
        ("dcterms.date", shown.replace("2 March", "11 January"), "2021-01-10", "meta"),  # of another time zone
        ("dcterms.date", BODY, "2021-01-10", "meta"),
        ("article:published_time", shown, "2021-01-10", "meta"),
    ):
        article = extract_page(html(f'<meta name="{name}" content="2021-01-10">', body), URL).article
        assert (str(article.byline_date), article.date_source) == (day, source)
    article = extract_page(html(ld(datePublished="03/02/2021", inLanguage="en"), shown), URL).article
    assert str(article.byline_date) == "2021-03-02"
    assert "byline_date_order: guessed" not in article.sources


@pytest.mark.parametrize(
    "markup",
    [
        "<p class='dates'>Updated March 4, 2021 · Published March 2, 2021</p>",
        "<p>Published <time datetime='2021-03-02'>2 May</time>, updated <time datetime='2021-03-04'>4</time></p>",
        "<dl><dt>Updated</dt><dd><time datetime='2021-03-04'>4</time><dt>Posted<dd><time datetime='2021-03-02'>",
        "<div class='byline'>By Ann Lee | Updated March 4, 2021 at 8 PM | Published March 2, 2021 at 9 AM</div>",
        "<div class='latest'><time datetime='2021-02-01'>1</time> Owl</div><div class='date'>2 March 2021</div>",
        "<dl><dt>Updated<dd>March 4, 2021<dt>Published<dd>March 2, 2021",
        "<p>Updated: March 4, 2021, 9:00 a.m. Originally published on: March 2, 2021</p>",  # as long as a sentence
        "<time datetime='2021-03-04'>Updated May 4</time> <time datetime='2021-03-02'>Published May 2</time>",
        "<time datetime='2021-03-04' aria-label='Updated'>4</time><time datetime='2021-03-02' title='Posted'>2</time>",
        "<meta name='weibo:article:create_at' content='2021-03-02 08:00'>",
        "<aside><meta itemprop='datePublished' content='2020-01-01'></aside><p class='date'>March 2, 2021</p>",
        "<time datetime='2021-03-04T10:18:46Z'>Published on 2 March 2021</time>",
        "<div class='meta'>Ann Lee <i class='updated'>2021-03-04</i> March 2, 2021</div>",
    ],
)
def test_words_around_visible_days(markup):
    article = extract_page(html(body=f"<h1>Council raises embankment</h1>{markup}</dl>{BODY}"), URL).article
    assert article.byline_date == datetime.date(2021, 3, 2)
    assert article.modified_date in (None, datetime.date(2021, 3, 4))


HEADING = "<h1>Council raises embankment</h1>"
TAGS = "<a href=/t/1>Hochwasserschutzanlagen</a> <a href=/t/2>Bundesverkehrsministerium</a>"
CARDS = "".join(
    f"<p><a href=/b>渡し船の運賃が再び値上げへ{letter}</a> <i class=date>2 March 2021</i></p>" for letter in "甲乙"
)
SHARE = (
    "<a href='mailto:?subject=x'>Send this page by mail</a> <a href=//f.example/sharer.php>Show this to all friends</a>"
)
LISTS = (
    "<a href='?share=tree'>Click to share on Tree</a> <a href=#comments>7 Comments on Council raises embankment</a>"
    "<a href=/author/ann>All posts by Ann Lee</a> <a href=/tag/a>Rivers, lakes and other waters</a>"
)
BESIDE = f"<div class=newsletter>{3 * f'<p>{SENTENCE}</p>'}</div>"


@pytest.mark.parametrize(
    "around",
    [
        f"{HEADING}<div><span class=date>2 March 2021</span>{TAGS}</div>TEXT",  # one long word is no headline
        f"{HEADING}<div class=info><span class=date>2 March 2021</span>{SHARE}</div>TEXT",
        f"{HEADING}<div class=info><span class=date>2 March 2021</span>{LISTS}</div>TEXT",
        f"{HEADING}<div><a href=/1>2 de marzo de 2021 a las 22:04 h</a><a href=/b>Fares rise for a year</a></div>TEXT",
        f"<article>{HEADING}TEXT<footer><time datetime=2021-03-02>2 March</time></footer></article>",
        f"<article>{HEADING}TEXT<aside class=post-info><i class=date>2 March 2021</i></aside></article>",
        f"{HEADING}<i class=date>2 March 2021</i><div>{4 * '<p>Town'}<div>{HEADING[4:-5]}</div>TEXT</div>",
        f"<header>{HEADING}<ul><li>2 March 2021</ul></header><div>{2 * '<p>Town'}<div>{HEADING}TEXT</div></div>",
        f"{HEADING}{BESIDE}<p>2 March 2021 – The council has decided that the embankment rises, at long last.</p>TEXT",
        f"{HEADING}<p>(2 March 2021) The council has decided that the embankment rises, at long last.</p>TEXT",
        f"{HEADING}TEXT<div class=meta>By Ann Lee Olsen on 2 March 2021, 11:51 | 3 opinions | The river</div>",
        f"<header><p><a href=/1><time datetime=2021-03-02>2 March 2021</time></a></p>{HEADING}</header>TEXT",
        f"<header><a href=/1><time datetime=2021-03-02>2 March</time> <i>3 March</i></a>{HEADING}</header>TEXT",
        f"<main><div><b>Press release</b> <time datetime='2021-03-02 12:22'>12:22</time></div>{HEADING}TEXT</main>",
        f"<header><a href=/day>Topic of March: 2 March 2021</a>{HEADING}</header>TEXT",
        f"<div><h2 class=date-header>Tuesday, 2 March 2021</h2><div>{HEADING}TEXT</div></div>",
        f"{HEADING}TEXT<p>Tags<p>Share<div class=submitted>Saved by ann on 2 March 2021</div>",
        f"{HEADING}TEXT<span class=post-created>02.03.21</span>",
        f"{HEADING}<p>Riverton, 2 March 2021 – The council has decided that the embankment rises, at last.</p>TEXT",
        f"{HEADING}<p>Press release of 2021: Riverton</p><p>March 2, 2021 | The council decided that it rises.</p>TEXT",
        f"{HEADING}<p>2 March 2021. The council has decided that the embankment rises, at long last.</p>TEXT",
        '<script>{"@context": "https://schema.org", "@type": "Report", "datePublished": "2021-03-02"}</script>TEXT',
    ],
)
def test_places_of_the_day_of_an_article(around):
    article = extract_page(html(body=f"<div>{around.replace('TEXT', BODY)}</div>"), URL).article
    assert article.byline_date == datetime.date(2021, 3, 2)


@pytest.mark.parametrize(
    "around",
    [
        f"<main><p>Town<p>Sport<p>Weather<p class=date>2 March 2021</p><div>{HEADING}TEXT</div></main>",  # today
        f"<main><p>2 March 2021 <a href=/b>Ferry fares rise by 5 per cent</a></p><div>{HEADING}TEXT</div></main>",
        f"{HEADING}<div><a href=/b>Ferry fares rise again, it says <time datetime=2021-03-02></time></a></div>TEXT",
        f"{HEADING}<div>{CARDS}</div>TEXT",
        f"{HEADING}TEXT<p>(River Court, decision of 2 March 2021, 3 K 12/20)</p>",
        f"{HEADING}<p class=date>Exhibition 1 to 2 March 2021</p>TEXT",
        f"{HEADING}<p class=date>2 March 2021, 10:00 - 18:00</p>TEXT",
        f"{HEADING}<p class=date>Next review: 2 March 2099</p>TEXT",
        f"<main>{HEADING}TEXT<article><p>So</p><footer><time datetime=2021-03-02></time></footer></article></main>",
        f"{HEADING}<p>On 2 March 2021 – a day that nobody in the river town forgets – the embankment broke.</p>TEXT",
        f"{HEADING}<p>The council said on 2 March 2021 that it would raise the embankment – at long last.</p>TEXT",
    ],
)
def test_a_day_of_another_page_or_in_the_text_is_not_its_own(around):
    assert extract_page(html(body=f"<div>{around.replace('TEXT', BODY)}</div>"), URL).article.byline_date is None


def test_a_dateline_is_read_as_other_lines_are():
    for words, day, changed in (("1 March 2021", "2021-03-02", None), ("3 March 2021", "2021-03-02", "2021-03-03")):
        dateline = "<p>Riverton, 2 March 2021 – The council has decided that the embankment rises, at last.</p>"
        page = html(body=f"<div>{HEADING}<p>Updated {words}</p>{dateline}{BODY}</div>")
        article = extract_page(page, URL).article
        assert (str(article.byline_date), article.modified_date and str(article.modified_date)) == (day, changed)


def test_a_full_name_on_the_page_counts_before_the_name_of_an_account():
    byline = "<p class=byline>By Ann Lee</p>"
    for account, shown, names in (
        ("ann.lee", byline, "Ann Lee"),
        ("ann.lee", "", "ann.lee"),
        ("Bo Chen", byline, "Bo Chen"),
    ):
        page = html(ld(author=account), f"{HEADING}{shown}{BODY}")
        assert extract_page(page, URL).article.authors == (names,)


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ({"@type": "Person", "name": "García Márquez, Gabriel"}, "Gabriel García Márquez"),
        ({"givenName": "Ann", "familyName": "Lee"}, "Ann Lee"),
        ([["Ann Lee, PhD"]], "Ann Lee, PhD"),
        ({"name": "Smith-Jones, Mary Ann"}, "Mary Ann Smith-Jones"),
    ],
)
def test_names_of_persons_in_structured_data(author, name):
    assert structured(ld(author=author)).authors == (name,)


OTHERS = "".join(
    f"<div class=item><h4><a href=/n/{n}>Ferry fares rise again, {n}</a></h4><span class=date>May {n}, 2020</span>"
    f"<time datetime=2020-05-0{n}></time><p class=byline>By Tom Hill</p></div>"
    for n in (1, 2, 3)
)


@pytest.mark.parametrize(
    "around",
    [
        f"{{}}<div class=box>{OTHERS}</div>",
        f"<div class=left>{OTHERS}</div>{{}}",
        f"<table><tr><td>{OTHERS}</td><td>{{}}</td></tr></table>",
        "<div id=top><span class=date>May 4, 2020</span></div>{}",
        "{}<section><div><b>Tom</b><time datetime=2020-05-04></time><p>I think so.</p></div></section>",
        "{}<div id=footer>© 2020 <small>Page of 2020-05-04</small></div>",
        "<meta property=og:image content=/2020/05/04/a.jpg>{}<form><input value=2020-05-04T10:11:12></form>",
        "<script>var build = {{'date': '2020-05-04T10:00:00Z'}}</script>{}<p>They let it on 2009-04-02, in fact.</p>",
    ],
)
@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("", ""),
        ("<p class=byline>By Ann Lee</p><span class=date>2 March 2021</span>", ""),
        ("<nav><span class=date>2 March 2021</span><b class=author>Ann Lee</b></nav>", ""),
        ("<p>By Ann Lee</p><div>2 March 2021</div>", ""),
        ("", "<p class=reporter>Ann Lee</p><p>Published on 2 March 2021</p>"),
    ],
)
def test_days_and_names_of_other_stories_are_not_those_of_the_article(around, above, below):
    own = f"<article><h1>Council raises embankment</h1>{above}{BODY}{below}</article>"
    article = extract_page(html(body=f"<div>{around.format(own)}</div>"), URL).article
    expected = (datetime.date(2021, 3, 2), ("Ann Lee",)) if above or below else (None, ())
    assert (article.byline_date, article.authors) == expected


@pytest.mark.parametrize("mark", [" | ", " < ", " ⋆ ", "_", "-", "：", "\uff0d", " [", " (", ", ", " » "])
def test_marks_before_the_name_of_a_site(mark):
    sites = ["River News"]
    assert clean_title(f"Council raises walls{mark}River News", sites, URL) == "Council raises walls"
    assert clean_title(f"Council raises walls{mark}River News | Town", sites, URL) == "Council raises walls"
    assert clean_title("River News/Wall Street poll of walls", sites, URL) == "River News/Wall Street poll of walls"
    assert clean_title("川新聞 | 議会が堤防を高くすることを決定", ["川新聞"], URL) == "議会が堤防を高くすることを決定"
    town = URL.replace("//", "//town.")
    assert clean_title("Rivernews: Town - Council raises the walls", sites, town) == "Council raises the walls"


@pytest.mark.parametrize(
    ("head", "title", "source"),
    [
        (
            meta(og__title="The River: embankment to rise"),
            "Council raises embankment",
            "markup",
        ),  # a fifth of the words
        (meta(og__title="A walk in the town's old park"), "A walk in the town's old park", "meta"),
        (meta(og__title="raises Embankment!"), "raises Embankment!", "meta"),  # the heading has a kicker before it
        (ld(headline="Embankment to rise"), "Embankment to rise", "json-ld"),
        (ld(headline="Council raises emb…"), "Council raises embankment", "markup"),
        (ld(headline="Council raises"), "Council raises", "json-ld"),
    ],
)
def test_the_heading_of_a_page_precedes_a_title_for_social_networks_and_a_cut_one(head, title, source):
    article = extract_page(html(head, f"<h1>Council raises embankment</h1>{BODY}"), URL).article
    assert article.title == title
    assert f"title: {source}" in article.sources


def test_words_of_headings_without_spaces_are_compared_by_letters():
    for stated, title in (("議会が堤防を高くする理由", "堤防を高くすることを決定"), ("市長の一日", "市長の一日")):
        page = html(meta(og__title=stated), f"<h1>堤防を高くすることを決定</h1>{BODY}")
        assert extract_page(page, URL).article.title == title


@pytest.mark.parametrize("name", ["The River News", "River News Online"])
@pytest.mark.parametrize("site", ["", meta(og__site_name="The River News")])
def test_a_heading_that_is_the_name_of_the_site_is_no_title(name, site):
    stated = "Council raises embankment - The River News"
    page = html(site + meta(og__title=stated), f"<h1>{name}</h1>{BODY}").replace(
        "embankment</title>", f"{stated[15:]}</title>"
    )
    assert extract_page(page, URL).article.title.startswith("Council raises embankment")


def test_a_title_that_a_template_cuts_without_a_mark_is_read_from_the_heading():
    heading = "Council raises embankment and walls " * 3
    for length, title in ((90, heading.strip()), (89, heading[:89])):
        page = html(ld(headline=heading[:length]), f"<h1>{heading}</h1>{BODY}")
        assert extract_page(page, URL).article.title == title


@pytest.mark.parametrize("name", ["<h1><a href=/>River News</a></h1>", "<h1>Town</h1>", "<h1><img src=l.png></h1>"])
def test_the_title_of_a_page_whose_main_heading_is_of_the_site(name):
    body = f"{name}<article><h2>Council raises embankment</h2>{BODY}</article>"
    article = extract_page(html(body=body).replace("</title>", " - The River</title>"), URL).article
    assert (article.title, article.body.split("\n")[0]) == ("Council raises embankment", f"{SENTENCE}Paragraph 0.")


def test_images_of_other_names():
    links = "<link rel=image_src href=/a.jpg>", "<meta itemprop=image content=/a.jpg>"
    for head in (*links, ld(thumbnailUrl="/a.jpg"), ld(image={"url": ["/a.jpg"]})):
        assert extract_page(html(head), URL).article.image_url == "http://rivernews.example/a.jpg"
    for head in ("", meta(og__image=""), meta(og__image="data:image/png;base64,AA")):
        assert extract_page(html(head), URL).article.image_url == ""
