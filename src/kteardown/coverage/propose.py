"""Propose the workloads that measure a patch: those whose stretch executes what it changes."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kteardown.coverage.about import about_of, relevance
from kteardown.coverage.attribute import Counts, FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.maps import CoverageMap, PointCoverage, WorkloadCoverage
from kteardown.model.record_fields import ParamValue

_ABOUT = 4
_ALIKE = 8
"""So many functions are named where none of those that were asked for is executed."""
_SIMILAR = 0.85
"""Paths are long, and have their folders in common: less similar ones are other files."""


@dataclass(frozen=True)
class Proposal:
    """A workload, and the small point at which it was counted, that execute changed functions."""

    workload: str
    params: dict[str, ParamValue]
    functions: dict[FunctionId, Counts]
    """Those executed in the stretch, the one with the most instructions first."""
    outside: tuple[FunctionId, ...]
    """Those that the workload executes, but not in any of its stretches."""
    share: float
    """The instructions of ``functions`` as a share of all that the kernel executes in the
    stretch."""
    score: float
    """How many changed functions this is the workload for; ``propose`` says how it is counted."""
    about: tuple[FunctionId, ...] = ()
    """Those of ``functions`` that the workload is made to measure."""
    relevance: int = 0
    """How much of what is changed the workload is made for: the sum over ``about`` of what
    ``about.relevance`` returns."""

    @property
    def calls(self) -> int:
        """How often changed functions are entered in the stretch."""
        return sum(counts.calls for counts in self.functions.values())


@dataclass(frozen=True)
class Proposals:
    """Which workloads execute what is changed, and what none of them executes."""

    source: str
    """The kernel of the map: the functions are those of its source."""
    proposals: tuple[Proposal, ...]
    """The best first; last those that execute changed functions only outside of their stretch."""
    not_executed: tuple[ChangedFunction, ...]
    """Changed functions that no workload executes at all; those that the patch adds are not among
    them."""
    not_inside: tuple[ChangedFunction, ...]
    """Changed functions that workloads execute, but none in its stretch."""

    @property
    def measured(self) -> tuple[Proposal, ...]:
        """The proposals that execute changed functions in their stretch."""
        return tuple(proposal for proposal in self.proposals if proposal.functions)


def propose(
    changed: Sequence[ChangedFunction], coverage: CoverageMap, *, stress_tests: Collection[str] = ()
) -> Proposals:
    """Return the workloads of ``coverage`` that execute functions of ``changed``, the best first.

    Those come first that are made for most of what is changed. Of workloads that are made for as
    much, each function counts for the workload whose stretch has the largest share of it, and in
    proportion for others: one that few workloads execute counts for more than one that all do. A
    function that a workload is about counts four times. Of a
    workload the point with the highest score comes first, that with its defaults also with half of
    it. Its other points are proposed only if they execute changed functions that the earlier ones
    do not. ``stress_tests``: the workloads that have no figures, which come after those that do.
    """
    functions = [change for change in changed if change.kind == "function" and change.exists_before]
    wanted = {change.id for change in functions}
    largest: dict[FunctionId, float] = {}
    for workload in coverage.workloads.values():
        for point in workload.points:
            for function in wanted & point.inside.keys():
                largest[function] = max(largest.get(function, 0.0), share_of(point, {function}))
    proposals = [
        proposal
        for workload in coverage.workloads.values()
        for proposal in _proposals(workload, wanted, largest)
    ]
    proposals.sort(
        key=lambda proposal: (
            not proposal.functions,
            proposal.workload in stress_tests,
            -proposal.relevance,
            -proposal.score,
            -len(proposal.functions),
            -len(proposal.outside),
            proposal.workload,
        )
    )
    inside = {function for proposal in proposals for function in proposal.functions}
    executed = inside | {function for proposal in proposals for function in proposal.outside}
    return Proposals(
        coverage.source,
        tuple(proposals),
        tuple(change for change in functions if change.id not in executed),
        tuple(change for change in functions if change.id in executed - inside),
    )


def matching(text: str, coverage: CoverageMap) -> list[ChangedFunction]:
    """Return the functions that ``FILE`` or ``FILE:FUNCTION`` names, as if a patch changed them.

    Of a file, all functions that any workload executes; one that is named, even if none does.
    """
    file, _, name = text.partition(":")
    if name:
        return [ChangedFunction(file, name)]
    return [
        ChangedFunction(function.file, function.name)
        for function in _of(file, "", coverage.functions)
    ]


def not_covered(text: str, source: str, executed: Mapping[str, Collection[FunctionId]]) -> str:
    """Return in a sentence that no workload executes ``text`` of ``source``, and what may be meant
    instead.

    ``executed``: the functions of every map, by its source. A map has only what is executed. So of
    a file that is in none of them, nothing says whether the kernel has it.
    """
    file, _, name = text.partition(":")
    functions = sorted(set().union(*executed.values()))
    in_file = [function for function in functions if function.file == file]
    if not in_file:
        near = _near_file(file, name, functions)
        if "/" not in file or not file.endswith((".c", ".h", ".S")):
            such = f", such as {near[0]}" if near else ""
            return (
                f"{text} is not a file's path in the kernel's tree: write FILE or "
                f"FILE:FUNCTION{such}"
            )
        return (
            f"no coverage map has a file {file}: a map has a file if a workload executes any of "
            "it, so either the path is wrong or no workload executes this "
            f"file{_named('similar names', near)}"
        )
    elsewhere = [kernel for kernel, counted in executed.items() if _of(file, name, counted)]
    if elsewhere:
        return (
            f"no workload executes {text} of {source}, but one executes it on another kernel: "
            f"add --source {elsewhere[0]}"
        )
    same = [str(function) for function in functions if function.name == name]
    of = {function.name: str(function) for function in in_file}
    similar = [of[match] for match in difflib.get_close_matches(name, of, n=_ALIKE)]
    others = _named("workloads execute", (*same, *similar, *of.values()))
    return f"no workload executes {text} of {source}, if such a function exists{others}"


def _of(file: str, name: str, functions: Iterable[FunctionId]) -> list[FunctionId]:
    """Return the functions of a file; with ``name`` only that one."""
    return sorted(
        function for function in functions if function.file == file and name in ("", function.name)
    )


def _near_file(file: str, name: str, functions: Sequence[FunctionId]) -> list[str]:
    """Return what an unknown file may be: where the function is, that name in another folder, or
    the like."""
    files = list(dict.fromkeys(function.file for function in functions))
    suggestions = [str(function) for function in functions if function.name == (name or file)]
    suggestions += [path for path in files if path.endswith(f"/{file.rpartition('/')[2]}")]
    return suggestions + difflib.get_close_matches(file, files, cutoff=_SIMILAR)


def _named(what: str, names: Iterable[str]) -> str:
    """Return ``; WHAT: `` with the first names, each once; empty without names."""
    distinct = list(dict.fromkeys(names))
    return (
        f"; {what}: {', '.join(distinct[:_ALIKE])}{', ...' if len(distinct) > _ALIKE else ''}"
        if distinct
        else ""
    )


def _proposals(
    workload: WorkloadCoverage, wanted: set[FunctionId], largest: Mapping[FunctionId, float]
) -> Iterable[Proposal]:
    about = about_of(workload.name)
    executed = workload.outside | {
        function for point in workload.points for function in point.inside
    }
    scores = {}
    for n, point in enumerate(workload.points):
        hit = {function for function in wanted & point.inside.keys() if largest[function]}
        scores[n] = sum(
            share_of(point, {function})
            / largest[function]
            * (_ABOUT if relevance(about, function) else 1)
            for function in hit
        )
    outside = tuple(sorted(wanted & workload.outside))
    seen: set[FunctionId] = set()
    for n in sorted(scores, key=lambda n: -scores[n] * (1 if n else 2)):
        point = workload.points[n]
        inside = wanted & point.inside.keys()
        if inside - seen:
            seen |= inside
            best = sorted(
                inside, key=lambda function: (-point.inside[function].instructions, function)
            )
            hits = {function: point.inside[function] for function in best}
            share = share_of(point, wanted)
            clear = {function: relevance(about, function) for function in best}
            made_for = tuple(function for function in best if clear[function])
            yield Proposal(
                workload.name,
                point.params,
                hits,
                outside,
                share,
                scores[n],
                made_for,
                sum(clear.values()),
            )
    if not seen and wanted & executed:
        params = workload.points[0].params if workload.points else {}
        yield Proposal(workload.name, params, {}, tuple(sorted(wanted & executed)), 0.0, 0.0)


def share_of(point: PointCoverage, wanted: Collection[FunctionId]) -> float:
    """Return the instructions of ``wanted`` as a share of what the kernel executes in the
    stretch."""
    instructions = sum(
        point.inside[function].instructions for function in point.inside.keys() & wanted
    )
    return instructions / point.instructions if point.instructions else 0.0
