"""Flax modules, losses and masking: pure JAX, no input or output."""
