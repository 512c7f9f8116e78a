"""What a step costs: model FLOPs counted from the architecture, and the peak of the devices, for model FLOPs utilisation (MFU).

MFU (Chowdhery et al. 2022, "PaLM", appendix B) is the share of the devices' peak that the arithmetic of the model itself took, whatever
else they did. Counted are matrix products only, two FLOPs for a multiplication and an addition, and twice the forward pass for the
backward one. For R rows of L tokens, hidden size H, MLP size F, N layers:

    forward = R L N (8 H^2 + 4 H F)      query, key, value and output; the two MLP layers: 2 x parameters x tokens
            + R N 4 L^2 H                scores and weighted sums of attention
            + heads                      MLM: R K (2 H^2 + 2 H V) on K masked positions; documents: 2 H D; topics: 2 H T
            + similarities               InfoNCE: B anchors x 2 B candidates x 2 D
    step    = 3 x forward

So the body is the usual 6 x parameters x tokens. All positions count, padding too: the devices compute it. `padding` tells how much that is.
"""

import math
from collections.abc import Mapping
from typing import Final

from ..models.encoders.news import EncoderConfig
from ..models.masking import masked_position_count
from ..tasks import registry
from ..tasks.topics import TOPICS
from ..tasks.triplets import TRIPLETS

_STEP_OVER_FORWARD: Final = 3

# Dense bfloat16 FLOP/s of one JAX device (float16 where there is no bfloat16), from the makers' data sheets. A device of TPU v2, v3 and 7x
# is one of a chip's two cores. The first name that the device's kind begins with counts, so the longer names stand first.
PEAK_FLOPS: Final = (
    ("TPU v2", 22.5e12),
    ("TPU v3", 61.5e12),
    ("TPU v4 lite", 138e12),
    ("TPU v4", 275e12),
    ("TPU v5 lite", 197e12),
    ("TPU v5e", 197e12),
    ("TPU v5", 459e12),
    ("TPU v6 lite", 918e12),
    ("TPU v6e", 918e12),
    ("TPU7x", 1153.5e12),
    ("Tesla V100", 125e12),
    ("Tesla T4", 65e12),
    ("NVIDIA A100", 312e12),
    ("NVIDIA A10G", 70e12),
    ("NVIDIA A10", 125e12),
    ("NVIDIA L40S", 362e12),
    ("NVIDIA L40", 181e12),
    ("NVIDIA L4", 121e12),
    ("NVIDIA H100 PCIe", 756e12),
    ("NVIDIA H100 NVL", 835e12),
    ("NVIDIA H100", 989e12),
    ("NVIDIA H200", 989e12),
    ("NVIDIA GH200", 989e12),
    ("NVIDIA B200", 2250e12),
    ("NVIDIA GB200", 2500e12),
)


def peak_flops(device_kind: str) -> float | None:
    """Peak FLOP/s of one device of this kind (`jax.Device.device_kind`), None where it is not known, as on CPUs.

    >>> peak_flops("TPU v5 lite"), peak_flops("NVIDIA H100 80GB HBM3"), peak_flops("cpu")
    (197000000000000.0, 989000000000000.0, None)
    """
    return next((flops for name, flops in PEAK_FLOPS if device_kind.startswith(name)), None)


def step_flops(
    task: str, config: EncoderConfig, lengths: Mapping[str, int], batch_size: int, masking_rate: float
) -> float:
    """Model FLOPs of one training step, see the module.

    Args:
      task: which loss.
      config: the model.
      lengths: `TASK_FEATURE_LENGTHS`.
      batch_size: examples over all devices.
      masking_rate: share of the tokens that the masked language model predicts.
    """
    rows = list(registry.get(task).text_lengths(lengths).values())
    forward = math.fsum(_body(config, length) for length in rows) * batch_size
    hidden = config.hidden_size
    if task == TRIPLETS.name:
        forward += len(rows) * batch_size * 2 * hidden * config.embedding_size
        forward += batch_size * 2 * batch_size * 2 * config.embedding_size
    elif task == TOPICS.name:
        forward += batch_size * 2 * hidden * config.num_topics
    else:
        predicted = batch_size * masked_position_count(rows[0], masking_rate)
        forward += predicted * (2 * hidden * hidden + 2 * hidden * config.vocab_size)
    return _STEP_OVER_FORWARD * forward


def _body(config: EncoderConfig, length: int) -> float:
    """Forward FLOPs of all layers on one row."""
    hidden = config.hidden_size
    products = 8 * hidden * hidden + 4 * hidden * config.mlp_size
    return float(config.num_layers * (length * products + 4 * length * length * hidden))
