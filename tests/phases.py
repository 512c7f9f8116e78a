"""Runs a phase of a job whose shards get rows, without Beam."""

from newsembed.beam_pipelines.graph import blocks_of, received
from newsembed.beam_pipelines.shards import Shard


def map_rows(phase, function, streams):
    """Runs ``function(shard, received)`` for each shard of a phase; streams are (phase that sent, `Rows`)."""
    groups = [{"": [None], **{rows.stream: [] for _, rows in streams}} for _ in range(phase.shard_count)]
    for sender, rows in streams:
        for number in range(sender.shard_count):
            for receiver, block in blocks_of(number, sender, rows, with_bytes=True):
                groups[receiver][rows.stream].append(block)
    for number, group in enumerate(groups):
        with Shard(phase, number) as shard:
            function(shard, received((number, group), streams)[1])
