"""Object stores for tests, with an empty bucket: moto's server for S3, or those that variables name.

NEWSEMBED_TEST_S3=http://127.0.0.1:7070,ACCESS_KEY,SECRET_KEY,BUCKET
NEWSEMBED_TEST_GS=http://127.0.0.1:4443,BUCKET: a server as fake-gcs-server, which `make stores` starts
"""

import contextlib
import dataclasses
import os
import uuid

import pytest
from newsembed.formats import stores

SCHEMES = (
    "s3",
    pytest.param(
        "gs", marks=pytest.mark.skipif("NEWSEMBED_TEST_GS" not in os.environ, reason="`make stores` starts its server")
    ),
)


@dataclasses.dataclass(frozen=True)
class Store:
    """A store with a bucket.

    Attributes:
      endpoint: URL of the store.
      access_key: its user.
      secret_key: of that user.
      folder: path in the bucket that no other test uses.
    """

    endpoint: str
    access_key: str
    secret_key: str
    folder: str

    @property
    def options(self):
        """Beam's options for it."""
        if self.folder.startswith("gs"):
            return []
        return [
            f"--s3_endpoint_url={self.endpoint}",
            f"--s3_access_key_id={self.access_key}",
            f"--s3_secret_access_key={self.secret_key}",
            "--s3_region_name=us-east-1",
        ]

    @property
    def environment(self):
        """Variables that say the same."""
        if self.folder.startswith("gs"):
            return {"STORAGE_EMULATOR_HOST": self.endpoint}
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
        }

    @property
    def port(self):
        """Its port on this machine."""
        return int(self.endpoint.rpartition(":")[2])

    def through(self, port):
        """The store behind a proxy on this machine."""
        return dataclasses.replace(self, endpoint=f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def used(store):
    """What this process reads and writes in the context goes to a store."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items() if store.folder.startswith("gs") else ():
            patch.setenv(name, value)
        stores.use_options(store.options)
        try:
            yield store
        finally:
            stores.use_options([])


@contextlib.contextmanager
def running(scheme="s3"):
    """A store to use, "s3" or "gs"; moto's server ends with the context."""
    folder = uuid.uuid4().hex
    if scheme == "gs":
        endpoint, bucket = os.environ["NEWSEMBED_TEST_GS"].split(",")
        yield Store(endpoint, "", "", f"gs://{bucket}/{folder}")
        return
    if given := os.environ.get("NEWSEMBED_TEST_S3"):
        endpoint, access_key, secret_key, bucket = given.split(",")
        yield Store(endpoint, access_key, secret_key, f"s3://{bucket}/{folder}")
        return
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = Store(f"http://{host}:{port}", "user", "secret", f"s3://news/{folder}")
        client = boto3.client(
            "s3",
            endpoint_url=store.endpoint,
            aws_access_key_id=store.access_key,
            aws_secret_access_key=store.secret_key,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="news")
        yield store
    finally:
        server.stop()
