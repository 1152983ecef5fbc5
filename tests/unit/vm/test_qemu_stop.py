"""Boots of a real QEMU that are stopped at each moment at which they wait: nothing is printed or
left."""

from __future__ import annotations

import gc
import logging
import shutil
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from kteardown.model.record import BootEnd
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from unit.vm.tiny_guest import HALT, RESET, tiny_job

pytestmark = pytest.mark.skipif(
    not shutil.which("qemu-system-x86_64"), reason="it needs the emulator of x86-64"
)


class StoppedMachine(QemuMachine):
    """A machine that is stopped when its boot waits for the so many-th time, for each of
    ``moments``."""

    def __init__(self, *moments: int) -> None:
        super().__init__()
        self.moments = set(moments)
        self.waited = 0

    async def _boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        return await _Watched(super()._boot(job, on_line), self._waits)

    def _waits(self) -> None:
        self.waited += 1
        if self.waited in self.moments:
            self.stop()


class _Watched:
    """Awaits ``boot``, and calls ``waits`` whenever it waits for something."""

    def __init__(self, boot: Any, waits: Callable[[], None]) -> None:
        self._boot, self._waits = boot, waits

    def __await__(self) -> Generator[Any, Any, BootEnd]:
        steps = self._boot.__await__()
        step = steps.send
        given: Any = None
        while True:
            try:
                awaited = step(given)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            self._waits()
            try:
                given, step = (yield awaited), steps.send
            except BaseException as error:
                given, step = error, steps.throw


@pytest.fixture
def complaints(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What would be printed on the standard error without an exception of a boot."""
    found: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: found.append(repr(raised)))
    monkeypatch.setattr(threading, "excepthook", lambda raised: found.append(repr(raised)))
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    monkeypatch.setattr(logging.getLogger("asyncio"), "handlers", [handler])
    return found


def stopped(folder: Path, code: bytes, *moments: int) -> int:
    """Boot, stop at ``moments``, and return how often the boot waited. One that halts is stopped at
    last."""
    machine = StoppedMachine(*moments)

    def runs(_: Sequence[int]) -> None:
        # Its next wait is for records, of which none come.
        machine.moments |= {machine.waited + 1} if code == HALT else set()

    with suppress(KeyboardInterrupt):
        machine.boot(tiny_job(folder, code, runs), lambda line: None)
        assert code == RESET
    return machine.waited


@pytest.mark.parametrize("code", [HALT, RESET], ids=["halt", "reset"])
@pytest.mark.parametrize("again", [(), (1,)], ids=["once", "twice"])
def test_a_boot_that_is_stopped_whenever_it_waits_ends_silently(
    tmp_path: Path,
    complaints: list[str],
    capfd: pytest.CaptureFixture[str],
    code: bytes,
    again: tuple[int, ...],
) -> None:
    def boot(moment: int) -> int:
        return stopped(tmp_path, code, moment, *(moment + more for more in again))

    whole = stopped(tmp_path, code)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(boot, range(1, whole + 1)))
    gc.collect()
    assert complaints == []
    assert capfd.readouterr().err == ""
    assert not [each for each in psutil.Process().children(recursive=True) if "qemu" in each.name()]
