"""Turns the bytes of pages into the text that readers see: charsets by the Encoding Standard, mojibake undone."""

import codecs
import contextlib
import functools
import html
import itertools
import re
import unicodedata
from collections.abc import Iterator

_HEAD_BYTES = 4096
_ASCII = bytes(range(128))
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\f\r") + b"\x7f"
_BINARY = _CONTROL.translate(None, b"\v\x1b\x7f")
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_COMMENT = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_META = re.compile(rb"""(?i)<meta[\s/]((?:"[^"]*"|'[^']*'|[^'">])*)""")
_ATTRIBUTE = re.compile(rb"""(?<![^\s"'=/])([^\s"'=/]++)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_CHARSET = re.compile(rb"""(?i)charset\s*=\s*["']?\s*([^\s"';]+)""")
_XML = re.compile(rb"""(?i)^\s*<\?xml[^>]{1,100}?encoding\s*=\s*["']([^"'>]{1,40})["']""")
_UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
_ISO_2022 = re.compile(rb"\x1b(\$[@B]|\([BJI])([^\x1b]*)")
_MARKUP = re.compile(r"(?is)<(script|style)\b.*?(?:</\1|\Z)|<[^<>]*>")
_SAMPLE = 20_000
# What text in a wrong charset has: letters of two scripts, small letters before capital ones, and signs, in one word.
_LATIN, _OTHER = "[A-Za-z\u00e0-\u00ff]", "[\u0370-\u06ff\u0e00-\u0e7f]"
_SMALL, _CAPITAL = "[\u00e0-\u00ff\u0430-\u045f]", "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0410-\u042f]"
_WRONG = re.compile(
    f"[\ufffd\x80-\x9f]|{_LATIN}{_OTHER}|{_OTHER}{_LATIN}|{_LATIN}[\u3400-\u9fff\uac00-\ud7a3](?={_LATIN})"
    f"|{_SMALL}{_CAPITAL}|[a-z][\u00c0-\u00d6\u00d8-\u00de\u0410-\u042f]"
    "|[\u00c0-\u00ff\u0400-\u04ff][\u00a1-\u00bf](?=[\u00c0-\u00ff\u0400-\u04ff])"
)
_HANGUL, _HANJA = re.compile("[\uac00-\ud7a3]"), re.compile("[\u3400-\u9fff]")
_UNKNOWN_LANGUAGE = 1_300  # a distance beyond all that the language identifier states
_MIN_CLOSER = 60
_UNDETECTED = ("big5hkscs", "mac_cyrillic", "cp1252")  # what Resiliparse's detector does not find or not name
_LEGACY = {"gbk": "gb18030", "x-user-defined": "cp1252", "replacement": ""}
_INVALID = dict.fromkeys((0x80, 0xA0, 0xF8F0, 0xF8F1, 0xF8F2, 0xF8F3), "\ufffd")  # what Python's cp932 makes of them
# Codepages in which UTF-8 is read by mistake, and the least share that it then has of all characters beyond ASCII: two
# letters that are UTF-8 in Windows-1251 may be a word. What nobody writes in Windows-1252 is enough by itself.
_MISREAD = ("cp1252", "cp1250", "mac_roman", "cp437", "cp1251")
_MIN_SHARE = 0.6
_PLAIN = re.compile("[\u00a1-\u00b4\u00b6-\u00bf\u00df\u00e1-\u00ff\u2010-\u203a\u20ac\u2122]")
_MAX_TIMES = 3
_ENTITIES = re.compile(r"&(?:A(?:tilde|circ|uml|ring)|acirc|ETH|Ntilde|#19[4-7]|#20[89]|#226);&")
_CHARACTER = re.compile(r"(?i)&(?!(?:lt|gt|amp|quot|apos|nbsp|#\d\d|#x[23][\da-f]);)#?\w{1,8};")
_LATIN_1, _LATIN_1_RUNS = re.compile("[\xa1-\xff]"), re.compile("[\xa1-\xff]{4,}")
# What undoing must yield: letters of living scripts, their punctuation, and pictures.
_LETTERS = re.compile(
    "[\x80-\u017f\u01a0-\u01b0\u0218-\u021b\u0192\u02bb-\u02dd\u0386-\u03ce\u0400-\u045f\u0490-\u04ff\u0591-\u05ea\u0600-\u0669"
    "\u067e\u0686\u0698\u06a9\u06af\u06cc\u0900-\u0e5b\u10a0-\u10ff\u1200-\u137f\u1e00-\u1eff\u2000-\u206f\u20a0-\u2122\u2190-\u27bf"
    "\u2b00-\u2bff\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\ufb01\ufb02\ufe0f\uff01-\uffee\U0001d400-\U0001d7ff\U0001f000-\U0001faff]"
)

# Unicode's Default_Ignorable_Code_Point, annotations, controls; but joiners, variation selectors and tags stay where
# they change a glyph: after letters that join (UAX 31, 2.3), emoji, ideographs.
_JOINING = "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc]"
_EMOJI = "[\u203c-\u3299\U0001f000-\U0001faff\ufe0f]"
_HAN = "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufff9\ufffb\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e01f0-\U000e0fff]"
    f"|(?<!{_JOINING})\u200c|(?<!{_JOINING})(?<!{_EMOJI})\u200d"
    f"|(?<!{_EMOJI})(?<!{_HAN})(?<![\\d#*©®™])[\ufe00-\ufe0f]"
    f"|(?<!{_HAN})[\U000e0100-\U000e01ef]|(?<![\u1800-\u18af])[\u180b-\u180d\u180f]"
    "|(?<![\U0001f3f4\U000e0020-\U000e007e])[\U000e0000-\U000e00ff]|\ufffa[^\ufffb]*\ufffb"
)
_C1 = re.compile("[\x80-\x9f]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-Z\\^-~])")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]")
_REFERENCES = re.compile(r"(?i)&#(?:0*(?:[0-8]|1[14-9]|2\d|3[01]|127)|x0*(?:[0-8bef]|1[\da-f]|7f));")
_ESCAPE_REFERENCES = re.compile(r"(?i)&#(?:0*27|x0*1b);(?=\[)")


def readable(text: str) -> str:
    r"""Returns a text as a reader sees it: white space collapsed, characters without a glyph left out.

    >>> readable("zu\xadsammen\n arbeiten\u200b")
    'zusammen arbeiten'
    """
    found = " ".join(text.split())
    # What is unseen in ASCII is not printable; most texts are ASCII, and `visible` takes twice as long.
    return found if text.isascii() and found.isprintable() else " ".join(visible(text).split())


def visible(text: str) -> str:
    """Returns a text without the characters that have no glyph; white space stays as it is."""
    if _unseen().isdisjoint(set(text)):  # nearly all texts; the patterns take twenty times as long
        return text
    # The codes 128 to 159 of Unicode have no glyph; where pages have them, Windows-1252 is meant.
    text = _C1.sub(lambda code: code[0].encode("latin-1").decode("cp1252", "ignore"), text)
    return _UNSEEN.sub("", text)


@functools.cache
def _unseen() -> frozenset[str]:
    """The characters that `visible` removes or replaces, at least in some texts."""
    codes = itertools.chain(range(0x20000), range(0xE0000, 0xE1000))
    return frozenset(character for character in map(chr, codes) if _C1.search(character) or _UNSEEN.search(character))


def decode(payload: bytes, charset: str) -> str | None:
    """Returns the text of a page without control characters; ``None`` for binary data.

    The byte order mark decides. Then what is UTF-8, or nearly so, is read as UTF-8 whatever is declared: text in
    another charset is not UTF-8 by chance. Otherwise the charsets of the header, of the page and the detected one are
    compared: of those with few invalid bytes the first, unless the text of another one is closer to a language. Invalid
    bytes become U+FFFD one by one. UTF-8 that was read in another charset and saved is decoded as often as that was
    done.

    Args:
      payload: bytes as they were sent.
      charset: charset in the HTTP header, or "".
    """
    head = payload[:_HEAD_BYTES]
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return _without_controls(payload[len(mark) :].decode(name, "replace"), _CONTROL)
    if name := _utf_16(head):
        return _without_controls(payload.decode(name, "replace"), _CONTROL)
    if len(head) - len(head.translate(None, _BINARY)) > len(head) // 20:
        return None
    if b"\x1b$" in payload and _ISO_2022.search(payload):  # ISO-2022-JP consists of ASCII bytes
        return _without_controls(_ISO_2022.sub(_as_euc, payload).decode("euc_jp", "charset"), payload)
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        high = len(payload) - len(payload.translate(None, bytes(range(128, 256))))
        valid = sum(map(len, _UTF_8.findall(payload)))
        is_cut = valid and error.reason == "unexpected end of data"
        if is_cut or valid >= max(1, 2 * (high - valid)):
            text = payload.decode("utf-8", "replace")
        else:
            return _without_controls(_in_charset(payload, charset, *_declared(head))[1], payload)
    return _without_controls(_once_encoded(text, payload), payload)


def _utf_16(head: bytes) -> str:
    """Returns the name of UTF-16 for text without a byte order mark: half of the bytes of its markup are 0."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 8 < len(head) or min(even, odd) * 20 > max(even, odd):
        return ""
    return "utf-16-be" if even > odd else "utf-16-le"


def _as_euc(run: re.Match[bytes]) -> bytes:
    """Returns a run of ISO-2022-JP in EUC-JP."""
    if run[1][:1] == b"$":
        return bytes(code | 128 if 32 < code < 127 else code for code in run[2])
    if run[1] == b"(I":  # half-width katakana
        return b"".join(b"\x8e%c" % (code | 128) if 32 < code < 96 else b"%c" % code for code in run[2])
    return run[2]


def _declared(head: bytes) -> Iterator[str]:
    """Yields the charsets that a page declares, as the standard's prescan finds them."""
    head = _COMMENT.sub(b"", head)
    for tag in _META.finditer(head):
        values = {name.lower(): b"".join(value) for name, *value in _ATTRIBUTE.findall(tag[1])}
        found = values.get(b"charset", b"")
        if not found and values.get(b"http-equiv", b"").strip().lower() == b"content-type":
            match = _CHARSET.search(values.get(b"content", b""))
            found = match[1] if match else b""
        if found:
            yield found.decode("latin-1")
    if match := _XML.search(head):
        yield match[1].decode("latin-1")


def _codec(label: str) -> str:
    """Returns Python's name of the charset that a label of the standard means; "" if there is none, or for Unicode."""
    import webencodings

    found = webencodings.lookup(label)
    if found is None or found.name.startswith("utf-"):
        return ""
    return _LEGACY.get(found.name, found.codec_info.name)


def _in_charset(payload: bytes, *labels: str) -> tuple[str, str]:
    """Returns (charset, text) of bytes that are not UTF-8, by the most plausible of declared and detected charsets."""
    from resiliparse.parse.encoding import detect_encoding

    high = len(payload.translate(None, _ASCII))
    named = [name for label in labels if (name := _codec(label))]
    detected = _codec((detect_encoding(payload) or "").replace("_", "-")) or _korean(payload)
    names = list(dict.fromkeys((*named, *((detected,) if detected else _UNDETECTED))))
    texts = {name: payload.decode(name, "charset") for name in names}
    if "cp932" in texts:
        texts["cp932"] = texts["cp932"].translate(_INVALID)
    wrong = {name: len(_WRONG.findall(text)) for name, text in texts.items()}
    bound = max(min(wrong.values()), 1 + high // 20)
    likely = {name: text for name, text in texts.items() if wrong[name] <= bound}
    best = next(iter(likely))
    if len(likely) > 1:
        # What nobody declared and nothing detected must be much closer to a language.
        best = min(
            likely,
            key=lambda name: (
                _distance(likely[name])
                + _UNKNOWN_LANGUAGE * wrong[name] / high
                + _MIN_CLOSER * (bool(named) and not detected and name not in named)
            ),
        )
    return best, unicodedata.normalize("NFC", likely[best]) if best == "cp1258" else likely[best]


def _korean(payload: bytes) -> str:
    """Returns the name of the Korean charset, which the detector does not have, if nearly all ideographs are Hangul."""
    text = payload.decode("cp949", "charset")
    hangul, others = len(_HANGUL.findall(text)), len(_HANJA.findall(text))
    return "cp949" if hangul > 10 * (others + text.count("\ufffd")) else ""


def _distance(text: str) -> float:
    """Returns the distance of a page's text from the closest language; more where its ideographs are rare ones."""
    from resiliparse.parse.lang import detect_fast

    text = _MARKUP.sub(" ", text[: 10 * _SAMPLE])
    language, distance = detect_fast(text)
    ideographs = [char for char in text if "\u2e80" < char < "\ufffd"]
    rare = sum(char not in _common() for char in ideographs) / max(1, len(ideographs))
    return (_UNKNOWN_LANGUAGE if language == "unknown" else distance) + _UNKNOWN_LANGUAGE * rare


@functools.cache
def _common() -> frozenset[str]:
    """Returns the ideographs of the first levels of the national standards, kana, Hangul and their punctuation."""
    rows = range(0xA1, 0xFF)
    text = bytes(itertools.chain(*itertools.product(range(0xB0, 0xD8), rows))).decode("gb2312", "ignore")
    text += bytes(itertools.chain(*itertools.product(range(0xB0, 0xD0), rows))).decode("euc_jp", "ignore")
    big5 = itertools.product(range(0xA4, 0xC7), (*range(0x40, 0x7F), *rows))
    text += bytes(itertools.chain(*big5)).decode("big5", "ignore")
    return frozenset(text).union(map(chr, (*range(0x3000, 0x3100), *range(0xAC00, 0xD7A4), *range(0xFF00, 0xFF60))))


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Returns the character of bytes that the standard's decoders know and Python's do not, or U+FFFD for one byte."""
    assert isinstance(error, UnicodeDecodeError)
    one, two = error.object[error.start : error.start + 1], error.object[error.start : error.start + 2]
    with contextlib.suppress(UnicodeDecodeError, ValueError):
        if error.encoding == "gb18030" and one == b"\x80":
            return "€", error.start + 1
        if error.encoding == "big5hkscs":
            return two.decode("cp950"), error.start + 2
        if error.encoding == "euc_jp" and len(two) == 2 and min(two) > 0xA0:  # row and cell of JIS X 0208 in Shift_JIS
            row, cell = two[0] - 0xA1, two[1] - 0xA1
            lead, trail = row // 2 + (0x81 if row < 62 else 0xC1), cell + (0x9F if row % 2 else 0x40 + (cell > 62))
            return bytes((lead, trail)).decode("cp932"), error.start + 2
    return "\ufffd", error.start + 1


codecs.register_error("charset", _replaced)


@functools.cache
def _misread(codepage: str) -> tuple[re.Pattern[str], dict[str, int]]:
    """Returns what UTF-8 looks like in a codepage, and the byte of each character."""
    table = {chr(code): code for code in range(0x80, 0xA0)}  # codes without a character stay what they are
    table |= {char: code for code in range(0x80, 0x100) if (char := bytes([code]).decode(codepage, "ignore"))}

    def between(first: int, last: int) -> str:
        return "[" + re.escape("".join(char for char, code in table.items() if first <= code <= last)) + "]"

    tail = between(0x80, 0xBF)
    two, three, four = between(0xC2, 0xDF), between(0xE0, 0xEF), between(0xF0, 0xF4)
    return re.compile(f"{two}{tail}|{three}{tail}{{2}}|{four}{tail}{{3}}"), table


def _once_encoded(text: str, payload: bytes) -> str:
    """Returns a text that was read in a wrong charset and saved as UTF-8, once or several times, as it was before."""
    if len(_ENTITIES.findall(text)) > 1:
        text = _CHARACTER.sub(lambda reference: html.unescape(reference[0]), text)
        payload = text.encode("utf-8", "replace")
    for _ in range(_MAX_TIMES):
        before, beyond = text, payload.translate(None, _ASCII)[: 4 * _SAMPLE].decode("utf-8", "ignore")
        if 2 * len(_LATIN_1.findall(beyond)) > len(beyond) < 2 * sum(map(len, _LATIN_1_RUNS.findall(text))):
            with contextlib.suppress(UnicodeEncodeError):
                codes = {ord(char): code for char, code in _misread("cp1252")[1].items()}
                raw = text.translate(codes).encode("latin-1")
                name, other = _in_charset(raw, "windows-1252")
                if name != "cp1252" and _share(beyond, "cp1252")[0] < _MIN_SHARE:
                    return other
        (share, plain), codepage = max((_share(beyond, codepage), codepage) for codepage in _MISREAD)
        if share < _MIN_SHARE and not plain:
            break
        pattern, table = _misread(codepage)
        wanted = _LETTERS if share >= _MIN_SHARE else _PLAIN
        letters = {run: _undone(run, table, wanted) or run for run in set(pattern.findall(text))}
        text = pattern.sub(functools.partial(_replacement, letters), text)
        if text == before:
            break
        payload = text.encode("utf-8", "replace")
    return text


def _share(beyond: str, codepage: str) -> tuple[float, bool]:
    """Returns the share of characters that are UTF-8 read in a codepage, and whether nobody writes some of them."""
    pattern, table = _misread(codepage)
    found = [run for run in pattern.findall(beyond) if _undone(run, table)]
    plain = codepage == "cp1252" and any(_undone(run, table, _PLAIN) for run in found)
    return sum(map(len, found)) / max(1, len(beyond)), plain


def _undone(run: str, table: dict[str, int], wanted: re.Pattern[str] = _LETTERS) -> str:
    """Returns the letter behind a few characters that were UTF-8; "" if it is not wanted."""
    with contextlib.suppress(UnicodeDecodeError):
        letter = bytes(map(table.__getitem__, run)).decode("utf-8")
        return letter if wanted.match(letter) else ""
    return ""


def _replacement(letters: dict[str, str], run: re.Match[str]) -> str:
    return letters[run[0]]


def _without_controls(text: str, payload: bytes) -> str:
    """Removes the control sequences of terminals, and characters for which the parser would write U+FFFD."""
    text = _ESCAPE_REFERENCES.sub("\x1b", text)
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = _REFERENCES.sub("", text)
    return _CONTROLS.sub("", text) if len(payload) > len(payload.translate(None, _CONTROL)) else text
