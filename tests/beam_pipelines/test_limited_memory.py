"""No job of a build needs more memory for ten times the articles, in shards of the same size; see `make memory`."""

import json
import os
import subprocess
import sys

import pytest
from newsembed.benchmarks import job_memory
from newsembed.tests import limited_jobs

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA is of Linux"),
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """By job: what `limited_jobs` found."""
    command = [sys.executable, "-m", "newsembed.tests.limited_jobs", str(tmp_path_factory.mktemp("jobs"))]
    environment = {**os.environ, **limited_jobs.ENVIRONMENT}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("job", ["extract", *job_memory.JOBS])
def test_a_job_needs_no_more_memory_for_ten_times_the_articles(outcomes, job):
    assert outcomes[job]["error"] == ""
    assert outcomes[job]["limit"] > outcomes[job]["small"] > 0


def test_a_job_that_holds_all_articles_fails(outcomes):
    assert "not enough memory" in outcomes[limited_jobs.HOLDS_ALL]["error"]
