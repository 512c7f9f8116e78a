"""Asks the process of `worker_server` for a local worker, and ends as the worker does.

Beam starts it for each worker, as a file and without the site packages, so that it starts in 0.02 s of a core. Its
argument is the path of the server's socket.
"""

import json
import os
import signal
import socket
import sys


def main() -> int:
    """Returns the exit status of the worker; 1 if the server died."""
    # Control-C ends it without a traceback, as it does the worker.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(sys.argv[1])
        request = json.dumps([os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(link, [len(request).to_bytes(8, "big")], [1, 2])
        link.sendall(request)
        status = link.recv(1)
    return status[0] if status else 1


if __name__ == "__main__":
    sys.exit(main())
