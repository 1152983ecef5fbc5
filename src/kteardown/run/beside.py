"""Boot guests that count what a kernel executes beside those that are measured."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from kteardown.progress import Reporter
from kteardown.run.repeat import RepeatingMachine
from kteardown.vm.machine import Machine

M = TypeVar("M")
T = TypeVar("T")

_GUEST_ENDS_S = 5.0
"""A guest that is stopped has ended by then, and its files are removed."""


def boot_and_count(
    boot: Callable[[], M],
    count: Callable[[Machine], T],
    reporter: Reporter,
    *,
    exact: bool,
    jobs: int,
) -> tuple[M, T]:
    """Call ``boot``, which measures, and ``count``; return what both return.

    ``exact``: on the instruction clock with one CPU, where no other work of the host changes a
    figure, they run together: the guests that count use the CPUs that the others leave idle, and no
    more than ``jobs`` run at the same time. Raises what either raises.
    """
    if not exact:
        return boot(), count(RepeatingMachine(reporter.command))
    machine = RepeatingMachine(reporter.command, patient=True, most=jobs)
    with beside(lambda: count(machine), machine) as counted:
        return boot(), counted()


@contextmanager
def beside(work: Callable[[], T], machine: Machine) -> Iterator[Callable[[], T]]:
    """Call ``work``, which boots guests in ``machine``, in a thread while the block runs.

    The block gets what waits for it and returns what it returns, or raises what it raises. An error
    of the block and ^C end the guests. What ``work`` computes after its guests is not awaited then.
    """
    future: Future[T] = Future()
    # A thread of an executor would be awaited when Python ends.
    working = threading.Thread(target=_complete, args=(future, work), daemon=True)
    working.start()
    try:
        yield future.result
    except BaseException:
        machine.stop()
        working.join(_GUEST_ENDS_S)
        raise
    working.join()


def _complete(future: Future[T], work: Callable[[], T]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
