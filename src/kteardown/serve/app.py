"""The web application: its routes, its protection against other sites, and its server.

Requests with another host name are refused (DNS rebinding: a foreign name that resolves to this host), other
pages cannot frame or fetch anything, and only GET and HEAD are allowed.
"""

import errno
import socket
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kteardown.errors import InputError, KteardownError, LabError
from kteardown.report.charts.figure import stylesheet
from kteardown.serve.pages import Pages

_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 2
"""How long a response may still take when the server stops."""
HOSTS = ("127.0.0.1", "localhost")
"""The host names that requests may have; those through an ssh tunnel have one of them, too."""
_HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_MONTH = "max-age=2592000, immutable"


def make_app() -> Starlette:
    """Return the application. Every request reads the runs directory as it is at that time."""
    pages = Pages()
    routes = {
        "/": pages.runs,
        "/runs/{run:path}/live": pages.live,
        "/runs/{run:path}/report.html": pages.report,
        "/runs/{run:path}/result.json": pages.result_json,
        "/runs/{run:path}/report.md": pages.markdown,
        "/runs/{run:path}/boots/{boot:int}/console.log": pages.console_text,
        "/runs/{run:path}/boots/{boot:int}": pages.console,
        "/runs/{run:path}/boots": pages.boots,
        # Last, because the id of one clock of a run on both has a slash.
        "/runs/{run:path}": pages.run,
        "/compare": pages.compare,
        "/history": pages.history,
        "/static/{version}/serve.css": _asset("text/css", stylesheet() + _read("serve.css")),
        "/static/{version}/follow.js": _asset("text/javascript", _read("follow.js")),
    }

    async def error_page(request: Request, error: Exception) -> Response:
        status, message = 500, "an internal error"
        hint = "see the terminal in which `kteardown serve` runs for the cause."
        if isinstance(error, KteardownError):
            status = 400 if isinstance(error, InputError) else 500
            message, hint = error.message, error.hint
        elif isinstance(error, HTTPException):
            status, message, hint = error.status_code, error.detail, ""
        response = pages.error(status, message, hint)
        # What is not expected is answered outside of the middleware.
        response.headers.update(_HEADERS)
        return response

    return Starlette(
        routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()],
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={KteardownError: error_page, HTTPException: error_page, Exception: error_page},
    )


class _Headers:
    """Middleware that adds ``_HEADERS`` to every response that does not have them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _read(name: str) -> str:
    return files("kteardown.serve").joinpath("page", name).read_text(encoding="utf-8")


def _asset(kind: str, text: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(text, media_type=kind, headers={"cache-control": _MONTH})

    return answer


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
