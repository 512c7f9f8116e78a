"""``newsembed COMMAND …``: finds the command, parses its arguments and prints user errors without a traceback."""

import argparse
import dataclasses
import difflib
import functools
import importlib
import logging
import os
import select
import signal
import sys
import traceback
import types
from collections.abc import Sequence
from typing import Final

from .. import __version__
from ..beam_pipelines.failures import VERBOSE
from ..beam_pipelines.parent import PARENT, end_with
from ..errors import InputError, exit_code_of, of_file_system
from ..training.allocator import restart_with_large_pages
from . import extensions, extras
from .parsing import Parser

_VERBOSE: Final = "--verbose"
# Commands that keep nothing of a run that was stopped.
_WHOLE: Final = (
    *("newsroom", "import-hf", "export", "embed", "index", "search"),
    *("evaluate", "diagnose", "cluster", "dedup", "verify"),
)
_CLOSED_OUTPUT: Final = 141  # as a shell reports SIGPIPE


@dataclasses.dataclass(frozen=True)
class Command:
    """One command: its group and summary for ``newsembed --help``, its module, and the extras that it always needs.

    The module is a job of ``beam_pipelines`` (with ``JOB``), or offers ``main(arguments)`` and ``make_parser()``, or
    ``add_arguments(parser)`` and ``run(args)``. It is imported when the command runs.
    """

    group: str
    summary: str
    module: str
    extras: tuple[str, ...] = ()


_mine = functools.partial(Command, "Mine", extras=("mine",))
COMMANDS = {
    "demo": Command(
        "Start here",
        "the whole pipeline on a generated newsroom: crawl, mine, train, evaluate, export, search",
        "launch.demo",
        ("mine", "train", "evaluate", "tensorflow"),
    ),
    "doctor": Command("Start here", "what this machine has, and which parts are installed", "launch.doctor"),
    "completion": Command("Start here", "a script that completes commands in bash, zsh or tcsh", "launch.completion"),
    "newsroom": Command("Start here", "generate (and serve) a fictional newsroom", "newsroom.command", ("mine",)),
    "build": _mine("all mining jobs in order: WARC and article files to training data", "launch.build"),
    "crawl": _mine("feeds, hubs and pages to WARC", "beam_pipelines.crawl"),
    "extract": _mine("WARC and article files to articles and hubs", "beam_pipelines.extract"),
    "clean": _mine("reject articles by rules, language, and exact and near duplicates", "beam_pipelines.clean"),
    "rejected": _mine("print records that jobs rejected, with the reasons", "launch.rejected"),
    "vocabulary": _mine("learn a WordPiece vocabulary on a smoothed sample", "beam_pipelines.vocabulary"),
    "pack": _mine("documents and translation pairs to pretraining TFRecords", "beam_pipelines.pack"),
    "translations": _mine("translation pairs to TFRecords for an encoder and a decoder", "beam_pipelines.translations"),
    "entities": _mine("learn the entity table, its aliases and embeddings", "beam_pipelines.entities"),
    "knowledge": _mine("a Wikidata dump to the table of names that entities links", "beam_pipelines.knowledge"),
    "vectors": _mine("entity, image and text vectors of every article", "beam_pipelines.vectors"),
    "neighbors": _mine("nearest neighbors in every space, restricted by date", "beam_pipelines.neighbors"),
    "bitext": _mine("sentences of articles in different languages that translate each other", "beam_pipelines.bitext"),
    "triplets": _mine(
        "(anchor, positive, negative) by byline dates and the evergreen filter", "beam_pipelines.triplets"
    ),
    "label": _mine("label pairs for the evergreen filter, on a local page or in the terminal", "studies.label"),
    "topics": _mine("document-topic labels from hubs", "beam_pipelines.topics"),
    "categories": _mine(
        "triplets of articles that share a category and one that does not", "beam_pipelines.categories"
    ),
    "examples": _mine("augmented triplet and topic TFRecords", "beam_pipelines.examples"),
    "pairs": _mine("pairs of an article with its title, link texts or posts, as TFRecords", "beam_pipelines.pairs"),
    "train": Command("Train", "pretrain or train with gin files", "launch.train", ("train",)),
    "import-hf": Command(
        "Train", "convert a BERT-like Hugging Face model to a model folder", "launch.import_hf", ("train",)
    ),
    "lift": Command(
        "Train",
        "continue a public checkpoint on the mined pairs, and add word vectors to it",
        "studies.lift",
        ("train", "mine", "evaluate"),
    ),
    "distil": Command(
        "Train", "a small and fast static model from any encoder", "studies.distil", ("train", "mine", "evaluate")
    ),
    "t5x": Command("Train", "checkpoints to and from T5X, and its gin files", "t5x_bridge.command", ("train",)),
    "launch": Command("Train", "train on several machines: a TPU slice, GPU hosts over ssh, or Slurm", "launch.pod"),
    "ablate": Command(
        "Train",
        "ablations: train and evaluate without each part, z-scores, table and plot",
        "launch.ablate",
        ("train", "evaluate", "mine"),
    ),
    "staleness": Command(
        "Train",
        "train on documents up to a date, score by the months since (appendix C)",
        "studies.staleness",
        ("train", "evaluate", "mine"),
    ),
    "evaluate": Command("Use", "benchmarks over any encoders, side by side", "launch.evaluate", ("evaluate",)),
    "diagnose": Command(
        "Use",
        "a page that compares encoders: neighbors, similarities, attention, a map",
        "studies.diagnose",
        ("evaluate",),
    ),
    "export": Command(
        "Use", "convert a trained model to SavedModel, safetensors or Hugging Face", "serving.export", ("jax",)
    ),
    "embed": Command("Use", "embed the articles of a file", "serving.embed"),
    "index": Command("Use", "build a search index over articles", "serving.index_command"),
    "update": Command(
        "Use", "add what is new to an archive: crawl, clean, embed, index, events", "launch.update", ("mine",)
    ),
    "search": Command("Use", "search an index by words or by the URL of an article", "serving.search"),
    "cluster": Command("Use", "group the articles that report the same event", "serving.cluster", ("evaluate",)),
    "dedup": Command("Use", "find near-duplicate articles by their vectors", "serving.dedup", ("evaluate",)),
    "verify": Command("Use", "compare the files of results with their digests", "launch.verify", ("mine",)),
    "serve": Command("Use", "HTTP server: embed, search, and a page to explore", "serving.server", ("serve",)),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Returns:
      0 for success, 1 for a result that misses its target, 2 for an error that the user can fix, 130 for Ctrl-C, 143
      for SIGTERM where a command can be resumed, 141 where the reader of the output has closed it, such as ``head``.

    Raises:
      BrokenPipeError: of another pipe or connection.
    """
    try:
        code = _main(argv)
        sys.stdout.flush()  # not at the end of the process, where an error can only be printed
    except BrokenPipeError:
        if not _has_no_reader(sys.stdout.fileno()):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still in the buffer goes there
        return _CLOSED_OUTPUT
    return code


def _has_no_reader(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLOUT)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _main(argv: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if _VERBOSE in given:
        given.remove(_VERBOSE)
        os.environ[VERBOSE] = "1"
    try:
        modules, arguments = extensions.split_imports(given)
    except InputError as error:
        print(f"newsembed: error: {error}", file=sys.stderr)
        return 2
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"newsembed {__version__}")
        return 0
    if argv is None and arguments[0] == "train":  # this process is the command's own
        restart_with_large_pages()
    return _run_reported(arguments[0], arguments[1:], modules)


def _run_reported(name: str, rest: list[str], modules: Sequence[str]) -> int:
    """Runs one command; errors become a message and an exit code.

    Raises:
      OSError: other than those of a disk or folder that cannot be written.
      ModuleNotFoundError: for a module of no extra.
    """
    quiet_libraries()
    parent = int(os.environ.get(PARENT, os.getpid()))
    if parent != os.getpid():  # a study started this process; SIGTERM lets training save
        end_with(parent, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        extensions.import_modules(modules)
        return _run(name, rest)
    except InputError as error:
        return _report(name, error)
    except ModuleNotFoundError as error:
        extra = extras.of_module(error.name or "")
        if extra is None:
            raise
        return _report(name, extras.MissingExtraError(str(error.name), extra))
    except OSError as error:
        named = of_file_system(error)
        if named is None:
            raise
        return _report(name, named)
    except KeyboardInterrupt as stopped:
        advice = (
            "the same command starts from the beginning" if name in _WHOLE else "run the same command again to resume"
        )
        print(f"\nnewsembed {name}: stopped; {advice}", file=sys.stderr)
        return exit_code_of(type(stopped))


def _report(name: str, error: InputError) -> int:
    if VERBOSE in os.environ:
        traceback.print_exc()
    print(f"newsembed {name}: error: {error}", file=sys.stderr)
    return 2


def overview() -> str:
    """The text of ``newsembed --help``."""
    lines = [
        f"newsembed {__version__}: document embeddings for news, from raw crawl to served encoder",
        "",
        "usage: newsembed [--import MODULE] [--verbose] COMMAND [options]",
    ]
    width = max(map(len, COMMANDS)) + 1
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {name:<{width}}{command.summary}" for name, command in COMMANDS.items() if command.group == group]
    lines += ["", "`newsembed COMMAND --help` shows the options of a command and an example."]
    return "\n".join([*lines, "--verbose shows the traceback of an error."])


def quiet_libraries() -> None:
    """Hides the log messages of libraries: only their errors are shown, and this package's own warnings.

    Must be called before any library is imported: some log during the import, which installs a handler for everything.
    """
    own = (__package__ or "").partition(".")[0]
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.levelno >= logging.ERROR or record.name.startswith(f"{own}."))
    # An error inside a pipeline is raised again where it is reported.
    handler.addFilter(lambda record: VERBOSE in os.environ or not record.name.startswith("apache_beam.runners"))
    logging.getLogger().addHandler(handler)
    # TensorFlow raises its errors as exceptions too; most errors that its C++ code logs only say that there is no GPU.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def make_parser(name: str, module: types.ModuleType) -> argparse.ArgumentParser:
    """The parser of a command whose module offers ``add_arguments``."""
    parser = Parser(
        prog=f"newsembed {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def parser_of(name: str) -> argparse.ArgumentParser:
    """Returns the parser of any command; imports its module.

    Raises:
      InputError: if there is no such command.
    """
    module = load(name)
    if hasattr(module, "JOB"):
        from . import job_command

        return job_command.make_parser(module.JOB)
    if hasattr(module, "main"):
        parser: argparse.ArgumentParser = module.make_parser()
        return parser
    return make_parser(name, module)


def load(name: str) -> types.ModuleType:
    """Imports the module of a command.

    Raises:
      InputError: if there is no such command.
    """
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        raise InputError(f"no such command: {name}", remedy=f"{hint}see `newsembed --help`")
    return importlib.import_module(f"..{COMMANDS[name].module}", __package__)


def _run(name: str, rest: list[str]) -> int:
    if name in COMMANDS:
        extras.require(COMMANDS[name].extras)
    module = load(name)
    if hasattr(module, "JOB"):
        from . import job_command

        return job_command.run(module.JOB, rest)
    if hasattr(module, "main"):  # parses its arguments itself
        return int(module.main(rest))
    return int(module.run(make_parser(name, module).parse_args(rest)))
