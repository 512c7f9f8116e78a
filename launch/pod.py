r"""Trains on several machines: prints the commands that start ``newsembed train`` on each, or runs them with --run.

A TPU slice (every host runs the same command), GPU hosts over ssh (each command has its own process number), or a Slurm
script (one process per GPU; SIGTERM two minutes before the time limit, so that the run is saved). All machines must see
MODEL_DIR and the data, on gs:// or a shared file system. The arguments after ``--`` are passed to ``newsembed train``.

example:
  newsembed launch --tpu my-v4-32 --zone us-central2-b --run -- \
      --gin_file=runs/pretrain_paper.gin --gin.MODEL_DIR='"/mnt/shared/pretrained"' …
  newsembed launch --hosts gpu0,gpu1 -- --gin_file=runs/pretrain_paper.gin …
  newsembed launch --slurm_nodes 4 --gpus_per_node 8 -- --gin_file=runs/pretrain_paper.gin … > train.sbatch
"""

import argparse
import shlex
import subprocess
from collections.abc import Sequence
from typing import Final

from ..errors import InputError

_SAVING_SECONDS: Final = 120  # between Slurm's SIGTERM and the end of the job


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``newsembed launch``."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--tpu", metavar="NAME", help="an existing TPU VM or slice")
    where.add_argument(
        "--hosts", metavar="HOST,HOST", help="GPU or CPU hosts, one process each; the first is the coordinator"
    )
    where.add_argument("--slurm_nodes", type=int, metavar="N", help="print a script for sbatch with N nodes")
    parser.add_argument("--zone", help="zone of the TPU")
    parser.add_argument("--project", help="project of the TPU (default: gcloud's own)")
    parser.add_argument("--port", type=int, default=9000, help="port of the first of --hosts (default: 9000)")
    parser.add_argument(
        "--gpus_per_node", type=int, default=8, metavar="N", help="processes on each Slurm node (default: 8)"
    )
    parser.add_argument(
        "--program",
        default="newsembed",
        metavar="COMMAND",
        help="the newsembed program on those machines, such as /opt/venv/bin/newsembed",
    )
    parser.add_argument("--run", action="store_true", help="run the commands and wait for them; not with --slurm_nodes")
    parser.add_argument("train", nargs=argparse.REMAINDER, metavar="-- …", help="options of newsembed train")


def run(args: argparse.Namespace) -> int:
    """Prints or runs the commands; returns the highest of their exit codes.

    Raises:
      InputError: for options that do not fit together.
    """
    train = args.train[1:] if args.train[:1] == ["--"] else args.train
    if not any(option.startswith("--gin_file") for option in train):
        raise InputError(
            "got no --gin_file for `newsembed train`", field="--", remedy="Write its options at the end, after `--`."
        )
    for name in ("zone", "project"):
        if getattr(args, name) and args.tpu is None:
            raise InputError(
                "is of a TPU, and none is given", field=f"--{name}", remedy="Leave it out, or name the TPU: --tpu."
            )
    if args.slurm_nodes is not None:
        if args.run:
            raise InputError(
                "a Slurm script is printed, never run",
                field="--run",
                remedy="Leave --run out and give the script to sbatch.",
            )
        print(slurm_script(args.slurm_nodes, args.gpus_per_node, args.program, train), end="")
        return 0
    commands = (
        [tpu_command(args.tpu, args.zone, args.project, args.program, train)]
        if args.tpu is not None
        else ssh_commands(args.hosts.split(","), args.port, args.program, train)
    )
    for command in commands:
        print(shlex.join(command), flush=True)
    if not args.run:
        return 0
    # All at once: none of them trains before all are connected.
    started = [subprocess.Popen(command) for command in commands]  # noqa: S603 - the commands that were printed
    return max(process.wait() for process in started)


def tpu_command(tpu: str, zone: str | None, project: str | None, program: str, train: Sequence[str]) -> list[str]:
    """The gcloud command that trains on all hosts of a slice.

    Raises:
      InputError: without a name or a zone.
    """
    if not tpu:
        raise InputError("got no name", field="--tpu", remedy="Give the name of a TPU VM or slice that exists.")
    if not zone:
        raise InputError(
            "got a TPU without its zone",
            field="--zone",
            remedy="Give --zone, as `gcloud compute tpus tpu-vm list` shows it.",
        )
    remote = f"{program} train --detect_processes {shlex.join(train)}"
    place = [f"--zone={zone}", *([f"--project={project}"] if project else [])]
    return ["gcloud", "compute", "tpus", "tpu-vm", "ssh", tpu, *place, "--worker=all", f"--command={remote}"]


def ssh_commands(hosts: Sequence[str], port: int, program: str, train: Sequence[str]) -> list[list[str]]:
    """One ssh command for each host.

    Raises:
      InputError: for an empty or repeated host, or a number that is not a port.
    """
    if not 0 < port < 65536:
        raise InputError(f"got {port}, expected 1 to 65535", field="--port", remedy="Omit it to use 9000.")
    if not all(hosts) or len(set(hosts)) < len(hosts):
        raise InputError(
            f"got {','.join(hosts)!r}, expected different hosts",
            field="--hosts",
            remedy="Name each host once: --hosts a,b.",
        )
    address = shlex.quote(f"{hosts[0].rpartition('@')[2]}:{port}")
    shared = f"{program} train --coordinator_address={address} --num_processes={len(hosts)}"
    return [["ssh", host, f"{shared} --process_id={number} {shlex.join(train)}"] for number, host in enumerate(hosts)]


def slurm_script(nodes: int, gpus_per_node: int, program: str, train: Sequence[str]) -> str:
    """The text of a batch script.

    Raises:
      InputError: for numbers below 1.
    """
    if nodes < 1 or gpus_per_node < 1:
        raise InputError(
            f"got {nodes} nodes of {gpus_per_node} GPUs", field="--slurm_nodes", remedy="Give positive numbers."
        )
    lines = [
        "#!/bin/bash",
        "#SBATCH --job-name=newsembed",
        f"#SBATCH --nodes={nodes}",
        f"#SBATCH --ntasks-per-node={gpus_per_node}",
        f"#SBATCH --gpus-per-node={gpus_per_node}",
        f"#SBATCH --signal=TERM@{_SAVING_SECONDS}",
        "#SBATCH --requeue",
        f"srun {program} train {shlex.join(train)}",
    ]
    return "\n".join(lines) + "\n"
