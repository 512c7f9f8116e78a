"""What a step costs: its model FLOPs, and the peak of the devices, for model FLOPs utilisation (MFU).

MFU (Chowdhery et al. 2022, "PaLM", appendix B) is the share of the devices' peak that the arithmetic of the model took.
Only matrix products count, two FLOPs for a multiplication and an addition, and the backward pass counts as twice the
forward pass::

    step = 3 x forward

The architecture states the FLOPs of a row (`Architecture.flops`), the objective which rows, heads and similarities a
batch has (`Objective.flops`). All positions count, padding too, because the devices compute it; the metric `padding` is
its share.
"""

from collections.abc import Mapping
from typing import Final

from ..learning.objectives import Objective
from ..models.encoders import Architecture
from ..tasks import registry

_STEP_OVER_FORWARD: Final = 3

# Dense bfloat16 FLOP/s of one JAX device (float16 where there is no bfloat16), from the makers' data sheets. A device
# of TPU v2, v3 and 7x is one of a chip's two cores. The first name that the device's kind begins with counts, so longer
# names come first.
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
    """Returns the peak FLOP/s of one device of this kind (`jax.Device.device_kind`), None if unknown, as for CPUs.

    >>> peak_flops("TPU v5 lite"), peak_flops("NVIDIA H100 80GB HBM3"), peak_flops("cpu")
    (197000000000000.0, 989000000000000.0, None)
    """
    return next((flops for name, flops in PEAK_FLOPS if device_kind.startswith(name)), None)


def step_flops(
    task: str, objective: Objective, config: Architecture, lengths: Mapping[str, int], batch_size: int
) -> float:
    """Returns the model FLOPs of one training step, see the module.

    Args:
      task: whose rows.
      objective: its objective.
      config: the architecture.
      lengths: `TASK_FEATURE_LENGTHS`.
      batch_size: examples over all devices.
    """
    declared = registry.get(task)
    texts = batch_size * declared.texts_per_row(lengths)
    return _STEP_OVER_FORWARD * objective.flops(config, declared.text_lengths(lengths), texts)
