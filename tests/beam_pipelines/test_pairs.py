"""Pairs of texts: each kind by hand, what is counted, held-out articles, and equal bytes with any number of workers."""

import datetime

import numpy as np
import pytest
import tensorflow as tf
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.pairs import JOB, PairsOptions
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.manifest import has_manifest, read_manifest
from newsembed.formats.records import Article, DeadLetter, Post, make_doc_id, words_to_doc_id
from newsembed.formats.tfrecords.example import decode_example
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.tasks.pairs import PAIRS
from newsembed.tasks.vocabulary import Vocabulary

WORDS = [f"w{number}" for number in range(60)]
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *WORDS])


def article(number, **changes):
    own = WORDS[number : number + 8]
    fields = {"title": " ".join(own[:4]), "body": " ".join(own), "language": "en", **changes}
    return Article(make_doc_id(f"a{number}"), f"http://x.example/{number}", "x.example", **fields)


def write_stream(folder, stream, shards, record_type):
    for index, shard in enumerate(shards):
        parquet.write_shard(f"{folder}/{stream}/part-{index:05d}-of-{len(shards):05d}.parquet", shard, record_type)
    files.write_json(f"{folder}/manifest.json", {"digest": folder.name})
    return [str(folder)]


@pytest.fixture
def inputs(tmp_path):
    anchors = ("w1 w2 w3", "W1  w2 w3", "w9 w8", "w30 w31 w32 w33")
    articles = [article(number, anchor_texts=anchors if number == 3 else ()) for number in range(20)]
    articles[5] = article(5, title="")
    articles[6] = article(6, byline_date=datetime.date(2020, 1, 2), language="de")
    posts = [("a1", "w40 w41 w42"), ("a1", "w43 w44 w45"), ("a2", "w1"), ("a2", "w50 w51 w52"), ("gone", "w1 w2 w3 w4")]
    rows = [Post(make_doc_id(name), "http://x.example", text) for name, text in posts]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in VOCABULARY.pieces))
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [articles[:9], articles[9:], []], Article),
        "vocabulary": [str(tmp_path / "vocab.txt")],
        "posts": write_stream(tmp_path / "extract", "posts", [rows[:3], rows[3:]], Post),
    }


def run_job(inputs, output, workers=1, **options):
    options = {"max_length": 32, **options}
    beam_args = [f"--direct_num_workers={workers}"]
    if workers > 1:
        beam_args.append("--direct_running_mode=multi_processing")
    return jobs.execute(JOB, inputs, str(output), PairsOptions(**options), beam_args).manifest


def read_back(output):
    """Each record as (doc_id, words of the anchor, words of the positive, features)."""
    found = []
    for path in sorted(map(str, output.glob("task=pairs/language=*/part-*.tfrecord"))):
        for record in tf.data.TFRecordDataset([path]).as_numpy_iterator():
            row = decode_example(record, PAIRS.row_features, path)
            assert (row["anchor_doc_id"] == row["positive_doc_id"]).all()
            doc_id = words_to_doc_id(tuple(row["anchor_doc_id"].tolist()))
            found.append((doc_id, *(pieces_of(row[f"{side}_tokens"]) for side in ("anchor", "positive")), row))
    return found


def pieces_of(tokens):
    return " ".join(VOCABULARY.pieces[token] for token in tokens)


def test_a_title_is_the_positive_of_its_own_body(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="titles")
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["failed"]) == (20, 19, {})
    assert counts["rejected"] == {"no_other_text": 1}
    assert manifest["examples"] == {"pairs/en": 18, "pairs/de": 1}
    pairs = {doc_id: (anchor, positive, row["day"]) for doc_id, anchor, positive, row in read_back(tmp_path / "out")}
    own = WORDS[6:14]
    assert pairs[make_doc_id("a6")] == (
        f"[CLS] {' '.join(own)} [SEP]",
        f"[CLS] {' '.join(own[:4])} [SEP]",
        (datetime.date(2020, 1, 2) - datetime.date(1970, 1, 1)).days,
    )
    assert pairs[make_doc_id("a7")][2] == 0


def test_link_texts_are_pairs_with_the_whole_article_and_repeats_are_rejected(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="anchors")
    # 19 articles without link texts; of four link texts one is a repeat and one has two tokens.
    assert manifest["counts"]["rejected"] == {"no_other_text": 19, "duplicate_pair": 1, "too_few_tokens": 1}
    assert (manifest["counts"]["in"], manifest["counts"]["out"]) == (23, 2)
    whole = f"[CLS] {' '.join(WORDS[3:7])} [SEP] {' '.join(WORDS[3:11])} [SEP]"
    found = {(anchor, positive) for _, anchor, positive, _ in read_back(tmp_path / "out")}
    assert found == {(whole, "[CLS] w1 w2 w3 [SEP]"), (whole, "[CLS] w30 w31 w32 w33 [SEP]")}


def test_posts_meet_their_article_in_another_shard(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="posts")
    assert manifest["counts"]["rejected"] == {"no_article": 1, "too_few_tokens": 1}
    assert (manifest["counts"]["in"], manifest["counts"]["out"]) == (5, 3)
    texts = {(doc_id, positive) for doc_id, _, positive, _ in read_back(tmp_path / "out")}
    assert texts == {
        (make_doc_id("a1"), "[CLS] w40 w41 w42 [SEP]"),
        (make_doc_id("a1"), "[CLS] w43 w44 w45 [SEP]"),
        (make_doc_id("a2"), "[CLS] w50 w51 w52 [SEP]"),
    }
    letters = [
        row
        for path in parquet.shard_paths(f"{tmp_path}/out/dead_letters/pairs")
        for row in parquet.read_records(path, DeadLetter)
    ]
    assert {(letter.key, letter.reason) for letter in letters} == {
        (make_doc_id("gone"), "no_article"),
        (make_doc_id("a2"), "too_few_tokens"),
    }


def test_posts_are_needed_and_kinds_are_known(inputs, tmp_path):
    with pytest.raises(InputError, match="needs posts"):
        run_job({**inputs, "posts": ()}, tmp_path / "out", of="posts")
    with pytest.raises(InputError, match="posts, anchors, titles"):
        PairsOptions(of="tweets")


@pytest.mark.parametrize("of", ["titles", "posts"])
def test_the_same_bytes_with_any_number_of_workers(inputs, tmp_path, of):
    def bytes_of(output):
        return {str(path.relative_to(output)): path.read_bytes() for path in sorted(output.rglob("*.tfrecord"))}

    manifests = [run_job(inputs, tmp_path / f"{workers}", workers, of=of) for workers in (1, 2)]
    one, two = bytes_of(tmp_path / "1"), bytes_of(tmp_path / "2")
    assert one == two
    assert sum(map(len, one.values())) > 0
    assert manifests[0]["counts"] == manifests[1]["counts"]


def test_articles_are_held_out_as_a_whole(inputs, tmp_path):
    options = {"of": "titles", "held_out_share": 0.4, "held_out_from": datetime.date(2020, 1, 1)}
    manifest = run_job(inputs, tmp_path / "out", **options)
    training, held_out = ({row[0] for row in read_back(tmp_path / part)} for part in ("out", "out/held_out"))
    assert not training & held_out
    assert len(training | held_out) == 19
    assert make_doc_id("a6") in held_out  # of the day
    assert 3 <= len(held_out) <= 13
    assert has_manifest(f"{tmp_path}/out/held_out")
    own = read_manifest(f"{tmp_path}/out/held_out")["examples"]
    assert own == manifest["held_out"]["examples"]
    assert sum(own.values()) == len(held_out)
    assert sum(manifest["examples"].values()) == len(training)
    other = run_job(inputs, tmp_path / "other", **options, seed=1)
    assert other["held_out"] != manifest["held_out"] or {row[0] for row in read_back(tmp_path / "other")} != training


def test_long_texts_keep_their_start_or_their_end(inputs, tmp_path):
    for keep in ("start", "end"):
        run_job(inputs, tmp_path / keep, of="titles", max_length=8, keep=keep, per_article=1)
    start, end = ({row[0]: row for row in read_back(tmp_path / keep)} for keep in ("start", "end"))
    one = make_doc_id("a10")
    assert start[one][1] == f"[CLS] {' '.join(WORDS[10:16])} [SEP]"
    assert end[one][1] == f"[CLS] {' '.join(WORDS[12:18])} [SEP]"
    assert start[one][2] == end[one][2]
    assert max(len(row[3]["anchor_tokens"]) for row in end.values()) == 8


def test_an_article_has_at_most_as_many_pairs_as_allowed(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out", of="posts", per_article=1)
    assert manifest["counts"]["rejected"] == {"no_article": 1, "too_few_tokens": 1, "pair_limit": 1}
    assert sorted(row[0] for row in read_back(tmp_path / "out")) == sorted(map(make_doc_id, ["a1", "a2"]))


def test_nothing_to_write_is_an_error(inputs, tmp_path):
    with pytest.raises(InputError, match="no pairs"):
        run_job(inputs, tmp_path / "out", of="titles", min_tokens=30)
    with pytest.raises(InputError, match="held out"):
        run_job(inputs, tmp_path / "late", of="titles", held_out_from=datetime.date(2030, 1, 1))


def test_records_are_rows_of_the_task():
    assert PAIRS.shapes({"anchor_tokens": 8, "positive_tokens": 4})["positive_tokens"] == (4,)
    assert np.prod(PAIRS.shapes({"anchor_tokens": 8, "positive_tokens": 4})["day"]) == 1
