"""Fill of rows of real translation pairs by greedy packing (Algorithm 1) and by best-fit decreasing.

    python benchmarks/packing.py multi30k/train.en.gz,multi30k/train.de.gz news.tmx \\
        --lengths 128 256 512 --capacities 10 100 1000

Each argument is one value of `newsembed pack --bitext`. Pairs become pieces as in that job, with the same vocabulary
rules, cut, shortest pair and shuffle. Fill is the share of tokens that are not padding; compression is the number of
pieces (rows without packing) divided by the number of rows. "Greedy" is Algorithm 1 as in the job, on windows of
shuffled pieces with the longest first. Best-fit decreasing sorts all pieces at once, which is impossible on a stream,
so it shows what is left to gain.
"""

import argparse
import bisect
import collections
import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from newsembed.beam_pipelines.bitext import readers as bitext
from newsembed.beam_pipelines.bitext.readers import TranslationPair, base_name
from newsembed.beam_pipelines.pack import PackOptions, cut_pair, longest_first, pack
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.beam_pipelines.texts import shuffle_key
from newsembed.beam_pipelines.vocabulary_learning import WordCount, learn_pieces
from newsembed.tasks.vocabulary import Vocabulary, normalize_for_learning

PAIRS_AT_ONCE = 1_024
AROUND_A_PAIR = 3  # [CLS] and two [SEP]
PAPER = 8.5  # section 3.1: compression on the paper's translation pairs at L = 512

Rows = list[list[int]]
Packer = Callable[[Sequence[int], int], Rows]


def best_fit_decreasing(pieces: Sequence[int], max_length: int) -> Rows:
    """Puts each piece, the longest first, into the row with the least room that holds it."""
    rows: Rows = []
    open_rows: list[tuple[int, int]] = []  # (room, number), sorted
    for piece in sorted(pieces, reverse=True):
        place = bisect.bisect_left(open_rows, (piece, -1))
        if place < len(open_rows):
            room, number = open_rows.pop(place)
        else:
            room, number = max_length, len(rows)
            rows.append([])
        rows[number].append(piece)
        if room > piece:
            bisect.insort(open_rows, (room - piece, number))
    return rows


def greedy_longest_first(pieces: Sequence[int], max_length: int, capacity: int) -> Rows:
    """Runs Algorithm 1 as in the job, with the longest piece of each window first."""
    ordered = longest_first(pieces, capacity * max_length // 2, int)
    return list(pack(ordered, max_length, capacity, PackOptions().min_fill, int))


def read_all(given: str) -> list[TranslationPair]:
    """Returns the pairs of one value of ``--bitext``, in the order in which the job packs them."""
    parts = bitext.plan_parts(given)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for index, part in enumerate(parts):
            with Shard(Phase(folder, "read", len(parts)), index) as shard:
                for pair in bitext.read_pairs(shard, part):
                    shard.written()
                    found.append(pair)
    return sorted(found, key=lambda pair: shuffle_key(pair.key))


def learn(pairs: Sequence[TranslationPair], size: int) -> Vocabulary:
    """Learns a vocabulary from the pairs."""
    counts: collections.Counter[str] = collections.Counter()
    for batch in _batches(pairs):
        for text in normalize_for_learning([side for pair in batch for side in (pair.source, pair.target)]):
            counts.update(text.split(" ") if text else ())
    words = [WordCount(word, counts[word]) for word in sorted(counts)]
    return Vocabulary(learn_pieces(lambda: words, size, min_frequency=2).pieces)


def side_lengths(pairs: Sequence[TranslationPair], vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """Returns the number of tokens of source and target of every pair."""
    sizes: list[tuple[int, int]] = []
    for batch in _batches(pairs):
        sides = [vocabulary.encode_texts([getattr(pair, side) for pair in batch]) for side in ("source", "target")]
        sizes += [(source.size, target.size) for source, target in zip(*sides, strict=True)]
    return sizes


def piece_lengths(sizes: Sequence[tuple[int, int]], max_length: int) -> list[int]:
    """Returns the number of tokens of every piece, including [CLS] and [SEP]; short pairs are left out."""
    return [
        sum(cut_pair(source, target, max_length - AROUND_A_PAIR)) + AROUND_A_PAIR
        for source, target in sizes
        if source and target and source + target >= PackOptions().min_tokens
    ]


def _batches(pairs: Sequence[TranslationPair]) -> Iterator[tuple[TranslationPair, ...]]:
    remaining = iter(pairs)
    while batch := tuple(itertools.islice(remaining, PAIRS_AT_ONCE)):
        yield batch


def describe(pieces: Sequence[int], rows: Rows, max_length: int) -> str:
    """Returns fill and compression; fails if a piece is missing or a row is too long."""
    assert sorted(itertools.chain.from_iterable(rows)) == sorted(pieces)
    assert all(sum(row) <= max_length for row in rows)
    return f"{sum(pieces) / (len(rows) * max_length):.4f} ({len(pieces) / len(rows):.2f} x)"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bitext", nargs="+", help="x.tsv, x.tmx or x.de,x.en, plain or .gz")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 256, 512], help="L")
    parser.add_argument("--capacities", type=int, nargs="+", default=[10, 100, 1_000], help="C of Algorithm 1")
    parser.add_argument("--vocabulary_size", type=int, default=32_000, help="pieces to learn")
    args = parser.parse_args()
    pairs = {given: read_all(given) for given in args.bitext}
    vocabulary = learn([pair for found in pairs.values() for pair in found], args.vocabulary_size)
    sizes = {given: side_lengths(found, vocabulary) for given, found in pairs.items()}
    fill = PackOptions().min_fill
    print(f"vocabulary: {vocabulary.size:,} pieces; min fill {fill}; the paper reports {PAPER} x at 512\n")
    packers: dict[str, Packer] = {
        f"greedy, C = {capacity}": functools.partial(greedy_longest_first, capacity=capacity)
        for capacity in args.capacities
    }
    packers["best-fit decreasing"] = best_fit_decreasing
    print(f"| pairs | L | pieces | mean | {' | '.join(packers)} |")
    print("|---" * (4 + len(packers)) + "|")
    for given, found in pairs.items():
        for max_length in args.lengths:
            pieces = piece_lengths(sizes[given], max_length)
            cells = [describe(pieces, packer(pieces, max_length), max_length) for packer in packers.values()]
            name = f"{base_name(given.partition(',')[0])} {found[0].languages}"
            about = f"{name} | {max_length} | {len(pieces):,} | {np.mean(pieces):.1f}"
            print(f"| {about} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
