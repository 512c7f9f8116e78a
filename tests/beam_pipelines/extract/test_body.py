"""extract: which of the texts of a page is its body: that of the markup, of JSON-LD or of the slow extractor."""

import pytest
from newsembed.beam_pipelines.extract import body
from newsembed.beam_pipelines.extract.body import Body, is_within_slow_limits, read_body, slow_text
from newsembed.beam_pipelines.extract.content import Block, Content, Layout


def words(*counts, letter="w"):
    """Different words of three characters each: ``words(2, 4)`` are w02 and w03."""
    first, last = counts if len(counts) == 2 else (0, counts[0])
    return " ".join(f"{letter}{number:02}" for number in range(first, last))


STATED = words(100)  # 399 characters


@pytest.fixture
def read(monkeypatch):
    """Reads a body where the fast rules and the slow extractor have given texts; ``asked`` lists the slow calls."""

    def run(own="", stated="", slow="", confidence=1.0, prose=10_000.0):
        monkeypatch.setattr(body, "main_content", lambda *_, **__: Content(own, confidence))
        monkeypatch.setattr(body, "slow_text", lambda html, url: run.asked.append((html, url)) or slow)
        layout = Layout([Block("", 0.0, 0, prose)], [0], [""], [], [False], ["body"])
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
    ("own", "slow", "confidence", "expected"),
    [
        (words(80), STATED, 0.4, "markup"),  # it contains four fifths of the slow text
        (words(79), STATED, 0.4, "text"),
        (words(50), STATED, 0.5, "markup"),  # half of it, and the rules are sure
        (words(50), STATED, 0.49, "text"),
        (words(49), STATED, 0.5, "text"),
        ("", STATED, 0.0, "text"),
        (words(9), "", 0.0, "markup"),
        ("", "", 0.0, "text"),
    ],
)
def test_the_slow_text_replaces_one_that_lacks_much_of_it(read, own, slow, confidence, expected):
    assert read(own, slow=slow, confidence=confidence) == Body(own if expected == "markup" else slow, expected)


@pytest.mark.parametrize("live_blog", [True, False])
def test_the_rules_get_the_title_and_whether_it_is_a_live_blog(monkeypatch, live_blog):
    seen = []
    found = Content("o" * 300, 1.0)
    monkeypatch.setattr(body, "main_content", lambda *given, **options: seen.append((given, options)) or found)
    layout = Layout([], [0], [""], [], [False], ["body"])
    read_body("<p>", layout, "http://a.example/1", "A title", "", live_blog=live_blog)
    assert seen == [((layout, "A title"), {"live_blog": live_blog})]


def test_bodies_have_at_most_fifty_thousand_characters(read):
    long = "word " * 20_000
    assert len(read(long).text) == 50_000
    assert len(read("", slow=long).text) == 50_000
    assert (len(read(words(9), long).text), read(words(9), long).source) == (50_000, "json-ld")
    assert (len(read("other", long).text), read("other", long).source) == (50_000, "json-ld")


def test_words_are_compared_as_a_multiset_in_any_case():
    assert body._overlap("A a b", "a B b") == (2 / 3, 2 / 3)
    assert body._overlap("a", "a b c d") == (1, 1 / 4)
    assert body._overlap("", "a") == (0, 0)
    assert body._overlap("a", "") == (0, 0)


def test_large_pages_are_beyond_the_slow_extractor():
    assert is_within_slow_limits("x" * 3_000_000)
    assert not is_within_slow_limits("x" * 3_000_001)
    assert is_within_slow_limits("<" * 30_000)
    assert not is_within_slow_limits("<" * 30_001)
    page = "<html><body><article><p>The council voted late on Tuesday to raise the walls.</p></article></body></html>"
    assert slow_text(page, "") == "The council voted late on Tuesday to raise the walls."
    assert slow_text(page + "<" * 30_000, "") == ""
