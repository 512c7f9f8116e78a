"""Trains a run that is killed again and again, one process after the other; `test_kills.py` starts it.

Nothing of TensorFlow can be imported here. Each try is a fork of this process, which has the libraries loaded but no
device yet.
"""

import os
import random
import signal
import sys
import threading
import traceback

for name in ("tensorflow", "tensorflow_text", "seqio", "apache_beam", "tf_keras"):
    sys.modules[name] = None  # importing it raises ModuleNotFoundError

from newsembed.learning import mixture  # noqa: E402
from newsembed.training import checkpoints, gin_config, metrics  # noqa: E402

RUN = "runs/train_demo.gin"


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def after(owner, name, should_die):
    original = getattr(owner, name)

    def wrapped(self, *arguments, **options):
        result = original(self, *arguments, **options)
        if should_die(*arguments):
            die()
        return result

    setattr(owner, name, wrapped)


def at_random(seed):
    """At any moment within three seconds of the first step."""

    def start(*_):
        threading.Timer(random.Random(seed).uniform(0, 3), die).start()
        return False

    after(mixture.MixtureBatches, "draw", start)


KILLS = {
    "before the first checkpoint": lambda: after(mixture.MixtureBatches, "draw", lambda step: step == 1),
    "while the first is written": lambda: after(checkpoints.Checkpoints, "save", lambda step, *_: step == 2),
    "when step 4 is logged but not saved": lambda: after(metrics.MetricWriter, "write", lambda step, _: step == 4),
    "at random": lambda: at_random(7),
    "while the last is written": lambda: after(checkpoints.Checkpoints, "save", lambda step, *_: step == 8),
}


def attempt(prepare):
    """Trains in a fork; how it ended."""
    sys.stdout.flush()
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 1
    try:
        prepare()
        result = gin_config.run_training([RUN], sys.argv[1:])
        print(result.origin, flush=True)
        code = 0
    except BaseException:  # noqa: BLE001 - shown, and the code says so
        traceback.print_exc()
    finally:
        os._exit(code)


for name, prepare in KILLS.items():
    code = attempt(prepare)
    print(f"{name}: {code}", flush=True)
    # A random moment may come after the end.
    assert code == -signal.SIGKILL or (name == "at random" and code == 0), name
assert attempt(lambda: None) == 0
