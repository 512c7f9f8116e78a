"""Events by thresholds that are learned from the dates, and by one fixed cosine, against events that are known.

    python benchmarks/event_thresholds.py --data giveme5w1h.jsonl --encoder minilm=model:minilm --encoder e5=model:e5
    python benchmarks/event_thresholds.py --newsroom demo-output --encoder e5=model:e5

The first is a set that `labelled_events.py` wrote, with dates; the second the newsroom of `newsembed demo` in four
languages. B-cubed is precision, recall and F1 (Bagga and Baldwin 1998); pairs are precision and recall of the pairs of
articles in one event, in one language and across two.
"""

import argparse
import collections
import datetime
import json

import numpy as np
from newsembed.formats.articles import read_articles
from newsembed.serving.events import NO_EVENT, EventOptions, assign
from newsembed.serving.specs import encoder_from_spec


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", help="JSONL with title, body, language, event and byline_date")
    source.add_argument("--newsroom", help="output of newsembed demo")
    parser.add_argument("--encoder", action="append", required=True, metavar="NAME=KIND:DIR")
    parser.add_argument("--max_length", type=int, default=128)
    parser.add_argument("--fixed", type=float, default=0.65, help="the cosine in place of a learned threshold")
    options = parser.parse_args()
    rows = list(of_newsroom(options.newsroom) if options.newsroom else of_file(options.data))
    truth = [row["event"] for row in rows]
    print(f"{len(rows)} articles, {len(set(truth))} events\n")
    print("| encoder | threshold | B-cubed P, R, F1 | pairs of one language P, R | of two languages P, R |")
    print("|---|---|---|---|---|")
    for name, spec in (value.split("=", 1) for value in options.encoder):
        encoder = encoder_from_spec(spec, max_length=options.max_length)
        vectors = encoder.encode([row["title"] for row in rows], [row["body"] for row in rows])
        for threshold in (None, options.fixed):
            found = events_of(rows, vectors, threshold)
            scores = [b_cubed(found, truth), *pairs(found, truth, [row["language"] for row in rows])]
            shown = " | ".join(", ".join(f"{value:.3f}" for value in part) for part in scores)
            print(f"| {name} | {'learned' if threshold is None else threshold} | {shown} |", flush=True)


def of_file(path):
    with open(path, encoding="utf-8") as file:
        yield from filter(lambda row: row["byline_date"], map(json.loads, file))


def of_newsroom(output):
    with open(f"{output}/newsroom/truth.jsonl", encoding="utf-8") as file:
        known = {row["url"].replace("://www.", "://"): row for row in map(json.loads, file)}
    for article in read_articles(f"{output}/work/clean"):
        event = known.get(article.url.replace("://www.", "://"), {}).get("event")
        if event and article.byline_date:
            names = {name: getattr(article, name) for name in ("title", "body", "language")}
            yield {**names, "event": event, "byline_date": article.byline_date.isoformat()}


def events_of(rows, vectors, threshold):
    days = np.array([datetime.date.fromisoformat(row["byline_date"]).toordinal() for row in rows])
    ids, none = np.arange(1, len(rows) + 1, dtype=np.uint64), np.full(len(rows), NO_EVENT, np.uint64)
    languages = [row["language"] for row in rows]
    return assign(ids, days, none, languages, vectors.__getitem__, EventOptions(threshold=threshold))[0].tolist()


def b_cubed(found, truth):
    both = collections.Counter(zip(found, truth, strict=True))
    sizes = [collections.Counter(found), collections.Counter(truth)]
    precision, recall = (
        sum(count * count / size[pair[side]] for pair, count in both.items()) / len(found)
        for side, size in enumerate(sizes)
    )
    return precision, recall, 2 * precision * recall / (precision + recall)


def pairs(found, truth, languages):
    """Precision and recall of the pairs within languages, then across; nothing where there are none."""
    codes = [np.unique(part, return_inverse=True)[1] for part in (found, truth, languages)]
    ours, theirs, same = (part[:, None] == part for part in codes)
    once = np.triu(np.ones(same.shape, bool), 1)
    for group in (once & same, once & ~same):
        right = int((ours & theirs & group).sum())
        counts = [int((part & group).sum()) for part in (ours, theirs)]
        yield [right / count for count in counts if count]


if __name__ == "__main__":
    main()
