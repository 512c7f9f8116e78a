"""What one response holds; the part of reading that strangers' bytes reach, and all that the reading process imports."""

import io

from .decoding import decode
from .feeds import Feed, parse_feed
from .page import ExtractedPage, extract_page


def read_payload(kind: str, payload: bytes, charset: str, url: str) -> ExtractedPage | Feed | bytes | None:
    """What a response holds: a page, a feed, an image's hash; ``None`` for a page that is no text and for a feed that is none.

    Args:
      kind: "page", "feed" or "image", by the content type. Some servers send feeds as pages.
      payload: the body.
      charset: of the header, or "".
      url: where it was fetched.

    Raises:
      anything that the parsers raise.
    """
    if kind == "image":
        return _image_hash(payload)
    feed = parse_feed(payload)
    if feed is not None or kind == "feed":
        return feed
    text = decode(payload, charset)
    return None if text is None else extract_page(text, url)


def _image_hash(payload: bytes) -> bytes:
    import warnings

    import imagehash
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        picture = Image.open(io.BytesIO(payload)).convert("L")
        return int(str(imagehash.whash(picture)), 16).to_bytes(8, "big")
