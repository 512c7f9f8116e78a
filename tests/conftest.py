"""What all tests share."""

import gin
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Each test starts without gin bindings: those of an earlier test would fill its arguments in, and lock gin."""
    gin.clear_config()
