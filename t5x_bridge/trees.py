"""How an optimizer's state is nested: as our checkpoints hold it, as T5X's do, and the way between the two."""

from collections.abc import Mapping
from typing import Any

from ..errors import InputError
from ..formats.t5x import ARRAY


def skeleton_of(state: Any) -> Any:
    """Returns how a state is nested: lists, dicts, None for what has no arrays, "array".

    >>> import optax, jax.numpy as jnp
    >>> skeleton_of(optax.chain(optax.clip(1.0), optax.trace(0.9)).init({"w": jnp.zeros(2)}))
    [None, {'trace': {'w': 'array'}}]
    """
    if isinstance(state, tuple) and hasattr(state, "_fields"):  # a named tuple
        state = {name: getattr(state, name) for name in state._fields}
    if state is None or (isinstance(state, (Mapping, tuple, list)) and not state):
        return None
    if isinstance(state, Mapping):
        return {str(name): skeleton_of(value) for name, value in state.items()}
    if isinstance(state, (tuple, list)):
        return [skeleton_of(value) for value in state]
    return ARRAY


def without_lists(state: Any) -> Any:
    """Returns a state as T5X saves it: dicts with the numbers of lists as names, without the parts that are empty.

    >>> without_lists([None, {"count": 3}, {"inner": None}])
    {'1': {'count': 3}}
    """
    if isinstance(state, (list, tuple)):
        state = {str(number): value for number, value in enumerate(state)}
    if not isinstance(state, Mapping):
        return state
    parts = {str(name): without_lists(value) for name, value in state.items() if value is not None}
    return {name: value for name, value in parts.items() if not isinstance(value, Mapping) or value}


def with_lists(skeleton: Any, state: Any, place: str = "param_states") -> Any:
    """Returns a state of T5X nested as `skeleton` says.

    >>> with_lists([None, {"count": "array"}, {"inner": None}], {"1": {"count": 3}})
    [None, {'count': 3}, {'inner': None}]

    Raises:
      InputError: for an array that is missing, or one that the skeleton does not know.
    """
    if skeleton is None:
        return None
    if skeleton == ARRAY:
        if state is None or isinstance(state, Mapping):
            raise InputError("the checkpoint has no such array: another optimizer", field=place)
        return state
    state = {} if state is None else state
    names = [str(number) for number in range(len(skeleton))] if isinstance(skeleton, list) else list(skeleton)
    if not isinstance(state, Mapping) or set(state) - set(names):
        raise InputError("the checkpoint has other arrays here: another optimizer", field=place)
    parts = dict(skeleton) if isinstance(skeleton, Mapping) else dict(zip(names, skeleton, strict=True))
    filled = {name: with_lists(part, state.get(name), f"{place}/{name}") for name, part in parts.items()}
    return list(filled.values()) if isinstance(skeleton, list) else filled
