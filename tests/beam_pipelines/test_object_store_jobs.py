"""Jobs whose input and output are on an S3 store: the same bytes as on disk, with worker processes too."""

import json

import pytest
from newsembed.beam_pipelines import jobs
from newsembed.beam_pipelines.extract import JOB
from newsembed.errors import InputError
from newsembed.formats import files, stores
from newsembed.tests import dropping_proxy, object_store
from newsembed.tests.example_inputs import manifest_of

ARTICLES = 60
TWO_WORKERS = ["--direct_num_workers=2"]


@pytest.fixture(scope="module")
def store():
    with object_store.running() as found:
        yield found
        stores.use_options([])


@pytest.fixture(scope="module")
def lines():
    shared = {"authors": ["Ann Lee"], "date": "2024-05-01"}
    texts = ((f"Title number {number}", f"Rain fell on town {number} for days. " * 20) for number in range(ARTICLES))
    rows = enumerate({"title": title, "body": body, **shared} for title, body in texts)
    return "".join(json.dumps({"url": f"http://s.example/{n}", **row}) + "\n" for n, row in rows).encode()


def content(folder):
    """The files of a result without what names its place or time."""
    found = {}
    for name in files.sizes_below(folder):
        if name not in ("manifest.json", "timing.json") and not name.startswith("."):
            with files.open_read(f"{folder}/{name}") as source:
                found[name] = source.read()
    return found


@pytest.fixture(scope="module")
def published(store, lines):
    stores.use_options(store.options)
    files.write_whole(f"{store.folder}/in/articles.jsonl", lines)
    out, options = f"{store.folder}/out", [*store.options, *TWO_WORKERS]
    return out, options, jobs.execute(JOB, {"articles": [f"{store.folder}/in/articles.jsonl"]}, out, beam_args=options)


def test_a_job_on_a_store_with_worker_processes_has_the_bytes_of_one_on_disk(published, lines, tmp_path):
    out, options, outcome = published
    (tmp_path / "articles.jsonl").write_bytes(lines)
    local = manifest_of(JOB, {"articles": [str(tmp_path / "articles.jsonl")]}, tmp_path / "out")
    assert outcome.manifest["counts"] == local["counts"]
    assert outcome.manifest["counts"]["in"] == ARTICLES
    on_disk = content(str(tmp_path / "out"))
    assert on_disk
    stores.use_options(options)  # the job on disk has set others
    assert content(out) == on_disk
    assert not [name for name in files.sizes_below(out) if ".work-" in name or name.endswith(".tmp")]


def test_a_network_that_drops_connections_changes_no_byte(store, lines, tmp_path):
    few, one = b"".join(lines.splitlines(keepends=True)[:10]), "--direct_num_workers=1"
    stores.use_options(store.options)
    files.write_whole(f"{store.folder}/in/few.jsonl", few)
    (tmp_path / "few.jsonl").write_bytes(few)
    jobs.execute(JOB, {"articles": [str(tmp_path / "few.jsonl")]}, str(tmp_path / "out"), beam_args=[one])
    out, inputs = f"{store.folder}/dropped", {"articles": [f"{store.folder}/in/few.jsonl"]}
    with dropping_proxy.dropping(store.port, share=0.2, most=2_000) as proxy:
        options = [f"--s3_endpoint_url=http://127.0.0.1:{proxy.port}", *store.options[1:], one]
        jobs.execute(JOB, inputs, out, beam_args=options)
    assert proxy.cut > 10
    stores.use_options(store.options)
    assert content(out) == content(str(tmp_path / "out"))


def test_a_finished_job_on_a_store_is_skipped_and_another_input_replaces_all_of_it(published, store, lines):
    out, options, _ = published
    inputs = {"articles": [f"{store.folder}/in/articles.jsonl"]}
    assert jobs.execute(JOB, inputs, out, beam_args=options).skipped
    fewer = b"".join(lines.splitlines(keepends=True)[:7])
    files.write_whole(f"{store.folder}/in/fewer.jsonl", fewer)
    one = [*store.options, "--direct_num_workers=1"]
    again = jobs.execute(JOB, {"articles": [f"{store.folder}/in/fewer.jsonl"]}, out, beam_args=one)
    assert again.manifest["counts"]["in"] == 7
    assert set(again.manifest["files"]) == set(content(out))


def test_a_store_that_cannot_be_reached_ends_the_job_before_it_starts(store):
    options = ["--s3_endpoint_url=http://127.0.0.1:9", *store.options[1:]]
    with pytest.raises(InputError, match="cannot be used"):
        jobs.execute(JOB, {"articles": [f"{store.folder}/in/articles.jsonl"]}, f"{store.folder}/x", beam_args=options)
