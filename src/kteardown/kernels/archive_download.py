"""A file of an archive of packages, downloaded within limits."""

import errno
import functools
import hashlib
import http.client
import netrc
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

from kteardown.errors import LabError
from kteardown.kernels import cache_folder, toolchain
from kteardown.progress import Task

_ATTEMPTS = 3
_TIMEOUT_S = 60
MOST_BYTES = 256 << 20
"""Of a list: those of the largest suite have 60 MB. What is not verified yet must not fill disk or
memory."""


def fetch(
    url: str,
    target: Path,
    sha256: str = "",
    task: Task | None = None,
    most: int = MOST_BYTES,
    magic: bytes = b"",
) -> None:
    """Download ``url``, of at most ``most`` bytes, into ``target``, and check its digest if one is
    given.

    With ``magic`` it must begin with these bytes, and what is in ``target`` is continued. Proxies
    are those of the environment and of apt, credentials those of apt. Raises LabError if that fails
    three times, or the disk is full.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            if (digest := _download(url, target, task, most, magic)) == sha256 or not sha256:
                return
            reason = f"its SHA-256 is {digest}, but the signed lists say {sha256}"
        except urllib.error.HTTPError as error:
            reason = f"{error.code} {error.reason}"
            if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                target.unlink(missing_ok=True)
        except http.client.HTTPException as error:
            reason = f"the answer is not valid HTTP: {error!r}"
        except OSError as error:  # Of which urllib's is one, with the reason in a field.
            if error.errno == errno.ENOSPC:
                raise cache_folder.disk_full(target.parent) from error
            reason = str(getattr(error, "reason", error))
        if attempt < _ATTEMPTS:
            time.sleep(attempt)
    kept = (
        f"; kteardown keeps the first {target.stat().st_size / 1e6:.1f} MB and continues there"
        if magic and target.exists()
        else ""
    )
    raise LabError(
        f"cannot download {url}: {reason}",
        hint=f"check the network and the mirror, then try again{kept}.",
    )


def _download(url: str, target: Path, task: Task | None, most: int, magic: bytes) -> str:
    """Download once, and return the SHA-256 of what this gave."""
    digest = hashlib.sha256()
    request = _request(url)
    start = target.stat().st_size if magic and target.exists() else 0
    if start:
        request.add_header("Range", f"bytes={start}-")
    with _opener().open(request, timeout=_TIMEOUT_S) as answer:
        received = start if answer.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        size = received + int(answer.headers.get("Content-Length") or 0)
        block = answer.read(1 << 18)
        if not received and not block.startswith(magic):
            page = (
                "a web page (perhaps one that asks whether you are a robot)"
                if b"<" in block[:64]
                else "other data"
            )
            raise OSError(f"the server sent {page} instead of this file")
        with target.open("ab" if received else "wb") as sink:
            while block:
                sink.write(block)
                digest.update(block)
                received += len(block)
                if received > most:
                    raise OSError(f"the file has more than {most} bytes")
                if task:
                    task.update(received / 1e6, total=max(size, received) / 1e6)
                block = answer.read(1 << 18)
    if received < size:
        raise OSError(f"the connection ended after {received} of {size} bytes")
    return digest.hexdigest()


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    proxies = urllib.request.getproxies()
    if shutil.which("apt-config"):
        text = toolchain.capture(["apt-config", "dump", "--no-empty"]).stdout
        for scheme, proxy in re.findall(
            r'^Acquire::(https?)::Proxy "(.+)";$', text, re.MULTILINE | re.IGNORECASE
        ):
            proxies.setdefault(scheme.lower(), proxy)
    return urllib.request.build_opener(urllib.request.ProxyHandler(proxies))


def _request(url: str) -> urllib.request.Request:
    request = urllib.request.Request(url, headers={"User-Agent": "kteardown"})
    host = urllib.parse.urlsplit(url).hostname or ""
    for file in (Path("/etc/apt/auth.conf"), *Path("/etc/apt/auth.conf.d").glob("*.conf")):
        with suppress(OSError, netrc.NetrcParseError):
            if login := netrc.netrc(str(file)).authenticators(host):
                token = b64encode(f"{login[0]}:{login[2]}".encode()).decode()
                request.add_unredirected_header("Authorization", f"Basic {token}")
    return request
