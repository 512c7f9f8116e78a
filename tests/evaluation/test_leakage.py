"""Where the rules of leakage begin and end: exact matches by words, near ones from 20 words and a similarity of 0.8."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from newsembed.errors import InputError
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.leakage import check_leakage, find_leakage, read_articles
from newsembed.evaluation.sts import Sts
from rensa import RMinHash


def words(start, count):
    return " ".join(f"w{number}" for number in range(start, start + count))


def leaks(document, *articles):
    (found,) = find_leakage([[document]], articles)
    return "exact" if found.exact else "near" if found.near else ""


@pytest.mark.parametrize(
    ("article", "expected"),
    [
        (Document("Storm!", "hits COAST"), "exact"),  # title and body
        (Document("Other", "storm hits coast"), "exact"),  # the body alone
        (Document("Storm hits coast", "Other"), "exact"),  # the title alone
        (Document("", "storm hits coast today"), ""),
        (Document("coast", "hits storm"), ""),
    ],
)
def test_a_short_text_leaks_if_an_article_has_the_same_words(article, expected):
    assert leaks(Document("Storm hits", "coast."), article) == expected


def test_near_copies_are_looked_for_from_twenty_words():
    # One more word: of 16 and 17 shingles 16 are shared, similarity 0.94.
    assert leaks(Document("", words(0, 20)), Document("", words(0, 21))) == "near"
    assert leaks(Document("", words(0, 21)), Document("", words(0, 20))) == "near"
    assert leaks(Document("", words(0, 19)), Document("", words(0, 20))) == ""
    assert leaks(Document("", words(0, 21)), Document("", words(0, 19))) == ""


@pytest.mark.parametrize(("shared", "expected"), [(96, "near"), (85, "")])
def test_the_similarity_that_counts_as_near(shared, expected):
    # 104 words have 100 shingles; with the first `shared` shingles in common, the Jaccard similarity is
    # shared / (200 - shared): 0.92 and 0.74.
    text = words(0, shared + 4)
    one, two = f"{text} {words(1000, 100 - shared)}", f"{text} {words(2000, 100 - shared)}"
    assert leaks(Document("", one), Document("", two)) == expected


def test_near_copies_are_found_by_the_body_without_the_title():
    assert leaks(Document("", words(0, 60)), Document(words(500, 60), words(0, 61))) == "near"


def test_each_benchmark_has_its_own_counts():
    shared, own = Document("", "a b c"), Document("", "d e f")
    one, two = find_leakage([[shared, own, own], [own]], [Document("", "a b c"), Document("", "x")])
    assert (one.leaked, two.leaked) == (frozenset([shared]), frozenset())
    assert one.to_dict() == {"texts": 2, "exact": 1, "near": 0, "training_articles": 2}
    assert two.to_dict() == {"texts": 1, "exact": 0, "near": 0, "training_articles": 2}


def test_leaked_pairs_are_dropped_only_on_demand_and_a_broken_benchmark_passes(tmp_path):
    (tmp_path / "s.tsv").write_text("1\ta b\tc d\n2\te f\tg h\n3\ti j\tk l\n")
    (tmp_path / "train.jsonl").write_text(json.dumps({"title": "e f", "body": None}) + "\n")
    benchmarks = [Sts(str(tmp_path / "s.tsv")), Sts(str(tmp_path / "absent.tsv"), "absent")]
    kept, facts = check_leakage(benchmarks, str(tmp_path / "train.jsonl"), drop=False)
    assert kept == benchmarks
    assert facts["dropped"] is False
    assert facts["benchmarks"] == {"sts": {"texts": 6, "exact": 1, "near": 0, "training_articles": 1}}
    (dropped, broken), facts = check_leakage(benchmarks, str(tmp_path / "train.jsonl"), drop=True)
    assert dropped.excluded == {Document("", "e f")}
    assert len(dropped.documents()) == 4
    assert broken is benchmarks[1]
    assert facts["dropped"] is True


def test_a_parquet_file_and_folders_within_folders_are_read(tmp_path):
    for number, name in enumerate(("a.parquet", "b/c.parquet", "b/notes.txt")):
        path = tmp_path / "articles" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("parquet"):
            pa.parquet.write_table(pa.table({"title": [f"t{number}"], "body": pa.array([None], pa.string())}), path)
        else:
            path.write_text("x")
    assert [a.title for a in read_articles(str(tmp_path / "articles"))] == ["t0", "t1"]
    assert list(read_articles(str(tmp_path / "articles/a.parquet"))) == [Document("t0", "")]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="not readable"):
        list(read_articles(str(tmp_path / "broken.parquet")))


def test_unrelated_articles_do_not_leak():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{number}" for number in rng.integers(0, 10**6, 40)) for _ in range(60)]
    (found,) = find_leakage([[Document("", text) for text in texts[:30]]], [Document("", text) for text in texts[30:]])
    assert not found.leaked


def test_an_exact_copy_is_not_counted_as_a_near_one_too():
    (found,) = find_leakage(
        [[Document("", words(0, 30))]], [Document("Other", words(0, 30)), Document("", words(0, 31))]
    )
    assert (len(found.exact), len(found.near)) == (1, 0)


def share_of_near_copies(replaced, pairs=200):
    """The share of copies that are found of texts of 104 words (100 shingles), of which some single words differ."""
    texts, copies = [], []
    for number in range(pairs):
        original = [f"t{number}w{place}" for place in range(104)]
        copy = [
            f"x{word}" if place % 13 == 6 and place // 13 < replaced else word for place, word in enumerate(original)
        ]
        texts.append(Document("", " ".join(original)))
        copies.append(Document("", " ".join(copy)))
    (found,) = find_leakage([texts], copies)
    return len(found.near) / pairs


def test_how_many_near_copies_are_found_by_their_similarity():
    # Each word that differs changes 5 shingles: similarities of 0.905, 0.818 and 0.739. The estimate of 128
    # permutations has standard deviations of 0.026, 0.034 and 0.039, and 16 bands of 8 rows propose
    # 1 - (1 - 0.818^8)^16 = 97 % of the pairs of the second kind.
    assert share_of_near_copies(1) > 0.97
    assert 0.5 < share_of_near_copies(2) < 0.85
    assert share_of_near_copies(3) < 0.15


def test_letters_have_no_case():
    text = words(0, 20)
    assert leaks(Document("", text.upper()), Document("", text.lower())) == "exact"
    assert leaks(Document("", "stra\u00dfe"), Document("", "strasse")) == ""  # lower case, not case folding


def test_the_last_shingle_of_a_text_counts():
    # 20 words have 16 shingles; with another end of two words 14 of 18 are shared: 0.78, below the bar. Without the
    # last one it would be 14 of 16: 0.88.
    texts = [" ".join(f"t{number}w{place}" for place in range(18)) for number in range(200)]
    one, two = ([Document("", f"{text} {end}") for text in texts] for end in ("the end", "no more"))
    (found,) = find_leakage([one], two)
    assert len(found.near) < 100


def minhash(text):
    hashes = RMinHash(num_perm=128, seed=0)
    hashes.update([" ".join(part) for part in zip(*(text.split()[start:] for start in range(5)), strict=False)])
    return hashes.digest()


def test_near_copies_are_those_of_a_plain_minhash_with_candidates_from_bands():
    """Pairs of 90 words with the first 78 to 83 in common: similarities from 0.76 to 0.85; some have no equal band."""
    rng = np.random.default_rng(0)
    documents, articles, expected = [], [], set()
    for number in range(4_000):
        shared = int(rng.integers(78, 84))
        start = 1_000 * number
        one, two = (f"{words(start, shared)} {words(start + other, 90 - shared)}" for other in (300, 600))
        documents.append(Document("", one))
        articles.append(Document("", two))
        left, right = minhash(one), minhash(two)
        same = [a == b for a, b in zip(left, right, strict=True)]
        if sum(same) >= 0.8 * 128 and any(all(same[band : band + 8]) for band in range(0, 128, 8)):
            expected.add(documents[-1])
    (found,) = find_leakage([documents], articles)
    assert found.near == expected
    assert 1_000 < len(expected) < 3_000
    assert not found.exact


def test_all_texts_that_an_article_has_leak():
    (found,) = find_leakage([[Document("", "a b"), Document("A", "b!"), Document("", "a")]], [Document("x", "A b")])
    assert found.exact == {Document("", "a b"), Document("A", "b!")}
    copies = {Document("", words(0, 60)), Document("", words(0, 59)), Document("Other", words(0, 60))}
    (found,) = find_leakage([[*copies, Document("", words(500, 60))]], [Document("", words(0, 61))])
    assert found.near == copies
    assert found.leaked == copies


def test_a_broken_benchmark_hides_no_other_and_the_facts_name_the_articles(tmp_path):
    (tmp_path / "s.tsv").write_text(f"1\t{words(0, 30)}\tc d\n2\te f\tg h\n3\ti j\tk l\n")
    path = tmp_path / "train.jsonl"
    path.write_text(
        "".join(f"{json.dumps(row)}\n" for row in ({"title": None, "body": words(0, 31)}, {"title": "c d"}))
    )
    broken, whole = Sts(str(tmp_path / "absent.tsv"), "absent"), Sts(str(tmp_path / "s.tsv"))
    (_, dropped), facts = check_leakage([broken, whole], str(path), drop=True)
    assert facts["articles"] == str(path)
    assert facts["benchmarks"] == {"sts": {"texts": 6, "exact": 1, "near": 1, "training_articles": 2}}
    assert dropped.excluded == {Document("", words(0, 30)), Document("", "c d")}
    assert list(read_articles(str(path))) == [Document("", words(0, 31)), Document("c d", "")]
