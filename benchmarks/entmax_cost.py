"""Measures alpha-entmax beside softmax, forward and backward, in CPU seconds: python benchmarks/entmax_cost.py."""

import time

import jax
import jax.numpy as jnp
from newsembed.models.entmax import entmax

SHAPES = {
    "ring: 16 x 256 tokens x 6 heads, 7 keys": (16, 256, 6, 7),
    "star: 64 texts x 6 heads, 257 keys": (64, 6, 257),
}
RUNS = 5


def cpu_seconds(function, *arguments) -> float:
    """Returns the CPU seconds of one call, the least of some."""
    jax.block_until_ready(function(*arguments))
    found = []
    for _ in range(RUNS):
        start = time.process_time()
        jax.block_until_ready(function(*arguments))
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Prints a table."""
    print("| shape | softmax | entmax | ratio | softmax with gradient | entmax with gradient | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, shape in SHAPES.items():
        scores = jax.random.normal(jax.random.key(0), shape)
        alpha = jnp.linspace(1.1, 1.9, shape[-2]) * jnp.ones(shape[:-1])
        weights = jax.random.normal(jax.random.key(1), shape)
        softmax, sparse = jax.jit(jax.nn.softmax), jax.jit(entmax)
        softmax_back = jax.jit(jax.grad(lambda z, w: jnp.sum(jax.nn.softmax(z) * w)))
        sparse_back = jax.jit(jax.grad(lambda z, a, w: jnp.sum(entmax(z, a) * w), (0, 1)))
        times = [
            cpu_seconds(softmax, scores),
            cpu_seconds(sparse, scores, alpha),
            cpu_seconds(softmax_back, scores, weights),
            cpu_seconds(sparse_back, scores, alpha, weights),
        ]
        cells = [f"{seconds * 1e3:.2f} ms" for seconds in times]
        print(
            f"| {name} | {cells[0]} | {cells[1]} | {times[1] / times[0]:.0f} | {cells[2]} | {cells[3]} "
            f"| {times[3] / times[2]:.0f} |"
        )


if __name__ == "__main__":
    main()
