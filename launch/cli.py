"""``newsembed COMMAND …``: finds the command, parses its arguments, turns user errors into one clear message."""

import argparse
import dataclasses
import difflib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Sequence

from .. import __version__
from ..errors import InputError


@dataclasses.dataclass(frozen=True)
class Command:
    """One command: its group and summary for ``newsembed --help``, and the module that is imported only when it runs.

    The module is a job of ``beam_pipelines`` (with ``JOB``) or offers ``add_arguments(parser)`` and ``run(args)``.
    """

    group: str
    summary: str
    module: str


COMMANDS = {
    "demo": Command(
        "Start here", "generate a newsroom, crawl it, mine, train, evaluate, export and search it", "launch.demo"
    ),
    "newsroom": Command("Start here", "only generate (and serve) the fictional newsroom", "newsroom.command"),
    "build": Command("Mine", "all mining jobs in order, from WARC and article files to training data", "launch.build"),
    "crawl": Command("Mine", "feeds, hubs and pages to WARC", "beam_pipelines.crawl"),
    "extract": Command("Mine", "WARC and article files to articles and hubs", "beam_pipelines.extract"),
    "clean": Command("Mine", "rules, language, exact and near duplicates", "beam_pipelines.clean"),
    "vocabulary": Command("Mine", "learn a WordPiece vocabulary on a smoothed sample", "beam_pipelines.vocabulary"),
    "pack": Command("Mine", "pack documents and translation pairs into pretraining TFRecords", "beam_pipelines.pack"),
    "entities": Command("Mine", "learn the entity table, its aliases and embeddings", "beam_pipelines.entities"),
    "vectors": Command("Mine", "entity, image and text vectors of every article", "beam_pipelines.vectors"),
    "neighbors": Command(
        "Mine", "nearest neighbors in every space, where the dates allow an answer", "beam_pipelines.neighbors"
    ),
    "triplets": Command(
        "Mine", "(anchor, positive, negative) by byline date and evergreen filter", "beam_pipelines.triplets"
    ),
    "label": Command(
        "Mine", "label pairs for the evergreen filter on a local page or in the terminal", "studies.label"
    ),
    "topics": Command("Mine", "document-topic labels from hubs", "beam_pipelines.topics"),
    "examples": Command("Mine", "augmented triplet and topic TFRecords", "beam_pipelines.examples"),
    "train": Command("Train", "pretrain or train with gin files", "launch.train"),
    "import-hf": Command("Train", "a BERT-like model of Hugging Face to a model folder", "launch.import_hf"),
    "launch": Command("Train", "train on several machines: TPU slice, GPU hosts by ssh, Slurm", "launch.pod"),
    "ablate": Command(
        "Train", "rows of Table 10: train and evaluate without each part, z-scores, table and plot", "studies.ablate"
    ),
    "staleness": Command(
        "Train", "mine and train with documents up to a date, score by month since (appendix C)", "studies.staleness"
    ),
    "evaluate": Command("Use", "benchmarks over any encoders, side by side", "launch.evaluate"),
    "diagnose": Command(
        "Use",
        "encoders side by side for people to look at: neighbors, similarities, attention, a map",
        "studies.diagnose",
    ),
    "export": Command("Use", "a trained model to SavedModel, safetensors or Hugging Face", "serving.export"),
    "embed": Command("Use", "vectors of the articles in a file", "serving.embed"),
    "index": Command("Use", "build a search index over articles", "serving.index_command"),
    "search": Command("Use", "search an index by words or by the URL of an article", "serving.search"),
    "cluster": Command("Use", "group articles that report the same event", "serving.cluster"),
    "dedup": Command("Use", "find near-duplicate articles by their vectors", "serving.dedup"),
    "serve": Command("Use", "HTTP server: embed, search, and a page to explore", "serving.server"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 success, 1 a result that misses its mark, 2 an error the user can mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(overview())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"newsembed {__version__}")
        return 0
    name, rest = arguments[0], arguments[1:]
    quiet_libraries()
    try:
        return _runner(name)(rest)
    except InputError as error:
        print(f"newsembed {name}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nnewsembed {name}: stopped; the same command goes on from here", file=sys.stderr)
        return 130


def overview() -> str:
    """The text of ``newsembed --help``."""
    lines = [
        f"newsembed {__version__}: document embeddings for news, from raw crawl to served encoder",
        "",
        "usage: newsembed COMMAND [options]",
    ]
    for group in dict.fromkeys(command.group for command in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {name:<12}{command.summary}" for name, command in COMMANDS.items() if command.group == group]
    return "\n".join([*lines, "", "`newsembed COMMAND --help` shows the options of a command and an example."])


def quiet_libraries() -> None:
    """Keeps the chatter of libraries off the terminal: their errors are shown, and our own warnings.

    Called before any of them is imported: some log while they are, which would install a handler for everything.
    """
    own = (__package__ or "").partition(".")[0]
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.levelno >= logging.ERROR or record.name.startswith(f"{own}."))
    logging.getLogger().addHandler(handler)
    # TensorFlow's errors come as exceptions too; what its C++ logs as one is mostly that there is no GPU.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _runner(name: str) -> Callable[[list[str]], int]:
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean `{close[0]}`? " if close else ""
        raise InputError(f"no such command: {name}", remedy=f"{hint}see `newsembed --help`")
    module = importlib.import_module(f"..{COMMANDS[name].module}", __package__)
    if hasattr(module, "JOB"):
        from . import job_command

        return lambda rest: job_command.run(module.JOB, rest)
    if hasattr(module, "main"):  # takes its own arguments as they are (train: gin's)
        return lambda rest: int(module.main(rest))

    def run(rest: list[str]) -> int:
        parser = argparse.ArgumentParser(
            prog=f"newsembed {name}",
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(parser)
        return int(module.run(parser.parse_args(rest)))

    return run
