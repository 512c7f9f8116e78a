"""A Flink cluster of processes on this machine, for engines.py: a job manager and task managers that can be killed."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

_MASTER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_WORKER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_SLOTS = 2
# Small parts: they do not limit the Python workers, which are processes of their own.
_MEMORY = {
    "framework.heap.size": "128mb",
    "framework.off-heap.size": "128mb",
    "task.heap.size": "384mb",
    "task.off-heap.size": "64mb",
    "managed.size": "128mb",
    "network.min": "256mb",  # buffers for the shuffles of four slots
    "network.max": "256mb",
    "jvm-metaspace.size": "256mb",
    "jvm-overhead.min": "192mb",
    "jvm-overhead.max": "192mb",
}


class FlinkCluster:
    """A job manager and two task managers with two slots each; a context manager that ends them.

    Args:
      java: the command of Java with its options and the class path.
      folder: for configuration and logs.
      ports: of the job manager's RPC and REST servers.
    """

    def __init__(self, java: Sequence[str], folder: Path, ports: tuple[int, int]) -> None:
        # Tasks that were started again are lines of the job manager's log.
        logs = "-Dorg.slf4j.simpleLogger.log.org.apache.flink.runtime.executiongraph=info"
        self._java, self.folder, self._rest = [java[0], "-Xmx700m", logs, *java[1:]], folder, ports[1]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._started = 0
        folder.mkdir(parents=True, exist_ok=True)
        values = {
            "jobmanager.rpc.address": "localhost",
            "jobmanager.rpc.port": ports[0],
            "jobmanager.memory.process.size": "1200m",
            "rest.address": "localhost",
            "rest.port": ports[1],
            "taskmanager.host": "localhost",
            "taskmanager.numberOfTaskSlots": _SLOTS,
            "parallelism.default": 2 * _SLOTS,  # the job server reads it, too
            # Job manager, task managers and job server have one class path; a second copy of a class is not the same.
            "classloader.resolve-order": "parent-first",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 20,
            "restart-strategy.fixed-delay.delay": "1 s",
            # Busy machines are slow, not dead.
            "heartbeat.timeout": 60_000,
        }
        lines = [f"{name}: {value}\n" for name, value in values.items()]
        (folder / "config.yaml").write_text("".join(lines), encoding="utf-8")

    @property
    def address(self) -> str:
        """Where jobs are submitted."""
        return f"localhost:{self._rest}"

    def __enter__(self) -> Self:
        try:
            self._start(_MASTER, "job-manager")
            self._wait(0)
            for _ in range(2):
                self._start_task_manager()
            self._wait(2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def kill_task_manager(self) -> bool:
        """Kills a task manager that runs tasks by SIGKILL, and starts another one, as a supervisor does.

        Returns:
          Whether there was one.
        """
        managers = self._ask("taskmanagers")["taskmanagers"]
        busy = [one["id"] for one in managers if one["freeSlots"] < _SLOTS and one["id"] in self._processes]
        if not busy:
            return False
        killed = self._processes.pop(busy[0])
        killed.kill()
        killed.wait()
        self._start_task_manager()
        return True

    def _start_task_manager(self) -> None:
        self._started += 1
        memory = [part for name, size in _MEMORY.items() for part in ("-D", f"taskmanager.memory.{name}={size}")]
        name = f"task-manager-{self._started}"
        own = ["-D", f"taskmanager.resource-id={name}", "-D", f"taskmanager.cpu.cores={_SLOTS}.0"]
        self._start(_WORKER, name, *memory, *own)

    def _start(self, main: str, name: str, *options: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [*self._java, main, "--configDir", str(self.folder), *options]
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def _wait(self, task_managers: int) -> None:
        """Waits for the job manager and its task managers.

        Raises:
          RuntimeError: if one of them ends.
        """
        while True:
            if any(process.poll() is not None for process in self._processes.values()):
                raise RuntimeError(f"a process of Flink ended, see {self.folder}/*.log")
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                if self._ask("overview")["taskmanagers"] >= task_managers:
                    return
            time.sleep(0.5)

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}/{path}", timeout=10) as answer:
            return json.load(answer)
