"""Timers and mappings of processes, from /proc/PID/timers and /proc/PID/maps: the last readings.

Locks: in Linux 6.1 and 6.12, /proc/PID/timers takes siglock of the process for each page of
text; in 7.3 RCU, and it_lock of each timer (fs/proc/base.c, timers_start, show_timer). In 6.1
and 6.12, /proc/PID/maps takes mmap_lock for reading for each page of text, about 40 mappings; in
7.2 and 7.3 RCU and the lock of one mapping at a time (from 6.17 on, with CONFIG_PER_VMA_LOCK),
and mmap_lock only if that is contended (fs/proc/task_mmu.c, m_start, lock_vma_range,
lock_next_vma). While the process holds its mmap_lock for writing, this reading waits, and only a
kill ends the wait.
"""

from kteardown_observe.collector.files import Host, Unreadable, Visit
from kteardown_observe.collector.tally import CountTable, Tally

TIMERS_MOST = 8 << 20
MAPS_MOST = 32 << 20


def read_timers(host: Host, counts: CountTable) -> None:
    """Count POSIX timers."""
    tally = Tally()
    visit = Visit(host, host.user_pids, len(host.user_pids))
    for pid in visit:
        lines = host.lines(f"{host.proc}/{pid}/timers", TIMERS_MOST)
        try:
            number = sum(1 for line in lines if line.startswith(b"ID:"))
        except Unreadable as failure:
            visit.fail(failure)
            continue
        visit.read_ok += 1
        visit.whole = visit.whole and lines.whole
        tally.add_owner(pid, number)
    counts.put_visited(visit, "/proc/PID/timers", {"posix_timers": tally}, host.process_name)


def read_mappings(host: Host, counts: CountTable) -> None:
    """Count mappings, beginning with the processes that have the largest page tables."""
    tally = Tally()
    pids = [pid for _, pid in host.page_tables]
    visit = Visit(host, pids, len(host.user_pids), host.page_tables_whole)
    for pid in visit:
        lines = host.lines(f"{host.proc}/{pid}/maps", MAPS_MOST)
        try:
            number = sum(1 for _ in lines)
        except Unreadable as failure:
            visit.fail(failure)
            continue
        visit.read_ok += 1
        visit.whole = visit.whole and lines.whole
        tally.add_owner(pid, number)
    counts.put_visited(visit, "/proc/PID/maps", {"vmas": tally}, host.process_name)
