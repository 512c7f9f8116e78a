"""Helpers for the tests of benchmarks: files of rows, vectors at given angles, scores by name."""

from json_lines import write_rows


def write_events(path):
    """Writes three articles of each of three events, which share their words and nothing else; returns the path."""
    words = {"A": "storm coast wind", "B": "budget vote parliament", "C": "match goal cup"}
    rows = [
        {"id": f"{event}{i}", "title": f"{text} headline", "body": f"{text} report {i}", "publisher": str(i),
         "language": "en", "event": event, "topic": "x", "byline_date": "2020-01-01"}
        for event, text in words.items()
        for i in range(3)
    ]  # fmt: skip
    return write_rows(path, rows)


def write_bbc(folder, words, count):
    """Writes so many articles of each class, whose words are given, as BBC's collection has them."""
    for label, text in words.items():
        (folder / label).mkdir(parents=True)
        for number in range(count):
            (folder / label / f"{number:03}.txt").write_text(f"{text} {number}\n\nthe {text}")


def found(scores):
    """Scores by (metric, part)."""
    return {(score.metric, score.part): score for score in scores}


def parse(*arguments):
    """The options of `newsembed evaluate`."""
    from newsembed.launch import cli, evaluate

    return cli.parsed("evaluate", evaluate, arguments)
