"""WARC files of a generated newsroom. A crawl would give other times each time; this reads the files of the site."""

import json
import uuid

_DATE = "2024-01-15T12:00:00Z"
_PARTS = 3


def write_warcs(newsroom, folder):
    """Every resource of the newsroom's site as a captured response; not compressed, since zlib's versions differ."""
    folder.mkdir(parents=True)
    content = (newsroom / "site" / "content.bin").read_bytes()
    lines = (newsroom / "site" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    for part in range(_PARTS):
        with open(folder / f"part-{part}.warc", "wb") as sink:
            for line in lines[part::_PARTS]:
                stored = json.loads(line)
                body = content[stored["offset"] : stored["offset"] + stored["length"]]
                sink.write(_response(stored, body))


def _response(stored, body):
    url = f"http://{stored['host']}{stored['path']}"
    lines = [f"HTTP/1.1 {stored['status']} x", f"Content-Type: {stored['content_type']}"]
    lines += [f"Content-Length: {len(body)}"]
    lines += [f"Location: {stored['location']}"] if stored["location"] else []
    payload = "\r\n".join([*lines, "", ""]).encode() + body
    head = [
        "WARC/1.1",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>",
        f"WARC-Date: {_DATE}",
        f"WARC-Target-URI: {url}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(payload)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + payload + b"\r\n\r\n"
