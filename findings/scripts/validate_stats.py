#!/usr/bin/env python3
"""Test the statistics in simulations with known truth: coverage, rate of false verdicts, power.

Prints a table for each part and writes it to findings/results/simulations; `--quick` only prints,
from fewer runs. Takes minutes on one core. Exits with 1 if a promised rate is not kept.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from kteardown.analysis.sequential import looks, parse_until  # noqa: E402
from kteardown.model.clock import Clock  # noqa: E402
from markdown_table import markdown  # noqa: E402
from unit import law_validation  # noqa: E402
from unit import validation as v  # noqa: E402
from unit.worlds import WORLDS, World, experiment, normal  # noqa: E402

BOOTS = (2, 3, 4, 6, 8, 10, 15, 20)
NOISES = (0.005, 0.01, 0.02, 0.03, 0.05)
POWER_BOOTS = (4, 6, 8, 10, 15, 20, 30)
SEEDS = World(name="boots and repetitions differ by 10%", shifts=normal(0.1), jitter=normal(0.1))
TRIALS = World(name="boots differ by 5%, trials by 40%", shifts=normal(0.05), jitter=normal(0.4))
DESIGNS: tuple[tuple[World, int, Clock], ...] = (
    (TRIALS, 3, "instructions"),
    (SEEDS, 3, "instructions"),
    (WORLDS[1], 4, "wall"),
    (WORLDS[4], 4, "wall"),
    (WORLDS[7], 6, "wall"),
    (WORLDS[1], 10, "wall"),
)
"""World, boots (seeds) and clock of the reports with eight points and two variants."""
TRUTHS: dict[str, dict[int, float]] = {
    "no change": {},
    "all points -50%": dict.fromkeys(range(8), 0.5),
    "half of the points -50%": dict.fromkeys(range(4), 0.5),
    "seven points -50%, one +100%": {**dict.fromkeys(range(7), 0.5), 7: 2.0},
    "four points -50%, four +100%": {
        **dict.fromkeys(range(4), 0.5),
        **dict.fromkeys(range(4, 8), 2.0),
    },
}
"""By name, the ratios of the first variant at the points that change; the second does not
change."""
IN_REPORTS = tuple(WORLDS[n] for n in (1, 3, 4, 7, 8, 10))
LAWS: dict[str, Callable[[float], float]] = {
    "linear": law_validation.straight,
    "n log n": lambda n: 2e4 + 20 * n * math.log(max(n, 1)),
    "quadratic": lambda n: 2e4 + 0.01 * n**2,
    "power 1.5": lambda n: 2e4 + 3 * n**1.5,
    "power 0.5": lambda n: 2e3 + 30 * n**0.5,
    "constant": lambda n: 5e4,
    "linear, 3% square": lambda n: 2e4 + 200 * n + 0.0002 * n**2,
    "linear, 10% square": lambda n: 2e4 + 185 * n + 0.0007 * n**2,
    "saturating": lambda n: 2e4 + 6e6 * (1 - math.exp(-n / 6e4)),
}
Rows = list[dict[str, Any]]


def coverage(runs: int) -> Iterator[dict[str, Any]]:
    """Coverage of the 95% interval of a true ratio of 0.8."""
    for world in WORLDS:
        for boots in BOOTS:
            found = v.coverage(world, boots, 0.8, runs)
            yield {"world": world.name, "boots": boots, "runs": runs, **asdict(found)}


def false_verdicts(runs: int) -> Iterator[dict[str, Any]]:
    """Reports of base compared with itself: three points, two variants, the A/A twin, Holm."""
    for world in IN_REPORTS:
        for boots in (4, 6, 10, 20):
            rate = v.false_verdicts(world, boots, runs)
            yield {"world": world.name, "boots": boots, "runs": runs, "false": rate}


def single_false_verdicts(runs: int) -> Iterator[dict[str, Any]]:
    """Reports of one comparison, where Holm's correction does nothing."""
    for world in IN_REPORTS:
        for boots in (4, 10):
            rate = v.false_verdicts(world, boots, runs, points=1, variants=1)
            yield {"world": world.name, "boots": boots, "runs": runs, "false": rate}


def metric_coverage(runs: int) -> Iterator[dict[str, Any]]:
    """Coverage of the 95% interval over eight points, whose changes are around a ratio of 0.8."""
    for own in (False, True):
        for world in WORLDS:
            for boots in BOOTS:
                found = v.metric_coverage(world, boots, 0.8, runs, own=own)
                noise = "drawn at each point" if own else "the same at all points"
                name = f"{world.name}; noise of a boot {noise}"
                yield {"world": name, "boots": boots, "runs": runs, **asdict(found)}


def rules(runs: int) -> Iterator[dict[str, Any]]:
    """Reports of eight points and two variants, of which the first changes.

    By Holm's correction over all comparisons (`all_`) and by gatekeeping. `false`: reports with any
    false verdict; `metric`: the metric is better, or mixed where changes are opposite; `any`,
    `whole`: one or every changed point has its right verdict; `points`: the share of changed points
    that have it.
    """
    for world, boots, clock in DESIGNS:
        wanted = experiment(
            boots, points=8, variants=2, repetitions=1 if clock != "wall" else 3, clock=clock
        )
        for truth, but in TRUTHS.items():
            found = v.ruled(world, wanted, runs, but=but)
            row = {"world": world.name, "boots": boots, "truth": truth, "runs": runs}
            yield {**row, **asdict(found)}


def power(runs: int) -> Iterator[dict[str, Any]]:
    """How often a cost that is 5% higher is called worse, with an A/A twin; boots differ by
    ``noise``."""
    for noise in NOISES:
        world = World(name="", block=0.05, shifts=normal(noise), jitter=normal(0.01))
        for boots in POWER_BOOTS:
            found = v.verdicts(world, 1.05, experiment(boots), runs)
            yield {"noise": noise, "boots": boots, "runs": runs, "found": found["worse"]}


def detectable(runs: int) -> Iterator[dict[str, Any]]:
    """How often an effect as large as the typical ``mde`` is called worse, with an A/A twin."""
    for world in (WORLDS[1], WORLDS[2], WORLDS[4]):
        for boots in (4, 10, 20):
            size = v.coverage(world, boots, 1.0, runs, twin=True).mde
            found = v.verdicts(world, 1 + size, experiment(boots), runs)
            row = {"world": world.name, "boots": boots, "runs": runs}
            yield {**row, "mde": size, "found": found["worse"]}


def sequential(runs: int) -> Iterator[dict[str, Any]]:
    """Runs that stop when certain, at most 20 blocks; a ratio of 1 is base compared with itself.

    `wrong`: reports with a false verdict; `covers`: intervals at the stop that contain the true
    ratio; `sure`: ended by the rule; `blocks`: on average.
    """
    for world in (WORLDS[1], WORLDS[4], WORLDS[7]):
        for text, ratio in (("verdict", 1.0), ("verdict", 0.9), ("verdict", 0.7), ("ci=10%", 0.9)):
            found = v.stopped(world, ratio, 20, parse_until(text), runs)
            row = {
                "world": world.name,
                "until": text,
                "ratio": ratio,
                "comparisons": 1,
                "runs": runs,
            }
            yield {**row, **asdict(found)}
    for points, variants, ratio in ((3, 2, 1.0), (8, 1, 0.9), (8, 1, 0.7)):
        found = v.stopped(WORLDS[1], ratio, 20, None, runs, points=points, variants=variants)
        row = {"world": WORLDS[1].name, "until": "verdict", "ratio": ratio}
        yield {**row, "comparisons": points * variants, "runs": runs, **asdict(found)}


def laws(runs: int) -> Iterator[dict[str, Any]]:
    """A straight line over eleven sizes: coverage of slope and exponent; `boot`, `trial`: noise."""
    for boot, trial in ((0.002, 0.001), (0.05, 0.01), (0.03, 0.05)):
        for boots in (3, 5, 10):
            found = law_validation.law_coverage(boots, boot, trial, runs)
            yield {"boot": boot, "trial": trial, "boots": boots, "runs": runs, **asdict(found)}


def predictions(runs: int) -> Iterator[dict[str, Any]]:
    """Extrapolations from ten boots and eleven sizes to `times` the largest.

    For true laws that are candidates and true laws that are not. `given`: not refused; `inside`:
    the true cost was in the interval; `again`: the median of ten new boots was; `width`: its upper
    end over its lower, less one.
    """
    for name, cost in LAWS.items():
        for boot, trial in ((0.002, 0.001), (0.03, 0.02)):
            for times in (2.0, 4.0):
                found = law_validation.predictions(cost, times, 10, boot, trial, runs)
                row = {"truth": name, "boot": boot, "trial": trial, "times": times, "runs": runs}
                yield {**row, **asdict(found)}


PARTS: dict[str, tuple[Callable[[int], Iterator[dict[str, Any]]], int, int]] = {
    "coverage": (coverage, 1000, 200),
    "false_verdicts": (false_verdicts, 150, 20),
    "single_false_verdicts": (single_false_verdicts, 300, 40),
    "metric_coverage": (metric_coverage, 1000, 100),
    "rules": (rules, 400, 15),
    "power": (power, 100, 20),
    "detectable": (detectable, 150, 40),
    "sequential": (sequential, 100, 15),
    "laws": (laws, 300, 60),
    "predictions": (predictions, 60, 20),
}


def rows_of(name: str, *, quick: bool) -> Rows:
    """Run one part, with progress on the error stream."""
    part, runs, fewer = PARTS[name]
    rows: Rows = []
    for row in part(fewer if quick else runs):
        rows.append({key: _rounded(value) for key, value in row.items()})
        print(
            f"{name}: {len(rows)} cells, {time.process_time():.0f} s", file=sys.stderr, flush=True
        )
    return rows


def run_all(names: Sequence[str], *, quick: bool, jobs: int) -> dict[str, Rows]:
    """Run each of ``names`` in its own process, ``jobs`` at once, and print its table, or also
    write it.

    The figures do not depend on ``jobs``.
    """
    os.environ["PYTHONSAFEPATH"] = "1"  # Of the processes, as -P: no module of the current folder.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        parts = {name: pool.submit(rows_of, name, quick=quick) for name in names}
        results = {}
        for name, part in parts.items():
            results[name] = part.result()
            text = table(name, results[name])
            print(text)
            if not quick:
                (ROOT / f"findings/results/simulations/{name}.md").write_text(
                    text, encoding="utf-8"
                )
    return results


def table(name: str, rows: Rows) -> str:
    """Return a table with a line for each row, or with the boots of a world in columns."""
    about = " ".join(str(PARTS[name][0].__doc__).replace("``", "`").split())
    across = {"coverage": "inside", "metric_coverage": "inside", "power": "found"}
    if name in across or name.endswith("false_verdicts"):
        down, value = ("noise" if name == "power" else "world"), across.get(name, "false")
        lines = [
            [down, *(f"{boots} boots" for boots in dict.fromkeys(row["boots"] for row in rows))]
        ]
        for key in dict.fromkeys(row[down] for row in rows):
            lines.append(
                [str(key), *(f"{100 * row[value]:.1f}%" for row in rows if row[down] == key)]
            )
    else:
        columns = [key for key in rows[0] if key != "runs"]
        lines = [
            columns,
            *(["" if row[key] is None else str(row[key]) for key in columns] for row in rows),
        ]
    return f"## {name}\n{about} {rows[0]['runs']} runs each.\n\n{markdown(lines, 1)}\n"


def broken(results: dict[str, Rows]) -> list[str]:
    """Return the promises that are not kept, by more than three standard errors."""
    found = []
    for row in [*results.get("coverage", []), *results.get("metric_coverage", [])]:
        margin = 3 * math.sqrt(0.93 * 0.07 / row["runs"])
        if row["boots"] >= 4 and row["inside"] < 0.93 - margin:
            found.append(f"coverage {row['inside']:.1%}: {row['world']}, {row['boots']} boots")
    for name, key in (
        ("false_verdicts", "false"),
        ("single_false_verdicts", "false"),
        ("sequential", "wrong"),
        ("rules", "false"),
    ):
        for row in results.get(name, []):
            if row[key] > 0.05 + 3 * math.sqrt(0.05 * 0.95 / row["runs"]):
                found.append(f"{name} {row[key]:.1%}: {row}")
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.4g}")
    return value


def main() -> int:
    """Run, print and write; return 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs; write nothing")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), help="repeat these parts"
    )
    given = parser.parse_args()
    print(f"looks of a run of at most 20 blocks: {', '.join(map(str, looks(20)))}")
    results = run_all(given.only, quick=given.quick, jobs=given.jobs)
    failures = broken(results)
    print("\n" + ("\n".join(failures) or "every promise is kept"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
