"""TPU slices of Google Cloud: asks for one, trains on all of its hosts, and goes on when a Spot slice is taken away.

The hosts run newsembed under systemd, so a lost connection ends nothing. Each writes a log and, at the end, its exit
code into its home folder. The run goes on from MODEL_DIR, so a new slice, or a host that was restarted, needs nothing
of the old one.
"""

import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
import time
from typing import Final

from ..errors import InputError, refusing
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
    install: str = option("", "tpu up, run: the wheel that each host installs, here or on gs://", metavar="WHEEL")
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
        if f"{self.place} {self.action}" in ("tpu up", "tpu run") and not self.install.startswith("gs://"):
            remedy = "give the wheel that `make wheel` writes into dist/"
            with refusing("not a file here or on gs://", OSError, field="--install", remedy=remedy):
                os.stat(self.install)
        if self.place == "slurm" and not (self.target.isdecimal() and int(self.target)):
            raise InputError(f"got {self.target!r} nodes", field="TARGET", remedy="give a number")


_UNIT: Final = "newsembed-train"
_READY: Final = "ACTIVE"
_LOST: Final = ("SUSPENDING", "SUSPENDED", "FAILED", "DELETING", "")  # "": there is none
_TRIES: Final = 5  # of a connection, one after another
_LOG_SECONDS: Final = 30
_TERMINATED: Final = 143  # saved after SIGTERM
_MARK: Final = "newsembed-host"
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_PATH: Final = 'export PATH="$HOME/.local/bin:$PATH"'  # where uv and newsembed are; no login shell sets it
_SHOWN_LINES: Final = 30


@dataclasses.dataclass(frozen=True)
class Host:
    """What one host says.

    Attributes:
      name: of the host.
      active: whether the run is active there.
      code: the exit code of a run that ended.
      fresh: no run was started since the host was.
    """

    name: str
    active: bool
    code: int | None = None
    fresh: bool = False


class Slices:
    """The slices that train together, as commands of gcloud.

    Args:
      options: of the command.
    """

    def __init__(self, options: LaunchOptions) -> None:
        self._options = options
        self._place = [f"--{name}={value}" for name in ("zone", "project") if (value := getattr(options, name))]
        name = options.target
        self._nodes = [name] if options.num_slices == 1 else [f"{name}-{one}" for one in range(options.num_slices)]

    def create(self) -> None:
        """Asks for the slices; returns when the request is queued."""
        options = self._options
        several = [f"--node-count={options.num_slices}", f"--node-prefix={options.target}"]
        capacity = [f"--{name}" for name in ("spot", "reserved") if getattr(options, name)]
        self._gcloud(
            *("queued-resources", "create", options.target, *self._place),
            *([f"--node-id={options.target}"] if options.num_slices == 1 else several),
            *(f"--accelerator-type={options.type}", f"--runtime-version={options.runtime}", *capacity, "--quiet"),
        )

    def state(self) -> str:
        """The state of the request, such as ``ACTIVE``; "" if there is none."""
        command = ["queued-resources", "describe", self._options.target, *self._place, "--format=json"]
        done = self._gcloud(*command, may_fail=True)
        if done is None or done.returncode == 0:
            return str(json.loads(done.stdout)["state"]["state"]) if done else _READY
        if "NOT_FOUND" in done.stderr or "not found" in done.stderr.lower():
            return ""
        raise _failed(done)

    def delete(self) -> None:
        """Deletes the slices and their request."""
        self._gcloud("queued-resources", "delete", self._options.target, *self._place, "--force", "--quiet")

    def copy(self, path: str) -> None:
        """Copies a local file to the home folder of all hosts."""
        for node in self._nodes:
            self._gcloud("tpu-vm", "scp", path, f"{node}:", *self._place, "--worker=all", "--quiet")

    def on_hosts(self, script: str, *, may_fail: bool = False) -> str | None:
        """Runs a script on all hosts; returns what they print, None if one cannot be reached or fails.

        Raises:
          InputError: for a failure, unless it may fail.
        """
        said = []
        for node in self._nodes:
            command = ["tpu-vm", "ssh", node, *self._place, "--worker=all", f"--command={script}", "--quiet"]
            done = self._gcloud(*command, may_fail=True)
            if done is not None and done.returncode:
                if may_fail:
                    return None
                raise _failed(done)
            said.append(done.stdout if done else "")
        return "".join(said)

    def _gcloud(self, *words: str, may_fail: bool = False) -> subprocess.CompletedProcess[str] | None:
        command = ["gcloud", "compute", "tpus", *words]
        if self._options.print_only:
            print(shlex.join(command))
            return None
        remedy = "install the Google Cloud CLI, or give --print"
        with refusing("gcloud is not installed", FileNotFoundError, remedy=remedy):
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - as --print says
        if done.returncode and not may_fail:
            raise _failed(done)
        return done


def _failed(done: subprocess.CompletedProcess[str]) -> InputError:
    problem = f"`{shlex.join(done.args)[:200]}` ended with {done.returncode}: {done.stderr.strip()[-500:]}"
    return InputError(problem, field="gcloud", remedy="correct what it says; --print shows all commands")


def run(options: LaunchOptions) -> int:
    """Does one action; returns the exit code.

    Raises:
      InputError: if a command of gcloud fails, or money would be spent without ``--yes``.
    """
    slices = Slices(options)
    if options.action == "down":
        slices.delete()
    elif options.action == "status":
        state = slices.state()
        print(f"{options.target}: {state or 'not there'}")
        for host in hosts_of(slices.on_hosts(_STATUS) or "") if state == _READY else ():
            print(f"  {host.name}: {_words(host)}")
    elif options.action == "logs":
        print(slices.on_hosts(f"echo; echo == $(hostname); tail -n {_SHOWN_LINES} ~/{_UNIT}.log") or "", end="")
    elif options.action == "up":
        up(options, slices)
    else:
        return train(options, slices)
    return 0


def up(options: LaunchOptions, slices: Slices) -> None:
    """Asks for slices, unless they are there, waits until they are ready, and installs newsembed on their hosts."""
    state = "" if options.print_only else slices.state()
    if state in _LOST:
        if not (options.yes or options.print_only):
            what = f"{options.num_slices} x {options.type}"
            raise InputError(f"{what} costs money", field="--yes", remedy="give --yes, or --print to see the commands")
        if not options.type:
            raise InputError("needed to ask for a slice", field="--type", remedy="give it, such as --type v4-32")
        if state:
            slices.delete()
        slices.create()
    while (state := slices.state()) != _READY:
        if state in _LOST:
            problem = f"the request for {options.target} ended as {state or 'not there'}"
            raise InputError(problem, field="--type", remedy="see `gcloud compute tpus queued-resources describe`")
        _say(f"{options.target}: {state}")
        time.sleep(options.poll_seconds)
    install(options.install, slices)


def install(wheel: str, slices: Slices) -> None:
    """Installs newsembed on all hosts, with a Python of its own: that of the system images is too old."""
    fetch = ""
    if wheel.startswith("gs://"):
        fetch = f"gcloud storage cp --quiet {shlex.quote(wheel)} ~/ && "
    else:
        slices.copy(wheel)
    version = "{}.{}".format(*sys.version_info)
    uv = "PIP_BREAK_SYSTEM_PACKAGES=1 pip install --quiet --user uv"
    what = f'"newsembed[train,tpu,gcs] @ file://$HOME/"{shlex.quote(os.path.basename(wheel))}'
    slices.on_hosts(f"{_PATH}; {fetch}{uv} && uv tool install --quiet --force --python {version} {what}")


def train(options: LaunchOptions, slices: Slices) -> int:
    """Trains on all hosts until the run has ended, on as many slices, one after another, as it takes.

    Returns:
      0, or the exit code of the first host that failed.
    """
    while True:
        up(options, slices)
        if not options.print_only:
            active = [host.active for host in hosts_of(slices.on_hosts(_STATUS) or "")]
            if any(active) and not all(active):  # they wait for those that have ended, or were restarted
                slices.on_hosts(_STOP)
        slices.on_hosts(_start_script(options))
        if options.print_only:
            return 0
        code = _watch(options, slices)
        if code is not None:
            return code
        _say(f"{options.target} was taken away, or a host of it was restarted; the run goes on")


def _start_script(options: LaunchOptions) -> str:
    """What each host runs: starts the run under systemd, unless it is active."""
    log, code = f"~/{_UNIT}.log", f"~/{_UNIT}.code"
    copy = f"gcloud storage cp --quiet {log} {shlex.quote(options.logs)}/$(hostname).log" if options.logs else ":"
    command = shlex.join([options.program, "train", "--detect_processes", *options.train])
    script = (
        f"trap : TERM; rm -f {code}; (while sleep {_LOG_SECONDS}; do {copy}; done) & copying=$!; "
        f"{command} > {log} 2>&1; echo $? > {code}.new; kill $copying; {copy}; mv {code}.new {code}"
    )
    own = '--uid="$(id -u)" --working-directory="$HOME" --setenv=HOME="$HOME" --setenv=PATH="$PATH"'
    own += f" --property=TimeoutStopSec={SAVING_SECONDS}"
    start = f"sudo systemd-run --quiet --collect --unit={_UNIT} {own} bash -c {shlex.quote(script)}"
    return f"{_PATH}; rm -f {code}; cp {_BOOT} ~/{_UNIT}.boot; systemctl is-active --quiet {_UNIT} || {start}"


_STATUS: Final = (
    f"echo {_MARK} $(hostname) $(systemctl is-active {_UNIT}) "
    f'$([ "$(cat ~/{_UNIT}.boot 2>/dev/null)" = "$(cat {_BOOT})" ] || echo fresh) $(cat ~/{_UNIT}.code 2>/dev/null)'
)
_STOP: Final = f"sudo systemctl stop {_UNIT}; true"


def hosts_of(said: str) -> list[Host]:
    r"""The hosts in what all of them printed.

    >>> hosts_of("newsembed-host w-0 active\nnewsembed-host w-1 inactive 2\n")
    [Host(name='w-0', active=True, code=None, fresh=False), Host(name='w-1', active=False, code=2, fresh=False)]
    """
    found = re.findall(rf"^{_MARK} (\S+) (\S+)( fresh)?(?: (\d+))?$", said, re.MULTILINE)
    return [Host(name, state == "active", int(code) if code else None, bool(new)) for name, state, new, code in found]


def _words(host: Host) -> str:
    ended = "no run" if host.fresh else "was killed"
    return "trains" if host.active else f"ended with {host.code}" if host.code is not None else ended


def _watch(options: LaunchOptions, slices: Slices) -> int | None:
    """Looks at the hosts until the run has ended; returns its exit code, None if it was taken away."""
    lost, shown = 0, ""
    while True:
        time.sleep(options.poll_seconds)
        said = slices.on_hosts(_STATUS, may_fail=True)
        hosts = hosts_of(said or "")
        if said is None or not hosts:
            lost += 1
            if slices.state() in _LOST:
                return None
            if lost >= _TRIES:
                problem = f"its hosts cannot be reached, {lost} times one after another; the run goes on there"
                raise InputError(problem, field=options.target, remedy="run the same command again to watch it")
            continue
        lost = lost if any(host.code == _TERMINATED for host in hosts) else 0
        now = ", ".join(f"{host.name} {_words(host)}" for host in hosts)
        if now != shown:
            _say(now)
            shown = now
        ended = [host for host in hosts if not host.active]
        failed = next((host for host in ended if host.code != 0), None)
        if failed is not None and (failed.fresh or slices.state() in _LOST):
            return None
        if failed is not None and failed.code == _TERMINATED and lost < _TRIES:  # a slice that is being taken away?
            lost += 1
            continue
        if failed is not None:
            slices.on_hosts(_STOP, may_fail=True)
            tail = f"[ $(hostname) != {shlex.quote(failed.name)} ] || tail -n {_SHOWN_LINES} ~/{_UNIT}.log"
            print(slices.on_hosts(tail, may_fail=True) or "", end="", file=sys.stderr)
            _say(f"{failed.name} {_words(failed)}; the other hosts were stopped")
            return 1 if failed.code is None else failed.code
        if len(ended) == len(hosts):
            return 0


def _say(text: str) -> None:
    print(f"newsembed launch: {text}", file=sys.stderr, flush=True)
