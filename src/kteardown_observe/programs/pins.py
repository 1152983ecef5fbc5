#!/usr/bin/env drgn
# SPDX-License-Identifier: GPL-2.0-only
"""What keeps the memory cgroups that were removed and are still there.

    drgn pins.py            (as root, on the machine itself)
    drgn pins.py --json

drgn (https://drgn.readthedocs.io) reads the memory of the running kernel through /proc/kcore, and
needs its debug information. Nothing is locked and nothing is written: a cgroup that goes away while
it is read is counted as such. The one file that is read, memory.stat of the root, makes the kernel
sum up the counters of all CPUs.

A removed cgroup stays until nothing refers to it. This program says for each what it has: pages of
files, anonymous memory, swap, memory of sockets, processes that nobody has waited for, other
removed cgroups below it. Made by kteardown observe --pins.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from drgn import FaultError, Object, Program
from drgn.helpers.linux.list import list_for_each_entry

CSS_DYING = 1 << 4
"""include/linux/cgroup-defs.h, 6.1 to 7.3."""
KEPT_BY_PAGES = {
    "page cache": "NR_FILE_PAGES",
    "anonymous memory": "NR_ANON_MAPPED",
}
KEPT_BY_OTHERS = {"swap": "MEMCG_SWAP", "sockets": "MEMCG_SOCK"}
NO_INDEX = 255
"""What mem_cgroup_stats_index has for a counter that memory cgroups do not have."""
PLENTY = 1000
"""After so many cgroups it says on the terminal how far it is."""
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


class Kernel:
    """What differs between kernels, by what their types have."""

    def __init__(self, prog: Program) -> None:
        self.prog = prog
        self.counters = {**KEPT_BY_OTHERS}
        # Since 7.2 the pages of a removed cgroup are given to its parent, but its own counters stay
        # as they were.
        if not prog.type("struct obj_cgroup").has_member("is_root"):
            self.counters = {**KEPT_BY_PAGES, **KEPT_BY_OTHERS}
        # Without what is counted for the cgroups below it, since 6.4.
        has_local = prog.type("struct memcg_vmstats").has_member("state_local")
        self.state = "state_local" if has_local else "state"
        self.index = {name: self._place(name) for name in self.counters.values()}

    def _place(self, counter: str) -> int | None:
        """Where ``memcg_vmstats`` has a counter. It has had a table for that since 6.10."""
        item = int(self.prog[counter])
        try:
            place = int(self.prog["mem_cgroup_stats_index"][item])
        except KeyError:
            return item
        return None if place == NO_INDEX else place

    def pages(self, memcg: Object) -> dict[str, int]:
        """Return the pages that are charged to a cgroup, by what they are."""
        state = getattr(memcg.vmstats, self.state)
        counted = {}
        for reason, counter in self.counters.items():
            place = self.index[counter]
            if place is not None:
                counted[reason] = max(0, int(state[place]))
        return counted


def children(css: Object) -> Iterator[Object]:
    """Yield the cgroups of the next level, removed ones too, which older versions of drgn's own
    walk leave out."""
    head = css.children.address_of_()
    yield from list_for_each_entry("struct cgroup_subsys_state", head, "sibling")


def descendants(css: Object) -> Iterator[Object]:
    """Yield all cgroups below one."""
    for child in children(css):
        yield child
        yield from descendants(child)


def zombies(css: Object) -> int:
    """Return how many tasks of a removed cgroup have exited and were not waited for.

    Nothing runs in a removed cgroup. A set of cgroups exists as long as a task refers to it, which
    a task does until it is released.
    """
    links = css.cgroup.cset_links.address_of_()
    return sum(
        int(link.cset.refcount.refs.counter)
        for link in list_for_each_entry("struct cgrp_cset_link", links, "cset_link")
    )


def kept_by(kernel: Kernel, css: Object) -> dict[str, int]:
    """Return what keeps a removed cgroup, and how much of it: kB, processes or cgroups."""
    below = sum(1 for _ in children(css))
    charged = {}
    # Without local counters, those of the cgroups below would count here, too.
    if kernel.state == "state_local" or not below:
        memcg = Object(kernel.prog, kernel.prog.type("struct mem_cgroup *"), css.value_())
        charged = {reason: pages * _PAGE_KB for reason, pages in kernel.pages(memcg).items()}
    counted = {**charged, "zombies": zombies(css), "removed cgroups below it": below}
    return {reason: number for reason, number in counted.items() if number}


def place_of(css: Object) -> str:
    """Return the path of the closest cgroup above that was not removed."""
    while css.flags & CSS_DYING:
        css = css.parent
    names = []
    while css.parent:
        names.append(css.cgroup.kn.name.string_().decode(errors="backslashreplace"))
        css = css.parent
    return "/" + "/".join(reversed(names))


def survey(prog: Program) -> dict[str, Any]:
    """Return how many memory cgroups were removed and are still there, and what keeps how many.

    A cgroup that several things keep is in several rows of ``kept``. ``went``: whether cgroups went
    away so fast that the walk had to end.
    """
    with suppress(OSError):
        Path("/sys/fs/cgroup/memory.stat").read_bytes()
    kernel = Kernel(prog)
    rows: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    removed = 0
    went = False
    try:
        for css in descendants(prog["root_mem_cgroup"].css.address_of_()):
            if not css.flags & CSS_DYING:
                continue
            reasons = kept_by(kernel, css)
            place = place_of(css)
            removed += 1
            for reason in reasons or {"something else": 0}:
                row = rows[reason, place]
                row[0] += 1
                row[1] += reasons.get(reason, 0)
            if removed % PLENTY == 0 and sys.stderr.isatty():
                print(f"\r{removed:,} removed cgroups", end="", file=sys.stderr)
    except FaultError:
        went = True
    kept = [
        {"by": reason, "below": place, "cgroups": cgroups, "number": number}
        for (reason, place), (cgroups, number) in sorted(
            rows.items(), key=lambda item: (-item[1][0], item[0])
        )
    ]
    return {"kteardown_pins": 1, "removed": removed, "went": went, "kept": kept}


def page(answer: dict[str, Any]) -> str:
    """Return the answer as a table."""
    lines = [f"memory cgroups that were removed but are still there: {answer['removed']:,}"]
    if answer["went"]:
        lines.append("cgroups went away while they were read: there are more; run it again")
    if answer["kept"]:
        lines.append(f"  {'kept by':<24} {'cgroups':>9}  {'how much':>14}  below")
    for row in answer["kept"]:
        unit = "" if row["by"] in ("zombies", "removed cgroups below it") else " kB"
        much = f"{row['number']:,}{unit}" if row["number"] else ""
        below = "".join(c if c.isprintable() else "?" for c in row["below"])
        lines.append(f"  {row['by']:<24} {row['cgroups']:>9,}  {much:>14}  {below}")
    return "\n".join(lines)


if __name__ == "__main__":
    answer = survey(prog)  # type: ignore[name-defined]  # noqa: F821 -- drgn defines it
    print(json.dumps(answer) if "--json" in sys.argv else page(answer))
