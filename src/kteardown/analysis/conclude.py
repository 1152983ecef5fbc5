"""The result of a run from its directory alone, and the samples and stacks as reports draw them.

This stage knows no machine and prints nothing. The statistic inside a boot is the median of its
measured repetitions, or a percentile that the metric declares. The statistic of a kernel at a point
is the median over its boots. Equal records give an equal result, bit for bit: every random draw is
seeded from the design of the experiment, and nothing about the time or load of the host is used
except notes on the environment. A run that stops when certain is analysed at the look that its
records reach. On the instruction clock a kernel has the same counts in every run that measures it
in the same way, so those of two runs are compared (``across``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.analysis import self_timed, sequential
from kteardown.analysis.ablations import ablations
from kteardown.analysis.comparisons import compare_all
from kteardown.analysis.dataset import Data, Dataset, headlines
from kteardown.analysis.estimate.bootstrap import Resampler
from kteardown.analysis.estimate.verdict import Rules
from kteardown.analysis.faults import faults, uncompared
from kteardown.analysis.growth.laws import laws, slope_ratios
from kteardown.analysis.levels import levels
from kteardown.analysis.node_notes import node_notes
from kteardown.analysis.profile import folded, profiles
from kteardown.analysis.sharing import sharing_profiles
from kteardown.analysis.stretches import collect
from kteardown.analysis.timing import disturbance_notes, timing_of
from kteardown.analysis.waits import wait_profiles
from kteardown.inputs.counts import METRICS
from kteardown.model.events import EventCounts
from kteardown.model.experiment import Design, Experiment
from kteardown.model.judged import Judged
from kteardown.model.kernel_facts import KernelFacts, Unavailable, not_built
from kteardown.model.laws import Distribution
from kteardown.model.plan import blocks_of, controls
from kteardown.model.point import Point
from kteardown.model.record import BASE, LAYOUT, NOT_VARIANTS, OUTCOMES
from kteardown.model.result import ChangeCost, Result
from kteardown.model.stack_profile import Profile
from kteardown.model.workload import Workload
from kteardown.rundir.completeness import boots_left, complete_blocks, measurable, spent
from kteardown.rundir.counting import EXACT, BootRecords, trials
from kteardown.rundir.environment import environment_notes, printed_notes
from kteardown.rundir.snapshot import Snapshot

LAYOUT_CLAIM = 0.1
"""A smaller change is not claimed without the layout twin: moving code alone changed results by 4
to 9%."""
_MOVED_BY_LAYOUT = ("ns", "us", "per_s", "share")
"""Units of metrics that code layout can change, as it can counts of the processor; not of objects
or kB."""


def analyse(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    boots: Sequence[BootRecords],
    kernels: Mapping[str, KernelFacts],
    machine: Mapping[str, Any],
    command: str,
    *,
    points: Sequence[Point],
    blocks: int | None = None,
    confidence: float | None = None,
    environment_notes: Sequence[str] = (),
    unavailable: Sequence[Unavailable] = (),
    predict_at: Mapping[str, Sequence[float]] | None = None,
    counted: Sequence[ChangeCost] = (),
) -> Result:
    """Return the result of a run, or of the part of it that is finished.

    ``boots`` are the last finished attempts of each boot. ``kernels`` are base and the variants in
    report order. ``machine`` has stable facts of the host. ``command`` is the command that repeats
    the run. ``points`` are those of the plan. ``blocks`` restricts the analysis to blocks with
    lower numbers; ``confidence`` replaces that of the design. Blocks beyond the design's contain
    base and its layout twin, and are used only to compare these two. ``unavailable`` are kernels of
    an ablation that could not be built. ``predict_at``: by parameter, where growth laws are
    evaluated, instead of at twice the largest. ``counted``: what was counted of the changed
    functions.
    """
    design = experiment.design
    planned = blocks_of(design)
    limit = planned if blocks is None else min(planned, blocks)
    used = [boot for boot in boots if boot.start.block < limit or boot.start.block >= planned]
    main = [boot for boot in boots if boot.start.block < limit]
    data = _data(experiment, workloads, kernels, points, main, used, confidence, counted)
    failed = faults(main, data.variants, points, design.clock, design.confidence)
    slopes = slope_ratios(data)
    judged = compare_all(data, slopes, failed)
    voids = data.collected.voids([BASE, *controls(design), *data.variants], limit, data.expected)
    asked_for = [v for v in data.asked_for if any(boot.start.kernel == v for boot in boots)]
    result = Result(
        experiment=experiment.name,
        question=experiment.question,
        clock=design.clock,
        command=command,
        machine=dict(machine),
        kernels=_as_booted(kernels, data.collected.releases),
        comparisons=judged.comparisons,
        laws=laws(data, [BASE, *data.variants], predict_at or {}, slopes, judged.slopes),
        boots={outcome: sum(b.end.outcome == outcome for b in used) for outcome in OUTCOMES},
        voids=voids,
        ablations=ablations(data, kernels, judged.comparisons, unavailable),
        outliers=judged.outliers,
        distributions=_distributions(data, [BASE, *data.variants]),
        levels=levels(data),
        sharing=sharing_profiles(workloads, main, points),
        metric_verdicts=judged.metric_verdicts,
        faults=failed,
        uncompared=uncompared(judged.comparisons, asked_for, points, voids),
    )
    notes = (*_notes(data, kernels, used, environment_notes), *node_notes(judged, data.nodes))
    return result.model_copy(update={"notes": (*notes, *_cautions(result, data))})


def _as_booted(
    kernels: Mapping[str, KernelFacts], releases: Mapping[str, str]
) -> dict[str, KernelFacts]:
    return {
        name: facts.model_copy(update={"release": releases.get(name, facts.release)})
        for name, facts in kernels.items()
    }


def _data(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Mapping[str, KernelFacts],
    points: Sequence[Point],
    main: Sequence[BootRecords],
    used: Sequence[BootRecords],
    confidence: float | None,
    counted: Sequence[ChangeCost],
) -> Data:
    """Return the input of all comparisons. ``used``: the boots of ``main``, and those of the layout
    twin."""
    design = experiment.design
    blocks = {boot.start.block for boot in used if boot.start.kernel == LAYOUT}
    moved = [
        boot for boot in used if boot.start.block in blocks and boot.start.kernel in (BASE, LAYOUT)
    ]
    variants = [name for name in kernels if name not in (*NOT_VARIANTS, *not_built(kernels))]
    nodes = {boot.start.block: boot.start.node for boot in main if boot.start.acceleration != EXACT}
    return Data(
        experiment=experiment,
        workloads=workloads,
        collected=Dataset(main),
        moved=Dataset(moved),
        expected=points,
        variants=variants,
        asked_for=[name for name in variants if not kernels[name].for_ablation],
        rules=Rules(confidence or design.confidence, design.same_within),
        resampler=Resampler(design.seed),
        nodes=nodes if len(set(nodes.values())) > 1 else {},
        costs={(cost.variant, cost.workload): cost for cost in counted},
    )


def needs_layout_twin(result: Result, workloads: Mapping[str, Workload]) -> bool:
    """Return whether a verdict could be explained by code layout alone and there is no layout twin.

    This applies to verdicts of better or worse on the wall clock, of a metric that layout can
    change, with a change below ten percent.
    """
    judged: tuple[Judged, ...] = (*result.metric_verdicts, *result.comparisons)
    return result.clock == "wall" and any(
        c.verdict in ("better", "worse", "mixed")
        and c.layout_ci is None
        and c.ratio is not None
        and abs(c.ratio - 1) < LAYOUT_CLAIM
        and (
            c.metric in METRICS or workloads[c.workload].metrics[c.metric].unit in _MOVED_BY_LAYOUT
        )
        for c in judged
    )


def _notes(
    data: Data,
    kernels: Mapping[str, KernelFacts],
    boots: Sequence[BootRecords],
    environment: Sequence[str],
) -> list[str]:
    workloads = data.workloads
    recorded = data.collected.metrics
    releases = data.collected.releases
    notes = []
    if any(boot.start.acceleration == "mttcg" for boot in boots):
        notes.append(
            "multi-threaded emulation, not hardware: real time of translated code, in which caches "
            "and interrupts between CPUs differ from hardware"
        )
    notes += environment
    notes += [
        f"the agent recorded {metric}, which workload {workload} does not declare: not analysed"
        for workload, metric in sorted(recorded)
        if workload not in workloads or metric not in workloads[workload].metrics
    ]
    notes += [
        f"no trial of workload {workload} recorded {metric}, which the workload declares"
        for workload in sorted({workload for workload, _ in recorded} & workloads.keys())
        for metric, spec in workloads[workload].metrics.items()
        if not spec.optional and (workload, metric) not in recorded
    ]
    notes += [
        f"{name} was built as {facts.release} and reported the release {releases[name]} when it ran"
        for name, facts in kernels.items()
        if facts.release and releases.get(name, facts.release) != facts.release
    ]
    if kept := [boot.end.kept_from for boot in boots if boot.end.kept_from]:
        words = f"{len(kept)} of {len(boots)} boots were run before, first at {min(kept)}"
        notes.append(f"{words}: equal boots give equal records on the instruction clock")
    unsafe = (name for name, facts in kernels.items() if not facts.sandboxed)
    return [*notes, *(f"{name} was built without the sandbox (--unsafe-build)" for name in unsafe)]


def _cautions(result: Result, data: Data) -> list[str]:
    notes = self_timed.notes(result, data.workloads, data.costs)
    if needs_layout_twin(result, data.workloads):
        notes.append(
            f"claims below {LAYOUT_CLAIM:.0%} are made without a layout twin: moving code alone "
            "has changed results by 4 to 9%"
        )
    for c in result.comparisons:
        percent = 50.0 if c.statistic == "median" else float(c.statistic.removeprefix("p"))
        fewest = min(side.n / side.boots for side in (c.base, c.changed))
        # Fewer than one sample of a boot is expected beyond the percentile.
        if c.statistic != "median" and fewest * min(percent, 100 - percent) < 100:
            notes.append(
                f"{c.metric} {c.statistic}: a boot has too few samples to distinguish it from "
                "their maximum or minimum"
            )
    return list(dict.fromkeys(notes))


def _distributions(data: Data, kernels: Sequence[str]) -> tuple[Distribution, ...]:
    """Return a distribution for every histogram, kernel and point that has values."""
    return tuple(
        Distribution(
            workload=workload,
            kernel=kernel,
            metric=metric,
            unit=spec.unit,
            point=point.shown,
            n=histogram.n,
            percentiles={
                f"{percent:g}": histogram.percentile(percent) for percent in spec.percentiles
            },
            error=histogram.error,
        )
        for workload in dict.fromkeys(point.workload for point in data.expected)
        for metric, spec in data.workloads[workload].histograms.items()
        for kernel in kernels
        for point in data.expected
        if point.workload == workload
        and (histogram := data.collected.histogram(kernel, point, metric)) is not None
    )


def conclude(snapshot: Snapshot) -> tuple[Result, Mapping[str, str]]:
    """Return the result of a run, and the folded stacks of its profile by file name. Raises
    InputError."""
    # Counted before they are read: a run may grow meanwhile.
    ended = snapshot.run.ended_boots()
    result = analyse_run(snapshot)
    sampled = snapshot.run.profile.boots()
    stack_profiles, stacks, profile_notes = profiles_of(snapshot, sampled)
    timing = timing_of(snapshot.run, snapshot.records)
    printed = printed_notes(snapshot.boots)
    notes = (*snapshot.notes, *result.notes, *printed, *disturbance_notes(timing), *profile_notes)
    notes = (*notes, *_uncounted(snapshot.events))
    update = {
        "profiles": stack_profiles,
        "waits": wait_profiles(sampled, snapshot.experiment, snapshot.workloads),
        "events": tuple(snapshot.events),
        "notes": notes,
        "ended_boots": ended,
        "timing": timing,
    }
    return result.model_copy(update=update), stacks


def _uncounted(events: Sequence[EventCounts]) -> list[str]:
    return [
        f"{counts.workload} with {counts.variant}: waits and broadcasts were not counted: "
        f"{counts.reason}"
        for counts in events
        if counts.reason
    ]


def analyse_run(snapshot: Snapshot) -> Result:
    """The comparisons of what the run directory has now, without its profile. Raises InputError."""
    environment = snapshot.run.environment()
    experiment = snapshot.experiment
    workloads = snapshot.workloads
    about: dict[str, Any] = {
        "kernels": snapshot.kernels,
        "points": snapshot.plan.points,
        "machine": environment["machine"],
        "command": environment["command"],
        "environment_notes": environment_notes(snapshot.run, snapshot.records),
        "unavailable": snapshot.unavailable,
        "predict_at": experiment.predict,
        "counted": snapshot.counted,
    }
    boots = snapshot.boots
    plan = measurable(snapshot.plan, snapshot.kernels)
    design = experiment.design
    most = blocks_of(experiment.design)
    if not design.until:
        left = len(boots_left(plan, boots, most))
        result = analyse(experiment, workloads, boots, **about)
        return result.model_copy(update={"boots_left": left})
    # Blocks added for the layout twin do not decide where the run stops: it stops there again with
    # them.
    deciding = [boot for boot in boots if boot.start.block < most]

    def analyse_at(blocks: int, confidence: float) -> Result:
        return analyse(
            experiment, workloads, deciding, blocks=blocks, confidence=confidence, **about
        )

    reached = complete_blocks(plan, deciding, most)
    result, stopping = sequential.conclude(
        analyse_at,
        reached,
        most,
        sequential.parse_until(design.until),
        design.confidence,
        {(name, metric) for name, metric, _ in headlines(experiment, workloads)},
        spent=spent(deciding, sequential.looks(most), reached, design.budget_s),
    )
    if stopping is not None and len(deciding) < len(boots):
        level = stopping.confidence
        result = analyse(
            experiment, workloads, boots, blocks=stopping.stopped_at, confidence=level, **about
        )
    return result.model_copy(update={"stopping": stopping})


def next_look(design: Design, result: Result | None) -> int:
    """The number of blocks to measure before the look after ``result``; None is before the first
    look."""
    if not design.until:
        return blocks_of(design)
    stopping = result.stopping if result is not None else None
    if stopping is None:
        return sequential.looks(blocks_of(design))[0]
    if stopping.done:
        return stopping.stopped_at
    return next(look for look in stopping.looks if look > stopping.stopped_at)


def profiles_of(
    snapshot: Snapshot, boots: Sequence[BootRecords]
) -> tuple[tuple[Profile, ...], Mapping[str, str], tuple[str, ...]]:
    """Return the profiles of a run, their folded stacks by file name, and problems; empty if it has
    none. ``boots``: those that were sampled.

    A file of stacks is called ``KERNEL-WORKLOAD-PARAMETER=VALUE.folded``, with the parameters that
    the experiment sets. Raises InputError.
    """
    experiment = snapshot.experiment
    workloads = snapshot.workloads
    kernels = list(dict.fromkeys((BASE, *(boot.start.kernel for boot in boots))))
    result = profiles(boots, experiment, workloads, kernels)
    files = {}
    for stretches in collect(boots):
        sweep = next(s for s in experiment.workloads if s.workload == stretches.workload)
        shown = {*experiment.machine.swept, *sweep.params, workloads[stretches.workload].law}
        words = [f"{name}={value}" for name, value in stretches.key if name in shown]
        name = "-".join((stretches.kernel, stretches.workload, *words)).replace("/", "_")
        files[f"{name}.folded"] = folded(stretches)
    notes = [
        f"the profiled boot of {boot.start.kernel}: {boot.end.outcome}: {boot.end.detail}"
        for boot in boots
        if boot.end.outcome != "ok"
    ]
    notes += [
        f"the profiled boot of {boot.start.kernel}: trial {trial.index} {trial.status}: "
        f"{trial.detail}"
        for boot in boots
        for trial in trials(boot.records)
        if trial.status and not trial.usable
    ]
    notes += [
        f"profile of {stretch.kernel} at {stretch.point}: {stretch.lost} samples were lost after "
        f"{stretch.samples} filled the buffer, so it covers only the beginning; give the guest "
        "more memory, or the workload a longer profile_ns"
        for profile in result
        for stretch in profile.stretches
        if stretch.lost
    ]
    return result, files, tuple(dict.fromkeys(notes))
