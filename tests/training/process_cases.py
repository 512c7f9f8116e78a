"""One of two processes that train together; `test_processes.py` starts it with its number, port and file of runs."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from newsembed.launch import cli
from newsembed.learning import mixture
from newsembed.training import checkpoints
from newsembed.training.gin_config import run_training

process, port, runs = int(sys.argv[1]), sys.argv[2], json.loads(Path(sys.argv[3]).read_text())

draw = mixture.MixtureBatches.draw
choices: list[str] = []
stop_at: int | None = None


def draw_and_note(self, step):
    drawn = draw(self, step)
    choices.append(f"{step} {drawn.data_set}")
    if step == stop_at and process == 1:
        os.kill(os.getpid(), signal.SIGTERM)  # to one process only
    return drawn


mixture.MixtureBatches.draw = draw_and_note
check_same_model = checkpoints.check_same_model
rewritten: list[bool] = []


def check_slowly(folder, *model):
    written = Path(folder, "model.json").stat().st_mtime_ns
    time.sleep(0.5)
    rewritten.append(Path(folder, "model.json").stat().st_mtime_ns != written)
    check_same_model(folder, *model)


if process == 1:
    checkpoints.check_same_model = check_slowly
results = []
for number, job in enumerate(runs):
    choices.clear()
    stop_at = job.get("stop_at")
    if number == 0:
        processes = [f"--coordinator_address=127.0.0.1:{port}", "--num_processes=2", f"--process_id={process}"]
        bindings = [f"--gin.{binding}" for binding in job["bindings"]]
        code = cli.main(["train", f"--gin_file={job['gin']}", *processes, *bindings])
        results.append({"code": code, "choices": list(choices)})
    else:
        result = run_training([job["gin"]], job["bindings"])
        results.append(
            {"step": result.step, "interrupted": result.interrupted, "origin": result.origin, "choices": list(choices)}
        )
        results[-1]["rewritten"] = list(rewritten)
Path(sys.argv[3]).with_name(f"results-{process}.json").write_text(json.dumps(results))
