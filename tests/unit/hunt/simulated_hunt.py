"""A hunt whose guests report what a function says of each trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kteardown.kernels.request import KernelImage
from kteardown.model.plan import Plan, PlannedTrial
from kteardown.progress import SilentReporter
from kteardown.run.setting import Lab
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.catalogue import Kind
from kteardown_hunt.folder import HuntFolder, Request
from kteardown_hunt.hunt import Hunt
from kteardown_hunt.plan import Options
from unit.fake_machine import FakeBoot, FakeMachine
from unit.hunt.trial_records import ReportedTrial, reported

Reports = Callable[[str, PlannedTrial], ReportedTrial]
"""What a trial on a kernel reports."""


@dataclass(frozen=True)
class SimulatedHunt(Hunt):
    reports: Reports = lambda _, trial: ReportedTrial(int(trial.params["objects"]))
    stages: list[str] = field(default_factory=list)

    def stage(
        self,
        name: str,
        plan: Plan,
        lab: Lab | None = None,
        kernels: Mapping[str, KernelImage] | None = None,
    ) -> list[BootRecords]:
        self.stages.append(name)
        return [
            reported(
                [self.reports(boot.kernel, trial) for trial in boot.trials],
                boot.kernel,
                boot.seed,
                boot.machine,
            )
            for boot in plan.boots
        ]


def simulated(
    folder: Path, kinds: tuple[Kind, ...], reports: Reports, request: Request
) -> SimulatedHunt:
    machine = FakeMachine(lambda _: FakeBoot())
    return SimulatedHunt(
        HuntFolder(folder),
        request,
        kinds,
        kinds[:1],
        {},
        Lab(folder / "agent", "x86_64", "icount", machine=machine),
        Options(budget_minstr=300),
        SilentReporter(),
        reports,
    )
