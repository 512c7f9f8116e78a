"""What the fork server of local workers imports, once for all of them; see `workers`."""

from . import worker

worker.prepare()  # before Beam is imported

from apache_beam.runners.worker import sdk_worker_main  # noqa: E402, F401

from . import graph  # noqa: E402, F401
