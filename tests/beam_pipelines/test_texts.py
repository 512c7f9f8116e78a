"""Helpers of jobs that read texts: draws that repeat, batches of articles, language keys and vocabulary paths."""

import datetime
import hashlib
import struct

import numpy as np
import pytest
from newsembed.beam_pipelines import texts
from newsembed.beam_pipelines.texts import ArticleText, language_key, read_text_batches, shuffle_key, uniform_draw
from newsembed.errors import InputError
from newsembed.formats import parquet
from newsembed.formats.records import Article


def test_a_draw_is_the_first_53_bits_of_a_digest_of_its_keys():
    for keys in (("a", 1), ("a\0" + "1",), (), ("é", None, 2.5)):
        text = "\0".join(str(key) for key in keys).encode()
        (number,) = struct.unpack(">Q", hashlib.blake2b(text, digest_size=8).digest())
        assert uniform_draw(*keys) == (number // 2**11) / 2**53
        assert shuffle_key(*keys) == hashlib.blake2b(text, digest_size=16).digest()
    drawn = np.array([uniform_draw("key", number) for number in range(4000)])
    assert 0 <= drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1
    np.testing.assert_allclose(np.histogram(drawn, 4, (0, 1))[0], 1000, atol=120)


@pytest.mark.parametrize(
    ("language", "key"),
    [
        ("", "und"), ("en", "en"), ("zh-Hant-TW", "zh-Hant-TW"), ("abcdefgh-12345678", "abcdefgh-12345678"),
    ],
)  # fmt: skip
def test_a_language_is_part_of_a_path_only_as_a_tag(language, key):
    assert language_key(language) == key


@pytest.mark.parametrize("language", ["e", "abcdefghi", "en-", "en-123456789", "en_US", "../x", "e1", "en\n"])
def test_what_is_no_tag_is_no_part_of_a_path(language):
    with pytest.raises(InputError, match="expected a BCP-47 tag"):
        language_key(language)


def test_articles_come_in_batches(tmp_path):
    path, day = str(tmp_path / "part-00000-of-00001.parquet"), datetime.date(2020, 2, 3)
    rows = [
        Article(f"{n:016x}", "u", "p", f"t{n}", f"b{n}", ("A",), day, language="en", anchor_texts=("x",))
        for n in range(5)
    ]
    parquet.write_shard(path, rows, Article)
    batches = list(read_text_batches(path, 2))
    assert [[one.title for one in batch] for batch in batches] == [["t0", "t1"], ["t2", "t3"], ["t4"]]
    assert batches[0][1] == ArticleText(f"{1:016x}", "t1", "b1", "en", ("x",), day)
    assert [len(batch) for batch in read_text_batches(path)] == [5]


def test_a_vocabulary_is_a_folder_or_its_file(tmp_path):
    (tmp_path / "vocab.txt").write_text("x")
    (tmp_path / "mine.txt").write_text("x")
    (tmp_path / "mine.json").write_text("x")
    assert texts.vocabulary_path(f"{tmp_path}/") == texts.vocabulary_path(str(tmp_path)) == f"{tmp_path}/vocab.txt"
    assert texts.vocabulary_path(f"{tmp_path}/mine.txt") == f"{tmp_path}/mine.txt"
    for path in ("mine.json", "absent.txt", "absent"):
        with pytest.raises(InputError, match=r"--vocabulary: no vocab\.txt here") as raised:
            texts.vocabulary_path(f"{tmp_path}/{path}")
        assert raised.value.path == f"{tmp_path}/{path}"
