"""Runs several commands of newsembed in one process of their own, which no other test's settings reach."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# Equal sums on any x86 machine, however busy: one thread and AVX2 for all who sum. No fusion: it takes long to compile.
_XLA = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_max_isa=AVX2",
    "--xla_cpu_multi_thread_eigen=false",
)
_ENVIRONMENT = {
    "XLA_FLAGS": " ".join(_XLA),
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONHASHSEED": "0",
}


def run(folder, commands):
    """What each command printed; they run in `folder`, so that no path on a command line depends on the machine."""
    asked = json.dumps([[str(part) for part in command] for command in commands])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve())],
        input=asked,
        text=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **_ENVIRONMENT},
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    return json.loads(done.stdout.rpartition("\n\0")[2])


def main():
    from newsembed.launch import cli

    printed = []
    for command in json.loads(sys.stdin.read()):
        start, out = time.monotonic(), io.StringIO()
        with contextlib.redirect_stdout(out):
            code = cli.main(command)
        print(f"{time.monotonic() - start:6.1f} s  {' '.join(command)[:150]}", file=sys.stderr, flush=True)
        if code:
            print(f"exit code {code}\n{out.getvalue()}", file=sys.stderr)
            return 1
        printed.append(out.getvalue())
    sys.stdout.write("\n\0" + json.dumps(printed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
