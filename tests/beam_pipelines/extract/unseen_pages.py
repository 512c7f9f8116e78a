"""Pages of publishers that the rules were not written for: other templates, short texts, lists and tables.

A page stays as it is when a rule fails on it; new pages are added.
"""

from written_pages import BRIDGE, FERRY, FOOTER, MARKET, NAV, RAIL, RELATED, SCHOOL, WALLS, gold, page, paragraphs

SECTIONS = "".join(f'<li><a href="/s/{number}">Section with a long name {number}</a></li>' for number in range(25))
ROWS = ["Bank | Height", "North | 3.1 m", "South | 2.4 m", "Island | 1.9 m"]
TABLE = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row.split(" | ")) + "</tr>" for row in ROWS)
STEPS = ["The province signs.", "The court hears the farmers.", "The first stones arrive by boat."]
BRIEF = [
    "The ferry line is closed on Monday while divers inspect the hull, the company said in a notice to passengers.",
    "Tickets stay valid on Tuesday and on Wednesday, and the bus of line four stops at both piers.",
]


def unseen(name, host, body, text, title="A story of the river", lang="en"):
    return gold(
        name, f"http://{host}.example/a/story-of-the-river-2021", page(f"<title>{title}</title>", body, lang), text
    )


PAGES = [
    unseen(
        "association with a long menu",
        "rowing-club",
        f'<ul class="nav-list">{SECTIONS}</ul><div class="row"><div class="col-9"><h1>A story of the river</h1>'
        f"{paragraphs(WALLS[:2])}</div><div class='col-3'><ul>{RELATED}</ul></div></div>{FOOTER}",
        WALLS[:2],
    ),
    unseen(
        "office with one long paragraph",
        "water-office",
        f'<div class="mega"><ul>{SECTIONS}</ul></div><main><h1>A story of the river</h1><p>{" ".join(WALLS)}</p></main>'
        f"<ul>{RELATED}</ul>{FOOTER}",
        [" ".join(WALLS)],
    ),
    unseen(
        "report with a table in a figure",
        "levels-weekly",
        f"{NAV}<article><h1>A story of the river</h1>{paragraphs(WALLS)}<figure class='wp-block-table'><table>{TABLE}"
        f"</table><figcaption>Heights of the banks</figcaption></figure>{paragraphs(FERRY)}</article>{FOOTER}",
        [*WALLS, *ROWS, *FERRY],
    ),
    unseen(
        "guide with steps and headings that link",
        "quay-guide",
        "<main><h1>A story of the river</h1>"
        + "".join(
            f'<h2 id="p{number}"><a href="#p{number}">Part {number}</a></h2><p>{text}</p>'
            for number, text in enumerate(WALLS)
        )
        + f"<ol>{''.join(f'<li>{step}</li>' for step in STEPS)}</ol></main><div class=related-box>"
        f"<ul>{RELATED}</ul></div>",
        [line for number, text in enumerate(WALLS) for line in (f"Part {number}", text)] + STEPS,
    ),
    unseen(
        "box of facts in the middle",
        "stadtbote",
        f'<div class="inhalt"><h1>Der Markt</h1>{paragraphs(MARKET[:2])}<div class="infobox"><h3>Zahlen</h3>'
        f"<p>Der Markt hat achtzig Stände, und jede Woche kommen etwa viertausend Besucher, sagt die Stadt.</p></div>"
        f"{paragraphs(MARKET[2:])}</div>{FOOTER}",
        MARKET,
        "Der Markt",
        "de",
    ),
    unseen(
        "notice of one sentence",
        "ferry-line",
        f"<header><a href=/>Ferry line</a></header><section><h1>A story of the river</h1><p>{BRIEF[0]}</p>"
        f"<p>{BRIEF[1]}</p></section>{FOOTER}",
        BRIEF,
    ),
    unseen(
        "divisions instead of paragraphs, with a form of subscription",
        "pont-info",
        f'<div id="z1"><div class="t">Le pont</div>{"".join(f"<div class=z3>{text}</div>" for text in BRIDGE * 2)}'
        "<div class=z3>By subscribing, you agree that we write to you every week.</div></div>"
        f"<div id=z9><ul>{RELATED}</ul></div>",
        BRIDGE * 2,
        "Le pont",
        "fr",
    ),
    unseen(
        "old page of fonts and breaks",
        "escuela-vieja",
        f"<center><table width=600><tr><td><font size=5>La escuela</font><br><br>{'<br><br>'.join(SCHOOL)}<br><br>"
        "<a href=/>Volver a la portada</a></td></tr></table></center>",
        SCHOOL,
        "La escuela",
        "es",
    ),
    unseen(
        "list of stations in the text",
        "doroga",
        f"<div class=page><h1>Новая линия</h1>{paragraphs(RAIL)}<ul><li>Первая станция: порт.</li><li>Вторая станция: "
        f"вокзал.</li></ul><div class='share-panel'>VK Telegram</div></div>{FOOTER}",
        [*RAIL, "Первая станция: порт.", "Вторая станция: вокзал."],
        "Новая линия",
        "ru",
    ),
]
