"""Where the rules of leakage begin and end: exact matches by words, near ones from 20 words and a similarity of 0.8."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from newsembed.evaluation.benchmarks.sts import Sts
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.leakage import check_leakage, find_leakage, read_articles
from refusals import refuses
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
    copied = "星期五早上石桥附近的河水上涨，救援队用船从被淹的房屋中救出四十人。"
    assert leaks(Document("", copied), Document("", f"本报讯{copied}")) == "near"


def test_each_benchmark_has_its_own_counts():
    shared, own = Document("", "a b c"), Document("", "d e f")
    one, two = find_leakage([[shared, own, own], [own]], [Document("", "a b c"), Document("", "x")])
    assert (one.exact, two.exact) == (frozenset([shared]), frozenset())
    assert one.to_dict() == {"texts": 2, "exact": 1, "near": 0, "training_articles": 2}
    assert two.to_dict() == {"texts": 1, "exact": 0, "near": 0, "training_articles": 2}


def test_leaked_pairs_are_dropped_only_on_demand_and_a_broken_benchmark_passes(tmp_path):
    (tmp_path / "s.tsv").write_text("1\ta b\tc d\n2\te f\tg h\n3\ti j\tk l\n")
    (tmp_path / "train.jsonl").write_text(json.dumps({"title": "e f", "body": None}) + "\n")
    benchmarks = [Sts(str(tmp_path / "s.tsv"), "sts"), Sts(str(tmp_path / "absent.tsv"), "absent")]
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
    refuses(r"broken\.parquet: not a Parquet file, or damaged", list, read_articles(str(tmp_path / "broken.parquet")))


def test_an_exact_copy_is_not_counted_as_a_near_one_too():
    articles = [Document("Other", words(0, 30)), Document("", words(0, 31))]
    (found,) = find_leakage([[Document("", words(0, 30))]], articles)
    assert (len(found.exact), len(found.near)) == (1, 0)


def test_letters_have_no_case():
    text = words(0, 20)
    assert leaks(Document("", text.upper()), Document("", text.lower())) == "exact"
    assert leaks(Document("", "stra\u00dfe"), Document("", "strasse")) == ""  # lower case, not case folding


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
