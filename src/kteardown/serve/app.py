"""The application: addresses, and what keeps everybody else out.

Whoever asks by another name than this host's is turned away (DNS rebinding: a name elsewhere that was made to
point here), nothing may be framed or fetched by other pages, and only GET and HEAD are answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kteardown.errors import InputError, KteardownError
from kteardown.report.charts.palette import stylesheet
from kteardown.serve.pages import Pages

HOSTS = ("127.0.0.1", "localhost")
"""The names by which this server may be asked for; a tunnel of ssh keeps them."""
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
    """The whole site over the run directory as it is when a page is asked for."""
    pages = Pages()
    routes = {
        "/": pages.runs,
        "/runs/{run}": pages.run,
        "/runs/{run}/live": pages.live,
        "/runs/{run}/report.html": pages.report,
        "/runs/{run}/result.json": pages.result_json,
        "/runs/{run}/report.md": pages.markdown,
        "/compare": pages.compare,
        "/history": pages.history,
        "/static/{version}/serve.css": _asset("text/css", stylesheet() + _read("serve.css")),
        "/static/{version}/follow.js": _asset("text/javascript", _read("follow.js")),
    }

    async def known(request: Request, error: Exception) -> Response:
        return pages.error(*_told(error))

    return Starlette(
        routes=[Route(path, endpoint, methods=["GET"]) for path, endpoint in routes.items()],
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={KteardownError: known, HTTPException: known, Exception: known},
    )


class _Headers:
    """Puts ``_HEADERS`` on every answer that does not say otherwise."""

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


def _told(error: Exception) -> tuple[int, str, str]:
    """Status, what is wrong, and what to do."""
    if isinstance(error, KteardownError):
        return (400 if isinstance(error, InputError) else 500), error.message, error.hint
    if isinstance(error, HTTPException):
        return error.status_code, error.detail, ""
    return 500, "This page could not be made.", "the terminal in which `kteardown serve` runs says why."


def _read(name: str) -> str:
    return files("kteardown.serve").joinpath("page", name).read_text(encoding="utf-8")


def _asset(kind: str, text: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(text, media_type=kind, headers={"cache-control": _MONTH})

    return answer
