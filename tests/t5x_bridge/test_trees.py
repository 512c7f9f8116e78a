"""How optimizer states are nested: the states of our optimizer survive the way to T5X and back."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from newsembed.errors import InputError
from newsembed.learning.optimizers import adam
from newsembed.t5x_bridge.checkpoints import skeleton_of, with_lists, without_lists

LEAVES = st.integers(0, 9).map(np.int32)
NAMES = st.text("abc", min_size=1, max_size=2)
STATES = st.recursive(
    LEAVES | st.none(),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3),
    max_leaves=12,
)


@given(STATES)
def test_any_state_returns_from_t5x_as_it_was(state):
    state = [state]
    assert with_lists(skeleton_of(state), without_lists(state)) == state


def test_the_state_of_our_optimizer():
    params = {"layers_0": {"kernel": jnp.ones((2, 2))}}
    optimizer = adam(1e-3, clip_norm=1.0, weight_decay=0.1, trainable="layers")
    array = {"layers_0": {"kernel": "array"}}
    assert skeleton_of(optimizer.init(params)) == [
        None,
        {"count": "array", "mu": array, "nu": array},
        {"inner_state": None},
        None,
        {"inner_state": None},
    ]


@pytest.mark.parametrize(
    ("skeleton", "state", "place"),
    [
        ([None, {"count": "array"}], {}, "param_states/1/count"),
        ([{"count": "array"}], {"0": {"count": {"mu": 1}}}, "param_states/0/count"),
        ([{"count": "array"}], {"0": {"count": 1, "nu": 2}}, "param_states/0"),
        ([{"count": "array"}], {"0": {"count": 1}, "1": {"count": 1}}, "param_states"),
        ([{"count": "array"}], {"0": 3}, "param_states/0"),
    ],
)
def test_another_optimizer_is_refused_by_its_place(skeleton, state, place):
    with pytest.raises(InputError, match="another optimizer") as error:
        with_lists(skeleton, state)
    assert error.value.field == place
