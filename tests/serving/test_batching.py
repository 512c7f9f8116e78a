"""Requests share calls of the encoder, and each gets the vectors that it would get alone."""

import asyncio
import os
import threading
from concurrent.futures import CancelledError, wait

import numpy as np
import pytest
from letters import Letters
from newsembed.formats.articles import ArticleText
from newsembed.serving.batching import Batcher, BatchOptions
from newsembed.serving.bodies import SearchRequest
from newsembed.serving.gate import RefusedError
from newsembed.serving.service import Service
from tables import indexed

HANG = 60  # seconds; whoever waits this long has failed
WORDS = ["storm", "rain", "budget", "vote", "cup", "match", "goal", "wind"]


class Recorded(Letters):
    """Notes its calls; while `go` is not set, a call waits. A text "bad" makes it fail."""

    def __init__(self):
        self.go, self.started = threading.Event(), threading.Event()
        self.go.set()
        self.queries, self.documents = [], []

    def encode(self, titles, bodies):
        self._call(self.documents, titles)
        return super().encode(titles, bodies)

    def encode_queries(self, texts):
        self._call(self.queries, texts)
        return super().encode(texts, [""] * len(texts))

    def _call(self, calls, texts):
        calls.append(list(texts))
        self.started.set()
        assert self.go.wait(HANG)
        if "bad" in texts:
            raise ValueError("a bad text")


@pytest.fixture
def encoder():
    return Recorded()


@pytest.fixture
def batcher(encoder):
    made = Batcher(encoder, BatchOptions(batch_documents=4, batch_wait_ms=5))
    yield made
    encoder.go.set()
    made.close()


def hold(encoder, ask, *given):
    """Waits until the encoder is at work on a request, and keeps it there."""
    encoder.go.clear()
    future = ask(*given)
    assert encoder.started.wait(HANG)
    assert not future.done()
    return future


def alone(text):
    """The vector of a text by itself."""
    return Letters().encode([text], [""])[0]


def test_queries_that_wait_share_a_call_and_get_their_own_vectors(batcher, encoder):
    hold(encoder, batcher.query, "first")
    texts = [f"{word} {number}" for number in range(10) for word in WORDS]
    others = [batcher.query(text) for text in texts]
    encoder.go.set()
    for future, text in zip(others, texts, strict=True):
        np.testing.assert_array_equal(future.result(HANG), alone(text))
    assert [len(call) for call in encoder.queries] == [1, 32, 32, 16]


def test_queries_wait_for_others_while_those_before_are_not_answered(encoder):
    answered = threading.Event()
    batcher = Batcher(encoder, is_ahead=lambda: not answered.is_set())
    few = [batcher.query(word) for word in WORDS]
    assert not wait(few, 0.1).done
    many = [batcher.query(f"{word} {number}") for number in range(3) for word in WORDS]
    assert not wait(few + many, HANG).not_done, "as many as a call holds do not wait"
    last = [batcher.query(text) for text in ("last", "another")]
    answered.set()
    assert not wait(last, HANG).not_done
    assert [len(call) for call in encoder.queries] == [32, 2]
    batcher.close()


def test_searches_wait_for_each_other_while_those_before_have_no_thread(encoder, monkeypatch):
    index = indexed([ArticleText("1", "", "", "A storm", "Rain")], Letters())
    service, released = Service(encoder, index), threading.Event()
    monkeypatch.setattr("newsembed.serving.service.find", lambda *_, **__: released.wait(HANG))
    before = os.cpu_count() + 1

    async def ask():
        def asked(words):
            return [asyncio.ensure_future(service.search(SearchRequest(q=word))) for word in words]

        first = asked(f"first {number}" for number in range(before))
        while service._found < before:  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.01)
        later = asked(WORDS)
        await asyncio.sleep(0.1)
        assert sum(map(len, encoder.queries)) == before
        released.set()
        await asyncio.gather(*first, *later)

    asyncio.run(ask())
    service.close()
    assert (encoder.queries[-1], service._found) == (WORDS, 0)


def test_queries_that_share_a_call_are_compared_at_once_with_what_each_names(batcher, encoder):
    calls = []

    def compare(vectors):
        calls.append(len(vectors))
        return [*(vectors.sum(axis=1) + 1)]

    first = hold(encoder, batcher.query, "first", lambda _: None)
    texts = [f"{word} {number}" for number in range(3) for word in WORDS]
    others = [batcher.query(text, compare) for text in texts]
    none, failing = batcher.query("none", lambda _: None), batcher.query("fails", lambda _: {}["gone"])
    encoder.go.set()
    for future, text in zip(others, texts, strict=True):
        vector, found = future.result(HANG)
        np.testing.assert_array_equal(vector, alone(text))
        assert found == pytest.approx(vector.sum() + 1)
    assert calls == [len(texts)]
    assert first.result(HANG)[1] is None
    np.testing.assert_array_equal(none.result(HANG)[0], alone("none"))
    with pytest.raises(KeyError, match="gone"):
        failing.result(HANG)


@pytest.mark.parametrize("counts", [[1], [3, 1, 2], [9], [5, 0, 7, 1], [4, 4]])
def test_documents_of_several_requests_share_slices(batcher, encoder, counts):
    requests = [
        ([WORDS[(number + row) % 8] * (1 + row % 3) for row in range(count)], [str(row) for row in range(count)])
        for number, count in enumerate(counts)
    ]
    hold(encoder, batcher.documents, ["first"], [""])
    futures = [batcher.documents(*request) for request in requests]
    encoder.go.set()
    for future, (titles, bodies) in zip(futures, requests, strict=True):
        np.testing.assert_array_equal(future.result(HANG), Letters().encode(titles, bodies))
    calls = encoder.documents[1:]
    assert [len(call) for call in calls] == [4] * (sum(counts) // 4) + [sum(counts) % 4] * (sum(counts) % 4 > 0)
    assert sorted(sum(calls, [])) == sorted(title for titles, _ in requests for title in titles)


@pytest.mark.parametrize(("length", "slices"), [(2 * 4_096, [2]), (2 * 4_096 + 1, [1, 1])])
def test_a_slice_has_4096_characters_for_each_of_its_documents(batcher, encoder, length, slices):
    titles, bodies = ["a" * 100] * 2, ["b" * (length - 100)] * 2
    batcher.documents(titles, bodies).result(HANG)
    assert [len(call) for call in encoder.documents] == slices


def test_the_threads_have_names_and_never_keep_a_process_alive(batcher):
    batcher.query("a").result(HANG)
    daemons = {thread.name for thread in threading.enumerate() if thread.daemon}
    assert {"newsembed searches", "newsembed documents"} <= daemons


def test_a_small_request_does_not_wait_for_a_large_one(batcher, encoder):
    large = hold(encoder, batcher.documents, [f"large {number}" for number in range(40)], [""] * 40)
    small = batcher.documents(["small"], [""])
    encoder.go.set()
    small.result(HANG)
    large.result(HANG)
    order = [index for index, call in enumerate(encoder.documents) if "small" in call]
    assert order[0] <= 2
    assert len(encoder.documents) == 11


def test_searches_do_not_wait_for_a_call_with_documents():
    encoder = Recorded()
    encoder.encode_queries = lambda texts: Letters().encode(texts, [""] * len(texts))
    batcher = Batcher(encoder)
    documents = hold(encoder, batcher.documents, ["a"] * 100, [""] * 100)
    np.testing.assert_array_equal(batcher.query("b").result(HANG), alone("b"))
    assert not documents.done()
    encoder.go.set()
    documents.result(HANG)
    batcher.close()


def test_a_bad_text_fails_its_own_request_only(batcher, encoder):
    hold(encoder, batcher.query, "first")
    batcher.documents(["first"], [""])
    queries = [batcher.query(text) for text in ("good", "bad", "fine")]
    documents = [batcher.documents([text] * 2, ["", ""]) for text in ("good", "bad")]
    large = batcher.documents(["bad"] * 20, [""] * 20)
    encoder.go.set()
    wait([*queries, *documents, large], HANG)
    for future in (queries[1], documents[1], large):
        with pytest.raises(ValueError, match="a bad text"):
            future.result(0)
    np.testing.assert_array_equal(queries[2].result(0), alone("fine"))
    np.testing.assert_array_equal(documents[0].result(0), Letters().encode(["good"] * 2, ["", ""]))
    np.testing.assert_array_equal(batcher.query("later").result(HANG), alone("later"))
    assert sum(call.count("bad") for call in encoder.documents) < 20  # the rest of a failed request is left out


def test_a_cancelled_request_is_left_out(batcher, encoder):
    large = hold(encoder, batcher.documents, [f"{number}" for number in range(40)], [""] * 40)
    other = batcher.documents(["other"], [""])
    query = batcher.query("q")
    gone = batcher.query("gone")
    assert large.cancel()
    gone.cancel()
    encoder.go.set()
    other.result(HANG)
    query.result(HANG)
    assert sum(map(len, encoder.documents)) == 4 + 1
    with pytest.raises(CancelledError):
        large.result(0)


def test_a_stop_fails_what_waits_and_all_that_comes(batcher, encoder):
    running = hold(encoder, batcher.query, "running")
    waiting = [batcher.query("waiting"), batcher.documents(["waiting"] * 9, [""] * 9)]
    threading.Timer(0.01, encoder.go.set).start()
    batcher.close()
    for future in waiting:
        with pytest.raises(RefusedError, match="stopping"):
            future.result(HANG)
    assert running.result(HANG).shape == (26,)
    for ask in (lambda: batcher.query("new"), lambda: batcher.documents(["new"], [""])):
        with pytest.raises(RefusedError, match="stopping"):
            ask()


def test_preparations_run_between_requests_and_may_fail(batcher, encoder, caplog):
    ran = [threading.Event() for _ in range(3)]

    def broken():
        ran[1].set()
        raise MemoryError("no memory for this shape")

    batcher.prepare([ran[0].set, broken, ran[2].set])
    assert ran[1].wait(HANG)
    assert batcher.documents(["a"], [""]).result(HANG).shape == (1, 26)
    assert ran[0].is_set()
    assert not ran[2].is_set()
    assert "preparing the encoder failed" in caplog.text


def test_a_model_gives_requests_what_a_single_call_gives(model_dir):
    """The encoder can be called by two threads, and the sizes of batches change nothing but rounding."""
    from newsembed.serving.encoder import load_encoder

    encoder = load_encoder(model_dir)
    texts = [" ".join(WORDS[(seed + place) % 8] for place in range(1 + seed % 30)) for seed in range(60)]
    expected = encoder.encode(texts, [""] * 60), encoder.encode_queries(texts)
    batcher = Batcher(encoder, BatchOptions(batch_documents=5))
    documents = [batcher.documents(texts[start : start + 6], [""] * 6) for start in range(0, 60, 6)]
    queries = [batcher.query(text) for text in texts]
    np.testing.assert_allclose(np.concatenate([one.result(HANG) for one in documents]), expected[0], atol=1e-5)
    np.testing.assert_allclose(np.stack([one.result(HANG) for one in queries]), expected[1], atol=1e-5)
    batcher.close()


def test_prepared_shapes_are_all_that_a_server_needs(model_dir):
    from newsembed.serving.encoder import load_encoder

    encoder = load_encoder(model_dir, max_length=32)
    for step in encoder.preparations():
        step()
    shapes = set(encoder._compiled)
    assert shapes >= {(rows, length) for rows in (1, 4, 16, 32) for length in (16, 24, 32)}
    for rows in (1, 3, 8, 16):
        encoder.encode(["storm " * (20 * row) for row in range(rows)], ["rain"] * rows)
        encoder.encode_queries(["storm"] * rows)
    assert encoder._compiled == shapes
