"""Test what a posting claims, with the posted patch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kteardown.errors import InputError
from kteardown.flows.ending import gate
from kteardown.flows.runner import Runner
from kteardown.flows.scripts import experiments_on
from kteardown.inputs.load import experiment_names, load_experiment, load_workload, readable
from kteardown.inputs.options import Designed, Overrides, Scripted, on_clocks
from kteardown.inputs.published import Posting
from kteardown.kernels.source_name import is_source
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import Experiment
from kteardown.model.result import Result
from kteardown.patches.posted import read_series
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.report.material import Measured
from kteardown.report.publication import Publication
from kteardown.run.resolve import experiment_of
from kteardown_replicate.claims import FINDINGS, Replicated
from kteardown_replicate.claims import replicate as replicated
from kteardown_replicate.table import claim_row

_BASE = "debian:6.12"
"""The kernel of a script, where a posting has no patch that can be run."""
_IS = {True: "is", False: "are"}


@dataclass(frozen=True)
class Replication:
    """What is run for a posting. Without ``experiments`` nothing can be.

    ``source``: the file of the patch, if it is not the posted one. ``size``: the parameter of a
    script in place of the one in the posting.
    """

    posting: Posting
    experiments: tuple[Experiment, ...] = ()
    source: str = ""
    size: str = ""


@dataclass(frozen=True)
class ReplicationAnswer:
    """What becomes of the claims, by each result; None without a measurement."""

    posting: Posting
    claimed: tuple[tuple[Result | None, Sequence[Replicated]], ...]
    material: Measured | None = None

    def publication(self) -> Publication:
        """Return what is said for scripts."""
        details = {
            "posting": self.posting.name,
            "clocks": [
                {
                    "clock": result.clock if result else None,
                    "claims": [
                        claim_row(claim, self.posting) | {"interval": claim.ours.ci}
                        for claim in claims
                    ],
                }
                for result, claims in self.claimed
            ],
        }
        headline = "\n".join(
            _headline(self.posting, claims, result) for result, claims in self.claimed
        )
        materials = () if self.material is None else (self.material,)
        return Publication("replicate", headline, materials=materials, details=details)

    def check(self) -> None:
        """Raise BrokenError if the patch breaks a kernel, and NotBuiltError if nothing of it is in
        one."""
        if self.material is not None:
            gate(self.material, None)


def plan_replication(
    posting: Posting,
    designed: Designed,
    scripted: Scripted,
    reporter: Reporter,
    *,
    patch: str = "",
    script: str = "",
) -> Replication:
    """Return what is run for a posting: its own points, or a script. Raises all that a rehearsal
    raises."""
    run = posting.run
    if run is None and not script:
        return Replication(posting)
    base = run.source if run else _BASE
    if script and not (patch or (run and run.patch)):
        variant = our_series(posting)
        source = ""
        base = _BASE
        why = (
            f"{posting.cannot or 'its patch is in no archive'}; {script} is run with our series "
            f"{variant}"
        )
        reporter.note(f"{posting.name}: {why}")
        posting = posting.model_copy(update={"cannot": why})
    else:
        variant, source = posted_patch(posting, patch, reporter)
    if not script:
        experiments = on_clocks(experiment_of(posting, variant), Overrides.of(designed))
        return Replication(posting, experiments, source)
    overrides = Overrides.of(designed, variant=[variant])
    experiments = tuple(
        experiment.model_copy(update={"reference": posting.name})
        for experiment in experiments_on(script, base, overrides, scripted, reporter)
    )
    first = experiments[0]
    size = load_workload(first.workloads[0].workload, first.folder).law
    return Replication(measured_with(posting, script, size), experiments, source, size)


def replicate(replication: Replication, runner: Runner) -> ReplicationAnswer:
    """Run what is planned, and return what becomes of each claim. Raises all that a run raises."""
    if not replication.experiments:
        return ReplicationAnswer(
            replication.posting, ((None, replicated(replication.posting, None)),)
        )
    material = runner.boot_rest(runner.start(replication.experiments))
    claimed = tuple(
        (clock.result, replicated(replication.posting, clock.result, replication.size))
        for clock in material.clocks
    )
    return ReplicationAnswer(replication.posting, claimed, material)


def our_series(posting: Posting) -> str:
    """Return our series about the subject of ``posting``. Raises InputError if there is none."""
    for experiment in readable(load_experiment, experiment_names()):
        if experiment.reference == posting.name:
            return next(name for name in experiment.variants if not is_source(name))
    raise InputError(
        f"{posting.name}: its patch is in no archive, and none of our series is about the "
        "same subject",
        hint="give the patch with --patch FILE.",
    )


def measured_with(posting: Posting, script: str, size: str) -> Posting:
    """Return ``posting`` with a script in place of the workload of ours that measures the same."""
    if posting.run is None:
        return posting
    sized = f"; its {size} replaces the posting's parameter" if size else ""
    differs = f"measured with {script}{sized}"
    return posting.model_copy(update={"run": posting.run.model_copy(update={"differs": differs})})


def posted_patch(posting: Posting, given: str, reporter: Reporter) -> tuple[str, str]:
    """Return the patches as a variant, and the file that they are from; empty for the posted mails.

    A file that has the message id of the posting is the posted patch. Raises InputError, LabError.
    """
    run = posting.run
    if not (given or (run and run.patch)):
        raise InputError(
            f"{posting.name}: its patch is in no archive", hint="give the patch with --patch FILE."
        )
    posted = run.patch if run else ""
    series = read_series(given or f"lore:{posted}", cache_dir=cache_dir(), reporter=reporter)
    for note in series.notes:
        reporter.note(note)
    part = f"@{run.patches}" if run and run.patches else ""
    return f"{series.folder}{part}", "" if posted and series.message_id == posted else given


def _headline(posting: Posting, claims: Sequence[Replicated], result: Result | None) -> str:
    counts = Counter(claim.finding for claim in claims)
    parts = []
    for finding in filter(counts.get, FINDINGS):
        count = counts[finding]
        verb = ("replicates" if count == 1 else "replicate") if finding == "replicates" else ""
        parts.append(f"{count} {verb or f'{_IS[count == 1]} {finding}'}")
    where = f" on {CLOCKS[result.clock]}" if result else ""
    return f"Of the claims of {posting.name}{where}, {', '.join(parts)}."
