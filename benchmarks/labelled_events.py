"""Converts public sets of news that people grouped by event to the JSONL of the suite `events`.

    python benchmarks/labelled_events.py ecb EventStoryLine/ECB+_LREC2014/ECB+ ecb.jsonl
    python benchmarks/labelled_events.py giveme5w1h Giveme5W1H/Giveme5W1H/examples/datasets/news_cluster/data g5w.jsonl
    newsembed evaluate --encoder tfidf=tfidf --encoder lifted=model:lifted/model --suite events --data g5w.jsonl \\
        --cross_publisher --output evaluation

The sets are downloaded by the user:

| set | repository on GitHub | what is an event |
|---|---|---|
| ecb | tommasoc80/EventStoryLine, ECB+_LREC2014/ECB+ (ECB+, Cybulska and Vossen 2014) | half of a topic: each topic has two events of one kind, such as two earthquakes |
| giveme5w1h | fhamborg/Giveme5W1H, examples/datasets/news_cluster/data | its `EventId`; articles of 2017 and 2018 |

ECB+ is tokenised. The title is the first sentence that is not a URL. No publisher is known, so each article has its own.
"""  # noqa: E501 (a table)

import argparse
import ast
import collections
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree
from newsembed.errors import InputError
from newsembed.formats.records import make_doc_id

_LEAST_WORDS = 20  # shorter texts are what is left of a page that was not read
_SPACE_BEFORE_MARK = re.compile(r"\s+([.,;:!?%'\u2019)])")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=READERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    rows = list(READERS[options.set](options.folder))
    if not rows:
        raise InputError("no article of this set", path=options.folder, remedy="Give the folder that the table names.")
    options.output.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    sizes = collections.Counter(row["event"] for row in rows)
    print(f"{len(rows)} articles, {sum(size > 1 for size in sizes.values())} events with several")


def ecb(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the articles of ECB+: `1_2ecb.xml` and `1_2ecbplus.xml` report the two events of topic 1."""
    for path in sorted(folder.glob("*/*.xml")):
        sentences = collections.defaultdict(list)
        for token in etree.parse(path).getroot().iter("token"):
            sentences[int(token.get("sentence"))].append(token.text)
        texts = [_SPACE_BEFORE_MARK.sub(r"\1", " ".join(words)) for _, words in sorted(sentences.items())]
        texts = [text for text in texts if not re.match(r"https?\b|www\b", text)]
        topic, half = path.stem.partition("_")[0], "second" if path.stem.endswith("plus") else "first"
        yield _row(path.stem, path.stem, texts[0], "\n".join(texts[1:]) or texts[0], f"{topic} {half}")


def giveme5w1h(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the articles of the clusters of Giveme5W1H; copies of a title and texts of a few words are left out."""
    titles = set()
    for path in sorted(folder.glob("*.json")):
        article = json.loads(path.read_text())
        cluster, title, text = article.get("newsCluster"), article.get("title") or "", article.get("text") or ""
        if not cluster or not title.strip() or title in titles or len(text.split()) < _LEAST_WORDS:
            continue
        titles.add(title)
        event = (ast.literal_eval(cluster) if isinstance(cluster, str) else cluster)["EventId"]
        published = (article.get("date_publish") or "")[:10]
        date = published if re.fullmatch(r"\d{4}-\d\d-\d\d", published) else ""
        yield _row(path.stem, article.get("source_domain") or path.stem, title, text, str(event)) | {
            "byline_date": date
        }


def _row(name: str, publisher: str, title: str, body: str, event: str) -> dict[str, Any]:
    return {
        "id": make_doc_id(name),
        "title": title,
        "body": body,
        "publisher": publisher,
        "language": "en",
        "event": event,
    }


READERS: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {"ecb": ecb, "giveme5w1h": giveme5w1h}


if __name__ == "__main__":
    main()
