"""Local pipelines that are interrupted: what their worker threads report late."""

import threading
import time

import pytest
from newsembed.beam_pipelines.options import noticing_dead_workers


def report_late(code):
    time.sleep(0.3)
    raise RuntimeError(f"the worker ended with return code {code}")


@pytest.mark.parametrize("code", [-2, 130])
def test_a_worker_that_ctrl_c_has_ended_is_not_reported_after_the_interrupt(code, capfd):
    thread = threading.Thread(target=report_late, args=(code,), name="run_worker", daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt), noticing_dead_workers():
        raise KeyboardInterrupt
    thread.join()
    assert capfd.readouterr().err == ""


def test_ctrl_c_that_the_main_thread_has_missed_ends_the_pipeline():
    """The signal reaches the workers only; the main thread waits without a limit, as Beam's runner does."""
    threads = [threading.Thread(target=report_late, args=(-2,), name="run_worker", daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    with pytest.raises(KeyboardInterrupt), noticing_dead_workers():
        threading.Event().wait(20)
    for thread in threads:
        thread.join()


def test_the_errors_of_other_threads_are_still_reported(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    with noticing_dead_workers():
        thread = threading.Thread(target=report_late, args=(-2,), name="another")
        thread.start()
        thread.join()
    assert [str(one.exc_value) for one in seen] == ["the worker ended with return code -2"]
