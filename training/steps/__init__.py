"""Training steps: the options of the losses, the loss of every task, and the compiled step."""

from .options import Losses
from .task_losses import DeviceBatch, Metrics, TaskLosses, continuation_pieces
from .train_step import COUNTS, TrainStep, make_train_step

__all__ = [
    "COUNTS",
    "DeviceBatch",
    "Losses",
    "Metrics",
    "TaskLosses",
    "TrainStep",
    "continuation_pieces",
    "make_train_step",
]
