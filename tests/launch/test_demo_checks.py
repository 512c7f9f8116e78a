"""What the demo checks: every line of its table is met by good numbers, and missed alone by one bad number."""

import dataclasses
import types

import pytest
from json_lines import write_rows
from newsembed.beam_pipelines.entities.linking import Linker
from newsembed.beam_pipelines.entities.tables import Alias, write_aliases
from newsembed.evaluation.benchmark import Result, Results, Score
from newsembed.formats import parquet
from newsembed.formats.records import Article, Triplet, make_doc_id
from newsembed.launch.demo import QUERIES, Places, checks
from newsembed.launch.demo.checks import PRECISION, RECALL, Name, found_names, score_names
from newsembed.tests.document_table import numbered_triplet

HELD_OUT, PARAPHRASES = "events heldout.jsonl", "events paraphrases.jsonl"
BALANCE = "every job: in = out + rejected + failed, and something out"
BEATS_TFIDF = "held-out events, mAP: trained > TF-IDF"
ORDER = "held-out events, mAP, {}: trained > pretrained > random"


def good():
    """Numbers with which every line is met, none with much to spare."""
    rows = [
        {"job": "extract", "in": 10, "out": 7, "rejected": {"no_title": 1, "no_body": 1}, "failed": {"truncated": 1}},
        {"job": "clean", "in": 7, "out": 7, "rejected": {}, "failed": {}},
    ]
    mined = {
        "positive precision": 0.9,
        "positive recall": 0.6,
        "negative precision (not the same event)": 0.95,
        PRECISION: 0.9,
        RECALL: 0.5,
        "negative precision (nor the same evergreen)": 0.1,
    }
    scores = {
        (encoder, HELD_OUT, part): value
        for encoder, value in {"trained": 0.53, "pretrained": 0.52, "random": 0.51, "tfidf": 0.525}.items()
        for part in ("all", "de")
    }
    scores |= {("trained", PARAPHRASES, "all"): 0.31, ("tfidf", PARAPHRASES, "all"): 0.3}
    return types.SimpleNamespace(rows=rows, mined=mined, scores=scores, difference=1e-5)


def results_of(scores):
    entries = {(encoder, benchmark): [] for encoder, benchmark, _ in scores}
    for (encoder, benchmark, part), value in scores.items():
        entries[encoder, benchmark] += [Score("mAP", value, part), Score("hit@1", 1 - value, part)]
    return Results(tuple(Result(*key, "ok", tuple(found)) for key, found in entries.items()), {})


def missed(numbers):
    found = checks.checks_of(numbers.rows, numbers.mined, results_of(numbers.scores), numbers.difference)
    return [check["name"] for check in found if not check["met"]]


def test_a_language_without_a_region_is_scored_but_not_asked_for():
    numbers = good()
    numbers.scores |= {(encoder, HELD_OUT, "ru"): 0.5 for encoder in ("trained", "pretrained", "random", "tfidf")}
    assert missed(numbers) == []
    assert [row["events heldout: mAP ru"] for row in checks.table(results_of(numbers.scores))] == [0.5] * 4


def test_good_numbers_meet_every_line():
    numbers = good()
    found = checks.checks_of(numbers.rows, numbers.mined, results_of(numbers.scores), numbers.difference)
    assert [(check["name"], check["measured"], check["expected"]) for check in found] == [
        (BALANCE, "2 of 2 jobs", "all of them"),
        ("positive precision", 0.9, ">= 0.9"),
        ("positive recall", 0.6, ">= 0.6"),
        ("negative precision (not the same event)", 0.95, ">= 0.95"),
        (PRECISION, 0.9, ">= 0.9"),
        (RECALL, 0.5, ">= 0.5"),
        (ORDER.format("all"), "0.530 > 0.520 > 0.510", "this order"),
        (ORDER.format("de"), "0.530 > 0.520 > 0.510", "this order"),
        (BEATS_TFIDF, "0.530 > 0.525", "this order"),
        ("cross-publisher paraphrases, mAP: trained > TF-IDF", "0.310 > 0.300", "this order"),
        ("SavedModel equals JAX", 1e-5, "<= 1e-05"),
    ]
    assert all(check["met"] is True for check in found)


@pytest.mark.parametrize(("name", "bar"), checks._MINING.items())
def test_mining_just_below_its_bar_is_missed(name, bar):
    numbers = good()
    numbers.mined[name] = bar - 1e-6
    assert missed(numbers) == [name]


@pytest.mark.parametrize(
    "change",
    [{"failed": {}}, {"rejected": {}}, {"rejected": {"no_title": 1}}, {"in": 11}, {"out": 8}, {"in": 3, "out": 0}],
)
def test_a_job_that_does_not_add_up_or_writes_nothing_is_missed(change):
    numbers = good()
    numbers.rows[0] |= change
    assert missed(numbers) == [BALANCE]
    (check, *_) = checks.checks_of(numbers.rows, numbers.mined, results_of(numbers.scores), 0.0)
    assert check["measured"] == "1 of 2 jobs"


@pytest.mark.parametrize("part", ["all", "de"])
@pytest.mark.parametrize(
    ("encoder", "value"),
    [
        ("pretrained", 0.53),  # as good as the trained one
        ("pretrained", 0.51),  # no better than the random one
        ("pretrained", 0.6),
        ("random", 0.52),
        ("random", 0.6),
    ],
)
def test_encoders_in_another_order_are_missed(part, encoder, value):
    numbers = good()
    numbers.scores[encoder, HELD_OUT, part] = value
    assert missed(numbers) == [ORDER.format(part)]


@pytest.mark.parametrize(
    ("benchmark", "value", "name"),
    [(HELD_OUT, 0.53, BEATS_TFIDF), (PARAPHRASES, 0.31, "cross-publisher paraphrases, mAP: trained > TF-IDF")],
)
def test_an_encoder_no_better_than_words_is_missed(benchmark, value, name):
    numbers = good()
    numbers.scores["tfidf", benchmark, "all"] = value
    assert missed(numbers) == [name]


def test_mining_is_scored_against_the_truth_by_hand():
    truth = {
        f"{n:016x}": {"event": event, "near_duplicate_group": group}
        for n, (event, group) in enumerate(
            [("e1", None), ("e1", None), ("e2", None), (None, "g"), (None, "g"), ("e1", None)]
        )
    }
    publishers = {f"{n:016x}": publisher for n, publisher in enumerate("ababab")}
    mined = [
        numbered_triplet(1, 0, 2),
        numbered_triplet(1, 0, 2),
        numbered_triplet(0, 2, 1),
        numbered_triplet(3, 4, 4),
        numbered_triplet(0, 9, 9),
    ]
    scored = checks.score_mining(iter(mined), truth, publishers)
    assert scored["positive pairs"] == 4  # (1,0) (0,2) (3,4) (0,9)
    assert scored["positive precision"] == pytest.approx(1 / 4)
    assert scored["positive recall"] == pytest.approx(1 / 2)  # of (0,1) and (0,5); (1,5) has one publisher
    assert scored["negative pairs"] == 4  # (1,2) (0,1) (3,4) (0,9)
    # (1,2) and (3,4) are right; (0,9) is unknown to the truth.
    assert scored["negative precision (not the same event)"] == pytest.approx(2 / 4)
    assert scored["negative precision (nor the same evergreen)"] == pytest.approx(1 / 4)
    assert scored["anchors"] == 3


def test_the_encoders_table_has_every_score_and_every_failure():
    results = results_of({("trained", HELD_OUT, "all"): 0.53, ("trained", HELD_OUT, "de"): 0.41})
    failed = Result("tfidf", HELD_OUT, "failed", error="no memory")
    assert checks.table(dataclasses.replace(results, results=(*results.results, failed))) == [
        {
            "encoder": "trained",
            "events heldout: mAP": 0.53,
            "events heldout: hit@1": 0.47,
            "events heldout: mAP de": 0.41,
            "events heldout: hit@1 de": 0.59,
        },
        {"encoder": "tfidf", f"{HELD_OUT}: failed": "no memory"},
    ]


@pytest.mark.parametrize("place", [0, 4])
def test_a_search_that_shows_an_article_about_something_else_is_missed(place):
    found = {query: [topic] * 5 for query, topic in QUERIES.items()}
    assert [check["met"] for check in checks.search_checks(found)] == [True] * 3
    found["election mayor vote"][place] = "court"
    lines = checks.search_checks(found)
    assert [check["met"] for check in lines] == [True, False, True]
    assert lines[1]["measured"] == "4 of 5"
    found["election mayor vote"] = ["elections"] * 4
    assert not checks.search_checks(found)[1]["met"]


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """What a finished demo leaves: two articles of an event and one of another, mined as they should be."""
    places = Places(str(tmp_path))
    numbers = good()
    urls = [f"http://p{number}.example/a" for number in range(3)]
    ids = [make_doc_id(url) for url in urls]
    (tmp_path / "newsroom").mkdir()
    rows = [
        {"url": url, "event": event, "near_duplicate_group": None}
        for url, event in zip(urls, ["e1", "e1", "e2"], strict=True)
    ]
    write_rows(tmp_path / "newsroom/truth.jsonl", rows)
    articles = [Article(doc_id, url, url.split("/")[2], "title", "body") for doc_id, url in zip(ids, urls, strict=True)]
    part = "part-00000-of-00001.parquet"
    parquet.write_shard(f"{places.work}/clean/articles/{part}", articles, Article)
    mined = Triplet(*ids, "en", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 1, 400, 0.1)
    parquet.write_shard(f"{places.work}/triplets/triplets/{part}", [mined], Triplet)
    monkeypatch.setattr(checks, "read_results", lambda _folder: results_of(numbers.scores))
    monkeypatch.setattr(checks, "job_rows", lambda _places: numbers.rows)
    monkeypatch.setattr(checks, "found_names", lambda _places: {PRECISION: 1.0, RECALL: 1.0})
    monkeypatch.setattr(checks, "export_difference", lambda _places: numbers.difference)
    monkeypatch.setattr(checks, "found_topics", lambda _places, _truth: {q: [t] * 5 for q, t in QUERIES.items()})
    return types.SimpleNamespace(places=places, numbers=numbers)


def test_the_demo_is_scored_from_its_folders(finished):
    sections = checks.score(finished.places)
    assert len(sections["checks"]) == 14
    assert all(check["met"] for check in sections["checks"])
    assert sections["mining"]["positive recall"] == 1
    assert [row["encoder"] for row in sections["encoders"]] == ["trained", "pretrained", "random", "tfidf"]
    finished.numbers.difference = 0.1
    assert [check["met"] for check in checks.score(finished.places)["checks"]].count(False) == 1


NAMES = [
    Name("place", "Thornmere", frozenset({"Торнмир", "Торнмира", "Торнмире"})),
    Name("place", "Oxfirth", frozenset({"Оксферт", "Оксферте"})),
    Name("person", "Edmund Kestling", frozenset({"Кестлинг", "Кестлинга"})),
]


def russian(body, number=0):
    return Article(f"{number:016x}", f"http://p.example/{number}", "p.example", "Новость", body, language="ru")


def linker_of(*aliases):
    rows = {entity: row for row, entity in enumerate(sorted({alias.entity for alias in aliases}))}
    return Linker(aliases, rows)


def known(name, alias=None, languages=""):
    return Alias(alias or name, name.replace(" ", "_"), 1.0, name, languages)


EVERYONE = (known("Thornmere"), known("Oxfirth"), known("Edmund Kestling"), known("Edmund Kestling", "Kestling"))


@pytest.mark.parametrize(
    ("table", "body", "precision", "recall", "asked"),
    [
        (EVERYONE, "Вчера в Торнмире был дождь. Речь Эдмунда Кестлинга в Оксферте.", 1, 1, 3),
        # A name with an entity of its own is missed.
        ((known("Thornmere"), known("Торнмир"), known("Oxfirth")), "В Торнмире и Оксферте был дождь.", 1, 0.5, 2),
        # A link to a name that the article does not have is wrong.
        ((known("Thornmere"), known("Thornmere", "Оксферт"), known("Oxfirth")), "В Оксферте был дождь.", 0, 0, 1),
        # A name without an entity in Latin letters is not asked for.
        ((known("Thornmere"),), "В Торнмире и Оксферте был дождь.", 1, 1, 1),
        # Names of one language only are missed.
        ([known(name, languages="en") for name in ("Thornmere", "Oxfirth")], "В Торнмире и Оксферте.", 0, 0, 2),
    ],
    ids=["linked", "missed", "wrong", "unknown", "of one language"],
)
def test_names_in_another_script_are_linked_to_the_latin_name(table, body, precision, recall, asked):
    found = score_names(linker_of(*table), NAMES, [russian(body)])
    assert (found[PRECISION], found[RECALL], found["names across scripts"]) == (precision, recall, asked)


@pytest.mark.parametrize(("language", "asked"), [("ru", 1), ("en", 0)])
def test_the_articles_and_the_table_of_a_demo_are_read(tmp_path, language, asked):
    places = Places(str(tmp_path))
    (tmp_path / "newsroom").mkdir()
    (tmp_path / "work/entities").mkdir(parents=True)
    lines = ("place\tThornmere\tТорнмир", "place\tThornmere\tТорнмире")
    (tmp_path / "newsroom/names.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_aliases(f"{places.work}/entities/aliases.tsv", EVERYONE)
    article = Article("0" * 16, "http://p.example/", "p.example", "Торнмир", "В Торнмире дождь.", language=language)
    parquet.write_shard(f"{places.work}/clean/articles/part-00000-of-00001.parquet", [article], Article)
    found = found_names(places)
    assert (found[RECALL], found["names across scripts"]) == (asked, asked)
