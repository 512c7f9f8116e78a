"""The articles of a generated newsroom with their events, topics and copies, for the suites of Okura 2016.

    python benchmarks/okura_newsroom.py demo/newsroom/truth.jsonl demo/work/extract labelled.jsonl
    newsembed ablate --table okura --data demo/work --suite display=labelled.jsonl \
        --suite day_duplicates=labelled.jsonl --steps 150 --output okura/ablation

The articles are those that ``extract`` read, before ``clean`` left the copies out. Evergreen pages, which report no
event, are left out.
"""

import json
import sys

from newsembed.formats.parquet import read_stream
from newsembed.formats.records import Article
from newsembed.formats.urls import canonical_url

KEPT = ("title", "body", "publisher", "language", "url")


def main(truth_path, extracted, output):
    """Writes one line for each article that the newsroom knows."""
    with open(truth_path, encoding="utf-8") as file:
        truth = {canonical_url(row["url"]): row for row in map(json.loads, file)}
    count = copies = 0
    with open(output, "w", encoding="utf-8") as file:
        for article in read_stream(f"{extracted}/articles", Article):
            known = truth.get(article.url)
            if known is None or not known["event"]:
                continue
            row = {name: getattr(article, name) for name in KEPT}
            row |= {"id": article.doc_id, "event": known["event"], "topic": known["topic"]}
            row |= {"byline_date": known["byline_date"], "duplicate_group": known["near_duplicate_group"]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count, copies = count + 1, copies + bool(known["near_duplicate_group"])
    print(f"{count} articles, {copies} with near copies: {output}")


if __name__ == "__main__":
    main(*sys.argv[1:])
