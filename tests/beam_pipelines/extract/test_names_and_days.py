"""extract: people, titles, days, and lines that are not part of an article, by values worked by hand."""

import datetime

import pytest
from newsembed.beam_pipelines.extract import bylines as people_module
from newsembed.beam_pipelines.extract.bylines import names_person, people
from newsembed.beam_pipelines.extract.layout import Name, is_body_name, is_hidden_name, judge_name
from newsembed.beam_pipelines.extract.page import _element_title, clean_title, headings_of, parse
from newsembed.beam_pipelines.extract.trimming import ends_article, is_appeal, is_boilerplate, is_portrait
from newsembed.formats.dates import day_in_url, parse_day

URL = "http://rivernews.example/town/1"


# The day of the texts after it. No day depends on the zone of the machine; a day in a text needs its month by name or
# the order of its numbers; eight digits are too few for seconds since 1970, and only 200 characters are read.
DAYS = """
2016-11-08 <- 2016-11-8T23:59 | 201611081200 | 20161108120030 | Nov. 8, 2016 | november 8th 2016 | 8-Nov-2016
2016-11-08 <- 2016년 11월 8일 | 8 ноября 2016 | xxx 2016-11-08
2016-11-09 <- Mon, 08 Nov 2016 23:00:00 -0500
2016-03-01 <- 1er mars 2016 | Datum:1. März 2016
2016-05-08 <- 8 de mayo del 2016 | 8º maggio 2016
1899-11-08 <- 18991108
2018-06-18 <- 1529283660000
2021-03-02 <- 2021-03-01T23:30:00-05:00
2014-12-27 <- Saturday, December 27, 2014, 12:06 PM
2021-03-01 <- 1. März 2021
2021-03-01 <- 2021-03-01T23:30:00 | 2021-03-01T00:30:00 | 1614643199
2021-03-02 <- 1614643200
2012-12-06 <- at 10:41 on 6 de diciembre de 2012, updated 7 December 2012
None <- 2016-11-081 | 99999999 | Nov 8, 16 | 0001-01-01T00:00:00+14:00 | xxxx 2016-11-08
None <- May 2016 | 5/6/2016 | from 2016-13-08
"""


@pytest.mark.parametrize("line", DAYS.strip().splitlines())
def test_days_as_pages_write_them(line):
    day, written = line.split(" <- ")
    for text in written.replace("xxxx", "x" * 192).replace("xxx ", "x" * 180 + " ").split(" | "):
        assert str(parse_day(text)) == day, text


def test_days_as_numbers():
    assert [parse_day(value) for value in (3.5, True, [], 1262304000)] == [None, None, None, datetime.date(2010, 1, 1)]


def test_days_in_urls():
    found = [day_in_url(f"http://s.example/{path}/a") for path in ("2016/11/08", "2016/1/2")]
    assert found == [datetime.date(2016, 11, 8), datetime.date(2016, 1, 2)]
    assert day_in_url("http://s.example/2016-11-08-a") == found[0]
    for path in ("2016/13/08", "2016/02/30", "x2016/11/08", "2016/11/081"):
        assert day_in_url(f"http://s.example/{path}/a") is None, path


BYLINES = """
By Ann Lee with Bo Chen & Cy Day -> Ann Lee; Bo Chen; Cy Day
Ann Lee-Chen -> Ann Lee-Chen
Updated by Ann Lee -> Ann Lee
Byron Lee -> Byron Lee
By ANN O’NEILL, Staff Writer -> Ann O’Neill
Von Jürgen Groß und Ute Bär -> Jürgen Groß; Ute Bär
Ann Lee, Zorro -> Ann Lee  # a single word next to a full name
https://www.facebook.com/annlee ->
one two three four five six seven ->
Ann Lee [River News] <ann@x.example> -> Ann Lee
Dr. Ann -> Dr. Ann  # a title stays before a single name
Ann Lee, PhD, Bo Chen Sr. -> Ann Lee; Bo Chen Sr
Ann Lee, III -> Ann Lee III.
Reuters -> Reuters
Staff Writer; Reuters -> Staff Writer; Reuters
Ann Lee for the River News -> Ann Lee
ann lee-o'neill -> Ann Lee-O'Neill
X ->
Bo -> Bo
Ann 2016 ->
Read more: Ann ->
梁振英, Zorro -> 梁振英  # a name without spaces is a full name outside ASCII
one two three four five six -> One Two Three Four Five Six
Maria Silva e João Souza -> Maria Silva; João Souza
Jan de Vries, Eva Lind en Piet Bakker -> Jan de Vries; Eva Lind; Piet Bakker
Ана Ковач і Іван Бойко -> Ана Ковач; Іван Бойко
José Ortega y Gasset -> José Ortega y Gasset  # one name
דנה כהן ויוסי לוי -> דנה כהן; יוסי לוי
محمد علي وليد -> محمد علي وليد  # the letter belongs to a name
김철수 및 이영희 기자 -> 김철수; 이영희
记者：王小明、李华 -> 王小明; 李华
Olsen, Marta -> Marta Olsen
van der Berg, Jan; OLSEN, MARTA -> Jan van der Berg; Marta Olsen
Ann Lee, Reuters -> Ann Lee
Reuters, Bloomberg -> Reuters; Bloomberg
By Ann Lee Email the author -> Ann Lee
Ann Lee | 13 May 2024 | 4 min read -> Ann Lee
Last Updated Nov 4, 2016 12:35 PM EDT ->
Ann Lee May 13, 2024, 5:03 PM -> Ann Lee
Ann Lee 5 minutes ago -> Ann Lee
Ann Lee an hour ago -> Ann Lee
Words by Ann Lee. Photographs by Bo Chen -> Ann Lee; Bo Chen
Texte de Ann Lee - Photos: Bo Chen -> Ann Lee; Bo Chen
["Ann Lee", {"name": "Bo Chen"}] -> Ann Lee; Bo Chen
['Ann O’Neill', 'Bo Chen'] -> Ann O’Neill; Bo Chen
{Ann Lee,Bo Chen} -> Ann Lee; Bo Chen
nan ->
By Ann Lee Senior Reporter, AP Science Writer -> Ann Lee
Ann Lee Reading time: 4 minutes -> Ann Lee
Maria Silva şi Ion Ionescu -> Maria Silva; Ion Ionescu
MARIA SILVA E JOÃO SOUZA -> Maria Silva; João Souza
山田太郎・鈴木花子と田中一郎 -> 山田太郎; 鈴木花子; 田中一郎
Olsen, Marta B. -> Marta B. Olsen
Brown, J. K.; de la Cruz, María José -> J. K. Brown; María José de la Cruz
Ann Lee Follow @annlee -> Ann Lee
Ann Lee Updated May 14, 2024 -> Ann Lee
Ann Lee Sunday 12 May 2024 -> Ann Lee
Sunday Oliseh 12 May 2024 -> Sunday Oliseh
von der Leyen, Ursula -> Ursula von der Leyen
Ann Lee in New York and Bo Chen in Hong Kong -> Ann Lee; Bo Chen
Reporting by Ann Lee; Editing by Bo Chen -> Ann Lee; Bo Chen
Ein Gastbeitrag von Ann Lee -> Ann Lee
Propos recueillis par Ann Lee -> Ann Lee
文/王小明 图/李小红 -> 王小明; 李小红
作者：未知 责任编辑：王小明 -> 王小明
王小明 关注 -> 王小明
Ann Lee Alles von Ann Lee -> Ann Lee
Dewi Kania Jurnalis -> Dewi Kania
Facebook ->
山田太郎 5分前 -> 山田太郎
['Ann Lee' 'Bo Chen'] -> Ann Lee; Bo Chen
array(['Ann Lee', 'Bo Chen'], dtype=object) -> Ann Lee; Bo Chen
ByAnn Lee -> Ann Lee
Veröffentlicht von Ann Lee -> Ann Lee
Eingestellt von der Ann -> der Ann
Publiziert am ->
Ann Lee Stand: 2. März 2021 -> Ann Lee
Ann Lee am Samstag, 2. März 2021 -> Ann Lee
Ann Lee Fr, 2. März 2021 -> Ann Lee
Ann Lee Alle Artikel -> Ann Lee
Ann Lee im Gespräch mit Bo Chen -> Ann Lee; Bo Chen
~ Ann Lee ~ -> Ann Lee
No Author ->
Von ->
window.x.push(function {load.Inline ->
[{"first_name": "Ann", "last_name": "Lee"}, {"displayName": "Bo Chen"}] -> Ann Lee; Bo Chen
"""


@pytest.mark.parametrize("line", BYLINES.strip().splitlines())
def test_bylines(line):
    byline, names = line.partition("  #")[0].split(" ->")
    assert people(byline) == tuple(name.strip() for name in names.split(";") if name.strip())


def test_a_name_has_sixty_characters_at_most():
    assert (people("A" * 61), people("A" * 60)) == ((), ("A" * 60,))


def test_the_first_spelling_of_a_name_counts_and_ten_names_at_most():
    assert people(("ann lee", "Ann LEE", "Bo Chen")) == ("Ann Lee", "Bo Chen")
    assert len(people("; ".join(f"Ann {letter}ee" for letter in "ABCDEFGHIJKL"))) == people_module._MAX_AUTHORS == 10
    assert people("Ann Lee; " + "x" * 1990 + "; Bo Chen") == ("Ann Lee",), "2,000 characters are read"


def test_a_person_is_neither_a_site_nor_an_agency_nor_a_job():
    assert names_person(("Reuters", "Ann Lee"))
    assert not names_person(("Reuters", "Staff Writer", "The Associated Press"))
    assert not names_person(("Riverine-24",), site="Riverine 24")
    assert names_person(("Riverine-24",), site="")
    assert names_person(("Apple Lee",)), "AP only as the whole name"
    assert not names_person(("annlee", "ann.lee", "ann-l2"))
    assert names_person(("anna",)), "the name of an account has five letters"
    assert not names_person(())


def test_headings_and_the_title_element():
    tree = parse(
        "<html><head><title> Walls\n rise </title></head><body><h1></h1>"
        + "".join(f"<h1>Heading <b>{number}</b></h1>" for number in range(6))
    )
    assert headings_of(tree) == [f"Heading {number}" for number in range(4)], "the first of five is empty"
    assert _element_title(tree) == "Walls rise"
    assert _element_title(parse("<p>None</p>")) == ""
    heading = "Council raises embankment"
    assert clean_title(f"{heading}s", [], URL, [heading]) == f"{heading}s", "no separator follows"
    assert clean_title(f"{heading}: more", [], URL, ["Other", heading]) == heading


NAMES = {
    Name.NEUTRAL: ["", "sidebarred", "articlebody", "articleBody", "x-entry-content", "content-entry"],
    Name.BOILERPLATE: ["Sidebar", "storyReadMore"],
    Name.NEVER: ["story sidebar comments"],
}


@pytest.mark.parametrize(("kind", "names"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_names_of_blocks(kind, names):
    assert judge_name(names) is kind
    assert is_body_name(names) is (names in {"articlebody", "articleBody", "x-entry-content"})


def test_names_of_hidden_text():
    assert is_hidden_name("text Screen-Reader-Text")
    assert is_hidden_name("imgCaption")
    assert not is_hidden_name("captioned")
    assert not is_hidden_name("screen-reader-texts")


def test_lengths_of_lines_that_are_no_part_of_an_article():
    assert is_boilerplate("Photo:" + "x" * 160)
    assert not is_boilerplate("Photo:" + "x" * 161)
    rights = " All rights reserved"
    assert is_boilerplate("x" * (400 - len(rights)) + rights)
    assert not is_boilerplate("x" * (401 - len(rights)) + rights)
    assert is_boilerplate("The walls. (Courtesy of the town).")
    assert is_boilerplate("The walls. (Courtesy of the town)...")
    assert not is_boilerplate("The walls. (Courtesy of the town)....")
    assert not is_boilerplate("The walls (Courtesy of the town) rise again.")
    assert ends_article("Comments" + "." * 92)
    assert not ends_article("Comments" + "." * 93)
    assert not is_appeal("Sign up for our newsletters " + "x" * 400)
    portrait = "Follow her on Twitter"
    assert is_portrait("x" * (799 - len(portrait)) + " " + portrait)
    assert not is_portrait("x" * (800 - len(portrait)) + " " + portrait)


@pytest.mark.parametrize(
    "byline",
    [
        "admin",
        "Admin2",
        "None",
        "n/a",
        "webmaster",
        ("undefined", "root"),
        "Autor",
        "Your name",
        "佚名",
        "publisher",
        "Link copied",
        "Get author RSS feed",
    ],
)
def test_values_and_accounts_that_name_nobody(byline):
    assert people(byline) == ()
