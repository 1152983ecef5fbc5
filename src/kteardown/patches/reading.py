"""Read what strangers wrote in a process of its own, with one limit of time and one of memory.

The process is a copy of this one: it begins in milliseconds, also hundreds of times for a mailing
list. Its answer is JSON that is validated, so nothing that it read is executed here. It has a
process group of its own: Ctrl-C interrupts this process, which then ends it with all programs that
it started.
"""

import gc
import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter

from kteardown.errors import BuildError, InputError, KteardownError, LabError

CPU_SECONDS = 60
MEGABYTES = 1000
"""Of processor time, and of memory. A series of 1,000 mails and 32 MB needs 11 s, and 170 MB."""
_WALL_SECONDS = 10 * CPU_SECONDS
"""For a host that is busy with other programs."""
_MOST_ANSWER_BYTES = 128_000_000
_ERRORS: dict[str, type[KteardownError]] = {
    kind.__name__: kind for kind in (InputError, LabError, BuildError)
}

T = TypeVar("T")


def limited(what: str, read: Callable[[], T], form: TypeAdapter[T]) -> T:
    """Return what ``read`` returns, in a process of its own. ``form`` is the type of the answer.

    The errors of ``read`` are raised here. Raises InputError, which names ``what``, if a limit is
    exceeded.
    """
    with tempfile.TemporaryDirectory(prefix="kteardown-") as folder:
        readable, writable = os.pipe()
        child = 0
        try:
            # An interrupt right after the fork would leave a process without an end.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            try:
                child = os.fork()
                if child == 0:
                    _work(read, form, writable, folder)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(writable)
            _into_own_group(child)
            raw = _received(readable)
        finally:
            os.close(readable)
            if child:
                _end(child)
    try:
        answer = json.loads(raw)
        kind = answer["kind"]
    except (ValueError, TypeError, KeyError) as error:
        raise _too_much(what) from error
    if kind == "value":
        return form.validate_json(json.dumps(answer["value"]))
    if kind == "os":
        raise OSError(*answer["arguments"])
    if kind in _ERRORS:
        raise _ERRORS[kind](answer["message"], hint=answer["hint"])
    if kind == "memory":
        raise _too_much(what)
    raise RuntimeError(f"reading {what} failed:\n{answer['trace']}")


def _too_much(what: str) -> InputError:
    return InputError(
        f"reading {what} took more than {CPU_SECONDS} s or {MEGABYTES:,} MB: it is damaged, or "
        "was made to exceed these limits",
        hint="check the contents, and give the mails one by one.",
    )


def _received(readable: int) -> bytes:
    """Return all that the process writes; what there is when its time is over, or if it writes too
    much."""
    parts = []
    size = 0
    end = time.monotonic() + _WALL_SECONDS
    while size <= _MOST_ANSWER_BYTES:
        ready, _, _ = select.select([readable], [], [], max(0, end - time.monotonic()))
        part = os.read(readable, 1 << 20) if ready else b""
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _into_own_group(child: int) -> None:
    with suppress(PermissionError, ProcessLookupError):  # It has ended.
        os.setpgid(child, child)


def _end(child: int) -> None:
    """End the process and all that it started; it is gone afterwards."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):  # The parent ignores SIGCHLD, as a shell can let it.
        os.waitpid(child, 0)


def _work(read: Callable[[], T], form: TypeAdapter[T], writable: int, folder: str) -> NoReturn:
    """Answer, and end. Nothing is left to what this process inherited: no handler, no buffer, no
    lock."""
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        gc.freeze()  # Else a collection would copy all memory of the parent.
        tempfile.tempdir = folder
        _limit()
        answer = _answer(read, form)
        with os.fdopen(writable, "wb") as stream:
            stream.write(answer)
    finally:
        os._exit(0)


def _limit() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = {
        resource.RLIMIT_AS: used + MEGABYTES * 1_000_000,
        resource.RLIMIT_CPU: CPU_SECONDS,
        resource.RLIMIT_CORE: 0,
    }
    for name, most in limits.items():
        hard = resource.getrlimit(name)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(name, (least, least))


def _answer(read: Callable[[], T], form: TypeAdapter[T]) -> bytes:
    answer: dict[str, Any]
    try:
        answer = {"kind": "value", "value": form.dump_python(read(), mode="json")}
    except KteardownError as error:
        # MissingError, for example, is a LabError.
        kind = next(
            (name for name, error_type in _ERRORS.items() if isinstance(error, error_type)),
            "LabError",
        )
        answer = {"kind": kind, "message": error.message, "hint": error.hint}
    except MemoryError:
        answer = {"kind": "memory"}
    except OSError as error:
        answer = {"kind": "os", "arguments": [error.errno, error.strerror, error.filename]}
    except Exception:
        answer = {"kind": "fault", "trace": traceback.format_exc()}
    return json.dumps(answer, default=str).encode()
