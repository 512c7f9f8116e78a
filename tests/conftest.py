"""What all tests share: gin without bindings, quick compilation, and compiled programs that do not pile up."""

import ast
import functools
import gc
import os
import sys
import tempfile
import weakref

# Before jax is imported. The programs of these tests are compiled once and run a few times on tiny models, so neither
# optimisation nor fusion is worth its time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # as in commands
os.environ.setdefault("NEWSEMBED_FLOAT32", "1")  # equal results on CPUs with and without bfloat16
# A program is compiled once into this folder, also for processes that a test starts. JAX writes a program under its
# final name before it is whole, so each worker has a folder of its own. Set the variable to keep the programs.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _TEMPORARY = tempfile.TemporaryDirectory(prefix="newsembed-test-xla-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _TEMPORARY.name
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["JAX_COMPILATION_CACHE_DIR"] += f"/{os.environ['PYTEST_XDIST_WORKER']}"
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# What tests make is nothing that the user trusts.
_STATE = tempfile.TemporaryDirectory(prefix="newsembed-test-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

import gin  # noqa: E402
import pytest  # noqa: E402

HELPERS = """
    beam_pipelines/crawl evaluation golden learning learning/objectives models serving serving/explorer studies
    t5x_bridge tasks training updates
""".split()
# pytest's importlib mode does not.
sys.path[:0] = [os.path.join(os.path.dirname(__file__), name) for name in ("", *HELPERS)]
from file_order import longest_first  # noqa: E402


def _parsing_again(parse):
    """`ast.parse` that tries once more after a SystemError.

    Until Python 3.12, all calls share one counter of the depth of a tree. If garbage is collected during a call and
    its finalizer calls ast.parse too, the first call fails with "AST constructor recursion depth mismatch". Hypothesis
    parses the source of lambdas, and reports that as a flaky test.
    """

    @functools.wraps(parse)
    def again(*arguments, **options):
        try:
            return parse(*arguments, **options)
        except SystemError:
            return parse(*arguments, **options)

    return again


ast.parse = _parsing_again(ast.parse)


def pytest_collection_modifyitems(items):
    """Workers of pytest-xdist take the longest files first; a single process keeps the order of the command line."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        files = [item.nodeid.partition("::")[0] for item in items]
        places = {file: place for place, file in enumerate(longest_first(files))}
        items.sort(key=lambda item: places[item.nodeid.partition("::")[0]])


def pytest_collection_finish():
    """Lets Beam look once at what it looks at for each step of a pipeline, which takes half the time of a small job.

    These are its options, for which it makes a parser each time, and the parameters of the methods of a function.
    """
    if "apache_beam" not in sys.modules:
        return
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.transforms import userstate

    view_as, views = PipelineOptions.view_as, {}
    get_dofn_specs, specs = userstate.get_dofn_specs, weakref.WeakKeyDictionary()

    def view_once(options, kind):
        key = id(options._all_options), kind  # which all views of the same options share, and keep
        if key not in views:
            if len(views) > 1_000:
                views.clear()
            views[key] = view_as(options, kind)
        return views[key]

    def specs_once(function):
        if function not in specs:
            specs[function] = get_dofn_specs(function)
        return specs[function]

    PipelineOptions.view_as, userstate.get_dofn_specs = view_once, specs_once


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Each test starts without gin bindings: those of an earlier test would fill its arguments in, and lock gin."""
    gin.clear_config()


@pytest.fixture
def ended(capsys):
    """Runs a command that ends with an exit code; returns what it prints and what it says."""
    from newsembed.launch import cli

    def of(code, *words):
        capsys.readouterr()
        assert cli.main([*words]) == code
        return capsys.readouterr()

    return of


@pytest.fixture
def refused(ended):
    """Runs a command that is refused with exit code 2; returns what it says."""
    return lambda *words: ended(2, *words).err


@pytest.fixture
def printed(ended):
    """Runs a command that ends well; returns what it prints."""
    return lambda *words: ended(0, *words).out


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Frees the programs of a test file at its end: those of all files would take several GB of each worker.

    The million objects that libraries keep are frozen: each collection of garbage would look at all of them again.
    """
    gc.freeze()
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
