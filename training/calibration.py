"""What a run computes from some of its texts instead of training it: weights of pieces, a table to start from, a whitened head."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
from jax.sharding import Mesh

from ..errors import InputError
from ..formats.vocabulary import PAD_ID
from ..models.encoders.news import NewsEncoder
from ..tasks import registry
from .batches import Batch
from .latent_semantics import start_table
from .mixture import MixtureBatches
from .partitioning import Partitioner
from .piece_weights import weigh_pieces
from .train_state import TrainState
from .whitening import whiten_embedding_head


@dataclasses.dataclass(frozen=True)
class Calibration:
    """What a run computes from some of its texts instead of training it.

    Attributes:
      encoder: the model.
      partitioner: the axis rules.
      mesh: the devices.
      rows: opens this process's rows, see `first_rows`; from the start at each call.
    """

    encoder: NewsEncoder
    partitioner: Partitioner
    mesh: Mesh
    rows: Callable[[], Iterator[Batch]]

    def calibrated(self, state: TrainState, *, latent_semantics: bool = False) -> TrainState:
        """The state with weights of pieces, a table from latent semantics if asked for, and a head that whitens what they make."""
        params = state.params
        if self.encoder.config.pooling == "weighted":
            params = weigh_pieces(params, self.rows(), self.partitioner, self.mesh)
        if latent_semantics:
            params = start_table(self.encoder, params, self.rows(), self.partitioner, self.mesh)
        return state.replace(
            params=whiten_embedding_head(self.encoder, params, self.rows(), self.partitioner, self.mesh)
        )


def first_rows(batches: MixtureBatches, count: int) -> Iterator[Batch]:
    """Texts of the first batches (`Task.text`) as packed rows: tokens, segment_ids and positions, each int32 [B, L]."""
    for number in range(count):
        draw = batches.draw(number)
        task = registry.get(draw.data_set.task)
        if task.is_packed:
            yield draw.batch
            continue
        tokens = draw.batch[task.text]
        yield {
            "tokens": tokens,
            "segment_ids": (tokens != PAD_ID).astype(np.int32),
            "positions": np.broadcast_to(np.arange(tokens.shape[1], dtype=np.int32), tokens.shape),
        }


def check_latent_semantics(*, enabled: bool, whitening_rows: int, is_pretraining: bool) -> None:
    """Refuses a start from latent semantics where it is lost or has no texts.

    Raises:
      InputError: naming the option.
    """
    if enabled and is_pretraining:
        remedy = "Set it to False: masked-LM steps undo it, and on the demo's data ended worse than from a table at random (benchmarks/RESULTS.md)."
        raise InputError("got True in a run of pretraining", field="LATENT_SEMANTICS", remedy=remedy)
    if enabled and not whitening_rows:
        raise InputError(
            "got True without texts", field="LATENT_SEMANTICS", remedy="Give WHITENING_ROWS, how many texts it reads."
        )
