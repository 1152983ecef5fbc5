#!/usr/bin/env python3
"""How often the contention clock has a verdict on kernels that do the same.

Give it runs of base and of layout twins (variants that only move code) with many seeds and several
points on the contention clock. It draws pairs and judges each as a run of few seeds: base against
each twin with the same seeds, and base against base with other seeds. It prints how many reports
and how many single points had a verdict that something changed, and the spread of each metric.

    findings/scripts/validate_contention.py RUN... [--seeds 6] [--pairs 40]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from kteardown.analysis.conclude import analyse
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import Snapshot, load

SEED = 1
CHANGED = ("better", "worse", "mixed")


@dataclass
class Count:
    """What pairs of one kind said."""

    reports: int = 0
    wrong_reports: int = 0
    points: int = 0
    wrong_points: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, result: Result) -> None:
        headline = [verdict.verdict for verdict in result.metric_verdicts]
        self.reports += 1
        self.wrong_reports += any(verdict in CHANGED for verdict in headline)
        for verdict in headline:
            self.verdicts[verdict] += 1
        for comparison in result.comparisons:
            self.points += 1
            self.wrong_points += comparison.verdict in CHANGED
            if comparison.ratio is not None:
                self.ratios[comparison.metric].append(abs(comparison.ratio - 1))


def pair(base: Sequence[BootRecords], changed: Sequence[BootRecords]) -> list[BootRecords]:
    """Return the boots of a run with base and one variant: blocks are numbered from 0 on."""
    boots: list[BootRecords] = []
    for kernel, of_kernel in ((BASE, base), ("changed", changed)):
        blocks = sorted({boot.start.block for boot in of_kernel})
        for boot in of_kernel:
            update = {"kernel": kernel, "block": blocks.index(boot.start.block)}
            start = boot.start.model_copy(update=update)
            boots.append(replace(boot, boot=len(boots), start=start))
    return boots


def whole(by_block: Mapping[int, Sequence[BootRecords]]) -> set[int]:
    """Return the blocks that have all their boots: an interrupted run ends within a block."""
    most = max(map(len, by_block.values()))
    return {block for block, boots in by_block.items() if len(boots) == most}


def pairs(
    boots: Sequence[BootRecords], seeds: int, number: int
) -> Iterator[tuple[str, list[BootRecords]]]:
    """Yield pairs, each with what it compares."""
    rng = random.Random(SEED)
    by_kernel: dict[str, dict[int, list[BootRecords]]] = defaultdict(lambda: defaultdict(list))
    for boot in boots:
        by_kernel[boot.start.kernel][boot.start.block].append(boot)
    blocks = sorted(set.intersection(*(whole(of_kernel) for of_kernel in by_kernel.values())))
    if len(blocks) < 2 * seeds:
        sys.exit(f"{len(blocks)} seeds are measured on all kernels; {2 * seeds} are needed")
    for _ in range(number):
        drawn = rng.sample(blocks, 2 * seeds)
        first, second = sorted(drawn[:seeds]), sorted(drawn[seeds:])
        base = [boot for block in first for boot in by_kernel[BASE][block]]
        for kernel, of_kernel in by_kernel.items():
            has_same_seeds = kernel != BASE
            chosen = first if has_same_seeds else second
            name = f"base and {kernel}" if has_same_seeds else "base and base, other seeds"
            yield name, pair(base, [boot for block in chosen for boot in of_kernel[block]])


def judged(snapshot: Snapshot, boots: Sequence[BootRecords], seeds: int) -> Result:
    """Return the result of one pair."""
    design = snapshot.experiment.design.model_copy(update={"seeds": seeds})
    update = {"design": design, "variants": ("changed",)}
    facts: dict[str, KernelFacts] = dict.fromkeys((BASE, "changed"), snapshot.kernels[BASE])
    return analyse(
        snapshot.experiment.model_copy(update=update),
        snapshot.workloads,
        boots,
        facts,
        {},
        "",
        points=snapshot.plan.points,
    )


def main() -> None:
    """Judge the pairs of each run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=40)
    asked = parser.parse_args()
    counts: dict[str, Count] = defaultdict(Count)
    for path in asked.runs:
        run = RunDir.open(path)
        snapshot = load(run)
        for name, boots in pairs(run.boots(), asked.seeds, asked.pairs):
            counts[name].add(judged(snapshot, boots, asked.seeds))
    for name, count in counts.items():
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in count.verdicts.items())
        print(
            f"{name}: {count.wrong_reports} of {count.reports} reports and {count.wrong_points} of "
            f"{count.points} points changed; headline metrics: {verdicts}"
        )
        for metric, ratios in count.ratios.items():
            print(f"    {metric}: median change {median(ratios):.2%}, largest {max(ratios):.1%}")


if __name__ == "__main__":
    main()
