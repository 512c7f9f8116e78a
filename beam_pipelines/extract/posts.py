"""Reads short texts that link to articles, such as posts in social networks, and keeps their words."""

import re
from typing import Any, Final

from ...formats.records import Post, make_doc_id
from ...formats.urls import canonical_url

_URL: Final = re.compile(r"(?:\bhttps?://|\bwww\.|\bpic\.twitter\.com/)\S+", re.IGNORECASE)
_MENTION: Final = re.compile(r"(?<![\w@])@\w+", re.UNICODE)
_RETWEET: Final = re.compile(r"^\s*RT\b(?:\s*@\w+)?\s*:?\s*")
_HASHTAG: Final = re.compile(r"[#\uff03](\w+)")
# Where a word begins inside a hashtag: "ClimateChange", "USElection", "Election2016", "climate_change".
_WORD: Final = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|_+")


def clean_post(text: str) -> str:
    """Returns the words of a post: without URLs, mentions and the mark of a repeated post; hashtags become words.

    >>> clean_post("RT @ap: Storm hits #NewOrleans #USElection2016, says @noaa https://t.co/x1")
    'Storm hits New Orleans US Election 2016, says'

    Args:
      text: as people wrote it.
    """
    text = _RETWEET.sub("", text.replace("\x00", ""))
    text = _MENTION.sub(" ", _URL.sub(" ", text))
    return " ".join(_HASHTAG.sub(lambda tag: f" {_WORD.sub(' ', tag[1])} ", text).replace(" ,", ",").split())


def row_to_post(row: dict[str, Any]) -> tuple[Post | None, str]:
    """Returns (post, "") or (``None``, description of the missing field).

    The text of the post may be empty where nothing but URLs and mentions was in it.

    Args:
      row: ``text``, and ``url``, the article that the post links to.
    """
    url = canonical_url(str(row.get("url") or ""))
    if not url:
        return None, f"url: got {row.get('url')!r}, expected an absolute http(s) URL"
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        return None, f"text: got {text!r}, expected the words of the post"
    return Post(make_doc_id(url), url, clean_post(text)), ""
