"""Make the shipped coverage maps (`coverage/`), and say whether they are older than the workloads.

    coverage_maps.py make [SOURCE...]   boots each kernel once for every workload that has changed since
    coverage_maps.py check              warns if a workload, the agent or the plugin has changed since

The content ids of what each workload depends on are in `coverage/made.json`. A new release of a kernel makes
no map stale, as it makes no published figure stale.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from content_ids import agent_files, files_id, text_id
from kteardown.coverage.collect import collect
from kteardown.coverage.maps import CoverageMap, read_map, rounded, shipped_path, write_map
from kteardown.coverage.points import points_of
from kteardown.inputs.load import load_workload, workload_names
from kteardown.progress import SilentReporter

ROOT = Path(__file__).parents[1]
SOURCES = ("debian:6.12", "debian:7.2", "debian:7.3")
LEFT_OUT = ("freezer_states", "throttle_stress")
"""Workloads that keep both CPUs busy for seconds of the guest's time, which takes minutes in the emulator.

They check invariants, and have no figures that are compared.
"""
MADE = ROOT / "coverage" / "made.json"


class _Printer(SilentReporter):
    def note(self, text: str) -> None:
        print(f"  {text}")


def ids() -> dict[str, str]:
    """The content id of each shipped workload: its description, code and points, and the plugin."""
    found = {}
    for name in workload_names():
        if name not in LEFT_OUT:
            files = [*agent_files(ROOT, [name]), f"workloads/{name}.toml", "plugins/coverage.c"]
            points = json.dumps(points_of(load_workload(name)))
            found[name] = text_id(files_id(ROOT, files) + points)
    return found


def stale() -> list[str]:
    """What is older than the tree, one line each; empty if all maps are current."""
    made = json.loads(MADE.read_text()) if MADE.is_file() else {}
    now = ids()
    lines = []
    for source in SOURCES:
        then = made.get(source, {}) if shipped_path(source).is_file() else {}
        old = [name for name, known in now.items() if then.get(name) != known]
        if old:
            lines.append(f"{source}: {len(old)} of {len(now)} workloads changed since: {', '.join(old)}")
    return lines


def make(sources: list[str]) -> None:
    """Collect the map of each source, and print what it cost."""
    made = json.loads(MADE.read_text()) if MADE.is_file() else {}
    for source in sources:
        began, now = time.monotonic(), ids()
        then = made.get(source, {}) if shipped_path(source).is_file() else {}
        old = [name for name, known in now.items() if then.get(name) != known]
        found = collect(old, source, _Printer())
        kept = read_map(shipped_path(source)).workloads if then else {}
        workloads = {name: found.workloads.get(name) or kept[name] for name in now}
        write_map(shipped_path(source), rounded(CoverageMap(found.source, workloads)))
        made[source] = now
        MADE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
        _print_cost(source, found, time.monotonic() - began)
        size = shipped_path(source).stat().st_size
        print(f"{source}: {len(workloads)} workloads in {size / 1024:.0f} kB")


def _print_cost(source: str, found: CoverageMap, took: float) -> None:
    for workload in found.workloads.values():
        inside = {function for point in workload.points for function in point.inside}
        print(
            f"{workload.name:16} {workload.seconds:5.1f} s  {len(workload.points):2} points  "
            f"{len(inside):5} functions inside, {len(workload.outside):5} outside only"
        )
        for failed in workload.failed:
            print(f"    could not run: {failed}")
    boots = sum(workload.seconds for workload in found.workloads.values())
    print(
        f"{source}: {len(found.workloads)} workloads counted; boots of {boots:.0f} s, now or before; "
        f"{took:.0f} s in all; {len(found.functions())} functions"
    )


def main() -> int:
    """Do what the first argument says."""
    if sys.argv[1:2] == ["make"]:
        make(sys.argv[2:] or list(SOURCES))
    elif sys.argv[1:] == ["check"]:
        for line in stale():
            print(f"warning: coverage map of {line}; `make coverage` makes it again")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
