"""Compares thirty daily updates of an archive with one update over the same articles, and with batch clustering.

    python benchmarks/daily_update.py --encoder savedmodel:demo-output/saved_model --scale 10
    python benchmarks/daily_update.py --encoder savedmodel:demo-output/saved_model --articles articles.jsonl.zst \\
        --first 2016-10-01

Without ``--articles`` a newsroom is generated, and the month with the most articles is taken; its truth names the event
of each. Of the articles one in ten arrives one to five days late. Printed: whether both ways keep the same articles,
B-cubed F1 (Bagga and Baldwin 1998) of the events of both, of each with the truth, and of scikit-learn's average linkage
(days within ``--events.days``, and all days) and HDBSCAN on the same vectors, at the best of a grid of thresholds by
the truth; and seconds for each day, without the start of the process, and of one process with its start.
"""

import argparse
import collections
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from newsembed.beam_pipelines.clean.options import CleanOptions
from newsembed.formats.archive import LAST_RUN, MEMBERS, EventMember, read_pointer, version_folder
from newsembed.formats.archive_parts import VECTORS, part_paths
from newsembed.formats.articles import article_files, read_rows
from newsembed.formats.parquet import read_records, read_stream
from newsembed.formats.records import Article
from newsembed.formats.urls import canonical_url
from newsembed.newsroom.articles import Desk
from newsembed.newsroom.options import NewsroomOptions
from newsembed.newsroom.world import build_world
from newsembed.serving.events import EventOptions
from newsembed.serving.specs import encoder_from_spec
from newsembed.updates.options import EncoderChoice, Sources, UpdateOptions
from newsembed.updates.run import update
from sklearn.cluster import HDBSCAN, AgglomerativeClustering

DAYS = 30
LATE_SHARE, MOST_DAYS_LATE = 0.1, 5
THRESHOLDS = np.arange(0.3, 0.91, 0.05)


def newsroom_rows(scale: float, seed: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The stories of a newsroom, and the event of each URL that has one."""
    options = NewsroomOptions(seed, scale)
    desk = Desk(build_world(options), options)
    stories = [*desk.news(), *desk.evergreens()]
    rows = [
        {
            "url": story.url,
            "title": story.title,
            "body": " ".join(story.sentences),
            "authors": [story.author] if story.author else [],
            "byline_date": story.published.date().isoformat(),
        }
        for story in stories
    ]
    return rows, {story.url: story.event.id for story in stories if story.event}


def month(rows: Sequence[dict[str, Any]], first: str | None) -> tuple[list[dict[str, Any]], datetime.date]:
    """The rows of thirty days: from a day, or those with the most rows."""
    days = collections.Counter(row["byline_date"][:10] for row in rows)
    ordinals = {datetime.date.fromisoformat(day).toordinal(): count for day, count in days.items()}
    if first:
        start = datetime.date.fromisoformat(first).toordinal()
    else:
        start = max(ordinals, key=lambda day: sum(ordinals.get(day + step, 0) for step in range(DAYS)))
    chosen = [
        row for row in rows if 0 <= datetime.date.fromisoformat(row["byline_date"][:10]).toordinal() - start < DAYS
    ]
    return chosen, datetime.date.fromordinal(start)


def arrivals(rows: Iterable[dict[str, Any]], start: datetime.date) -> list[list[dict[str, Any]]]:
    """The rows that arrive on each day."""
    draw = random.Random(7)
    arriving: list[list[dict[str, Any]]] = [[] for _ in range(DAYS)]
    for row in rows:
        day = (datetime.date.fromisoformat(row["byline_date"][:10]) - start).days
        late = draw.randint(1, MOST_DAYS_LATE) if draw.random() < LATE_SHARE else 0
        arriving[min(day + late, DAYS - 1)].append(row)
    return arriving


def b_cubed(found: Mapping[str, Any], truth: Mapping[str, Any]) -> tuple[float, float, float]:
    """Precision, recall and F1 of the clusters of the items that both have."""
    items = [item for item in found if item in truth]
    pairs = collections.Counter((found[item], truth[item]) for item in items)
    sizes = [collections.Counter(side[item] for item in items) for side in (found, truth)]
    precision = sum(count * count / sizes[0][one] for (one, _), count in pairs.items()) / len(items)
    recall = sum(count * count / sizes[1][two] for (_, two), count in pairs.items()) / len(items)
    return precision, recall, 2 * precision * recall / (precision + recall)


def content(archive: str) -> tuple[dict[str, tuple[Any, ...]], dict[str, str], np.ndarray]:
    """The articles, their events and their vectors."""
    version = version_folder(archive, read_pointer(archive).version)
    articles = {
        one.doc_id: (one.url, one.title, one.body, one.authors, one.byline_date, one.language)
        for one in read_stream(f"{version}/articles", Article)
    }
    events = {one.doc_id: one.event_id for one in read_records(f"{version}/{MEMBERS}", EventMember)}
    return articles, events, np.concatenate([np.load(path) for path in part_paths(version, VECTORS)])


def peers(
    vectors: np.ndarray, ids: Sequence[str], days: np.ndarray, truth: Mapping[str, str], options: EventOptions
) -> Iterable[tuple[str, dict[str, int]]]:
    """Yields (name, clusters) of batch clustering, each at the threshold that is best by the truth."""
    distances = np.maximum(1 - vectors @ vectors.T, 0)
    np.fill_diagonal(distances, 0)
    near = np.where(np.abs(days[:, None] - days[None]) <= options.days, distances, 2)
    for name, matrix in (("average linkage, near days", near), ("average linkage", distances)):
        tries = []
        for threshold in THRESHOLDS:
            model = AgglomerativeClustering(
                n_clusters=None, metric="precomputed", linkage="average", distance_threshold=1 - threshold
            )
            found = dict(zip(ids, model.fit_predict(matrix).tolist(), strict=True))
            tries.append((b_cubed(found, truth)[2] if truth else 0, threshold, found))
        best = max(tries, key=lambda one: one[0])
        yield f"{name}, threshold {best[1]:.2f}", best[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        labels = HDBSCAN(min_cluster_size=2, metric="precomputed").fit_predict(near.astype(np.float64))
    alone = [f"alone-{place}" if label < 0 else str(label) for place, label in enumerate(labels.tolist())]
    yield "HDBSCAN, near days, min_cluster_size 2", dict(zip(ids, alone, strict=True))


def run_days(
    archive: str, paths: Sequence[Sequence[str]], choice: EncoderChoice, options: UpdateOptions
) -> tuple[list[float], list[Any]]:
    """Runs an update for each list of files; returns seconds and reports."""
    encoder = encoder_from_spec(choice.spec, progress=False)
    encoder.encode(["warm"], ["up"])
    seconds, reports = [], []
    for files in paths:
        start = time.perf_counter()
        reports.append(update(archive, encoder, choice, Sources(articles=tuple(files)), options))
        seconds.append(time.perf_counter() - start)
    return seconds, reports


def main() -> None:
    """Prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, metavar="KIND:DIR")
    parser.add_argument("--scale", type=float, default=10.0, help="of the newsroom")
    parser.add_argument("--seed", type=int, default=7, help="of the newsroom")
    parser.add_argument("--articles", help="JSONL of articles instead of a newsroom")
    parser.add_argument("--first", help="first of the thirty days; by default those with the most articles")
    parser.add_argument("--threshold", type=float, default=EventOptions().threshold)
    args = parser.parse_args()
    truth: dict[str, str] = {}
    if args.articles:
        columns = ("url", "title", "body", "authors", "byline_date")
        found = (row for _, row in read_rows(article_files(args.articles), columns))
        rows = [row for row in found if len(str(row.get("byline_date"))) >= 10 and str(row["byline_date"])[:2] == "20"]
    else:
        rows, truth = newsroom_rows(args.scale, args.seed)
    chosen, start = month(rows, args.first)
    arriving = arrivals(chosen, start)
    print(
        f"{len(chosen)} articles of {DAYS} days from {start}, "
        f"{min(map(len, arriving))} to {max(map(len, arriving))} a day"
    )
    events = EventOptions(threshold=args.threshold)
    options = UpdateOptions(clean=CleanOptions(latest_date=start + datetime.timedelta(DAYS)), events=events)
    choice = EncoderChoice(args.encoder)
    with tempfile.TemporaryDirectory() as folder:
        compare(folder, arriving, choice, options, truth)


def compare(
    folder: str,
    arriving: Sequence[Sequence[dict[str, Any]]],
    choice: EncoderChoice,
    options: UpdateOptions,
    truth_by_url: Mapping[str, str],
) -> None:
    """Runs both ways and the peers, and prints the lines."""
    paths = []
    for day, rows in enumerate(arriving):
        paths.append(os.path.join(folder, f"day-{day:02d}.jsonl"))
        with open(paths[-1], "w", encoding="utf-8") as sink:
            sink.writelines(json.dumps(row, default=str) + "\n" for row in rows)
    shuffled = random.Random(1).sample(paths, len(paths))
    (seconds_once,), (report,) = run_days(f"{folder}/once", [shuffled], choice, options)
    seconds, reports = run_days(f"{folder}/daily", [[path] for path in paths[:-1]], choice, options)
    command_seconds, last = run_command(f"{folder}/daily", paths[-1], choice, options)
    once, daily = content(f"{folder}/once"), content(f"{folder}/daily")
    print(f"kept: {len(once[0])} in one run, {len(daily[0])} in {DAYS}; the same: {once[0] == daily[0]}")
    superseded = sum(one.superseded for one in reports) + last["superseded"]
    merged = sum(one.merged for one in reports) + last["merged"]
    print(f"superseded: {superseded}; merged events: {merged} in {DAYS} runs, {report.merged} in one")
    print(f"events: {report.events} in one run, {last['events']} in {DAYS}")
    print(f"B-cubed of the events of {DAYS} runs with those of one: {scores(daily[1], once[1])}")
    by_url = {canonical_url(url): event for url, event in truth_by_url.items()}
    truth = {doc_id: by_url[one[0]] for doc_id, one in once[0].items() if one[0] in by_url}
    ids = list(once[1])
    days = np.array([once[0][doc_id][4].toordinal() for doc_id in ids])
    ways = [("update, one run", once[1]), (f"update, {DAYS} runs", daily[1])]
    start = time.perf_counter()
    ways += peers(once[2], ids, days, truth, options.events)
    peer_seconds = time.perf_counter() - start
    for name, found in ways:
        quality = scores(found, truth) if truth else "no truth"
        print(
            f"{name}: {len(set(found.values()))} clusters; {quality}; F1 with one run {b_cubed(found, once[1])[2]:.4f}"
        )
    print(f"seconds: one run {seconds_once:.1f}; a day median {np.median(seconds):.2f}, most {max(seconds):.2f}")
    print(f"seconds of a command with its start, {last['in']} articles: {command_seconds:.1f}")
    print(f"seconds of the peers with their grids: {peer_seconds:.1f}")


def run_command(archive: str, path: str, choice: EncoderChoice, options: UpdateOptions) -> tuple[float, dict[str, Any]]:
    """Runs one update as a command; returns its seconds, with the start of the process, and its report."""
    command = [sys.executable, "-m", "newsembed", "update", "--archive", archive, "--encoder", choice.spec]
    command += ["--articles", path, f"--clean.latest_date={options.clean.latest_date}"]
    command += [f"--events.threshold={options.events.threshold}"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    with open(os.path.join(archive, LAST_RUN), encoding="utf-8") as source:
        return seconds, json.load(source)


def scores(found: Mapping[str, Any], truth: Mapping[str, Any]) -> str:
    """B-cubed in words."""
    precision, recall, both = b_cubed(found, truth)
    return f"precision {precision:.4f}, recall {recall:.4f}, F1 {both:.4f}"


if __name__ == "__main__":
    main()
