"""Labelled collections in their distributed layouts, and what is said of broken ones."""

import json

import pytest
from newsembed.evaluation.encoders import Document
from newsembed.evaluation.files import (
    read_ag_news,
    read_arxiv,
    read_bbc,
    read_fakenews,
    read_jsonl_labels,
    read_masakhanews,
    read_mind,
    read_mldoc,
    read_newsgroups,
    read_nyt,
    sample_per_class,
)  # fmt: skip
from refusals import refuses


def fill(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder)


def rows(part):
    return [(row.label, row.document.title, row.document.body) for row in part]


def test_bbc_takes_titles_apart_and_reads_both_encodings(tmp_path):
    path = fill(
        tmp_path,
        {"sport/001.txt": "Goal\n\nIt cost \u00a31.\n", "tech/001.txt": b"Phone\n\nIt cost \xa31.", "README.TXT": "x"},
    )
    split = read_bbc(path)
    assert rows(split.train) == [("sport", "Goal", "It cost \u00a31."), ("tech", "Phone", "It cost \u00a31.")]
    assert split.test == ()


MESSAGE = "From: a@b\nSubject: Hi\n\nOn Monday b wrote:\n> quoted\nMy own words.\n\n--\nsignature\n"


def test_newsgroups_with_and_without_headers(tmp_path):
    files = {f"20news-bydate-{part}/{group}/1": MESSAGE for part in ("train", "test") for group in ("sci.med", "alt.x")}
    path = fill(tmp_path, files)
    assert "Subject: Hi" in read_newsgroups(path).train[0].document.body
    assert rows(read_newsgroups(path, stripped=True).test) == [
        ("alt.x", "", "My own words."),
        ("sci.med", "", "My own words."),
    ]


def test_ag_news_in_both_layouts(tmp_path):
    three = fill(tmp_path / "a", {"test.csv": '"3","T ""q""","one\\two"\n"4","U","v"\n'})
    assert rows(read_ag_news(three).train) == [("Business", 'T "q"', "one two"), ("Sci/Tech", "U", "v")]
    two = fill(tmp_path / "b", {"train.csv": '0,"a, b"\n3,c\n', "test.csv": "1,d\n2,e\n"})
    split = read_ag_news(two)
    assert rows(split.train) == [("World", "", "a, b"), ("Sci/Tech", "", "c")]
    assert rows(split.test) == [("Sports", "", "d"), ("Business", "", "e")]


def test_mind_has_four_fifths_of_each_category_of_both_files_without_repeated_texts(tmp_path):
    line = "{}\t{}\tsub\tTitle {}\tAbstract\thttp://x\t[]\t[]\n"
    train = "".join(line.format(f"N{n}", "sports" if n % 2 else "news", n) for n in range(14))
    dev = "".join(line.format(f"M{n}", "sports" if n % 2 else "news", n) for n in range(10, 20))
    split = read_mind(fill(tmp_path, {"MINDsmall_train/news.tsv": train, "MINDsmall_dev/news.tsv": dev}))
    assert sorted(row.document.title for row in split.all) == sorted(f"Title {n}" for n in range(20))
    for part, count in ((split.train, 8), (split.test, 2)):
        assert sorted(row.label for row in part) == ["news"] * count + ["sports"] * count
        assert all((int(row.document.title[6:]) % 2 == 1) == (row.label == "sports") for row in part)


FAKE, ARXIV = "news_cleaned_2018_02_13.csv", "arxiv-metadata-oai-snapshot.json"
PAPER = '{{"id": "{}", "title": "T {}", "abstract": " A\\n b", "categories": "{}"}}\n'
NYT = {"dataset.txt": "a vote\na goal\n", "labels.txt": "1\n0\n", "classes.txt": "sports\npolitics\n"}


def test_the_collections_of_simlte(tmp_path):
    csv = ',id,type,content,title\n0,1,fake,"one\n""two""",T\n1,2,,x,y\n2,3,reliable,text,\n3,4,rumor,,\n'
    split = read_fakenews(fill(tmp_path / "f", {FAKE: csv}))
    assert rows(split.train) == [("fake", "T", 'one\n"two"'), ("reliable", "", "text")]
    path = fill(tmp_path / "a", {ARXIV: PAPER.format(1, 1, "cs.CL stat.ML") + PAPER.format(2, 2, "hep-ph")})
    assert rows(read_arxiv(path).train) == [("cs", "T 1", "A\n b"), ("hep-ph", "T 2", "A\n b")]
    assert rows(read_nyt(fill(tmp_path / "n", NYT)).train) == [("politics", "", "a vote"), ("sports", "", "a goal")]


HEADER = "category\theadline\ttext\turl\n"


def test_masakhanews_keeps_line_breaks_in_quotes_and_falls_back_on_dev(tmp_path):
    part = HEADER + 'sports\tH\t"line ""one""\nline two"\tu\nhealth\tG\tbody\tu\n'
    path = fill(tmp_path, {"dev.tsv": part, "test.tsv": part})
    assert read_masakhanews(path).test[0].document == Document("H", 'line "one"\nline two')
    fill(tmp_path, {"train.tsv": part + "health\tonly in train\tb\tu\n"})
    assert len(read_masakhanews(path).train) == 3


def test_mldoc_and_jsonl(tmp_path):
    path = fill(
        tmp_path, {"german.train.1000": "CCAT\tein Text\nGCAT\tzwei\n", "german.test": "GCAT\tdrei\nCCAT\tvier\n"}
    )
    assert rows(read_mldoc(f"{path}/german").test) == [("GCAT", "", "drei"), ("CCAT", "", "vier")]
    lines = [{"title": "t", "body": "b", "label": label, "split": part} for label in "xy" for part in ("train", "test")]
    path = fill(tmp_path, {"l.jsonl": "".join(json.dumps(line) + "\n" for line in lines)})
    assert [
        len(part) for part in (read_jsonl_labels(f"{path}/l.jsonl").train, read_jsonl_labels(f"{path}/l.jsonl").test)
    ] == [2, 2]


@pytest.mark.parametrize(
    ("read", "files", "message"),
    [
        (read_bbc, None, "cannot be read.*\n.*mlg.ucd.ie.*one folder for each class"),
        (read_bbc, {"a.txt": "x"}, "no documents found"),
        (read_bbc, {"sport/1.txt": "x"}, "only one class"),
        (read_bbc, {"sport/1.txt": "x", "tech/1.txt": " "}, "1 of 2 texts are empty"),
        (read_ag_news, {"test.csv": '"9","t","d"\n'}, "test.csv:1: got the class '9'"),
        (read_ag_news, {"test.csv": "1\n"}, "got 1 columns"),
        (read_mind, {"train/news.tsv": "N1\tsports\n"}, "got 2 columns, expected at least 5"),
        (read_fakenews, {FAKE: ",id,type,content\n0,1,fake,x\n"}, f"{FAKE}:1: title: the header lacks it"),
        (read_arxiv, {ARXIV: PAPER.format(1, 1, "")}, f"{ARXIV}:1: categories: got ''"),
        (read_nyt, {**NYT, "labels.txt": "1\n"}, "labels.txt: 1 labels of 2 texts"),
        (read_nyt, {**NYT, "labels.txt": "1\n2\n"}, "labels.txt:2: got '2', expected 0 to 1"),
        (read_masakhanews, {"train.tsv": "a\tb\tc\n"}, "wrong header line"),
        (lambda path: read_mldoc(f"{path}/en"), {"en.train.1000": "A\tb\nC\n"}, r"en\.train\.1000:2: got 1 columns"),
    ],
)
def test_broken_folders(tmp_path, read, files, message):
    path = fill(tmp_path, files) if files else str(tmp_path / "absent")
    refuses(message, read, path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"title": "t", "body": "b"}, "label: got None, expected a string"),
        ({"title": "t", "body": "b", "label": "x", "split": "dev"}, "got 'dev'"),
    ],
)
def test_broken_jsonl(tmp_path, line, message):
    (tmp_path / "l.jsonl").write_text(json.dumps(line))
    refuses(message, read_jsonl_labels, str(tmp_path / "l.jsonl"))


def test_a_share_of_each_class():
    labels = ["a"] * 50 + ["b"] * 20 + ["c"]
    drawn = sample_per_class(labels, 0.1, 0)
    assert [labels[number] for number in drawn] == ["a"] * 5 + ["b"] * 2 + ["c"]
    assert drawn == sample_per_class(labels, 0.1, 0) != sample_per_class(labels, 0.1, 1)
