"""Moved names, re-exported until every module imports them from their new places."""

from ..formats.records import doc_id_to_words, words_to_doc_id  # noqa: F401
from ..formats.tfrecords.schema import FeatureSpec  # noqa: F401
from ..formats.vocabulary import CLS_ID, MASK_ID, PAD_ID, SEP_ID, SPECIAL_TOKENS, UNK_ID  # noqa: F401
from .triplets import Augmentation  # noqa: F401
