"""Which workloads measure a series, by what they execute of it, and what they then executed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kteardown.cli.terminal import TerminalReporter
from kteardown.coverage.attribute import DebugInfo, FunctionId, call_paths
from kteardown.coverage.changed import (
    ChangedFunction,
    by_code,
    changed_functions,
    may_change_executed,
    may_change_users,
)
from kteardown.coverage.executed import Exercised, executed
from kteardown.coverage.maps import shipped_map
from kteardown.coverage.points import points_of, stress_tests
from kteardown.coverage.propose import Proposal, Proposals, propose
from kteardown.errors import GuestError, InputError, KteardownError, LabError, NotExercisedError
from kteardown.inputs.load import load_workload, own_sources
from kteardown.kernels import build
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import Sources
from kteardown.model.experiment import Experiment
from kteardown.model.record import ParamValue
from kteardown.patches.find_base import Base
from kteardown.report.try_page import Exercise

_MOST = 2
"""So many of the proposed workloads are run; the others are named."""
_SHOWN = 3


@dataclass(frozen=True)
class Choice:
    """A workload to run, why, and the small point at which its executions are counted."""

    workload: str
    why: str
    params: dict[str, ParamValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """The workloads to run, what the series changes, and what no workload executes."""

    choices: tuple[Choice, ...]
    changed: tuple[ChangedFunction, ...]
    not_executed: tuple[str, ...]
    notes: tuple[str, ...]
    known: bool
    """Whether it is known what the workloads execute."""
    after_build: bool = False
    """Whether the code of the kernels has to say first which functions use what the diffs change."""


def choose_workloads(named: Sequence[str], base: Base, sources: Sources) -> Chosen:
    """Return the workloads that the user named, or else those that execute most of what is changed.

    Raises InputError if a named workload does not exist.
    """
    changed = tuple(changed_functions(base.patches, sources.tree(sources.identify(base.source))))
    chosen = _choose(named, base, changed)
    if chosen.choices or not chosen.known or not may_change_executed(changed, shipped_map(base.source)):
        return chosen
    note = "The workloads are chosen when the code of both kernels says which functions use what is changed."
    return replace(chosen, notes=(*chosen.notes, note), after_build=True)


def choose_by_code(chosen: Chosen, base: Base, variant: KernelImage) -> Chosen:
    """Return the workloads that execute functions whose code differs, after the build of ``variant``."""
    return _choose((), base, changed_for_certain(chosen.changed, variant))


def changed_for_certain(
    changed: Sequence[ChangedFunction], variant: KernelImage
) -> tuple[ChangedFunction, ...]:
    """Return what the diffs change, corrected by the code of ``variant`` if it is known how that differs."""
    functions = build.functions_of(variant)
    if functions is None:
        return tuple(changed)
    return by_code(changed, functions, DebugInfo(variant.image.parent))


def _choose(named: Sequence[str], base: Base, changed: tuple[ChangedFunction, ...]) -> Chosen:
    choices = [Choice(name, "named with --workload", _small(name)) for name in named]
    try:
        coverage = shipped_map(base.source)
    except InputError:
        return Chosen(tuple(choices), changed, (), (), known=False)
    found = propose(changed, coverage)
    notes = (
        [] if coverage.source == base.id else [f"What workloads execute was counted on {coverage.source}."]
    )
    best: dict[str, Proposal] = {}
    for proposal in found.measured:
        if proposal.workload not in stress_tests():
            best.setdefault(proposal.workload, proposal)
    if not choices:
        choices = [Choice(p.workload, _why(p), p.params) for p in list(best.values())[:_MOST]]
        others = list(best)[_MOST:]
        if others:
            notes.append(f"Other workloads execute changed functions too: {', '.join(others)}.")
    return Chosen(tuple(choices), changed, _not_executed(found), tuple(notes), known=True)


def with_call_paths(chosen: Chosen, kernel: Path) -> Chosen:
    """Return ``chosen`` with notes on how the first changed functions are reached from a system call.

    ``kernel`` is a folder with the vmlinux of base.
    """
    functions = [one for one in chosen.changed if one.kind == "function" and one.exists_before]
    paths = call_paths([FunctionId(one.file, one.name) for one in functions[:_SHOWN]], kernel)
    notes = [f"{function.name} is reached by {path}." for function, path in paths.items()]
    return replace(chosen, notes=(*chosen.notes, *notes))


def no_workload(chosen: Chosen) -> KteardownError | None:
    """Return the error with which the command ends if there is no workload to run."""
    if chosen.choices or chosen.after_build:
        return None
    if not chosen.known:
        return InputError(
            "which workload executes what the patch changes is not known",
            hint="name one with --workload (`kteardown list workloads`).",
        )
    functions = [one.name for one in chosen.changed if one.kind == "function"]
    what = ", ".join(functions[:_SHOWN]) or "the declarations and macros that the patch changes"
    return NotExercisedError(
        f"no workload executes in its measured stretch what the patch changes: {what}",
        hint="name a workload with --workload, or write one: `kteardown new workload NAME`.",
    )


def needed_settings(choice: Choice, experiment: Experiment) -> list[str]:
    """Return the settings with which the change is executed and that ``experiment`` does not have."""
    swept = {name: values for sweep in experiment.workloads for name, values in sweep.params.items()}
    usual = _small(choice.workload)
    return [
        f"{name}={value}"
        for name, value in choice.params.items()
        if value != usual.get(name) and value not in swept.get(name, ())
    ]


def count_executions(
    choice: Choice,
    variant: KernelImage,
    experiment: Experiment,
    changed: Sequence[ChangedFunction],
    reporter: TerminalReporter,
) -> Exercise:
    """Boot the variant once more and count how often the changed lines are executed."""
    workload = load_workload(choice.workload, experiment.folder)
    own = own_sources([choice.workload], experiment.folder)
    try:
        found = executed(variant, workload, choice.params, changed, reporter, own=own)
    except (GuestError, LabError) as error:
        return Exercise((f"{choice.workload}: not counted: {error.message}",))
    # Without the code of both kernels, nothing says whether a changed macro or structure is executed.
    known = found.exercised or build.functions_of(variant) is not None or not may_change_users(changed)
    return Exercise(tuple(_sentences(found)), found.exercised if known and found.functions else None)


def _sentences(found: Exercised) -> list[str]:
    run = sorted(
        (one for one in found.functions if one.executions), key=lambda one: not one.function.statements_after
    )
    if not run:
        called = ", though changed functions were entered" if found.called else ""
        return [f"{found.workload} executed no changed line in its measured stretch{called}."]
    lines = []
    for one in run[:_SHOWN]:
        each = (
            f", {one.executions_per_object:,.3g} for one more of {found.objects}"
            if one.executions_per_object is not None
            else ""
        )
        what = (
            f"executed changed lines of {one.function.name}()"
            if one.function.statements_after
            else f"entered {one.function.name}(), whose code differs,"
        )
        lines.append(f"{found.workload} {what} {one.executions:,} times{each}.")
    if len(run) > _SHOWN:
        lines.append(f"{found.workload} executed {len(run) - _SHOWN} more functions that differ.")
    lines.append(
        f"The changed functions are {_share(found.share)} of what the kernel executes in the stretch of "
        f"{found.workload}."
    )
    return lines


def _share(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1%"


def _why(proposal: Proposal) -> str:
    names = [function.name for function in proposal.functions]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (
        f"executes {', '.join(names[:_SHOWN])}{more} in its measured stretch, "
        f"{_share(proposal.share)} of its instructions"
    )


def _not_executed(found: Proposals) -> tuple[str, ...]:
    outside = [f"{one.name} (only outside of a measured stretch)" for one in found.not_inside]
    stressed: dict[FunctionId, bool] = {}
    for proposal in found.measured:
        for function in proposal.functions:
            only = proposal.workload in stress_tests()
            stressed[function] = only and stressed.get(function, True)
    stress = [
        f"{one.name} (only in stress tests, which have no figures)" for one in stressed if stressed[one]
    ]
    return (*(f"{one.name} ({one.file})" for one in found.not_executed), *outside, *stress)


def _small(name: str) -> dict[str, ParamValue]:
    return points_of(load_workload(name))[0]
