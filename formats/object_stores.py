"""What Beam's filesystems lack on object stores: quick errors, empty objects, and folders that can be deleted."""

import io
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, TypeVar, cast

from apache_beam.io.aws import s3io
from apache_beam.io.aws.clients.s3 import boto3_client
from apache_beam.io.filesystemio import UploaderStream
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, S3Options

from ..errors import InputError

T = TypeVar("T")
STORES: Final = ("gs://", "s3://")
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 20
_THREADS: Final = 16  # requests at a time; each waits for the network, not for a core
_BUFFER_BYTES: Final = 1 << 20
_S3: Final = "s3://"
_WRONG_KEYS: Final = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken")


def is_object(path: str) -> bool:
    """Whether a path is on an object store, which has no folders."""
    return path.startswith(STORES)


def check_reachable(paths: Iterable[str], beam_args: Sequence[str]) -> None:
    """Asks the store of each S3 bucket once. Beam repeats a failing request for minutes without a message.

    Args:
      paths: any paths; others than ``s3://`` are ignored.
      beam_args: Beam's own options, such as ``--s3_endpoint_url``.

    Raises:
      InputError: if the store does not answer within seconds, refuses the keys, or has no such bucket.
    """
    for bucket in sorted({path.removeprefix(_S3).partition("/")[0] for path in paths if path.startswith(_S3)}):
        _check_bucket(bucket, PipelineOptions(list(beam_args)).view_as(S3Options))


def _check_bucket(bucket: str, options: S3Options) -> None:
    try:
        import boto3
        from botocore import exceptions
        from botocore.config import Config
    except ImportError as error:
        raise missing_support(f"{_S3}{bucket}") from error
    path, endpoint = f"{_S3}{bucket}", options.s3_endpoint_url or "the default endpoint"
    # As Beam's own client is made, apart from the limits on time.
    limits = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"total_max_attempts": 2, "mode": "standard"},
    )
    try:
        client = boto3.session.Session().client(
            service_name="s3",
            region_name=options.s3_region_name,
            api_version=options.s3_api_version,
            use_ssl=not options.s3_disable_ssl,
            verify=options.s3_verify,
            endpoint_url=options.s3_endpoint_url,
            aws_access_key_id=options.s3_access_key_id,
            aws_secret_access_key=options.s3_secret_access_key,
            aws_session_token=options.s3_session_token,
            config=limits,
        )
        client.list_objects_v2(Bucket=bucket, MaxKeys=1)
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        remedy = (
            "give --s3_access_key_id and --s3_secret_access_key, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
        raise InputError(f"no keys for {endpoint}", path=path, remedy=remedy) from error
    except exceptions.ClientError as error:
        _refuse_answer(error, path, endpoint)
    except (exceptions.BotoCoreError, ValueError) as error:  # ValueError: an endpoint that is not a URL
        remedy = "check --s3_endpoint_url, --s3_region_name and the network"
        raise InputError(f"{endpoint} cannot be reached: {error}", path=path, remedy=remedy) from error


def _refuse_answer(error: Any, path: str, endpoint: str) -> None:
    """Refuses a store whose answer no later request can change. A bucket may allow other requests than lists.

    Raises:
      InputError: if the store refuses the keys, or has no such bucket.
    """
    code = str(error.response.get("Error", {}).get("Code", ""))
    if code in _WRONG_KEYS:
        field, remedy = "--s3_access_key_id, --s3_secret_access_key", "check both keys, and the session token if any"
        raise InputError(f"{endpoint} refuses the keys: {code}", path=path, field=field, remedy=remedy) from error
    if code == "NoSuchBucket":
        raise InputError(f"{endpoint} has no such bucket", path=path, remedy="create it, or check the path") from error


def missing_support(path: str) -> InputError:
    """The error for paths whose filesystem is not installed."""
    return InputError(
        "no filesystem is installed for paths like this",
        path=path,
        remedy="gs:// needs `pip install 'newsembed[gcp]'`, s3:// needs 'newsembed[aws]'; "
        "download https:// files first",
    )


class _Client(boto3_client.Client):
    """Beam's client, around a connection that calls share.

    Beam makes a client for each call, and boto3 reads a description of 1 MB to make one: 0.1 s of a core.
    """

    def __init__(self, options: PipelineOptions) -> None:
        given = options.view_as(S3Options).get_all_options(drop_default=True)
        key = json.dumps({name: value for name, value in given.items() if name.startswith("s3_")}, sort_keys=True)
        with _CONNECTIONS_LOCK:
            if key not in _CONNECTIONS:
                super().__init__(options)
                _CONNECTIONS[key] = vars(self)["client"]  # boto3's clients may be used by several threads
        self.client: Any = _CONNECTIONS[key]
        self._download_request = self._download_stream = None
        self._download_pos = 0


_CONNECTIONS: Final[dict[str, Any]] = {}
_CONNECTIONS_LOCK: Final = threading.Lock()
boto3_client.Client = _Client


def _http_status(error: Exception) -> int | None:
    """The status of the answer that an error is about; ``None`` if the connection broke, so that Beam repeats it.

    Beam's own function fails in that case. All methods of its client call the function, also for errors of a body that
    is read later, so it is replaced itself: neither a subclass nor a wrapper of boto3's client would reach them all.
    """
    answer = getattr(error, "response", None) or {}
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return None if status is None else int(status)


boto3_client.get_http_error_code = _http_status


class _Uploader(s3io.S3Uploader):
    """Uploads an object that may be empty: Beam's own would end an upload without parts, which S3 refuses."""

    def finish(self) -> None:
        if not self.parts and not self.buffer:
            self._write_to_s3(b"")
        super().finish()


def open_write(path: str) -> BinaryIO:
    """Creates an object for writing bytes; it appears when it is closed.

    Args:
      path: an S3 path.
    """
    client = s3io.S3IO(options=FileSystems.get_filesystem(path)._options).client  # noqa: SLF001 - Beam offers no other way
    return cast(BinaryIO, io.BufferedWriter(UploaderStream(_Uploader(client, path)), buffer_size=_BUFFER_BYTES))


def listed_below(path: str) -> list[str]:
    """The object of a path, if there is one, and all objects below it."""
    own = [path] if FileSystems.exists(path) else []
    return own + [found.path for found in FileSystems.match([f"{path.rstrip('/')}/**"])[0].metadata_list]


def at_once(function: Callable[..., T], arguments: Iterable[tuple[Any, ...]]) -> list[T]:
    """Calls a function that waits for a store, with several calls at a time; returns the results in order."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(lambda values: function(*values), arguments))
