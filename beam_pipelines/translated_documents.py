"""The phase of ``newsembed examples`` that translates documents: which ones, where they lie, and the tokens of their English."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..errors import InputError
from ..formats.parquet import read_batches
from ..formats.records import Failure
from ..tasks.vocabulary import Vocabulary
from . import translation
from .shards import Shard
from .texts import UNDETERMINED, ArticleText, language_key, load_vocabulary, read_text_batches, uniform_draw
from .token_store import DocumentTokens, write_shard
from .translation import ENGLISH, CachingTranslator, TranslationError, Translator, cut_text, find_language, is_english

STREAM = "_translated"
_CACHE = "_translations"


@dataclasses.dataclass(frozen=True)
class TranslationPlan:
    """Decides by languages and a draw, before anything is translated, which examples get an English positive and negative.

    Attributes:
      languages: those with a model.
      share: of the eligible triplets.
    """

    languages: tuple[str, ...]
    share: float

    def refusal(
        self, key: str, anchor: DocumentTokens, positive: DocumentTokens, negative: DocumentTokens
    ) -> str | None:
        """Why an example stays as it is, as the name of a counter; ``None`` if it is to be translated.

        Args:
          key: of the triplet.
          anchor: document.
          positive: the document of the positive text, which in two rows of Table 1 is the anchor.
          negative: document.
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
    """What translating one shard needs to know.

    Attributes:
      models: folder of the models.
      beam_size: of the search.
      words: of a body, see :func:`~.translation.cut_text`.
      cache: folder; the job's workspace if empty.
      vocabulary: path.
      max_length: tokens kept of a text.
    """

    models: str
    beam_size: int
    words: int
    cache: str
    vocabulary: str
    max_length: int


def read_places(index: int, path: str) -> Iterator[tuple[str, int]]:
    """(doc_id, shard) of every article of one shard."""
    for batch in read_batches(path, ["doc_id"]):
        for doc_id in batch.column("doc_id").to_pylist():
            yield doc_id, index


def place_wanted(doc_id: str, groups: Mapping[str, Iterable[int]]) -> Iterator[tuple[int, str]]:
    """(shard, doc_id) of a document that is wanted."""
    if list(groups["wanted"]):
        yield min(groups["places"]), doc_id


def translate_documents(
    shard: Shard, doc_ids: Sequence[str], articles: Sequence[str], settings: TranslationSettings
) -> None:
    """Writes the tokens of the English of these documents of one shard; those that cannot be translated are dead letters.

    A document is translated whole or not at all, so every row of Table 1 that its texts allow is there in English too.
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
            raise  # a broken model or a full disk is no fault of this document
        except Exception as error:  # noqa: BLE001 - an engine raises anything; it must not stop the shard
            detail = f"{article.language}: {type(error).__name__}: {error}"
            shard.fail(article.doc_id, Failure.TRANSLATION_ERROR, detail, f"{article.title}\n{article.body}")
        else:
            shard.written()
    write_shard(shard.path(STREAM, "").rstrip("."), documents)


def _read_wanted(path: str, doc_ids: Sequence[str]) -> list[ArticleText]:
    """The articles of a shard, sorted by language, since a translator holds one model at a time."""
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
    return DocumentTokens(
        article.doc_id, ENGLISH, ids["title"][: settings.max_length], ids["body"][: settings.max_length], ()
    )
