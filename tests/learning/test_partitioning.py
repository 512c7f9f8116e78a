"""Meshes and the rows that each process feeds, with devices that are only numbers."""

import jax
import numpy as np
import pytest
from newsembed.errors import InputError
from newsembed.learning.partitioning import DataShare, Partitioner, check_batch_size, data_share


class Device:
    def __init__(self, process_index):
        self.process_index = process_index


class Mesh:
    """The processes of the devices, by their places on the data axis and on the model axis."""

    def __init__(self, *processes):
        self.devices = np.array([[Device(process) for process in row] for row in processes])
        self.shape = {"data": self.devices.shape[0], "model": self.devices.shape[1]}


def shares(*processes):
    mesh = Mesh(*processes)
    return [data_share(mesh, process) for process in range(1 + max(max(row) for row in processes))]


def test_processes_with_devices_of_their_own_feed_rows_of_their_own():
    assert shares([0, 0]) == [DataShare(0, 1, True)]
    assert shares([0], [0], [1], [1]) == [DataShare(0, 2, True), DataShare(1, 2, True)]
    assert shares([1], [1], [0], [0]) == [DataShare(1, 2, True), DataShare(0, 2, True)]


def test_processes_that_share_a_copy_of_the_model_feed_the_same_rows_which_count_once():
    assert shares([0, 1]) == [DataShare(0, 1, True), DataShare(0, 1, False)]
    assert shares([0, 1], [2, 3]) == [
        DataShare(0, 2, True), DataShare(0, 2, False), DataShare(1, 2, True), DataShare(1, 2, False),
    ]  # fmt: skip
    assert shares([1, 3], [0, 2]) == [
        DataShare(1, 2, True), DataShare(0, 2, True), DataShare(1, 2, False), DataShare(0, 2, False),
    ]  # fmt: skip


@pytest.mark.parametrize("processes", [([0], [0], [1]), ([0, 1], [1, 1]), ([0, 0], [0, 1], [1, 1])])
def test_processes_that_share_some_rows_and_not_others_are_refused(processes):
    with pytest.raises(InputError, match=r"Partitioner\.model_parallel: the processes' devices overlap"):
        shares(*processes)


@pytest.mark.parametrize(("size", "advice"), [(0, 4), (5, 4), (6, 8), (7, 8), (-4, 4), (1, 4)])
def test_a_batch_is_a_multiple_of_the_data_axis(size, advice):
    mesh = Mesh([0, 0], [0, 0], [0, 0], [0, 0])
    check_batch_size(4, mesh)
    check_batch_size(8, mesh)
    with pytest.raises(InputError, match=f"BATCH_SIZE: got {size}, expected a multiple of 4") as raised:
        check_batch_size(size, mesh)
    assert raised.value.remedy == f"Set BATCH_SIZE = {advice}."


@pytest.mark.parametrize("model_parallel", [0, 2])
def test_the_model_is_split_over_a_divisor_of_the_devices(model_parallel):
    partitioner = Partitioner(model_parallel=model_parallel)
    with pytest.raises(InputError, match=f"got {model_parallel}, expected a divisor of the 1 devices"):
        partitioner.make_mesh(jax.devices()[:1])
    with pytest.raises(InputError, match="got 3, expected a divisor of the 7 devices"):
        Partitioner(model_parallel=3).make_mesh([None] * 7)
    assert dict(Partitioner().make_mesh(jax.devices()[:1]).shape) == {"data": 1, "model": 1}
