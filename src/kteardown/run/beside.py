"""Boot guests that count what a kernel executes beside those that are measured."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from kteardown.progress import Reporter
from kteardown.run.repeat import RepeatingMachine
from kteardown.vm.qemu import QemuMachine

T = TypeVar("T")


def boot_and_count(
    boot: Callable[[], object],
    count: Callable[[QemuMachine], T],
    reporter: Reporter,
    *,
    exact: bool,
    jobs: int,
) -> T:
    """Call ``boot``, which measures, and ``count``; return what the latter returns.

    ``exact``: on the instruction clock with one CPU, where no other work of the host changes a figure, they
    run together: the guests that count use the CPUs that the others leave idle, and no more than ``jobs``
    run at the same time. Raises what either raises.
    """
    if not exact:
        boot()
        return count(RepeatingMachine(reporter.command))
    qemu = RepeatingMachine(reporter.command, patient=True, most=jobs)
    with beside(lambda: count(qemu), qemu) as counted:
        boot()
        return counted()


@contextmanager
def beside(work: Callable[[], T], qemu: QemuMachine) -> Iterator[Callable[[], T]]:
    """Call ``work``, which boots guests in ``qemu``, in a thread while the block runs.

    The block gets what waits for it and returns what it returns, or raises what it raises. An error of the
    block and ^C end the guests.
    """
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            yield working.result
        except BaseException:
            qemu.stop()
            raise
