"""Reads the payload of one response: the code that handles untrusted bytes, and all that the child process imports."""

import io

from .decoding import decode
from .feeds import Feed, parse_feed
from .links import MAX_LINKS
from .page import ExtractedPage, extract_page


def read_payload(
    kind: str, payload: bytes, charset: str, url: str, max_links: int = MAX_LINKS
) -> ExtractedPage | Feed | bytes | None:
    """Returns the content of a response: a page, a feed or the hash of an image.

    ``None`` is returned for a page that is not text, and for a feed that is not a feed.

    Args:
      kind: "page", "feed" or "image", by the content type. A page may turn out to be a feed.
      payload: the body.
      charset: charset in the header, or "".
      url: URL of the response.
      max_links: number of links that are taken from a page.

    Raises:
      Exception: any error of the parsers.
    """
    if kind == "image":
        return _image_hash(payload)
    feed = parse_feed(payload)
    if feed is not None or kind == "feed":
        return feed
    text = decode(payload, charset)
    return None if text is None else extract_page(text, url, max_links)


def _image_hash(payload: bytes) -> bytes:
    import warnings

    import imagehash
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        picture = Image.open(io.BytesIO(payload)).convert("L")
        return int(str(imagehash.whash(picture)), 16).to_bytes(8, "big")
