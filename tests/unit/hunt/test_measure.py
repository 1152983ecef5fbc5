"""The progress of a stage of a hunt, on a fake machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kteardown.kernels.request import KernelImage
from kteardown.progress import SilentReporter, Task
from kteardown.run.setting import Lab
from kteardown.vm.job import Acceleration, BootJob
from kteardown_hunt.folder import HuntFolder, measure_stage
from kteardown_hunt.plan import REPORTS, Case, Options, plan_of_sizes
from unit.fake_machine import FakeBoot, FakeMachine

# Of two kinds, each with a boot of its own: three trials and one, of which the first has a warm-up,
# too.
PLAN = plan_of_sizes(
    {Case("a", "exit"): [72, 288, 1152], Case("b", "exit"): [4608]},
    ["kernel"],
    [0],
    Options(budget_minstr=0),
)


class Shares(SilentReporter):
    """Keeps how much of each task was done after each trial, as a share of its total."""

    def __init__(self) -> None:
        self.shares: list[float] = []

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        yield _Task(self.shares, total or 0.0)


class _Task(Task):
    def __init__(self, shares: list[float], total: float) -> None:
        self._shares = shares
        self._total = total

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        share = completed / self._total
        if share not in (0.0, *self._shares):
            self._shares.append(share)


def shares_of(path: Path, acceleration: Acceleration) -> list[float]:
    """Measure the stage, and return the shares of it that were displayed."""

    def script(job: BootJob) -> FakeBoot:
        lines: list[dict[str, object]] = []
        for trial in next(boots).trials:
            lines.append(
                {
                    "type": "trial_start",
                    "trial": trial.index,
                    "workload": "hunt",
                    "params": trial.params,
                }
            )
            lines.append({"type": "trial_end", "trial": trial.index, "status": "ok"})
        return FakeBoot(lines=tuple(json.dumps(line).encode() for line in lines))

    boots = iter(PLAN.boots)
    agent = path / "agent"
    agent.write_bytes(b"agent")
    image = KernelImage("kernel", path / "image", "kernel", "", "x86_64", "6.12", "gcc", "", "")
    reporter = Shares()
    lab = Lab(agent, "x86_64", acceleration, REPORTS, machine=FakeMachine(script))
    measure_stage(HuntFolder(path), "rate", PLAN, {"kernel": image}, lab, reporter)
    return reporter.shares


def test_the_start_of_a_guest_counts_as_several_trials_on_the_instruction_clock(
    tmp_path: Path,
) -> None:
    # (10 + 2) + 1 + 1, then 10 + 2
    assert shares_of(tmp_path, "icount") == pytest.approx([12 / 26, 13 / 26, 14 / 26, 1])


def test_in_real_time_only_what_is_measured_counts(tmp_path: Path) -> None:
    assert shares_of(tmp_path, "mttcg") == pytest.approx([2 / 6, 3 / 6, 4 / 6, 1])
