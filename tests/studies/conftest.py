"""A build of manifests only, and tools that stand for mining, training and encoding."""

import datetime
import os
import zlib

import numpy as np
import pytest
from json_lines import write_rows
from manifests import write_manifest
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.launch.parsing import Parser, add_options, parse
from newsembed.studies.shared.mining import affected
from newsembed.studies.shared.study import Tools

FIRST_DAY = datetime.date(2021, 1, 1)


EXAMPLES = {"triplets/en": 60, "triplets/de": 40, "topics/en": 30}
TALLIES = {
    f"augmentation/{name}": 9
    for name in ("title_to_body", "anchor_text_to_document", "title_to_document", "document_to_document")
}


@pytest.fixture
def build(tmp_path):
    """A finished build without streams; translation is the only thing it does not have."""
    work = tmp_path / "work"
    for step in STEPS:
        write_manifest(f"{work}/{step.job}", step.job)
    write_manifest(f"{work}/pack", "pack", examples={"mlm/en": 50, "tlm/de-en": 10})
    write_manifest(f"{work}/triplets", "triplets", tallies={"negatives dropped as evergreen": 7}, min_text=0.8)
    write_manifest(f"{work}/examples", "examples", examples=EXAMPLES, tallies=TALLIES, max_length=96)
    (work / "vocabulary" / "vocab.txt").write_text("[PAD]\n")
    return str(work)


@pytest.fixture
def heldout(tmp_path):
    """Eight events, one every three months, of three publishers each."""
    path = tmp_path / "heldout.jsonl"
    rows = []
    for event in range(8):
        day = (FIRST_DAY + datetime.timedelta(days=91 * event)).isoformat()
        shared = {"title": f"event {event}", "language": "en", "event": f"event-{event}", "byline_date": day}
        shared["topic"] = f"topic-{event % 2}"
        rows += [{"id": f"{event}-{name}", "body": f"told by {name}", "publisher": name, **shared} for name in "abc"]
    return write_rows(path, rows)


class EventVectors:
    """An encoder that knows the events, up to noise."""

    def __init__(self, name, noise):
        self.digest, self.noise = name, noise

    def encode(self, documents):
        rng = np.random.default_rng(zlib.crc32(self.digest.encode()))
        own = np.stack([np.eye(8)[int(document.title.split()[1])] for document in documents])
        return (own + self.noise(documents) * rng.normal(size=own.shape)).astype(np.float32)


class Bench:
    """Tools that note what they are asked for.

    Attributes:
      trained: folders, in the order of training.
      mined: (output, jobs) of each mining.
      failing: parts of folder names whose training fails.
      noise: of a run's vectors for documents, by the run and its step.
    """

    def __init__(self):
        self.trained, self.mined, self.failing, self.encoded = [], [], set(), []
        self.noise = lambda run, _step: lambda _documents: 0.5

    def tools(self):
        return Tools(self.mine, self.train, self.encoder, lambda _text: None)

    def mine(self, work, output, changes, given, keeps=()):
        jobs = affected(changes, keeps)
        self.mined.append((output, jobs))
        for job in jobs:
            write_manifest(f"{output}/{job}", job, digest=f"{zlib.crc32(output.encode()):016x}", examples=EXAMPLES)
        return {step.job: f"{output if step.job in jobs else work}/{step.job}" for step in STEPS}

    def train(self, run, _cores):
        self.trained.append(run.folder)
        if any(part in run.folder for part in self.failing):
            return "exit code 1: out of memory"
        for step in run.steps:
            os.makedirs(f"{run.model}/checkpoints/{step}")
        return ""

    def encoder(self, run, step):
        self.encoded.append((run.folder, step))
        # Its vectors depend on the model, and not on the folder of this test.
        return EventVectors("/".join([*run.folder.split("/")[-2:], str(step)]), self.noise(run, step))


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def parsed():
    """Options of a command from words, as its command line makes them."""

    def of(options, *words):
        parser = Parser("newsembed")
        add_options(parser, options)
        return parse(parser, options, [str(word) for word in words])

    return of
