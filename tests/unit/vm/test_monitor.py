from __future__ import annotations

import asyncio
import os
import subprocess

import pytest

from kteardown.vm.monitor import GuestSilence, Monitor, QemuStuckError, cpu_time_s


class Clocks:
    """A host and a guest whose clocks advance as the test says; also the monitor of this guest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, halted: bool = False) -> None:
        self.host = 1000.0
        self.guest = 0.0
        self.cpu = 0.0
        self.halted = halted
        self.answers = True
        self.wakes = 0
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)

    def time(self) -> float:
        return self.host

    async def guest_clock_lag_s(self) -> float | None:
        return self.host - self.guest if self.answers else None

    def cpu_s(self) -> float:
        return self.cpu

    async def all_halted(self) -> bool:
        return self.halted


def polls(
    clocks: Clocks, silence: GuestSilence, guest_s: float, most: int = 1000, share: float = 0.01
) -> tuple[int, str] | None:
    """Return after how many polls of 15 host seconds a guest is hung, and how.

    The guest advances by ``guest_s`` each. QEMU has ``share`` of a CPU.
    """
    silent = 0.0
    for number in range(1, most):
        clocks.host += 15
        clocks.guest += guest_s
        clocks.cpu += 15 * share
        silent += 15
        coroutine = silence.is_hung(silent)
        try:
            coroutine.send(None)
        except StopIteration as done:
            if done.value:
                return number, done.value
    return None


def rule(clocks: Clocks) -> GuestSilence:
    return GuestSilence(clocks, 30, clocks.cpu_s)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_a_guest_that_the_emulator_is_slow_at_needs_a_fifteenth(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    clocks = Clocks(monkeypatch)
    # The loop of PAUSE: 7 million instructions a CPU second.
    found = polls(clocks, rule(clocks), 15 * share * 0.007, share=share)
    assert found is not None and clocks.cpu >= 240
    assert 2 <= clocks.guest <= 2.5


def test_a_guest_that_runs_as_usual_on_a_busy_host_has_its_whole_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = Clocks(monkeypatch)
    # A thirtieth of a CPU, 200 million instructions a CPU second: an hour of the host is six
    # seconds of it.
    assert polls(clocks, rule(clocks), 0.1, most=240, share=1 / 30) is None


def test_the_cpu_time_of_a_process_is_read() -> None:
    before = cpu_time_s(os.getpid())
    while cpu_time_s(os.getpid()) == before:
        pass
    with subprocess.Popen(["true"]) as ended:
        pass
    assert cpu_time_s(ended.pid) == 0.0


@pytest.mark.parametrize("guest_s", [3.0, 300.0])
def test_the_guests_clock_decides_however_slow_the_host_is(
    monkeypatch: pytest.MonkeyPatch, guest_s: float
) -> None:
    clocks = Clocks(monkeypatch)
    found = polls(clocks, rule(clocks), guest_s)
    assert found is not None and (found[0] - 1) * guest_s >= 30 > (found[0] - 2) * guest_s
    assert "of the guest's clock" in found[1]


def test_a_record_starts_the_count_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    silence = rule(clocks)
    for _ in range(20):
        assert polls(clocks, silence, 12, most=3) is None


class Suspended(Clocks):
    """A guest that is suspended and woken before each look, by a day of its clock."""

    async def guest_clock_lag_s(self) -> float | None:
        self.guest += 86_400
        self.wakes += 1
        return await super().guest_clock_lag_s()


def test_a_clock_that_jumps_while_the_guest_is_suspended_is_no_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suspended, clocks = Suspended(monkeypatch), Clocks(monkeypatch)
    assert polls(suspended, rule(suspended), 1, most=20) is None
    assert polls(clocks, rule(clocks), 86_400, most=20) is not None


def test_halted_cpus_without_a_timer_are_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch, halted=True)
    found = polls(clocks, rule(clocks), 0)
    assert found is not None and "halted" in found[1]


def test_a_qemu_that_executes_nothing_is_not_a_hang_of_the_guest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks = Clocks(monkeypatch)
    with pytest.raises(QemuStuckError, match="executed nothing"):
        polls(clocks, rule(clocks), 0)


async def _followed(monitor: Monitor, *, counts_instructions: bool, most: int = 2) -> list[float]:
    """Return the first ``most`` times that are told of a guest that started at 0."""
    told: list[float] = []
    enough = asyncio.Event()

    def tell(guest_s: float) -> None:
        told.append(guest_s)
        if len(told) == most:
            enough.set()

    following = asyncio.create_task(
        monitor.follow_clock(0, tell, counts_instructions=counts_instructions)
    )
    await enough.wait()
    following.cancel()
    return told


def test_the_clock_that_is_followed_is_that_of_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kteardown.vm.monitor._CLOCK_S", 0)

    async def follow() -> None:
        monitor = Monitor()
        now = asyncio.get_running_loop().time()
        # An answer that is missing is no time of the host.
        lags = iter([None, now - 3.0, now - 4.0])

        async def lag_s() -> float | None:
            return next(lags)

        monkeypatch.setattr(monitor, "guest_clock_lag_s", lag_s)
        first, second = await _followed(monitor, counts_instructions=True)
        assert 3.0 <= first < second
        assert min(await _followed(monitor, counts_instructions=False)) >= now

    asyncio.run(follow())
