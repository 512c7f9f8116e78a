"""The options of ``newsembed launch``: on which machines to train, and how."""

import dataclasses
from typing import Final

from ..errors import InputError
from ..formats.command_line import Options, option, required

SAVING_SECONDS: Final = 120  # between a warning and the end: time for a checkpoint
_ACTIONS: Final = {
    "tpu": ("up", "run", "status", "logs", "down"),
    "hosts": ("run",),
    "slurm": ("print",),
    "gke": ("print",),
}
_TRAINING: Final = ("run", "print")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LaunchOptions(Options):
    """Options of ``newsembed launch``."""

    place: str = required("where to train", choices=tuple(_ACTIONS), positional=True)
    action: str = required("what to do there", metavar="ACTION", positional=True)
    target: str = required(
        "tpu, gke: a name; hosts: HOST,HOST; slurm: the number of nodes", metavar="TARGET", positional=True
    )
    program: str = option("newsembed", "the newsembed program on those machines", metavar="COMMAND")
    print_only: bool = option(False, "print the commands and run nothing", name="print")
    yes: bool = option(False, "tpu: allow what costs money")
    zone: str | None = option(None, "tpu: zone of the slice")
    project: str | None = option(None, "tpu: project of the slice (default: gcloud's own)")
    type: str | None = option(None, "tpu: such as v4-32; gke: such as tpu-v5p-slice")
    runtime: str = option("tpu-ubuntu2204-base", "tpu: the system image of its hosts", metavar="VERSION")
    spot: bool = option(False, "tpu, gke: Spot capacity, which can be taken away")
    reserved: bool = option(False, "tpu: capacity of a reservation")
    num_slices: int = option(1, "tpu, gke: slices that train together", ge=1)
    install: str = option(
        "newsembed[train,tpu,gcs]",
        "tpu: what each host installs: a requirement, or a wheel here or on gs://",
        metavar="WHAT",
    )
    logs: str | None = option(None, "tpu: folder on gs:// for the logs of all hosts", metavar="URI")
    poll_seconds: float = option(20.0, "tpu: between two looks at the hosts", gt=0, metavar="X")
    port: int = option(9000, "hosts: port of the first one", ge=1, le=65535)
    gpus_per_node: int = option(8, "slurm: processes on each node", ge=1)
    time_limit: str | None = option(None, "slurm: of one job, such as 24:00:00", metavar="TIME")
    image: str | None = option(None, "gke: container image with newsembed[train,tpu,gcs]")
    topology: str | None = option(None, "gke: of a slice, such as 2x2x4")
    hosts_per_slice: int = option(1, "gke: machines of a slice", ge=1)
    chips_per_host: int = option(4, "gke: TPU chips of a machine", ge=1)
    train: tuple[str, ...] = option((), "options of newsembed train, after --", rest=True)

    def __post_init__(self) -> None:
        """Checks that the action is one of the place, and has what it needs."""
        super().__post_init__()
        if self.action not in (known := _ACTIONS[self.place]):
            problem = f"{self.place} has no action {self.action}"
            raise InputError(problem, field="ACTION", remedy=f"choose {' or '.join(known)}")
        if self.action in _TRAINING and not any(word.startswith("--gin_file") for word in self.train):
            remedy = "write its options at the end, after `--`"
            raise InputError("got no --gin_file for `newsembed train`", field="--", remedy=remedy)
        needed = {"gke": ("image", "type", "topology"), "tpu": ("zone", *(("type",) if self.action == "up" else ()))}
        for name in needed.get(self.place, ()):
            if not getattr(self, name):
                raise InputError(f"{self.place} {self.action} needs it", field=f"--{name}", remedy="give it")
        if self.place == "slurm" and not (self.target.isdecimal() and int(self.target)):
            raise InputError(f"got {self.target!r} nodes", field="TARGET", remedy="give a number")
