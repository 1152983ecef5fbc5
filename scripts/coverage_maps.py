"""Make the shipped coverage maps (`coverage/`), and say whether they are older than the workloads.

    coverage_maps.py make [SOURCE...]   boot each kernel once for every workload that has changed
                                        since
    coverage_maps.py check              warn if a workload, the agent or the plugin has changed

`coverage/made.json` has a hash of what each workload depends on. A new release of a kernel does not
count as a change.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import astuple, replace
from math import log2
from pathlib import Path

from contents import files_id, listed
from kteardown.coverage.attribute import Counts, DebugInfo
from kteardown.coverage.executed import coverage_of
from kteardown.coverage.maps import (
    CoverageMap,
    WorkloadCoverage,
    counted_points,
    read_map,
    shipped_path,
    write_map,
)
from kteardown.errors import GuestError
from kteardown.inputs.load import load_workload, workload_names
from kteardown.kernels import build
from kteardown.kernels.request import KernelRequest
from kteardown.paths import cache_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.run.boot_once import boot_counted
from kteardown.run.setting import Bootable

ROOT = Path(__file__).parents[1]
SOURCES = ("debian:6.12", "debian:7.2", "debian:7.3")
LEFT_OUT = (
    "freezer_states",
    "throttle_stress",
    "pgrp_stress",
    "wait_stress",
    "lock_stress",
    "uffd_close",
    "freeze_attempt",
    "kernel_threads",
    "hibernate",
)
"""Workloads that are in no map.

The stress tests check invariants, and have no figures that are compared. The first two keep both
CPUs busy for seconds of the guest's time, which takes minutes in the emulator; `lock_stress` and
`uffd_close` need symbols that the base configuration does not have; `pgrp_stress` and `wait_stress`
execute what other workloads execute more often. `freeze_attempt` and `kernel_threads` execute what
`zombies` executes, and only that should be chosen for a change of the freezer. `hibernate` is not
on the base kernel: without HIBERNATION there is no /dev/snapshot.
"""
MADE = ROOT / "coverage" / "made.json"


class _Printer(SilentReporter):
    def note(self, text: str) -> None:
        print(f"  {text}")


def ids() -> dict[str, str]:
    """A hash for each shipped workload: of its description and code, the agent and the plugin."""
    common = [*listed(ROOT, ["agent/core", "agent/lib"]), "agent/workload.h", "plugins/coverage.c"]
    return {
        name: files_id(ROOT, [*common, *_files_of(name)])
        for name in workload_names()
        if name not in LEFT_OUT
    }


def _files_of(name: str) -> list[str]:
    code = [f"agent/{folder}/{name}" for folder in ("workloads", "stress")]
    described = [f"workloads/{name}.toml", f"workloads/stress/{name}.toml"]
    return listed(ROOT, [*code, *(f"{path}.c" for path in code), *described])


def stale() -> list[str]:
    """What is older than the tree, one line each; empty if all maps are current."""
    made = json.loads(MADE.read_text()) if MADE.is_file() else {}
    now = ids()
    lines = []
    for source in SOURCES:
        then = made.get(source, {}) if shipped_path(source).is_file() else {}
        old = [name for name, content_id in now.items() if then.get(name) != content_id]
        if old:
            lines.append(
                f"{source}: {len(old)} of {len(now)} workloads changed since: {', '.join(old)}"
            )
    return lines


def make(sources: list[str]) -> None:
    """Bring the map of each source up to date, and print what that cost.

    It is written after every workload: if this is interrupted, the next one goes on.
    """
    made = json.loads(MADE.read_text()) if MADE.is_file() else {}
    for source in sources:
        now = ids()
        path = shipped_path(source)
        shipped = read_map(path) if path.is_file() else CoverageMap("")
        # A workload that was removed leaves the map, too.
        kept = {name: counted for name, counted in shipped.workloads.items() if name in now}
        shipped = replace(shipped, workloads=kept)
        then = {
            name: content_id for name, content_id in made.get(source, {}).items() if name in kept
        }
        for name in (name for name, content_id in now.items() if then.get(name) != content_id):
            began = time.monotonic()
            collected = collect(name, source, _Printer())
            shipped = rounded(
                CoverageMap(collected.source, {**shipped.workloads, **collected.workloads})
            )
            write_map(path, shipped)
            made[source] = then = {**then, name: now[name]}
            MADE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
            _print_cost(collected.workloads[name], time.monotonic() - began)
        points = sum(len(workload.points) for workload in shipped.workloads.values())
        seconds = sum(workload.seconds for workload in shipped.workloads.values())
        print(
            f"{source}: {len(shipped.workloads)} boots, {seconds:.0f} s, {points} points; "
            f"{len(shipped.functions)} functions, {path.stat().st_size / 1024:.0f} kB"
        )


def collect(name: str, source: str, reporter: Reporter) -> CoverageMap:
    """Return what the workload ``name`` executes on the base kernel of ``source``, booted with the
    plugin.

    The kernel has the base configuration: workloads that ask for more of it (``config``) are
    counted without. A workload whose guest fails has no points.
    """
    request = KernelRequest(name="base", source=source)
    image = build.ensure([request], cache_dir=cache_dir(), reporter=reporter).images["base"]
    workload, kernel = load_workload(name), Bootable(image.image, image.modules)
    points = counted_points(workload)
    failed: tuple[str, ...] = ()
    coverage = WorkloadCoverage(name, (), frozenset())
    # A point at which this kernel hangs or panics must not take the others with it.
    for chosen in (points, points[:1]):
        try:
            booted = boot_counted(kernel, workload, chosen, reporter)
        except GuestError as error:
            failed = (*failed, f"{len(chosen)} points: {error.message}")
        else:
            coverage = coverage_of(workload, booted, DebugInfo(image.image.parent))
            break
    return CoverageMap(image.source, {name: replace(coverage, failed=(*failed, *coverage.failed))})


def rounded(coverage: CoverageMap) -> CoverageMap:
    """Return ``coverage`` with counts within 10%, which compress better: it is for choosing a
    workload."""
    workloads = {}
    for name, workload in coverage.workloads.items():
        points = []
        for point in workload.points:
            inside = {
                function: Counts(*map(_rounded, astuple(n))) for function, n in point.inside.items()
            }
            points.append(replace(point, inside=inside))
        workloads[name] = replace(workload, points=tuple(points))
    return replace(coverage, workloads=workloads)


def _rounded(count: int) -> int:
    return round(2 ** (round(4 * log2(count)) / 4)) if count else 0


def _print_cost(workload: WorkloadCoverage, took: float) -> None:
    inside = {function for point in workload.points for function in point.inside}
    print(
        f"{workload.name:16} boot {workload.seconds:5.1f} s, in all {took:5.1f} s  "
        f"{len(workload.points):2} points  {len(inside):5} functions inside, "
        f"{len(workload.outside):5} outside only",
        flush=True,
    )
    for failed in workload.failed:
        print(f"    could not run: {failed}")


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
