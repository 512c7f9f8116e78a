"""What ``newsembed explore`` does: crawls, learns words, and adds the articles to an archive."""

import datetime
import glob
import hashlib
import ipaddress
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from ..beam_pipelines.clean import JOB as CLEAN
from ..beam_pipelines.clean.rules import CleanOptions
from ..beam_pipelines.crawl import JOB as CRAWL
from ..beam_pipelines.crawl.job import read_seeds
from ..beam_pipelines.crawl.options import CrawlOptions, Scope
from ..beam_pipelines.extract import JOB as EXTRACT
from ..beam_pipelines.extract.job import ExtractOptions
from ..beam_pipelines.extract.xml_text import local_name, parse_xml
from ..beam_pipelines.jobs import Job, execute
from ..beam_pipelines.progress import JobProgress, why_empty, working
from ..beam_pipelines.vocabulary import JOB as VOCABULARY
from ..beam_pipelines.vocabulary import VocabularyOptions
from ..errors import InputError
from ..formats.archive import read_runs
from ..formats.articles import read_articles
from ..formats.files import delete, write_whole
from ..formats.folders import locked
from ..formats.model_folder import ModelFolder
from ..formats.vocabulary import VOCABULARY_FILE
from ..serving.ranking import LATENT_SEMANTICS
from ..serving.specs import encoder_from_spec
from ..studies.shared.mining import options_of
from ..studies.shared.static import write_latent_semantics
from ..studies.shared.steps import once
from ..updates.options import EncoderChoice, Sources, UpdateOptions, current_choice
from ..updates.replacement import change_encoder
from ..updates.report import print_report
from ..updates.run import update
from . import import_hf
from .extras import PACKAGED_MODELS

# Nothing is rejected for what a reader of the page does not need.
_RULES: Final = CleanOptions(
    min_words=5,
    require_byline_date=False,
    earliest_date=datetime.date.min,  # old archives
    max_date_disagreement_days=-1,  # a row is changed when a database is moved
    min_sentences=0,
    require_terminal_punctuation=False,
    require_language=False,
)
_PIECES: Final = 16_000
_PROJECTION: Final = 512  # numbers
_ONE_PROCESS: Final = ("--direct_num_workers=1",)
_MANY_BYTES: Final = 20_000_000
_WORDS: Final = "words"
ARCHIVE: Final = "archive"  # below the output
_CRAWLS: Final = "crawl-" + 16 * "[0-9a-f]"  # a pattern of their folders, each named by a digest of its seeds


def explore(
    inputs: Mapping[str, Sequence[str]], output: str, model: str = "", fields: Sequence[str] = (), pages: int = 100
) -> str:
    """Adds articles to the archive in a folder, which the first call makes, and gives it another model if one is named.

    Args:
      inputs: see `explore.inputs_of`.
      output: the folder.
      model: a model folder, the name of an installed model or of one on the Hugging Face Hub; "" for the one that the
        archive has, or for latent semantics where it is new.
      fields: of rows, such as "title=headline".
      pages: fetched from one site at most.

    Returns:
      The path of the archive.

    Raises:
      InputError: for bad input, too few articles to learn from, or none accepted.
    """
    started = time.monotonic()
    with locked(output):
        if inputs["crawl"]:
            _crawl(inputs["crawl"], output, pages)
        crawls = glob.glob(f"{glob.escape(output)}/{_CRAWLS}/warc/*.warc.gz")  # also of runs that failed later
        files = {"warc": [*inputs["warc"], *sorted(crawls)], "articles": list(inputs["articles"])}
        size = sum(map(os.path.getsize, [*files["warc"], *files["articles"]]))
        workers = _ONE_PROCESS if size < _MANY_BYTES else ()  # starting others takes longer
        archive, reading = f"{output}/{ARCHIVE}", ExtractOptions(fields=tuple(fields))
        words, own = f"{output}/{_WORDS}", None
        if not read_runs(archive):
            if not model:
                once(words, lambda target: _learn_words(target, output, files, reading, workers))
            own = EncoderChoice(_spec(model or words, output))
        choice = current_choice(archive, own)
        ranking = LATENT_SEMANTICS.to_dict() if _is_of(choice.spec, words) else None
        rules = UpdateOptions(extract=reading, clean=_rules(archive), ranking=ranking)
        with JobProgress("update") as progress:
            report = update(
                archive,
                encoder_from_spec(choice.spec, **choice.reading()),
                choice,
                Sources(warc=tuple(files["warc"]), articles=tuple(files["articles"])),
                rules,
                beam_args=workers,
                progress=progress,
            )
        if read_runs(archive):
            delete(glob.glob(f"{glob.escape(output)}/{_CRAWLS}"))
            if model and (spec := other_model(output, model)):
                change_encoder(archive, encoder_from_spec(spec, progress=False), EncoderChoice(spec))
    print_report(archive, report)
    if not report.version:
        raise InputError("no article was accepted", path=archive, remedy=f"`newsembed rejected {archive}` prints why")
    print(f"ready after {time.monotonic() - started:.0f} s", file=sys.stderr)
    return archive


def _rules(archive: str) -> CleanOptions:
    """Returns the rules that the archive was begun with, even if another version of newsembed made it."""
    runs = read_runs(archive)
    return options_of(CLEAN, runs[-1].settings["clean"], path=archive) if runs else _RULES


def _crawl(sources: Sequence[str], output: str, pages: int) -> None:
    """Crawls sites and feeds; what they sent before is known in the output and not stored again.

    Raises:
      InputError: if nothing was ever fetched.
    """
    seeds = "\n".join(dict.fromkeys(seed for source in sources for seed in _seeds(source)))
    folder = f"{output}/crawl-{hashlib.sha256(seeds.encode()).hexdigest()[:16]}"
    write_whole(f"{output}/seeds.txt", seeds.encode())
    options = CrawlOptions(
        max_pages_per_site=pages,
        scope=Scope.FEEDS,
        fetch_images=False,  # the page shows them from where they are
        state=f"{output}/crawled",
        allow_private_addresses=any(map(_is_private, seeds.split())),
    )
    _run(CRAWL, {"seeds": [f"{output}/seeds.txt"]}, folder, options, _ONE_PROCESS)


def _run(job: Job, inputs: Mapping[str, Sequence[str]], folder: str, options: object, workers: Sequence[str]) -> None:
    with JobProgress(job.name) as progress:
        done = execute(job, inputs, folder, options, workers, progress)
    if not read_runs(f"{os.path.dirname(folder)}/archive") and (empty := why_empty(job, inputs, done.manifest, folder)):
        raise empty


def _seeds(source: str) -> Iterator[str]:
    """The URLs of a URL, an OPML file or a list."""
    if source.endswith(".opml"):
        with open(source, "rb") as file:
            root = parse_xml(file.read())
        outlines = [] if root is None else [node for node in root.iter() if local_name(node) == "outline"]
        urls = [url for node in outlines if (url := node.get("xmlUrl") or node.get("htmlUrl"))]
        if not urls:
            raise InputError("has no outline with xmlUrl", path=source, remedy="export the feeds again, as OPML")
        yield from urls
    else:
        yield from [source] if "://" in source else read_seeds(source)


def _is_private(url: str) -> bool:
    """Whether a URL names this machine or an address of a local network, which a crawl else refuses."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def _spec(model: str, output: str) -> str:
    """A model as `newsembed update` names it; one of a package or hub is imported into the output folder first."""
    if os.path.isdir(model) or not (model in PACKAGED_MODELS or import_hf.HUB_NAME.fullmatch(model)):
        return f"model:{model}"
    if not os.path.isdir(folder := f"{output}/{model.replace('/', '--')}"):
        import_hf.run(import_hf.ImportOptions(source=model, output=folder, without_languages=None))
    return f"model:{folder}"


def advise(output: str) -> None:
    """Says what a model would bring, if the archive has none."""
    if not _is_of(read_runs(f"{output}/{ARCHIVE}")[-1].settings["encoder"], f"{output}/{_WORDS}"):
        return
    print(
        "vectors: latent semantics and TF-IDF of these articles. A model finds more reports of an event, for example "
        f"E5, which knows a hundred languages: {PACKAGED_MODELS['e5'].command}; then the same with --model e5"
    )


def other_model(output: str, model: str) -> str:
    """A model as `newsembed update` names it, if the archive has another one; else ""."""
    spec, settings = _spec(model, output), read_runs(f"{output}/{ARCHIVE}")[-1].settings
    known = (settings["encoder"], settings.get("encoder_first") or "")  # a model that was trained further is the first
    return "" if any(_is_of(one, spec.partition(":")[2]) for one in known) else spec


def _is_of(spec: str, folder: str) -> bool:
    return os.path.realpath(spec.partition(":")[2]) == os.path.realpath(folder)


def read_model(model: str, output: str) -> ModelFolder:
    """A model's folder, which has a description; one of a package or hub is imported into the output folder first."""
    folder = ModelFolder(_spec(model, output).partition(":")[2])
    if not folder.is_described:
        remedy = f"name the folder of a model, ORG/NAME on the Hugging Face Hub, or one of {', '.join(PACKAGED_MODELS)}"
        raise InputError("no such model", path=model, field="--model", remedy=remedy)
    return folder


def _learn_words(
    target: str, output: str, inputs: Mapping[str, Sequence[str]], reading: ExtractOptions, workers: Sequence[str]
) -> None:
    """Learns word pieces of the articles, and their latent semantics."""
    extracted, vocabulary = f"{output}/extract", f"{output}/vocabulary"
    _run(EXTRACT, inputs, extracted, reading, workers)
    _run(VOCABULARY, {"articles": [extracted]}, vocabulary, VocabularyOptions(size=_PIECES), workers)
    with working("words: latent semantics"):
        write_latent_semantics(target, f"{vocabulary}/{VOCABULARY_FILE}", read_articles(extracted), _PROJECTION)
