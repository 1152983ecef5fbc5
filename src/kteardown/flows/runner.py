"""Run an experiment: create its run directory, and boot the rest of its plan on every clock."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from kteardown import pipeline
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import Experiment
from kteardown.progress import Reporter
from kteardown.report.material import Measured, side_by_side
from kteardown.run import named
from kteardown.run.places import Where, place_of, remembered_place
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import load


@dataclass(frozen=True)
class Runner:
    """Creates runs and boots them, as the user asked for it.

    ``command`` repeats what is run. ``on``: as ``--on``; None: where a run has begun, or on this
    host. ``jobs``: how many guests at once; None: as many as fit.
    """

    reporter: Reporter
    command: str
    on: str | None = None
    jobs: int | None = None
    needs_kvm: bool = False

    def start(self, experiments: Sequence[Experiment], *, ablate: bool = False) -> RunFolder:
        """Create the run of an experiment (on both clocks: one for each) with the kernels it begins
        with.

        Raises InputError, BuildError, LabError.
        """
        place = place_of(self.on)
        for experiment in experiments:
            place.check_experiment(experiment, kvm=self.needs_kvm)
        return pipeline.start(experiments, self.reporter, ablate=ablate, command=self.command)

    def boot_rest(self, folder: RunFolder, *, repeat: bool = False) -> Measured:
        """Boot the rest of the plan, and return what the run says. ``repeat`` as for
        ``run.places.Where``.

        Raises InputError, BuildError, GuestError, LabError.
        """
        self.reporter.note(f"run directory: {folder.path}")
        place = remembered_place(RunDir(folder.path), self.on)
        snapshots = [load(run) for run in folder.runs]
        for snapshot in snapshots:
            place.check_experiment(snapshot.experiment, kvm=self.needs_kvm)
        materials = []
        try:
            for snapshot in snapshots:
                if folder.both_clocks:
                    self.reporter.note(f"{CLOCKS[snapshot.experiment.design.clock]}:")
                materials.append(
                    pipeline.finish(snapshot, self.reporter, Where(place, self.jobs, repeat))
                )
                if snapshot is not snapshots[-1]:
                    self.reporter.note(f"done; its report: kteardown report {snapshot.run.name}")
        except KeyboardInterrupt:
            self.reporter.note(f"interrupted; finish it with: {_resume_command(folder, place.on)}")
            raise
        return side_by_side(folder.name, *materials) if folder.both_clocks else materials[0]


def _resume_command(folder: RunFolder, on: str) -> str:
    """Return the command that goes on with a run, with what must be named again."""
    words = f" --on {shlex.quote(on)}" if on else ""
    words += named.options(name.text for name in named.of_runs(folder))
    return f"kteardown run --resume {folder.name}{words}"
