"""Decodes examples in many threads under garbage collection: protobuf crashed once, in a training, by SIGSEGV.

    python tests/attack/decode_in_threads.py

Each start is a process of its own, whose threads ask for the message class at the same time, as in a training.
"""

import concurrent.futures
import gc
import subprocess
import sys
import threading
import time

THREADS, SECONDS, STARTS = 16, 3, 20  # seconds of each start


def decoded(seconds):
    """Decodes and encodes for some seconds in threads that begin together; returns the number of examples."""
    import numpy as np
    from newsembed.formats.tfrecords import FeatureSpec, decode_example, encode_example

    specs = [FeatureSpec("tokens", "int", (None,), "tokens"), FeatureSpec("name", "bytes", (), "a name")]
    begin, end = threading.Barrier(THREADS + 1), time.monotonic() + seconds + 1

    def work(seed):
        begin.wait()
        draw, count = np.random.default_rng(seed), 0
        while time.monotonic() < end or not count:
            tokens = draw.integers(0, 9_999, draw.integers(1, 400))
            values = {"tokens": tokens.tolist(), "name": "x" * (seed + 1)}
            raw = encode_example(values, specs)
            found = [decode_example(raw, specs, "p") for _ in range(4)]
            assert all((one["tokens"] == tokens).all() for one in found)
            count += len(found)
        return count

    gc.set_threshold(10, 2, 2)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        running = [pool.submit(work, seed) for seed in range(THREADS)]
        begin.wait()
        while time.monotonic() < end:
            gc.collect()
        return sum(one.result() for one in running)


def main():
    """Prints how many processes were started and how many a signal ended; returns 1 if one was."""
    if sys.argv[1:]:
        print(decoded(float(sys.argv[1])))
        return 0
    command = [sys.executable, __file__, str(SECONDS)]
    done = [subprocess.run(command, check=False, capture_output=True, text=True) for _ in range(STARTS)]
    bad = [one for one in done if one.returncode]
    count = sum(int(one.stdout) for one in done if not one.returncode)
    print(f"{count:,} examples in {STARTS} processes, of which {len(bad)} died")
    for one in bad:
        print(f"exit code {one.returncode}\n{one.stderr[-2000:]}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
