"""The relatedness of sentences by a supervised head on frozen vectors, as SentEval scores SICK-R and STS-B.

Protocol (``relatedness.py`` of SentEval, Conneau and Kiela 2018; NewsEmbed, Table 5). The features of a pair are
``[|u - v|, u * v]``. A score y becomes a distribution over the scores 1 to 5: y - floor(y) of it on floor(y) + 1, the
rest on floor(y) (Tai, Socher and Manning 2015). A softmax of one linear layer is trained on the mean squared error to
these distributions, by Adam with batches of 64. After every 50 epochs the Pearson correlation of the expected score on
the dev part is measured: the best parameters are kept, and training ends at the fourth round without a better one, or
after 1,000 epochs. The measure is the Spearman correlation of expected and true scores of the test part.

SentEval's code trains on the squared error, though its comments name the KL divergence; so does this. A score of STS-B
below 1 leaves a distribution that sums to less than 1, there as here. Here the vectors have length 1.
"""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..benchmark import ALL, Benchmark, Score, Suite, has
from ..encoders import Document, Embeddings, dense_rows
from ..heads import Features
from .sts import Pair, read_pairs

_FILES: Final[Mapping[str, tuple[str, str, str]]] = {
    "sick_r": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
    "stsb_head": ("sts-train.csv", "sts-dev.csv", "sts-test.csv"),
}
SCORES: Final = 5
_BATCH: Final = 64
_ROUND: Final = 50  # epochs between two looks at the dev part
_MOST_EPOCHS: Final = 1000
_PATIENCE: Final = 3  # rounds without a better correlation that are forgiven
_RATE: Final = 1e-3  # of PyTorch's Adam

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relatedness(Benchmark):
    """SICK-R or STS-B, from the folder of its three parts.

    Attributes:
      format: a key of the table of files.
      seed: of initial weights and order.
    """

    format: str
    seed: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files of the three parts."""
        return tuple(os.path.join(self.path, file) for file in _FILES[self.format])

    def _facts(self) -> dict[str, Any]:
        return {"suite": self.format, "features": "|u-v|, u*v", "seed": self.seed}

    @functools.cached_property
    def _parts(self) -> tuple[list[Pair], ...]:
        parts = tuple([pair for pair in read_pairs(path) if self.keeps(*pair.documents)] for path in self.paths)
        for path, part in zip(self.paths, parts, strict=True):
            if bad := next((pair.score for pair in part if not 0 <= pair.score <= SCORES), None):
                raise InputError(f"got {bad:g}, expected 0 to {SCORES}", path=path, field="score")
        return parts

    def _texts(self) -> Sequence[Document]:
        pairs = [pair for part in self._parts for pair in part]
        return [pair.documents[side] for side in (0, 1) for pair in pairs]

    def _scores(self, embeddings: Embeddings) -> list[Score]:
        from scipy.stats import pearsonr, spearmanr

        gold = [np.array([pair.score for pair in part]) for part in self._parts]
        count = sum(map(len, gold))
        one, two = (dense_rows(part) for part in (embeddings[:count], embeddings[count:]))
        features = np.concatenate([np.abs(one - two), one * two], axis=1)
        train, dev, test = np.split(features, np.cumsum([len(part) for part in gold])[:2])
        found = expected_scores((train, gold[0]), (dev, gold[1]), test, self.seed)
        if np.ptp(found) == 0:
            problem = f"all {len(found)} predicted scores are equal, so there is no correlation"
            raise InputError(problem, remedy="use another encoder: this one maps all texts to one point")
        measures = {"Spearman": spearmanr, "Pearson": pearsonr}
        return [Score(name, float(of(found, gold[2]).statistic), ALL, len(found)) for name, of in measures.items()]


def distributions(scores: Floats) -> npt.NDArray[np.float32]:
    """Scores [N] of 0 to 5 as distributions over 1 to 5, float32 [N, 5]; one below 1 sums to itself.

    >>> distributions(np.array([1.0, 3.25, 5.0, 0.5])).tolist()[1:]
    [[0.0, 0.0, 0.75, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    lower, places = np.floor(scores)[:, None], np.arange(1, SCORES + 1)
    share = scores[:, None] - lower
    return np.where(places == lower, 1 - share, np.where(places == lower + 1, share, 0)).astype(np.float32)


def expected_scores(
    known: tuple[Features, Floats], dev: tuple[Features, Floats], asked: Features, seed: int = 0
) -> Floats:
    """The expected scores [M] of features, by a head that is trained on others.

    Args:
      known: training features float32 [N, F], and their scores [N].
      dev: likewise, which chooses the round.
      asked: float32 [M, F].
      seed: of initial weights and order.
    """
    import jax
    import jax.numpy as jnp
    import optax

    rows, targets, optimizer = jnp.asarray(known[0]), jnp.asarray(distributions(known[1])), optax.adam(_RATE)
    random, count = np.random.default_rng(seed), len(known[1])
    bound = rows.shape[1] ** -0.5
    layer = tuple(
        jnp.asarray(random.uniform(-bound, bound, shape), jnp.float32) for shape in ((rows.shape[1], SCORES), (SCORES,))
    )
    places = np.resize(np.arange(count), -(-count // _BATCH) * _BATCH)
    weights = jnp.asarray(np.arange(len(places)) < count, jnp.float32).reshape(-1, _BATCH)

    def probabilities(layer: Any, values: Any) -> Any:
        return jax.nn.softmax(values @ layer[0] + layer[1])

    def loss(layer: Any, numbers: Any, weight: Any) -> Any:
        errors = jnp.mean((probabilities(layer, rows[numbers]) - targets[numbers]) ** 2, axis=1)
        return jnp.sum(weight * errors) / jnp.sum(weight)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        layer, moments = state
        updates, moments = optimizer.update(jax.grad(loss)(layer, *batch), moments)
        return (optax.apply_updates(layer, updates), moments), None

    @jax.jit
    def trained(state: Any, orders: Any) -> Any:
        """The state after a round; orders int32 [rounds' steps, batch]."""
        shares = jnp.tile(weights, (_ROUND, 1))
        return jax.lax.scan(step, state, (orders, shares))[0]

    def scores_of(layer: Any, values: Features) -> Floats:
        return np.asarray(probabilities(layer, jnp.asarray(values)), np.float64) @ np.arange(1.0, SCORES + 1)

    state, best, highest, failures = (layer, optimizer.init(layer)), layer, -1.0, 0
    for _ in range(_MOST_EPOCHS // _ROUND + 1):
        orders = [random.permutation(count)[places] for _ in range(_ROUND)]
        state = trained(state, np.concatenate(orders).reshape(-1, _BATCH))
        correlation = _pearson(scores_of(state[0], dev[0]), dev[1])
        if correlation > highest:
            best, highest = state[0], correlation
        elif (failures := failures + 1) > _PATIENCE:
            break
    return scores_of(best, asked)


def _pearson(found: Floats, gold: Floats) -> float:
    """Pearson's correlation; -1 where all values are equal, so that no such round is kept."""
    return float(np.corrcoef(found, gold)[0, 1]) if np.ptp(found) > 0 and np.ptp(gold) > 0 else -1.0


SUITES: Final = {form: Suite(Relatedness, {"format": form}, has(*files)) for form, files in _FILES.items()}
