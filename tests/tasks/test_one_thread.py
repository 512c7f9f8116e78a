"""BLAS stays on one thread until the last of several blocks in threads of one process ends."""

import threading

import numpy as np
import pytest
from newsembed.tasks.one_thread import ONE_BLAS_THREAD
from threadpoolctl import threadpool_info, threadpool_limits


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))  # loads it
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_block_that_ends_does_not_lift_the_limit_of_another_that_runs():
    with threadpool_limits(2):
        before = blas_threads()
        entered, leave = threading.Event(), threading.Event()

        def other_bundle():
            with ONE_BLAS_THREAD:
                entered.set()
                leave.wait(60)

        bundle = threading.Thread(target=other_bundle)
        bundle.start()
        assert entered.wait(60)
        with ONE_BLAS_THREAD:
            leave.set()
            bundle.join()
            assert blas_threads() == {1}
        assert blas_threads() == before == {2}


def test_the_limit_is_lifted_after_an_error():
    with threadpool_limits(2):
        with pytest.raises(ValueError, match="in the block"), ONE_BLAS_THREAD:
            raise ValueError("in the block")
        assert blas_threads() == {2}


def test_the_limit_holds_in_each_thread_also_after_another_has_set_one():
    found = []

    def bundle():
        with ONE_BLAS_THREAD:
            found.append(blas_threads())
        found.append(blas_threads())

    with threadpool_limits(2):  # by this thread, which lives on
        for _ in range(2):
            thread = threading.Thread(target=bundle)
            thread.start()
            thread.join()
    assert found == [{1}, {2}, {1}, {2}]
