"""extract: which of the texts of a page is its body: that of the markup, of JSON-LD or of the slow extractor."""

import pytest
from newsembed.beam_pipelines.extract import body
from newsembed.beam_pipelines.extract.body import Body, is_within_slow_limits, read_body, slow_text
from newsembed.beam_pipelines.extract.content import Content
from newsembed.beam_pipelines.extract.layout import Block, Element, Layout, Name
from newsembed.beam_pipelines.extract.page import extract_page


def words(*counts, letter="w"):
    """Different words of three characters each: ``words(2, 4)`` are w02 and w03."""
    first, last = counts if len(counts) == 2 else (0, counts[0])
    return " ".join(f"{letter}{number:02}" for number in range(first, last))


STATED = words(100)  # 399 characters


@pytest.fixture
def read(monkeypatch):
    """Reads a body where the fast rules and the slow extractor have given texts; ``asked`` lists the slow calls."""

    def run(own="", stated="", slow="", confidence=1.0, prose=10_000.0, share=1.0, second=None):  # noqa: PLR0913
        def main_content(*_, by_names=True, **__):
            return Content(own if by_names or second is None else second, confidence, share)

        monkeypatch.setattr(body, "main_content", main_content)
        monkeypatch.setattr(body, "slow_text", lambda html, url: run.asked.append((html, url)) or slow)
        element = Element("body", "", Name.NEUTRAL, False, None)
        layout = Layout([Block("", 0.0, element, prose)], [element])
        return read_body("<p>", layout, "http://a.example/1", "A title", stated, live_blog=False)

    run.asked = []
    return run


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (words(80), Body(words(80), "markup")),  # 80 of the 100 words that JSON-LD has
        (words(79), Body(STATED, "json-ld")),  # all of them are stated, and JSON-LD has more
        (f"{words(40)} {words(10, letter='x')}", Body(STATED, "json-ld")),  # 40 of 50 are stated
    ],
)
def test_markup_and_json_ld_agree_where_they_share_four_fifths(read, own, expected):
    assert read(own, STATED) == expected
    assert read.asked == []


def test_a_longer_text_of_the_markup_is_not_replaced_by_json_ld_without_a_third_opinion(read):
    own = " ".join([words(78), *("y" * 30 + str(number) for number in range(19))])  # 78 of 97 words are stated
    assert read(own, STATED) == Body(own, "markup")
    assert read.asked == [("<p>", "http://a.example/1")]


@pytest.mark.parametrize(
    ("own", "slow", "expected"),
    [
        # F1 with the stated text: 2 * shared / (words of the one + words of the other).
        (f"{words(39)} {words(11, letter='x')}", words(50), "text"),  # 78 / 150 < 100 / 150
        (f"{words(59)} {words(16, letter='x')}", words(50), "markup"),  # 118 / 175 > 100 / 150
        (words(90, letter="x"), f"{words(50)} {words(50, letter='y')}", "text"),  # 100 / 200
        (words(90, letter="x"), f"{words(49)} {words(51, letter='y')}", "json-ld"),  # 98 / 200
        ("", "", "json-ld"),
    ],
)
def test_the_text_that_is_more_like_json_ld_wins_if_it_is_half_like_it(read, own, slow, expected):
    texts = {"markup": own, "text": slow, "json-ld": STATED}
    assert read(own, STATED, slow) == Body(texts[expected], expected)


def test_json_ld_counts_from_250_characters(read):
    assert read("o" * 250, "s" * 249).source == "markup"
    assert read("o" * 250, "s" * 250).source == "json-ld"


@pytest.mark.parametrize(
    ("characters", "confidence", "prose", "sure"),
    [
        (250, 0.5, 10_000, True),
        (250, 0.49, 10_000, False),
        (249, 0.5, 10_000, False),
        (90, 1.0, 300, True),  # 30 % of the prose of a page
        (89, 1.0, 300, False),
        (1, 1.0, 0, True),
        (0, 1.0, 0, False),
    ],
)
def test_the_slow_extractor_is_asked_about_short_and_uncertain_texts(read, characters, confidence, prose, sure):
    assert read("o" * characters, confidence=confidence, prose=prose).text == "o" * characters
    assert (read.asked == []) == sure


@pytest.mark.parametrize(
    ("own", "slow", "second", "expected"),
    [
        # The sum of the F1 with the other two; the bonus of the rules is 0.3.
        (words(9), STATED, STATED, "text"),  # 0.33 + 0.3 < 1.17, and the first of equal texts
        ("", STATED, "", "text"),
        ("", "", STATED, "markup"),
        (words(9), "", "", "markup"),
        ("", "", "", "markup"),
        (words(80), STATED, words(80), "markup"),
        (words(50), STATED, words(100, letter="x"), "markup"),  # 0.67 + 0.3 > 0.67
        (words(100, letter="y"), words(20), STATED, "text"),  # 0.3 < 0.33: both like each other, the first of them
        (words(100, letter="y"), words(10), STATED, "markup"),  # 0.3 > 0.18
    ],
)
def test_of_three_uncertain_texts_the_one_that_the_others_are_most_like_is_taken(read, own, slow, second, expected):
    chosen = read(own, slow=slow, confidence=0.0, second=second)
    texts = {"markup": own or second, "text": slow}
    assert chosen == Body(texts[expected], expected)


@pytest.mark.parametrize(
    ("share", "second", "sure"),
    [
        (0.67, words(100, letter="x"), True),  # the second reader is not asked
        (0.66, words(100, letter="x"), False),
        (0.66, words(50, 150), True),  # half of the words are supported
        (0.66, words(51, 151), False),
        (0.66, f"{words(100)} {words(900, letter='x')}", True),  # what names exclude is no objection
    ],
)
def test_where_names_removed_much_a_reader_without_names_must_agree(read, share, second, sure):
    read(words(100), slow=words(100), share=share, second=second)
    assert (read.asked == []) == sure


def test_bodies_have_at_most_fifty_thousand_characters(read):
    long = "word " * 20_000
    assert len(read(long).text) == 50_000
    assert len(read("", slow=long).text) == 50_000
    for own in (words(9), "other"):
        found = read(own, long)
        assert (len(found.text), found.source) == (50_000, "json-ld")


def test_words_are_compared_as_a_multiset_in_any_case():
    assert body.overlap("A a b", "a B b") == (2 / 3, 2 / 3)
    assert body.overlap("a", "a b c d") == (1, 1 / 4)
    assert body.overlap("", "a") == (0, 0)
    assert body.overlap("a", "") == (0, 0)


def test_large_pages_are_beyond_the_slow_extractor():
    assert is_within_slow_limits("x" * 3_000_000)
    assert not is_within_slow_limits("x" * 3_000_001)
    assert is_within_slow_limits("<" * 30_000)
    assert not is_within_slow_limits("<" * 30_001)
    page = "<html><body><article><p>The council voted late on Tuesday to raise the walls.</p></article></body></html>"
    assert slow_text(page, "") == "The council voted late on Tuesday to raise the walls."
    assert slow_text(page + "<" * 30_000, "") == ""


def test_a_short_summary_in_json_ld_does_not_replace_the_text(read):
    own = words(500, letter="y")
    assert read(own, STATED) == Body(own, "markup")
    assert read.asked == []
    assert read(words(300, letter="y"), STATED).source == "json-ld"  # more than a quarter as long


def test_json_ld_that_has_other_stories_in_between_does_not_replace_the_text(read):
    own = f"{words(40)}\n{words(40, 79)}"
    inserts = f"{words(40)} {words(60, letter='x')} {words(40, 79)}"
    assert read(own, inserts).source == "markup"
    cut = f"{words(79)} {words(60, letter='x')}"  # the page has only its start
    assert read(own, cut).source == "json-ld"


def test_a_short_text_that_is_a_small_part_of_the_prose_is_compared_with_others(read):
    own, whole = words(70), f"{words(99)} {words(99, letter='x')}"
    assert read(own, "", whole, share=0.34, second=whole).text == whole
    assert read(own, "", whole, share=0.35, second=whole).text == own
    long = " ".join(words(90, letter=letter) for letter in "ab")
    assert read(long, "", f"{long} {whole}", share=0.34, second=f"{long} {whole}").text == long


def test_menus_and_headlines_without_a_story_are_no_article():
    menu = "".join(f"<li><a href='/{name}'>{name} news</a></li>" for name in ("weather", "politics", "sport", "courts"))
    stories = "".join(f"<h3><a href='/{n}'>A museum surprises the city for the {n}th time</a></h3>" for n in range(2))
    ends = "<p>We use cookies to improve your visit. By continuing you agree.</p><p>Comments are closed.</p>"
    links = "<div>Archive · <a href='/authors/'>Our authors</a> · The Echo. All rights reserved.</div>"
    page = f"<html><body><ul>{menu}</ul><h1>Archive 2022/01</h1>{stories}{ends}{links}</body></html>"
    assert extract_page(page, "http://a.example/archive/2022/01").article is None


def test_a_link_to_all_authors_is_no_byline():
    text = "".join(f"<p>The council voted on Tuesday to raise wall {n}, as the river rose.</p>" for n in range(5))
    page = "<h1>A wall is raised</h1>{}" + text
    link = "<div><a href='/authors/{}'>Ann Lee</a></div>"
    for slug, expected in (("", ()), ("ann-lee", ("Ann Lee",))):
        found = extract_page(page.format(link.format(slug)), "http://a.example/walls")
        assert found.article.authors == expected
