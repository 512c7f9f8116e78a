"""The kinds of training data: a declaration each, their registry, the tokenizers, and seqio tasks."""

from . import kinds  # noqa: F401 - registers the tasks
from .registry import register as register
