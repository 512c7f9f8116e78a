"""One table of the quality of encoders: a recipe is written from the folders that are there, and evaluated.

    python benchmarks/quality.py --data ../shared/data --newsroom newsroom --since 2019-01-01 --output quality \
        --model "MiniLM-L6=lifted/import" --model "words=lifted/words" --model "lifted=lifted/model"

TF-IDF, latent semantics (300 numbers) and the given models on: events of AllSides from a day on, other publishers only
(`heldout_days.py` describes the proxy), the held-out events of a generated newsroom (`newsembed newsroom`), BBC and AG
News by logistic regression, STS-B, STS 2014 and SICK. Scores have 95 % intervals: over events, pairs, or seeds of the
classifier. Embeddings are kept in `--output`/cache, so the command continues where it was stopped. The models must have
seen no article from `--since` on.
"""

import argparse
import json
import os
import subprocess
import sys

FIXED = {"TF-IDF": "tfidf", "LSA-300": "lsa:300"}
NOTES = {
    "AllSides": "events are proxies: a topic of AllSides on one day",
    "newsroom": "generated text",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the shared data")
    parser.add_argument("--newsroom", help="folder that `newsembed newsroom` wrote")
    parser.add_argument("--since", default="2019-01-01", help="first day of the events of AllSides")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=DIR", help="a model folder; repeatable")
    parser.add_argument("--only", nargs="+", default=[], metavar="BENCHMARK", help="some of the columns")
    parser.add_argument("--note", action="append", default=[], metavar="BENCHMARK=TEXT", help="printed below the table")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    models = {name: f"model:{os.path.abspath(folder)}" for name, folder in pairs(options.model)}
    notes = NOTES | dict(pairs(options.note))
    columns = [column for column in benchmarks(options) if not options.only or column["name"] in options.only]
    for column in columns:
        if column["name"] in notes:
            column["note"] = notes[column["name"]]
    recipe = f"{options.output}/recipe.toml"
    with open(recipe, "w", encoding="utf-8") as file:
        file.write(toml(FIXED | models, columns))
    command = [sys.executable, "-m", "newsembed", "evaluate", "--recipe", recipe]
    command += ["--cache", f"{options.output}/cache", "--output", f"{options.output}/results"]
    sys.exit(subprocess.run(command, check=False).returncode)


def pairs(values: list[str]) -> list[tuple[str, str]]:
    """The two parts of each NAME=VALUE."""
    return [(name, value) for name, _, value in (pair.partition("=") for pair in values)]


def benchmarks(options: argparse.Namespace) -> list[dict[str, object]]:
    """The columns of the table, as entries of a recipe."""
    events = f"{options.output}/events.jsonl"
    if not os.path.exists(events):
        script = os.path.join(os.path.dirname(__file__), "heldout_days.py")
        archive = f"{options.data}/articles/allsides.jsonl.zst"
        subprocess.run([sys.executable, script, archive, "--since", options.since, "--output", events], check=True)
    cross = {"suite": "events", "metric": "mAP", "cross_publisher": True}
    found: list[dict[str, object]] = [{"name": "AllSides", "data": events, **cross}]
    if options.newsroom:
        found.append({"name": "newsroom", "data": f"{options.newsroom}/heldout.jsonl", **cross})
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
