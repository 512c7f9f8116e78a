"""The gin files for T5X, without T5X: they can be read, and every name of ours in them exists."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from gin import config_parser
from newsembed.t5x_bridge.command import GIN_FOLDER
from newsembed.training import gin_t5x

DOCUMENT = Path(__file__).parents[2] / "docs" / "t5x.md"

FILES = sorted(Path(GIN_FOLDER, "t5x").glob("*.gin"))
# Modules that import t5x; their names are looked up in their text.
NEED_T5X = ("model", "layout")


class Delegate(config_parser.ParserDelegate):
    def __init__(self):
        self.references, self.macros = [], []

    def configurable_reference(self, scoped_configurable_name, evaluate):
        self.references.append(scoped_configurable_name.rsplit("/", maxsplit=1)[-1])

    def macro(self, macro_name):
        self.macros.append(macro_name)


def read(path):
    """The statements of a file and of what it includes, each with the imports of its own file."""
    delegate = Delegate()
    statements = list(config_parser.ConfigParser(path.read_text(), delegate))
    imports = {s.bound_name(): s.module for s in statements if isinstance(s, config_parser.ImportStatement)}
    found = [(statement, imports) for statement in statements]
    references, macros = [(name, imports) for name in delegate.references], list(delegate.macros)
    for statement in statements:
        if isinstance(statement, config_parser.IncludeStatement):
            more = read(Path(GIN_FOLDER, statement.filename))
            found, references, macros = found + more[0], references + more[1], macros + more[2]
    return found, references, macros


def parameters_of(module, name):
    """The parameters of something in a module of ours; None in modules that import T5X."""
    if module.rsplit(".", maxsplit=1)[-1] in NEED_T5X:
        text = Path(GIN_FOLDER, "..", *module.split(".")[1:]).with_suffix(".py").read_text()
        assert re.search(rf"^(class|def) {name}\b", text, re.MULTILINE), f"{module} has no {name}"
        return None
    found = getattr(importlib.import_module(module), name)
    return set(inspect.signature(found.__init__ if inspect.isclass(found) else found).parameters)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_names_of_ours_exist_with_their_parameters(path):
    statements, references, _ = read(path)
    checked = 0
    for statement, imports in statements:
        if isinstance(statement, config_parser.BindingStatement) and statement.arg_name:
            alias, _, name = statement.selector.rpartition(".")
            if imports.get(alias, "").startswith("newsembed."):
                known = parameters_of(imports[alias], name)
                assert known is None or statement.arg_name in known, f"{statement.selector}.{statement.arg_name}"
                checked += 1
    for reference, imports in references:
        alias, _, name = reference.rpartition(".")
        if alias:
            assert alias in imports, f"{reference} is not imported"
            if imports[alias].startswith("newsembed."):
                parameters_of(imports[alias], name)
                checked += 1
    assert checked >= 4


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in ("model.gin", "run.gin")], ids=str)
def test_every_macro_has_a_value_or_is_the_architecture_s(path):
    statements, _, macros = read(path)
    bound = {s.selector for s, _ in statements if isinstance(s, config_parser.BindingStatement) and not s.arg_name}
    assert set(macros) - bound <= {"gin.REQUIRED"}
    assert bound & {"MODEL_DIR", "CHECKPOINT_PATH"}


def test_the_documented_table_is_what_gin_files_of_t5x_mean_here():
    table = DOCUMENT.read_text().split("| T5X | ours |")[1].partition("\n\n")[0]
    names, owner = [], ""
    for name in re.findall(r"`([\w./]+)`", "".join(line.split("|")[1] for line in table.splitlines() if line)):
        owner = owner if name.startswith(".") else name.partition(".")[0]
        names.append(owner + name if name.startswith(".") else name)
    assert set(names) == {*gin_t5x.KEYS, *gin_t5x.MACROS}
