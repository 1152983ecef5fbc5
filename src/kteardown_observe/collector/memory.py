"""Memory of the kernel: /proc/meminfo, /sys/kernel/slab, and mm_stat of each zram device.

Locks: swap_lock (mm/swapfile.c, si_swapinfo) for /proc/meminfo, whose other numbers are sums
over CPUs without a lock. The sizes of caches are from /sys/kernel/slab, where ``slabs`` and
``order`` take no lock (mm/slub.c, show_slab_objects with SO_ALL). /proc/slabinfo is not read: it
takes slab_mutex, and list_lock of each cache with interrupts off while it walks all partial
slabs (get_slabinfo, count_partial; in 6.12 and 7.3 at most 10,000 of them). mm_stat of zram
takes a lock of the device for reading (drivers/block/zram/zram_drv.c, mm_stat_show). Linux 6.1,
6.12 and 7.3.
"""

import os
import re
from typing import Dict, List, Tuple

from kteardown_observe.collector.files import (
    Host,
    Malformed,
    Unreadable,
    number_in,
    printable,
    shown,
)
from kteardown_observe.collector.tally import LARGEST, CountTable, Tally, text_of

MEMINFO_COUNTS = {
    "percpu_kb": "Percpu",
    "slab_kb": "Slab",
    "slab_unreclaimable_kb": "SUnreclaim",
    "kernel_stack_kb": "KernelStack",
    "page_tables_kb": "PageTables",
    "zswap_kb": "Zswap",
    "zswapped_kb": "Zswapped",
}
"""The line of /proc/meminfo for each count."""
SLAB_CHECKED = 40
"""Of so many of the largest caches it is read whether their memory is reclaimable."""


def parse_meminfo(text: bytes) -> Dict[str, int]:
    """Read /proc/meminfo: kB by name, or plain numbers for huge pages. Raises Malformed."""
    values = {}
    for line in text.splitlines():
        name, _, value = line.partition(b":")
        fields = value.split()
        if fields:
            values[printable(name)] = number_in(fields[0])
    return values


def parse_mm_stat(text: bytes) -> Dict[str, int]:
    """Read mm_stat of a zram device: kB of what is stored and of its compressed form.

    Raises Malformed.
    """
    fields = text.split()
    if len(fields) < 3:
        raise Malformed(printable(text))
    return {
        "zram_stored_kb": number_in(fields[0]) // 1024,
        "zram_kb": number_in(fields[1]) // 1024,
    }


def read_memory(host: Host, counts: CountTable) -> None:
    """Count memory of the kernel; raises Unreadable or Malformed without /proc/meminfo."""
    values = parse_meminfo(host.read(f"{host.proc}/meminfo"))
    for name, line in MEMINFO_COUNTS.items():
        if line in values:
            counts.put(name, values[line])
        else:
            counts.miss([name], "not there", f"no {line} in /proc/meminfo")
    counts.put("swap_used_kb", values.get("SwapTotal", 0) - values.get("SwapFree", 0))
    if "HugePages_Total" in values:
        used = values["HugePages_Total"] - values.get("HugePages_Free", 0)
        counts.put("huge_pages", used)
    else:
        counts.miss(["huge_pages"], "not there", "no HugePages_Total in /proc/meminfo")
    _read_slabs(host, counts)
    _read_zram(host, counts)


def _read_slabs(host: Host, counts: CountTable) -> None:
    """Add the largest caches to the counts of slabs, which only root can see."""
    names = ("slab_kb", "slab_unreclaimable_kb")
    sizes: List[Tuple[int, str]] = []
    visit_failure = None
    try:
        caches = list_caches(host)
    except Unreadable as failure:
        counts.miss(names, failure.reason, f"largest caches: {failure}")
        return
    page_kb = os.sysconf("SC_PAGE_SIZE") // 1024
    for folder in caches:
        path = f"{host.sys}/kernel/slab/{folder}"
        try:
            slabs, order = host.number(f"{path}/slabs"), host.number(f"{path}/order")
        except (Unreadable, Malformed) as failure:
            visit_failure = failure
            continue
        sizes.append((slabs * page_kb << min(max(order, 0), 20), folder))
    if visit_failure is not None:
        reason = getattr(visit_failure, "reason", "error")
        counts.miss(names, reason, f"largest caches: {visit_failure}")
    for size_kb, folder in sorted(sizes, reverse=True)[:SLAB_CHECKED]:
        _add_cache(host, counts, folder, caches[folder], size_kb)


def list_caches(host: Host) -> Dict[str, str]:
    """Return the names of caches by their folders. Caches of one size can share a folder.

    Then links with their names point to it. Raises Unreadable.
    """
    caches: Dict[str, str] = {}
    links: Dict[str, List[str]] = {}
    for entry in host.names(f"{host.sys}/kernel/slab"):
        if entry.is_symlink():
            links.setdefault(host.link(entry.path), []).append(entry.name)
        elif entry.is_dir(follow_symlinks=False):
            caches[entry.name] = entry.name
    for folder in caches:
        names = sorted(links.get(folder, []), key=lambda name: (name[:8] != "kmalloc-", name))
        if len(names) > 1:
            caches[folder] = f"{names[0]} and {len(names) - 1} more"
        elif names:
            caches[folder] = names[0]
    return caches


def _add_cache(host: Host, counts: CountTable, folder: str, name: str, size_kb: int) -> None:
    """Add a cache to the largest ones, in the order of their sizes."""
    try:
        reclaimable = host.number(f"{host.sys}/kernel/slab/{folder}/reclaim_account") == 1
    except (Unreadable, Malformed):
        reclaimable = False
    for count in ("slab_kb",) if reclaimable else ("slab_kb", "slab_unreclaimable_kb"):
        if count in counts.counts:
            largest = counts.counts[count].setdefault("largest", [])
            if len(largest) < LARGEST and size_kb:
                largest.append({"name": shown(name), "number": size_kb})


def _read_zram(host: Host, counts: CountTable) -> None:
    names = ("zram_kb", "zram_stored_kb")
    tallies = {name: Tally() for name in names}
    folder = f"{host.sys}/devices/virtual/block"
    try:
        devices = sorted(e.name for e in host.names(folder) if re.match(r"zram[0-9]+\Z", e.name))
        for device in devices:
            for name, size_kb in parse_mm_stat(host.read(f"{folder}/{device}/mm_stat")).items():
                tallies[name].add_owner(device.encode(), size_kb)
    except Unreadable as failure:
        counts.missed(names, failure)
        return
    for name in names:
        counts.put(name, tallies[name].number, largest=tallies[name].largest(text_of))
