"""Parameters that a run computes instead of training.

Piece weights, token table and whitened head, or the bias of an auto-encoder's decoder.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.vocabulary import PAD_ID
from ..learning.batches import Batch
from ..learning.mixture import MixtureBatches
from ..learning.partitioning import Partitioner
from ..models.encoders import Architecture, Capability, require
from ..tasks import registry
from .latent_semantics import start_table
from .piece_weights import weigh_pieces
from .train_state import TrainState
from .whitening import check_whitening, whiten_embedding_head
from .word_shares import start_decoder_bias
from .word_vectors import start_from_file


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Computes parameters from some of the run's texts.

    Attributes:
      config: the model's.
      partitioner: the axis rules.
      mesh: the devices.
      rows: opens this process's rows, see `first_rows`; from the start at each call.
    """

    config: Architecture
    partitioner: Partitioner
    mesh: Mesh
    rows: Callable[[], Iterator[Batch]]

    def calibrated(self, state: TrainState, *, latent_semantics: bool = False) -> TrainState:
        """Computes piece weights and a head that whitens, where the model has them, and a token table if asked for.

        Of an auto-encoder it computes the bias of the decoder.

        Raises:
          InputError: if the architecture lacks what is asked for, or there are too few texts.
        """
        params = state.params
        if Capability.RECONSTRUCTION in self.config.capabilities:
            return state.replace(params=start_decoder_bias(params, self.rows(), self.partitioner, self.mesh))
        if Capability.PIECE_WEIGHTS in self.config.capabilities:
            params = weigh_pieces(params, self.rows(), self.partitioner, self.mesh)
        if latent_semantics:
            params = start_table(self.config, params, self.rows(), self.partitioner, self.mesh)
        if Capability.POOLED_PIECES in self.config.capabilities:
            params = whiten_embedding_head(self.config, params, self.rows(), self.partitioner, self.mesh)
        return state.replace(params=params)

    def with_word_vectors(self, state: TrainState, path: str, pieces: Sequence[str]) -> tuple[TrainState, int]:
        """Starts the token table from a file, see `word_vectors.start_from_file`.

        Raises:
          InputError: if the file does not fit the model.
        """
        params, count = start_from_file(self.config, state.params, path, pieces, self.partitioner, self.mesh)
        return state.replace(params=params), count


def first_rows(batches: MixtureBatches, count: int) -> Iterator[Batch]:
    """Texts of the first batches (`Task.text`) as packed rows: tokens, segment_ids and positions, each int32 [B, L]."""
    for number in range(count):
        draw = batches.draw(number)
        task = registry.get(draw.data_set.task)
        if task.is_packed:
            yield draw.batch
            continue
        texts = draw.batch[task.text]
        tokens = texts.reshape(len(texts), -1, texts.shape[-1])[:, 0]  # of several texts the first
        yield {
            "tokens": tokens,
            "segment_ids": (tokens != PAD_ID).astype(np.int32),
            "positions": np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape),
        }


def check_calibration(
    config: Architecture, *, whitening_rows: int, latent_semantics: bool, is_pretraining: bool
) -> None:
    """Refuses options of the calibration that the architecture or the run cannot follow.

    Raises:
      InputError: naming the option.
    """
    has_decoder = Capability.RECONSTRUCTION in config.capabilities
    starts_table = latent_semantics and Capability.WORD_VECTORS in config.capabilities
    if whitening_rows and not has_decoder and not starts_table:
        check_whitening(config)
    if latent_semantics and has_decoder:
        require(config, Capability.LATENT_SEMANTICS, by="LATENT_SEMANTICS", remedy="Set it to False.")
    if latent_semantics and is_pretraining:
        raise InputError(
            "got True in a run of pretraining",
            field="LATENT_SEMANTICS",
            remedy="Set it to False: masked-LM steps undo it, and on the demo's data ended worse than from a random "
            "table (benchmarks/RESULTS.md).",
        )
    if latent_semantics and not whitening_rows:
        remedy = "Give WHITENING_ROWS, how many texts it reads."
        raise InputError("got True without texts", field="LATENT_SEMANTICS", remedy=remedy)
