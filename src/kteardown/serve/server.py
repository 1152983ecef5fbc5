"""The server: one socket on loopback, until it is interrupted."""

from __future__ import annotations

import errno
import socket

import uvicorn

from kteardown.errors import InputError, LabError
from kteardown.serve.app import make_app

_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 2
"""What an answer that is on its way may take when the server is to stop."""


def listen(port: int) -> socket.socket:
    """A socket on loopback; 0 is a free port. Raises InputError where the port is taken, else LabError."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((_LOOPBACK, port))
        found.listen()
    except OSError as error:
        found.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise InputError(
                f"port {port} cannot be had: {error.strerror}", hint="give another one, or --port 0 for any."
            ) from error
        raise LabError(
            f"cannot listen on {_LOOPBACK}: {error.strerror}",
            hint="the loopback interface must be up: `ip link show lo`.",
        ) from error
    return found


def address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = listening.getsockname()
    return f"http://{host}:{port}/"


def run(listening: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM. Raises KeyboardInterrupt after SIGINT, with everything closed."""
    config = uvicorn.Config(
        make_app(),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])
