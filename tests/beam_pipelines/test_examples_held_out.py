"""The days and events of `newsembed examples`: what is held out, how it is counted and read, and the events."""

import datetime

import pytest
from newsembed.beam_pipelines.examples import JOB, ExamplesOptions
from newsembed.beam_pipelines.output_folder import missing_files
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.manifest import read_manifest
from newsembed.formats.records import Article, TopicLabels, Triplet, make_doc_id, words_to_doc_id
from newsembed.tasks import registry
from newsembed.tests import example_inputs
from newsembed.tests.example_inputs import doc_ids_of, manifest_of, read_examples, write_stream, write_triplets

FIRST = datetime.date(2018, 1, 1)
DAYS = {"old": -400, "a": 0, "b": 1, "c": 9, "d": 10, "e": 11, "undated": None}


def dated(name, day):
    date = None if day is None else FIRST + datetime.timedelta(day)
    return Article(make_doc_id(name), "u", "p", f"title {name}", f"body {name}", byline_date=date, language="en")


def triplets_of(folder, names, **stories):
    return write_triplets(folder, [example_inputs.triplet(*one.split()) for one in names], **stories)


@pytest.fixture
def inputs(tmp_path):
    # c is a day before d: the pair of c and d is held out from day 10 on, and so is that of d and c.
    names = ["a b old", "b a d", "c d old", "d c old", "e d a"]
    labels = [TopicLabels(make_doc_id(name), (1,), (1,)) for name in ("a", "e", "undated")]
    return {
        "articles": write_stream(tmp_path / "clean", "articles", [[dated(*one) for one in DAYS.items()]], Article),
        "triplets": triplets_of(tmp_path / "triplets", names),
        "topics": write_stream(tmp_path / "topics", "labels", [labels], TopicLabels),
        "vocabulary": example_inputs.write_vocabulary(tmp_path),
    }


def run_job(inputs, output, **options):
    return manifest_of(JOB, inputs, output, ExamplesOptions(**options))


def documents_of(folder, task):
    """The names of the documents of each record, in alphabetical order for topics."""
    names = {make_doc_id(name): name for name in DAYS}
    parts = [""] if task == "topics" else ["anchor", "positive", "negative"]
    examples = read_examples(folder, task)
    found = [[names[one] for part in parts for one in doc_ids_of(example, part)] for example in examples]
    return sorted(" ".join(sorted(one) if task == "topics" else one) for one in found)


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
    inputs["triplets"] = triplets_of(tmp_path / "more", names)
    inputs["topics"] = []
    day = FIRST + datetime.timedelta(10)
    manifest = run_job(inputs, tmp_path / "out", held_out_from=day, **DOCUMENT_PAIRS)
    assert documents_of(tmp_path / "out", "triplets") == ["b a c", "b a old", "b undated c"]
    assert documents_of(tmp_path / "out" / "held_out", "triplets") == ["d c old"]
    assert manifest["counts"]["rejected"] == {"held_out_negative": 1}  # a has no other negative
    assert manifest["counts"]["out"] == 4
    assert manifest["phases"]["examples"]["tallies"]["replaced negatives of held-out days"] == 1


@pytest.mark.parametrize(("share", "day"), [(0.01, 11), (0.2, 11), (0.21, 10), (0.61, 1)])
def test_a_share_holds_out_the_last_days_that_have_it(inputs, tmp_path, share, day):
    # Anchors a, b, c, d, e on the days 0, 1, 9, 10, 11.
    manifest = run_job(inputs, tmp_path / "out", held_out_share=share, **DOCUMENT_PAIRS)
    assert manifest["held_out"]["held_out_from"] == str(FIRST + datetime.timedelta(day))


def test_a_share_is_the_same_if_the_triplets_are_in_many_shards(inputs, tmp_path):
    rows = list(parquet.read_stream(str(tmp_path / "triplets/triplets"), Triplet))
    by_anchor = [[row for row in rows if row.anchor == anchor] for anchor in sorted({row.anchor for row in rows})]
    many = write_triplets(tmp_path / "many", *by_anchor)
    first, second = (
        run_job({**inputs, "triplets": given}, tmp_path / f"out {given[0][-1]}", held_out_share=0.21, **DOCUMENT_PAIRS)
        for given in (inputs["triplets"], many)
    )
    assert first["held_out"] == second["held_out"]


def test_each_document_carries_its_story_and_its_day(inputs, tmp_path):
    names = ["a b old", "b a d", "c d old", "e d a"]
    inputs |= {"triplets": triplets_of(tmp_path / "told", names, stories=["ab", "bd"]), "topics": []}
    run_job(inputs, tmp_path / "out", augmentations_per_triplet=3)
    first, seen = (FIRST - datetime.date(1970, 1, 1)).days, set()
    by_id = {make_doc_id(name): name for name in DAYS}
    for example in read_examples(tmp_path / "out", "triplets"):
        for role in ("anchor", "positive", "negative"):
            (name,) = (by_id[one] for one in doc_ids_of(example, role))
            *story, day = example[f"{role}_event"].tolist()
            assert day == first + DAYS[name]
            smallest = min(make_doc_id(one) for one in "abd")
            assert words_to_doc_id(tuple(story)) == (smallest if name in "abd" else "0" * 16)
            seen.add(name)
    assert seen == {"a", "b", "c", "d", "e", "old"}


def test_days_outside_the_corpus_are_errors(inputs, tmp_path):
    with pytest.raises(InputError, match="--held_out_from: there are no triplets and no topics of 2019-01-01 or later"):
        run_job(inputs, tmp_path / "out", held_out_from=datetime.date(2019, 1, 1))
    with pytest.raises(InputError, match="no triplets and no topics before 2015-01-01"):
        run_job(inputs | {"topics": []}, tmp_path / "out", held_out_from=datetime.date(2015, 1, 1))
    with pytest.raises(InputError, match="--held_out_share: got 0.1, expected 0 where --held_out_from names a day"):
        ExamplesOptions(held_out_from=FIRST, held_out_share=0.1)
