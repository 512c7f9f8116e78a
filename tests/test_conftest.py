"""What conftest.py changes for all tests."""

import ast
import gc


class Parsing:
    """Parses a source when it is freed, which takes the garbage collector because it refers to itself."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        ast.parse("f(x)(1)(2)")


def test_a_source_is_parsed_although_garbage_parses_another_meanwhile():
    source = "\n".join(f"x{number} = lambda a, b=({number}, [1, 2]): {{'k': a + b[0]}}" for number in range(300))
    gc.collect()
    for _ in range(20):
        Parsing()
        assert len(ast.parse(source).body) == 300


def test_worker_processes_find_the_tests_however_pytest_is_started(pytestconfig):
    """They import a test module by its name, from the repository."""
    assert pytestconfig.rootpath in pytestconfig.getini("pythonpath")
