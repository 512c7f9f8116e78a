r"""One table of the quality of encoders: a recipe is written from the folders that are there, and evaluated.

    python benchmarks/quality.py --data ../shared/data --newsroom newsroom --since 2019-01-01 --output quality \
        --model "MiniLM-L6=lifted/import" --model "words=lifted/words" --model "lifted=lifted/model"

TF-IDF, latent semantics (300 numbers) and the given models on: events of AllSides from a day on, other publishers only
(two or three articles of different publishers with the editors' topic of one day count as reports of one event, a proxy
that is right for most; all others are events of their own), the held-out events of a generated newsroom (`newsembed
newsroom`), BBC and AG News by logistic regression, STS-B, STS 2014 and SICK. Scores have 95 % intervals: over events,
pairs, or seeds of the classifier. Embeddings are kept in `--output`/cache, so the command continues where it was
stopped. The models must have seen no article from `--since` on.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from newsembed.formats.jsonl import read_jsonl
from newsembed.formats.records import make_doc_id
from newsembed.formats.urls import canonical_url, registered_domain

LARGEST_EVENT = 3
FIXED = {"TF-IDF": "tfidf", "LSA-300": "lsa:300"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the shared data")
    parser.add_argument("--newsroom", help="folder that `newsembed newsroom` wrote")
    parser.add_argument("--since", default="2019-01-01", help="first day of the events of AllSides")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="a model folder; repeatable")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    models = (value.partition("=") for value in options.model)
    encoders = FIXED | {name: f"model:{os.path.abspath(folder)}" for name, _, folder in models}
    recipe = f"{options.output}/recipe.toml"
    with open(recipe, "w", encoding="utf-8") as file:
        file.write(toml(encoders, benchmarks(options)))
    command = [sys.executable, "-m", "newsembed", "evaluate", "--recipe", recipe]
    command += ["--cache", f"{options.output}/cache", "--output", f"{options.output}/results"]
    sys.exit(subprocess.run(command, check=False).returncode)


def write_events(path: str, since: str, output: str) -> None:
    """Writes the articles of the last days; those that are no report of a common event are events of their own."""
    rows = list(held_out(path, since))
    groups: dict[tuple[str, str], list[dict[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        groups[row["topic"], row["byline_date"]].append(row)
    for (topic, day), members in groups.items():
        publishers = {row["publisher"] for row in members}
        is_event = topic and 2 <= len(members) <= LARGEST_EVENT and len(publishers) == len(members)
        for row in members:
            row["event"] = f"{topic} {day}" if is_event else row["id"]
    with open(output, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def held_out(path: str, since: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of the period, each URL once, without opinion pieces and articles that lack a field."""
    seen = set()
    for _, row in read_jsonl(path):
        url = canonical_url(str(row.get("url") or ""))
        day = str(row.get("byline_date") or "")
        if not url or not row.get("title") or not row.get("body") or row["title"].startswith("OPINION"):
            continue
        if len(day) != 10 or not day[:4].isdigit() or day < since or day > "2030" or url in seen:
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


def benchmarks(options: argparse.Namespace) -> list[dict[str, object]]:
    """The columns of the table, as entries of a recipe."""
    events = f"{options.output}/events.jsonl"
    if not os.path.exists(events):
        write_events(f"{options.data}/articles/allsides.jsonl.zst", options.since, events)
    cross = {"suite": "events", "metric": "mAP", "cross_publisher": True}
    note = "events are proxies: a topic of AllSides on one day"
    found: list[dict[str, object]] = [{"name": "AllSides", "data": events, "note": note, **cross}]
    if options.newsroom:
        data = f"{options.newsroom}/heldout.jsonl"
        found.append({"name": "newsroom", "data": data, "note": "generated text", **cross})
    folder = f"{options.data}/benchmarks"
    for name, suite, path in (
        ("BBC", "bbc", "bbc/bbc"),
        ("AG News", "agnews", "ag_news"),
        ("STS-B", "sts", "sts/stsbenchmark"),
        ("STS 2014", "sts", "sts/semeval/2014"),
        ("SICK", "sts", "sts/sick2014"),
    ):
        found.append({"name": name, "suite": suite, "data": f"{folder}/{path}"})
    return found


def toml(encoders: dict[str, str], columns: list[dict[str, object]]) -> str:
    """The recipe, with absolute paths of the data; strings of JSON are strings of TOML."""
    lines = ["[encoders]", *(f"{json.dumps(name)} = {json.dumps(spec)}" for name, spec in encoders.items())]
    for column in columns:
        absolute = column | {"data": os.path.abspath(str(column["data"]))}
        lines += ["", "[[benchmarks]]", *(f"{key} = {json.dumps(value)}" for key, value in absolute.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
