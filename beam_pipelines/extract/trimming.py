"""Recognises lines inside an article's element that are not part of it: calls to action, related stories, bios."""

# ruff: noqa: RUF001 - the marks that pages are written with

import re

# Patterns of lines that are never part of an article, in the most common languages of news.
_BOILERPLATE = re.compile(
    r"""^\W*(?:
    advertisements?\W*$ | sponsored(?:\ content|\ by\b.*)?\W*$ | publicidad\W*$ | anzeige\W*$ | publicité\W*$
    | реклама\W*$
    | (?:story|article)\ continues\ (?:below|after).*$
    | (?:read\ (?:more|next|also|full|the\ full)|see\ also|also\ read
        |related(?:\ (?:stories|articles|content|links?|topics?|news|coverage|reading))?
        |more(?:\ (?:from|on|news|stories|in|about)\b[^.]*)?|recommended(?:\ (?:for\ you|stories))?|don.t\ miss|up\ next
        |watch(?:\ (?:now|below|more|live))?|listen|lee\ (?:también|además)|ver\ también|lire\ aussi|à\ lire\ aussi
        |mehr\ zum\ thema|lesen\ sie\ auch|leia\ (?:também|mais)|leggi\ anche|lees\ ook|читайте\ также|сейчас\ читают)
        \s*(?:[:|»>–—-].*)?$
    | (?:sign\ up|subscribe)\b.{0,200}$ | (?:click|tap)\ here\b.{0,160}$
    | (?:get|receive|start\ your\ day\ with)\b.{0,80}\b(?:newsletter|inbox|breaking\ news|alerts?|notifications?)\b
        .{0,120}$
    | (?:please\ )?(?:follow|like|find|join)\ (?:us|me|him|her|them|@?\w+(?:\ \w+)?)\ (?:on|via)
        \ (?:twitter|facebook|instagram|x|linkedin|telegram|whatsapp|youtube|tiktok|google|threads)\b.{0,160}$
    | follow\ @?\w+(?:\ [A-Z]\w+)?\W*$
    | share(?:\ (?:this|on|via|with)\b.{0,60})?\W*$
    | this\ is\ a\ breaking\ news?\ story\b.{0,100}$ | create\ an\ account\ or\ sign\ in\b.{0,100}$
    | .{0,160}\bnewsletters?\b.{0,120}\b(?:your\ inbox|(?:sign\ up|subscribe)\ (?:here|now|today|for|to\ get))\b.{0,80}$
    | .{0,200}\b(?:buy|purchases?|links?)\b.{0,100}\b(?:earn|receive|get)\b.{0,40}\bcommissions?\b.{0,80}$
    | (?:tweet|email|print|comments?|copy\ link|whatsapp|facebook|twitter|pinterest|reddit|linkedin|save)\W*$
    | (?:post|leave|view|show|load|read|add)\ (?:a\ |all\ |the\ |your\ )?comments?\b.{0,60}$ | \d+\ comments?\W*$
    | (?:©|\(c\)\ |copyright\b).{0,300}$
    | (?:photo(?:graph)?|image|picture|video|credit|foto|photos?\ by|source\ photo)s?\s?(?:credit)?\s?:.{0,160}$
    | (?:tags?|topics?|filed\ under|filed\ to|published\ under|in\ this\ article|keywords|categories|category
        |posted\ in)\s?:.{0,300}$
    | (?:last\ )?(?:updated|published|posted)(?:\ (?:on|at))?\s?:?\ .{0,60}\d{1,4}.{0,40}$
    | (?:our\ standards:|download\ (?:our|the)\ .{0,60}\bapp\b).{0,120}$
    | (?:this\ (?:article|story|post)\ (?:was\ )?(?:originally|first)\ (?:appeared|published|ran)\b).{0,200}$
    | (?:want\ to\ bookmark|bookmark\ popover|already\ (?:a\ )?(?:subscrib|member)).{0,200}$
    | by\ (?:signing\ up|subscribing|clicking|entering\ your\ e-?mail|submitting)\b.{0,80}\byou\b.{0,300}$
    | (?:to\ (?:read|continue\ reading)\ (?:the\ (?:rest|full)|this)\b.{0,60}
        |already\ have\ an\ account\b|don.t\ have\ an\ account\b).{0,160}$
    | (?:to\ view\ this\ video|this\ browser\ does\ not|your\ browser\ does\ not|please\ enable\ javascript).{0,200}$
    | (?:this\ (?:post|article|page|site|story)\ (?:may\ )?contains?\ affiliate\ links).{0,300}$
    | (?:support\ .{0,40}\bjournalism|make\ a\ (?:donation|contribution)|donate\ (?:now|today|here)).{0,200}$
    | (?:have\ a\ (?:tip|story|question)|got\ a\ (?:tip|story)|send\ (?:us\ )?(?:tips?|your\ tips?|letters)\b).{0,240}$
    | 【?责任编辑.{0,40}$
    | (?:_{3,}|\*{3,}|-{3,}|•|\W{0,4})$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_CREDIT = re.compile(
    r"\((?:[^()/]{3,50}/[^()/]{3,50}"
    r"|[^()]{0,40}\b(?:photo(?:s|graph)?|courtesy|getty|reuters|afp|illustration)\b[^()]{0,60})\)\W{0,3}$",
    re.IGNORECASE,
)
_RIGHTS = re.compile(r"\ball rights reserved\b|版权(?:说明|保护|声明|所有)", re.IGNORECASE)
# Headings after which nothing of the article follows.
_END = re.compile(
    r"""^\W*(?:
    related\b.{0,40} | more\ (?:from|on|stories|news|in|about|to\ explore)\b.{0,60}
    | you\ (?:may|might)\ (?:also\ )?(?:like|be\ interested).{0,40} | recommended\b.{0,30}
    | most\ (?:read|popular|viewed|shared)\b.{0,30}
    | (?:popular|trending|latest)(?:\ (?:now|news|stories|posts|articles))? | comments?
    | join\ (?:our\ commenting|the\ (?:conversation|discussion))\b.{0,40}
    | about\ the\ (?:authors?|writers?|contributors?|reviewers?|editors?|reporters?)
    | leave\ a\ (?:reply|comment) | (?:read|up)\ next
    | also\ (?:on|in|read)\b.{0,40} | (?:share|follow|newsletters?|subscribe)\b.{0,40}
    | contact(?:\ (?:us|me|the\ (?:author|writer|reporter|editor)|information|details|.*@)\b.{0,40})? | around\ the\ web
    | from\ around\ the\ web | sponsored\b.{0,30} | support\ .{0,40}journalism.{0,40} | เรื่องที่เกี่ยวข้อง
    )\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
# Author bios at the end of an article: "X is a reporter at Y", "Reach her at x@y.org", "Follow him on Twitter".
_PORTRAIT = re.compile(
    r"""^[^.]{0,80}\b(?:is|was)\ (?:an?|the)\ (?:[\w’'-]+\ |[\w’'-]+,\ ){0,6}
        (?:reporter|writer|editor|correspondent|journalist|columnist|contributor|producer|author|fellow|blogger|critic
          |freelancer|intern)\b
      | ^\W?(?-i:[A-Z][\w.’'-]*(?:\ [A-Z][\w.’'-]*){1,3})(?:,\ [^.]{0,60},)?\ (?:is|was)\ (?:[\w’'-]+,?\ ){0,8}
        (?:professor|faculty|lecturer|researcher|director|officer|founder|co-?founder|ceo|cto|president|consultant|attorney
          |lawyer|physician|strategist|economist|analyst|novelist|poet|historian)\b
      | \b(?:can\ be\ reached|reach|e-?mail|contact|write\ to)
          \ (?:him|her|them|me|us|the\ (?:writer|author|reporter)|at|via)?\b.{0,60}[\w.]+@[\w.]+
      | \bfollow(?:s|ed)?\ (?:(?:him|her|them|me|us|[A-Z]\w+)\ )?on\ (?:twitter|x|facebook|instagram|bluesky)\b
      | ^\W*(?:twitter|e-?mail)\s?:?\s*[@\w]""",
    re.IGNORECASE | re.VERBOSE,
)
# What a site tells its readers after an article: newsletters, apps, subscriptions, and where to send stories.
_APPEAL = re.compile(
    r"""\b(?:sign(?:ing)?\ up|subscribe|subscribing|bookmark|register)\b.{0,80}
        \b(?:newsletters?|updates|alerts?|homepage|website|access)\b
      | \b(?:newsletters?|whatsapp[-\ ](?:kanal|channel|canal)|push[-\ ](?:nachrichten|alerts?)|e-paper)\b
        .{0,120}\b(?:inform\w+|sign|direkt|direct\w*|inbox|postfach|abonn\w+|subscri\w+|suscr\w+|app|news|updates?|morgen)\b
      | \b(?:become\ a\ (?:paid\ )?(?:subscriber|member)|unlock\ this\ article|for\ more\ stories\ like\ this)\b
      | \b(?:exclusive|only\ available|available\ only)\b.{0,20}\b(?:to|for)\b.{0,20}\bsubscribers\b
      | \b(?:do\ you\ have|got)\ a\ (?:story|tip)\b | \bget\ in\ touch\ with\ our\ news
      | \b(?:your|the)\ (?:source|place|destination)\ for\b.{0,60}\b(?:news|journalism|scoops)\b
      | \babonni\w*\b.{0,120}\b(?:newsletter|kanal|zeitung|pressefreiheit|jetzt)\b | \bkostenlos\ testen\b
      | \bunterstützen\ sie\ uns\b | \bihre\ meinung\b.{0,80}@
      | ^il\ vous\ reste\b.{0,80}\b(?:lire|découvrir)\b | \br[ée]serv[ée]e?s?\ aux\ abonn
      | \b(?:tu|su|la)\ suscripción\b | \bsuscr[ií]b(?:ete|ase|irse)\b | \bподпи(?:сывайтесь|шитесь)\b
      | 会員(?:限定|登録|の方|になる) | 有料(?:会員|記事|登録) | (?:電子版|新聞).{0,20}(?:登録|購読|利用)""",
    re.IGNORECASE | re.VERBOSE,
)
MAX_LINE = 400
_MIN_REPEATED_LINES, _MIN_REPEATED_CHARACTERS = 3, 1_000


def is_boilerplate(line: str, *, item: bool = False) -> bool:
    """Returns whether a line is a call to action, a label or a notice of the site.

    Args:
      line: the line.
      item: whether it is a heading or an item of a list, in which words in parentheses are not a picture's credit.
    """
    if len(line) > MAX_LINE:
        return False
    if _BOILERPLATE.match(line) is not None:
        return True
    if not item and ")" in line[-4:] and _CREDIT.search(line[-160:]) is not None:
        return True
    # The search itself is slow on lines without these letters, which are nearly all.
    return ("ights" in line or "IGHTS" in line or "版" in line) and _RIGHTS.search(line) is not None


def ends_article(heading: str) -> bool:
    """Returns whether a heading introduces content after the end of an article."""
    return len(heading) <= 100 and _END.match(heading) is not None


def is_portrait(line: str) -> bool:
    """Returns whether a line at the end of an article is about its author."""
    return len(line) <= 2 * MAX_LINE and _PORTRAIT.search(line) is not None


def is_appeal(line: str) -> bool:
    """Returns whether a line at the end of an article asks readers to subscribe, to install or to write to the site."""
    return len(line) <= MAX_LINE and _APPEAL.search(line) is not None


def without_repeats(lines: list[str]) -> list[str]:
    """Returns lines without the passages that are there twice: some pages have their text once for each size of screen.

    A passage is repeated if at least three lines with 1,000 characters follow each other as they did before.
    """
    if len(set(lines)) == len(lines):
        return lines
    kept, first = list[str](), dict[str, int]()
    place = 0
    while place < len(lines):
        earlier = first.setdefault(lines[place], place)
        count = 0
        while place + count < len(lines) and earlier + count < place and lines[earlier + count] == lines[place + count]:
            count += 1
        characters = sum(map(len, lines[place : place + count]))
        if count < _MIN_REPEATED_LINES or characters < _MIN_REPEATED_CHARACTERS:
            kept.append(lines[place])
            count = 1
        place += count
    return kept
