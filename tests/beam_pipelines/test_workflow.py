"""workflow: which job of the build reads the results of which."""

from newsembed.beam_pipelines.workflow import STEPS, load_job

# The arrows of the picture in the README: job -> jobs whose results it reads.
READS = {
    "extract": set(),
    "clean": {"extract"},
    "vocabulary": {"clean"},
    "pack": {"clean", "vocabulary"},
    "entities": {"clean"},
    "vectors": {"clean", "entities"},
    "neighbors": {"vectors"},
    "triplets": {"clean", "neighbors"},
    "topics": {"clean", "extract", "entities"},
    "examples": {"clean", "triplets", "topics", "vocabulary"},
}


def test_every_job_reads_the_jobs_before_it_that_the_readme_shows():
    assert [step.job for step in STEPS] == list(READS)
    for place, step in enumerate(STEPS):
        sources = {source for source in step.inputs.values() if not source.startswith("@")}
        assert sources == READS[step.job]
        assert sources <= {earlier.job for earlier in STEPS[:place]}


def test_inputs_that_are_named_like_a_job_come_from_that_job():
    for step in STEPS:
        names = {spec.name for spec in load_job(step.job).inputs}
        assert set(step.inputs) <= names
        for name in names & set(READS):
            assert step.inputs[name] == name
