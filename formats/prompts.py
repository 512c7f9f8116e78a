"""`Prompts`: the texts that a model wants before documents and queries, by their names in sentence-transformers."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Self

from ..errors import InputError

PROMPTS: Final = "prompts"
DEFAULT_PROMPT_NAME: Final = "default_prompt_name"
_QUERY: Final = "query"
_DOCUMENT: Final = ("document", "passage", "corpus")


@dataclasses.dataclass(frozen=True)
class Prompts:
    """The prompts of a model.

    Attributes:
      texts: by name, such as {"query": "query: ", "passage": "passage: "}.
      default: the name of the prompt of texts that no other prompt is for; None: they have none.

    >>> prompts = Prompts({"query": "query: ", "document": "", "passage": "passage: "})
    >>> prompts.query, prompts.document
    ('query: ', 'passage: ')
    """

    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default: str | None = None

    @property
    def query(self) -> str:
        """The text before a query: of the prompt "query", else of the default."""
        return self.texts.get(_QUERY, self._default_text)

    @property
    def document(self) -> str:
        """The text before a document: the first of "document", "passage" and "corpus" that has a text.

        Where all of them that are there are empty, it is empty, and where none is there, the default's. (The library
        itself adds an empty "document" when it saves a model.)
        """
        named = [self.texts[name] for name in _DOCUMENT if name in self.texts]
        return next((text for text in named if text), "") if named else self._default_text

    @property
    def _default_text(self) -> str:
        return "" if self.default is None else self.texts[self.default]

    def to_dict(self) -> dict[str, Any]:
        """JSON values by their keys in a description, without those that say nothing."""
        values: dict[str, Any] = {PROMPTS: dict(self.texts)} if self.texts else {}
        return values if self.default is None else values | {DEFAULT_PROMPT_NAME: self.default}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], path: str) -> Self:
        """Reads the keys of a description; `path` is the file to name.

        Raises:
          InputError: if the prompts do not map names to texts, or the default is not one of the names.
        """
        texts, default = values.get(PROMPTS) or {}, values.get(DEFAULT_PROMPT_NAME)
        remedy = 'Prompts are strings by name, such as {"query": "query: "}.'
        if not isinstance(texts, dict) or not all(text is None or isinstance(text, str) for text in texts.values()):
            raise InputError(f"got {texts!r}, expected strings by name", path=path, field=PROMPTS, remedy=remedy)
        if default is not None and default not in texts:
            problem = f"got {default!r}, expected one of the prompts {', '.join(texts) or '(there are none)'}"
            raise InputError(problem, path=path, field=DEFAULT_PROMPT_NAME, remedy=remedy)
        return cls({name: text or "" for name, text in texts.items()}, default)
