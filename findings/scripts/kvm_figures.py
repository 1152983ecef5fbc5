"""The five headline figures under KVM, beside the instruction clock: the table of
findings/results/kvm.

    kvm_figures.py FOLDER [EXPERIMENT...]

Each figure, or those of the experiments that are named, is measured twice on this host: on the
instruction clock, and on the wall clock in L1, the emulated host with KVM of ``tests/kvm``. L1
counts 2 ns for each instruction, so a path of N instructions takes 2 N ns there, and what leaves
the guest takes more. The run directories stay in FOLDER. Prints the rows of the table, as Markdown.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from kvm.l1 import L1  # noqa: E402 - the tests are no package of the project

SILENT_S = 1800.0
"""Seconds of the processor for a run in L1, which prints its progress only to a terminal."""
Point = Mapping[str, int | str]


@dataclass(frozen=True)
class Figure:
    """A metric at one point, or the difference to another point, for each of ``count`` objects."""

    title: str
    arguments: str
    metric: str
    at: Point
    minus: Point = field(default_factory=dict)
    count: int = 1
    ns: float = 2
    """What one unit of the exact figure is expected to be in L1: 2 ns for an instruction, 1 for a
    kB."""

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self.arguments.partition(" ")[0]


FIGURES = (
    Figure(
        "freezing: one more zombie",
        "freezer --workload zombies --variant freezer-skip-exited --set zombies=0,3000",
        "freeze_user_ns",
        {"zombies": 3000},
        {"zombies": 0},
        3000,
    ),
    Figure(
        "CPU quota: longest wait for the lock of a directory",
        "throttle --workload holder --variant sched-task-throttle --cpus 1 "
        "--set what=listing --set quota=20 --set holders=2",
        "longest_stall_ns",
        {"holders": 2},
        # A holder that is out of quota waits for the next period: that is time, and no
        # instructions.
        ns=1,
    ),
    Figure(
        "waiting for any of 2,000 children: until all are reaped",
        "reaping --workload reaper --set how=any --set killed=youngest --set processes=2000",
        "reap_ns",
        {"processes": 2000},
    ),
    Figure(
        "removed cgroups: kB held by each, 32 possible CPUs",
        "dyingcg --workload dyingcg --variant memcg-release-percpu "
        "--set possible_cpus=32 --set cgroups=0,400",
        "footprint_kb",
        {"cgroups": 400},
        {"cgroups": 0},
        400,
        ns=1,
    ),
    Figure(
        "compressed swap: a page",
        "swapfree --workload swapfree --variant zsmalloc-lockless-free@1 --set processes=1 --set "
        "mb=4,12",
        "munmap_ns",
        {"mb": 12},
        {"mb": 4},
        2048,
    ),
)


def main(folder: Path, wanted: Sequence[str]) -> None:
    """Measure all figures, or those of the experiments that are wanted, and print the table."""
    l1 = L1(folder)
    print(
        "| figure | exact, base | with the series | KVM, base | with the series | base / expected |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    try:
        for figure in FIGURES:
            if wanted and figure.experiment not in wanted:
                continue
            exact = _here(figure, folder / f"exact-{figure.experiment}")
            kvm = _in_l1(figure, l1, l1.jobs / f"kvm-{figure.experiment}")
            cells = [*map(_shown, exact), *map(_shown, kvm), f"{kvm[0] / exact[0] / figure.ns:.2f}"]
            print(f"| {figure.title} | {' | '.join(cells)} |", flush=True)
    finally:
        l1.stop()


def _here(figure: Figure, runs: Path) -> tuple[float, float]:
    argv = _command(figure, "instructions", "--seeds", "1")
    subprocess.run(
        argv, check=True, env={**os.environ, "KTEARDOWN_RUNS": str(runs)}, stdout=sys.stderr
    )
    return _values(figure, runs)


def _in_l1(figure: Figure, l1: L1, runs: Path) -> tuple[float, float]:
    command = shlex.join(_command(figure, "wall", "--boots", "1"))
    done = l1.run(f"export KTEARDOWN_RUNS={shlex.quote(str(runs))}\n{command}", silent_s=SILENT_S)
    print(done.output, file=sys.stderr)
    if done.status:
        raise SystemExit(f"{figure.title}: exit status {done.status} in L1")
    return _values(figure, runs)


def _command(figure: Figure, clock: str, *design: str) -> list[str]:
    words = (*shlex.split(figure.arguments), "--clock", clock, *design, "--repetitions", "3")
    return [sys.executable, "-P", "-m", "kteardown", "run", *words]


def _values(figure: Figure, runs: Path) -> tuple[float, float]:
    """Return the figure on base and with the series, of the newest run."""
    newest = max(runs.iterdir())
    rows = json.loads((newest / "result.json").read_text())["comparisons"]
    rows = [
        row for row in rows if row["metric"] == figure.metric and row["variant"] != "base-layout"
    ]
    one, other = (_value(figure, rows, side) for side in ("base", "changed"))
    return one, other


def _value(figure: Figure, rows: list[dict[str, Any]], side: str) -> float:
    at = _median(rows, figure.at, side)
    return (at - (_median(rows, figure.minus, side) if figure.minus else 0)) / figure.count


def _median(rows: list[dict[str, Any]], point: Point, side: str) -> float:
    (row,) = [row for row in rows if point.items() <= row["point"].items()]
    return float(row[side]["median"])


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
