"""Guests that count run beside those that are measured, on the CPUs that these leave idle."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kteardown.errors import GuestError, InputError
from kteardown.model.record import BootEnd
from kteardown.progress import SilentReporter
from kteardown.run import beside as module
from kteardown.run import repeat
from kteardown.run.beside import beside, boot_and_count
from kteardown.vm.job import BootJob
from kteardown.vm.machine import Machine


class StoppedMachine:
    """Boots nothing, and knows whether it was stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        raise AssertionError

    def stop(self) -> None:
        self.stopped.set()

    def release(self) -> None:
        """Nothing is held."""


@pytest.fixture
def guests() -> repeat._Guests:
    return repeat._Guests()


def test_a_patient_guest_waits_for_an_idle_cpu(guests: repeat._Guests) -> None:
    assert [guests.begin(patient=patient, most=2) for patient in (False, False, True, False)] == [
        1,
        1,
        0,
        1,
    ]
    guests.end(patient=True)
    assert not guests.begin(patient=True, most=2)
    guests.end(patient=True)
    assert guests.begin(patient=True, most=2)


def test_the_guest_that_follows_one_is_awaited(
    guests: repeat._Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeat, "_SETTLED_S", 3600)
    assert guests.begin(patient=False, most=2)
    guests.end(patient=False)
    assert not guests.begin(patient=True, most=2)
    monkeypatch.setattr(repeat, "_SETTLED_S", 0)
    guests.expect_more()
    assert guests.begin(patient=True, most=2)


def test_the_block_gets_what_the_work_returns() -> None:
    begun = threading.Event()

    def work() -> int:
        begun.set()
        return 3

    machine = StoppedMachine()
    with beside(work, machine) as result:
        assert begun.wait(60)
        assert result() == 3
    assert not machine.stopped.is_set()


def test_an_error_of_the_block_ends_the_guests() -> None:
    machine = StoppedMachine()
    with pytest.raises(GuestError), beside(lambda: machine.stopped.wait(60), machine):
        raise GuestError("a guest that is measured failed", hint="")
    assert machine.stopped.is_set()


def test_an_error_of_the_work_is_raised_where_it_is_awaited() -> None:
    def work() -> None:
        raise InputError("no such workload", hint="")

    reached = False
    with pytest.raises(InputError), beside(work, StoppedMachine()) as result:
        reached = True
        result()
    assert reached


def test_an_interrupt_awaits_the_guests_but_not_what_is_computed_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_GUEST_ENDS_S", 0.1)
    machine = StoppedMachine()
    computed = threading.Event()
    with pytest.raises(KeyboardInterrupt), beside(computed.wait, machine):
        raise KeyboardInterrupt
    assert machine.stopped.is_set()
    assert not computed.is_set()
    computed.set()


def test_guests_that_count_run_beside_those_that_measure_where_figures_are_exact() -> None:
    counting = threading.Event()

    def count(machine: Machine) -> int:
        counting.set()
        return 3

    def boot() -> None:
        assert counting.wait(60)

    assert boot_and_count(boot, count, SilentReporter(), exact=True, jobs=2) == (None, 3)


def test_guests_that_count_follow_those_that_measure_on_the_wall_clock() -> None:
    order = []

    def count(machine: Machine) -> int:
        order.append("count")
        return 3

    def boot() -> str:
        order.append("boot")
        return "measured"

    said = boot_and_count(boot, count, SilentReporter(), exact=False, jobs=2)
    assert said == ("measured", 3)
    assert order == ["boot", "count"]
