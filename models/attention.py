"""Which keys a query may see, and the kernels that compute attention over them.

Shapes: B rows, L tokens, N heads, d units a head.

Vectors of texts from those of tokens, and the weight of a token by its position and its copies.

News articles begin with what matters most, and a name that occurs ten times is less than ten times as informative as
one that occurs once. The two options are a prior on positions, and the sublinear term frequency of TF-IDF (Manning,
Raghavan, Schütze 2008, section 6.4.1); these weights need no training.
"""

import functools
import logging
from typing import Final, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from .transformer import TransformerConfig

_NORM_FLOOR: Final = 1e-12


def piece_starts(segment_ids: jax.Array) -> jax.Array:
    """Where a piece of a packed row begins, bool [B, L]; padding counts as a piece."""
    before = jnp.pad(segment_ids[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    return segment_ids != before


def piece_ends(segment_ids: jax.Array) -> jax.Array:
    """Where a piece of a packed row ends, bool [B, L]; padding counts as a piece."""
    after = jnp.pad(segment_ids[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
    return segment_ids != after


def places_in_pieces(segment_ids: jax.Array) -> jax.Array:
    """The place of each token in its piece of a packed row, counted from 0, int32 [B, L]."""
    places = jnp.arange(segment_ids.shape[1])
    return places - jax.lax.cummax(jnp.where(piece_starts(segment_ids), places, 0), axis=1)


def largest_of_pieces(hidden: jax.Array, segment_ids: jax.Array) -> jax.Array:
    """The largest value of each unit over the tokens of a piece.

    Args:
      hidden: float32 [B, L, H].
      segment_ids: int32 [B, L], from 0 to L, equal along a piece.

    Returns:
      float32 [B, L, H]: at each token the values of its piece.
    """
    count = segment_ids.shape[1] + 1

    def of_row(states: jax.Array, ids: jax.Array) -> jax.Array:
        return jax.ops.segment_max(states, ids, num_segments=count)[ids]

    return jax.vmap(of_row)(hidden, segment_ids)


def term_weights(tokens: jax.Array, segment_ids: jax.Array, *, lead_length: int, sublinear: bool) -> jax.Array:
    """The weight of every token by its place in its text and by its copies there.

    Args:
      tokens: int32 [B, L].
      segment_ids: int32 [B, L], which text of its row a token belongs to; equal along a text.
      lead_length: a token at position p counts 1 / (1 + p / lead_length); 0: 1 everywhere.
      sublinear: the copies of a piece, that count s together, count ln(1 + s) together.

    Returns:
      float32 [B, L], positive.
    """
    weights = jnp.ones(tokens.shape, jnp.float32)
    if lead_length:
        weights = 1.0 / (1.0 + places_in_pieces(segment_ids) / lead_length)
    if not sublinear:
        return weights
    are_copies = (tokens[:, :, None] == tokens[:, None, :]) & (segment_ids[:, :, None] == segment_ids[:, None, :])
    total = jnp.sum(jnp.where(are_copies, weights[:, None, :], 0.0), axis=-1)
    return weights * jnp.log1p(total) / total


def mean_of_tokens(states: jax.Array, is_token: jax.Array) -> jax.Array:
    """The mean over the tokens of each row: [B, L, H] -> float32 [B, H]; 0 without tokens."""
    real = is_token[..., None].astype(jnp.float32)
    return jnp.sum(states.astype(jnp.float32) * real, axis=1) / jnp.maximum(jnp.sum(real, axis=1), 1.0)


def largest_of_tokens(states: jax.Array, is_token: jax.Array) -> jax.Array:
    """The largest value of each unit over the tokens of each row: [B, L, H] -> float32 [B, H]; 0 without tokens."""
    real = is_token[..., None]
    largest = jnp.max(states.astype(jnp.float32), axis=1, where=real, initial=-jnp.inf)
    return jnp.where(jnp.any(real, axis=1), largest, 0.0)


def of_unit_length(vectors: jax.Array) -> jax.Array:
    """Vectors [..., D] scaled to length 1, float32; zeros stay zeros, with gradient 0."""
    vectors = vectors.astype(jnp.float32)
    squares = jnp.sum(vectors**2, axis=-1, keepdims=True)
    # The root of 0 has no finite gradient, and a tiny floor would multiply by 1e36 on the way back.
    is_long = squares > _NORM_FLOOR**2
    return jnp.where(is_long, vectors * jax.lax.rsqrt(jnp.where(is_long, squares, 1.0)), 0.0)


# By the names of `transformer.DTYPES`.
TYPES: Final = {"float32": jnp.float32, "bfloat16": jnp.bfloat16, "float16": jnp.float16}
PAD_ID: Final = 0  # the id of [PAD] in every vocabulary; such positions are never attended to

Kernel = Literal["xla", "cudnn", "flash"]

_LARGEST_CUDNN_HEAD: Final = 128  # of every GPU that has flash attention; Hopper's would do 256
_CUDNN_HEAD_MULTIPLE: Final = 8
_LONGEST_RELATIVE_DISTANCE: Final = 128  # beyond it, all distances are one: T5's and MPNet's
_FLASH_BLOCKS: Final = (512, 256, 128)  # rows of a tile of the TPU kernel, the largest that divides L
_logger = logging.getLogger(__name__)


class Visible(NamedTuple):
    """Which tokens see each other; a pytree.

    Attributes:
      groups: int32 [B, L]; a token attends to the tokens of its own group: 1 in one-piece rows, the number of the
        segment in packed rows; 0 on padding.
      lengths: int32 [B], tokens of one-piece rows before the padding, at least 1; None for packed rows.
    """

    groups: jax.Array
    lengths: jax.Array | None

    def mask(self, distance: int | None = None, global_tokens: int = 0) -> jax.Array:
        """Which key each query sees.

        Args:
          distance: how far a query sees to either side; None: its whole group.
          global_tokens: number of first tokens of each group that see, and are seen by, all of it at any distance.

        Returns:
          bool [B, 1, L, L], or [B, 1, 1, L] for one-piece rows without `distance`. A padded query of a packed row sees
          the row's padding, so that no softmax runs over an empty set; its result is never read.
        """
        if self.lengths is None:
            seen = (self.groups[:, :, None] == self.groups[:, None, :])[:, None]
        else:
            seen = (self.groups > 0)[:, None, None, :]
        if distance is None:
            return seen
        places = jnp.arange(self.groups.shape[1])
        # Pieces are contiguous: inside one, distance in the row is distance in the piece.
        near = jnp.abs(places[:, None] - places[None, :]) <= distance
        if global_tokens:
            in_piece = places_in_pieces(self.groups) if self.lengths is None else places[None]
            first = (in_piece < global_tokens)[:, None]
            near = near | first[..., :, None] | first[..., None, :]
        return seen & near


def visible(tokens: jax.Array, segment_ids: jax.Array | None) -> Visible:
    """Which tokens of a batch see each other.

    Args:
      tokens: int32 [B, L], padding (`PAD_ID`) at the end of the rows only.
      segment_ids: int32 [B, L] or None, see `NewsEncoder.encode`.
    """
    if segment_ids is not None:
        return Visible(segment_ids, None)
    real = (tokens != PAD_ID).astype(jnp.int32)
    # Kernels that take lengths may divide by zero on a row of padding alone.
    return Visible(real, jnp.maximum(jnp.sum(real, axis=1, dtype=jnp.int32), 1))


def choose_attention(config: TransformerConfig, length: int, platform: str | None = None) -> Kernel:
    """The kernel that computes a model's attention.

    "auto" takes "cudnn" on an NVIDIA GPU of at least compute capability 8.0 if activations are bfloat16 or float16,
    heads are a multiple of 8 units and no larger than 128, and L is even; "flash" on a TPU if L is a multiple of 128
    and no layer is local; else "xla", which alone adds the bias of relative positions.

    Args:
      config: the model's.
      length: L.
      platform: "cpu", "cuda", "rocm" or "tpu"; None: the one that JAX computes on.
    """
    if config.attention == "xla":
        return "xla"  # anywhere, and for rows of any length, even one not known yet
    platform = platform or current_platform()
    chosen: Kernel = "xla"
    if platform == "cuda" and not config.relative_buckets and _fits_cudnn(config, length):
        chosen = "cudnn"
    elif platform == "tpu" and not (config.relative_buckets or config.local_distance or length % _FLASH_BLOCKS[-1]):
        chosen = "flash"
    _logger.info("attention: %s for rows of %d tokens on %s", chosen, length, platform)
    return chosen


def _fits_cudnn(config: TransformerConfig, length: int) -> bool:
    has_size = config.head_size % _CUDNN_HEAD_MULTIPLE == 0 and config.head_size <= _LARGEST_CUDNN_HEAD
    is_new = float(getattr(jax.devices()[0], "compute_capability", "8.0")) >= 8  # no other device has one
    return config.dtype in ("bfloat16", "float16") and has_size and length % 2 == 0 and is_new


def current_platform() -> str:
    """The platform that JAX computes on: "cpu", "cuda", "rocm" or "tpu"."""
    backend = jax.default_backend()
    if backend != "gpu":
        return backend
    version = str(jax.devices()[0].client.platform_version).lower()
    return "cuda" if "cuda" in version else "rocm"


def attend(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    seen: Visible,
    *,
    kernel: Kernel,
    distance: int | None = None,
    global_tokens: int = 0,
    bias: jax.Array | None = None,
) -> jax.Array:
    """softmax(Q K^T / sqrt(d) + bias) V over the keys that each query sees (Vaswani et al. 2017, equation 1).

    Args:
      query: [B, L, N, d].
      key: [B, L, N, d].
      value: [B, L, N, d].
      seen: which tokens see each other.
      kernel: from `choose_attention`; only "xla" adds a bias.
      distance: see `Visible.mask`.
      global_tokens: likewise.
      bias: [1, N, L, L] from `relative_bias`, or None.

    Returns:
      [B, L, N, d] in the type of `query`.
    """
    if kernel == "flash":
        return _flash(query, key, value, seen.groups)
    compute = functools.partial(jax.nn.dot_product_attention, query, key, value, implementation=kernel)
    if kernel == "cudnn" and seen.lengths is not None and distance is None:
        # Lengths cost nothing and let the kernel skip the padding; a mask is read as a bias of [B, 1, L, L].
        return compute(key_value_seq_lengths=seen.lengths)
    mask, (rows, length) = seen.mask(distance, global_tokens), query.shape[:2]
    if kernel == "cudnn":  # it wants every query's row of the mask
        mask = jnp.broadcast_to(mask, (rows, 1, length, length))
    return compute(bias=bias, mask=mask)


def attention_probabilities(
    query: jax.Array,
    key: jax.Array,
    seen: Visible,
    *,
    distance: int | None = None,
    global_tokens: int = 0,
    bias: jax.Array | None = None,
) -> jax.Array:
    """softmax(Q K^T / sqrt(d) + bias), which `attend` never keeps: float32 [B, N, L, L]; each row sums to 1 over keys.

    Args:
      query: [B, L, N, d].
      key: [B, L, N, d].
      seen: which tokens see each other.
      distance: see `Visible.mask`.
      global_tokens: likewise.
      bias: see `attend`.
    """
    logits = jnp.einsum("bqnd,bknd->bnqk", query, key, preferred_element_type=jnp.float32) * query.shape[-1] ** -0.5
    logits = logits if bias is None else logits + bias.astype(jnp.float32)
    return jax.nn.softmax(jnp.where(seen.mask(distance, global_tokens), logits, jnp.finfo(jnp.float32).min), axis=-1)


def _flash(query: jax.Array, key: jax.Array, value: jax.Array, groups: jax.Array) -> jax.Array:
    """JAX's own flash attention for TPUs; each device computes its rows and heads, as XLA cannot split a kernel."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return _flash_here(query, key, value, groups)
    rows, _, heads, _ = nn.logical_to_mesh_axes(("batch", "length", "heads", "kv")) or (None,) * 4
    whole, by_token = PartitionSpec(rows, None, heads, None), PartitionSpec(rows, None)
    # Nothing that takes a gradient is replicated, so the gradients need no sum over devices, which check_vma would see
    # to.
    split = jax.shard_map(
        _flash_here, mesh=mesh, in_specs=(whole, whole, whole, by_token), out_specs=whole, check_vma=False
    )
    return split(query, key, value, groups)


def _flash_here(query: jax.Array, key: jax.Array, value: jax.Array, groups: jax.Array) -> jax.Array:
    from jax.experimental.pallas.ops.tpu import flash_attention as tpu

    block = next(size for size in _FLASH_BLOCKS if query.shape[1] % size == 0)
    names = [field for field in tpu.BlockSizes.__dataclass_fields__ if field != "block_b"]
    sizes = tpu.BlockSizes(block_b=1, **dict.fromkeys(names, block))
    query, key, value = (jnp.swapaxes(array, 1, 2) for array in (query, key, value))
    segments = tpu.SegmentIds(groups, groups)
    out = tpu.flash_attention(
        query, key, value, segment_ids=segments, sm_scale=query.shape[-1] ** -0.5, block_sizes=sizes
    )
    return jnp.swapaxes(out, 1, 2)


def bucket_starts(buckets: int) -> list[int]:
    """The distances at which the buckets of relative positions begin, ascending from 0, for one side.

    The first half of a side has a bucket for each distance; the others grow geometrically up to a distance of 128, and
    the last one has no end (Raffel et al. 2020, section 2.1).

    Args:
      buckets: of both sides, a multiple of 4.

    >>> bucket_starts(16)
    [0, 1, 2, 3, 4, 10, 23, 54]
    """
    side = buckets // 2
    exact = side // 2
    starts = list(range(exact))
    for place in range(side - exact):
        # Distance n is in bucket exact + floor(log(n / exact) / log(128 / exact) * exact); in whole numbers, so that no
        # rounding moves a border.
        start = starts[-1] + 1
        while start**exact < exact ** (exact - place) * _LONGEST_RELATIVE_DISTANCE**place:
            start += 1
        starts.append(start)
    return starts


def relative_bias(table: jax.Array, length: int, dtype: str) -> jax.Array:
    """The bias of relative positions: what each head adds to the attention of a query to a key.

    Args:
      table: float32 [buckets, N]; the first half is for keys before the query and the query itself, the second half for
        keys behind it.
      length: L.
      dtype: of the result.

    Returns:
      [1, N, L, L], the query before the key.
    """
    buckets, starts = table.shape[0], jnp.asarray(bucket_starts(table.shape[0]))
    places = jnp.arange(length)
    offsets = places[None, :] - places[:, None]
    numbers = jnp.sum(jnp.abs(offsets)[..., None] >= starts, axis=-1) - 1 + jnp.where(offsets > 0, buckets // 2, 0)
    return jnp.transpose(table[numbers], (2, 0, 1))[None].astype(TYPES[dtype])


def rotary_tables(positions: jax.Array, head_size: int, theta: float, dtype: str) -> tuple[jax.Array, jax.Array]:
    """Cosines and sines of the rotary angles, position / theta^(2i / d) (Su et al. 2021, section 3.2.2).

    Args:
      positions: int32 [B or 1, L].
      head_size: d.
      theta: base of the wavelengths.
      dtype: of the result; the angles are computed in float32.

    Returns:
      Two arrays [B or 1, L, 1, d]; both halves of the last dimension are the same.
    """
    frequencies = theta ** (-jnp.arange(0, head_size, 2, dtype=jnp.float32) / head_size)
    angles = positions.astype(jnp.float32)[..., None] * frequencies
    angles = jnp.concatenate([angles, angles], axis=-1)[:, :, None, :]
    return jnp.cos(angles).astype(TYPES[dtype]), jnp.sin(angles).astype(TYPES[dtype])


def rotate(states: jax.Array, tables: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Queries or keys [B, L, N, d], turned by `rotary_tables`; unit i is paired with unit i + d/2."""
    cosine, sine = tables
    left, right = jnp.split(states, 2, axis=-1)
    return states * cosine + jnp.concatenate([-right, left], axis=-1) * sine
