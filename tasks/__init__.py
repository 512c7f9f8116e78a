"""The kinds of training data: a declaration each, their registry, the tokenizer, and seqio tasks.

A task is one file that declares a `registry.Task` and registers it; importing it is enough to train on its data.
"""

from .packed import MLM, TLM
from .pairs import PAIRS
from .registry import register
from .topics import TOPICS
from .translation import TRANSLATION
from .triplets import TRIPLETS

for _task in (MLM, TLM, TRIPLETS, TOPICS, PAIRS, TRANSLATION):
    register(_task)
