"""The former place of `learning.objectives`, for modules outside this repository that import them from here."""

from ..learning.objectives import (
    OBJECTIVES,
    DeviceBatch,
    Metrics,
    Model,
    Objective,
    Objectives,
    Pairs,
    continuation_pieces,
    objectives_of,
    parameter_names,
    register,
)

__all__ = [
    "OBJECTIVES",
    "DeviceBatch",
    "Metrics",
    "Model",
    "Objective",
    "Objectives",
    "Pairs",
    "continuation_pieces",
    "objectives_of",
    "parameter_names",
    "register",
]
