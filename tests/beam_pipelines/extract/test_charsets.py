"""extract: bytes of pages become the text that readers see, whatever was declared, and however often it was encoded."""

# ruff: noqa: RUF001 - the letters of several scripts

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines.extract.charsets import decode, readable, visible
from newsembed.beam_pipelines.extract.layout import lay_out, text_of
from newsembed.beam_pipelines.extract.page import extract_page, parse

RUSSIAN = "Совет города проголосовал за новую дамбу. " * 3
CHINESE = "市政府周一宣布，检查发现东桥两个支座出现裂缝，大桥将关闭十一周，维修期间公交车将改走港口公路。"
TAIWANESE = "市政府週一宣布，檢查發現東橋兩個支座出現裂縫，大橋將關閉十一週，維修期間公車將改走港口公路。"
JAPANESE = (
    "東京の市議会は月曜日、東の橋を閉めたと言いました。検査で割れが見つかったためです。修理には十一週間かかります。"
)
KOREAN = (
    "시의회는 월요일 점검에서 두 개의 받침에 균열이 발견되어 동쪽 다리를 폐쇄했다고 밝혔다. 수리에 열한 주가 걸린다."
)
GERMAN = "Die Stadt schließt am Montag die Ostbrücke, weil Prüfer Risse in zwei Lagern gefunden haben."
POLISH = "Miasto zamknęło most wschodni, ponieważ w łożyskach znaleziono pęknięcia. Remont potrwa jedenaście tygodni."


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        ("für".encode(), "windows-1252", "für"),  # valid UTF-8, whatever is declared
        ("für".encode("latin-1"), "windows-1252", "für"),
        ("€ “x”".encode("cp1252"), "iso-8859-1", "€ “x”"),  # the label means Windows-1252
        (RUSSIAN.encode("koi8-r"), "", RUSSIAN),  # detected
        (RUSSIAN.encode("koi8-r"), "no-such-charset", RUSSIAN),
        (RUSSIAN.encode("koi8-r"), "hex", RUSSIAN),  # a codec that is not a charset
        (RUSSIAN.encode("mac_cyrillic"), "x-mac-cyrillic", RUSSIAN),
        (codecs.BOM_UTF8 + b"a", "utf-16", "a"),
        (codecs.BOM_UTF16_LE + "für".encode("utf-16-le"), "utf-8", "für"),
        (codecs.BOM_UTF16_BE + "für".encode("utf-16-be"), "utf-8", "für"),
        ("<p>für Москва".encode("utf-16-le"), "utf-16", "<p>für Москва"),
        ("<p>für Москва".encode("utf-16-be"), "", "<p>für Москва"),
        ("①川ｱ".encode("iso2022_jp_ext", "ignore"), "iso-2022-jp", "川ｱ"),  # consists of ASCII bytes
        (b"\x1b$B-!@n\x1b(B x", "iso-2022-jp", "①川 x"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07on", "", "red on"),  # a terminal's sequences
        (b"", "", ""),
    ],
)
def test_the_bytes_count_more_than_the_declared_charset(raw, charset, text):
    assert decode(raw, charset) == text


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        (CHINESE + "镕€", "gb18030", "gb2312"),
        (TAIWANESE + "碁裏", "big5hkscs", "big5"),
        (JAPANESE + "①㈱", "cp932", "shift_jis"),
        (JAPANESE, "euc_jp", "euc-jp"),
        (KOREAN + "똠방각하", "cp949", "euc-kr"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (POLISH, "cp1250", "windows-1250"),
        (GERMAN, "cp1252", "iso-8859-1"),
    ],
)
def test_one_stray_byte_is_one_replacement_and_a_wrong_declaration_loses(text, codec, label):
    page = f"<p>{text}</p><p>{text}</p>"
    raw = page.encode(codec)
    assert decode(raw, label) == page
    stray = b"\xff" if codec not in ("cp1251", "cp1250", "cp1252") else {"cp1251": b"\x98"}.get(codec, b"\x81")
    assert decode(raw.replace(b"</p><p>", stray + b"</p><p>"), label) == page.replace("</p><p>", "\ufffd</p><p>")
    for wrong in ("utf-8", "windows-1251", "koi8-r", "gb2312", "euc-jp"):
        if wrong != label:
            assert decode(raw, wrong) == page, wrong


def test_characters_that_python_has_no_place_for():
    assert decode(f"<p>{JAPANESE}".encode("euc_jp") + b"\xad\xa1\xad\xea", "euc-jp") == f"<p>{JAPANESE}①㈱"
    assert decode(f"<p>{CHINESE}".encode("gbk") + b"\x80", "gbk") == f"<p>{CHINESE}€"
    assert decode(f"<p>{TAIWANESE}".encode("big5") + b"\xa3\xe1", "big5") == f"<p>{TAIWANESE}€"


TEXT = "L\u2019été \u201cdéjà\u201d \u2014 Ünïcode § \U0001f525"


def misread(text, codepage):
    """As programs do: bytes that a codepage does not define become control codes."""
    return "".join(bytes([byte]).decode(codepage, "ignore") or chr(byte) for byte in text.encode())


@pytest.mark.parametrize("codepage", ["latin-1", "cp1252", "cp1250", "mac_roman", "cp437", "cp1251"])
@pytest.mark.parametrize(
    "text", [TEXT, f"<p>{GERMAN}", f"<p>{POLISH}", f"<p>{RUSSIAN}", f"<p>{CHINESE}", f"<p>{KOREAN}"]
)
def test_text_that_was_encoded_twice_or_three_times_is_decoded(codepage, text):
    twice = misread(text, codepage)
    assert decode(twice.encode(), "") == text
    if codepage in ("latin-1", "cp1252"):
        assert decode(misread(twice, codepage).encode(), "") == text


def test_a_few_words_in_an_otherwise_right_page_are_mended():
    mixed = f"<h1>{GERMAN}</h1><p>{misread('Prüfer „für“', 'cp1252')}"
    assert decode(mixed.encode(), "") == f"<h1>{GERMAN}</h1><p>Prüfer „für“"
    entities = b"<p>Ostbr&Atilde;&frac14;cke geschlo&Atilde;&#376;en, m&Atilde;&frac14;de &amp;amp;"
    assert decode(entities, "").endswith("müde &amp;amp;")
    assert decode(f"<p>{CHINESE}".encode("gbk").decode("latin-1").encode(), "utf-8") == f"<p>{CHINESE}"
    assert decode(f"<p>{RUSSIAN}".encode("cp1251").decode("cp1252").encode(), "utf-8") == f"<p>{RUSSIAN}"


@pytest.mark.parametrize(
    "text",
    [
        *(TEXT, "L'été à Mañana, Ã‰tÃ é und Âge", "â€", "IRMÃ «NÃO» À “LA” ‘É’ „Spaß“ „Ä“", "Ні, Ті люди"),
        *("\xa0" * 40 + "é", "plain"),
    ],
)
def test_text_that_was_encoded_once_stays(text):
    assert decode(text.encode(), "") == text


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="koi8-r">',
        "<META http-equiv=Content-Type content='text/html; charset=KOI8-R'>",
        '<meta name=x content=">" /><meta content="text/html; charset=koi8-r" http-equiv="content-type">',
        '<?xml encoding="koi8-r"?>',
        '<!-- <meta charset="koi8-u"> --><meta name="d" content="charset=koi8-u"><meta charset=cskoi8r>',
    ],
)
def test_the_declaration_of_the_page_counts_where_the_header_has_none(head):
    for charset in ("", "no-such-charset"):
        assert decode(f"{head}дамба".encode("koi8-r"), charset) == f"{head}дамба"
    assert decode(f"{head}дамба".encode("windows-1251"), "windows-1251") == f"{head}дамба", "the header comes first"


@pytest.mark.parametrize("charset", ["", "iso-8859-1", "koi8-r", "utf-8"])
def test_text_with_few_broken_characters_is_utf_8(charset):
    raw = ("ü" * 10).encode() + b"\xe9"
    assert decode(raw, charset) == "ü" * 10 + "\ufffd"
    assert decode("ü€".encode()[:-1], charset) == "ü\ufffd"


def test_characters_that_text_does_not_have():
    for code in range(256):
        raw = bytes([code]) * 6 + b"a" * 94
        assert (decode(raw, "koi8-r") is None) == (code < 32 and chr(code) not in "\t\n\v\f\r\x1b"), code


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Zu\xadsammen\u200bar\u2060beit\ufeff", "Zusammenarbeit"),
        ("\u202eab\u202c \u2066c\u2069\u200e", "ab c"),
        ("\ufff9base\ufffanote\ufffb \ufffc", "base"),
        ("don\x92t \x85", "don’t …"),
        ("a\x07b\x7fc\x1bd", "abcd"),
        *((text, text) for text in ("می\u200cخواهم क्\u200dष", "葛\U000e0100城")),  # joiners that change letters
        *((text, text) for text in ("\u2764\ufe0f", "\U0001f468\u200d\U0001f467", "1\ufe0f\u20e3")),
        ("la\u200cst wo\u200drd x\ufe0f", "last word x"),
        ("\u3164한\u115f글 \n a\u2028b", "한글 a b"),
    ],
)
def test_what_a_reader_sees_is_kept(text, seen):
    assert readable(text) == seen


@given(st.text(st.characters(max_codepoint=0x2100)), st.text(st.characters(max_codepoint=127)))
def test_any_text_is_read_as_without_its_invisible_characters(mixed, ascii_text):
    for text in (mixed, ascii_text):
        assert readable(text) == " ".join(visible(text).split())


def test_pages_are_read_without_readings_and_invisible_characters():
    page = "<h1>東<ruby>京<rp>(</rp><rt>きょう</rt><rp>)</rp></ruby>の<br>橋</h1>"
    page += "<p>su&shy;per<wbr>cali&#8203;fragi &#27;[1mbold&#x1b;[0m x&#7;y"
    tree = parse(decode(page.encode(), ""))
    assert [block.text for block in lay_out(tree).blocks] == ["東京の 橋", "supercalifragi bold xy"]
    assert text_of(next(tree.iter("h1")), 100) == "東京の 橋"


MENU = ["Home", "World news", "Local news", "Business", "Sport", "Photo galleries", "Subscriptions", "Weather"] * 6


@pytest.mark.parametrize("made", ["<p>".join, "<br>".join, " | ".join, " ".join, "<div></div>".join])
def test_a_body_of_menu_lines_is_no_content(made):
    head = "<meta property=og:type content=article><title>The council met on Monday</title>"
    page = extract_page(f"{head}<body><div>{made(MENU)}</div>", "http://a.example/1")
    assert page.article is None
    assert page.rejection == "no_content"
