"""Pages written for the tests, in the manner of common templates and languages, with their text, authors and day."""

import datetime
import json

from newsembed.benchmarks.gold_pages import GoldPage

NAV = (
    '<nav><ul><li><a href="/">Home</a></li><li><a href="/town">Town</a></li><li><a href="/sport">Sport'
    "</a></li></ul></nav>"
)
FOOTER = "<footer><p>© 2021 The River News. All rights reserved.</p><a href=/terms>Terms of use</a></footer>"
RELATED = "".join(
    f'<li><a href="/town/{number}">Another headline about the river, number {number}</a></li>' for number in range(6)
)

WALLS = [
    "The council of the river town voted late on Tuesday to raise the embankment by one metre before the autumn rains.",
    "“We have waited for ten years,” said the mayor, Ada Brook, after the vote. “The water will not wait any longer.”",
    "Work begins in May and costs four million crowns, half of which the province pays; the other half is a loan.",
    "Farmers on the opposite bank fear that higher walls will send the floods to their fields, and have asked a court.",
]
FERRY = [
    "A ferry with sixty passengers ran aground near the lighthouse on Sunday morning, and all of them were rescued.",
    "The captain told reporters that the buoy which marks the sandbank had drifted during the storm of the night.",
    "Divers will inspect the hull on Monday, the company said, and the line is closed until they have finished.",
]
MARKET = [
    (
        "Die Stadt verlegt den Wochenmarkt ab April auf den Platz vor dem Bahnhof, wie "
        "die Verwaltung am Freitag mitteilte."
    ),
    "Grund ist der Umbau des Rathauses, der nach Angaben des Bürgermeisters mindestens zwei Jahre dauern wird.",
    "Die Händler sehen den Umzug gelassen: Am Bahnhof gebe es mehr Laufkundschaft, sagte ihre Sprecherin Ute Bär.",
]
SCHOOL = [
    "El ayuntamiento abrirá en septiembre una escuela de música en el antiguo mercado, anunció ayer la alcaldesa.",
    "El edificio, cerrado desde hace quince años, costará dos millones de euros y tendrá doce aulas y un auditorio.",
    "Los vecinos habían pedido un centro cultural, pero la mayoría del pleno prefirió la escuela, según el acta.",
]
BRIDGE = [
    "Le vieux pont de pierre sera fermé aux voitures à partir de lundi, a annoncé la préfecture dans un communiqué.",
    "Les piétons et les cyclistes pourront encore le traverser pendant les travaux, qui dureront six mois environ.",
    "« C'est une bonne nouvelle pour le quartier », estime une commerçante, qui attend plus de clients à pied.",
]
RAIL = [
    "Новая железнодорожная линия между двумя городами откроется в декабре, сообщил министр транспорта в среду.",
    "Поезда будут идти со скоростью до двухсот километров в час, и дорога займёт всего пятьдесят минут.",
    "Строительство длилось восемь лет и стоило вдвое больше, чем планировалось, признал представитель компании.",
]
HARBOUR = [
    "市政府星期三宣布，港口的扩建工程将于明年春天开始，预计需要三年时间才能全部完成，总投资约为四十亿元。",
    "新的码头可以停靠更大的货船，港务局局长在新闻发布会上说，吞吐量将会增加一倍，并创造两千个就业岗位。",
    "附近的渔民担心施工会影响他们的收入，政府表示将在今年年底之前公布具体的补偿方案，并听取他们的意见。",
    "扩建之后，港口将成为全省最大的货运中心，铁路部门也计划修建一条新的支线，把码头和内陆的工业区直接连接起来。",
    "一位当地的商会代表说，企业对这个项目期待已久，但希望施工期间道路交通不会受到太大的影响，物流成本也不会上升。",
]


def paragraphs(texts):
    return "".join(f"<p>{text}</p>" for text in texts)


def page(head, body, lang="en"):
    return f'<!DOCTYPE html><html lang="{lang}"><head><meta charset="utf-8">{head}</head><body>{body}</body></html>'


def ld(kind="NewsArticle", **fields):
    data = json.dumps({"@context": "https://schema.org", "@type": kind, **fields})
    return f'<script type="application/ld+json">{data}</script>'


def gold(name, url, html, body, authors=None, day=None):
    return GoldPage(name, url, html.encode(), "\n".join(body), (), authors, datetime.date(*day) if day else None)


PAGES = [
    gold(
        "article element with metadata",
        "http://rivernews.example/town/walls",
        page(
            "<title>Council raises embankment - The River News</title>"
            + ld(
                headline="Council raises embankment", datePublished="2021-03-02T08:00:00Z", author={"name": "Ann Lee"}
            ),
            (
                f"{NAV}<article><h1>Council raises embankment</h1>{paragraphs(WALLS)}</article><aside><ul>{RELATED}"
                f"</ul></aside>{FOOTER}"
            ),
        ),
        WALLS,
        ("Ann Lee",),
        (2021, 3, 2),
    ),
    gold(
        "blog with sidebar, byline and comments",
        "http://harbourblog.example/2021/03/14/ferry-runs-aground/",
        page(
            "<title>Ferry runs aground | Harbour Blog</title>",
            '<div id="header"><a href="/">Harbour Blog</a></div><div class="content-sidebar-wrap"><div class="post">'
            '<h1 class="entry-title">Ferry runs aground</h1><p class="byline">By <a rel="author" '
            'href="/bo">Bo Chen</a></p>'
            f'<div class="entry-content">{paragraphs(FERRY)}<div class="sharedaddy">Share this: Twitter Facebook'
            f"</div></div>"
            '<div id="comments"><h3>2 comments</h3><p>I was on board, and I can say that '
            "the crew did everything right, "
            "from the first minute to the last.</p><p>The buoy has been loose since last "
            "year, as everybody on the pier "
            f'knows, and nobody cares.</p></div></div><div class="sidebar"><ul>{RELATED}</ul></div></div>',
        ),
        FERRY,
        ("Bo Chen",),
        (2021, 3, 14),
    ),
    gold(
        "German page with a cookie banner and meta elements",
        "http://tagblatt.example/lokales/wochenmarkt",
        page(
            '<title>Wochenmarkt zieht um</title><meta property="og:title" content="Wochenmarkt zieht um">'
            '<meta name="author" content="Von Jürgen Groß"><meta name="date" content="2021-03-05T17:30:00+01:00">',
            '<div class="cookie-banner"><p>Wir verwenden Cookies, um Ihnen den besten Service '
            "zu bieten, und geben sie weiter.</p>"
            f'</div>{NAV}<main><div class="article-body"><h2>Wochenmarkt zieht um</h2>{paragraphs(MARKET[:2])}'
            f'<div class="ad">Anzeige</div><p>{MARKET[2]}</p><p>Lesen Sie auch: <a href="/x">Rathaus wird teurer'
            f"</a></p>"
            f"</div></main>{FOOTER}",
            "de",
        ),
        MARKET,
        ("Jürgen Groß",),
        (2021, 3, 5),
    ),
    gold(
        "Spanish page with lines separated by breaks",
        "http://diario.example/cultura/escuela-de-musica",
        page(
            "<title>Una escuela de música en el mercado</title>",
            f'{NAV}<div id="cuerpo"><h1>Una escuela de música en el mercado</h1><span class="fecha '
            f'date">6 de marzo de 2021</span>'
            f'<div>{"<br><br>".join(SCHOOL)}</div></div><div class="related"><h4>Lee también</h4><ul>{RELATED}'
            f"</ul></div>{FOOTER}",
            "es",
        ),
        SCHOOL,
        None,
        (2021, 3, 6),
    ),
    gold(
        "French page with a picture and a quote box",
        "http://gazette.example/2021/03/08/pont-ferme.html",
        page(
            "<title>Le pont fermé</title>" + ld(headline="Le pont fermé", author=["Luc Petit", "Rédaction"]),
            f"{NAV}<article><header><h1>Le pont fermé</h1></header><figure><img src=p.jpg>"
            f"<figcaption>Le pont de pierre, vu de "
            f"la rive gauche, en février. (Photo: Luc Petit)</figcaption></figure>{paragraphs(BRIDGE[:1])}"
            f'<aside class="pullquote">Une bonne nouvelle pour tous les habitants du quartier, '
            f"selon une commerçante.</aside>"
            f"{paragraphs(BRIDGE[1:])}<h3>À lire aussi</h3><ul>{RELATED}</ul></article>{FOOTER}",
            "fr",
        ),
        BRIDGE,
        ("Luc Petit",),
        (2021, 3, 8),
    ),
    gold(
        "Russian page laid out with tables",
        "http://vesti.example/news/12345",
        page(
            '<title>Новая линия</title><meta property="article:published_time" content="2021-03-10T12:00:00+03:00">',
            f'<table><tr><td width=200><a href="/">Главная</a><br><a href="/sport">Спорт</a></td><td>'
            f"<h1>Новая линия</h1>"
            f"{paragraphs(RAIL)}<p>Читайте также: <a href=/2>Другая новость</a></p></td></tr></table>",
            "ru",
        ),
        RAIL,
        None,
        (2021, 3, 10),
    ),
    gold(
        "Chinese page with short columns",
        "http://xinwen.example/a/20210311/1.html",
        page(
            "<title>港口扩建工程明年开始</title>",
            f'<div class="top"><a href="/">首页</a> <a href="/news">新闻</a></div>'
            f'<div class="main"><h1>港口扩建工程明年开始</h1>'
            f'<div class="info">2021年3月11日 10:30 来源：港口日报</div><div id="artibody">{paragraphs(HARBOUR)}</div>'
            f"<p>责任编辑：王明</p></div>",
            "zh",
        ),
        HARBOUR,
        None,
        (2021, 3, 11),
    ),
    gold(
        "page that a script shows, in a form",
        "http://oldsite.example/story.aspx?id=99",
        page(
            "<title>Ferry runs aground</title><meta name=pubdate content=20210314>",
            f'<form id="aspnetForm"><div hidden><div class="storytext">{paragraphs(FERRY)}</div></div></form>',
        ),
        FERRY,
        None,
        (2021, 3, 14),
    ),
    gold(
        "two stories on one page",
        "http://rivernews.example/town/endless",
        page(
            "<title>Council raises embankment</title><meta name=author content='Ann Lee and Bo Chen'>",
            f"<div><article><h1>Council raises embankment</h1>{paragraphs(WALLS)}</article><article>"
            f"<h1>Ferry runs aground</h1>"
            f"{paragraphs(FERRY)}</article></div>",
        ),
        WALLS,
        ("Ann Lee", "Bo Chen"),
    ),
    gold(
        "article with subheadings, a list and a portrait",
        "http://rivernews.example/town/questions",
        page(
            "<title>Five questions about the walls</title>"
            + ld("ReportageNewsArticle", datePublished="2021-03-12", author={"@type": "Person", "name": "ANN LEE"}),
            f"<main><h1>Five questions about the walls</h1>{paragraphs(WALLS[:2])}<h2>What happens next?</h2>"
            f"<ul><li>The province signs the loan in April.</li><li>The court hears the farmers in June.</li></ul>"
            f"{paragraphs(WALLS[2:])}<p>Ann Lee is a reporter at the River News. Follow her on Twitter @annlee."
            f"</p></main>",
        ),
        [
            *WALLS[:2],
            "What happens next?",
            "The province signs the loan in April.",
            "The court hears the farmers in June.",
            *WALLS[2:],
        ],
        ("Ann Lee",),
        (2021, 3, 12),
    ),
    gold(
        "teaser whose text is in JSON-LD",
        "http://plus.example/town/walls",
        page(
            "<title>Council raises embankment</title>"
            + ld(
                headline="Council raises embankment",
                datePublished="2021-03-02",
                isAccessibleForFree=False,
                articleBody="\n\n".join(WALLS),
                author={"name": "Ann Lee"},
            ),
            (
                f"{NAV}<article><h1>Council raises embankment</h1><p>{WALLS[0]}</p><div class=paywall>Subscribe "
                f"now to read on.</div></article>"
            ),
        ),
        WALLS,
        ("Ann Lee",),
        (2021, 3, 2),
    ),
    gold(
        "live blog",
        "http://rivernews.example/live/flood",
        page(
            "<title>The flood, live</title>"
            + ld("LiveBlogPosting", headline="The flood, live", datePublished="2021-03-20"),
            "<h1>The flood, live</h1>"
            + "".join(
                f'<div class="post"><div class="story-body"><p>{text}</p></div></div>' for text in [*FERRY, *WALLS]
            ),
        ),
        [*FERRY, *WALLS],
        None,
        (2021, 3, 20),
    ),
]
