"""Every job on no, one and twenty articles gives a result, or a sentence that says why not."""

import json
import random

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.workflow import load_job
from newsembed.errors import InputError

pytestmark = pytest.mark.long  # `make attack`

ONE = ["--direct_num_workers=1"]
NAMES = ["Ann Lee", "Bo Chen", "London", "Paris", "Hamburg"]
THINGS = ["river", "council", "embankment", "harvest", "minister", "railway", "verdict", "museum", "orchestra"]
INPUTS = {
    "clean": ("articles:extract",),
    "vocabulary": ("articles:clean",),
    "pack": ("articles:clean", "vocabulary:vocabulary"),
    "entities": ("articles:clean",),
    "vectors": ("articles:clean", "entities:entities"),
    "neighbors": ("vectors:vectors",),
    "triplets": ("articles:clean", "neighbors:neighbors"),
    "topics": ("articles:clean", "hubs:extract", "entities:entities"),
    "categories": ("articles:clean",),
    "pairs": ("articles:clean", "vocabulary:vocabulary"),
    "examples": ("articles:clean", "triplets:triplets", "topics:topics", "vocabulary:vocabulary"),
}


def rows(count):
    generator = random.Random(count)
    for number in range(count):
        sentences = (
            f"The {generator.choice(THINGS)} of {generator.choice(NAMES)} was seen by the {generator.choice(THINGS)} "
            f"in {generator.choice(NAMES)} on day {generator.randrange(1000)}."
            for _ in range(30)
        )
        yield {
            "url": f"http://n{number % 3}.example/{number}",
            "title": f"Headline {number} about the {generator.choice(THINGS)} of {generator.choice(NAMES)}",
            "body": " ".join(sentences),
            "authors": ["Ann Lee"],
            "byline_date": f"2021-03-{1 + number % 28:02d}",
            "language": "en",
        }


@pytest.mark.parametrize("count", [0, 1, 20])
def test_every_job_gives_a_result_or_a_sentence(tmp_path, count):
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows(count)))
    extract = load_job("extract")
    done = {"extract": jobs.execute(extract, {"articles": [str(path)]}, str(tmp_path / "extract"), beam_args=ONE)}
    refused = {}
    for name, inputs in INPUTS.items():
        given = dict(part.split(":") for part in inputs)
        if missing := [source for source in given.values() if source in refused]:
            refused[name] = f"first the job {missing[0]}"
            continue
        job = load_job(name)
        options = job.options(size=200) if name == "vocabulary" else job.options()
        try:
            done[name] = jobs.execute(
                job,
                {option: [str(tmp_path / source)] for option, source in given.items()},
                str(tmp_path / name),
                options,
                beam_args=ONE,
            )
        except InputError as error:
            refused[name] = error.remedy
    assert all(refused.values())
    assert done["clean"].manifest["counts"]["in"] == count
    assert done["neighbors"].manifest["counts"]["in"] == done["clean"].manifest["counts"]["out"]
    if count == 20:
        assert done["clean"].manifest["counts"]["out"] == 20
        assert set(done) >= {"vocabulary", "pack", "entities", "vectors", "neighbors", "triplets", "topics", "pairs"}
