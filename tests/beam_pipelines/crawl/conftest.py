"""A server on loopback that answers for any host, as each test defines."""

import pytest
from crawling import Clock, serving
from newsembed.beam_pipelines.crawl import politeness, site


@pytest.fixture
def web():
    with serving() as found:
        yield found


@pytest.fixture
def clock(monkeypatch):
    """The clock of pauses between requests and between attempts; timeouts of requests keep the real one."""
    found = Clock()
    for module in (politeness, site):
        monkeypatch.setattr(module, "time", found)
    monkeypatch.setattr(politeness, "_limiters", {})  # their pauses are by the other clock
    return found
