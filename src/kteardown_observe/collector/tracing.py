"""Counts events of the kernel in an instance of tracefs of our own, which is removed again.

An instance has a buffer and triggers of its own: what others trace is not touched. Each event has
a histogram as trigger, so nothing is written into the buffer. While it exists, the kernel also
remembers the names of tasks, for the whole machine. tracefs is never mounted.

Locks: making and removing an instance takes event_mutex and trace_types_lock, and waits for a
grace period; it allocates a buffer of 1.4 MB for each online CPU (kernel/trace/trace.c,
trace_array_create, __remove_instance). An event of a histogram takes no lock
(kernel/trace/tracing_map.c, tracing_map_insert). Linux 6.1, 6.12 and 7.3.
"""

import contextlib
import os
import re
import time
from typing import Dict, Iterator, List, NamedTuple, Optional

from kteardown_observe.collector.files import Host, Malformed, Unreadable, printable, unreadable

INSTANCE = "kteardown_observe_"
MOUNTS_MOST = 4 << 20
HISTOGRAM_MOST = 1 << 20
REMOVE_S = 1.0
"""Removing an instance may wait for locks; so long another process waits for it."""
HITS = re.compile(rb" +([0-9]+) *\Z")
TOTAL = re.compile(rb" +(Hits|Dropped): ([0-9]+)\Z")


class TraceEvent(NamedTuple):
    """An event of the kernel, and the field by which its histogram is divided."""

    name: str
    group: str
    event: str
    key: str


TRACE_EVENTS = (
    TraceEvent("exits", "sched", "sched_process_exit", "comm"),
    TraceEvent("cgroup_removals", "cgroup", "cgroup_rmdir", "level"),
)


class EventHistogram(NamedTuple):
    """How many events there were, how many for each key, and how many have no key for lack of
    room."""

    total: int
    by_key: Dict[str, int]
    dropped: int


def parse_histogram(text: bytes) -> EventHistogram:
    """Read the file hist of an event. Raises Malformed."""
    by_key: Dict[str, int] = {}
    totals: Dict[bytes, int] = {}
    for line in text.splitlines():
        entry, _, hits = line.rpartition(b"} hitcount:")
        number = HITS.match(hits)
        if number and entry.startswith(b"{ "):
            key = printable(entry.partition(b": ")[2].rstrip())
            by_key[key] = by_key.get(key, 0) + int(number.group(1))
        end = TOTAL.match(line)
        if end:
            totals[end.group(1)] = int(end.group(2))
    if b"Hits" not in totals:
        raise Malformed("a histogram without its number of hits")
    return EventHistogram(totals[b"Hits"], by_key, totals.get(b"Dropped", 0))


def parse_tracefs(mountinfo: bytes) -> Iterator[str]:
    """Yield where tracefs is mounted."""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(b" - ")
        fields = left.split(b" ")
        if right.split(b" ")[:1] == [b"tracefs"] and len(fields) > 4:
            path = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m.group(1), 8) & 255]), fields[4])
            yield os.fsdecode(path)


def find_instances(host: Host) -> str:
    """Return the folder of instances of a tracefs that is mounted; raises Unreadable."""
    for point in parse_tracefs(host.read("/proc/self/mountinfo", MOUNTS_MOST)):
        if os.path.isdir(f"{point}/instances"):
            return f"{point}/instances"
    raise Unreadable("not there", "tracefs is not mounted, or may not be read")


def remove_left(host: Host, instances: str) -> List[str]:
    """Remove the instances of collectors that were killed, and return their names.

    Those of others that still run are busy: they hold a file of theirs open.
    """
    names = [entry.name for entry in host.names(instances) if entry.name.startswith(INSTANCE)]
    return [printable(os.fsencode(name)) for name in names if remove(f"{instances}/{name}")]


def remove(path: str) -> bool:
    """Remove an instance, and return whether it is gone. Another process waits for the locks."""
    pid = os.fork()
    if not pid:
        try:
            os.rmdir(path)
        except OSError:
            os._exit(1)
        os._exit(0)
    end_s = time.monotonic() + REMOVE_S
    while time.monotonic() < end_s:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.005)
    return False


class Tracing:
    """An instance, as a context: it exists inside of it, and no longer."""

    def __init__(self, host: Host, instances: str) -> None:
        self.host = host
        self.path = f"{instances}/{INSTANCE}{os.getpid()}_{os.urandom(4).hex()}"
        self.events: List[TraceEvent] = []
        self.missing: Dict[str, Unreadable] = {}
        self.open: Optional[int] = None

    def __enter__(self) -> "Tracing":
        try:
            os.mkdir(self.path, 0o700)
        except OSError as error:
            raise unreadable(error, self.path) from None
        # While this file is open, nobody else can remove the instance.
        with contextlib.suppress(OSError):
            self.open = os.open(f"{self.path}/tracing_on", os.O_RDONLY | os.O_CLOEXEC)
        for event in TRACE_EVENTS:
            try:
                write(self._file_of(event, "trigger"), f"hist:keys={event.key}")
                self.events.append(event)
            except Unreadable as failure:
                self.missing[event.name] = failure
        return self

    def __exit__(self, *error: object) -> None:
        if self.open is not None:
            os.close(self.open)
        remove(self.path)

    def _file_of(self, event: TraceEvent, file: str) -> str:
        return f"{self.path}/events/{event.group}/{event.event}/{file}"

    def read(self, event: TraceEvent) -> EventHistogram:
        """Return how often an event happened; raises Unreadable or Malformed."""
        return parse_histogram(self.host.read(self._file_of(event, "hist"), HISTOGRAM_MOST))


def write(path: str, text: str) -> None:
    """Write to a file of tracefs; raises Unreadable."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(error, path) from None
    try:
        os.write(fd, text.encode("ascii"))
    except OSError as error:
        raise unreadable(error, path) from None
    finally:
        os.close(fd)
