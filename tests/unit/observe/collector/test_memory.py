"""Memory of the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector.files import Host, Malformed, Unreadable
from kteardown_observe.collector.memory import (
    list_caches,
    parse_meminfo,
    parse_mm_stat,
    read_memory,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
MEMINFO = b"""\
MemTotal:       24683652 kB
SwapTotal:       2097148 kB
SwapFree:        2000000 kB
Zswap:              1024 kB
Zswapped:           4096 kB
Slab:            2426964 kB
SUnreclaim:       126464 kB
KernelStack:        1936 kB
PageTables:         3744 kB
Percpu:              856 kB
HugePages_Total:      10
HugePages_Free:        4
Hugepagesize:       2048 kB
"""


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_meminfo, text)
    only_malformed(parse_mm_stat, text)


def cache(folder: Path, name: str, slabs: bytes, order: int, reclaimable: bool) -> None:
    files = {"slabs": slabs, "order": b"%d\n" % order, "reclaim_account": b"%d\n" % reclaimable}
    write(folder / "sys/kernel/slab" / name, files)


def test_counts_of_a_machine(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"meminfo": MEMINFO})
    cache(tmp_path, "dentry", b"100 N0=100\n", 1, True)
    cache(tmp_path, ":0000192", b"60 N0=40 N1=20\n", 0, False)
    cache(tmp_path, "empty", b"0\n", 0, False)
    for name in ("request", "kmalloc-192", "audit"):
        (tmp_path / "sys/kernel/slab" / name).symlink_to(":0000192")
    block = tmp_path / "sys/devices/virtual/block"
    write(block, {"zram0/mm_stat": b" 8192000 2048000 2100000 0 0 0 0 0 0\n", "loop0/size": b"0"})
    read_memory(host, counts)

    numbers = {name: count["number"] for name, count in counts.counts.items()}
    assert numbers == {
        "percpu_kb": 856,
        "slab_kb": 2426964,
        "slab_unreclaimable_kb": 126464,
        "kernel_stack_kb": 1936,
        "page_tables_kb": 3744,
        "swap_used_kb": 97148,
        "zswap_kb": 1024,
        "zswapped_kb": 4096,
        "huge_pages": 6,
        "zram_kb": 2000,
        "zram_stored_kb": 8000,
    }
    merged = {"name": "kmalloc-192 and 2 more", "number": 60 * PAGE_KB}
    assert counts.counts["slab_unreclaimable_kb"]["largest"] == [merged]
    dentry = {"name": "dentry", "number": 200 * PAGE_KB}
    assert counts.counts["slab_kb"]["largest"] == [dentry, merged]
    assert counts.counts["zram_kb"]["largest"] == [{"name": "zram0", "number": 2000}]
    assert not counts.missing


def test_an_older_kernel_has_no_percpu(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"meminfo": MEMINFO.replace(b"Percpu", b"Percy")})
    read_memory(host, counts)
    assert "percpu_kb" not in counts.counts
    missing = {name for entry in counts.missing for name in entry["counts"]}
    assert {"percpu_kb", "zram_kb", "slab_kb"} <= missing, "there is no /sys"


def test_a_cache_with_an_endless_order(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"meminfo": MEMINFO})
    cache(tmp_path, "strange", b"1\n", 10**15, False)
    cache(tmp_path, "damaged", b"x\n", 0, False)
    read_memory(host, counts)
    assert counts.counts["slab_kb"]["largest"][0]["number"] == PAGE_KB << 20
    assert {entry["reason"] for entry in counts.missing if "slab_kb" in entry["counts"]} == {
        "error"
    }


def test_names_of_caches_of_this_machine() -> None:
    try:
        names = list_caches(Host())
    except Unreadable:
        pytest.skip("this kernel has no /sys/kernel/slab")
    assert names


def test_meminfo_that_is_damaged() -> None:
    with pytest.raises(Malformed):
        parse_meminfo(b"Slab: many kB\n")
