"""Machine translation into English with local models, for triplets without an English document (section 3.3).

A :class:`Translator` gets the texts of one document at a time. Its sentences form a batch (20 sentences are as fast as
80). The translation of a document depends only on its texts and the model, not on the sharding or on interruptions.
"""

import dataclasses
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, Final, Protocol

from ..errors import InputError
from ..formats import files
from ..tasks.sentences import split_text
from .clean.counting import count_words
from .texts import language_key

ENGLISH: Final = "en"
MODEL_FILE: Final = "model.bin"
CONVERT: Final = (
    "ct2-transformers-converter --model MODEL --output_dir DIR/LANGUAGE --quantization int8 "
    "--copy_files source.spm target.spm"
)
_SPIECE_FILES: Final = ("source.spm", "target.spm")
_CONFIG_FILE: Final = "config.json"
_VOCABULARY_FILE: Final = re.compile(r"(shared|source|target)_vocabulary\.(json|txt)")
_MAX_PIECES: Final = 128  # pieces of a sentence; Marian models see few longer sentences in training
_MAX_BATCH_TOKENS: Final = 2048
_SCHEME: Final = "1"  # increase when splitting or decoding changes, which invalidates cached translations
_PHRASE_END: Final = (",", ";", ":", "\u3001", "\uff0c", "\uff1b", "\uff1a", "\u060c")
_WORD_START: Final = "\u2581"  # SentencePiece's mark


class TranslationError(RuntimeError):
    """Raised for a text that the engine cannot translate; the document becomes a dead letter."""


class Translator(Protocol):
    """Interface of translators into English."""

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP-47 tags of the languages with a model, sorted."""

    def identity(self, language: str) -> str:
        """Returns a digest of everything except the texts on which a translation depends: model, beam, splitting."""

    def translate(self, texts: Sequence[str], language: str) -> list[str]:
        """Translates the texts of one document in one batch; the result depends only on these texts and the model.

        Args:
          texts: texts of any length; an empty list only loads the model.
          language: one of :attr:`languages`.

        Raises:
          InputError: if the model is broken.
          Exception: of the engine, or :class:`TranslationError`, if the texts cannot be translated.
        """


def is_english(language: str) -> bool:
    """Returns whether a tag is English of any country.

    >>> is_english("en-GB"), is_english("enm")
    (True, False)
    """
    return language.partition("-")[0].casefold() == ENGLISH


def find_language(language: str, languages: Sequence[str]) -> str | None:
    """Returns the most specific tag among ``languages`` that covers a language, ``None`` if there is none.

    >>> find_language("zh-Hant-TW", ["zh", "zh-hant", "fr"]), find_language("de", ["fr"])
    ('zh-hant', None)
    """
    known = {tag.casefold(): tag for tag in languages}
    parts = language.casefold().split("-")
    covers = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((known[tag] for tag in covers if tag in known), None)


def cut_text(text: str, words: int) -> str:
    """Returns the first sentences of a text that together have at least ``words`` words, or the whole text.

    In scripts without spaces, two characters count as a word.
    """
    kept: list[str] = []
    total = 0
    for separator, sentence in split_text(text):
        if total >= words:
            break
        total += count_words(sentence)
        kept.append(separator + sentence)
    return "".join(kept)


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
    for path in files.list_files(f"{folder.rstrip('/')}/*/*"):
        above, _, name = path.rpartition("/")
        models.setdefault(above.rpartition("/")[2], {})[name] = path
    if not models:
        raise InputError(
            f"no <language>/{MODEL_FILE} here",
            path=folder,
            field="--translation_models",
            remedy=f"convert one by {CONVERT}",
        )
    for language, found in models.items():
        if not language_key(language) or is_english(language):
            remedy = "name each folder by the language its model translates from, such as fr or zh-Hant"
            raise InputError(
                f"got the folder {language!r}, expected a language other than English", path=folder, remedy=remedy
            )
        for name in (MODEL_FILE, _CONFIG_FILE, *_SPIECE_FILES):
            if name not in found:
                raise InputError(
                    f"no {name} here", path=f"{folder.rstrip('/')}/{language}", remedy=f"convert the model by {CONVERT}"
                )
    kept = {MODEL_FILE, _CONFIG_FILE, *_SPIECE_FILES}
    return {
        language: {
            name: path for name, path in sorted(found.items()) if name in kept or _VOCABULARY_FILE.fullmatch(name)
        }
        for language, found in sorted(models.items())
    }


def models_digest(folder: str) -> str:
    """Returns a digest of languages and bytes of all models of a folder; errors are those of :func:`model_files`."""
    models = model_files(folder)
    return hashlib.sha256(
        json.dumps({language: _digest(found) for language, found in models.items()}).encode()
    ).hexdigest()[:16]


def _digest(found: dict[str, str]) -> str:
    """Returns a digest of all bytes of a model: tuning some layers changes neither the size nor the ends of a file."""
    parts = {}
    for name, path in found.items():
        with files.open_read(path) as source:
            parts[name] = hashlib.sha256(source.read()).hexdigest()
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class _Model:
    """A loaded model.

    Attributes:
      engine: the CTranslate2 translator.
      source: SentencePiece processor of the source.
      target: SentencePiece processor of the target.
      end: the end token.
      ends_source: whether the end token has to be appended to the source.
    """

    engine: Any
    source: Any
    target: Any
    end: str
    ends_source: bool


class CTranslate2Translator:
    """Translates with Marian models (OPUS-MT), converted by ``ct2-transformers-converter``, in int8 on one core.

    Holds one model at a time, so documents should come sorted by language.

    Args:
      folder: folder of the models, see :func:`model_files`; local or remote.
      beam_size: number of hypotheses; 1 is greedy.

    Raises:
      InputError: if CTranslate2 is not installed, or as in :func:`model_files`.
    """

    def __init__(self, folder: str, beam_size: int) -> None:
        import_engine()
        self._files = model_files(folder)
        self._beam_size = beam_size
        self._identities: dict[str, str] = {}
        self._loaded: tuple[str, _Model] | None = None

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP-47 tags of the languages with a model, sorted."""
        return tuple(self._files)

    def identity(self, language: str) -> str:
        """Returns a digest of model, beam and splitting."""
        if language not in self._identities:
            parts = (_SCHEME, str(self._beam_size), _digest(self._files[language]))
            self._identities[language] = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]
        return self._identities[language]

    def translate(self, texts: Sequence[str], language: str) -> list[str]:
        """Translates the texts of one document, see :meth:`Translator.translate`.

        Raises:
          TranslationError: if a translation does not end.
        """
        model = self._model(language)
        chunks = [(index, *chunk) for index, text in enumerate(texts) for chunk in _chunks(model, text)]
        translated = [""] * len(texts)
        if not chunks:
            return translated
        results = model.engine.translate_batch(
            [[*pieces, model.end] if model.ends_source else pieces for _, _, pieces in chunks],
            beam_size=self._beam_size,
            max_batch_size=_MAX_BATCH_TOKENS,
            batch_type="tokens",
            max_input_length=0,
            max_decoding_length=2 * _MAX_PIECES,
            return_end_token=True,
            disable_unk=True,
        )
        for (index, separator, pieces), result in zip(chunks, results, strict=True):
            *words, last = result.hypotheses[0] or [""]
            if last != model.end:  # these models repeat themselves without end on text that they cannot read
                raise TranslationError(f"no end after {2 * _MAX_PIECES} pieces of {model.source.decode(pieces)!r}")
            translated[index] += separator + str(model.target.decode(words)).strip()
        return [text.strip() for text in translated]

    def _model(self, language: str) -> _Model:
        if self._loaded is None or self._loaded[0] != language:
            self._loaded = None  # frees the previous model before the next is read
            self._loaded = (language, _load(self._files[language]))
        return self._loaded[1]


def _chunks(model: _Model, text: str) -> Iterator[tuple[str, list[str]]]:
    for separator, sentence in split_text(text):
        for part, pieces in enumerate(cut_pieces(model.source.encode(sentence, out_type=str), _MAX_PIECES)):
            yield " " if part else separator, pieces


def _load(found: dict[str, str]) -> _Model:
    import sentencepiece

    engine = import_engine()
    contents = {}
    for name, path in found.items():
        with files.open_read(path) as source:
            contents[name] = source.read()
    folder = found[MODEL_FILE].rpartition("/")[0]
    try:
        source_pieces, target_pieces = (
            sentencepiece.SentencePieceProcessor(model_proto=contents.pop(name)) for name in _SPIECE_FILES
        )
        config = json.loads(contents[_CONFIG_FILE])
        # More threads would change the order of sums, and there is already one worker per core.
        translator = engine.Translator(
            folder, device="cpu", compute_type="int8", inter_threads=1, intra_threads=1, files=contents
        )
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"CTranslate2 cannot read the model: {error}", path=folder, remedy=f"convert it again by {CONVERT}"
        ) from error
    return _Model(
        translator,
        source_pieces,
        target_pieces,
        config.get("eos_token", "</s>"),
        not config.get("add_source_eos", False),
    )


def import_engine() -> ModuleType:
    """Imports CTranslate2, an optional dependency.

    Raises:
      InputError: if it is not installed.
    """
    try:
        import ctranslate2
    except ImportError as error:
        raise InputError(
            f"CTranslate2 is not installed: {error}",
            field="--translation_models",
            remedy="pip install newsembed[translate]",
        ) from error
    module: ModuleType = ctranslate2
    return module


class CachingTranslator:
    """Caches translations on disk, so that no document is translated twice. Failures are not cached.

    Args:
      inner: translates texts that are not in the cache.
      folder: folder of ``<identity>/<two digits>/<digest of the texts>.json``; several jobs may share it.
    """

    def __init__(self, inner: Translator, folder: str) -> None:
        self._inner = inner
        self._folder = folder.rstrip("/")

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP-47 tags of the languages with a model, sorted."""
        return self._inner.languages

    def identity(self, language: str) -> str:
        """Returns the identity of the inner translator."""
        return self._inner.identity(language)

    def translate(self, texts: Sequence[str], language: str) -> list[str]:
        """Returns the cached translation, or translates and caches."""
        key = hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:32]
        path = f"{self._folder}/{self.identity(language)}/{key[:2]}/{key}.json"
        if files.exists(path):
            return [str(text) for text in files.read_json(path)]
        translated = self._inner.translate(texts, language)
        own = f"{path}.{os.getpid()}"  # another job may be writing the same translation
        files.write_json(own, translated)
        files.move(own, path)
        return translated


@functools.lru_cache(maxsize=1)
def open_translator(folder: str, beam_size: int, _workspace: str) -> Translator:
    """Returns the translator over a folder of models, one per process and job (models may change between two jobs).

    Errors are those of :class:`CTranslate2Translator`.
    """
    return CTranslate2Translator(folder, beam_size)
