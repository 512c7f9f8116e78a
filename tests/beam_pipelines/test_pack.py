"""Packing: Algorithm 1 against plain references, rows, splitting, translation pairs, and the job read back."""

import gzip

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from newsembed.beam_pipelines.pack import (
    JOB,
    PackOptions,
    _Rows,
    cut_pair,
    frame,
    join_parts,
    longest_first,
    make_row,
    pack,
    split_document,
)
from newsembed.beam_pipelines.shards import Phase, Shard
from newsembed.errors import InputError
from newsembed.formats.records import Article, make_doc_id
from newsembed.formats.vocabulary import CLS_ID, SEP_ID, SPECIAL_TOKENS
from newsembed.tasks import registry
from newsembed.tasks.kinds import TLM
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.tests.example_inputs import manifest_of, write_stream, write_vocabulary

LENGTH = 32
LETTERS = "abcdefghijklmnop"
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS)])


def pack_plainly(lengths, max_length, capacity, min_fill):
    """Algorithm 1 by looking at every cached row, ties to the row put back last."""
    cache, rows = [], []
    for length in lengths:
        fitting = [row for row in cache if sum(row) + length <= max_length]
        if fitting:
            row = max(reversed(fitting), key=sum)
            cache = [other for other in cache if other is not row]
        else:
            row = []
            if len(cache) == capacity:
                fullest = max(reversed(cache), key=sum)
                cache = [other for other in cache if other is not fullest]
                rows.append(fullest)
        row.append(length)
        if sum(row) >= min_fill * max_length:
            rows.append(row)
        else:
            cache.append(row)
    while cache:
        fullest = max(reversed(cache), key=sum)
        cache = [other for other in cache if other is not fullest]
        rows.append(fullest)
    return rows


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 20), max_size=60), st.integers(1, 8), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_equals_a_plain_search_of_the_cache(lengths, capacity, min_fill):
    rows = list(pack(lengths, 20, capacity, min_fill, int))
    assert rows == pack_plainly(lengths, 20, capacity, min_fill)


def pack_as_printed(lengths, max_length, capacity, min_fill):
    """Algorithm 1 as the paper prints it, with a cache that is ordered by length, longest first.

    A piece that fits into a row of the cache joins the first such row, which leaves once it is filled to rho. A piece
    that fits nowhere is inserted into the cache first, however long it is; then, if there are more than C, the first
    row leaves.
    """
    cache, rows = [], []
    for length in lengths:
        place = next((place for place, row in enumerate(cache) if sum(row) + length <= max_length), None)
        if place is None:
            cache.append([length])
        else:
            row = cache.pop(place)
            row.append(length)
            (rows if sum(row) >= min_fill * max_length else cache).append(row)
        cache.sort(key=sum, reverse=True)
        if len(cache) > capacity:
            rows.append(cache.pop(0))
    return rows + cache


def test_the_printed_algorithm_by_hand():
    # 3 fills the row of 7. 9 opens a row although it is long; 5 fits nowhere, and the fullest of three rows leaves.
    assert pack_as_printed([6, 7, 3, 9, 2, 5], 10, 2, 1.0) == [[7, 3], [9], [6, 2], [5]]


@pytest.mark.parametrize("capacity", [20, 50])
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_as_full_as_those_of_the_printed_algorithm(seed, capacity):
    random = np.random.default_rng(seed)
    for lengths in (random.integers(8, 513, 2_000).tolist(), random.geometric(0.03, 2_000).clip(1, 512).tolist()):
        printed = pack_as_printed(lengths, 512, capacity, 0.99)
        assert sorted(length for row in printed for length in row) == sorted(lengths)
        rows = len(list(pack(lengths, 512, capacity, 0.99, int)))
        assert rows == pytest.approx(len(printed), rel=0.005)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 20), max_size=60), st.integers(1, 8))
def test_packing_holds_no_more_than_the_cache(lengths, capacity):
    taken = []
    held = 0
    for row in pack((taken.append(length) or length for length in lengths), 20, capacity, 1.0, int):
        held = max(held, sum(taken))
        taken = [sum(taken) - sum(row)]
    assert held <= (capacity + 2) * 20  # the cache, the row that is done and the piece that came


@given(st.lists(st.integers(1, 20), max_size=60), st.integers(1, 200))
def test_longest_first_keeps_every_piece_within_its_window(lengths, window_tokens):
    pieces = list(enumerate(lengths))
    found = list(longest_first(pieces, window_tokens, lambda piece: piece[1]))
    assert sorted(found) == pieces
    start = 0
    while start < len(pieces):
        end = start + 1
        while end < len(pieces) and sum(lengths[start:end]) < window_tokens:
            end += 1
        assert found[start:end] == sorted(pieces[start:end], key=lambda piece: (-piece[1], piece[0]))
        start = end


WORDS = st.lists(st.integers(1, 12), min_size=1, max_size=30)  # tokens of each word


@settings(max_examples=200, deadline=None)
@given(WORDS, st.integers(8, 20))
def test_splitting_loses_nothing_and_keeps_words_whole(words, max_length):
    word_ids = np.repeat(np.arange(1, len(words) + 1), words).astype(np.int32)
    tokens = np.arange(100, 100 + word_ids.size, dtype=np.int32)
    pieces = split_document(tokens, word_ids, max_length)
    assert np.concatenate([piece.tokens[1:-1] for piece in pieces]).tolist() == tokens.tolist()
    for piece in pieces:
        assert len(piece) <= max_length
        assert (piece.tokens[0], piece.tokens[-1], piece.word_ids[0], piece.word_ids[-1]) == (CLS_ID, SEP_ID, 0, 0)
        assert piece.word_ids[1] == 1
    if max(words) <= max_length - 2:
        assert sum(int(piece.word_ids.max()) for piece in pieces) == len(words)


def test_a_separator_after_a_cut_is_dropped():
    title, body = np.arange(10, 16, dtype=np.int32), np.arange(20, 26, dtype=np.int32)
    ones = np.arange(1, 7, dtype=np.int32)
    pieces = split_document(*join_parts((title, body), (ones, ones)), 8)
    expected = [[CLS_ID, *part, SEP_ID] for part in (title, body[:5], body[5:])]
    assert [piece.tokens.tolist() for piece in pieces] == expected
    assert join_parts((title[:0], body[:0]), (ones[:0], ones[:0]))[0].size == 0


@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 60))
def test_cut_pairs_fit_and_lose_from_the_longer_side(source, target, room):
    left, right = cut_pair(source, target, room)
    assert 1 <= left <= source
    assert 1 <= right <= target
    assert left + right == min(room, source + target)
    assert left == source or left >= right - 1
    assert right == target or right >= left - 1


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS.map(lambda words: np.repeat(np.arange(1, len(words) + 1), words)), max_size=4), st.integers(0, 9))
def test_a_row_holds_its_pieces_apart(words, padding):
    pieces = [frame(np.arange(100 * number, 100 * number + ids.size), ids) for number, ids in enumerate(words, start=1)]
    used = sum(map(len, pieces))
    row = {name: np.array(values) for name, values in make_row(pieces, used + padding).items()}
    assert all(values[used:].tolist() == [0] * padding for values in row.values())
    seen = 0
    for number, piece in enumerate(pieces, start=1):
        here = row["segment_ids"] == number
        assert row["tokens"][here].tolist() == piece.tokens.tolist()
        assert row["positions"][here].tolist() == list(range(len(piece)))
        own = row["word_ids"][here]
        assert ((own == 0) == (piece.word_ids == 0)).all()
        assert (own[own > 0] - piece.word_ids[piece.word_ids > 0] == seen).all()  # no word crosses a border
        seen = own.max()
    assert row["segment_ids"][:used].tolist() == sorted(row["segment_ids"][:used])


def article(name, title, body, language="en"):
    return Article(make_doc_id(name), "u", "p", title, body, language=language)


def words_of(count):
    return " ".join("abcdefgh"[: 1 + number % 8] for number in range(count))


@pytest.fixture
def inputs(tmp_path):
    english = [article("1", "ab c", words_of(3)), article("2", "abc", words_of(40)), article("3", "a", "b")]
    shards = [
        [*english, article("4", "", words_of(9), "")],
        [article("5", "ab", words_of(12), "pt-BR"), article("7", "d", words_of(7))],
    ]
    articles = write_stream(tmp_path / "clean", "articles", shards, Article)
    return {"articles": articles, "vocabulary": write_vocabulary(tmp_path, VOCABULARY)}


def run_job(inputs, output, **options):
    return manifest_of(JOB, inputs, output, PackOptions(**{"max_length": LENGTH, **options}))


def read_back(output, task, language, length=LENGTH):
    paths = sorted(map(str, output.glob(f"task={task}/language={language}/part-*.tfrecord")))
    parser = {spec.name: tf.io.FixedLenFeature([length], tf.int64) for spec in registry.get(task).features}
    return [
        {name: value.numpy() for name, value in tf.io.parse_single_example(record, parser).items()}
        for record in tf.data.TFRecordDataset(paths)
    ]


def pieces_in(rows):
    found = ((row, number) for row in rows for number in range(1, row["segment_ids"].max() + 1))
    return [row["tokens"][row["segment_ids"] == number].tolist() for row, number in found]


def test_job_packs_every_token_of_every_language(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out")
    counts = manifest["counts"]
    assert (counts["in"], counts["out"]) == (6, 5)
    assert (counts["rejected"], counts["failed"]) == ({"too_short_to_pack": 1}, {})
    assert set(manifest["examples"]) == {"mlm/en", "mlm/pt-BR", "mlm/und"}
    for name, rows in manifest["examples"].items():
        found = read_back(tmp_path / "out", *name.split("/"))
        assert len(found) == rows
        fill, packing = np.mean([row["segment_ids"] > 0 for row in found]), manifest["packing"][name]
        pieces, documents = len(pieces_in(found)), counts["tallies"][f"documents/{name}"]
        assert packing["fill"] == pytest.approx(fill, abs=1e-4)
        assert packing["pieces_per_row"] == pytest.approx(pieces / rows, abs=1e-3)
        assert packing["documents_per_row"] == pytest.approx(documents / rows, abs=1e-3)
        for row in found:
            assert all(piece[0] == CLS_ID and piece[-1] == SEP_ID for piece in pieces_in([row]))
            assert ((row["word_ids"] == 0) == (row["tokens"] < len(SPECIAL_TOKENS))).all()
    (whole,) = VOCABULARY.encode_documents(["abc"], [words_of(40)], 10_000)
    english = pieces_in(read_back(tmp_path / "out", "mlm", "en"))
    bodies = sorted(token for piece in english for token in piece if token not in (CLS_ID, SEP_ID))
    others = [row for text in ("ab c", words_of(3), "d", words_of(7)) for row in VOCABULARY.encode_texts([text])]
    assert bodies == sorted([*(token for token in whole if token not in (CLS_ID, SEP_ID)), *np.concatenate(others)])


def test_documents_that_are_split_are_counted(inputs, tmp_path):
    tallies = run_job(inputs, tmp_path / "split")["counts"]["tallies"]
    assert 0 < tallies["documents_split"] <= tallies["documents/mlm/en"] < tallies["pieces/mlm/en"]


def test_job_packs_translation_pairs(inputs, tmp_path):
    lines = [
        "en\tde\tab c d e\tb cd e f",
        f"en\tde\t{words_of(30)}\t{words_of(9)}",
        "en\tde\tonly three",
        "en\tfr\ta\tb",
        "x/y\tde\tab\tcd",
        "",
    ]
    (tmp_path / "pairs.tsv").write_bytes("\n".join(lines).encode() + b"\nen\tde\t\xff\tab\n")
    with gzip.open(tmp_path / "more.tsv.gz", "wt") as sink:
        sink.write("fr\ten\ta b c d e f\ta b c d e\n")
    manifest = run_job({**inputs, "bitext": [str(tmp_path / "*.tsv*")]}, tmp_path / "out", min_tokens=4)
    assert manifest["examples"]["tlm/en-de"] == 2
    assert manifest["examples"]["tlm/fr-en"] == 1
    assert manifest["counts"]["failed"] == {"broken_record": 2, "undecodable": 1}
    assert manifest["counts"]["rejected"]["too_short_to_pack"] == 2
    assert manifest["counts"]["tallies"]["pairs_cut"] == 1
    pieces = pieces_in(read_back(tmp_path / "out", "tlm", "en-de"))
    assert VOCABULARY.encode_documents(["ab c d e"], ["b cd e f"], LENGTH)[0].tolist() in pieces
    assert max(map(len, pieces)) == LENGTH


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["de", "en"]), st.integers(1, 14)), max_size=40), st.integers(10, 200))
def test_a_shard_that_holds_too_much_packs_what_it_holds(tmp_path_factory, pieces, most_tokens):
    folder = tmp_path_factory.mktemp("rows")
    options = PackOptions(max_length=16)
    with Shard(Phase(str(folder), "p", 1), 0) as shard:
        rows = _Rows(shard, TLM, options, most_tokens)
        for number, (language, length) in enumerate(pieces):
            rows.add(language, bytes([number]), frame(np.full(length, 100 + number), np.arange(1, length + 1)))
            assert sum(len(piece) for held in rows._held.values() for _, piece in held) <= most_tokens
        rows.finish()
    languages = {name for name, _ in pieces}
    found = [piece for one in languages for piece in pieces_in(read_back(folder, "tlm", one, 16))]
    assert sorted(found) == [[CLS_ID, *[100 + number] * length, SEP_ID] for number, (_, length) in enumerate(pieces)]


def test_nothing_to_pack_and_no_vocabulary_are_clear_errors(inputs, tmp_path):
    with pytest.raises(InputError, match="no article is long enough"):
        run_job(inputs, tmp_path / "out", min_tokens=10_000)
    with pytest.raises(InputError, match=r"no vocab\.txt here"):
        run_job({**inputs, "vocabulary": inputs["articles"]}, tmp_path / "out")
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="line 1"):
        run_job(inputs, tmp_path / "out")
