"""newsembed label: which pairs are asked for, the file, the page, who may answer, and what the report computes."""

import collections
import datetime
import http.client
import json
import math
import socket
import threading
import types

import numpy as np
import pytest
from manifests import doc
from newsembed.beam_pipelines.shards import shard_of
from newsembed.beam_pipelines.triplets.evergreen import default_model, read_labels
from newsembed.beam_pipelines.triplets.table import DateStats
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Neighbor, Space
from newsembed.launch import cli
from newsembed.studies import label
from newsembed.studies.label.pairs import Pair, Question, Sampled, questions, read_pairs, read_work
from newsembed.studies.label.report import FOLDS, make_report
from newsembed.studies.label.server import TOKEN_HEADER, LabelServer
from newsembed.studies.label.session import Answer
from newsembed.tests import document_table
from refusals import refuses
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_score, recall_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

DOCUMENTS = 80
DAY = datetime.date(2020, 1, 1)


def pair(number, score=0.5, anchor=None, other=None):
    return Pair(anchor or doc(2 * number), other or doc(2 * number + 1), (0.5, math.nan, 0.5), 400, (0.0,) * 8, score)


def asked(number=0, score=0.5):
    return Question(pair(number, score), Sampled.UNCERTAIN)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A work folder: every article has neighbors a day, and two years, away; some articles are hard to date."""
    folder = tmp_path_factory.mktemp("work")
    draw = np.random.default_rng(3)
    articles, stats, neighbors = [], [], []
    for number in range(DOCUMENTS):
        day = DAY + datetime.timedelta(days=730 * (number % 2) + number // 2)
        url = f"http://p.example/{number}"
        body = f"The river of town{number // 2} rose.\nPeople \x1b[31mleft. " + "Water stood in the streets. " * 100
        texts = (f"p{number % 3}", f"Flood {number}", body, ("A B",))
        articles.append(Article(doc(number), url, *texts, day, language="en"))
        entropy, mass = draw.random(2)
        stats.append(DateStats(doc(number), f"p{number % 3}", language_of(number), entropy, mass, draw.random() / 2))
        for step in (1, 3, 5, 2):
            other = (number + step) % DOCUMENTS
            gap = 730 * (other % 2 - number % 2) + other // 2 - number // 2
            near = [(space, round(draw.random(), 3)) for space in (Space.ENTITY, Space.TEXT)]
            neighbors += [Neighbor(doc(number), doc(other), space, similarity, gap) for space, similarity in near]
    for index in range(2):
        place = f"part-{index:05d}-of-00002.parquet"
        parquet.write_shard(str(folder / "clean/articles" / place), articles[index::2], Article)
        own = [one for one in neighbors if shard_of(one.query, 2) == index]
        parquet.write_shard(str(folder / "neighbors/neighbors" / place), own, Neighbor)
    document_table.write_table(str(folder / "triplets/documents/table.npz"), stats)
    files.write_json(str(folder / "triplets/evergreen.json"), default_model().to_json())
    for name in ("clean", "neighbors"):
        files.write_json(str(folder / name / "manifest.json"), {"digest": f"digest of {name}"})
    options = {"min_negative_days": 365, "max_evergreen_score": 0.4}
    files.write_json(str(folder / "triplets/manifest.json"), {"digest": "digest of triplets", "options": options})
    return str(folder)


def language_of(number):
    return "de" if number >= DOCUMENTS - 6 else "en"


def options_of(work, output, **more):
    return label.OPTIONS(work=work, output=str(output), annotator="ann", **more)


def open_session(work, output, **more):
    """The session of a command, a context manager."""
    return label.open_session(read_work(work), options_of(work, output, **more))


def answer_all(session, decide=lambda question: question.pair.features[0] > 0.5):
    while (question := session.question) is not None:
        session.answer(Answer.SAME if decide(question) else Answer.DIFFERENT)


# Which pairs


def languages_asked(work, tmp_path, *languages):
    with open_session(work, tmp_path / "labels.tsv", count=1000, language=languages) as session:
        number = {doc(number): number for number in range(DOCUMENTS)}
        of_both = ({language_of(number[doc_id]) for doc_id in one.pair.both} for one in session.questions)
        return collections.Counter("-".join(sorted(both)) for both in of_both)


def test_pairs_across_languages_are_asked_only_of_those_who_read_both(work, tmp_path):
    alone = languages_asked(work, tmp_path)
    assert set(alone) == {"en", "de"}
    assert languages_asked(work, tmp_path, "de") == {"de": alone["de"]}
    both = languages_asked(work, tmp_path, "en", "de")
    assert {name: both[name] for name in alone} == alone
    assert both["de-en"] > 0


def test_languages_without_pairs_are_an_error_that_names_those_with_and_leaves_no_file(work, tmp_path):
    output = tmp_path / "labels.tsv"
    with pytest.raises(InputError, match="no pair has both articles in fr or it") as caught:
        label.run(options_of(work, output, language=("fr", "it")))
    assert "there are pairs in en (" in caught.value.remedy
    assert not output.exists()


def test_far_pairs_with_the_scores_of_the_filter(work):
    opened = read_work(work)
    assert (opened.threshold, opened.options.min_negative_days) == (0.4, 365)
    found, labelled = read_pairs(opened, {(doc(0), doc(2)), (doc(0), doc(9))})
    assert found
    assert all(abs(one.day_gap) >= 365 for one in found)
    assert len({(one.anchor, one.other) for one in found}) == len(found)
    assert [one.score for one in found] == opened.model.scores(np.array([one.features for one in found])).tolist()
    assert list(labelled) == [
        (doc(0), doc(2))
    ]  # near, so no candidate, but its features are known; 9 is not a neighbor of 0


def many_pairs():
    return [pair(number, score) for number, score in enumerate(np.linspace(0.0, 1.0, 201).tolist())]


def test_questions_are_the_same_for_a_seed_and_any_order_of_pairs():
    pairs = many_pairs()
    first = list(questions(pairs, 0.5, 1, 0.4))
    assert list(questions(pairs[::-1], 0.5, 1, 0.4)) == first
    assert list(questions(pairs, 0.5, 2, 0.4)) != first
    assert len(first) == len(pairs)


def test_uncertain_pairs_come_first_with_random_ones_between():
    chosen = list(questions(many_pairs(), 0.5, 0, 0.4))[:50]
    kinds = [one.sampled for one in chosen]
    assert [kinds.count(kind) for kind in Sampled] == [30, 10, 10]
    assert all(
        sum(kind is not Sampled.UNCERTAIN for kind in kinds[place : place + 5]) >= 2 for place in range(0, 50, 5)
    )
    distance = [abs(one.pair.score - 0.5) for one in chosen if one.sampled is Sampled.UNCERTAIN]
    assert distance == sorted(distance)
    assert max(distance) < 0.11
    assert all(one.pair.score > 0.5 for one in chosen if one.sampled is Sampled.DROPPED)
    spread = [one.pair.score for one in chosen if one.sampled is Sampled.KEPT]
    assert max(spread) <= 0.5
    assert min(spread) < 0.2
    assert {one.sampled for one in list(questions(many_pairs(), 0.5, 0, 0.0))[:100]} == {Sampled.UNCERTAIN}


def test_a_pair_is_asked_for_once_and_an_article_not_for_ever():
    both = [pair(0), pair(0, anchor=doc(1), other=doc(0))]
    assert len(list(questions(both, 0.5, 0, 0.4))) == 1
    hub = [pair(number, 0.5, anchor=doc(1000)) for number in range(1, 10)] + [pair(50, 0.1)]
    kinds = [(one.pair.anchor, one.sampled) for one in questions(hub, 0.5, 0, 0.0)]
    assert kinds[:3] == [(doc(1000), Sampled.UNCERTAIN)] * 2 + [(doc(100), Sampled.UNCERTAIN)]
    assert len(kinds) == 10


# The session


def test_undo_asks_again_and_takes_the_line_out(work, tmp_path):
    path = tmp_path / "labels.tsv"
    with open_session(work, path, count=5) as session:
        assert not session.undo()
        first = session.question
        session.answer(Answer.SAME)
        after_one = path.read_bytes()
        second = session.question
        session.answer(Answer.SKIP)
        progress = {"labels": 1, "wanted": 5, "same": 1, "different": 0, "skipped": 1, "answered": 2}
        assert session.state()["progress"] == progress
        assert session.undo()
        assert path.read_bytes() == after_one
        assert session.question == second
        assert session.undo()
        assert session.question == first
        session.answer(Answer.DIFFERENT)
        assert read_labels(str(path)) == {(first.pair.anchor, first.pair.other): 0}
        answer_all(session)
        assert session.question is None
        assert session.undo()  # the last answer can still be taken back
        assert session.question is not None


def test_an_interrupted_session_asks_the_same_questions_in_the_end(work, tmp_path):
    with open_session(work, tmp_path / "whole.tsv", count=12) as whole:
        answer_all(whole)
    for _ in range(3):
        with open_session(work, tmp_path / "parts.tsv", count=12) as session:
            for _ in range(4):
                session.answer(Answer.DIFFERENT)
    assert list(read_labels(str(tmp_path / "parts.tsv"))) == list(read_labels(str(tmp_path / "whole.tsv")))
    with open_session(work, tmp_path / "parts.tsv", count=12) as session:
        assert session.question is None


def test_what_is_shown(work, tmp_path):
    with open_session(work, tmp_path / "labels.tsv") as session:
        state = session.state()
    shown = state["question"]
    assert shown["day_gap"] >= 365
    assert set(shown["similarities"]) == {"entity", "image", "text"}
    assert shown["similarities"]["image"] is None
    text = json.dumps(state)
    assert "score" not in text  # it would answer for the annotator
    assert "\\u001b" not in text
    for side in shown["sides"]:
        assert side["publisher"].startswith("p")
        assert (side["cut"], len(side["paragraphs"])) == (True, 2)
        assert sum(map(len, side["paragraphs"])) <= 1600


# The page


class Browser:
    """Requests to a running server, with the right host and token unless told otherwise."""

    def __init__(self, server):
        self.port, self.token = server.port, server.token

    def __call__(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"Host": f"127.0.0.1:{self.port}", TOKEN_HEADER: self.token, "Connection": "close"}
        sent |= {"Content-Type": "application/json"} | headers
        sent = {name: value for name, value in sent.items() if value is not None}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, sent)
            reply = connection.getresponse()
            return reply.status, reply.read().decode(), reply.headers
        finally:
            connection.close()

    def json(self, *request, **headers):
        status, body, _ = self(*request, **headers)
        return status, json.loads(body)


@pytest.fixture
def page(work, tmp_path):
    with open_session(work, tmp_path / "labels.tsv", count=3) as session:
        server = LabelServer(session, 0)
        serving = threading.Thread(target=server.run)
        serving.start()
        path = str(tmp_path / "labels.tsv")
        yield types.SimpleNamespace(server=server, serving=serving, path=path, ask=Browser(server))
        server.finish()
        serving.join(10)


def test_answers_through_the_page(page):
    status, state = page.ask.json("GET", "/question")
    assert (status, state["progress"]["labels"], state["progress"]["wanted"]) == (200, 0, 3)
    expected = {}
    for answer, value in (("same", 1), ("different", 0)):
        pair = state["question"]["pair"]
        expected[tuple(pair)] = value
        status, state = page.ask.json("POST", "/answer", {"pair": pair, "answer": answer})
        assert status == 200
    assert read_labels(page.path) == expected
    assert (state["progress"]["same"], state["progress"]["different"]) == (1, 1)
    status, state = page.ask.json("POST", "/undo")
    assert (status, tuple(state["question"]["pair"])) == (200, list(expected)[1])
    assert len(read_labels(page.path)) == 1
    for answer in ("skip", "same", "same"):
        status, state = page.ask.json("POST", "/answer", {"pair": state["question"]["pair"], "answer": answer})
    assert state["question"] is None
    assert (state["progress"]["labels"], state["progress"]["skipped"]) == (3, 1)
    assert page.ask.json("POST", "/finish")[0] == 200
    page.serving.join(10)
    assert not page.serving.is_alive()


def test_answers_to_another_pair_or_of_another_form_change_nothing(page):
    _, state = page.ask.json("GET", "/question")
    pair = state["question"]["pair"]
    status, body = page.ask.json("POST", "/answer", {"pair": pair[::-1], "answer": "same"})
    assert (status, "reload the page" in body["detail"]) == (409, True)
    assert page.ask.json("POST", "/undo")[0] == 409
    good = {"pair": pair, "answer": "same"}
    for body in (good | {"answer": "yes"}, {"pair": pair}, good | {"pair": pair[:1]}, good | {"x": 1}, []):
        assert page.ask("POST", "/answer", body)[0] == 422
    assert page.ask("GET", "/docs")[0] == 404
    assert page.ask("GET", "/answer")[0] == 405
    assert read_labels(page.path) == {}


def test_a_wrong_host_or_token_is_refused(page):
    body = {"pair": page.ask.json("GET", "/question")[1]["question"]["pair"], "answer": "same"}
    for headers in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{page.server.port}"},
        {"Host": "127.0.0.1:1"},
        {TOKEN_HEADER: "wrong"},
        {TOKEN_HEADER: None},
        {TOKEN_HEADER: "\xe9"},
    ):
        for method, path in (("POST", "/answer"), ("POST", "/undo"), ("POST", "/finish"), ("GET", "/question")):
            status, reply = page.ask.json(method, path, body if path == "/answer" else None, **headers)
            assert status == 403
            assert "that newsembed label printed" in reply["detail"]
    assert page.ask("POST", f"/answer?token={page.server.token}", body, **{TOKEN_HEADER: None})[0] == 403
    assert page.ask("GET", "/?token=wrong")[0] == 403
    assert page.ask("GET", "/")[0] == 403
    assert read_labels(page.path) == {}
    assert page.ask("POST", "/answer", body, Host=f"localhost:{page.server.port}")[0] == 200


def test_the_page_is_whole_and_closed_and_on_loopback(page):
    assert page.server.socket.getsockname()[0] == "127.0.0.1"
    path = page.server.address.partition(f":{page.server.port}")[2]
    status, text, headers = page.ask("GET", path, **{TOKEN_HEADER: None})
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    nonce = headers["Content-Security-Policy"].partition("'nonce-")[2].partition("'")[0]
    assert text.count(f'nonce="{nonce}"') == 2
    assert headers["Cache-Control"] == "no-store"
    assert page.server.token not in text
    for outside in (' src="', "@import", 'href="http', "innerHTML", "{{"):  # alone, and titles enter as text only
        assert outside not in text


# The report


def labelled_file(work, path):
    """Every candidate labelled, mostly by the entropy of its articles."""
    draw = np.random.default_rng(0)
    with open_session(work, path, count=1000) as session:
        answer_all(session, lambda question: sum(question.pair.features[:2]) + draw.normal(0, 0.3) > 1.2)
    return read_labels(str(path))


def test_the_report_by_hand(work, tmp_path):
    known = labelled_file(work, tmp_path / "labels.tsv")
    opened = read_work(work)
    report = make_report(opened, str(tmp_path / "labels.tsv"), seed=7)
    found, labelled = read_pairs(opened, known)
    features = np.array([labelled[one].features for one in sorted(known)])
    labels = np.array([known[one] for one in sorted(known)])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=7)
    regression = LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000)
    held_out = cross_val_predict(regression, features, labels, cv=folds, method="predict_proba")[:, 1]
    every = np.array([one.features for one in found])
    measured = (precision_score(labels, held_out > 0.4), recall_score(labels, held_out > 0.4))
    dropped = np.mean(regression.fit(features, labels).predict_proba(every)[:, 1] > 0.4)
    fitted, default = report.filters.values()
    assert fitted == (*measured, pytest.approx(average_precision_score(labels, held_out)), dropped)
    by_default = default_model().scores(features)
    assert default[2] == pytest.approx(average_precision_score(labels, by_default))
    assert default[3] == np.mean(default_model().scores(every) > 0.4)
    assert report.used == len(known) == report.counts[-1][1]
    assert report.counts[-1][2] == sum(known.values()) == sum(same for _, _, same in report.counts[:-1])
    assert [name for name, _, _ in report.counts] == ["uncertain", "dropped", "kept", "all"]


def test_too_few_labels_of_a_kind(work, tmp_path):
    path = tmp_path / "labels.tsv"
    candidates, _ = read_pairs(read_work(work))
    rows = [f"{one.anchor}\t{one.other}\t{int(number < 4)}" for number, one in enumerate(candidates[:40])]
    path.write_text("\n".join(rows))
    with pytest.raises(InputError, match=r"got 4 false negatives \(1\) among 40 labels, expected at least 5"):
        make_report(read_work(work), str(path), 0)
    path.write_text("\n".join(row[:-1] + "1" for row in rows))
    refuses(r"got 0 true negatives \(0\)", make_report, read_work(work), str(path), 0)
    path.write_text("\n".join(f"{doc(1000 + number)}\t{doc(number)}\t{number % 2}" for number in range(40)))
    refuses("none of the labelled pairs is among the neighbors", make_report, read_work(work), str(path), 0)


# The command


def command(work, output, *more):
    return cli.main(["label", "--work", work, "--output", str(output), "--annotator", "ann", *more])


def test_the_report_of_the_command(work, tmp_path, capsys):
    path = tmp_path / "labels.tsv"
    with open_session(work, path, count=40) as session:
        for number in range(40):
            session.answer(Answer.SAME if number % 2 else Answer.DIFFERENT)
    assert command(work, path, "--count", "40") == 0  # nothing is asked once the count is reached
    shown = capsys.readouterr().out
    assert "fitted, 5-fold" in shown
    assert f"--labels {path}" in shown
    assert command(work, path, "--report") == 0
    shown = capsys.readouterr().out
    assert "the filter on 40 labels, threshold 0.4" in shown
    assert "at random, kept by the filter" in shown


def test_the_command_serves_the_page_until_it_is_finished(work, tmp_path, monkeypatch, capsys):
    class Finished(LabelServer):
        def run(self):
            browser = Browser(self)

            def answer():
                pair = browser.json("GET", "/question")[1]["question"]["pair"]
                assert browser("POST", "/answer", {"pair": pair, "answer": "same"})[0] == 200
                assert browser("POST", "/finish")[0] == 200

            threading.Thread(target=answer).start()
            super().run()

    monkeypatch.setattr("newsembed.studies.label.server.LabelServer", Finished)
    assert command(work, tmp_path / "labels.tsv", "--port", "0") == 0
    shown = capsys.readouterr().out
    assert "open http://127.0.0.1:" in shown
    assert "1 of 300 labels; run the same command to add more" in shown
    assert "no cross-validation yet: got 1 false negatives" in shown
    assert list(read_labels(str(tmp_path / "labels.tsv")).values()) == [1]


def test_ctrl_c_keeps_the_answers_and_shows_the_counts(work, tmp_path, monkeypatch, capsys):
    class Stopped(LabelServer):
        def run(self):
            raise KeyboardInterrupt

    monkeypatch.setattr("newsembed.studies.label.server.LabelServer", Stopped)
    assert command(work, tmp_path / "labels.tsv", "--port", "0") == 0
    assert "stopped; run the same command again to resume" in capsys.readouterr().out


def test_user_errors(work, tmp_path, capsys, refused, monkeypatch):
    path = tmp_path / "labels.tsv"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert command(work, path, "--port", str(port)) == 2
        assert f"--port: got {port}: Address already in use" in capsys.readouterr().err
    assert command(work, path, "--report", "--output", str(tmp_path / "none.tsv")) == 2
    assert "label some pairs first" in capsys.readouterr().err
    assert command(str(tmp_path / "nowhere"), path) == 2
    assert "nowhere/clean: no such file or folder" in capsys.readouterr().err
    monkeypatch.setattr("getpass.getuser", lambda: {}["no name"])
    assert "--annotator: this login has no name" in refused("label", "--work", work, "--output", str(path))
