"""Files on an S3 store: whole or absent, folders deleted with all that is in them, errors in seconds."""

import random
import socket

import pytest
from apache_beam.io.aws.clients.s3 import boto3_client
from botocore.exceptions import ClientError, ResponseStreamingError
from newsembed.errors import InputError
from newsembed.formats import files, object_stores
from newsembed.formats.vocabulary import SPECIAL_TOKENS, read_vocabulary, vocabulary_bytes
from newsembed.tests import dropping_proxy, object_store


@pytest.fixture(scope="module")
def store():
    with object_store.running() as found:
        files.use_options(found.options)
        yield found
        files.use_options([])


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
    with pytest.raises(OSError, match="Rename"):
        files.move_all(pairs)


def test_a_store_that_answers_is_accepted_and_other_paths_are_not_asked(store):
    object_stores.check_reachable([f"{store.folder}/a", f"{store.folder}/b"], store.options)
    object_stores.check_reachable(["/tmp/a", "gs://bucket/a", "relative"], ["--s3_endpoint_url=http://127.0.0.1:9"])


def test_a_bucket_that_does_not_exist_is_named(store):
    with pytest.raises(InputError, match="s3://no-such-bucket: .* has no such bucket"):
        object_stores.check_reachable(["s3://no-such-bucket/a"], store.options)


def test_a_store_that_does_not_answer_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"  # nothing listens there
        with pytest.raises(InputError, match=f"s3://news: {endpoint} cannot be reached") as error:
            object_stores.check_reachable(["s3://news/a"], [f"--s3_endpoint_url={endpoint}", *KEYS])
    assert "--s3_endpoint_url" in str(error.value)
    with pytest.raises(InputError, match="nowhere cannot be reached: Invalid endpoint"):
        object_stores.check_reachable(["s3://news/a"], ["--s3_endpoint_url=nowhere", *KEYS])


KEYS = ["--s3_access_key_id=user", "--s3_secret_access_key=secret", "--s3_region_name=us-east-1"]


def test_missing_keys_are_named(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(InputError, match="no keys for http://127.0.0.1:9") as error:
        object_stores.check_reachable(["s3://news/a"], ["--s3_endpoint_url=http://127.0.0.1:9"])
    assert "--s3_access_key_id" in str(error.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [("InvalidAccessKeyId", "refuses the keys"), ("SignatureDoesNotMatch", "refuses the keys"), ("AccessDenied", None)],
)
def test_wrong_keys_are_named_and_buckets_that_may_not_be_listed_are_accepted(store, monkeypatch, code, message):
    from botocore import client, exceptions

    def refuse(*_args, **_kwargs):
        raise exceptions.ClientError({"Error": {"Code": code}}, "ListObjectsV2")

    monkeypatch.setattr(client.BaseClient, "_make_api_call", refuse)
    if message is None:
        object_stores.check_reachable([store.folder], store.options)
        return
    with pytest.raises(InputError, match=message) as error:
        object_stores.check_reachable([store.folder], store.options)
    assert "--s3_secret_access_key" in str(error.value)


def test_a_vocabulary_is_read_from_a_store(store):
    path, content = f"{store.folder}/vocabulary/vocab.txt", vocabulary_bytes([*SPECIAL_TOKENS, "a", "##b"])
    files.write_whole(path, content)
    assert read_vocabulary(path).content == content
    with pytest.raises(InputError, match="no such file"):
        read_vocabulary(f"{store.folder}/vocabulary/other.txt")


def test_an_object_is_read_whole_over_connections_that_all_break(store, monkeypatch):
    monkeypatch.setattr("apache_beam.utils.retry.Clock.sleep", lambda *_: None)  # Beam waits seconds before it repeats
    path, raw = f"{store.folder}/broken", random.Random(3).randbytes(1 << 20)
    files.write_whole(path, raw)
    with dropping_proxy.dropping(int(store.endpoint.rpartition(":")[2]), share=1.0, most=200_000) as proxy:
        files.use_options([f"--s3_endpoint_url=http://127.0.0.1:{proxy.port}", *store.options[1:]])
        assert files.open_read(path).read() == raw
    files.use_options(store.options)
    assert proxy.cut > 5


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ClientError({"ResponseMetadata": {"HTTPStatusCode": 404}}, "GetObject"), 404),
        (ResponseStreamingError(error="Connection broken"), None),
        (ConnectionResetError("reset"), None),
    ],
)
def test_beam_repeats_a_download_whose_connection_broke(error, status):
    """It repeats errors without a status; its own function fails for those of botocore that have no answer."""
    assert boto3_client.get_http_error_code(error) == status
