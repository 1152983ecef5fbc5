"""One hunt while it runs: its folder, its kernels, and the lab in which its stages boot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kteardown import version
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import file_hash
from kteardown.model.arch import DEFAULT_ARCH, Arch
from kteardown.model.plan import Plan
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.setting import Lab
from kteardown.rundir.completeness import measured_s
from kteardown.rundir.counting import BootRecords
from kteardown.vm import acceleration
from kteardown_hunt.catalogue import Cost, Kind
from kteardown_hunt.folder import HuntFolder, Request, measure_stage
from kteardown_hunt.plan import Options
from kteardown_hunt.result import CaseResult, HuntResult

ARCH: Arch = DEFAULT_ARCH
PERIOD_NS = 49_999
"""Of a profile."""
PROFILED: Mapping[Cost, str] = {"sync": "cost", "deferred": "deferred", "make": "make"}
"""By cost, what the agent is to watch while it is sampled."""


@dataclass(frozen=True)
class Hunt:
    """What all stages of a hunt have in common."""

    folder: HuntFolder
    request: Request
    catalogue: tuple[Kind, ...]
    """All kinds; ``kinds`` are those that are hunted for."""
    kinds: tuple[Kind, ...]
    kernels: Mapping[str, KernelImage]
    lab: Lab
    options: Options
    reporter: Reporter

    @property
    def without_budget(self) -> Options:
        """The options with which no size is left out."""
        return replace(self.options, budget_minstr=0)

    def stage(
        self,
        name: str,
        plan: Plan,
        lab: Lab | None = None,
        kernels: Mapping[str, KernelImage] | None = None,
    ) -> list[BootRecords]:
        """Boot the rest of a stage and return the records of its boots."""
        return measure_stage(
            self.folder, name, plan, kernels or self.kernels, lab or self.lab, self.reporter
        )

    def real_time(self, what: str) -> Lab:
        """Return the lab on the wall clock, and say that this measures ``what``."""
        best = acceleration.best_wall_acceleration(ARCH, cache=cache_dir()).acceleration
        self.reporter.note(f"{what} in real time ({best})")
        return replace(self.lab, acceleration=best, jobs=1)

    def save(self, cases: Sequence[CaseResult], **more: Any) -> HuntResult:
        """Write the result, with ``more`` fields of it, and return it."""
        result = HuntResult(
            kteardown=version(),
            command=self.request.command,
            source=self.request.source,
            release=self.kernels[self.request.source].release,
            against=self.request.against,
            agent_hash=file_hash(self.lab.agent),
            image_hashes={source: image.image_hash for source, image in self.kernels.items()},
            measured_s=round(sum(measured_s(run.boots()) for run in self.folder.measured()), 1),
            kinds=len(self.kinds),
            cases=tuple(cases),
            **{"finds": (), **more},
        )
        self.folder.save(self.folder.result_file, result.model_dump_json(indent=1))
        return result
