"""Methods of architectures, compiled once for each configuration."""

import functools

import jax


@functools.cache
def compiled(config, method, *last):
    """A function of the parameters and the first arguments; the last ones are not traced."""
    return jax.jit(lambda params, *given: config.module().apply({"params": params}, *given, *last, method=method))
