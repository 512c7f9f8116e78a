"""What the program computed before the refactoring: every job, training, export and search on a small newsroom.

Only command lines and files are used. `NEWSEMBED_RECORD_GOLDEN=1 pytest tests/golden` records the values again, but
never the folders *_before/: what the code of before wrote must stay readable.
"""

import concurrent.futures
import hashlib
import json
import shutil
from pathlib import Path

import golden_commands
import golden_runs
import golden_values
import numpy as np
import pytest
from golden_newsroom import write_warcs

HERE = Path(__file__).parent
JOBS = (
    "extract",
    "clean",
    "vocabulary",
    "entities",
    "vectors",
    "pack",
    "neighbors",
    "triplets",
    "topics",
    "examples",
)
AFTER_TRAINING = 1e-3  # processors differ by a few 1e-4 in small biases after twenty steps of Adam
BEFORE = ("clean_before", "examples_before", "index_before", "model_before")


@pytest.fixture(scope="session")
def golden():
    return golden_values.Golden(HERE / "golden.json")


@pytest.fixture(scope="session")
def pool():
    """What does not wait for one another runs side by side."""
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="session")
def before_started(pool, tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    for name in BEFORE:
        shutil.copytree(HERE / name, folder / name)
    return folder, pool.submit(golden_commands.run, folder, golden_runs.BEFORE)


@pytest.fixture(scope="session")
def before(before_started):
    """The folder, and what each command printed."""
    folder, running = before_started
    return folder, running.result()


@pytest.fixture(scope="session")
def newsroom(tmp_path_factory):
    """A folder with newsroom/."""
    folder = tmp_path_factory.mktemp("golden")
    golden_commands.run(folder, [golden_runs.NEWSROOM])
    return folder


@pytest.fixture(scope="session")
def built(before_started, newsroom):
    """The folder, with warc/ and work/ as well, built and built again."""
    write_warcs(newsroom / "newsroom", newsroom / "warc")
    golden_commands.run(newsroom, [golden_runs.BUILD, golden_runs.BUILD])
    return newsroom


@pytest.fixture(scope="session")
def trainings(pool, built):
    return [pool.submit(golden_commands.run, built, commands) for commands in (golden_runs.ENCODER, golden_runs.STATIC)]


@pytest.fixture(scope="session")
def trained(built, trainings):
    """The folder, and what each command of the encoder printed."""
    return built, trainings[0].result()


@pytest.fixture(scope="session")
def static(built, trainings):
    trainings[1].result()
    return built


def test_newsroom(newsroom, golden):
    paths = sorted(path for path in (newsroom / "newsroom").rglob("*") if path.is_file())
    names = [str(path.relative_to(newsroom)) for path in paths]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    golden.check("newsroom", dict(zip(names, digests, strict=True)))


@pytest.mark.parametrize("job", JOBS)
def test_job(built, golden, job):
    golden.check(f"job {job}", golden_values.job_values(built / "work" / job))


def test_report_of_the_build(built, golden):
    golden.check("report", golden_values.stream_values([built / "work" / "report.json"]))


def test_finished_jobs_are_skipped(built):
    rows = json.loads((built / "work" / "report.json").read_text(encoding="utf-8"))["jobs"]
    assert [row["job"] for row in rows if row["skipped"]] == list(JOBS)


@pytest.mark.parametrize("name", ["pretrained", "trained"])
def test_training(trained, golden, name):
    folder, _ = trained
    golden.check(f"training {name}", golden_values.model_values(folder / name), rtol=AFTER_TRAINING)


def test_training_of_a_static_model(static, golden):
    golden.check("training static", golden_values.model_values(static / "static"), rtol=AFTER_TRAINING)
    golden.check("export static", golden_values.export_values(static / "static_huggingface"), rtol=AFTER_TRAINING)
    golden.check("embed static", golden_values.first_cosines(static / "static_vectors"), atol=1e-4)


@pytest.mark.parametrize("name", ["weights", "huggingface"])
def test_export(trained, golden, name):
    folder, _ = trained
    golden.check(f"export {name}", golden_values.export_values(folder / name), rtol=AFTER_TRAINING)


def test_embed(trained, golden):
    folder, _ = trained
    golden.check("embed trained", golden_values.first_cosines(folder / "vectors"), atol=1e-4)
    vectors = golden_values.parquet_column(folder / "vectors.parquet", "embedding")
    np.testing.assert_allclose(vectors, np.load(folder / "vectors" / "embeddings.npy"), atol=1e-5)


def test_search(trained, golden):
    folder, printed = trained
    golden.check("search", _last_search(golden_runs.ENCODER, printed), atol=1e-4)
    golden.check("index", golden_values.index_values(folder / "index"))
    golden.check("cluster", golden_values.stream_values([folder / "groups.tsv"]))


def test_evaluate(trained, golden):
    folder, _ = trained
    results = json.loads((folder / "evaluation" / "results.json").read_text(encoding="utf-8"))
    wanted = ("encoder", "benchmark", "status", "scores", "texts", "dimensions")
    kept = [{name: result[name] for name in wanted} for result in results["results"]]
    found = {"keys": sorted(results), "benchmarks": results["benchmarks"], "results": kept}
    golden.check("evaluate", found, rtol=1e-3, atol=1e-4)


def test_an_old_model_embeds(before, golden):
    folder, _ = before
    golden.check("before embed", golden_values.first_vectors(folder / "vectors"), atol=1e-4)


def test_an_old_index_is_searched(before, golden):
    _, printed = before
    for number in (1, 2):
        golden.check(f"before search {number}", _hits(printed[number]), atol=1e-4)


def test_an_old_model_is_trained_on(before, golden):
    folder, _ = before
    golden.check("before training from it", golden_values.model_values(folder / "from_model"), rtol=AFTER_TRAINING)
    golden.check("before training continued", golden_values.model_values(folder / "model_before"), rtol=AFTER_TRAINING)


def test_an_old_model_becomes_a_saved_model(before, golden):
    folder, printed = before
    golden.check("before saved model", golden_values.export_values(folder / "saved"))
    golden.check("before saved model embeds", golden_values.first_vectors(folder / "saved_vectors"), atol=1e-4)
    golden.check("before saved model searches", _last_search(golden_runs.BEFORE, printed), atol=1e-4)
    golden.check("before saved model index", golden_values.index_values(folder / "index"))


@pytest.mark.parametrize("job", ["vocabulary", "pack", "entities"])
def test_jobs_read_old_folders(before, golden, job):
    folder, _ = before
    golden.check(f"before job {job}", golden_values.job_values(folder / job))


def _last_search(commands, printed):
    return [_hits(text) for command, text in zip(commands, printed, strict=True) if command[0] == "search"][-1]


def _hits(printed):
    """The fields of results that every version had."""
    names = ("rank", "score", "doc_id", "url", "publisher", "title", "byline_date")
    return [{name: hit[name] for name in names} for hit in json.loads(printed)]
