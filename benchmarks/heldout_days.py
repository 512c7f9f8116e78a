"""Makes a same-event retrieval set of the last days of an archive whose articles carry an editor's topic.

    python benchmarks/heldout_days.py allsides.jsonl.zst --since 2019-01-01 --output heldout.jsonl

Two or three articles of different publishers with the same topic on the same day count as reports of one event: a
proxy, right for most such groups and wrong for some. All other articles of the period remain as candidates, each an
event of its own.
"""

import argparse
import collections
import datetime
import json
from collections.abc import Iterator
from typing import Any

from newsembed.formats.jsonl import read_jsonl
from newsembed.formats.records import make_doc_id
from newsembed.formats.urls import canonical_url, registered_domain

LARGEST_EVENT = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("articles", help="JSONL (plain, .gz, .zst) with url, title, body, byline_date and topic")
    parser.add_argument("--since", type=datetime.date.fromisoformat, required=True, help="first held-out day")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    rows = list(held_out(options.articles, options.since))
    groups: dict[tuple[str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        groups[row["topic"], row["byline_date"]].append(row)
    events = 0
    for (topic, day), members in groups.items():
        publishers = {row["publisher"] for row in members}
        is_event = topic and 2 <= len(members) <= LARGEST_EVENT and len(publishers) == len(members)
        events += bool(is_event)
        for row in members:
            row["event"] = f"{topic} {day}" if is_event else row["id"]
    with open(options.output, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(f"{len(rows)} articles, {events} events")


def held_out(path: str, since: datetime.date) -> Iterator[dict[str, Any]]:
    """Yields the rows of the period, each URL once, without opinion pieces and articles that lack a field."""
    seen = set()
    for _, row in read_jsonl(path):
        url = canonical_url(str(row.get("url") or ""))
        day = str(row.get("byline_date") or "")
        if not url or not row.get("title") or not row.get("body") or row["title"].startswith("OPINION"):
            continue
        if len(day) != 10 or not day[:4].isdigit() or day < since.isoformat() or day > "2030" or url in seen:
            continue
        seen.add(url)
        yield {
            "id": make_doc_id(url),
            "title": row["title"],
            "body": row["body"],
            "publisher": registered_domain(url),
            "language": "en",
            "topic": row.get("topic") or "",
            "byline_date": day,
        }


if __name__ == "__main__":
    main()
