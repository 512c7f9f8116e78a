"""Baseline encoders: LSA, mean word vectors, a sentence-transformers folder, and any function from texts to vectors."""

import functools
import importlib
import importlib.util
import inspect
import os
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..errors import InputError, refusing
from ..formats.arrays import WordVectorFile
from ..formats.bars import bar
from ..tasks.functions import load_function, working_folder_on_path
from .encoders import WORD_PATTERN, Document, Embeddings, TfidfEncoder
from .files import digest
from .heads import quiet_threads

_WORD: Final = re.compile(r"\w+")
_BATCH: Final = 64


class LsaEncoder:
    """Latent semantic analysis (Deerwester et al. 1990): the truncated SVD of the TF-IDF matrix of the documents.

    Seed 0 fixes the randomised SVD and its signs. The embeddings have fewer dimensions than ``dimensions`` if the
    collection has fewer documents or words.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions, self._tfidf = dimensions, TfidfEncoder()

    @property
    def digest(self) -> str:
        """Identifies the options."""
        return f"lsa-{self._dimensions}-{self._tfidf.digest}"

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns float32 ``[N, min(dimensions, N, words)]``."""
        from sklearn.decomposition import TruncatedSVD

        words = self._tfidf.encode(documents)
        svd = TruncatedSVD(min(self._dimensions, *words.shape), random_state=0)
        with quiet_threads(), np.errstate(divide="ignore", invalid="ignore"):  # a single document has no variance
            return svd.fit_transform(words).astype(np.float32)


class BinaryWordEncoder:
    """Which words a document has: binary vectors, whose cosine ignores how often a word occurs and how rare it is.

    Okura et al. 2016 compare headlines and full texts in this way.

    Args:
      is_title_only: reads titles alone; a document without a title is zero.
    """

    def __init__(self, *, is_title_only: bool = False) -> None:
        self._is_title_only = is_title_only

    @property
    def digest(self) -> str:
        """Identifies the options."""
        return "binary-words-of-titles" if self._is_title_only else "binary-words"

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns CSR float32 ``[N, words]`` of 0 and 1."""
        from sklearn.feature_extraction.text import CountVectorizer

        texts = [document.title if self._is_title_only else document.text for document in documents]
        remedy = f"give documents with {'titles' if self._is_title_only else 'text'}"
        with refusing("no document has words:", ValueError, remedy=remedy):
            return CountVectorizer(binary=True, token_pattern=WORD_PATTERN, dtype=np.float32).fit_transform(texts)


class WordVectorEncoder:
    """The mean of the vectors of a document's words, from a word2vec or GloVe text file (``.gz`` too).

    Words are runs of letters and digits. A word is looked up as written, then in lower case. Unknown words are left
    out; the vector of a document without known words is zero. The file is streamed; only the vectors of words that
    occur are held in memory.
    """

    def __init__(self, path: str) -> None:
        self._path, self._vectors = path, WordVectorFile(path)

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the contents of the file."""
        return f"wordvectors-{digest(self._path)}"

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns float32 ``[N, D]``."""
        words = [_WORD.findall(document.text) for document in documents]
        table = self._vectors.read({form for row in words for word in row for form in (word, word.lower())})
        embeddings = np.zeros((len(documents), self._vectors.dimensions), np.float32)
        for number, row in enumerate(words):
            found = [vector for word in row if (vector := table.get(word, table.get(word.lower()))) is not None]
            if found:
                embeddings[number] = np.mean(found, axis=0)
        if not embeddings.any():
            remedy = "give vectors of the documents' language"
            raise InputError("no word of the documents is in the file", path=self._path, remedy=remedy)
        return embeddings


class FunctionEncoder:
    r"""Any ``module:function`` (or ``file.py:function``) that maps a list of texts to a matrix with one row each.

    The function is called on batches of texts of similar length, so it must map each text independently; a text is
    ``title\nbody``. The digest, and so the cache, depends on the source of its module. A function that depends on more,
    such as weights on disk, needs an attribute ``digest``, a string.
    """

    def __init__(self, spec: str) -> None:
        self._spec, self._function = spec, load_function(spec)

    @property
    def digest(self) -> str:
        """The function's attribute ``digest``, or the digest of the source of its module."""
        own = getattr(self._function, "digest", None)
        if isinstance(own, str):
            return f"function-{self._spec}-{own}"
        try:
            source = inspect.getsourcefile(inspect.unwrap(self._function))
        except TypeError:
            source = None
        if source is None:
            remedy = "give the function an attribute `digest`, a string"
            raise InputError("its source cannot be read, so it has no digest", field=self._spec, remedy=remedy)
        return f"function-{self._spec}-{digest(source)}"

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns float32 ``[N, D]`` from the function, rows in the order of the documents."""
        texts = [document.text for document in documents]
        order = np.argsort([-len(text) for text in texts], kind="stable")
        rows: Any = None
        with bar(len(texts), "text") as shown:
            for start in range(0, len(order), _BATCH):
                numbers = order[start : start + _BATCH]
                batch = np.asarray(self._function([texts[number] for number in numbers]))
                if batch.ndim != 2 or len(batch) != len(numbers):
                    problem = (
                        f"{self._spec} returned an array of shape {batch.shape} for {len(numbers)} texts, expected"
                    )
                    remedy = "fix the function: one row for each text, in order"
                    raise InputError(f"{problem} [{len(numbers)}, D]", remedy=remedy)
                if rows is None:
                    rows = np.empty((len(texts), batch.shape[1]), np.float32)
                if batch.shape[1] != rows.shape[1]:
                    problem = f"{self._spec} returned {batch.shape[1]} columns after {rows.shape[1]}"
                    raise InputError(problem, remedy="fix the function: always the same width")
                rows[numbers] = batch
                shown.update(len(numbers))
        return rows


class SentenceTransformerEncoder:
    """A sentence-transformers or Hugging Face model folder; the sentence-transformers library runs it, offline."""

    def __init__(self, folder: str) -> None:
        if not os.path.isdir(folder):
            remedy = "give a folder with config.json, as saved by sentence-transformers"
            raise InputError("no such folder", path=folder, remedy=remedy)
        if importlib.util.find_spec("sentence_transformers") is None:
            remedy = "pip install sentence-transformers, or choose another encoder"
            raise InputError("sentence-transformers is not installed", field="st", remedy=remedy)
        library: Any = importlib.import_module("sentence_transformers")
        self._folder, self._model = folder, library.SentenceTransformer(folder, local_files_only=True)

    @functools.cached_property
    def digest(self) -> str:
        """Identifies the contents of the folder."""
        return f"st-{digest(self._folder)}"

    def encode(self, documents: Sequence[Document]) -> Embeddings:
        """Returns float32 ``[N, D]``; the library sorts by length and truncates at the maximum length of the model."""
        texts = [document.text for document in documents]
        return self._model.encode(texts, batch_size=_BATCH, show_progress_bar=True, convert_to_numpy=True)


def is_function_spec(spec: str) -> bool:
    """Returns whether ``spec`` is ``module:function`` or ``file.py:function`` and the module or file exists.

    >>> is_function_spec("os.path:join"), is_function_spec("no_such_module_here:f"), is_function_spec("tfidf")
    (True, False, False)
    """
    module, colon, function = spec.rpartition(":")
    if not colon or not function.isidentifier():
        return False
    if module.endswith(".py"):
        return os.path.isfile(module)
    with working_folder_on_path():
        try:
            return importlib.util.find_spec(module) is not None
        except (ImportError, ValueError):
            return False
