"""Suites by name: which benchmark each is, which options reach it, and by which files it is found in a folder."""

import dataclasses

import pytest
from newsembed.evaluation.bitext import BitextRetrieval
from newsembed.evaluation.classification import NewsClassification
from newsembed.evaluation.clustering import Clustering
from newsembed.evaluation.crosslingual import CrossLingual
from newsembed.evaluation.day_pairs import DayDuplicates
from newsembed.evaluation.display import Display
from newsembed.evaluation.duplicates import NearDuplicates
from newsembed.evaluation.labelled import FORMATS
from newsembed.evaluation.links import PostLinking
from newsembed.evaluation.mining import BitextMining
from newsembed.evaluation.mldoc import LinearSvm, MlDoc
from newsembed.evaluation.nli import Xnli
from newsembed.evaluation.pairs import PairClassification
from newsembed.evaluation.registry import SUITES, Options, discover
from newsembed.evaluation.retrieval import SameEventRetrieval
from newsembed.evaluation.sts import Sts

GIVEN = Options(
    cross_publisher=True, exclude_near_copies=True, max_day_gap=3, label="topic", min_cluster_size=4, seeds=(7, 8),
    at_k=5, intervals=True, languages=("de", "en"), train_languages=("en",), folds=6, head="simlte", shots=(1, 2),
    tasks=("few_shot",), draws=True,
)  # fmt: skip
EVENTS = {
    "cross_publisher": True,
    "exclude_near_copies": True,
    "max_day_gap": 3,
    "at_k": 5,
    "intervals": True,
    "draws": True,
}
CLUSTERS = {"seeds": (7, 8), "min_cluster_size": 4}
MLDOC = {"languages": ("de", "en"), "train_languages": ("en",), "folds": 6}
LEARNED = {"tasks": ("few_shot",), "seeds": (7, 8), "head": "simlte", "shots": (1, 2)}
EXPECTED = {
    "events": (SameEventRetrieval, EVENTS),
    "events_across": (SameEventRetrieval, {**EVENTS, "cross_language": True}),
    "clustering": (Clustering, {**CLUSTERS, "label": "topic"}),
    "topic_clustering": (Clustering, {**CLUSTERS, "label": "topic"}),
    "sts": (Sts, {"intervals": True}),
    **{form: (NewsClassification, {"format": form, **LEARNED}) for form in FORMATS},
    "mrpc": (PairClassification, {"format": "mrpc"}),
    "sick_e": (PairClassification, {"format": "sick_e"}),
    "masakhanews_xy": (CrossLingual, {"format": "masakhanews"}),
    "mldoc_xy": (CrossLingual, {"format": "mldoc"}),
    "mldoc_laser": (MlDoc, {**MLDOC, "seeds": (7, 8)}),
    "mldoc_svm": (MlDoc, {**MLDOC, "seeds": (0,), "head": LinearSvm()}),
    "xnli": (Xnli, {"languages": ("de", "en")}),
    "tatoeba": (BitextRetrieval, {}),
    "links": (PostLinking, {"draws": True}),
    "title_links": (PostLinking, {"titles": True, "draws": True}),
    "bucc": (BitextMining, {}),
    "duplicates": (NearDuplicates, {}),
    "day_duplicates": (DayDuplicates, {"draws": True}),
    "display": (Display, {}),
}  # fmt: skip


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_gets_the_options_that_it_has_and_no_others(suite):
    kind, options = EXPECTED[suite]
    assert SUITES[suite]("some/path", "a name", GIVEN) == kind(path="some/path", name="a name", **options)
    plain = {
        "events_across": {"cross_language": True},
        "topic_clustering": {"label": "topic"},
        "title_links": {"titles": True},
    }
    own = plain.get(suite, {}) | {name: value for name, value in options.items() if name in ("format",)}
    own |= {"seeds": (0,), "head": LinearSvm()} if suite == "mldoc_svm" else {}
    assert SUITES[suite]("p", "n", Options()) == kind(path="p", name="n", **own)


def test_topic_clustering_is_by_topic_whatever_the_label():
    assert SUITES["topic_clustering"]("p", "n", Options(label="event")).label == "topic"
    assert SUITES["clustering"]("p", "n", Options(label="event")).label == "event"
    across = SUITES["events"]("p", "n", dataclasses.replace(GIVEN, cross_language=True))
    assert (across.cross_language, SUITES["events"]("p", "n", GIVEN).cross_language) == (True, False)


def names(root, *files):
    """The suites of a folder with these files."""
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return [benchmark.name for benchmark in discover(str(root), Options())]


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
        (["s/sts-test.csv"], ["sts (s)"]),
        (["s/STS.gs.news.txt"], ["sts (s)"]),
        (["2014/a.test.tsv"], ["sts (2014)"]),
        (["s/SICK_test_annotated.txt"], ["sts (s)"]),
        (["s/SICK_test_annotated.txt", "s/SICK_train.txt"], ["sts (s)", "sick_e (s)"]),
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
