r"""Trains on several machines: a TPU slice, hosts over ssh, a Slurm cluster, or TPUs of GKE.

The arguments after ``--`` are passed to ``newsembed train``. All machines must see MODEL_DIR and the data, on an object
store or a shared file system. ``--print`` shows the commands and runs nothing; what costs money needs ``--yes``.

``tpu up`` asks for a slice and installs newsembed on its hosts. ``tpu run`` does that too, starts a run that goes on
without this machine, and watches it: a host that fails stops the others, and a slice that was taken away (Spot) is
asked for again and goes on with the same command. ``tpu status`` and ``tpu logs`` ask the hosts; ``tpu down``
deletes the slice.
``hosts run`` trains over ssh, one process a host. ``slurm print`` writes a script for sbatch, which saves before its
time limit and goes into the queue again. ``gke print`` writes the manifest of a JobSet.

example:
  newsembed launch tpu up news --zone us-central2-b --type v4-32 --spot --yes --install dist/*.whl
  newsembed launch tpu run news --zone us-central2-b --type v4-32 --spot --yes --install dist/*.whl \
      -- --gin_file=runs/pretrain_paper.gin --gin.MODEL_DIR='"gs://bucket/pretrained"' …
  newsembed launch hosts run gpu0,gpu1 -- --gin_file=runs/pretrain_paper.gin …
  newsembed launch slurm print 4 --gpus_per_node 8 -- --gin_file=runs/pretrain_paper.gin … > train.sbatch
  newsembed launch gke print news --image IMAGE --type tpu-v5p-slice --topology 2x2x4 --hosts_per_slice 4 \
      -- --gin_file=runs/pretrain_paper.gin … > job.yaml
"""

import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from ..formats.files import packaged
from . import tpu, train
from .parsing import Parser, add_options, parse
from .tpu import SAVING_SECONDS, LaunchOptions

_POLL_SECONDS: Final = 0.5
_SIGNALLED: Final = 128  # the exit code of a shell for a program that a signal ended is that plus the signal


OPTIONS = LaunchOptions


def run(options: LaunchOptions) -> int:
    """Does what is asked; returns the exit code of the first host that failed."""
    if options.train:
        check_training(options.train)
    if options.place == "tpu":
        return tpu.run(options)
    if options.place == "hosts":
        commands = ssh_commands(options)
        for command in commands:
            print(shlex.join(command), flush=True)
        return 0 if options.print_only else run_together(commands)
    print(slurm_script(options) if options.place == "slurm" else gke_manifest(options))
    return 0


def check_training(words: Sequence[str]) -> None:
    """Refuses what ``newsembed train`` would refuse on the machines, before these are paid for.

    Args:
      words: its options. Gin files that are not on this machine are not looked at.

    Raises:
      InputError: see ``gin_files.check_files``.
    """
    parser = Parser("newsembed train")
    add_options(parser, train.OPTIONS)
    options: train.TrainOptions = parse(parser, train.OPTIONS, words)
    if importlib.util.find_spec("gin") is None:
        print("newsembed launch: note: gin-config is not installed, so gin files are not checked", file=sys.stderr)
        return
    from ..training.gin_files import GIN_FOLDER, check_files

    folders = (*options.gin_search_paths, "", GIN_FOLDER)
    for name in options.gin_file:
        if not any(os.path.isfile(os.path.join(folder, name)) for folder in folders):
            print(f"newsembed launch: note: {name} is not here, so gin files are not checked", file=sys.stderr)
            return
    check_files(*options.gin)


def ssh_commands(options: LaunchOptions) -> list[list[str]]:
    """One ssh command for each host; what runs there ends with its connection (``-tt``)."""
    hosts = options.target.split(",")
    address = shlex.quote(f"{hosts[0].rpartition('@')[2]}:{options.port}")
    shared = f"{options.program} train --coordinator_address={address} --num_processes={len(hosts)}"
    train = shlex.join(options.train)
    return [["ssh", "-tt", host, f"{shared} --process_id={number} {train}"] for number, host in enumerate(hosts)]


def run_together(commands: Sequence[Sequence[str]]) -> int:
    """Runs commands at the same time, since none trains before all are connected; the first that fails ends the others.

    Returns:
      The exit code of the first that failed, 128 + N if signal N ended it; 0 if none did.
    """
    started = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for command in commands]  # noqa: S603 - as printed
    code = 0
    try:
        is_running = True
        while is_running and not code:
            time.sleep(_POLL_SECONDS)
            codes = [process.poll() for process in started]
            is_running, code = None in codes, next(filter(None, codes), 0)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()
    return code if code >= 0 else _SIGNALLED - code


def slurm_script(options: LaunchOptions) -> str:
    """The text of a batch script: one process a GPU.

    Slurm signals the script before its time limit. The script asks the run to save, waits, and puts itself into the
    queue again; the run goes on from the checkpoint. ``scancel`` ends it for good.
    """
    limit = f"\n#SBATCH --time={options.time_limit}" if options.time_limit else ""
    values = {"saving": SAVING_SECONDS, "limit": limit, "train": shlex.join(options.train)}
    return packaged(__package__, "slurm_script.txt").format(options=options, **values).rstrip()


def gke_manifest(options: LaunchOptions) -> str:
    """The manifest of a JobSet, as xpk writes it: a job for each slice, a pod for each host.

    Kubernetes starts all pods again when one fails or is preempted, and the run goes on from its checkpoint; but not
    after bad input, which would fail again.
    """
    spot = '\n              cloud.google.com/gke-spot: "true"' if options.spot else ""
    command = shlex.join([options.program, "train", "--detect_processes", *options.train]).replace("'", "''")
    values = {"saving": SAVING_SECONDS, "spot": spot, "command": command}
    return packaged(__package__, "gke_manifest.txt").format(options=options, **values).rstrip()
