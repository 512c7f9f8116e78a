"""Files in an object store: whole or absent, folders deleted with all that is in them, errors in seconds."""

import contextlib
import gc
import multiprocessing
import random
import socket

import pytest
from newsembed.beam_pipelines import workers
from newsembed.errors import InputError
from newsembed.formats import files, stores
from newsembed.formats.vocabulary import SPECIAL_TOKENS, read_vocabulary, vocabulary_bytes
from newsembed.tests import dropping_proxy, object_store


@pytest.fixture(scope="module", params=object_store.SCHEMES)
def store(request):
    with object_store.running(request.param) as found, object_store.used(found):
        yield found


only_s3 = pytest.mark.parametrize("store", ["s3"], indirect=True)


@pytest.mark.parametrize("size", [0, 1, 5 << 20, (5 << 20) + 1])
def test_objects_of_any_size_return_as_they_were_written(store, size):
    path, raw = f"{store.folder}/sizes/{size}", bytes(range(256)) * (size // 256 + 1)
    files.write_whole(path, raw[:size])
    assert files.exists(path)
    assert files.size_of(path) == size
    with files.open_read(path) as source:
        assert source.read() == raw[:size]


def test_an_object_appears_when_it_is_closed(store):
    path = f"{store.folder}/open"
    sink = files.open_write(path)
    sink.write(b"a")
    assert not files.exists(path)
    sink.close()
    assert files.exists(path)


def test_a_folder_is_deleted_with_what_is_below_it_and_nothing_next_to_it(store):
    folder = f"{store.folder}/delete"
    for name in ("a/one", "a/b/two", "a/b/c/three", "ab/four", "five"):
        files.write_whole(f"{folder}/{name}", b"x")
    files.delete([f"{folder}/a", f"{folder}/five", f"{folder}/missing"])
    assert files.sizes_below(folder) == {"ab/four": 1}


def test_many_objects_are_moved_and_replace_their_targets(store):
    folder = f"{store.folder}/move"
    files.write_whole(f"{folder}/to/3", b"old")
    for number in range(40):
        files.write_whole(f"{folder}/from/{number}", str(number).encode())
    files.move_all([(f"{folder}/from/{number}", f"{folder}/to/{number}") for number in range(40)])
    assert files.sizes_below(f"{folder}/from") == {}
    assert len(files.sizes_below(f"{folder}/to")) == 40
    for number in range(40):
        with files.open_read(f"{folder}/to/{number}") as source:
            assert source.read() == str(number).encode()


def test_one_object_that_cannot_be_moved_is_an_error(store):
    files.write_whole(f"{store.folder}/some/1", b"1")
    pairs = [(f"{store.folder}/some/{number}", f"{store.folder}/other/{number}") for number in (1, 2)]
    with pytest.raises(OSError, match="2"):
        files.move_all(pairs)


def test_a_store_that_answers_is_accepted_and_other_paths_are_not_asked(store):
    stores.check_reachable([f"{store.folder}/a", f"{store.folder}/b", "/tmp/a", "relative", "model:x"])


KEYS = ["--s3_access_key_id=user", "--s3_secret_access_key=secret", "--s3_region_name=us-east-1"]


@pytest.fixture
def _options_return(store):
    yield
    stores.use_options(store.options)


@only_s3
@pytest.mark.usefixtures("_options_return")
def test_a_store_that_cannot_be_used_is_named(store, monkeypatch, tmp_path):
    def refused(path, options):
        stores.use_options(options)
        with pytest.raises(InputError, match=f"^{path}: .* cannot be used") as error:
            stores.check_reachable([f"{path}/a"])
        assert "--s3_endpoint_url" in error.value.remedy
        return error.value.problem

    assert "bucket does not exist" in refused("s3://no-such-bucket", store.options)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"  # nothing listens there
        assert refused("s3://news", [f"--s3_endpoint_url={endpoint}", *KEYS]).startswith(endpoint)
    assert "Invalid endpoint" in refused("s3://news", ["--s3_endpoint_url=nowhere", *KEYS])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "credentials" in refused("s3://news", ["--s3_endpoint_url=http://127.0.0.1:9"])


@only_s3
@pytest.mark.parametrize(
    ("code", "is_refused"), [("InvalidAccessKeyId", True), ("SignatureDoesNotMatch", True), ("AccessDenied", False)]
)
def test_wrong_keys_are_named_and_buckets_that_may_not_be_listed_are_accepted(store, monkeypatch, code, is_refused):
    from aiobotocore import client
    from botocore import exceptions

    async def refuse(*_args, **_kwargs):
        raise exceptions.ClientError({"Error": {"Code": code, "Message": f"said {code}"}}, "ListObjectsV2")

    monkeypatch.setattr(client.AioBaseClient, "_make_api_call", refuse)
    with pytest.raises(InputError, match=code) if is_refused else contextlib.nullcontext():
        stores.check_reachable([store.folder])


def _read(path):
    with files.open_read(path) as source:
        return source.read()


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where another test has imported it
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_worker_processes_read_and_write_whatever_their_parent_has_open(store, monkeypatch, method):
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)  # a process of a server does not get the options
    path = f"{store.folder}/workers"
    with files.open_write(f"{path}/given") as sink:
        sink.write(b"given")
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_read, [f"{path}/given"] * 4) == [b"given"] * 4
        pool.starmap(files.write_whole, [(f"{path}/{name}", name.encode()) for name in "abc"])
    workers.end_fork_server()  # jobs start one with settings of their own
    assert files.sizes_below(path) == {"a": 1, "b": 1, "c": 1, "given": 5}


def test_an_error_while_writing_leaves_nothing(store):
    path = f"{store.folder}/failed"
    with pytest.raises(TypeError), files.open_write(f"{path}/in") as sink:
        sink.writelines([b"half", "text"])
    files.open_write(f"{path}/forgotten").write(b"half")
    gc.collect()
    assert files.sizes_below(path) == {}


def test_a_vocabulary_is_read_from_a_store(store):
    path, content = f"{store.folder}/vocabulary/vocab.txt", vocabulary_bytes([*SPECIAL_TOKENS, "a", "##b"])
    files.write_whole(path, content)
    assert read_vocabulary(path).content == content
    with pytest.raises(InputError, match="no such file"):
        read_vocabulary(f"{store.folder}/vocabulary/other.txt")


@contextlib.contextmanager
def behind_a_bad_network(store, **faults):
    """What this process asks of the store goes through a proxy."""
    with dropping_proxy.dropping(store.port, **faults) as proxy, object_store.used(store.through(proxy.port)):
        yield proxy
    stores.use_options(store.options)


def test_an_object_is_read_whole_over_connections_that_break(store):
    path, raw = f"{store.folder}/broken", random.Random(3).randbytes(20 << 20)
    files.write_whole(path, raw)
    with behind_a_bad_network(store, share=0.6, most=2_000_000) as proxy:
        assert files.open_read(path).read() == raw
    assert proxy.cut >= 2


def test_a_store_that_answers_with_errors_is_asked_again(store):
    folder = f"{store.folder}/failing"
    content = {f"{folder}/{number}": random.Random(number).randbytes(1 << number) for number in (0, 12, 23)}
    with behind_a_bad_network(store, share=0, most=1, failing=0.4) as proxy:
        for path, raw in content.items():
            files.write_whole(path, raw)
        files.move_all([(path, f"{path}-moved") for path in content])
        assert len(files.sizes_below(folder)) == len(content)
    assert {status for status, count in proxy.faults.items() if count} == {"500", "503", "429"}
    for path, raw in content.items():
        assert files.open_read(f"{path}-moved").read() == raw


def test_a_small_file_is_read_once_whatever_is_read_again(store):
    path, raw = f"{store.folder}/small", random.Random(4).randbytes(100_000)
    files.write_whole(path, raw)
    with behind_a_bad_network(store, share=0, most=1) as proxy, files.open_read(path) as source:
        assert all(files.exists(path) for _ in range(20))  # a request each
        for start in (0, 99_000, 50_000, 100_000, 7):
            source.seek(start)
            assert source.read(60_000) == raw[start : start + 60_000]
        assert source.read(100_000) == raw[60_007:]
        assert (source.read(1), proxy.requests) == (b"", 22)
