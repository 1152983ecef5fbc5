"""How fast this machine frees objects: descriptors that are closed, and memory that is unmapped.

It makes the objects in its own process, and only if it is asked to (--calibrate). Each number of
objects is timed five times. The difference between the times of two numbers is the cost of the
objects; what both have in common is the cost of the call.
"""

import mmap
import os
import resource
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from kteardown_observe.collector.files import Host
from kteardown_observe.collector.tally import CountTable

CALIBRATED_DESCRIPTORS = (4000, 8000)
CALIBRATED_MEMORY_MB = (16, 32)
REPETITIONS = 5
FIRST_DESCRIPTOR = 64
PR_SET_THP_DISABLE = 41


def now_ns() -> int:
    """Return the CPU time of this process in ns: others may run meanwhile."""
    return int(time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) * 1e9)


def use_small_pages() -> None:
    """Let this process have no huge pages: they would be few objects. Older kernels cannot."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return


def full_pipe() -> None:
    """Make a pipe with a byte in it, of which only the end to read from stays open."""
    _, writer = os.pipe()
    os.write(writer, b"x")
    os.close(writer)


def eventfd_maker() -> Optional[Callable[[], Any]]:
    """Return a function that opens an eventfd; None if this Python has none."""
    if hasattr(os, "eventfd"):
        return lambda: os.eventfd(0)
    try:
        import ctypes

        function = ctypes.CDLL(None, use_errno=True).eventfd
    except (ImportError, OSError, AttributeError):
        return None

    def make() -> None:
        if function(0, 0) < 0:
            raise OSError(ctypes.get_errno(), "eventfd")

    return make


def raise_descriptor_limit() -> int:
    """Allow as many descriptors as are needed; return how many of these are allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(CALIBRATED_DESCRIPTORS) + 2 * FIRST_DESCRIPTOR
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return needed if soft == resource.RLIM_INFINITY else min(soft, needed)


def fill_low_descriptors() -> None:
    """Leave no free descriptor below FIRST_DESCRIPTOR, so that closing a range closes no other."""
    descriptor = os.open("/", os.O_RDONLY)
    while descriptor < FIRST_DESCRIPTOR:
        descriptor = os.dup(descriptor)
    os.close(descriptor)


def time_closing(make: Callable[[], Any], times: int) -> int:
    """Call ``make`` so often, and return how long it took to close what it opened."""
    try:
        for _ in range(times):
            make()
    finally:
        begin_ns = now_ns()
        os.closerange(FIRST_DESCRIPTOR, max(CALIBRATED_DESCRIPTORS) + 2 * FIRST_DESCRIPTOR)
        took_ns = now_ns() - begin_ns
    return took_ns


def time_unmapping(pages: int) -> int:
    """Touch so many pages, and return how long unmapping them took."""
    size = pages * mmap.PAGESIZE
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, mmap.PAGESIZE):
        memory[at] = 1
    begin_ns = now_ns()
    memory.close()
    return now_ns() - begin_ns


def calibrate(host: Host, counts: CountTable) -> List[Dict[str, Any]]:
    """Time every kind with both numbers; what cannot be made is missing."""
    allowed = min(max(CALIBRATED_DESCRIPTORS), raise_descriptor_limit() - 2 * FIRST_DESCRIPTOR)
    fill_low_descriptors()
    use_small_pages()
    pages = [(size << 20) // mmap.PAGESIZE for size in CALIBRATED_MEMORY_MB]
    cases: List[Tuple[str, int, Callable[[int], int]]] = []
    for kind, make in (("eventfds", eventfd_maker()), ("pipes", full_pipe)):
        if make is not None:
            for number in (allowed // 2, allowed):
                cases.append((kind, number, _closing(make)))
    cases += [("anonymous_pages", number, time_unmapping) for number in pages]

    times: Dict[Tuple[str, int], List[int]] = {}
    # All kinds in turn: a time in which the machine is slow meets all of them.
    for _ in range(REPETITIONS):
        for kind, objects, time_one in cases:
            try:
                times.setdefault((kind, objects), []).append(time_one(objects))
            except OSError as error:
                counts.miss(["calibration"], "error", f"{kind}: {error.strerror}")
    return [{"kind": kind, "objects": objects, "ns": ns} for (kind, objects), ns in times.items()]


def _closing(make: Callable[[], Any]) -> Callable[[int], int]:
    return lambda times: time_closing(make, times)
