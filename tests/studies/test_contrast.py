"""Text of the pages is readable: a contrast of at least 4.5 to 1 (WCAG 2.1, AA), in light and in dark mode."""

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# style sheet -> (colours of text, colours behind it)
COLOURS = {
    "serving/explorer/style.css": (("text", "soft", "accent", "bad", "strong", "fair", "weak"), ("back", "card"))
}


def modes(css):
    """The colours of light and of dark mode, by variable; dark mode inherits what it does not set."""
    start = re.search(r"@media ?\(prefers-color-scheme: ?dark\)", css).start()
    dark = css[start : re.compile(r"\}\s*\}").search(css, start).start()]
    light = css.replace(dark, "")
    found = [dict(re.findall(r"--([a-z]+): ?(#[0-9a-f]{3,8})\b", part)) for part in (light, dark)]
    return {"light": found[0], "dark": {**found[0], **found[1]}}


def luminance(colour):
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_of_known_colours():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize(("name", "mode"), [*itertools.product(COLOURS, ("light", "dark"))])
def test_text_can_be_read(name, mode):
    colours = modes((ROOT / name).read_text())[mode]
    texts, backs = COLOURS[name]
    weak = {
        (text, back): round(contrast(colours[text], colours[back]), 2)
        for text, back in itertools.product(texts, backs)
        if contrast(colours[text], colours[back]) < 4.5
    }
    assert weak == {}


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for package in ("serving", "studies")
    for end in ("html", "css")
    for path in (ROOT / package).rglob(f"*.{end}")
    if path.name != "style.css"
)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_takes_its_colours_from_the_one_style_sheet_and_fits_a_phone(name):
    text = (ROOT / name).read_text()
    assert not re.findall(r"(?<!&)#(?:[0-9a-f]{6}|[0-9a-f]{3})\b|rgba?\(|font-family", text, re.IGNORECASE)
    if "<!doctype html>" in text.lower():
        assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
        assert "style.css" in text
