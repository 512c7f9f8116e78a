"""Imported tokenizers against the `tokenizers` library and TF-Text: equal ids, and documents a second.

For each tokenizer.json it counts the lines whose ids differ from those of the library (``encode`` with special tokens,
one line at a time, without limits), and for BERT's tokenizers those whose ids differ inside a TensorFlow graph. It then
times the tokenization of documents of several lines: ours, the graph, and our own WordPiece by TF-Text with a
vocabulary of the same size, learned on the same lines. Differing lines are printed.

Example::

    python benchmarks/tokenizer_ids.py --folders all-MiniLM-L6-v2 \\
        --texts ../shared/data/parallel/{ntrex128,multi30k,wmt21_news} ../shared/data/articles/newsapi*.zst
"""

import argparse
import collections
import gzip
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tasks"))
LINES = 10_000
LINES_PER_DOCUMENT = 10
VOCABULARY = 30_000
SUFFIXES = (".zst", ".gz", ".jsonl")
NO_TEXT = (".md", ".tsv", ".json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="+", required=True, help="JSONL files of articles, and folders of plain lines")
    parser.add_argument("--folders", nargs="*", default=[], help="Hugging Face folders")
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    lines = read_lines(args.texts, args.lines)
    print(f"{len(lines):,} lines, load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
    print("| tokenizer | pieces | lines with other ids | in a graph | documents/s: ours | library | graph |")
    print("|---|---|---|---|---|---|---|")
    documents = joined(lines)
    for name, vocabulary in vocabularies(args.folders, lines):
        print(row_of(name, vocabulary, lines, documents, args.rounds), flush=True)
    own = own_vocabulary(lines)
    speed = rate(lambda: own.encode_texts(documents), len(documents), args.rounds)
    print(f"| newsembed's own, TF-Text | {own.size:,} | - | - | {speed} | - | the same |")


def joined(lines: Sequence[str]) -> list[str]:
    """Documents of several lines."""
    return [" ".join(lines[start : start + LINES_PER_DOCUMENT]) for start in range(0, len(lines), LINES_PER_DOCUMENT)]


def read_lines(paths: Sequence[str], count: int) -> list[str]:
    """Lines spread over all sources, the same number of each."""
    sources = [list(read(path)) for path in paths]
    each = max(1, count // len(sources))
    return [line for lines in sources for line in lines[:: max(1, len(lines) // each)][:each]]


def read(path: str) -> Iterator[str]:
    """The titles and bodies of articles, or the lines of all files in a folder."""
    from newsembed.formats.jsonl import read_jsonl

    if path.endswith(SUFFIXES):
        for _, row in read_jsonl(path):
            yield from (row[part] for part in ("title", "body") if row.get(part))
        return
    for file in sorted(Path(path).rglob("*")):
        if file.is_file() and file.suffix not in NO_TEXT:
            with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as source:
                yield from (line.rstrip("\n") for line in source if line.strip())


def vocabularies(folders: Sequence[str], lines: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The tokenizers of the folders, and one of each family trained on the lines."""
    from newsembed.formats.huggingface import read_huggingface
    from newsembed.formats.huggingface.parts import HuggingFaceFolder, Tokenizer
    from newsembed.tasks.huggingface_tokenizer import import_vocabulary
    from newsembed.tasks.vocabulary import Vocabulary
    from tokenizer_families import FAMILIES, train

    for folder in folders:
        source = read_huggingface(folder)
        found = import_vocabulary(source, source.config["vocab_size"])
        print("\n".join(f"{folder}: {line}" for line in found.differences), file=sys.stderr)
        yield Path(folder).name, Vocabulary.of(found.file)
    for family in FAMILIES:
        tokenizer = train(family, lines, VOCABULARY)
        source = HuggingFaceFolder(family, {}, {}, Tokenizer(None, tokenizer.to_str().encode()))
        yield family, Vocabulary.of(import_vocabulary(source, tokenizer.get_vocab_size()).file)


def row_of(name: str, vocabulary: Any, lines: Sequence[str], documents: Sequence[str], rounds: int) -> str:
    """One line of the table."""
    import tensorflow as tf
    from newsembed.tasks.wordpiece_graph import why_not_in_graph
    from tokenizers import Tokenizer

    library = Tokenizer.from_buffer(vocabulary.tokenizer.content)
    library.no_truncation()
    library.no_padding()
    longest = 1 << 20
    rows = vocabulary.encode_documents([""] * len(lines), lines, longest)
    order = vocabulary.tokenizer.order
    differing = [line for line, row in zip(lines, rows, strict=True) if order[row].tolist() != library.encode(line).ids]
    cells = [f"{len(differing)} of {len(lines):,}", "no graph"]
    speeds = [
        rate(lambda: vocabulary.encode_texts(documents), len(documents), rounds),
        rate(lambda: library.encode_batch(documents, add_special_tokens=False), len(documents), rounds),
        "-",
    ]
    if why_not_in_graph(vocabulary.tokenizer) is None:
        graph = tf.function(lambda *parts: vocabulary.tf_encode_documents(*parts, longest), autograph=False)
        found = graph(tf.constant([""] * len(lines)), tf.constant(lines)).to_list()
        others = [line for line, row, ids in zip(lines, rows, found, strict=True) if row.tolist() != ids]
        cells[1] = f"{len(others)} of {len(lines):,}"
        differing += others
        given = tf.constant([""] * len(documents)), tf.constant(documents)
        speeds[2] = rate(lambda: graph(*given), len(documents), rounds)
    print("\n".join(f"{name}: {line}" for line in differing[:20]), file=sys.stderr)
    return "| " + " | ".join([name, f"{vocabulary.size:,}", *cells, *speeds]) + " |"


def own_vocabulary(lines: Sequence[str]) -> Any:
    """Our own tokenizer, its pieces learned on the lines."""
    from newsembed.beam_pipelines.vocabulary_learning import WordCount, learn_pieces
    from newsembed.tasks.vocabulary import Vocabulary, normalize_for_learning

    counts = collections.Counter(word for text in normalize_for_learning(lines) for word in text.split())
    words = sorted(WordCount(word, count) for word, count in counts.items())
    return Vocabulary(learn_pieces(lambda: iter(words), VOCABULARY, 1, 4_000).pieces)


def rate(work: Callable[[], Any], count: int, rounds: int) -> str:
    """Documents a second, the median of the rounds after one that warms up."""
    seconds = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return f"{count / np.median(seconds[1:]):,.0f}"


if __name__ == "__main__":
    main()
