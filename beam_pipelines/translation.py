"""Machine translation into English with local models, for triplets without an English document (section 3.3).

A translator gets the texts of one document at a time. Its sentences form a batch (20 sentences are as fast as 80). The
translation of a document depends only on its texts and the model, not on the sharding or on interruptions.

`TranslationPlan` says which examples of ``newsembed examples`` are translated, and `translate_documents` stores the
English tokens of their documents.
"""

import functools
import hashlib
import importlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from ..errors import InputError, reading, refusing
from ..formats import files
from ..formats.records import Failure
from ..tasks.sentences import split_text
from ..tasks.vocabulary import Vocabulary
from .arrays import doc_id_of
from .clean.rules import count_words
from .graph import Received, Rows
from .shards import Shard
from .texts import LANGUAGE, ArticleText, language_key, load_vocabulary, read_text_batches, uniform_draw
from .token_store import DocumentTokens, day_number, store_documents

TRANSLATED: Final = "_translated"  # the stream of translated documents, see `token_store`
WANTED: Final = Rows("_wanted", np.dtype(np.uint64))  # ids of documents to translate
_CACHE: Final = "_translations"
_WORDS: Final = 400  # of a body, in whole sentences; they fill about 512 tokens
_BEAM: Final = 2
_ENGLISH: Final = "en"
_MODEL_FILE: Final = "model.bin"
_CONFIG_FILE: Final = "config.json"
_SPIECE_FILES: Final = ("source.spm", "target.spm")
_NEEDED_FILES: Final = (_MODEL_FILE, _CONFIG_FILE, *_SPIECE_FILES)
_VOCABULARY_FILE: Final = re.compile(r"(shared|source|target)_vocabulary\.(json|txt)")
_CONVERT: Final = (
    "ct2-transformers-converter --model MODEL --output_dir DIR/LANGUAGE --quantization int8 "
    "--copy_files source.spm target.spm"
)
_MAX_PIECES: Final = 128  # pieces of a sentence; Marian models see few longer sentences in training
_DECODING: Final = {
    "max_batch_size": 2048,
    "batch_type": "tokens",
    "max_input_length": 0,
    "max_decoding_length": 2 * _MAX_PIECES,
    "return_end_token": True,
    "disable_unk": True,
}
_SCHEME: Final = "1"  # increase when splitting or decoding changes, which invalidates cached translations
_PHRASE_END: Final = (",", ";", ":", "\u3001", "\uff0c", "\uff1b", "\uff1a", "\u060c")
_WORD_START: Final = "\u2581"  # SentencePiece's mark


class TranslationError(RuntimeError):
    """Raised for a text that the engine cannot translate; the document becomes a dead letter."""


def is_english(language: str) -> bool:
    """Returns whether a tag is English of any country.

    >>> is_english("en-GB"), is_english("enm")
    (True, False)
    """
    return language.partition("-")[0].casefold() == _ENGLISH


def find_language(language: str, languages: Sequence[str]) -> str | None:
    """Returns the most specific tag among ``languages`` that covers a language, ``None`` if there is none.

    >>> find_language("zh-Hant-TW", ["zh", "zh-hant", "fr"]), find_language("de", ["fr"])
    ('zh-hant', None)
    """
    known = {tag.casefold(): tag for tag in languages}
    parts = language.casefold().split("-")
    covers = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((known[tag] for tag in covers if tag in known), None)


class TranslationPlan(NamedTuple):
    """Which examples get an English positive and negative, decided before anything is translated, and how.

    Attributes:
      languages: languages that have a model.
      share: share of the eligible triplets to translate, drawn by key.
      models: folder of the models.
      cache: folder of the cache; in the job's workspace if empty.
      vocabulary: path of the vocabulary.
      max_length: tokens to keep of each text.
    """

    languages: tuple[str, ...]
    share: float
    models: str = ""
    cache: str = ""
    vocabulary: str = ""
    max_length: int = 512

    def refusal(self, key: str, anchor: DocumentTokens, *others: DocumentTokens) -> str | None:
        """Returns why an example is not translated, as the name of a counter; ``None`` if it is to be translated.

        Args:
          key: key of the triplet.
          anchor: anchor document.
          others: document of the positive text, which is the anchor in two rows of Table 1, and the negative.
        """
        if any(is_english(document.language) for document in (anchor, *others)):
            return "has_english"
        if uniform_draw("translate", key) >= self.share:
            return "not_drawn"
        missing = (one.language for one in others if find_language(one.language, self.languages) is None)
        return next((f"no_model/{language}" for language in missing), None)


def translate_documents(shard: Shard, received: Received, plan: TranslationPlan) -> None:
    """Translates documents of one shard and stores the tokens; documents that cannot be translated become dead letters.

    A document is translated completely or not at all, so every row of Table 1 that is possible for it is also possible
    in English.

    Args:
      shard: of the articles.
      received: the ids of the documents; the payload is the path of the articles.
      plan: how.

    Raises:
      InputError: if a model is broken.
      OSError: if a file cannot be read or written, for example on a full disk.
      MemoryError: if memory runs out.
    """
    translator = open_translator(plan.models, shard.workspace)
    cache, vocabulary = plan.cache or f"{shard.workspace}/{_CACHE}", load_vocabulary(plan.vocabulary)
    wanted = set(map(doc_id_of, received.rows[WANTED.stream].tolist()))
    batches = read_text_batches(received.payload) if wanted else ()
    articles = [article for batch in batches for article in batch if article.doc_id in wanted]
    articles.sort(key=lambda one: (one.language, one.doc_id))  # a translator holds one model at a time
    documents: list[DocumentTokens] = []
    for article in articles:
        shard.read()
        try:
            documents.append(_translate(article, translator, cache, vocabulary, plan.max_length))
        except (InputError, OSError, MemoryError):
            raise  # a broken model or a full disk is not the fault of this document
        except Exception as error:  # noqa: BLE001 - the engine may raise anything; one document must not stop the shard
            detail = f"{article.language}: {type(error).__name__}: {error}"
            shard.fail(article.doc_id, Failure.TRANSLATION_ERROR, detail, f"{article.title}\n{article.body}")
        else:
            shard.written()
    store_documents(shard, TRANSLATED, documents)


def _translate(
    article: ArticleText, translator: "Translator", cache: str, vocabulary: Vocabulary, max_length: int
) -> DocumentTokens:
    language = find_language(language_key(article.language), translator.languages)
    assert language is not None  # else the plan has refused it
    parts = {"title": article.title.strip(), "body": cut_text(article.body, _WORDS)}
    texts = {name: text for name, text in parts.items() if text}
    english = dict(zip(texts, cached(translator, cache, list(texts.values()), language), strict=True))
    ids = dict(zip(parts, vocabulary.encode_texts([english.get(name, "") for name in parts]), strict=True))
    for name in texts:
        if not ids[name].size:
            raise TranslationError(f"the translation of the {name} is empty: {english[name]!r}")
    title, body = ids["title"][:max_length], ids["body"][:max_length]
    return DocumentTokens(article.doc_id, _ENGLISH, title, body, (), day_number(article.byline_date))


def cut_text(text: str, words: int) -> str:
    """Returns the first sentences of a text that together have at least ``words`` words, or the whole text.

    In scripts without spaces, two characters count as a word.
    """
    sentences = split_text(text)
    before = itertools.accumulate((count_words(sentence) for _, sentence in sentences[:-1]), initial=0)
    parts = zip(sentences, before, strict=False)  # without sentences, there is still the count before the first
    return "".join(separator + sentence for (separator, sentence), total in parts if total < words)


def cut_pieces(pieces: list[str], limit: int) -> list[list[str]]:
    """Cuts the pieces of a sentence into runs of at most ``limit``.

    A run ends after a comma, or else before a word, if there is one in its second half.

    >>> cut_pieces(["▁a", "▁b", ",", "▁c", "▁d"], 4)
    [['▁a', '▁b', ','], ['▁c', '▁d']]
    """
    runs: list[list[str]] = []
    while len(pieces) > limit:
        places = range(limit, limit // 2, -1)
        commas = (place for place in places if pieces[place - 1].endswith(_PHRASE_END))
        words = (place for place in places if pieces[place].startswith(_WORD_START))
        place = next(commas, None) or next(words, limit)
        runs.append(pieces[:place])
        pieces = pieces[place:]
    return [*runs, pieces] if pieces else runs


def model_files(folder: str) -> dict[str, dict[str, str]]:
    """Returns the paths of the files of every model, by language, then by name.

    Args:
      folder: has a folder per language, named by its BCP-47 tag, with a CTranslate2 model and its SentencePiece files.

    Raises:
      InputError: if there is no model, the name of a folder is not a language, or a model lacks a file.
    """
    models: dict[str, dict[str, str]] = {}
    for path in files.list_files("*/*", folder):
        *_, language, name = path.split("/")
        found = models.setdefault(language, {})
        if name in _NEEDED_FILES or _VOCABULARY_FILE.fullmatch(name):
            found[name] = path
    if not models:
        problem, remedy = f"no <language>/{_MODEL_FILE} here", f"convert one by {_CONVERT}"
        raise InputError(problem, path=folder, field="--translation_models", remedy=remedy)
    for language, found in models.items():
        if not LANGUAGE.fullmatch(language) or is_english(language):
            problem = f"got the folder {language!r}, expected a language other than English"
            remedy = "name each folder by the language its model translates from, such as fr or zh-Hant"
            raise InputError(problem, path=folder, remedy=remedy)
        if missing := [name for name in _NEEDED_FILES if name not in found]:
            path, remedy = f"{folder.rstrip('/')}/{language}", f"convert the model by {_CONVERT}"
            raise InputError(f"no {missing[0]} here", path=path, remedy=remedy)
    return {language: dict(sorted(found.items())) for language, found in sorted(models.items())}


def models_digest(folder: str) -> str:
    """Returns a digest of languages and bytes of all models of a folder; errors are those of :func:`model_files`."""
    digests = {language: _digest(found) for language, found in model_files(folder).items()}
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()[:16]


def _digest(found: Mapping[str, str]) -> str:
    """Returns a digest of all bytes of a model: tuning some layers changes neither the size nor the ends of a file."""
    parts = {name: hashlib.sha256(_read(path)).hexdigest() for name, path in found.items()}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _read(path: str) -> bytes:
    with files.open_read(path) as source:
        return source.read()


class _Model(NamedTuple):
    """A loaded model: CTranslate2's, its SentencePiece processors, its end token, and whether a source must have it."""

    engine: Any
    source: Any
    target: Any
    end: str
    ends_source: bool


class Translator:
    """Translates with Marian models (OPUS-MT), converted by ``ct2-transformers-converter``, in int8 on one core.

    Holds one model at a time, so documents should come sorted by language.

    Args:
      folder: folder of the models, see :func:`model_files`; local or remote.
      beam_size: number of hypotheses; 1 is greedy.

    Attributes:
      languages: BCP-47 tags of the languages with a model, sorted.
      identity: returns a digest of everything except the texts on which a translation into a language depends: model,
        beam, splitting.

    Raises:
      InputError: if CTranslate2 is not installed, or as in :func:`model_files`.
    """

    def __init__(self, folder: str, beam_size: int = _BEAM) -> None:
        import_engine()
        self._files = model_files(folder)
        self.languages = tuple(self._files)
        self._beam_size = beam_size
        self.identity = functools.cache(self._identity)
        self._loaded: tuple[str, _Model] | None = None

    def _identity(self, language: str) -> str:
        parts = (_SCHEME, str(self._beam_size), _digest(self._files[language]))
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]

    def translate(self, texts: Sequence[str], language: str) -> list[str]:
        """Translates the texts of one document in one batch; the result depends only on these texts and the model.

        Args:
          texts: texts of any length; an empty list only loads the model.
          language: one of :attr:`languages`.

        Raises:
          InputError: if the model is broken.
          TranslationError: if a translation does not end; the engine may raise others.
        """
        if self._loaded is None or self._loaded[0] != language:
            self._loaded = None  # frees the previous model before the next is read
            self._loaded = (language, _load(self._files[language]))
        model = self._loaded[1]
        chunks = [(index, *chunk) for index, text in enumerate(texts) for chunk in _chunks(model, text)]
        translated = [""] * len(texts)
        sources = [[*pieces, model.end] if model.ends_source else pieces for _, _, pieces in chunks]
        results = model.engine.translate_batch(sources, beam_size=self._beam_size, **_DECODING) if chunks else []
        for (index, separator, pieces), result in zip(chunks, results, strict=True):
            *words, last = result.hypotheses[0] or [""]
            if last != model.end:  # these models repeat themselves without end on text that they cannot read
                raise TranslationError(f"no end after {2 * _MAX_PIECES} pieces of {model.source.decode(pieces)!r}")
            translated[index] += separator + str(model.target.decode(words)).strip()
        return [text.strip() for text in translated]


def _chunks(model: _Model, text: str) -> Iterator[tuple[str, list[str]]]:
    for separator, sentence in split_text(text):
        for part, pieces in enumerate(cut_pieces(model.source.encode(sentence, out_type=str), _MAX_PIECES)):
            yield " " if part else separator, pieces


def _load(found: Mapping[str, str]) -> _Model:
    import sentencepiece

    engine = import_engine()
    contents: dict[str, Any] = {name: _read(path) for name, path in found.items()}
    folder = found[_MODEL_FILE].rpartition("/")[0]
    with reading(folder, f"CTranslate2 must be able to read the model: convert it again by {_CONVERT}", RuntimeError):
        load = sentencepiece.SentencePieceProcessor
        source, target = (load(model_proto=contents.pop(name)) for name in _SPIECE_FILES)
        config = json.loads(contents[_CONFIG_FILE])
        # More threads would change the order of sums, and there is already one worker per core.
        one = {"device": "cpu", "compute_type": "int8", "inter_threads": 1, "intra_threads": 1}
        translator, end = engine.Translator(folder, files=contents, **one), config.get("eos_token", "</s>")
        return _Model(translator, source, target, end, not config.get("add_source_eos", False))


def import_engine() -> ModuleType:
    """Imports CTranslate2, an optional dependency.

    Raises:
      InputError: if it is not installed.
    """
    about = {"field": "--translation_models", "remedy": "pip install newsembed[translate]"}
    with refusing("CTranslate2 is not installed:", ImportError, **about):
        return importlib.import_module("ctranslate2")


def cached(translator: Translator, folder: str, texts: Sequence[str], language: str) -> list[str]:
    """Returns the cached translation of the texts of one document, or translates and caches. Failures are not cached.

    Args:
      translator: translates texts that are not in the cache.
      folder: folder of ``<identity>/<two digits>/<digest of the texts>.json``; several jobs may share it.
      texts: see :meth:`Translator.translate`.
      language: see :meth:`Translator.translate`.
    """
    key = hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:32]
    path = f"{folder.rstrip('/')}/{translator.identity(language)}/{key[:2]}/{key}.json"
    if files.exists(path):
        return [str(text) for text in files.read_json(path)]
    translated = translator.translate(texts, language)
    files.write_json(path, translated)  # under a name of this process first: another may write the same translation
    return translated


@functools.lru_cache(maxsize=1)
def open_translator(folder: str, _workspace: str) -> Translator:
    """Returns the translator over a folder of models, one per process and job (models may change between two jobs).

    Errors are those of :class:`Translator`.
    """
    return Translator(folder)
