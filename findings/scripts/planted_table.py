"""The table of ``findings/observe.md``: what ``kteardown observe`` predicts, and what was measured.

    findings/scripts/planted_table.py keep RECORD...     reduce records of guests, and keep them
    findings/scripts/planted_table.py table              print the table

A record is what ``python -m vm.planted.guest --json`` writes (from the folder ``tests``): a guest
in which objects were made, counted by the collector, and released. The prediction is by the laws of
*another* release than that of the guest, if it was measured there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from claims import ROOT
from kteardown.catalogue.problems import find_problem, load_problems
from kteardown_observe.counts import ObservedMachine
from kteardown_observe.estimate import CostEstimate, estimate, estimate_by

RECORDS = ROOT / "findings/observe/records.json"
_MANY_CPUS = 8
_OTHER = {"6.12": "7.3", "7.3": "6.12"}


@dataclass(frozen=True)
class Stand:
    """The problem that a planted one stands for, and how many objects of its law one is."""

    problem: str
    objects: float = 1


PLANTED = {
    "zombies": Stand("zombies_parent"),
    "zombies_group": Stand("zombies_job"),
    "threads": Stand("threads"),
    "vmas": Stand("vmas", 2),
    "posix_timers": Stand("posix_timers"),
    "swapped_pages": Stand("swapped", 4),
    "flocks": Stand("flocks"),
    "posix_locks_unlocked": Stand("posix_locks"),
    "ofd_locks": Stand("ofd_locks"),
    "leases": Stand("leases"),
    "inotify_watches": Stand("inotify_watches"),
    "epoll_items": Stand("epoll_items"),
    "eventfds": Stand("eventfds"),
    "timerfds": Stand("timerfds"),
    "pipes": Stand("pipes"),
    "memfds": Stand("memfds"),
    "unix_pairs": Stand("unix_sockets", 2),
    "unix_in_flight": Stand("unix_in_flight"),
    "ptys": Stand("ptys"),
    "keys_unlinked": Stand("keys"),
    "dying_cgroups_pages": Stand("dying_memory_cgroups"),
    "dying_cgroups_sockets": Stand("dying_memory_cgroups"),
    "memory_cgroups": Stand("memory_cgroups"),
    "mounts": Stand("mounts"),
    "kept_network_namespaces": Stand("network_namespaces"),
    "dummies_one_by_one": Stand("dummies"),
    "veths_one_by_one": Stand("veths"),
    "neighbours4": Stand("neighbours4"),
    "addresses4_one_by_one": Stand("addresses4"),
    "msg_messages": Stand("msg_messages"),
    "msg_queues": Stand("msg_queues"),
}


def reduced(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the table needs of a record."""
    counted = json.loads(record["collected"]["planted"]["printed"])["counts"]
    clean = json.loads(record["collected"]["clean"]["printed"])["counts"]
    problems = {}
    for name, problem in record["problems"].items():
        released = problem["released"]
        empty = problem["empty"]
        work = sum(released[part] - empty[part] for part in ("sync_ns", "deferred_ns"))
        problems[name] = {
            "objects": problem["n"],
            "is_exact": all(_is_exact(entry, counted, clean) for entry in problem["expected"]),
            "instructions": work,
            "held_kb": problem["held_kb"]["Slab"] + problem["held_kb"]["Percpu"],
        }
    keys = ("source", "release", "cpus", "possible_cpus")
    return {**{key: record[key] for key in keys}, "problems": problems}


def _is_exact(entry: dict[str, Any], counted: dict[str, Any], clean: dict[str, Any]) -> bool:
    """Return whether the largest owner of a count has what was planted, or the machine at least so
    many more."""
    count = counted.get(entry["count"])
    if count is None:
        return False
    if entry["largest"]:
        return any(owner["number"] == entry["largest"] for owner in count.get("largest", ()))
    before = clean.get(entry["count"], {"number": 0})["number"]
    return bool(count["number"] - before >= (entry["number"] or 0))


def predicted(record: dict[str, Any], name: str) -> tuple[CostEstimate | None, str]:
    """Return the prediction for a planted problem, and the release of its law."""
    stand = PLANTED[name]
    problem = find_problem(stand.problem)
    number = round(record["problems"][name]["objects"] * stand.objects)
    release = ".".join(record["release"].split(".")[:2])
    machine = ObservedMachine(release=record["release"], possible_cpus=record["possible_cpus"])
    other = estimate_by(problem, number, machine, _OTHER[release])
    if other:
        return other, _OTHER[release]
    return estimate(problem, number, machine), release


@dataclass(frozen=True)
class Prediction:
    """A prediction beside what was measured, in instructions or kB."""

    planted: str
    objects: int
    is_exact: bool
    release: str
    cpus: int
    possible_cpus: int
    law: str
    cost: CostEstimate
    measured: float

    @property
    def is_inside(self) -> bool:
        return self.cost.low <= self.measured <= self.cost.high

    @property
    def ratio(self) -> float:
        return self.measured / self.cost.value


def predictions(records: Sequence[dict[str, Any]]) -> list[Prediction]:
    """Return every prediction, by the order of the catalogue.

    Of a guest with many possible CPUs only memory counts: its grace periods last longer than a
    planted release is watched.
    """
    found = []
    for record in records:
        for name in record["problems"]:
            # Since 7.2, pages keep no removed cgroup.
            gone = name == "dying_cgroups_pages" and record["release"].startswith("7.")
            if name in PLANTED and not gone:
                prediction = _prediction(record, name)
                if prediction.cost.unit == "kb" or record["possible_cpus"] < _MANY_CPUS:
                    found.append(prediction)
    order = {problem.name: at for at, problem in enumerate(load_problems())}
    return sorted(found, key=lambda it: (order[PLANTED[it.planted].problem], it.planted))


def _prediction(record: dict[str, Any], name: str) -> Prediction:
    problem = record["problems"][name]
    cost, law = predicted(record, name)
    assert cost is not None, name
    return Prediction(
        name,
        problem["objects"],
        problem["is_exact"],
        ".".join(record["release"].split(".")[:2]),
        record["cpus"],
        record["possible_cpus"],
        law,
        cost,
        problem["held_kb"] if cost.unit == "kb" else problem["instructions"],
    )


HEADINGS = ("planted", "objects", "guests", "counts exact", "inside", "measured / predicted")


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the table as Markdown, and a line that sums it up."""
    every = predictions(records)
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|--:|--:|--:|--:|--:|"]
    for name, group in groupby(every, key=lambda it: it.planted):
        these = list(group)
        sizes = sorted({it.objects for it in these})
        ratios = sorted(it.ratio for it in these)
        row = (
            name.replace("_", " "),
            f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sizes[0]:,}",
            str(len(these)),
            str(sum(it.is_exact for it in these)),
            str(sum(it.is_inside for it in these)),
            f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
        )
        lines.append(f"| {' | '.join(row)} |")
    inside = sum(it.is_inside for it in every)
    exact = sum(it.is_exact for it in every)
    lines += ["", f"{inside} of {len(every)} are inside, and {exact} counts are exact."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["keep", "table"])
    parser.add_argument("records", nargs="*", type=Path)
    options = parser.parse_args()
    if options.what == "keep":
        RECORDS.parent.mkdir(parents=True, exist_ok=True)
        kept = [reduced(json.loads(path.read_bytes())) for path in options.records]
        RECORDS.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(json.loads(RECORDS.read_text())))


if __name__ == "__main__":
    main()
