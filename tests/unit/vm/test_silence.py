from __future__ import annotations

import asyncio

import pytest

from kteardown.vm.silence import GuestSilence, HostSilence, QemuStuckError


class Clocks:
    """A host and a guest whose clocks advance as the test says; also the monitor of this guest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, halted: bool = False) -> None:
        self.host = 1000.0
        self.guest = 0.0
        self.halted = halted
        self.answers = True
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)

    def time(self) -> float:
        return self.host

    async def guest_clock_lag_s(self) -> float | None:
        return self.host - self.guest if self.answers else None

    async def all_halted(self) -> bool:
        return self.halted


def polls(clocks: Clocks, silence: GuestSilence, guest_s: float, most: int = 1000) -> int | None:
    """Return after how many polls of 15 host seconds the guest, which advances by guest_s each, is hung."""
    silent = 0.0
    for number in range(1, most):
        clocks.host += 15
        clocks.guest += guest_s
        silent += 15
        coroutine = silence.is_hung(silent)
        try:
            coroutine.send(None)
        except StopIteration as done:
            if done.value:
                return number
    return None


@pytest.mark.parametrize("guest_s", [0.25, 0.125])
def test_a_guest_that_the_emulator_is_slow_at_needs_a_sixth(
    monkeypatch: pytest.MonkeyPatch, guest_s: float
) -> None:
    clocks = Clocks(monkeypatch)
    found = polls(clocks, GuestSilence(clocks, 30), guest_s)  # type: ignore[arg-type]
    assert found is not None and found * 15 >= 300
    assert (found - 1) * guest_s >= 5 > (found - 2) * guest_s


@pytest.mark.parametrize("guest_s", [3.0, 300.0])
def test_the_guests_clock_decides_however_slow_the_host_is(
    monkeypatch: pytest.MonkeyPatch, guest_s: float
) -> None:
    clocks = Clocks(monkeypatch)
    silence = GuestSilence(clocks, 30)  # type: ignore[arg-type]
    found = polls(clocks, silence, guest_s)
    assert found is not None and (found - 1) * guest_s >= 30 > (found - 2) * guest_s
    assert "of the guest's clock" in silence.detail


def test_a_record_starts_the_count_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    silence = GuestSilence(clocks, 30)  # type: ignore[arg-type]
    for _ in range(20):
        assert polls(clocks, silence, 12, most=3) is None


def test_halted_cpus_without_a_timer_are_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch, halted=True)
    silence = GuestSilence(clocks, 30)  # type: ignore[arg-type]
    assert polls(clocks, silence, 0) is not None
    assert "halted" in silence.detail


def test_a_qemu_that_executes_nothing_is_not_a_hang_of_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    with pytest.raises(QemuStuckError, match="executed nothing"):
        polls(clocks, GuestSilence(clocks, 30), 0)  # type: ignore[arg-type]


def test_in_real_time_the_limit_is_on_the_host() -> None:
    silence = HostSilence(60)
    assert silence.every_s == 60
    assert asyncio.run(silence.is_hung(60))
