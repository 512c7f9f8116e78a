"""label: the labels file, and which part of an article is shown, word for word."""

import datetime
import errno
import fcntl
import math
import types

import pytest
from manifests import doc
from newsembed.beam_pipelines.triplets.evergreen import read_labels
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article
from newsembed.studies.label.pairs import Pair, Question, Sampled
from newsembed.studies.label.session import FORMAT, Answer, LabelFile, Session, read_texts
from refusals import refuses

DAY = datetime.date(2024, 1, 2)


def asked(number=0, score=0.5):
    pair = Pair(doc(2 * number), doc(2 * number + 1), (0.5, math.nan, 0.5), 400, (0.0,) * 8, score)
    return Question(pair, Sampled.UNCERTAIN)


def opened(path, annotator="ann", *origins):
    return LabelFile(str(path), annotator, [*origins])


def test_the_file_holds_labels_with_provenance_that_triplets_reads(tmp_path):
    path = tmp_path / "new" / "labels.tsv"
    with opened(path, "Ann Otator", "code_version 9", "clean x") as file:
        file.add(asked(0), Answer.SAME)
        file.add(asked(1, 0.123456), Answer.DIFFERENT)
        file.add(asked(2), Answer.SKIP)
    lines = path.read_text().splitlines()
    assert lines[:3] == [FORMAT, "# code_version 9", "# clean x"]
    assert lines[3].startswith("# anchor\tother\tlabel\t")
    anchor, other, value, annotator, time, score, sampled = lines[5].split("\t")
    assert (anchor, other, value, annotator) == (doc(2), doc(3), "0", "Ann Otator")
    assert (score, sampled) == ("0.1235", "uncertain")
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(time)
    assert datetime.timedelta() <= age < datetime.timedelta(minutes=5)
    assert lines[6].startswith(f"# skipped\t{doc(4)}\t{doc(5)}\tAnn Otator")
    assert read_labels(str(path)) == {(doc(0), doc(1)): 1, (doc(2), doc(3)): 0}


def test_each_answer_is_synced_before_add_returns(tmp_path, monkeypatch):
    path, synced = tmp_path / "labels.tsv", []
    monkeypatch.setattr("os.fsync", lambda _: synced.append(path.read_text()))
    with opened(path) as file:
        file.add(asked(0), Answer.SAME)
        assert doc(0) in synced[-1]
        file.undo(asked(0))
        assert doc(0) not in synced[-1]


def test_an_answer_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "labels.tsv"
    with opened(path) as file:
        file.add(asked(0), Answer.SAME)
        before = path.read_bytes()

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            refuses("not saved: No space left", file.add, asked(1), Answer.SAME)
        assert path.read_bytes() == before
        assert not file.knows(asked(1).pair.both)
        file.add(asked(1), Answer.DIFFERENT)
    assert list(read_labels(str(path)).values()) == [1, 0]


def test_a_file_is_continued_and_other_inputs_are_noted(tmp_path):
    path = tmp_path / "labels.tsv"
    for origin, number in (("clean x", 0), ("clean x", 1), ("clean y", 2)):
        with opened(path, "ann", origin) as file:
            assert len(file.labels) == number
            assert all(file.knows(asked(earlier).pair.both) for earlier in range(number))
            file.add(asked(number), Answer.SAME)
    text = path.read_text()
    assert text.count(FORMAT) == 2
    assert text.index("# clean y") > text.index(doc(2))
    assert len(read_labels(str(path))) == 3


def test_the_other_direction_and_skipped_pairs_are_known(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text(f"# mine\n{doc(1)}\t{doc(0)}\t1")  # by hand, without a last newline
    with opened(path) as file:
        assert file.knows(asked(0).pair.both)
        file.add(asked(1), Answer.SKIP)
    with opened(path) as file:
        assert file.knows(asked(1).pair.both)
        assert len(file.labels) == 1
    assert read_labels(str(path)) == {(doc(1), doc(0)): 1}


def test_a_torn_last_line_is_cut_off(tmp_path):
    path = tmp_path / "labels.tsv"
    with opened(path) as file:
        file.add(asked(0), Answer.SAME)
    whole = path.read_text()
    path.write_text(f"{whole}{doc(2)[:7]}")
    with opened(path) as file:
        assert len(file.labels) == 1
    assert path.read_text() == whole


def test_files_that_cannot_be_used(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("a b 1\n")
    refuses(r"labels\.tsv:1: --labels: got 'a b 1'", opened, path)
    path.write_bytes(b"a\tb\t1\t\xff\n")
    refuses("save the file as UTF-8", opened, path)
    path.write_text("")
    in_use = "another newsembed label is writing this file"
    with opened(path), pytest.raises(InputError, match=in_use):
        opened(path, "bob")
    refuses("cannot be written", opened, tmp_path)
    for name in ("", "a\tb", "a\nb", "#a"):
        refuses("--annotator", opened, path, name)
    with open(path) as free:  # what failed holds no lock
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


def shown(tmp_path, body, **fields):
    articles = [
        Article("a" * 16, "u", "p", "t", body, byline_date=DAY, **fields),
        Article("b" * 16, "v", "p", "t", "other"),
    ]
    parquet.write_shard(str(tmp_path / "part-00000-of-00001.parquet"), articles, Article)
    found = read_texts(str(tmp_path), {"a" * 16, "c" * 16})
    assert list(found) == ["a" * 16]
    return found["a" * 16]


@pytest.mark.parametrize(
    ("body", "paragraphs", "cut"),
    [
        ("a" * 1_600, ("a" * 1_600,), False),
        ("a" * 1_601, ("a" * 1_600,), True),  # no space to cut at
        ("word " * 319 + "12345", ("word " * 319 + "12345",), False),
        ("word " * 320 + "x", (("word " * 320).strip(),), True),
        ("word " * 319 + "123456", (("word " * 319).strip(),), True),  # the word at the end is left out
        (" one \n\n two\x1b[31m", ("one", "two [31m"), False),
    ],
)
def test_the_first_1600_characters_of_a_body_are_shown_in_whole_words(tmp_path, body, paragraphs, cut):
    found = shown(tmp_path, body)
    assert (tuple(found["paragraphs"]), found["cut"]) == (paragraphs, cut)


def test_other_parts_of_an_article_are_shown_as_they_are(tmp_path):
    found = shown(tmp_path, "b", language="en", image_url="i")
    assert found == {
        "url": "u", "publisher": "p", "title": "t", "paragraphs": ["b"], "cut": False, "byline_date": "2024-01-02",
        "language": "en", "image_url": "i",
    }  # fmt: skip


def test_pictures_are_shown_where_the_thumbnails_are_near():
    texts = {name: {"title": name, "image_url": f"http://p.example/{name}.jpg"} for name in "ab"}
    shown = {}
    for name, image in (("near", 0.9), ("far", math.nan)):
        pair = Pair("a", "b", (0.5, image, 0.5), 400, (0.0,) * 8, 0.5)
        file = types.SimpleNamespace(labels={}, skipped=())
        state = Session([Question(pair, Sampled.KEPT)], texts, file, 5).state()
        shown[name] = [side["image_url"] for side in state["question"]["sides"]]
    assert shown == {"near": ["http://p.example/a.jpg", "http://p.example/b.jpg"], "far": ["", ""]}
