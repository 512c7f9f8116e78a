"""Training steps: the options of the losses, the loss of every task, and the compiled step."""

from .options import Losses
from .task_losses import TaskLosses, continuation_pieces
from .train_step import DeviceBatch, Metrics, TrainStep, make_train_step

__all__ = ["DeviceBatch", "Losses", "Metrics", "TaskLosses", "TrainStep", "continuation_pieces", "make_train_step"]
