"""The translation phase of ``newsembed examples``: selects documents, finds them and stores their English tokens."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..errors import InputError
from ..formats.parquet import read_batches
from ..formats.records import Failure
from ..tasks.vocabulary import Vocabulary
from . import translation
from .shards import Shard
from .texts import UNDETERMINED, ArticleText, language_key, load_vocabulary, read_text_batches, uniform_draw
from .token_store import DocumentTokens, day_number, store_documents
from .translation import ENGLISH, CachingTranslator, TranslationError, Translator, cut_text, find_language, is_english

STREAM = "_translated"
_CACHE = "_translations"


@dataclasses.dataclass(frozen=True)
class TranslationPlan:
    """Decides which examples get an English positive and negative, before anything is translated.

    Attributes:
      languages: languages that have a model.
      share: share of the eligible triplets to translate, drawn by key.
    """

    languages: tuple[str, ...]
    share: float

    def refusal(
        self, key: str, anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
    ) -> str | None:
        """Returns why an example is not translated, as the name of a counter; ``None`` if it is to be translated.

        Args:
          key: key of the triplet.
          anchor: anchor document.
          positive: document of the positive text, which is the anchor in two rows of Table 1.
          negative: negative document.
        """
        if any(is_english(document.language) for document in (anchor, positive, negative)):
            return "has_english"
        if uniform_draw("translate", key) >= self.share:
            return "not_drawn"
        missing = [
            document.language
            for document in (positive, negative)
            if find_language(document.language, self.languages) is None
        ]
        return f"no_model/{missing[0]}" if missing else None


@dataclasses.dataclass(frozen=True)
class TranslationSettings:
    """Settings for translating one shard.

    Attributes:
      models: folder of the models.
      beam_size: beam of the search.
      words: words of a body to translate, see :func:`~.translation.cut_text`.
      cache: folder of the cache; in the job's workspace if empty.
      vocabulary: path of the vocabulary.
      max_length: tokens to keep of each text.
    """

    models: str
    beam_size: int
    words: int
    cache: str
    vocabulary: str
    max_length: int


def read_places(index: int, path: str) -> Iterator[tuple[str, int]]:
    """Yields (doc_id, shard) for every article of one shard."""
    for batch in read_batches(path, ["doc_id"]):
        for doc_id in batch.column("doc_id").to_pylist():
            yield doc_id, index


def place_wanted(doc_id: str, groups: Mapping[str, Iterable[int]]) -> Iterator[tuple[int, str]]:
    """Yields (shard, doc_id) of a document if it is wanted."""
    if list(groups["wanted"]):
        yield min(groups["places"]), doc_id


def translate_documents(
    shard: Shard, doc_ids: Sequence[str], articles: Sequence[str], settings: TranslationSettings
) -> None:
    """Translates documents of one shard and stores the tokens; documents that cannot be translated become dead letters.

    A document is translated completely or not at all, so every row of Table 1 that is possible for it is also possible
    in English.

    Raises:
      InputError: if a model is broken.
      OSError: if a file cannot be read or written, for example on a full disk.
      MemoryError: if memory runs out.
    """
    opened = translation.open_translator(settings.models, settings.beam_size, shard.workspace)
    translator = CachingTranslator(opened, settings.cache or f"{shard.workspace}/{_CACHE}")
    vocabulary = load_vocabulary(settings.vocabulary)
    documents: list[DocumentTokens] = []
    for article in _read_wanted(articles[shard.index], doc_ids):
        shard.read()
        try:
            documents.append(_translate(article, translator, vocabulary, settings))
        except (InputError, OSError, MemoryError):
            raise  # a broken model or a full disk is not the fault of this document
        except Exception as error:  # noqa: BLE001 - the engine may raise anything; one document must not stop the shard
            detail = f"{article.language}: {type(error).__name__}: {error}"
            shard.fail(article.doc_id, Failure.TRANSLATION_ERROR, detail, f"{article.title}\n{article.body}")
        else:
            shard.written()
    store_documents(shard, STREAM, documents, len(articles))


def _read_wanted(path: str, doc_ids: Sequence[str]) -> list[ArticleText]:
    """Returns the wanted articles of a shard, sorted by language, because a translator holds one model at a time."""
    wanted = set(doc_ids)
    found = (
        [article for batch in read_text_batches(path) for article in batch if article.doc_id in wanted]
        if wanted
        else []
    )
    return sorted(found, key=lambda article: (article.language, article.doc_id))


def _translate(
    article: ArticleText, translator: Translator, vocabulary: Vocabulary, settings: TranslationSettings
) -> DocumentTokens:
    tag = language_key(article.language) or UNDETERMINED
    language = find_language(tag, translator.languages)
    if language is None:
        raise ValueError(f"{article.doc_id}: no model for {tag}, although it was wanted")
    parts = {"title": article.title.strip(), "body": cut_text(article.body, settings.words)}
    texts = {name: text for name, text in parts.items() if text}
    english = dict(zip(texts, translator.translate(list(texts.values()), language), strict=True))
    ids = dict(zip(parts, vocabulary.encode_texts([english.get(name, "") for name in parts]), strict=True))
    for name in texts:
        if not ids[name].size:
            raise TranslationError(f"the translation of the {name} is empty: {english[name]!r}")
    title, body = ids["title"][: settings.max_length], ids["body"][: settings.max_length]
    return DocumentTokens(article.doc_id, ENGLISH, title, body, (), day_number(article.byline_date))
