"""The registry of architectures: ``kind`` in a model folder to the configuration class that builds the module.

An architecture is one file: a frozen dataclass that offers `Architecture` and calls `register`, and its Flax module.
The trainer, the exporters and the server look architectures up by kind and ask for capabilities; they name no class.
"""

from ..architecture import KINDS, NEWS_KIND, Architecture, Capability, config_from_dict, named_kind, register, require
from .autoencoder import AutoencoderConfig
from .bilingual import AttentiveConfig, BilingualConfig
from .context import ContextConfig
from .finetuned import FinetunedConfig
from .hybrid import HybridConfig
from .laser import LaserConfig
from .news import EncoderConfig
from .star import StarConfig
from .translator import TranslatorConfig
from .words import ConvolutionConfig, RecurrentConfig

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
    "FinetunedConfig",
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
