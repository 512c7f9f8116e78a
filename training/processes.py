"""Several processes that train one model: how they find each other, and how they agree while they train."""

import os
import sys
from collections.abc import Sequence
from typing import Final

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..errors import InputError

# Set by the scheduler in every process of a job step; JAX finds the coordinator from the same variables.
_SLURM_STEP: Final = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
_TPU_HOSTS: Final = "TPU_WORKER_HOSTNAMES"


def join_processes(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    detect: bool = False,
) -> bool:
    """Makes this process one of several that train together. Call it before JAX is used for anything else.

    Without arguments the processes find each other if the environment announces several: a step of a Slurm job with
    more than one task, or a TPU slice on Kubernetes. Elsewhere (TPU VMs announce nothing) `detect` asks JAX.

    Args:
      coordinator_address: "host:port" of process 0, reachable from all others.
      num_processes: how many there are.
      process_id: which one this is, from 0.
      detect: several processes are expected, let JAX find them.

    Returns:
      Whether there are several.

    Raises:
      InputError: if only some of the three options are given, or the processes do not connect.
    """
    options = {"--coordinator_address": coordinator_address, "--num_processes": num_processes}
    options["--process_id"] = process_id
    missing = [name for name, value in options.items() if value is None]
    if len(missing) == len(options):
        if not detect and not _is_announced():
            return False
    elif missing:
        problem = f"got {', '.join(name for name in options if name not in missing)} without {', '.join(missing)}"
        remedy = "Give all three to every process, or none of them on Slurm and TPU."
        raise InputError(problem, field=missing[0], remedy=remedy)
    elif not 0 <= (process_id or 0) < (num_processes or 0):
        problem = f"got {process_id}, expected a number from 0 to {(num_processes or 0) - 1}"
        raise InputError(problem, field="--process_id", remedy="Number the processes from 0.")
    # The training loop handles SIGTERM: all processes agree on the step to save. JAX's service would swallow it.
    jax.config.update("jax_enable_preemption_service", False)
    # On CPUs, programs in the background may run at once, and a message (gloo) may then meet one of another program.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    # JAX aborts this process where another one does not come.
    found = coordinator_address or "what JAX detects"
    print(f"connecting to the other processes by {found}: all must start within five minutes", file=sys.stderr)
    try:
        jax.distributed.initialize(coordinator_address, num_processes, process_id)
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"the processes did not connect to each other: {str(error).strip().splitlines()[0]}",
            field="--coordinator_address",
            remedy="Start all processes within five minutes, each with the address of process 0, on a port that its "
            "firewall allows.",
        ) from error
    if jax.default_backend() == "cpu":
        # A program from JAX's cache on disk sends its messages in another order than a process that compiled it expects
        # (JAX 0.10).
        jax.config.update("jax_enable_compilation_cache", False)
    return jax.process_count() > 1


def _is_announced() -> bool:
    in_step = all(name in os.environ for name in _SLURM_STEP)
    return (in_step and int(os.environ["SLURM_NTASKS"]) > 1) or "," in os.environ.get(_TPU_HOSTS, "")


def check_joined() -> None:
    """Refuses several processes that can compute together but cannot wait for each other.

    Raises:
      InputError: on a TPU slice of several hosts whose processes were not joined.
    """
    if jax.process_count() > 1 and not jax.distributed.is_initialized():
        raise InputError(
            f"the devices belong to {jax.process_count()} processes, which are not connected",
            field="--detect_processes",
            remedy="Give --detect_processes to `newsembed train` on every host.",
        )


def device_counts(counts: Sequence[int], mesh: Mesh) -> jax.Array:
    """Returns small counts of each process, which a step sums: int32 [devices, counts], in the row of the first device.

    They are part of the batch (`train_step.COUNTS`), and their sums come back with the step's metrics. Every process
    sees the same sums at the same place of its loop, which is how the processes agree on the tokens seen and on a
    request to stop. It needs no program of its own: on CPUs, two programs that do not depend on each other may meet
    their partners in another order.

    Args:
      counts: of this process.
      mesh: the devices.
    """
    devices = mesh.devices.reshape(-1)
    rows = np.zeros((sum(device.process_index == jax.process_index() for device in devices), len(counts)), np.int32)
    rows[0] = counts
    sharding = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
    return jax.make_array_from_process_local_data(sharding, rows, (devices.size, len(counts)))


def gather_bytes(data: bytes) -> list[bytes]:
    """Returns the bytes of every process, in their order; waits for all of them."""
    if jax.process_count() == 1:
        return [data]
    sizes = multihost_utils.process_allgather(np.asarray(len(data), np.int32))
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    rows = multihost_utils.process_allgather(padded)
    return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]


def wait_for_all(name: str) -> None:
    """Waits until every process has called this; `name` appears in the error of one that waits in vain."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)
