"""A server on loopback that answers for any host, as each test defines."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from crawling import serving


@pytest.fixture
def web():
    with serving() as found:
        yield found
