"""newsembed label: which pairs are asked for, the file, both ways to answer, who may, and what the report computes."""

import argparse
import collections
import dataclasses
import datetime
import errno
import fcntl
import http.client
import io
import json
import math
import os
import pty
import socket
import termios
import threading
import types

import numpy as np
import pytest
from newsembed.beam_pipelines import triplets
from newsembed.beam_pipelines.shards import shard_of
from newsembed.beam_pipelines.triplets.dates import DateStats
from newsembed.beam_pipelines.triplets.evergreen import EvergreenModel, default_model, fit_model, read_labels
from newsembed.errors import InputError
from newsembed.formats import files, parquet
from newsembed.formats.records import Article, Neighbor, Space, make_doc_id
from newsembed.launch import cli
from newsembed.studies import label
from newsembed.studies.label.pairs import Pair, read_pairs, read_work, readable_pairs
from newsembed.studies.label.report import FOLDS, cross_validated, make_report
from newsembed.studies.label.sample import Question, Sampled, questions
from newsembed.studies.label.server import TOKEN_HEADER, LabelServer
from newsembed.studies.label.session import Session
from newsembed.studies.label.store import FORMAT, Answer, LabelFile
from newsembed.studies.label.terminal import run_terminal, single_keys
from newsembed.studies.label.texts import Text, common_words, read_texts, segments, shared_words
from newsembed.tests import document_table
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_score, recall_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

DOCUMENTS = 80
DAY = datetime.date(2020, 1, 1)


def doc(number):
    return make_doc_id(f"http://p.example/{number}")


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
        articles.append(
            Article(doc(number), url, f"p{number % 3}", f"Flood {number}", body, ("A B",), day, language="en")
        )
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
        parquet.write_shard(
            str(folder / "neighbors/neighbors" / place),
            [one for one in neighbors if shard_of(one.query, 2) == index],
            Neighbor,
        )
    document_table.write_table(str(folder / "triplets/documents/table.npz"), stats)
    files.write_json(str(folder / "triplets/evergreen.json"), default_model().to_json())
    for name in ("clean", "neighbors"):
        files.write_json(str(folder / name / "manifest.json"), {"digest": f"digest of {name}"})
    options = {"min_negative_days": 365, "max_evergreen_score": 0.4, "of_an_older_version": 1}
    files.write_json(str(folder / "triplets/manifest.json"), {"digest": "digest of triplets", "options": options})
    return str(folder)


def language_of(number):
    return "de" if number >= DOCUMENTS - 6 else "en"


def arguments(work, output, *more):
    parser = argparse.ArgumentParser()
    label.add_arguments(parser)
    return parser.parse_args(["--work", work, "--output", str(output), "--annotator", "ann", *more])


def open_session(work, output, *more):
    """(session, file), both open."""
    args = arguments(work, output, *more)
    opened = read_work(work)
    file = LabelFile(str(output), args.annotator, label.origin(opened, args))
    pairs = readable_pairs(opened, read_pairs(opened)[0], args.language)
    return label._session(opened, pairs, file, args), file


def answer_all(session, decide=lambda question: question.pair.features[0] > 0.5):
    while (question := session.question) is not None:
        session.answer(Answer.SAME if decide(question) else Answer.DIFFERENT)


# Which pairs


def languages_asked(work, tmp_path, *more):
    session, file = open_session(work, tmp_path / "labels.tsv", "--count", "1000", *more)
    with file:
        number = {doc(number): number for number in range(DOCUMENTS)}
        return collections.Counter(
            "-".join(sorted({language_of(number[doc_id]) for doc_id in one.pair.both})) for one in session._questions
        )


def test_pairs_across_languages_are_asked_only_of_those_who_read_both(work, tmp_path):
    alone = languages_asked(work, tmp_path)
    assert set(alone) == {"en", "de"}
    assert languages_asked(work, tmp_path, "--language", "de") == {"de": alone["de"]}
    both = languages_asked(work, tmp_path, "--language", "en", "de")
    assert {name: both[name] for name in alone} == alone
    assert both["de-en"] > 0


def test_languages_without_pairs_are_an_error_that_names_those_with(work):
    opened = read_work(work)
    with pytest.raises(InputError, match="no pair has both articles in fr or it") as caught:
        readable_pairs(opened, read_pairs(opened)[0], ["fr", "it"])
    assert "there are pairs in en (" in caught.value.remedy


def test_an_error_before_the_first_question_leaves_no_file(work, tmp_path):
    output = tmp_path / "labels.tsv"
    with pytest.raises(InputError, match="no pair has both articles in fr"):
        label.run(arguments(work, output, "--language", "fr"))
    assert not output.exists()


def test_pictures_are_shown_where_the_thumbnails_are_near():
    texts = {name: dataclasses.replace(text_of(name), image_url=f"http://p.example/{name}.jpg") for name in "ab"}
    near = Pair("a", "b", (0.5, 0.9, 0.5, math.nan), 400, (0.0,) * 8, 0.5)
    far = dataclasses.replace(near, similarities=(0.5, math.nan, 0.5, math.nan))
    shown = {}
    for name, one in (("near", near), ("far", far)):
        file = types.SimpleNamespace(labels={}, skipped=())
        sides = Session([Question(one, Sampled.KEPT)], texts, file, 5).shown().sides
        shown[name] = [side.image_url for side in sides]
    assert shown == {"near": ["http://p.example/a.jpg", "http://p.example/b.jpg"], "far": ["", ""]}


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


def test_many_anchors_are_sampled(work, monkeypatch):
    every, _ = read_pairs(read_work(work))
    monkeypatch.setattr("newsembed.studies.label.pairs._MAX_ANCHORS", DOCUMENTS // 4)
    some, _ = read_pairs(read_work(work))
    anchors = {one.anchor for one in some}
    assert 0 < len(anchors) < DOCUMENTS // 2
    assert str(some) == str([one for one in every if one.anchor in anchors])  # NaN is not equal to itself


def test_a_threshold_that_keeps_all_has_its_uncertain_pairs_at_a_half(work):
    opened = read_work(work)
    options = triplets.TripletsOptions(max_evergreen_score=1.0)
    assert type(opened)(opened.path, opened.digests, options, opened.model, opened.table).threshold == 0.5


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


# The file


def test_the_file_holds_labels_with_provenance_that_triplets_reads(work, tmp_path):
    path = tmp_path / "new" / "labels.tsv"
    with LabelFile(str(path), "Ann Otator", ["code_version 9", "clean x"]) as file:
        file.add(asked(0), Answer.SAME)
        file.add(asked(1, 0.123456), Answer.DIFFERENT)
        file.add(asked(2), Answer.SKIP)
    lines = path.read_text().splitlines()
    assert lines[:3] == [FORMAT, "# code_version 9", "# clean x"]
    assert lines[3].startswith("# anchor\tother\tlabel\t")
    anchor, other, value, annotator, time, score, sampled = lines[5].split("\t")
    assert (anchor, other, value, annotator, score, sampled) == (
        doc(2),
        doc(3),
        "0",
        "Ann Otator",
        "0.1235",
        "uncertain",
    )
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(time)
    assert datetime.timedelta() <= age < datetime.timedelta(minutes=5)
    assert lines[6].startswith(f"# skipped\t{doc(4)}\t{doc(5)}\tAnn Otator")
    assert read_labels(str(path)) == {(doc(0), doc(1)): 1, (doc(2), doc(3)): 0}


def test_each_answer_is_synced_before_add_returns(tmp_path, monkeypatch):
    path, synced = tmp_path / "labels.tsv", []
    monkeypatch.setattr("os.fsync", lambda _: synced.append(path.read_text()))
    with LabelFile(str(path), "ann", []) as file:
        file.add(asked(0), Answer.SAME)
        assert doc(0) in synced[-1]
        file.undo(asked(0))
        assert doc(0) not in synced[-1]


def test_an_answer_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "labels.tsv"
    with LabelFile(str(path), "ann", []) as file:
        file.add(asked(0), Answer.SAME)
        before = path.read_bytes()

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(InputError, match="not saved: No space left"):
                file.add(asked(1), Answer.SAME)
        assert path.read_bytes() == before
        assert not file.knows(asked(1).pair.both)
        file.add(asked(1), Answer.DIFFERENT)
    assert list(read_labels(str(path)).values()) == [1, 0]


def test_a_file_is_continued_and_other_inputs_are_noted(tmp_path):
    path = tmp_path / "labels.tsv"
    for origin, number in (("clean x", 0), ("clean x", 1), ("clean y", 2)):
        with LabelFile(str(path), "ann", [origin]) as file:
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
    with LabelFile(str(path), "ann", []) as file:
        assert file.knows(asked(0).pair.both)
        file.add(asked(1), Answer.SKIP)
    with LabelFile(str(path), "ann", []) as file:
        assert file.knows(asked(1).pair.both)
        assert len(file.labels) == 1
    assert read_labels(str(path)) == {(doc(1), doc(0)): 1}


def test_a_torn_last_line_is_cut_off(tmp_path):
    path = tmp_path / "labels.tsv"
    with LabelFile(str(path), "ann", []) as file:
        file.add(asked(0), Answer.SAME)
    whole = path.read_text()
    path.write_text(f"{whole}{doc(2)[:7]}")
    with LabelFile(str(path), "ann", []) as file:
        assert len(file.labels) == 1
    assert path.read_text() == whole


def test_files_that_cannot_be_used(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("a b 1\n")
    with pytest.raises(InputError, match=r"labels\.tsv:1: --labels: got 'a b 1'"):
        LabelFile(str(path), "ann", [])
    path.write_bytes(b"a\tb\t1\t\xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        LabelFile(str(path), "ann", [])
    path.write_text("")
    in_use = "another newsembed label is writing this file"
    with LabelFile(str(path), "ann", []), pytest.raises(InputError, match=in_use):
        LabelFile(str(path), "bob", [])
    with pytest.raises(InputError, match="cannot be written"):
        LabelFile(str(tmp_path), "ann", [])
    with pytest.raises(InputError, match="expected a local file"):
        LabelFile("gs://bucket/labels.tsv", "ann", [])
    for name in ("", "a\tb", "a\nb", "#a"):
        with pytest.raises(InputError, match="--annotator"):
            LabelFile(str(path), name, [])
    with open(path) as free:  # what failed holds no lock
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


# The session


def test_undo_asks_again_and_takes_the_line_out(work, tmp_path):
    path = tmp_path / "labels.tsv"
    session, file = open_session(work, path, "--count", "5")
    with file:
        assert not session.undo()
        first = session.question
        session.answer(Answer.SAME)
        after_one = path.read_bytes()
        second = session.question
        session.answer(Answer.SKIP)
        assert session.progress() == {"labels": 1, "wanted": 5, "same": 1, "different": 0, "skipped": 1, "answered": 2}
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
    whole, file = open_session(work, tmp_path / "whole.tsv", "--count", "12")
    with file:
        answer_all(whole)
    for _ in range(3):
        session, file = open_session(work, tmp_path / "parts.tsv", "--count", "12")
        with file:
            for _ in range(4):
                session.answer(Answer.SAME)
    assert list(read_labels(str(tmp_path / "parts.tsv"))) == list(read_labels(str(tmp_path / "whole.tsv")))
    session, file = open_session(work, tmp_path / "parts.tsv", "--count", "12")
    with file:
        assert session.question is None
        with pytest.raises(IndexError):
            session.answer(Answer.SAME)


def test_what_is_shown(work, tmp_path):
    session, file = open_session(work, tmp_path / "labels.tsv")
    with file:
        shown = session.shown()
        state = json.dumps(session.state())
    assert shown.day_gap >= 365
    assert set(shown.similarities) == {"entity", "image", "text", "learned"}
    assert shown.similarities["image"] is None
    assert "score" not in state  # it would answer for the annotator
    assert "\\u001b" not in state  # a body must not steer the terminal
    for side in shown.sides:
        assert side.publisher.startswith("p")
        assert side.cut
        assert len(side.paragraphs) == 2
        assert sum(len(text) for paragraph in side.paragraphs for text, _ in paragraph) <= 1600


def text_of(title, body="", language="en"):
    return Text("", "p", title, (body,), False, "2020-01-01", language)


def test_shared_words_but_not_those_that_all_articles_share():
    left, right = text_of("The Flood of Tollbach", "water"), text_of("Tollbach: the flood", "fire")
    assert shared_words(left, right, {}) == {"the", "flood", "tollbach"}
    many = [left, right, *(text_of(f"the{'' if number % 2 else ' flood'} x{number}") for number in range(30))]
    common = common_words([*many, *(text_of("Tollbach", language="de") for _ in range(30))])
    assert common == {"en": {"the", "flood"}, "de": {"tollbach"}}
    assert shared_words(left, right, common) == {"tollbach"}
    assert common_words([left, right]) == {"en": set()}  # of two articles nothing can be said
    assert segments("The Flood, the end", {"flood"}) == [("The ", False), ("Flood", True), (", the end", False)]
    assert segments("nothing", set()) == [("nothing", False)]
    assert segments("Flood", {"flood"}) == [("Flood", True)]
    assert segments("", {"flood"}) == []


def test_texts_of_the_wanted_articles_only(work):
    assert set(read_texts(f"{work}/clean/articles", {doc(1), doc(2), "none"})) == {doc(1), doc(2)}


# The page


class Browser:
    """Requests to a running server, with the right host and token unless told otherwise."""

    def __init__(self, server):
        self.port, self.token = server.port, server.token

    def __call__(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            TOKEN_HEADER: self.token,
            "Content-Type": "application/json",
            "Connection": "close",
        }
        sent = {name: value for name, value in (sent | headers).items() if value is not None}
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
    session, file = open_session(work, tmp_path / "labels.tsv", "--count", "3")
    with file, LabelServer(session, 0) as server:
        yield types.SimpleNamespace(
            server=server, session=session, path=str(tmp_path / "labels.tsv"), ask=Browser(server)
        )


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
    waiting = threading.Thread(target=page.server.wait)
    waiting.start()
    assert page.ask.json("POST", "/finish")[0] == 200
    waiting.join(10)
    assert not waiting.is_alive()


def test_answers_to_another_pair_or_of_another_form_change_nothing(page):
    _, state = page.ask.json("GET", "/question")
    pair = state["question"]["pair"]
    status, body = page.ask.json("POST", "/answer", {"pair": pair[::-1], "answer": "same"})
    assert (status, "reload the page" in body["detail"]) == (409, True)
    assert page.ask.json("POST", "/undo")[0] == 409
    for body in (
        {"pair": pair, "answer": "yes"},
        {"pair": pair},
        {"pair": pair[:1], "answer": "same"},
        {"pair": pair, "answer": "same", "x": 1},
        [],
    ):
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


def test_the_page_is_whole_and_closed(page):
    status, text, headers = page.ask(
        "GET", page.server.address.partition(f":{page.server.port}")[2], **{TOKEN_HEADER: None}
    )
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    nonce = headers["Content-Security-Policy"].partition("'nonce-")[2].partition("'")[0]
    assert text.count(f'nonce="{nonce}"') == 2
    assert headers["Cache-Control"] == "no-store"
    assert page.server.token not in text
    for outside in (
        ' src="',
        "@import",
        'href="http',
        "innerHTML",
        "{nonce}",
    ):  # self-contained, and titles enter as text only
        assert outside not in text


def test_a_full_disk_is_told_on_the_page(page, monkeypatch):
    pair = page.ask.json("GET", "/question")[1]["question"]["pair"]

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("newsembed.studies.label.store.os.fsync", full)
    status, body = page.ask.json("POST", "/answer", {"pair": pair, "answer": "same"})
    assert (status, "No space left" in body["detail"]) == (500, True)
    monkeypatch.undo()
    assert page.ask.json("GET", "/question")[1]["question"]["pair"] == pair


def test_it_listens_on_loopback_and_a_taken_port_is_a_clear_error(page):
    assert page.server._socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(InputError, match=f"--port: port {page.server.port} is in use") as caught:
        LabelServer(page.session, page.server.port)
    assert "0 for any free one" in caught.value.remedy
    with pytest.raises(InputError, match="expected 0 to 65535"):
        LabelServer(page.session, 70_000)


# The terminal


def test_answers_through_the_terminal(work, tmp_path):
    path = tmp_path / "labels.tsv"
    session, file = open_session(work, path, "--count", "3")
    out = io.StringIO()
    with file:
        # undo with nothing to undo, an unknown key, an answer, its undo, and three answers with a skip between
        run_terminal(session, iter("ux1u0s1\n1").__next__, Console(file=out, width=100))
    assert list(read_labels(str(path)).values()) == [0, 1, 1]
    shown = out.getvalue()
    assert "nothing to undo" in shown
    assert "0 of 3 · 0 same" in shown
    assert "2 of 3 · 1 same" in shown
    assert "Flood" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("keys", ["1q1", "1"])  # quit, and the end of standard input
def test_the_terminal_stops(work, tmp_path, keys, monkeypatch):
    session, file = open_session(work, tmp_path / "labels.tsv")
    monkeypatch.setattr("sys.stdin", io.StringIO(keys))
    with file, single_keys() as read_key:
        run_terminal(session, read_key, Console(file=io.StringIO(), width=100))
    assert len(read_labels(str(tmp_path / "labels.tsv"))) == 1


def test_keys_of_a_real_terminal_need_no_enter(monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard, os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        before = termios.tcgetattr(stdin)
        with single_keys() as read_key:
            keyboard.write(b"1")
            assert read_key() == "1"
            assert termios.tcgetattr(stdin) != before
        assert termios.tcgetattr(stdin) == before


# The report


def labelled_file(work, path):
    """Every candidate labelled, mostly by the entropy of its articles."""
    draw = np.random.default_rng(0)
    session, file = open_session(work, path, "--count", "1000")
    with file:
        answer_all(session, lambda question: sum(question.pair.features[:2]) + draw.normal(0, 0.3) > 1.2)
    return read_labels(str(path))


def test_cross_validation_is_that_of_sklearn():
    draw = np.random.default_rng(5)
    features = draw.random((200, 8))
    truth = features @ draw.normal(size=8) + draw.normal(0, 0.4, 200)
    labels = (truth > np.quantile(truth, 0.8)).astype(int)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=7)
    regression = LogisticRegression(C=1.0, class_weight="balanced", max_iter=1000)
    expected = cross_val_predict(regression, features, labels, cv=folds, method="predict_proba")[:, 1]
    np.testing.assert_allclose(cross_validated(features, labels, 7), expected, atol=1e-9)


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
    fitted, default = report.qualities
    assert fitted.precision == precision_score(labels, held_out > 0.4)
    assert fitted.recall == recall_score(labels, held_out > 0.4)
    assert fitted.average_precision == pytest.approx(average_precision_score(labels, held_out))
    assert fitted.dropped == np.mean(regression.fit(features, labels).predict_proba(every)[:, 1] > 0.4)
    by_default = default_model().scores(np.array(features))
    assert default.average_precision == pytest.approx(average_precision_score(labels, by_default))
    assert default.dropped == np.mean(default_model().scores(np.array(every)) > 0.4)
    assert report.used == len(known) == report.counts[-1][1]
    assert report.counts[-1][2] == sum(known.values()) == sum(same for _, _, same in report.counts[:-1])
    assert [name for name, _, _ in report.counts] == ["uncertain", "dropped", "kept", "all"]


def test_triplets_fits_the_regression_that_the_report_measured(work, tmp_path):
    known = labelled_file(work, tmp_path / "labels.tsv")
    folder = tmp_path / "triplets"
    (folder / "documents").mkdir(parents=True)
    with files.open_read(f"{work}/triplets/documents/table.npz") as source:
        (folder / "documents/table.npz").write_bytes(source.read())
    shard = types.SimpleNamespace(workspace=str(folder))
    triplets._prepare_filter(shard, parquet.shard_paths(f"{work}/neighbors/neighbors"), str(tmp_path / "labels.tsv"))
    written = EvergreenModel.from_json(files.read_json(f"{folder}/evergreen.json"), "")
    _, labelled = read_pairs(read_work(work), known)
    features = np.array([labelled[one].features for one in sorted(known)])
    fitted = fit_model(features, [known[one] for one in sorted(known)], "")
    np.testing.assert_allclose(written.weights, fitted.weights, atol=1e-9)


def test_too_few_labels_of_a_kind(work, tmp_path):
    path = tmp_path / "labels.tsv"
    candidates, _ = read_pairs(read_work(work))
    rows = [f"{one.anchor}\t{one.other}\t{int(number < 4)}" for number, one in enumerate(candidates[:40])]
    path.write_text("\n".join(rows))
    with pytest.raises(InputError, match=r"got 4 false negatives \(1\) among 40 labels, expected at least 5"):
        make_report(read_work(work), str(path), 0)
    path.write_text("\n".join(row[:-1] + "1" for row in rows))
    with pytest.raises(InputError, match=r"got 0 true negatives \(0\)"):
        make_report(read_work(work), str(path), 0)
    path.write_text("\n".join(f"{doc(1000 + number)}\t{doc(number)}\t{number % 2}" for number in range(40)))
    with pytest.raises(InputError, match="none of the labelled pairs is among the neighbors"):
        make_report(read_work(work), str(path), 0)


# The command


def command(work, output, *more):
    return cli.main(["label", "--work", work, "--output", str(output), "--annotator", "ann", *more])


def test_the_command_in_the_terminal_and_its_report(work, tmp_path, monkeypatch, capsys):
    path = tmp_path / "labels.tsv"
    monkeypatch.setattr("sys.stdin", io.StringIO("10" * 20))
    assert command(work, path, "--terminal", "--count", "40") == 0
    shown = capsys.readouterr().out
    assert "fitted, 5-fold" in shown
    assert f"--labels {path}" in shown
    assert sorted(read_labels(str(path)).values()) == [0] * 20 + [1] * 20
    assert command(work, path, "--report") == 0
    shown = capsys.readouterr().out
    assert "the filter on 40 labels, threshold 0.4" in shown
    assert "at random, kept by the filter" in shown
    monkeypatch.setattr("sys.stdin", None)  # nothing is asked once the count is reached
    assert command(work, path, "--terminal", "--count", "40") == 0


def test_a_short_session_ends_with_counts_and_no_error(work, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("10q"))
    assert command(work, tmp_path / "labels.tsv", "--terminal") == 0
    shown = capsys.readouterr().out
    assert "2 of 300 labels; run the same command to add more" in shown
    assert "no cross-validation yet: got 1 false negatives" in shown


def test_the_command_serves_the_page_until_it_is_finished(work, tmp_path, monkeypatch, capsys):
    class Finished(LabelServer):
        def wait(self):
            browser = Browser(self)
            pair = browser.json("GET", "/question")[1]["question"]["pair"]
            assert browser("POST", "/answer", {"pair": pair, "answer": "same"})[0] == 200
            assert browser("POST", "/finish")[0] == 200
            super().wait()

    monkeypatch.setattr("newsembed.studies.label.server.LabelServer", Finished)
    assert command(work, tmp_path / "labels.tsv", "--port", "0") == 0
    assert "open http://127.0.0.1:" in capsys.readouterr().out
    assert list(read_labels(str(tmp_path / "labels.tsv")).values()) == [1]


def test_ctrl_c_keeps_the_answers_and_shows_the_counts(work, tmp_path, monkeypatch, capsys):
    class Stopped(LabelServer):
        def wait(self):
            raise KeyboardInterrupt

    monkeypatch.setattr("newsembed.studies.label.server.LabelServer", Stopped)
    assert command(work, tmp_path / "labels.tsv", "--port", "0") == 0
    assert "stopped; run the same command again to resume" in capsys.readouterr().out


def test_user_errors(work, tmp_path, capsys, monkeypatch):
    path = tmp_path / "labels.tsv"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert command(work, path, "--port", str(port)) == 2
        assert f"--port: port {port} is in use by another program" in capsys.readouterr().err
    for more, message in (
        (["--count", "0"], "--count: got 0"),
        (["--random_share", "1.5"], "--random_share: got 1.5"),
        (["--report", "--output", str(tmp_path / "none.tsv")], "label some pairs first"),
    ):
        assert command(work, path, *more) == 2
        assert message in capsys.readouterr().err
    assert command(str(tmp_path / "nowhere"), path) == 2
    assert "nowhere/clean: no such file or folder" in capsys.readouterr().err

    def nameless():
        raise OSError("No username set in the environment")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert cli.main(["label", "--work", work, "--output", str(path)]) == 2
    assert "--annotator: this login has no name" in capsys.readouterr().err


def test_a_corpus_of_one_month_has_nothing_to_label(work, tmp_path):
    opened = read_work(work)
    options = triplets.TripletsOptions(min_negative_days=5000)
    with pytest.raises(InputError, match="no two neighbors are 5000 days apart"):
        read_pairs(type(opened)(opened.path, opened.digests, options, opened.model, opened.table))
