"""The registry of architectures: ``kind`` in a model folder to the configuration class that builds the module.

An architecture is one file: a frozen dataclass that offers `Architecture` and calls `register`, and its Flax module.
The trainer, the exporters and the server look architectures up by kind and ask for capabilities; they name no class.
"""

from ..architecture import NEWS_KIND, Architecture, Capability, require
from .attentive import AttentiveConfig
from .autoencoder import AutoencoderConfig
from .bilingual import BilingualConfig
from .context import ContextConfig
from .convolution import ConvolutionConfig
from .hybrid import HybridConfig
from .laser import LaserConfig
from .news import EncoderConfig
from .recurrent import RecurrentConfig
from .registry import KINDS, config_from_dict, named_kind, register
from .star import StarConfig
from .translator import TranslatorConfig

__all__ = [
    "KINDS",
    "NEWS_KIND",
    "Architecture",
    "AttentiveConfig",
    "AutoencoderConfig",
    "BilingualConfig",
    "Capability",
    "ContextConfig",
    "ConvolutionConfig",
    "EncoderConfig",
    "HybridConfig",
    "LaserConfig",
    "RecurrentConfig",
    "StarConfig",
    "TranslatorConfig",
    "config_from_dict",
    "named_kind",
    "register",
    "require",
]
