"""Search by words and vectors together: the order, the learned weights, filters, and what is said about an answer."""

import datetime
import json
import random

import numpy as np
import pytest
from json_lines import write_rows
from letters import Letters, client_of, run
from newsembed.errors import InputError
from newsembed.formats.articles import ArticleText
from newsembed.launch import api
from newsembed.serving import hybrid, index_command, ranking, search, server, tuning
from newsembed.serving.filters import DateRange, Filters
from newsembed.serving.index import DocumentIndex, Hit, QueryWord
from newsembed.serving.ranking import DEFAULT, LATENT_SEMANTICS, NO_RANK, Evidence, Ranking, learn
from refusals import refuses
from tables import indexed

DAY = datetime.date(2024, 1, 1)
TEXTS = [
    ("Storm hits the coast", "Wind and rain on the shore.", "en", "a.example"),
    ("Coast storm", "The wind of the storm.", "en", "b.example"),
    ("Budget vote", "Parliament in a budget vote.", "en", "a.example"),
    ("Sturm an der Küste", "Wind und Regen.", "de", "c.example"),
    ("Cup match", "A goal in the match.", "", "c.example"),
]
ARTICLES = [
    ArticleText(f"d{n}", f"https://a.example/{n}", publisher, title, body, language, DAY + datetime.timedelta(n))
    for n, (title, body, language, publisher) in enumerate(TEXTS)
]


@pytest.fixture(scope="module")
def index():
    return indexed(ARTICLES, Letters())


def find(index, query, count=5, **options):
    return hybrid.find(index, query, Letters().encode_queries([query])[0], count, **options)


def titles(found):
    return [hit.document.title for hit in found.hits]


def test_each_mode_has_its_scores(index):
    by_words = find(index, "budget storm", mode="words")
    assert [hit.score for hit in by_words.hits] == index.matching(index.read("budget storm"), 5)[1].tolist()
    assert set(titles(by_words)) == {"Budget vote", "Coast storm", "Storm hits the coast"}
    by_vectors = find(index, "budget storm", mode="vectors")
    vector = Letters().encode_queries(["budget storm"])[0]
    expected = [part.tolist() for part in index.nearest(vector, 5)]
    assert [[getattr(hit, name) for hit in by_vectors.hits] for name in ("number", "score")] == expected
    both = find(index, "budget storm")
    assert (both.mode, by_words.mode, by_vectors.mode) == ("hybrid", "words", "vectors")
    assert [hit.rank for hit in both.hits] == [1, 2, 3, 4, 5]
    assert all(0 < hit.score < 1 for hit in both.hits)
    assert [hit.score for hit in both.hits] == sorted((hit.score for hit in both.hits), reverse=True)
    assert titles(find(index, "budget storm", 2)) == titles(both)[:2]


def test_the_evidence_of_a_query(index):
    query = "storm zebra"
    words, vector = index.read(query), Letters().encode_queries([query])[0]
    found = hybrid.evidence(index, words, vector)
    cosines = index.embeddings @ vector
    np.testing.assert_allclose(found.cosines, cosines, atol=1e-6)
    np.testing.assert_allclose(found.deviations, (cosines - cosines.mean()) / cosines.std(), atol=1e-5)
    by_words, scores = index.matching(words, 5)
    np.testing.assert_allclose(found.bm25[by_words], scores)
    assert found.vector_ranks.tolist() == np.argsort(np.argsort(-cosines, kind="stable")).tolist()
    assert found.word_ranks.tolist() == [by_words.tolist().index(n) if n in by_words else NO_RANK for n in range(5)]
    assert found.known == pytest.approx(words[0].rarity / (words[0].rarity + words[1].rarity))
    assert 1 not in hybrid.evidence(index, words, vector, without=1).numbers
    assert hybrid.evidence(index, words, vector, Filters(languages=("de",))).numbers.tolist() == [3]


@pytest.mark.parametrize("mode", ["hybrid", "vectors"])
def test_cosines_that_are_known_are_not_computed_again(index, mode):
    vector = Letters().encode_queries(["budget storm"])
    (known,) = index.compare(vector)
    np.testing.assert_allclose(known, index.embeddings @ vector[0], atol=1e-6)
    options = {"mode": mode, "filters": Filters(languages=("en",))}
    assert find(index, "budget storm", cosines=known, **options) == find(index, "budget storm", **options)
    other = find(index, "budget storm", cosines=-known, **options)
    assert {hit.score for hit in other.hits} != {hit.score for hit in find(index, "budget storm", **options).hits}


def test_an_index_that_is_not_compared_one_by_one_gives_no_cosines(index):
    assert DocumentIndex(index.archive, exact_limit=2).compare(Letters().encode_queries(["storm"])) is None


def test_documents_in_another_language_than_the_first_by_words_are_foreign():
    english = [ArticleText(f"e{n}", "", "", f"storm {'ab'[n % 2] * n}", "", "en") for n in range(60)]
    german = [ArticleText(f"d{n}", "", "", f"sturm {'ab'[n % 2] * n}", "", "de-AT") for n in range(60)]
    index = indexed([*english, *german], Letters())
    for query, foreign in (("storm", range(60, 120)), ("sturm", range(60)), ("zzzz", ())):
        found = hybrid.evidence(index, index.read(query), Letters().encode_queries([query])[0])
        assert {*found.numbers[found.foreign].tolist()} == {*foreign} & {*found.numbers.tolist()}
        assert {*range(60, 120)} & {*found.numbers.tolist()}
    one = indexed(english, Letters())
    assert not hybrid.evidence(one, one.read("storm"), Letters().encode_queries(["storm"])[0]).foreign.any()


def test_words_beyond_the_depth_still_have_their_scores():
    many = [ArticleText(f"d{n}", "", "", f"storm {'b' * n}", "", "en") for n in range(8)]
    index = indexed(many, Letters())
    words = index.read("storm")
    found = hybrid.evidence(index, words, Letters().encode_queries(["bbbbbbb"])[0], depth=2)
    expected = dict(zip(*(part.tolist() for part in index.matching(words, 8)), strict=True))
    assert found.bm25.tolist() == [expected[n] for n in found.numbers.tolist()]
    assert len(found.numbers) == 4  # two by words, two others by vectors


def test_more_documents_than_the_depth_are_found(monkeypatch):
    monkeypatch.setattr(hybrid, "DEPTH", 2)
    index = indexed([ArticleText(f"d{n}", "", "", f"storm {'b' * n}", "", "en") for n in range(8)], Letters())
    assert len(find(index, "storm", 7).hits) == 7
    assert titles(find(index, "storm", 7))[:1] == titles(find(index, "storm", 1))


def evidence(bm25, cosines, **facts):
    bm25, cosines = np.array(bm25, float), np.array(cosines, float)
    ranks = [np.argsort(np.argsort(-array, kind="stable")).astype(float) for array in (cosines, bm25)]
    values = {"length": 2, "rarity": 8.0, "known": 1.0, "foreign": np.arange(len(bm25)) % 2 == 1, **facts}
    return Evidence(np.arange(len(bm25)), cosines, 5 * cosines, bm25, *ranks, **values)


@pytest.mark.parametrize("weights", [DEFAULT, LATENT_SEMANTICS])
@pytest.mark.parametrize(("length", "rarity"), [(3, 20.0), (16, 80.0), (40, 300.0)])
def test_the_best_by_words_and_by_vectors_is_first_also_for_a_long_query(weights, length, rarity):
    found = evidence(
        [0.9 * rarity, 0.1 * rarity, 0.0], [0.9, 0.2, 0.1], length=length, rarity=rarity, foreign=np.zeros(3, bool)
    )
    assert weights.scores(found).argmax() == 0


def test_features_by_hand():
    one = evidence([4.0, 0.0], [0.5, 0.1], length=3)
    facts = [1.0, np.log(3), 0.8, 0.5, 0.5]
    kinds = [[-np.log(5), -np.log(6)], [-np.log(5), -np.log(6)], [2.5, 0.5], [0.5, 0.0], [0.0, 1.0]]
    expected = [[value * fact for kind in kinds for value in [kind[row]] for fact in facts] for row in range(2)]
    np.testing.assert_allclose(one.features(), expected)
    made = Ranking(np.arange(25) / 100, 2.0, np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), 7)
    offset = np.dot([*facts, 1.0], made.offsets)
    expected_scores = 1 / (1 + np.exp(-(2 * (np.array(expected) @ made.weights) + offset)))
    np.testing.assert_allclose(made.scores(one), expected_scores)
    again = Ranking.from_dict(json.loads(json.dumps(made.to_dict())))
    np.testing.assert_array_equal(again.scores(one), made.scores(one))
    assert again.queries == 7
    assert Ranking.from_dict(None) is DEFAULT


@pytest.mark.parametrize("right_by", ["words", "vectors"])
def test_what_finds_the_right_documents_gets_the_weight(right_by):
    generator = np.random.default_rng(0)
    found, without = [], []
    for _ in range(80):
        signal, noise = generator.permutation(10) / 10, generator.permutation(10) / 10
        pair = (10 * signal, noise) if right_by == "words" else (10 * noise, signal)
        found.append((evidence(*pair), signal == 0.9))
        without.append(evidence([0.0] * 10, noise, known=0.0))
    learned = learn(found, without)
    hits = [right[np.argmax(learned.scores(each))] for each, right in found]
    assert np.mean(hits) > 0.95
    others = [right[np.argmax(DEFAULT.scores(each))] for each, right in found]
    assert np.mean(hits) > np.mean(others)
    assert learned.queries == 80
    best = np.mean([learned.scores(each).max() for each, _ in found])
    assert max(learned.scores(each).max() for each in without) < best / 3
    np.testing.assert_array_equal(learn(found, without).weights, learned.weights)
    # The weights are where the likelihood is greatest, less a pull to the default that knows no unit of a feature.
    spread = np.concatenate([each.features() for each, _ in found]).std(axis=0)

    def value(weights):
        scores = [np.exp(each.features() @ weights) for each, _ in found]
        total = sum(np.log(one[right].sum() / one.sum()) for one, (_, right) in zip(scores, found, strict=True))
        return total - 0.5 * 0.01 * len(found) * np.sum((spread * (weights - DEFAULT.weights)) ** 2)

    varied = spread > 1e-6
    steps = np.diag(1e-4 / np.where(varied, spread, 1.0))[varied]
    slope = [(value(learned.weights + step) - value(learned.weights - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(slope, 0, atol=0.05)


def test_a_logistic_regression_is_at_the_maximum_of_its_likelihood():
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(200, 2))
    labels = rows @ [2.0, -1.0] + generator.logistic(size=200) > 0
    fitted = ranking._logistic_regression(rows, labels)
    np.testing.assert_allclose(fitted, [2.0, -1.0], atol=0.6)
    # The slope of the likelihood with its pull, over features whose largest value is 1.
    scale = np.abs(rows).max(axis=0)
    slope = (rows / scale).T @ (labels - 1 / (1 + np.exp(-rows @ fitted))) - 1e-3 * np.sqrt(200) * fitted * scale
    np.testing.assert_allclose(slope, 0, atol=1e-5)


def events(count):
    """Pairs of articles a day apart with words of their own, and vectors that say nothing."""
    generator = random.Random(0)
    names = ["".join(generator.choices("abcdefghij", k=7)) for _ in range(6 * count)]
    made = []
    for event in range(count):
        own = names[6 * event : 6 * event + 6]
        for side in range(2):
            body = " ".join([*generator.sample(own, 6), "common words of the day."])
            date = DAY + datetime.timedelta(30 * event + side)
            made.append(ArticleText(f"d{event}-{side}", "", "", " ".join(generator.sample(own, 3)), body, "en", date))
    return made


class Noise(Letters):
    """Vectors that do not depend on the text."""

    def encode(self, titles, bodies):
        rows = np.random.default_rng(len(titles)).normal(size=(len(titles), 26)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_an_index_learns_that_its_vectors_say_nothing():
    index = indexed(events(40), Noise())
    learned = tuning.learn_ranking(index, Noise())
    assert learned.queries > 70
    assert learned.to_dict() == tuning.learn_ranking(index, Noise()).to_dict()
    hits = 0
    for number in range(0, 80, 2):
        query = index.documents[number].title
        each = hybrid.evidence(index, index.read(query), Noise().encode_queries([query])[0], without=number)
        hits += each.numbers[np.argmax(learned.scores(each))] == number + 1
    assert hits == 40
    assert tuning.learn_ranking(indexed(ARTICLES, Letters()), Letters()) is None  # too few articles


@pytest.mark.parametrize(
    ("mode", "frequencies", "scores", "matches"),
    [
        ("hybrid", [0, 0], [0.009, 0.001], False),
        ("hybrid", [0, 0], [0.01, 0.001], True),  # by its vector
        ("hybrid", [0, 3], [0.001], True),  # a rare word is in a long article
        ("hybrid", [], [0.001], False),
        ("hybrid", [0, 3], [], False),
        ("vectors", [], [0.001], True),  # no evidence but the vector, and cosines have no least value
        ("words", [0], [], False),
    ],
)
def test_the_nearest_articles_need_not_match(index, mode, frequencies, scores, matches):
    hits = [Hit(rank, score, index.documents[rank]) for rank, score in enumerate(scores, 1)]
    words = tuple(QueryWord(str(place), (), frequency, 1.0) for place, frequency in enumerate(frequencies))
    assert hybrid.Found(hits, mode, words).matches is matches


def test_what_is_said_about_an_answer(index):
    assert find(index, "storm").notes == ()
    assert find(index, "storm zebra").notes == ("not in the index: zebra",)
    nothing = find(index, "xqz wvb", mode="words")
    assert (nothing.hits, nothing.notes) == ([], ("no word of the query is in the index: xqz, wvb",))
    (note,) = find(index, "🌊", mode="words").notes
    assert note == "the query has no letters or numbers, so that no word was searched"
    assert find(index, "a1 b1 c1 d1 e1 f1").notes[0].endswith("a1, b1, c1, d1, e1 and more")
    real, gibberish = find(index, "budget vote").hits[0].score, find(index, "xqz wvb").hits[0].score
    assert gibberish < real / 5


def test_results_show_where_the_words_are(index, capsys):
    import rich

    hit = find(index, "coasts storms", mode="words").hits[0]
    assert (hit.document.title, hit.extract.title) == ("Coast storm", ((0, 5), (6, 11)))
    assert hit.to_dict()["extract"] == "The wind of the storm."
    assert hit.to_dict()["extract_marks"] == [[16, 21]]
    console = rich.console.Console(force_terminal=True, width=100, color_system="standard")
    with console.capture() as captured:
        search.print_results([hit], console)
    assert "\x1b[1mCoast\x1b[0m \x1b[1mstorm\x1b[0m" in captured.get()
    assert "The wind of the \x1b[1mstorm\x1b[0m." in captured.get()


def test_filters(index):
    german = index.filters(languages=["DE-at"])
    assert titles(find(index, "wind", filters=german)) == ["Sturm an der Küste"]
    two = index.filters(publishers=["A.example", "c.example"])
    assert set(titles(find(index, "wind", filters=two))) == {TEXTS[n][0] for n in (0, 2, 3, 4)}
    assert find(index, "wind", mode="vectors", filters=two).hits[0].document.publisher != "b.example"
    nothing = index.filters(DateRange(until=DAY), ["de"])
    refuses("no article of the index passes all filters", find, index, "wind", filters=nothing)
    with pytest.raises(InputError, match="has a byline date in this range; it has dates from 2024-01-01 to 2024-01-05"):
        find(index, "wind", filters=Filters(DateRange(until=datetime.date(1999, 1, 1))))


# The command, the server and the Python interface


@pytest.fixture
def folder(tmp_path, monkeypatch):
    indexed(ARTICLES, Letters(), tmp_path / "index")
    monkeypatch.setattr(search, "index_encoder", lambda *_, **__: Letters())
    monkeypatch.setattr(index_command, "index_encoder", lambda *_, **__: Letters())
    return str(tmp_path / "index")


def test_the_command_searches_in_each_mode(folder, capsys, monkeypatch):
    for mode in ("hybrid", "vectors", "words"):
        assert run(search, "--index", folder, "--mode", mode, "--json", "budget zebra") == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out)[0]["title"] == "Budget vote"
        assert printed.err == "note: not in the index: zebra\n"
    assert run(search, "--index", folder, "xqz wvb") == 0
    assert "note: nothing matches; these are the nearest articles" in capsys.readouterr().err
    assert run(search, "--index", folder, "--json", "budget", "zebra") == 0, "as without quotes in a shell"
    quoted = capsys.readouterr()
    assert (json.loads(quoted.out)[0]["title"], quoted.err) == ("Budget vote", "note: not in the index: zebra\n")
    assert run(search, "--index", folder, "--json", "--publisher=c.example", "--language=de", "wind") == 0
    assert [hit["language"] for hit in json.loads(capsys.readouterr().out)] == ["de"]
    monkeypatch.setattr(search, "index_encoder", lambda *_, **__: pytest.fail("words need no encoder"))
    assert run(search, "--index", folder, "--mode=words", "xqz") == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "note: no word of the query is in the index: xqz\n")
    refuses("has the language 'dd'", run, search, "--index", folder, "--language=dd", "wind")
    assert run(search, "--index", folder, "https://a.example/0", "--language=de", "--json") == 0
    assert [hit["doc_id"] for hit in json.loads(capsys.readouterr().out)] == ["d3"]


def test_articles_are_added_by_the_command(folder, tmp_path, capsys):
    rows = [{"doc_id": "d2", "title": "known", "body": ""}, {"doc_id": "d9", "title": "Zebra", "body": "stripes"}]
    rows += [{"doc_id": "d8", "title": " ", "body": ""}, {"doc_id": "d9", "title": "Zebra, later", "body": ""}]
    write_rows(tmp_path / "today.jsonl", rows)
    undated = "without a date (byline_date or published_at, YYYY-MM-DD)"
    both = "1 with the URL or doc_id of another left out"
    first = f"1 with another text or date than before, {both}, 2 {undated}, 2 without a language, so"
    for added, before, others in (("1 article", 5, first), ("0 articles", 6, f"2 known already, {both}:")):
        options = ("--model=any", "--input", tmp_path / "today.jsonl", "--output", folder, "--append")
        assert run(index_command, *options) == 0
        assert f"{added} added to {before}, 1 without text left out, {others}" in capsys.readouterr().out
    found = find(DocumentIndex.load(folder), "zebra stripes", mode="words").hits
    assert [hit.document.doc_id for hit in found] == ["d9"]
    assert [hit.document.title for hit in find(DocumentIndex.load(folder), "known", mode="words").hits] == ["known"]
    refuses("--append: documents are read as the index says", run, index_command, *options, "--prompt=x")


def test_the_server_searches_in_each_mode(index):
    with client_of(server.Service(Letters(), index)) as client:
        assert client.get("/healthz").json()["modes"] == ["hybrid", "words", "vectors"]
        for mode in (None, "words", "vectors"):
            given = {"q": "budget zebra"} | ({"mode": mode} if mode else {})
            for reply in (client.get("/search", params=given), client.post("/search", json=given)):
                body = reply.json()
                assert (body["mode"], body["notes"]) == (mode or "hybrid", ["not in the index: zebra"])
                assert (body["hits"][0]["title"], body["matches"]) == ("Budget vote", True)
                assert body["hits"][0]["title_marks"] == [[0, 6]]
        some = client.get("/search", params={"q": "wind", "language": ["de", "en"], "publisher": "c.example"}).json()
        assert [hit["language"] for hit in some["hits"]] == ["de"]
        unknown = client.get("/search", params={"q": "wind", "publisher": "c.exampel"})
        assert unknown.status_code == 422
        assert "the index has c.example" in unknown.json()["detail"]
        nothing = client.get("/search", params={"q": "wind", "until": "1999-01-01"}).json()
        assert (nothing["hits"], nothing["matches"]) == ([], False)
        assert client.get("/search", params={"q": "xqz wvb"}).json()["matches"] is False
        assert "has a byline date in this range" in nothing["notes"][0]
        assert client.get("/search", params={"q": "wind", "mode": "magic"}).status_code == 422
        for query in ('"', "title:", "\x00", "AND", "🌊", "洪水 (", "^"):
            assert client.post("/search", json={"q": f"{query} wind"}).status_code == 200


def test_the_python_interface_has_the_same_options(folder):
    opened = api.open(folder)
    assert [hit.document.doc_id for hit in opened.search("vote", mode="words")] == ["d2"]
    assert {hit.document.language for hit in opened.search("wind", language="de", k=3)} == {"de"}
    several = opened.search("wind", publisher=["a.example", "b.example"], since="2024-01-02")
    assert {hit.document.doc_id for hit in several} == {"d1", "d2"}
    refuses("has the publisher 'z'", opened.search, "wind", publisher="z")
