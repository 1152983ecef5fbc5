"""Documents as the collector writes them, for tests."""

from __future__ import annotations

import json
from typing import Any

from kteardown_observe.counts import MachineCounts, parse_counts


def document(**changes: Any) -> dict[str, Any]:
    """Return a document of a machine on which nothing is counted; ``changes`` replace its keys."""
    return {
        "kteardown_counts": 1,
        "taken": {
            "at_s": 1.79e9,
            "wall_s": 0.8,
            "cpu_s": 0.6,
            "peak_kb": 21000,
            "cpu_limit_s": 2.0,
            "user": "root",
            "python": "3.6.9",
            "readings": [{"name": "processes", "cpu_s": 0.2, "files": 812, "complete": True}],
        },
        "machine": {
            "release": "6.12.117+deb12-amd64",
            "arch": "x86_64",
            "possible_cpus": 32,
            "online_cpus": 4,
            "numa_nodes": 1,
            "memory_kb": 16_000_000,
            "uptime_s": 1000.0,
            "cgroups": "v2",
            "container": False,
            "config": None,
            "sysctls": {},
        },
        "counts": {},
        "missing": [],
        "calibration": None,
        "rates": None,
        **changes,
    }


def counted(number: int, *largest: tuple[str, int], complete: bool = True) -> dict[str, Any]:
    """Return one count; ``largest``: owners, each with its number."""
    owners = [{"name": name, "number": amount} for name, amount in largest]
    return {"number": number, "complete": complete, "largest": owners}


def counts(release: str = "6.12.117+deb12-amd64", **numbers: Any) -> MachineCounts:
    """Return the counts of a machine that can suspend, with ``numbers``, each as ``counted``
    returns it."""
    whole = document(counts={"sleep_states": counted(2), **numbers})
    whole["machine"]["release"] = release
    return parse_counts(json.dumps(whole).encode(), "counts.json")
