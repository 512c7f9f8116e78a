"""Every job on no, one and twenty articles gives a result, or a sentence that says why not."""

import random

import pytest
import targets
from json_lines import write_rows
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.workflow import STEPS, load_job
from newsembed.errors import InputError

pytestmark = pytest.mark.long  # `make attack`

ONE = [targets.ONE]
NAMES = ["Ann Lee", "Bo Chen", "London", "Paris", "Hamburg"]
THINGS = targets.WORDS[:9]
# Of the jobs of a build, without what only a user brings, and of two other jobs.
INPUTS = {
    step.job: {name: source for name, source in step.inputs.items() if "@" not in source}
    for step in STEPS[1:]
    if not step.only_with
}
INPUTS |= {"categories": {"articles": "clean"}, "pairs": {"articles": "clean", "vocabulary": "vocabulary"}}


def rows(count):
    generator = random.Random(count)
    for number, row in enumerate(targets.rows(count)):
        sentences = (
            f"The {generator.choice(THINGS)} of {generator.choice(NAMES)} was seen by the {generator.choice(THINGS)} "
            f"in {generator.choice(NAMES)} on day {generator.randrange(1000)}."
            for _ in range(30)
        )
        title = f"Headline {number} about the {generator.choice(THINGS)} of {generator.choice(NAMES)}"
        yield row | {"title": title, "body": " ".join(sentences)}


@pytest.mark.parametrize("count", [0, 1, 20])
def test_every_job_gives_a_result_or_a_sentence(tmp_path, count):
    given = {"articles": [write_rows(tmp_path / "articles.jsonl", rows(count))]}
    done = {"extract": jobs.execute(load_job("extract"), given, str(tmp_path / "extract"), beam_args=ONE)}
    refused = {}
    for name, given in INPUTS.items():
        if missing := [source for source in given.values() if source in refused]:
            refused[name] = f"first the job {missing[0]}"
            continue
        job = load_job(name)
        options = job.options(size=200) if name == "vocabulary" else job.options()
        try:
            paths = {option: [str(tmp_path / source)] for option, source in given.items()}
            done[name] = jobs.execute(job, paths, str(tmp_path / name), options, beam_args=ONE)
        except InputError as error:
            refused[name] = error.remedy
    assert all(refused.values())
    assert done["clean"].manifest["counts"]["in"] == count
    assert done["neighbors"].manifest["counts"]["in"] == done["clean"].manifest["counts"]["out"]
    if count == 20:
        assert done["clean"].manifest["counts"]["out"] == 20
        assert set(done) >= {"vocabulary", "pack", "entities", "vectors", "neighbors", "triplets", "topics", "pairs"}
