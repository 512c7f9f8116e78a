"""Runs commands of newsembed in a process of their own, with sums that do not depend on the processor's load."""

import contextlib
import io
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

# One thread and AVX2 for all who sum: equal sums on any x86 machine. No fusion: it takes long to compile.
_ENVIRONMENT = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_max_isa=AVX2 "
    "--xla_cpu_multi_thread_eigen=false",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONHASHSEED": "0",
}
_DATE = "2024-01-15T12:00:00Z"
_FILES = 3
WARCS = "warcs"  # no command: `write_warcs` of two folders


def run(folder, commands):
    """What each command printed. They run in `folder`, so no path on a command line depends on the machine."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve())],
        input=json.dumps([[str(part) for part in command] for command in commands]),
        text=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, **_ENVIRONMENT},
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    return json.loads(done.stdout.rpartition("\n\0")[2])


def write_warcs(newsroom, folder):
    """The site of a newsroom as WARC files, not compressed: a crawl would give other times in each run."""
    folder.mkdir(parents=True)
    content = (newsroom / "site" / "content.bin").read_bytes()
    lines = (newsroom / "site" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    for number in range(_FILES):
        with open(folder / f"part-{number}.warc", "wb") as sink:
            for stored in map(json.loads, lines[number::_FILES]):
                sink.write(_response(stored, content[stored["offset"] : stored["offset"] + stored["length"]]))


def _response(stored, body):
    url = f"http://{stored['host']}{stored['path']}"
    http = [f"HTTP/1.1 {stored['status']} x", f"Content-Type: {stored['content_type']}", f"Content-Length: {len(body)}"]
    http += [f"Location: {stored['location']}"] if stored["location"] else []
    payload = "\r\n".join([*http, "", ""]).encode() + body
    head = [
        "WARC/1.1",
        "WARC-Type: response",
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>",
        f"WARC-Date: {_DATE}",
        f"WARC-Target-URI: {url}",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(payload)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + payload + b"\r\n\r\n"


def main():
    from newsembed.launch import cli

    printed = []
    for command in json.loads(sys.stdin.read()):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = write_warcs(*map(Path, command[1:])) if command[0] == WARCS else cli.main(command)
        if code:
            print(f"{' '.join(command)}: exit code {code}\n{out.getvalue()}", file=sys.stderr)
            return 1
        printed.append(out.getvalue())
    sys.stdout.write("\n\0" + json.dumps(printed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
