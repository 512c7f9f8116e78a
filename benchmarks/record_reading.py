"""TFRecords in an object store against a disk: how long it takes to open a set, and how many records a second are read.

    python benchmarks/record_reading.py --records 200000 --latency 0.01

Writes triplets, starts moto's server on loopback, and waits `--latency` seconds before each request of a reader. "copy"
reads a copy of the set, "blocks" reads it in place. Opening is the time per record with and without the places of the
manifest; the line for 1.1 billion records is computed from the bytes of the manifest and the time to parse it.
"""

import argparse
import json
import tempfile
import time

import numpy as np
from newsembed.formats import files, remote, stores, tfrecords
from newsembed.formats.manifest import DataSet
from newsembed.learning.batches import BatchOptions, GrainBatches
from newsembed.tasks import registry
from newsembed.tests import object_store

DATA_SET, BATCH, LENGTH = DataSet("triplets", "en"), 256, 128
SHARDS = 8


def write(folder, records):
    rng, blocks = np.random.default_rng(0), {}
    for shard in range(SHARDS):
        name = f"{DATA_SET.stream}/part-{shard:05d}-of-{SHARDS:05d}.tfrecord"
        with tfrecords.TFRecordShardWriter(f"{folder}/{name}") as writer:
            for number in range(records // SHARDS):
                tokens = [[2, *rng.integers(5, 30_000, 100).tolist(), 3] for _ in range(3)]
                ids = {f"{role}_doc_id": [shard, number] for role in ("anchor", "positive", "negative")}
                texts = dict(zip(("anchor_tokens", "positive_tokens", "negative_tokens"), tokens, strict=True))
                facts = {"augmentation": 0, "translated": 0, "language": "en"}
                writer.write(texts | ids | facts, registry.get("triplets").features)
        blocks[name] = [writer.rows, *writer.blocks.offsets]
    files.write_json(f"{folder}/manifest.json", {"examples": {str(DATA_SET): records}, "blocks": blocks})


def rate(batches, records):
    next(batches)
    start = time.perf_counter()
    for _ in range(records // BATCH - 2):
        next(batches)
    return (records // BATCH - 2) * BATCH / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--latency", type=float, default=0.01)
    args = parser.parse_args()
    lengths = {f"{role}_tokens": LENGTH for role in ("anchor", "positive", "negative")}
    options = BatchOptions("", lengths, BATCH, {"pieces": 30_000, "languages": 1})

    def opened(folder, gigabytes):
        start = time.perf_counter()
        found = GrainBatches(
            DATA_SET, BatchOptions(**{**vars(options), "directory": folder}), copied_gigabytes=gigabytes
        )
        return found, time.perf_counter() - start

    with tempfile.TemporaryDirectory() as folder, object_store.running() as store:
        stores.use_options(store.options)
        write(folder, args.records)
        path = files.list_files(f"{folder}/{DATA_SET.stream}/*")[0]
        start = time.perf_counter()
        tfrecords.RecordFile(path)
        scan = (time.perf_counter() - start) / (args.records // SHARDS)
        remote.upload(folder, store.folder, files.sizes_below(folder))
        requests, read = [0], stores.read_range

        def slow(*where):
            requests[0] += 1
            time.sleep(args.latency)
            return read(*where)

        stores.read_range = tfrecords.read_range = slow
        local, seconds = opened(folder, 16)
        fastest = rate(local, args.records)
        print(f"disk: opened in {seconds:.2f} s, {fastest:,.0f} records/s")
        for name, gigabytes in (("copy", 16), ("blocks", 0)):
            requests[0] = 0
            batches, seconds = opened(store.folder, gigabytes)
            found = rate(batches, args.records)
            print(
                f"{name}: opened in {seconds:.2f} s, {found:,.0f} records/s ({found / fastest:.2f} x disk), "
                f"{requests[0] / args.records:.4f} requests a record"
            )
        raw = json.dumps(files.read_json(f"{folder}/manifest.json")["blocks"])
        start = time.perf_counter()
        json.loads(raw)
        parsed, billion = (time.perf_counter() - start) / args.records, 1.1e9
        size = len(raw) / args.records * billion / 1e6
        print(f"1.1 billion records: {scan * billion:,.0f} s by their headers; the manifest has {size:.0f} MB")
        print(f"and is parsed in {parsed * billion:.1f} s")


if __name__ == "__main__":
    main()
