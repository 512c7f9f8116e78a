"""The files that describe a model in its MODEL_DIR: `model.json` and `vocab.txt`."""

import dataclasses
import hashlib
import json
import os
from typing import Any, Final

from ..errors import InputError
from ..models.encoders.news_config import EXECUTION_OPTIONS, EncoderConfig
from .vocabulary import SPECIAL_TOKENS

MODEL_FILE: Final = "model.json"
VOCABULARY_FILE: Final = "vocab.txt"


@dataclasses.dataclass(frozen=True)
class VocabularyFile:
    """A vocabulary as the trainer needs it: its bytes, not its pieces.

    Attributes:
      path: where it was read.
      content: the whole file.
      size: number of pieces, one a line.
    """

    path: str
    content: bytes
    size: int

    @property
    def sha256(self) -> str:
        """Hex digest of the file."""
        return hashlib.sha256(self.content).hexdigest()


def read_vocabulary(path: str) -> VocabularyFile:
    """Reads a vocabulary file.

    Raises:
      InputError: if it is missing or does not begin with the special tokens.
    """
    remedy = "Set VOCABULARY_PATH to a vocab.txt that `newsembed vocabulary` wrote."
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", path=path, remedy=remedy) from error
    pieces = content.rstrip(b"\n").split(b"\n")
    first = tuple(piece.decode("utf-8", "replace") for piece in pieces[: len(SPECIAL_TOKENS)])
    if first != SPECIAL_TOKENS:
        raise InputError(f"got {first} as first lines, expected {SPECIAL_TOKENS}", path=path, remedy=remedy)
    return VocabularyFile(path, content, len(pieces))


def write_model_files(
    model_dir: str, config: EncoderConfig, vocabulary: VocabularyFile, text_length: int | None = None
) -> None:
    """Writes `model.json` and `vocab.txt`, each whole or not at all.

    Args:
      model_dir: an existing folder.
      config: the architecture, "encoder" in the description.
      vocabulary: copied; the description has its digest as "vocabulary_sha256".
      text_length: "text_length", how many tokens of a text who embeds with the model reads unless told otherwise: those of the longest text that
        it learned to embed, or what the run chose; left out where it has learned none.
    """
    description: dict[str, Any] = {"encoder": config.to_dict(), "vocabulary_sha256": vocabulary.sha256}
    if text_length is not None:
        description["text_length"] = text_length
    _write_atomically(os.path.join(model_dir, VOCABULARY_FILE), vocabulary.content)
    _write_atomically(os.path.join(model_dir, MODEL_FILE), (json.dumps(description, indent=2) + "\n").encode())


def check_same_model(model_dir: str, config: EncoderConfig, vocabulary: VocabularyFile) -> None:
    """Refuses a model folder whose model is another one. A folder without `model.json` passes.

    Raises:
      InputError: naming the first attribute that differs, or the vocabulary.
    """
    path = os.path.join(model_dir, MODEL_FILE)
    description = _read_description(path)
    if description is None:
        return
    remedy = f"Use the architecture and vocabulary of {model_dir}, or another folder."
    for field in dataclasses.fields(config):
        if field.name in (*EXECUTION_OPTIONS, "dtype", "dropout_rate"):  # these change no parameter's meaning
            continue
        value = getattr(config, field.name)
        saved = description["encoder"].get(field.name, None if field.default is dataclasses.MISSING else field.default)
        if saved != value:
            raise InputError(
                f"the checkpoint's model has {saved!r}, this run {value!r}", path=path, field=field.name, remedy=remedy
            )
    if description["vocabulary_sha256"] != vocabulary.sha256:
        raise InputError(
            f"the checkpoint was trained with another vocabulary than {vocabulary.path}",
            path=path,
            field="vocabulary_sha256",
            remedy=remedy,
        )


def _read_description(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InputError("got no JSON", path=path, remedy="Restore the file or start another MODEL_DIR.") from error
    if not isinstance(description, dict) or not {"encoder", "vocabulary_sha256"} <= set(description):
        raise InputError("got no model description, expected the keys encoder and vocabulary_sha256", path=path)
    return description


def _write_atomically(path: str, content: bytes) -> None:
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(content)
    os.replace(temporary, path)
