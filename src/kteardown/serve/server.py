"""The server: listens on one socket of the loopback interface until it is interrupted."""

from __future__ import annotations

import errno
import socket

import uvicorn

from kteardown.errors import InputError, LabError
from kteardown.serve.app import make_app

_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 2
"""How long a response may still take when the server stops."""


def listen(port: int) -> socket.socket:
    """Listen on ``port`` of the loopback interface; 0 is any free port.

    Raises InputError if the port is in use or not allowed, LabError if the interface is not usable.
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((_LOOPBACK, port))
        found.listen()
    except OSError as error:
        found.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise InputError(
                f"--port {port}: cannot be used: {error.strerror}",
                hint="choose another port, or --port 0 for any free one.",
            ) from error
        raise LabError(
            f"cannot listen on {_LOOPBACK}: {error.strerror}",
            hint="check that the loopback interface is up: `ip link show lo`.",
        ) from error
    return found


def address(listening: socket.socket) -> str:
    """Return the URL of the server."""
    host, port = listening.getsockname()
    return f"http://{host}:{port}/"


def run(listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM. After SIGINT, close everything and raise KeyboardInterrupt."""
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
