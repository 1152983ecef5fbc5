"""What /proc/PID/status tells of each process: swap, page tables, tracers, queued signals.

Locks, for each process: alloc_lock (task_lock) and siglock, each for a short time. mmap_lock is
not taken (fs/proc/array.c, proc_pid_status, task_state, task_sig; fs/proc/task_mmu.c, task_mem;
Linux 6.1, 6.12 and 7.3).
"""

import heapq
import re
from typing import Dict, List, NamedTuple, Tuple

from kteardown_observe.collector.files import Host, Malformed, Visit, number_in, printable
from kteardown_observe.collector.tally import CountTable, Tally

STATUS_COUNTS = ("swapped_kb", "signals_queued", "tracees", "process_page_tables_kb")
STATUS_LINE = re.compile(rb"^(Uid|TracerPid|VmPTE|VmSwap|SigQ):\s*([0-9]{1,18})\b", re.M)
MAPPED_MOST = 2000
"""So many processes, those with the largest page tables, are kept for the count of mappings."""


class Status(NamedTuple):
    uid: int
    tracer: int
    page_tables_kb: int
    swap_kb: int
    signals: int


def parse_status(text: bytes) -> Status:
    """Read /proc/PID/status; a process without memory has no lines of it. Raises Malformed."""
    found: Dict[bytes, int] = {}
    for match in STATUS_LINE.finditer(text):
        found.setdefault(match.group(1), number_in(match.group(2)))
    if b"Uid" not in found:
        raise Malformed(printable(text))
    return Status(
        uid=found[b"Uid"],
        tracer=found.get(b"TracerPid", 0),
        page_tables_kb=found.get(b"VmPTE", 0),
        swap_kb=found.get(b"VmSwap", 0),
        signals=found.get(b"SigQ", 0),
    )


def read_status(host: Host, counts: CountTable) -> None:
    """Count what the status of processes tells."""
    tallies = {name: Tally() for name in STATUS_COUNTS}
    signals: Dict[int, int] = {}
    largest: List[Tuple[int, int]] = []
    visit = Visit(host, host.user_pids, len(host.user_pids))
    for pid in visit:
        text = visit.read(f"{host.proc}/{pid}/status")
        try:
            status = parse_status(text) if text is not None else None
        except Malformed:
            continue
        if status is None:
            continue
        tallies["swapped_kb"].add_owner(pid, status.swap_kb)
        tallies["process_page_tables_kb"].add_owner(pid, status.page_tables_kb)
        if status.tracer:
            tallies["tracees"].add(status.tracer)
        # All processes of a user show the same number, that of the user.
        signals[status.uid] = max(signals.get(status.uid, 0), status.signals)
        heapq.heappush(largest, (status.page_tables_kb, pid))
        if len(largest) > MAPPED_MOST:
            heapq.heappop(largest)
    host.page_tables = sorted(largest, reverse=True)
    host.page_tables_whole = visit.whole and len(largest) < MAPPED_MOST
    for uid, number in signals.items():
        tallies["signals_queued"].add_owner(uid, number)
    of_users = {"signals_queued": tallies.pop("signals_queued")}
    counts.put_visited(visit, "/proc/PID/status", tallies, host.process_name)
    counts.put_visited(visit, "/proc/PID/status", of_users, lambda uid: f"uid {uid}")
