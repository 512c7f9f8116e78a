"""Manifests of jobs that never ran."""

import json
import os

from newsembed.beam_pipelines.jobs import plain_options
from newsembed.beam_pipelines.workflow import load_job
from newsembed.formats.records import make_doc_id


def doc(number):
    """The id of an article by its number."""
    return make_doc_id(f"http://p.example/{number}")


def write_manifest(folder, job, digest="0" * 16, examples=None, tallies=None, **options):
    os.makedirs(folder, exist_ok=True)
    values = plain_options(load_job(job).options()) | options
    counts = {"in": 1, "out": 1, "tallies": tallies or {}}
    manifest = {"digest": digest, "options": values, "inputs": {}, "counts": counts}
    if examples is not None:
        manifest["examples"] = examples
    with open(f"{folder}/manifest.json", "w") as file:
        json.dump(manifest, file)
