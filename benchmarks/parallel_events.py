"""Makes a same-event retrieval set of translated news: each document of NTREX-128 in several languages is one event.

    python benchmarks/parallel_events.py ../shared/data/parallel/ntrex128 --languages en fr ru --output across.jsonl
    newsembed evaluate --suite events_across --data across.jsonl --encoder trained=model:work/trained --output scores

The first sentence of a document is its title. ``--half odd`` leaves out the documents with even numbers, which
`bitext_mining.py` hides, and ``--half even`` the others, on which it trains.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from bitext_mining import NTREX, ntrex_documents

HALVES = {"all": (0, 1), "even": (0,), "odd": (1,)}


def main() -> None:
    """Writes the documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of NTREX-128")
    parser.add_argument("--languages", nargs="+", choices=sorted(NTREX), default=["en", "fr", "ru"])
    parser.add_argument("--half", choices=sorted(HALVES), default="all")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    rows = list(documents(options.folder, options.languages, HALVES[options.half]))
    with options.output.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(f"{len(rows)} articles, {len({row['event'] for row in rows})} events")


def documents(folder: Path, languages: list[str], remainders: tuple[int, ...]) -> Iterator[dict[str, str]]:
    """Yields the rows, document by document."""
    names, texts = ntrex_documents(folder)
    for number, name in enumerate(dict.fromkeys(names)):
        if number % 2 in remainders:
            for language in languages:
                title, *rest = (line for line, own in zip(texts[language], names, strict=True) if own == name)
                yield {
                    "id": f"{name}-{language}",
                    "title": title,
                    "body": " ".join(rest),
                    "publisher": language,
                    "language": language,
                    "event": name,
                }


if __name__ == "__main__":
    main()
