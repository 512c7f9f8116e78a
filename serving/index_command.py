"""``newsembed index``: build a search index over articles.

Example::

    newsembed index --saved_model work/saved --input work/articles --output work/index
    newsembed index --saved_model work/saved --input today.jsonl --output work/index --append
    newsembed index --saved_model work/newer --input work/articles --output work/index --overwrite
    newsembed search --index work/index "storm hits the coast"
"""

import argparse
import collections
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from ..errors import InputError, counted
from ..formats.archive import is_archive
from ..formats.articles import ArticleText, article_files, read_articles
from ..formats.index import IndexedDocument, facts_file
from ..formats.whole import check_output
from .embed import embedded
from .index import DocumentIndex, append, indexed_document, reading_of
from .interface import TextEncoder
from .search import index_encoder
from .specs import add_embedding_arguments, encoder_from_spec, encoder_spec
from .tuning import learn_ranking
from .words import WordsBuilder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed index``."""
    add_embedding_arguments(parser)
    parser.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="folder of the index; must not have one unless --append or --overwrite",
    )
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument(
        "--append", action="store_true", help="add the articles that the index does not have (by doc_id) to it"
    )
    existing.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the index in the folder; it is there until the new one is complete",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
      InputError: for an index that exists, without an option that says what to do with it.
    """
    article_files(args.input)  # a wrong path is noticed before the model is read
    if is_archive(args.output):
        problem, remedy = "is an archive of newsembed update, which writes its index", "choose another folder"
        raise InputError(problem, path=args.output, field="--output", remedy=remedy)
    check_output(args.output, is_folder=True)
    if args.append:
        return _append(args)
    if os.path.exists(facts_file(args.output)) and not args.overwrite:
        remedy = "choose another folder, or give --append to add articles to it or --overwrite to replace it"
        raise InputError("has an index already", path=args.output, field="--output", remedy=remedy)
    spec = encoder_spec(args) or ""
    reading = {"document_prompt": args.prompt, "long_documents": args.long_documents}
    encoder = encoder_from_spec(spec, max_length=args.max_length, **reading)
    counts = collections.Counter[str]()
    articles = _unseen(read_articles(args.input), set(), counts)
    index = build_index(encoder, articles, args.input, spec=spec, counts=counts, **reading)
    index.save(args.output, replace=args.overwrite)  # another process may have written one in the meantime
    how = "exact" if index.is_exact else "approximate"
    counts["undated"] = sum(document.byline_date is None for document in index.documents)
    print(f"{counted(len(index), 'article')} indexed for {how} search{_remarks(counts)}: {args.output}")
    return 0


def _append(args: argparse.Namespace) -> int:
    """Adds articles to an index; the encoder reads only those that it does not have.

    Raises:
      InputError: if the options are those of a new index, or the encoder is another.
    """
    if args.prompt is not None or args.long_documents:
        problem = "documents are read as the index says"
        raise InputError(problem, field="--append", remedy="leave out --prompt and --long_documents")
    index = DocumentIndex.load(args.output)
    encoder = index_encoder(index, encoder_spec(args), max_length=args.max_length)
    known = {document.doc_id for document in index.documents}
    counts = collections.Counter[str]()
    new = list(_unseen(read_articles(args.input), known, counts))
    kept = [article for article in new if not article.is_empty]
    counts["empty"] = len(new) - len(kept)
    counts["undated"] = sum(article.byline_date is None for article in kept)
    if kept:
        parts = [embeddings for _, embeddings in embedded(encoder, iter(kept))]
        append(args.output, np.concatenate(parts), kept, encoder_digest=encoder.digest)
    print(f"{counted(len(kept), 'article')} added to {len(index)}{_remarks(counts)}: {args.output}")
    return 0


def _unseen(
    articles: Iterator[ArticleText], known: Collection[str], counts: collections.Counter[str]
) -> Iterator[ArticleText]:
    """Yields the articles whose `doc_id` is new, and those without text; counts the others."""
    seen = set[str]()
    for article in articles:
        if article.is_empty:
            yield article
        elif article.doc_id in known:
            counts["known"] += 1
        elif article.doc_id in seen:
            counts["repeated"] += 1
        else:
            seen.add(article.doc_id)
            yield article


_REMARKS: Final = {
    "empty": "without text left out",
    "known": "known already",
    "repeated": "with the URL or doc_id of another left out",
    "undated": "without a date (byline_date or published_at, YYYY-MM-DD)",
}


def _remarks(counts: Mapping[str, int]) -> str:
    return "".join(f", {counts[name]} {text}" for name, text in _REMARKS.items() if counts.get(name))


def _learned(index: DocumentIndex, encoder: TextEncoder) -> Mapping[str, Any] | None:
    ranking = learn_ranking(index, encoder)
    return None if ranking is None else ranking.to_dict()


def build_index(
    encoder: TextEncoder,
    articles: Iterator[ArticleText],
    source: str = "",
    *,
    spec: str = "",
    counts: dict[str, int] | None = None,
    document_prompt: str | None = None,
    long_documents: str | None = None,
) -> DocumentIndex:
    """Embeds articles and indexes them.

    Args:
      encoder: what embeds.
      articles: those without text are left out.
      source: where they are from, for an error.
      spec: ``KIND:REST`` of the encoder, kept in the index so that ``search`` can load it.
      counts: ``embedded`` and ``empty`` are added up here.
      document_prompt: what the encoder was given in place of its own prompt, kept in the index, too.
      long_documents: what the encoder was given in place of its own way to read them, kept in the index, too.

    Raises:
      InputError: if no article has text, or an embedding is not finite.
    """
    documents: list[IndexedDocument] = []
    parts = []
    with WordsBuilder() as words:
        for chunk, embeddings in embedded(encoder, articles, counts, source):
            words.add(chunk)
            documents += map(indexed_document, chunk)
            parts.append(embeddings)
    index = DocumentIndex(
        np.concatenate(parts),
        documents,
        encoder=spec,
        encoder_digest=encoder.digest,
        reading=reading_of(encoder, document_prompt, long_documents),
    )
    index.words = words.built()
    index.ranking = _learned(index, encoder)
    return index
