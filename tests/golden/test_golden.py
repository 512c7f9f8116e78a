"""What the program computed before the refactoring: every job, training, export and search on a small newsroom.

Only command lines and files are used. `NEWSEMBED_RECORD_GOLDEN=1 pytest tests/golden` records the values again.
"""

import hashlib
import json
from pathlib import Path

import golden_commands
import golden_values
import pytest
from golden_newsroom import write_warcs

HERE = Path(__file__).parent
JOBS = (
    "extract",
    "clean",
    "vocabulary",
    "pack",
    "entities",
    "vectors",
    "neighbors",
    "triplets",
    "topics",
    "examples",
)
BUILD = [
    "build",
    "--warc",
    "warc/*.warc",
    "--bitext",
    "newsroom/bitext.tsv",
    "--output",
    "work",
    "--vocabulary.size=2000",
    "--pack.max_length=64",
    "--examples.max_length=48",
    "--examples.augmentations_per_triplet=2",
    "--direct_num_workers=1",
]


@pytest.fixture(scope="session")
def golden():
    return golden_values.Golden(HERE / "golden.json")


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder with newsroom/, warc/ and work/, built and built again."""
    folder = tmp_path_factory.mktemp("golden")
    golden_commands.run(folder, [["newsroom", "--output", "newsroom", "--scale=0.1"]])
    write_warcs(folder / "newsroom", folder / "warc")
    golden_commands.run(folder, [BUILD, BUILD])
    return folder


def test_newsroom(built, golden):
    paths = sorted(path for path in (built / "newsroom").rglob("*") if path.is_file())
    names = [str(path.relative_to(built)) for path in paths]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    golden.check("newsroom", dict(zip(names, digests, strict=True)))


@pytest.mark.parametrize("job", JOBS)
def test_job(built, golden, job):
    golden.check(f"job {job}", golden_values.job_values(built / "work" / job))


def test_report_of_the_build(built, golden):
    found = golden_values.stream_values([built / "work" / "report.json"])
    golden.check("report", found)


def test_finished_jobs_are_skipped(built):
    rows = json.loads((built / "work" / "report.json").read_text(encoding="utf-8"))["jobs"]
    assert [row["job"] for row in rows if row["skipped"]] == list(JOBS)
