"""Which workloads execute what a series changes, and can show it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.coverage.about import about_of, relevance
from kteardown.coverage.attribute import FunctionId
from kteardown.coverage.changed import (
    ChangedFunction,
    changed_for_certain,
    changed_functions,
    may_change_executed,
)
from kteardown.coverage.maps import (
    WorkloadCoverage,
    counted_points,
    shipped_map,
    stress_tests,
    with_own,
)
from kteardown.coverage.propose import Proposal, Proposals, propose, share_of
from kteardown.errors import InputError, KteardownError, NotBuiltError, NotExercisedError
from kteardown.flows.scripts import is_own
from kteardown.flows.try_series.smallest import for_each_object, smallest_shown
from kteardown.inputs.load import load_workload
from kteardown.inputs.options import Designed
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source import Sources
from kteardown.model.record_fields import ParamValue
from kteardown.patches.tried_source import Base
from kteardown.report import try_page
from kteardown.report.formatting import share
from kteardown.report.try_page import Chosen, MeasuredWorkload

MOST = 2
"""So many of the proposed workloads are run; the others are named."""
_SPARE = 3
"""So many others are counted if none of the proposed ones executes a changed line."""
_OFTEN = 10
"""A workload that calls changed functions less often is hardly on another path in them."""
SHOWN = 3
_LEAST_SHARE = 0.01
"""Of its stretch: a workload that executes less of what is changed, and not for each object, is not
run."""
_NOISY = 0.05
"""A workload whose metrics show no smaller change is run only after the others."""
NOT_MEASURED = "workloads execute the change, but none of them can measure it"
OTHER = (
    "run a script that executes it more often, with --script (docs/script.md), or name another "
    "workload with --workload."
)


def choose_workloads(
    named: Sequence[str],
    base: Base,
    sources: Sources,
    designed: Designed,
    users: Mapping[str, Collection[str]],
) -> Chosen:
    """Return the workloads that the user named, or else those that execute most of what is changed.

    ``users``: by header, the files that include it, as far as that is known. Raises InputError if a
    named workload does not exist.
    """
    changed = tuple(changed_functions(base.patches, sources.tree(sources.identify(base.source))))
    chosen = _choose(named, base, changed, designed)
    if (
        chosen.workloads
        or not chosen.maps_exist
        or not may_change_executed(changed, shipped_map(base.source), users)
    ):
        return chosen
    note = (
        "kteardown chooses the workloads after the build, when the code of both kernels says which "
        "functions use what the patch changes."
    )
    return replace(chosen, notes=(*chosen.notes, note), after_build=True)


def choose_by_code(chosen: Chosen, base: Base, variant: KernelImage, designed: Designed) -> Chosen:
    """Return the workloads that execute functions whose code differs, after the build of
    ``variant``."""
    return _choose((), base, changed_for_certain(chosen.changed, variant), designed)


def _choose(
    named: Sequence[str], base: Base, changed: tuple[ChangedFunction, ...], designed: Designed
) -> Chosen:
    wanted = {function.id for function in changed if function.kind == "function"}
    choices = [
        MeasuredWorkload(name, "a script of your own")
        if is_own(name)
        else MeasuredWorkload(name, "named with --workload", params=small_point(name))
        for name in named
    ]
    try:
        coverage, missing = with_own(shipped_map(base.source), Path.cwd())
    except InputError:
        return Chosen(changed, tuple(choices), maps_exist=False)
    proposals = propose(changed, coverage)
    notes = (
        []
        if coverage.source == base.id
        else [f"kteardown counted what workloads execute on {coverage.source}."]
    )
    if missing:
        notes.append(
            "kteardown does not know what these scripts in ./workloads execute: "
            f"{', '.join(missing)}."
        )
    best = _best(proposals)
    unmeasured = ""
    spare: list[MeasuredWorkload] = []
    others: list[str] = []
    if not choices:
        worth = [
            proposal
            for proposal in best.values()
            if proposal.about or proposal.share >= _LEAST_SHARE or for_each_object(proposal)
        ]
        choices = [
            _without_blind_choices(choice, coverage.workloads[choice.workload], wanted)
            for choice in _deciding(worth, base.source, designed)
        ]
        chosen = {choice.workload for choice in choices}
        others = [workload for workload in best if workload not in chosen]
        if choices and all(choice.only_counted for choice in choices):
            spare = _spare([best[name] for name in others], base.source, designed)
        if best and not choices:
            most = max(best.values(), key=lambda proposal: proposal.share)
            unmeasured = (
                f"{share(most.share)} of what a workload executes in its stretch "
                f"({most.workload}), and is not executed for each of its objects"
            )
    return Chosen(
        changed,
        tuple(choices),
        tuple(spare),
        tuple(others),
        _not_executed(proposals),
        tuple(notes),
        unmeasured=unmeasured,
    )


def _best(proposals: Proposals) -> dict[str, Proposal]:
    """Return the first proposal of each workload that has figures."""
    best: dict[str, Proposal] = {}
    for proposal in proposals.measured:
        if proposal.workload not in stress_tests():
            best.setdefault(proposal.workload, proposal)
    return best


def _deciding(
    proposals: Sequence[Proposal], source: str, designed: Designed
) -> list[MeasuredWorkload]:
    """Return the workloads to run: those whose metrics can show the change, the quiet ones first.

    Those that are made for the changed code come before the others, which are run only if none of
    them can show it. If no workload can, the change is only counted: in the one that is made for it
    or executes most of it, and in the nearest one.
    """
    shares: dict[MeasuredWorkload, float] = {}
    made_for: set[str] = set()
    # A workload that is made for a tenth of what is changed is not what the author means.
    least = max((proposal.relevance for proposal in proposals), default=0) / 2
    for proposal in proposals:
        smallest = smallest_shown(proposal, source, designed)
        # Of a script of one's own nothing is known before it has run.
        if smallest or proposal.about or is_own(proposal.workload):
            shares[_choice(proposal, smallest)] = proposal.share
            made_for |= {proposal.workload} if proposal.relevance > least else set()
    order = sorted(shares, key=lambda choice: choice.workload not in made_for)
    able = [choice for choice in order if choice.shows(shares[choice])]
    able.sort(key=lambda choice: (choice.workload not in made_for, choice.smallest > _NOISY))
    meant = [choice for choice in able if choice.workload in made_for]
    if meant or not made_for:
        return meant[:MOST] or able[:MOST] or _counted(order, shares)
    return [*_counted(order[:1], shares), *able[:1]] if able else _counted(order, shares)


def _choice(proposal: Proposal, smallest: Mapping[str, float]) -> MeasuredWorkload:
    """Return the workload of ``proposal``, and which of its metrics can show the change.

    ``smallest``: the smallest change that each metric shows, if that is known.
    """
    specs = load_workload(proposal.workload, str(Path.cwd())).metrics
    decides = [
        m
        for m, spec in specs.items()
        if spec.decides and spec.decides.items() <= proposal.params.items()
    ]
    shown = [
        m
        for m, size in smallest.items()
        if MeasuredWorkload("", "", smallest=size).shows(proposal.share)
    ]
    # Of the others nothing is known, so they may show it.
    others = [m for m, spec in specs.items() if spec.headline and m not in smallest]
    metrics = decides or ([*shown, *others] if len(shown) < len(smallest) else ())
    least = 0.0 if decides else min(smallest.values(), default=0.0)
    executed = proposal.about or tuple(proposal.functions)
    names = ", ".join(try_page.listed([function.name for function in executed], SHOWN))
    made = "is made for" if proposal.about else "executes"
    why = f"{made} {names}"
    why += f"; the change is {share(proposal.share)} of the instructions of its measured stretch"
    why += f"; of its metrics, {', '.join(metrics)} can show it" if metrics else ""
    return MeasuredWorkload(
        proposal.workload, why, params=proposal.params, smallest=least, metrics=tuple(metrics)
    )


def _counted(
    order: Sequence[MeasuredWorkload], shares: Mapping[MeasuredWorkload, float]
) -> list[MeasuredWorkload]:
    """Return the first workload, and the one whose metrics come nearest to showing the change."""
    if not order:
        return []
    nearest = max(order, key=lambda choice: shares[choice] / (choice.smallest or 1))
    return [
        replace(
            choice,
            why=(
                f"{choice.why.partition('; of its metrics')[0]}; its metrics show a change from "
                f"{share(choice.smallest)} on"
            ),
            only_counted=True,
        )
        for choice in dict.fromkeys((order[0], nearest))
    ]


def _spare(
    proposals: Sequence[Proposal], source: str, designed: Designed
) -> list[MeasuredWorkload]:
    """Return the workloads to count if none of the chosen ones executes a changed line: those that
    call changed functions often."""
    often = [
        proposal
        for proposal in proposals
        if sum(counts.calls for counts in proposal.functions.values()) >= _OFTEN
    ]
    return [
        replace(_choice(proposal, smallest_shown(proposal, source, designed)), only_counted=True)
        for proposal in often[:_SPARE]
    ]


def _without_blind_choices(
    choice: MeasuredWorkload, counted: WorkloadCoverage, wanted: Collection[FunctionId]
) -> MeasuredWorkload:
    """Return ``choice`` with those choices of parameters with which the change can be seen."""
    able: dict[str, tuple[ParamValue, ...]] = {}
    for name in choice.params:
        alike = [
            p for p in counted.points if {**p.params, name: choice.params[name]} == choice.params
        ]
        able[name] = tuple(p.params[name] for p in alike if choice.shows(share_of(p, wanted)))
    return replace(choice, choices=able)


def _not_executed(proposals: Proposals) -> tuple[str, ...]:
    outside = [
        f"{function.name} (only outside of the measured stretch, such as that of "
        f"{_outside_of(function.id, proposals.proposals)})"
        for function in proposals.not_inside
    ]
    tests = stress_tests()
    stressed = dict.fromkeys(
        function
        for proposal in proposals.measured
        if proposal.workload in tests
        for function in proposal.functions
    )
    others = {
        function
        for proposal in proposals.measured
        if proposal.workload not in tests
        for function in proposal.functions
    }
    stress = [
        f"{function.name} (only in stress tests, which have no figures)"
        for function in stressed
        if function not in others
    ]
    return (
        *(f"{function.name} ({function.file})" for function in proposals.not_executed),
        *outside,
        *stress,
    )


def _outside_of(function: FunctionId, proposals: Sequence[Proposal]) -> str:
    """Return the workload that executes ``function`` outside of its stretch, and is made for it."""
    names = [proposal.workload for proposal in proposals if function in proposal.outside]
    return max(names, key=lambda name: relevance(about_of(name), function))


def no_workload(chosen: Chosen) -> KteardownError | None:
    """Return the error with which the command ends if there is no workload to run."""
    if chosen.workloads or chosen.after_build:
        return None
    if not chosen.maps_exist:
        return InputError(
            "kteardown does not know which workload executes what the patch changes",
            hint="name one with --workload (`kteardown list workloads`).",
        )
    if not chosen.changed:
        return NotBuiltError(
            "the series changes only comments, blank lines and #include lines, so no figure can "
            "differ",
            hint="nothing has to be measured; if it changes more, name a workload with --workload.",
        )
    functions = [function.name for function in chosen.changed if function.kind == "function"]
    what = ", ".join(functions[:SHOWN]) or "the declarations and macros that the patch changes"
    if chosen.unmeasured:
        return NotExercisedError(
            f"{NOT_MEASURED}: what the patch changes ({what}) is {chosen.unmeasured}", hint=OTHER
        )
    return NotExercisedError(
        f"no workload executes in its measured stretch what the patch changes: {what}", hint=OTHER
    )


def small_point(name: str) -> dict[str, ParamValue]:
    return counted_points(load_workload(name))[0]
