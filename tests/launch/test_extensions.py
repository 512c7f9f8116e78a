"""Modules of users are imported by name before a command, in its process and in those that it starts."""

import os
import sys

import pytest
from newsembed.errors import InputError
from newsembed.launch import cli
from newsembed.launch.extensions import import_modules, split_imports


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "toy_extension.py").write_text("loaded = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("NEWSEMBED_IMPORT", raising=False)
    yield "toy_extension"
    sys.modules.pop("toy_extension", None)
    os.environ.pop("NEWSEMBED_IMPORT", None)


def test_options_before_the_command_name_modules():
    assert split_imports(["embed", "--import", "x"]) == ([], ["embed", "--import", "x"])
    assert split_imports(["--import=a", "--import", "b", "--version"]) == (["a", "b"], ["--version"])
    for arguments in (["--import"], ["--import="]):
        with pytest.raises(InputError, match="--import: got no module"):
            split_imports(arguments)


def test_a_module_is_imported_and_inherited(module):
    import_modules([module])
    assert sys.modules[module].loaded
    assert os.environ["NEWSEMBED_IMPORT"] == module


def test_the_environment_names_modules_too(module, monkeypatch):
    monkeypatch.setenv("NEWSEMBED_IMPORT", module)
    import_modules([])
    assert sys.modules[module].loaded


def test_modules_of_the_environment_come_first_and_each_once(module, monkeypatch):
    monkeypatch.setenv("NEWSEMBED_IMPORT", f"json,,{module}")
    import_modules(["csv", module, "json"])
    assert os.environ["NEWSEMBED_IMPORT"] == f"json,{module},csv"


def test_nothing_to_import_leaves_the_environment_alone(module):
    import_modules([])
    assert "NEWSEMBED_IMPORT" not in os.environ


def test_the_command_line_imports_and_names_what_it_cannot(module, capsys):
    assert cli.main(["--import", module, "no_such_command"]) == 2
    assert module in sys.modules
    assert "no such command" in capsys.readouterr().err
    assert cli.main(["--import", "no_such_module", "embed"]) == 2
    assert "--import: cannot import no_such_module" in capsys.readouterr().err
