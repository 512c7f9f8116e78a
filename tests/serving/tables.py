"""Archives of vectors made by hand."""

import atexit
import itertools
import tempfile

import numpy as np
from newsembed.formats.archive import EXACT_LIMIT, Archive, IndexedDocument, schema
from newsembed.formats.archive_writer import Writer
from newsembed.formats.articles import ArticleText
from newsembed.serving.index import DocumentIndex
from newsembed.serving.index_command import table_rows

_FOLDER = tempfile.TemporaryDirectory()
atexit.register(_FOLDER.cleanup)
_NUMBERS = itertools.count()


def text_of(one):
    """An article of what results show of it, without a body."""
    if isinstance(one, ArticleText):
        return one
    return ArticleText(one.doc_id, one.url, one.publisher, one.title, "", one.language, one.byline_date, one.image_url)


def numbered(titles, dates=()):
    """What results show of an article for each title; those without a date come last."""
    site = "a.example"
    rows = enumerate(itertools.zip_longest(titles, dates))
    return [IndexedDocument(f"d{n}", f"https://{site}/{n}", site, title, date) for n, (title, date) in rows]


def index_of(vectors, documents, uri=None, *, exact_limit=EXACT_LIMIT, events=(), **settings):
    """Writes an index of articles, or of what results show of them; their numbers are their places."""
    uri = str(uri or f"{_FOLDER.name}/{next(_NUMBERS)}")
    texts = list(map(text_of, documents))
    shape = schema(vectors.shape[1])
    values = dict.fromkeys(("encoder", "encoder_digest"), "")
    values |= dict.fromkeys(("document_prompt", "long_documents", "max_length", "ranking"))
    values |= {"languages": sorted({text.language for text in texts})} | ({"events": {}} if events else {})
    with Writer(uri) as writer:
        writer.create(shape, table_rows(texts, np.asarray(vectors, np.float32), shape, events).to_batches())
        writer.publish(writer.finish(values | settings, {}))
    return DocumentIndex(Archive(uri), exact_limit=exact_limit)


def indexed(articles, encoder, uri=None, **settings):
    """Writes an index of articles by an encoder."""
    vectors = encoder.encode([one.title for one in articles], [one.body for one in articles])
    return index_of(vectors, articles, uri, **{"encoder_digest": encoder.digest, **settings})
