r"""Opens any articles as a page: events, search, topics. One command, without training and without a model.

The articles are files, folders or patterns: JSONL, JSON, CSV, TSV, Parquet or WARC. Usual names of columns are known
(headline, text, published, …), --fields names others. An article needs a title and a text, but no URL, author or date.
Run it again with more articles: those that are new are added. In --output are the archive, as `newsembed update` makes
it, in the folder archive, and what it was made with. `newsembed search --index explored/archive` searches it.

The URL of a site, a section or a feed is crawled, as `newsembed crawl` does it: robots.txt is obeyed, and a site gets
one request a second and --pages at most. Run again, it fetches what has changed. A list of URLs is a text file with one
a line, or an OPML file, as feed readers export it.

Without --model the vectors are latent semantics and TF-IDF, learned from these articles in seconds. A model finds more:
one that `newsembed lift` or `train` wrote, the name of an installed package, e5 (a hundred languages) or minilm
(English, twice as fast), or the name of a model on the Hugging Face Hub. It reads thousands of articles in minutes.
Meanwhile the page shows what those vectors find, or the model before; it changes by itself, and events keep their
addresses.

example:
  newsembed explore articles.csv
  newsembed explore https://www.example.org feeds.opml --pages 50
  newsembed explore 'articles/*.jsonl.zst' crawl/warc --output explored --port 8080
  newsembed explore articles.jsonl --model e5 --fields title=head --fields body=story
  newsembed explore articles.jsonl --model intfloat/multilingual-e5-small
"""

import dataclasses
import glob
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..errors import InputError
from ..formats.articles import article_files
from ..formats.command_line import Options, option, required
from .extras import PACKAGED_MODELS

if TYPE_CHECKING:
    from ..serving.index import DocumentIndex

_LISTS: Final = (".txt", ".opml")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExploreOptions(Options):
    """Options of ``newsembed explore``."""

    articles: tuple[str, ...] = required(
        "files, folders or patterns of articles or WARC files, URLs to crawl, or lists of URLs (.txt, .opml)",
        positional=True,
        many=True,
        metavar="PATH|URL",
    )
    output: str = option("explored", "folder, with the archive in DIR/archive", metavar="DIR", local=True)
    model: str = option(
        "",
        f"a model folder, an installed model ({', '.join(PACKAGED_MODELS)}), or ORG/NAME on the Hugging Face Hub "
        "(default: latent semantics)",
    )
    fields: tuple[str, ...] = option(
        (),
        "a field under its name in the files, such as title=headline; repeatable",
        repeated=True,
        metavar="OURS=THEIRS",
    )
    pages: int = option(100, "of URLs: pages fetched from one site at most, one a second", ge=1)
    serve: bool = option(True, "open the page; else only the archive is made")
    host: str = option("127.0.0.1", "address to listen on; by default this machine only")
    port: int = option(8000, "0 for any free one", ge=0, le=65_535)


OPTIONS = ExploreOptions


def run(options: ExploreOptions) -> int:
    """Makes or extends the archive, and serves it."""
    inputs = inputs_of(options.articles)
    names = [name for names in inputs.values() for name in names]
    print(f"reading {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}", file=sys.stderr, flush=True)
    # Beam, LanceDB and JAX take seconds.
    from ..formats.archive import last_number
    from ..serving import server
    from ..studies.shared.runs import child
    from ..updates.replacement import embedded_so_far
    from . import exploration

    output, model = options.output, options.model
    if model:
        exploration.read_model(model, output)  # so that a wrong name is noticed first
    archive = exploration.explore(inputs, output, "" if options.serve else model, options.fields, options.pages)
    if not model:
        exploration.advise(output)
    if not options.serve:
        return 0
    served = server.ServeOptions(index=archive, host=options.host, port=options.port)
    if not model or not (spec := exploration.other_model(output, model)):
        return server.run(served)
    with child(["update", f"--archive={archive}", f"--encoder={spec}", "--replace_encoder"]) as process:

        def notice(index: "DocumentIndex") -> str:
            if process.poll() == 0 and index.archive.run.number == last_number(archive):
                return ""
            if process.poll():
                return f"{model} has failed, see the terminal. The same command goes on where it stopped."
            so_far = f"{model} has read {embedded_so_far(archive):,} of {len(index):,} articles"
            return f"{so_far}. Until it has read all of them, events and search are as before."

        try:
            return server.run(served, notice)
        finally:
            process.terminate()


def inputs_of(paths: Sequence[str]) -> dict[str, list[str]]:
    """URLs and lists of them ("crawl"), and the files of the job ``extract`` by input; folders are searched for both.

    Raises:
      InputError: if there are none.
    """
    found: dict[str, list[str]] = {"crawl": [], "warc": [], "articles": []}
    for path in paths:
        if re.match("https?://", path) or (path.endswith(_LISTS) and os.path.isfile(path)):
            found["crawl"].append(path)
            continue
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
