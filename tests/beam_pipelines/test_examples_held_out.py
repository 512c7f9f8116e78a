"""The days and events of `newsembed examples`: what is held out, how it is counted and read, and the events."""

import collections
import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.examples import JOB, ExamplesOptions
from newsembed.beam_pipelines.examples.held_out import last_days
from newsembed.beam_pipelines.output_folder import missing_files
from newsembed.beam_pipelines.triplets.events import STORIES, stories_of, write_stories
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.manifest import read_manifest
from newsembed.formats.records import Article, TopicLabels, Triplet, make_doc_id, words_to_doc_id
from newsembed.formats.tfrecords.example import decode_example
from newsembed.formats.tfrecords.reader import RecordFile
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.tasks import registry

FIRST = datetime.date(2018, 1, 1)
NAN = (float("nan"),) * 3
DAYS = {"old": -400, "a": 0, "b": 1, "c": 9, "d": 10, "e": 11, "undated": None}


def write_stream(folder, stream, records, record_type):
    parquet.write_shard(f"{folder}/{stream}/part-00000-of-00001.parquet", records, record_type)
    files.write_json(f"{folder}/manifest.json", {"digest": folder.name})
    return [str(folder)]


def dated(name, day):
    date = None if day is None else FIRST + datetime.timedelta(day)
    return Article(make_doc_id(name), "u", "p", f"title {name}", f"body {name}", byline_date=date, language="en")


def triplet(names):
    anchor, positive, negative = map(make_doc_id, names)
    return Triplet(anchor, positive, negative, "en", NAN, NAN, 0, 400, 0.1)


@pytest.fixture
def inputs(tmp_path):
    # c is a day before d: the pair of c and d is held out from day 10 on, and so is that of d and c.
    names = ["a b old", "b a d", "c d old", "d c old", "e d a"]
    labels = [TopicLabels(make_doc_id(name), (1,), (1,)) for name in ("a", "e", "undated")]
    letters = [chr(ord("a") + number) for number in range(26)]
    pieces = [*SPECIAL_TOKENS, *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    articles = [dated(*one) for one in DAYS.items()]
    return {
        "articles": write_stream(tmp_path / "clean", "articles", articles, Article),
        "triplets": write_stream(tmp_path / "triplets", "triplets", [triplet(one.split()) for one in names], Triplet),
        "topics": write_stream(tmp_path / "topics", "labels", labels, TopicLabels),
        "vocabulary": [str(tmp_path / "vocab.txt")],
    }


def run_job(inputs, output, **options):
    return jobs.execute(JOB, inputs, str(output), ExamplesOptions(**options), ["--direct_num_workers=1"]).manifest


def documents_of(folder, task):
    """The names of the documents of each record, by its id features; records of topics may have empty places."""
    names = {make_doc_id(name): name for name in DAYS}
    features = [spec for spec in registry.get(task).features if spec.name.endswith("doc_id")]
    found = []
    for path in sorted(folder.glob(f"task={task}/language=en/part-*.tfrecord")):
        for record in RecordFile(str(path)):
            ids = decode_example(record, features, str(path)).values()
            pairs = [tuple(pair) for values in ids for pair in values.reshape(-1, 2).tolist() if any(pair)]
            inside = [names[words_to_doc_id(pair)] for pair in pairs]
            found.append(" ".join(sorted(inside) if task == "topics" else inside))
    return sorted(found)


DOCUMENT_PAIRS = {"weights": (0.0, 0.0, 0.0, 1.0)}


def test_held_out_documents_are_in_no_training_example(inputs, tmp_path):
    day = FIRST + datetime.timedelta(10)
    manifest = run_job(inputs, tmp_path / "out", held_out_from=day, **DOCUMENT_PAIRS)
    assert documents_of(tmp_path / "out", "triplets") == ["a b old"]
    assert documents_of(tmp_path / "out" / "held_out", "triplets") == ["c d old", "d c old", "e d a"]
    assert documents_of(tmp_path / "out", "topics") == ["a undated"]
    assert documents_of(tmp_path / "out" / "held_out", "topics") == ["e"]
    counts = manifest["counts"]
    assert (counts["in"], counts["out"], counts["failed"]) == (8, 7, {})
    assert counts["rejected"] == {"held_out_negative": 1}  # b a d: d is held out, a and b are not
    tallies = manifest["phases"]["examples"]["tallies"]
    assert (tallies["held_out records/triplets"], tallies["held_out records/topics"]) == (3, 1)
    assert manifest["examples"] == {"triplets/en": 1, "topics/en": 1}
    assert manifest["held_out"] == {"held_out_from": "2018-01-11", "examples": {"triplets/en": 3, "topics/en": 1}}
    assert read_manifest(str(tmp_path / "out" / "held_out"))["row_sizes"] == manifest["row_sizes"]


def test_the_held_out_folder_is_training_data_with_its_own_manifest(inputs, tmp_path):
    run_job(inputs, tmp_path / "out", held_out_share=0.2)
    held_out = tmp_path / "out" / "held_out"
    counts = registry.example_counts(str(held_out))
    assert {str(data_set): count for data_set, count in counts.items()} == {"triplets/en": 1, "topics/en": 1}
    manifest = read_manifest(str(held_out))
    assert not missing_files(str(held_out), manifest)
    assert {name.split("/")[0] for name in manifest["files"]} == {"task=triplets", "task=topics"}
    assert (manifest["counts"]["in"], manifest["counts"]["out"]) == (2, 2)
    assert manifest["digest"] != read_manifest(str(tmp_path / "out"))["digest"]
    # Another run with other options replaces all of it.
    run_job(inputs, tmp_path / "out")
    assert not held_out.exists()


def test_a_held_out_negative_is_replaced_by_another_one_of_its_anchor(inputs, tmp_path):
    # The anchor b has two more negatives; with the positive a, one of them is there already.
    names = ["b a d", "b a old", "b undated c", "a b e", "d c old"]
    inputs["triplets"] = write_stream(tmp_path / "more", "triplets", [triplet(one.split()) for one in names], Triplet)
    inputs["topics"] = []
    day = FIRST + datetime.timedelta(10)
    manifest = run_job(inputs, tmp_path / "out", held_out_from=day, **DOCUMENT_PAIRS)
    assert documents_of(tmp_path / "out", "triplets") == ["b a c", "b a old", "b undated c"]
    assert documents_of(tmp_path / "out" / "held_out", "triplets") == ["d c old"]
    assert manifest["counts"]["rejected"] == {"held_out_negative": 1}  # a has no other negative
    assert manifest["counts"]["out"] == 4
    assert manifest["phases"]["examples"]["tallies"]["replaced negatives of held-out days"] == 1


@pytest.mark.parametrize(
    ("share", "day"),
    [(0.01, 11), (0.2, 11), (0.21, 10), (0.4, 10), (0.41, 9), (0.6, 9), (0.61, 1)],
)
def test_a_share_holds_out_the_last_days_that_have_it(inputs, tmp_path, share, day):
    # Anchors a, b, c, d, e on the days 0, 1, 9, 10, 11.
    manifest = run_job(inputs, tmp_path / "out", held_out_share=share, **DOCUMENT_PAIRS)
    assert manifest["held_out"]["held_out_from"] == str(FIRST + datetime.timedelta(day))


@pytest.mark.parametrize("share", [0.2, 0.21, 0.61])
def test_a_share_is_the_same_if_the_triplets_are_in_many_shards(inputs, tmp_path, share):
    rows = list(parquet.read_stream(str(tmp_path / "triplets/triplets"), Triplet))
    many = tmp_path / "many"
    anchors = sorted({row.anchor for row in rows})
    for number, anchor in enumerate(anchors):
        path = many / f"triplets/part-{number:05d}-of-{len(anchors):05d}.parquet"
        parquet.write_shard(str(path), [row for row in rows if row.anchor == anchor], Triplet)
    files.write_json(f"{many}/manifest.json", {"digest": "many"})
    first = [
        run_job({**inputs, "triplets": [folder]}, tmp_path / f"out {number}", held_out_share=share, **DOCUMENT_PAIRS)
        for number, folder in enumerate((*inputs["triplets"], str(many)))
    ]
    assert first[0]["held_out"] == first[1]["held_out"]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30), st.floats(0.001, 0.999))
def test_no_later_day_would_hold_out_enough(days, share):
    first = last_days(collections.Counter(days), share)
    assert sum(day >= first for day in days) >= math.ceil(share * len(days))
    assert sum(day > first for day in days) < math.ceil(share * len(days))


def test_each_document_carries_its_story_and_its_day(inputs, tmp_path):
    a, b, d = (int(make_doc_id(name), 16) for name in "abd")
    write_stories(f"{tmp_path}/triplets/{STORIES}", *stories_of(np.array([[a, b], [b, d]], np.uint64)))
    inputs["topics"] = []
    run_job(inputs, tmp_path / "out", augmentations_per_triplet=3)
    first = (FIRST - datetime.date(1970, 1, 1)).days
    features = [spec for spec in registry.get("triplets").features if spec.name.endswith(("doc_id", "event"))]
    names = {make_doc_id(name): name for name in DAYS}
    seen = set()
    for path in (tmp_path / "out").glob("task=triplets/language=en/part-*.tfrecord"):
        for record in RecordFile(str(path)):
            values = decode_example(record, features, str(path))
            for role in ("anchor", "positive", "negative"):
                name = names[words_to_doc_id(tuple(values[f"{role}_doc_id"].tolist()))]
                *story, day = values[f"{role}_event"].tolist()
                assert day == first + DAYS[name]
                assert words_to_doc_id(tuple(story)) == (f"{min(a, b, d):016x}" if name in "abd" else "0" * 16)
                seen.add(name)
    assert seen == {"a", "b", "c", "d", "e", "old"}


def test_without_the_option_nothing_is_held_out(inputs, tmp_path):
    manifest = run_job(inputs, tmp_path / "out")
    assert "held_out" not in manifest
    assert manifest["counts"]["rejected"] == {}
    assert not (tmp_path / "out" / "held_out").exists()


def test_a_day_after_the_corpus_is_an_error(inputs, tmp_path):
    with pytest.raises(InputError, match="--held_out_from: there are no triplets and no topics of 2019-01-01 or later"):
        run_job(inputs, tmp_path / "out", held_out_from=datetime.date(2019, 1, 1))


def test_a_day_before_the_corpus_is_an_error(inputs, tmp_path):
    inputs["topics"] = []
    with pytest.raises(InputError, match="no triplets and no topics before 2015-01-01"):
        run_job(inputs, tmp_path / "out", held_out_from=datetime.date(2015, 1, 1))


def test_a_day_and_a_share_exclude_each_other():
    with pytest.raises(InputError, match="--held_out_share: got 0.1, expected 0 where --held_out_from names a day"):
        ExamplesOptions(held_out_from=FIRST, held_out_share=0.1)
