"""Suites by name: which benchmark each is, which options reach it, and by which files it is found in a folder."""

import pytest
from newsembed.evaluation.benchmark import discover, suites
from newsembed.evaluation.benchmarks.classification import Clustering
from newsembed.evaluation.benchmarks.mldoc import MlDoc
from newsembed.evaluation.benchmarks.retrieval import PostLinking, SameEventRetrieval
from newsembed.evaluation.files import FORMATS

SHARED = {"seeds": 2, "draws": True, "intervals": True, "languages": ("de", "en")}
GIVEN = SHARED | {"cross_publisher": True, "label": "topic", "folds": 6, "tasks": ("few_shot",), "unknown": 1}


@pytest.mark.parametrize("suite", suites())
def test_a_suite_gets_the_options_that_it_has_and_no_others(suite):
    made = suites()[suite].make("some/path", "a name", GIVEN)
    fixed = suites()[suite].fixed
    assert (made.path, made.name) == ("some/path", "a name")
    for name, value in {**GIVEN, **fixed}.items():
        if name in made.__dataclass_fields__:
            assert getattr(made, name) == value
    assert suites()[suite].make("p", "n").excluded == frozenset()


def test_the_suites_of_the_papers_are_there():
    kinds = {name: (type(suite.make("p", "n")), dict(suite.fixed)) for name, suite in suites().items()}
    assert kinds["events_across"] == (SameEventRetrieval, {"cross_language": True})
    assert kinds["topic_clustering"] == (Clustering, {"label": "topic"})
    assert kinds["mldoc_svm"] == (MlDoc, {"head": None, "seeds": 1})
    assert kinds["title_links"] == (PostLinking, {"titles": True})
    assert {f"{form}_xy" for form in ("mldoc", "masakhanews")} | {"mrpc", "sick_e", "xnli", "tatoeba"} < set(kinds)
    assert set(FORMATS) < set(kinds)


def names(root, *files):
    """The suites of a folder with these files."""
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return [benchmark.name for benchmark in discover(str(root))]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["x/business/1.txt", "x/sport/1.txt", "x/tech/1.txt"], ["bbc (x)"]),
        (["n/20news-bydate-train/a/1"], ["newsgroups (n)", "newsgroups_stripped (n)"]),
        (["ag_news/test.csv"], ["agnews (ag_news)"]),
        (["ag_news/csv/test.csv"], ["agnews (ag_news/csv)"]),
        (["m/train/news.tsv"], ["mind (m)"]),
        (["m/MINDsmall_train/news.tsv"], ["mind (m)"]),
        (["m/MINDlarge_train/news.tsv"], ["mind (m)"]),
        (["f/news_cleaned_2018_02_13.csv"], ["fakenews (f)"]),
        (["a/arxiv-metadata-oai-snapshot.json"], ["arxiv (a)"]),
        (["n/dataset.txt", "n/labels.txt", "n/classes.txt"], ["nyt (n)"]),
        (["s/sts-test.csv"], ["sts (s)"]),
        (["s/STS.gs.news.txt"], ["sts (s)"]),
        (["2014/a.test.tsv"], ["sts (2014)"]),
        (["s/SICK_test_annotated.txt"], ["sts (s)"]),
        (["s/SICK_test_annotated.txt", "s/SICK_train.txt"], ["sick_e (s)", "sts (s)"]),
        (["p/msr_paraphrase_train.txt", "p/msr_paraphrase_test.txt"], ["mrpc (p)"]),
        (["x/xnli.dev.tsv", "x/xnli.test.tsv"], ["xnli (x)"]),
        (["t/tatoeba.deu-eng.eng"], ["tatoeba (t)"]),
        (["b/de-en.gold"], ["bucc (b)"]),
        (["l/de.train.1000", "l/de.test", "l/en.test"], ["mldoc (l/de)", "mldoc (l/en)", "mldoc_xy (l)"]),
        (["MasakhA/a/test.tsv", "MasakhA/b/train.tsv"], ["masakhanews (MasakhA/a)", "masakhanews_xy (MasakhA)"]),
        (["1/2/3/b.gold"], ["bucc (1/2/3)"]),
    ],
)  # fmt: skip
def test_a_benchmark_is_found_by_its_files(tmp_path, files, expected):
    assert names(tmp_path / "root", *files) == expected


@pytest.mark.parametrize(
    "file",
    ["s/a.test.tsv", "other/test.csv", "x/xnli.dev.tsv", "t/deu.eng", "m/train/x.tsv", "1/2/3/4/b.gold",
     ".hidden/b.gold", "p/msr_paraphrase_train.txt", "x/business/1.txt", "s/STS.input.news.txt"],
)  # fmt: skip
def test_half_of_a_benchmark_is_none(tmp_path, file):
    assert names(tmp_path / "root", "z/b.gold", file) == ["bucc (z)"]


def test_a_folder_that_is_a_benchmark_itself_is_named_after_itself(tmp_path):
    assert names(tmp_path / "bucc2018", "b.gold") == ["bucc (bucc2018)"]
