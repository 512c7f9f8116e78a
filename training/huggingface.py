"""Models of Hugging Face with our order of tokens, and as the start of a run; no torch, no transformers.

The special tokens move to their ids in `formats.vocabulary`, the others follow in the folder's order. Only WordPiece
vocabularies (vocab.txt) can be tokenized here; of other models the weights can be read, and the caller brings the
tokenizer.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import jax
import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..formats import huggingface as formats
from ..formats.vocabulary import SPECIAL_TOKENS, VocabularyFile
from ..models.encoders import KINDS, NEWS_KIND, Architecture, Capability, require
from ..models.huggingface import reorder_tokens, token_order
from ..models.huggingface.interface import HuggingFaceArchitecture, UnsupportedArrayError, UnsupportedModelError

# The special tokens' names in vocabularies that are not WordPiece, in our order.
_OTHER_SPECIALS: Final = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel:
    """A model read from a Hugging Face folder.

    Attributes:
      source: the folder.
      config: its architecture.
      params: nested dict of float32 arrays, tokens in our order. Heads that the folder lacks are missing, see
        `with_heads`.
      plain_heads: heads for those that are missing.
      order: int64 [V], the folder's id of each of our tokens.
      vocabulary: vocab.txt in our order, None if the tokenizer is not WordPiece.
      ignored: names of arrays that have no counterpart in the architecture.
      differences: how the folder's tokenizer differs from ours; a line each.
    """

    source: formats.HuggingFaceFolder
    config: HuggingFaceArchitecture
    params: dict[str, Any]
    plain_heads: dict[str, Any]
    order: npt.NDArray[np.int64]
    vocabulary: bytes | None
    ignored: tuple[str, ...]
    differences: tuple[str, ...]

    @property
    def text_length(self) -> int | None:
        """Tokens of a text that are read unless told otherwise; None where the folder does not say."""
        length = self.source.modules.text_length
        return None if length is None else min(length, self.config.max_length)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is different in the embeddings; a line each."""
        if self.source.modules.is_normalized:
            return ()
        return (
            "the folder has no module Normalize; our embeddings have length 1, so cosines stay and dot products change",
        )

    def with_heads(self) -> dict[str, Any]:
        """The parameters of a whole model."""
        return {**self.plain_heads, **self.params}


def read_huggingface(
    folder: str, *, num_topics: int = 600, max_length: int | None = None, kind: str = NEWS_KIND
) -> HuggingFaceModel:
    """Reads the model of a folder that `transformers` or `sentence_transformers` saved.

    Args:
      folder: see `formats.huggingface`.
      num_topics: T.
      max_length: fewer positions than the folder has; None keeps them all.
      kind: the architecture that the model becomes.

    Raises:
      InputError: for a missing or broken file, a model that the architecture does not compute, an array that is missing
        or has another shape, or a vocabulary without the special tokens.
    """
    source = formats.read_huggingface(folder)
    architecture = cast(type[HuggingFaceArchitecture], KINDS[kind])
    try:
        model = architecture.from_huggingface(
            source.config, source.arrays, source.modules, num_topics=num_topics, max_length=max_length
        )
    except UnsupportedModelError as error:
        is_array = isinstance(error, UnsupportedArrayError)
        path = source.weights_file if is_array else source.config_file
        remedy = "Save the model again, config.json with it." if is_array else f"Bring a model that {kind!r} computes."
        raise InputError(error.problem, path=path, field=error.field, remedy=remedy) from error
    order, vocabulary, differences = _vocabulary(source, model.config.vocab_size)
    return HuggingFaceModel(
        source,
        model.config,
        reorder_tokens(model.params, order),
        model.plain_heads,
        order,
        vocabulary,
        model.ignored,
        tuple(differences),
    )


def initial_params(folder: str, config: Architecture, vocabulary: VocabularyFile, created: Any) -> Any:
    """The parameters that a run starts from where INITIAL_CHECKPOINT_PATH is a Hugging Face folder.

    Args:
      folder: see `read_huggingface`.
      config: the run's; must be the folder's architecture, except that the heads may have any size and positions may be
        fewer.
      vocabulary: the run's; must hold the folder's pieces in our order.
      created: the run's own parameters on the devices, drawn at random; heads that the folder lacks stay as they are.

    Returns:
      Parameters in the shapes and shardings of `created`.

    Raises:
      InputError: as `read_huggingface`, and for another architecture or vocabulary.
    """
    require(config, Capability.HUGGING_FACE, by="a start from a Hugging Face folder")
    model = read_huggingface(folder, num_topics=config.num_topics, max_length=config.max_length, kind=config.kind)
    _check_architecture(model, config)
    _check_vocabulary(model, vocabulary)

    def placed(mine: jax.Array, theirs: Any) -> jax.Array:
        return jax.device_put(np.asarray(theirs, np.float32), mine.sharding)

    # What differs in shape are heads: the architectures are the same.
    found = {
        name: value
        for name, value in model.params.items()
        if jax.tree.map(np.shape, value) == jax.tree.map(np.shape, created.get(name))
    }
    return {**created, **{name: jax.tree.map(placed, created[name], value) for name, value in found.items()}}


def _check_architecture(model: HuggingFaceModel, config: Architecture) -> None:
    left_out = (*model.config.free_options, *model.config.head_options)
    for field in dataclasses.fields(config):
        if field.name in left_out:
            continue
        theirs, ours = getattr(model.config, field.name), getattr(config, field.name)
        if theirs != ours:
            raise InputError(
                f"the folder's model has {theirs!r}, this run {ours!r}",
                path=model.source.config_file,
                field=f"{type(config).__name__}.{field.name}",
                remedy="Take the architecture.gin that `newsembed import-hf` writes for this folder.",
            )


def _check_vocabulary(model: HuggingFaceModel, vocabulary: VocabularyFile) -> None:
    if wordpiece_vocabulary(model).content != vocabulary.content:
        raise InputError(
            f"{vocabulary.path} is not this model's vocabulary with the special tokens first",
            path=model.source.vocabulary_file,
            field="VOCABULARY_PATH",
            remedy="Write it with `newsembed import-hf` and make the training data with it.",
        )


def wordpiece_vocabulary(model: HuggingFaceModel) -> VocabularyFile:
    """The vocabulary of a model that can be tokenized here.

    Raises:
      InputError: if its tokenizer is not WordPiece.
    """
    path = model.source.vocabulary_file
    if model.vocabulary is None:
        raise InputError(
            "the tokenizer is not WordPiece: text in and out would need the model's own tokenizer, which newsembed "
            "does not have",
            path=path,
            remedy="Bring a BERT-like model with vocab.txt; `training.huggingface.read_huggingface` reads the weights "
            "of this one as arrays.",
        )
    return VocabularyFile(path, model.vocabulary, model.config.vocab_size)


def _vocabulary(source: formats.HuggingFaceFolder, size: int) -> tuple[npt.NDArray[np.int64], bytes | None, list[str]]:
    """The order of tokens, vocab.txt in that order if the tokenizer is WordPiece, and how it differs from ours.

    Raises:
      InputError: if the vocabulary does not have ``size`` pieces.
    """
    path, pieces = source.vocabulary_file, source.tokenizer.pieces
    if pieces is None:
        ids = source.tokenizer.added_tokens
        names = SPECIAL_TOKENS if SPECIAL_TOKENS[0] in ids else _OTHER_SPECIALS
        return _order(ids, names, size, path), None, []
    if len(pieces) != size:
        remedy = "Give the vocabulary that the model was trained with."
        raise InputError(f"got {len(pieces)} pieces, config.json has vocab_size = {size}", path=path, remedy=remedy)
    ids = {piece.decode("utf-8", "replace"): token for token, piece in enumerate(pieces)}
    order = _order(ids, SPECIAL_TOKENS, size, path)
    usable, unusable = _usable([pieces[token] for token in order])
    differences = _tokenizer_differences(source)
    if unusable:
        differences.append(f"{unusable} pieces with spaces, or that occur twice, are never made from text")
    return order, b"".join(piece + b"\n" for piece in usable), differences


def _order(ids: Mapping[str, int], specials: Sequence[str], size: int, path: str) -> npt.NDArray[np.int64]:
    missing = [special for special in specials if special not in ids]
    if missing:
        raise InputError(
            f"the special tokens {', '.join(missing)} are not in it",
            path=path,
            remedy=f"The vocabulary must have {', '.join(specials)}, anywhere.",
        )
    return token_order([ids[special] for special in specials], size)


def _usable(pieces: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The pieces, with names that no text makes for those that `tasks.vocabulary` refuses, and how many those are."""
    seen: set[bytes] = set()
    result: list[bytes] = []
    for number, piece in enumerate(pieces):
        text = piece.decode("utf-8", "replace")
        is_fine = len(text.split()) == 1 and text == text.strip() and piece not in seen and text.encode() == piece
        result.append(piece if is_fine else b"[unusable%d]" % number)
        seen.add(piece)
    return result, sum(new is not old for new, old in zip(result, pieces, strict=True))


def _tokenizer_differences(source: formats.HuggingFaceFolder) -> list[str]:
    """How the folder's tokenizer differs from ours (`tasks.vocabulary`: NFKC, case folded, accents kept).

    Raises:
      InputError: for a vocabulary with upper case: every capital letter would be lost, and words with it.
    """
    settings = source.tokenizer.settings
    if not settings.get("do_lower_case", True):
        raise InputError(
            "the vocabulary has upper case, and newsembed's tokenizer folds case: most names and nouns would be cut "
            "otherwise",
            path=source.tokenizer_config_file,
            field="do_lower_case",
            remedy="Bring the uncased model.",
        )
    lines = ["text is NFKC-casefolded (ß is ss, ﬁ is fi, full width is half width); BERT's tokenizer only lowers case"]
    if settings.get("strip_accents") in (None, True):
        lines.append(
            "accents are kept; the model was trained without them, so words with accents are cut into other pieces or "
            "[UNK]"
        )
    if settings.get("tokenize_chinese_chars") is False:
        lines.append("every Chinese character is a word; the model was trained on whole runs")
    return lines
