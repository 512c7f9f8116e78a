"""Inputs of the jobs that write TFRecords, as earlier jobs write them, and what these jobs have written."""

from pathlib import Path

import numpy as np
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.triplets.table import STORIES, stories_of, write_stories
from newsembed.formats import files, parquet
from newsembed.formats.records import DeadLetter, Triplet, make_doc_id, words_to_doc_id
from newsembed.formats.tfrecords import RecordFile, decode_example
from newsembed.formats.vocabulary import SPECIAL_TOKENS
from newsembed.tasks import registry
from newsembed.tasks.vocabulary import Vocabulary

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
_UNKNOWN = (float("nan"),) * 3


def write_stream(folder, stream, shards, record_type):
    """Writes the shards of a stream and a manifest; returns the input."""
    for index, shard in enumerate(shards):
        parquet.write_shard(f"{folder}/{stream}/part-{index:05d}-of-{len(shards):05d}.parquet", shard, record_type)
    files.write_json(f"{folder}/manifest.json", {"digest": folder.name})
    return [str(folder)]


def manifest_of(job, inputs, output, options=None, workers=1):
    """Runs a job; returns its manifest."""
    return jobs.execute(job, inputs, str(output), options, [f"--direct_num_workers={workers}"]).manifest


def split(rows, shards):
    """The rows of each shard."""
    return [rows[index::shards] for index in range(shards)]


def write_vocabulary(folder, vocabulary=VOCABULARY):
    """Writes the pieces; returns the input."""
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary.pieces))
    return [str(folder / "vocab.txt")]


def triplet(anchor, positive, negative, language="en"):
    """A triplet of documents by their names."""
    doc_ids = map(make_doc_id, (anchor, positive, negative))
    return Triplet(*doc_ids, language, _UNKNOWN, _UNKNOWN, 0, 400, 0.1)


def write_triplets(folder, *shards, stories=()):
    """Writes shards of triplets, and the stories of pairs of names; returns the input."""
    pairs = np.array([[int(make_doc_id(name), 16) for name in pair] for pair in stories], np.uint64).reshape(-1, 2)
    write_stories(f"{folder}/{STORIES}", *stories_of(pairs))
    return write_stream(folder, "triplets", shards, Triplet)


def read_examples(output, task, language="*"):
    """The features of all examples of a task, in the order of the files."""
    paths = sorted(map(str, output.glob(f"task={task}/language={language}/part-*.tfrecord")))
    features = registry.get(task).features
    return [decode_example(record, features, path) for path in paths for record in RecordFile(path)]


def doc_ids_of(example, part):
    """The ids of the documents of a part; empty places are left out."""
    pairs = example[f"{part}_doc_id" if part else "doc_id"].reshape(-1, 2).tolist()
    return [words_to_doc_id(tuple(pair)) for pair in pairs if any(pair)]


def tfrecords(output):
    """The bytes of all TFRecord files, by their names in the folder."""
    return {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*.tfrecord")}


def tree(folder):
    """The bytes of all files by their names in the folder, but for the seconds that a job took."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "timing.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def dead_letters(output, phase="**"):
    """All dead letters of a phase, or of all."""
    paths = sorted(Path(output, "dead_letters").glob(f"{phase}/*.parquet"))
    return [letter for path in paths for letter in parquet.read_records(str(path), DeadLetter)]
