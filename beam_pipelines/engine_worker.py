"""``newsembed-worker``: a worker process for engines that start their workers themselves.

Flink and Spark start it with ``--environment_type=PROCESS --environment_config='{"command": "newsembed-worker"}'``; it
must be installed on each machine of the cluster, with the jobs' libraries. In place of Beam's container, it asks the
engine for the options of the pipeline and for the addresses to connect to (Beam's provision service). It ends with the
task manager that started it, also when that one is killed.

Beam's worker pool (``--environment_type=EXTERNAL``) is not for several task managers on one machine: they number their
workers alike, and the pool stops the worker of another one.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from . import worker
from .parent import PARENT

_ENDPOINTS: Final = {
    "LOGGING_API_SERVICE_DESCRIPTOR": "logging_endpoint",
    "CONTROL_API_SERVICE_DESCRIPTOR": "control_endpoint",
    "STATUS_API_SERVICE_DESCRIPTOR": "status_endpoint",
}
_SECONDS: Final = 60.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a worker until the engine ends it.

    Args:
      arguments: of the command; the engine gives them.
    """
    parser = argparse.ArgumentParser(description="A worker process of Beam; Flink and Spark start it.")
    parser.add_argument("--id", required=True, help="of the worker, as the engine counts them")
    parser.add_argument("--provision_endpoint", required=True, metavar="HOST:PORT", help="where the engine answers")
    known, _ = parser.parse_known_args(arguments)  # engines give more, such as the endpoints that are also provided
    os.environ.update(environment_of(known.id, provided(known.id, known.provision_endpoint)))
    os.environ[PARENT] = str(os.getppid())
    worker.main()


def provided(worker_id: str, endpoint: str) -> Any:
    """What the engine tells a worker, Beam's ``ProvisionInfo``.

    Args:
      worker_id: of the worker.
      endpoint: of the provision service.

    Raises:
      grpc.RpcError: if the engine does not answer.
    """
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2 as messages
    from apache_beam.portability.api import beam_provision_api_pb2_grpc as services

    with grpc.insecure_channel(endpoint) as channel:
        stub = services.ProvisionServiceStub(channel)
        request = messages.GetProvisionInfoRequest()
        return stub.GetProvisionInfo(request, _SECONDS, metadata=[("worker_id", worker_id)], wait_for_ready=True).info


def environment_of(worker_id: str, info: Any) -> Mapping[str, str]:
    """The environment variables that Beam's worker reads.

    Args:
      worker_id: of the worker.
      info: Beam's ``ProvisionInfo``.
    """
    from google.protobuf import json_format, text_format

    found = {
        "WORKER_ID": worker_id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    for variable, endpoint in _ENDPOINTS.items():
        if info.HasField(endpoint):
            found[variable] = text_format.MessageToString(getattr(info, endpoint), as_one_line=True)
    return found


if __name__ == "__main__":
    main()
