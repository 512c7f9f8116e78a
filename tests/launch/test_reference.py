"""Texts that follow from the code: a page for each command, and the overview."""

import re

import pytest
from newsembed.launch.cli import COMMANDS, command_page, overview_page, parser_of


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_each_of_its_options_and_what_it_does(name):
    page = command_page(name)
    assert page.startswith(f"# newsembed {name}\n\n```text\nusage: newsembed {name}")
    assert page.count("```") % 2 == 0
    assert "example" in page.lower()
    assert "``" not in page.replace("```", "")
    assert "::\n" not in page
    assert not re.search(
        r"\S {8,}--", page.partition("\noptions:")[0]
    )  # the docstring lost a line that ends with a backslash
    for action in parser_of(name)._actions:
        assert all(option in page for option in action.option_strings)
        assert re.sub(r"\(default: .*\)$", "", action.help or "").strip(), action


def test_the_overview_lists_each_command_once():
    page = overview_page()
    for name, command in COMMANDS.items():
        assert page.count(f"- [`{name}`]({name}.md): {command.summary}\n") == 1
