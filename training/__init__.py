"""The T5X-shaped trainer: partitioning, train state, loop, checkpoints, metrics. Never imports TensorFlow."""
