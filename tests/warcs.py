"""WARC files."""

import io

from newsembed.beam_pipelines.crawl.fetch import Fetched
from newsembed.beam_pipelines.crawl.state import WarcWriter


def write_warc(path, *responses, cut=0):
    """Writes responses but for the last bytes; returns the path as text.

    A response is its URL, content type and body, and, if it is no page, its status and where it leads to.
    """
    sink = io.BytesIO()
    writer = WarcWriter(sink, "test")
    for url, kind, body, *rest in responses:
        status, location = [*rest, *(200, "")[len(rest) :]]
        headers = (("Content-Type", kind), *([("Location", location)] if location else []))
        writer.write(Fetched(url, status, "OK", headers, body.encode() if isinstance(body, str) else body))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sink.getvalue()[: -cut or None])
    return str(path)
