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
- minutes: of training, the sum of the steps after compilation in the `metrics.jsonl` of the model and of the folders
  behind it (`--model "NTDV=ntdv,de-en,en-de"`), such as the translators that it holds
- documents a CPU second: of embedding the first 256 articles of "events" a second time, so without compilation; TF-IDF
  and latent semantics learn their statistics from these articles, too

Models of English alone (`--english`) have a blank where the texts are German. Columns whose file is not given are left
out. Embeddings are kept in `--output`/cache, so the command continues where it was stopped.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from newsembed import serving
from newsembed.evaluation.command import encoder_factory
from newsembed.evaluation.encoders import Document
from quality import toml

FIXED = {"TF-IDF": "tfidf", "LSA-128": "lsa:128"}
TITLES = 400
TIMED = 256
SAME_DAY, BBC, ACROSS, EVENTS, TITLE = "same day", "BBC, 5-shot", "across", "events", "titles"
BLANK = "-"


def main() -> None:
    """Evaluates and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allsides", help="JSONL of `heldout_days.py`")
    parser.add_argument("--labelled", help="JSONL of `okura_newsroom.py`")
    parser.add_argument("--mldoc", help="folder of `newsembed newsroom --format mldoc`")
    parser.add_argument("--bbc", help="folder of BBC News")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR[,DIR…]", help="repeatable")
    parser.add_argument("--english", action="append", default=[], metavar="NAME", help="a model of English alone")
    parser.add_argument("--max_length", type=int, default=256, help="tokens of a text that models read")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    folders = {name: found.split(",") for name, found in (pair.split("=", 1) for pair in options.model)}
    if unknown := set(options.english) - set(folders):
        parser.error(f"--english names no model: {', '.join(sorted(unknown))}")
    columns = benchmarks(options)
    specs = FIXED | {name: f"model:{os.path.abspath(own)}" for name, (own, *_) in folders.items()}
    recipe = Path(options.output, "recipe.toml")
    recipe.write_text(toml(specs, columns), encoding="utf-8")
    command = [sys.executable, "-m", "newsembed", "evaluate", "--recipe", str(recipe)]
    command += ["--max_length", str(options.max_length)]
    command += ["--cache", f"{options.output}/cache", "--output", f"{options.output}/results"]
    code = subprocess.run(command, check=False).returncode
    results = json.loads(Path(options.output, "results", "results.json").read_text(encoding="utf-8"))["results"]
    speeds = {name: speed(spec, options) for name, spec in specs.items()} if options.allsides else {}
    blank = {name: {ACROSS} if name in options.english else set() for name in specs}
    extra = {name: [minutes(folders.get(name, [])), speeds.get(name, BLANK)] for name in specs}
    print(table(results, [str(column["name"]) for column in columns], blank, extra))
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


def speed(spec: str, options: argparse.Namespace) -> str:
    """Documents that a system embeds in a CPU second (of this process and its threads), once it is compiled."""
    with open(options.allsides, encoding="utf-8") as file:
        documents = [Document(row["title"], row["body"]) for row in map(json.loads, file)][:TIMED]
    encoder = encoder_factory(spec, serving.factories(max_length=options.max_length, progress=False))()
    encoder.encode(documents)
    started = time.process_time()
    encoder.encode(documents)
    return f"{len(documents) / (time.process_time() - started):,.0f}"


def table(results: list[dict], columns: list[str], blank: dict[str, set[str]], extra: dict[str, list[str]]) -> str:
    """Markdown; a blank where a system does not apply, and "failed" where its evaluation did.

    Args:
      results: of `evaluate`.
      columns: the benchmarks.
      blank: columns that do not apply, by system.
      extra: minutes and documents a CPU second, by system.
    """
    head = ["system", *columns, "minutes", "documents a CPU second"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    for name, further in extra.items():
        rows = {row["benchmark"]: row for row in results if row["encoder"] == name}
        cells = [BLANK if column in blank[name] else value(rows[column], column) for column in columns]
        lines.append(f"| {name} | {' | '.join([*cells, *further])} |")
    return "\n".join(lines)


def value(row: dict, column: str) -> str:
    """The score of a column."""
    if row["status"] != "ok":
        return "failed"
    metric, part = SCORES[column]
    found = [score["value"] for score in row["scores"] if (score["metric"], score["part"]) == (metric, part)]
    return f"{found[0]:.3f}" if found else BLANK


def minutes(folders: list[str]) -> str:
    """Wall minutes of the steps of the trainings; a blank for a model that was imported."""
    seconds, is_trained = 0.0, False
    for path in (Path(folder, "metrics.jsonl") for folder in folders):
        if path.exists():
            is_trained, before = True, 0
            for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                if "seconds_per_step" in row:
                    seconds += row["seconds_per_step"] * (row["step"] - before)
                before = row.get("step", before)
    return f"{seconds / 60:.1f}" if is_trained else BLANK


if __name__ == "__main__":
    main()
