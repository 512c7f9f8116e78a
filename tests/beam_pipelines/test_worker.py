"""`newsembed-worker` asks an engine for what Beam's worker needs, and becomes one."""

import json
import os
from concurrent import futures

import grpc
import pytest
from apache_beam.portability.api import beam_provision_api_pb2 as messages
from apache_beam.portability.api import beam_provision_api_pb2_grpc as services
from apache_beam.portability.api import endpoints_pb2
from google.protobuf import json_format, text_format
from newsembed.beam_pipelines import worker


@pytest.fixture
def engine():
    """A provision service; yields its address and the workers that have asked."""
    info = messages.ProvisionInfo(runner_capabilities=["a:1", "b:2"])
    json_format.Parse('{"beam:option:job_name:v1": "clean", "beam:option:x:v1": [1]}', info.pipeline_options)
    info.control_endpoint.url, info.logging_endpoint.url = "localhost:1", "localhost:2"
    asked = []

    class Provision(services.ProvisionServiceServicer):
        def GetProvisionInfo(self, request, context):
            asked.append(dict(context.invocation_metadata())["worker_id"])
            return messages.GetProvisionInfoResponse(info=info)

    server = grpc.server(futures.ThreadPoolExecutor(1))
    services.add_ProvisionServiceServicer_to_server(Provision(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}", asked
    server.stop(0).wait()


def test_the_worker_gets_options_and_addresses_from_the_engine(engine, monkeypatch):
    address, asked = engine
    seen = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(worker, "serve", lambda: seen.append(dict(os.environ)))
    worker.main(["--id=7-1", f"--provision_endpoint={address}", "--logging_endpoint=localhost:9"])
    assert asked == ["7-1"]
    (environment,) = seen
    assert environment["WORKER_ID"] == "7-1"
    assert environment["RUNNER_CAPABILITIES"] == "a:1 b:2"
    assert json.loads(environment["PIPELINE_OPTIONS"]) == {"beam:option:job_name:v1": "clean", "beam:option:x:v1": [1]}
    for name, url in (("CONTROL", "localhost:1"), ("LOGGING", "localhost:2")):
        endpoint = text_format.Parse(
            environment[f"{name}_API_SERVICE_DESCRIPTOR"], endpoints_pb2.ApiServiceDescriptor()
        )
        assert endpoint.url == url
    assert "STATUS_API_SERVICE_DESCRIPTOR" not in environment
