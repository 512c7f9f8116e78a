"""One table of all systems: each trained model, TF-IDF and latent semantics on what the systems are for.

    python benchmarks/heldout_days.py allsides.jsonl.zst --since 2019-09-01 --output heldout.jsonl
    python benchmarks/okura_newsroom.py news/newsroom/truth.jsonl news/work/extract labelled.jsonl
    python benchmarks/systems.py --allsides heldout.jsonl --labelled labelled.jsonl --mldoc news/newsroom/mldoc \
        --bbc ../shared/data/benchmarks/bbc/bbc --output systems \
        --model "SimLTE, AllSides=simlte" --model "cT-MDE, newsroom=tmde" --english "SimLTE, AllSides"

The columns, one recipe of `newsembed evaluate`:

- same day: AUC of pairs of one event or copies among the most similar pairs of one day of a newsroom (day_duplicates)
- BBC, 5-shot: macro-F1 of classifiers that saw five documents of each class, mean of ten draws
- titles: AP of finding the article of a title among the first 400 of AllSides (title_links)
- across: accuracy of an SVM on the newsroom's topics, from English to German and back (mldoc_svm, Cross)
- events: mAP of AllSides' proxy events, other publishers only (`heldout_days.py` describes them)
- minutes: of training, the sum of the steps after compilation in the model's `metrics.jsonl`
- documents/s: of embedding the articles of "events", with compilation

Models of English alone (`--english`) have a blank where the texts are German. Columns whose file is not given are left
out. Embeddings are kept in `--output`/cache, so the command continues where it was stopped.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from quality import toml

FIXED = {"TF-IDF": "tfidf", "LSA-128": "lsa:128"}
TITLES = 400
SAME_DAY, BBC, ACROSS, EVENTS, TITLE = "same day", "BBC, 5-shot", "across", "events", "titles"
BLANK = "-"


def main() -> None:
    """Evaluates and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allsides", help="JSONL of `heldout_days.py`")
    parser.add_argument("--labelled", help="JSONL of `okura_newsroom.py`")
    parser.add_argument("--mldoc", help="folder of `newsembed newsroom --format mldoc`")
    parser.add_argument("--bbc", help="folder of BBC News")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="a model folder; repeatable")
    parser.add_argument("--english", action="append", default=[], metavar="NAME", help="a model of English alone")
    parser.add_argument("--max_length", type=int, default=256, help="tokens of a text that models read")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    folders = dict(pair.split("=", 1) for pair in options.model)
    if unknown := set(options.english) - set(folders):
        parser.error(f"--english names no model: {', '.join(sorted(unknown))}")
    columns = benchmarks(options)
    specs = FIXED | {name: f"model:{os.path.abspath(folder)}" for name, folder in folders.items()}
    recipe = Path(options.output, "recipe.toml")
    recipe.write_text(toml(specs, columns), encoding="utf-8")
    command = [sys.executable, "-m", "newsembed", "evaluate", "--recipe", str(recipe)]
    command += ["--max_length", str(options.max_length)]
    command += ["--cache", f"{options.output}/cache", "--output", f"{options.output}/results"]
    code = subprocess.run(command, check=False).returncode
    results = json.loads(Path(options.output, "results", "results.json").read_text(encoding="utf-8"))["results"]
    print(table(results, [str(column["name"]) for column in columns], folders, options.english))
    sys.exit(code)


def benchmarks(options: argparse.Namespace) -> list[dict[str, object]]:
    """The entries of the recipe, for the files that are given."""
    found: list[dict[str, object]] = []
    if options.labelled:
        found.append({"name": SAME_DAY, "suite": "day_duplicates", "data": options.labelled})
    if options.bbc:
        found.append({"name": BBC, "suite": "bbc", "data": options.bbc, "tasks": ["few_shot"]})
    if options.allsides:
        titles = Path(options.output, "titles.jsonl")
        with open(options.allsides, encoding="utf-8") as file:
            rows = list({row["body"]: row for row in map(json.loads, file)}.values())[:TITLES]
        titles.write_text("".join(json.dumps({name: row[name] for name in ("title", "body")}) + "\n" for row in rows))
        found.append({"name": TITLE, "suite": "title_links", "data": str(titles)})
    if options.mldoc:
        languages = ["english", "german"]
        found.append({"name": ACROSS, "suite": "mldoc_svm", "data": options.mldoc, "languages": languages})
    if options.allsides:
        found.append({"name": EVENTS, "suite": "events", "data": options.allsides, "cross_publisher": True})
    return found


# The score of each column: its metric and its part.
SCORES = {
    SAME_DAY: ("AUC", "level ≥ 4"),
    BBC: ("5-shot macro-F1", "all"),
    TITLE: ("AP", "all"),
    ACROSS: ("accuracy", "Cross"),
    EVENTS: ("mAP", "all"),
}


def table(results: list[dict], columns: list[str], folders: dict[str, str], english: list[str]) -> str:
    """Markdown; a blank where a system does not apply, and "failed" where its evaluation did."""
    head = ["system", *columns, "minutes", "documents/s"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name in dict.fromkeys(row["encoder"] for row in results):
        rows = {row["benchmark"]: row for row in results if row["encoder"] == name}
        cells = [BLANK if column == ACROSS and name in english else value(rows[column], column) for column in columns]
        speed = rows.get(EVENTS, {}).get("texts_per_second")
        cells += [minutes(folders[name]) if name in folders else BLANK, f"{speed:,.0f}" if speed else BLANK]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def value(row: dict, column: str) -> str:
    """The score of a column."""
    if row["status"] != "ok":
        return "failed"
    metric, part = SCORES[column]
    found = [score["value"] for score in row["scores"] if (score["metric"], score["part"]) == (metric, part)]
    return f"{found[0]:.3f}" if found else BLANK


def minutes(folder: str) -> str:
    """Wall minutes of the steps of a training; a blank for a model that was imported."""
    seconds, before = 0.0, 0
    if not os.path.exists(f"{folder}/metrics.jsonl"):
        return BLANK
    with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if "seconds_per_step" in row:
                seconds += row["seconds_per_step"] * (row["step"] - before)
            before = row.get("step", before)
    return f"{seconds / 60:.1f}"


if __name__ == "__main__":
    main()
