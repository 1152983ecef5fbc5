"""Guests that count run beside those that are measured, on the CPUs that these leave idle."""

from __future__ import annotations

import threading

import pytest

from kteardown.errors import GuestError, InputError
from kteardown.run import repeat
from kteardown.run.beside import beside
from kteardown.vm.qemu import QemuMachine


class Machine(QemuMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stopped = threading.Event()

    def stop(self) -> None:
        super().stop()
        self.stopped.set()


@pytest.fixture
def guests() -> repeat._Guests:
    return repeat._Guests()


def test_a_patient_guest_waits_for_an_idle_cpu(guests: repeat._Guests) -> None:
    assert [guests.begin(patient=patient, most=2) for patient in (False, False, True, False)] == [1, 1, 0, 1]
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

    machine = Machine()
    with beside(work, machine) as result:
        assert begun.wait(60)
        assert result() == 3
    assert not machine.stopped.is_set()


def test_an_error_of_the_block_ends_the_guests() -> None:
    machine = Machine()
    with pytest.raises(GuestError), beside(lambda: machine.stopped.wait(60), machine):
        raise GuestError("a guest that is measured failed", hint="")
    assert machine.stopped.is_set()


def test_an_error_of_the_work_is_raised_where_it_is_awaited() -> None:
    def work() -> None:
        raise InputError("no such workload", hint="")

    reached = False
    with pytest.raises(InputError), beside(work, Machine()) as result:
        reached = True
        result()
    assert reached
