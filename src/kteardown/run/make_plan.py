"""Make the plan: the order of the boots, and the trials of each boot.

Pure and seeded: the same experiment gives the same plan. On the wall clock, boots come in
randomized complete blocks: each block boots base, its A/A twin and every variant once, in random
order. On the instruction clock every kernel is booted once with each seed, and a block is a seed.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kteardown.model.experiment import Experiment
from kteardown.model.plan import (
    Plan,
    PlannedBoot,
    PlannedTrial,
    blocks_of,
    controls,
    modules_of,
    script_of,
)
from kteardown.model.point import cpus_of, on_machine, points_of, size_of, sweep_points
from kteardown.model.record import BASE, LAYOUT, Outcome, TrialStart
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords

_HUNG: tuple[Outcome, ...] = ("hang",)
_FURTHER = 3
"""A boot whose trials fail again and again has at most this many further boots."""
_PROFILED_BLOCKS = 3
"""Boots of each kernel, if the order of tasks differs between boots."""
_PROFILED_REPETITIONS = 10
"""The maximum number of sampled repetitions in a trial."""


def make_plan(
    experiment: Experiment, workloads: Mapping[str, Workload], variants: Sequence[str]
) -> Plan:
    """Return the plan of ``experiment`` with these variants (names, in the order of the report)."""
    design = experiment.design
    rng = random.Random(design.seed)
    kernels = [BASE, *controls(design), *variants]
    boots: list[PlannedBoot] = []
    for block in range(blocks_of(design)):
        boots += _block(experiment, workloads, kernels, block, len(boots), rng)
    used = workloads.values()
    machine = experiment.machine
    return Plan(
        boots=tuple(boots),
        points=points_of(experiment, workloads),
        cpus=cpus_of(experiment, workloads),
        memory_mb=machine.memory_mb or max(workload.memory_mb for workload in used),
        silence_s=max(workload.silence_s for workload in used),
        possible_cpus=machine.largest("possible_cpus"),
        numa_nodes=machine.largest("numa_nodes"),
    )


def with_layout_twin(
    plan: Plan, experiment: Experiment, workloads: Mapping[str, Workload], blocks: int
) -> Plan:
    """Return ``plan`` with ``blocks`` more blocks of base and the layout twin."""
    # Their order has its own random numbers, so that the blocks of ``plan`` do not change.
    rng = random.Random(f"{experiment.design.seed} {LAYOUT}")
    first = blocks_of(experiment.design)
    boots = list(plan.boots)
    for block in range(first, first + blocks):
        boots += _block(experiment, workloads, [BASE, LAYOUT], block, len(boots), rng)
    return plan.model_copy(update={"boots": tuple(boots)})


def rest_of_failed(
    plan: Plan,
    boots: Sequence[BootRecords],
    *,
    outcomes: Collection[Outcome] = _HUNG,
    leave_out: Callable[[PlannedTrial, PlannedTrial], bool] | None = None,
) -> tuple[PlannedBoot, ...]:
    """Return a further boot for each of ``boots`` that failed, with the trials that it did not
    reach.

    There is none if the outcome is not one of ``outcomes``, if ``plan`` has the further boot
    already, if the guest failed before its first trial, or if the boot has had its further boots. A
    trial is left out if ``leave_out`` is true for it and the trial that failed.
    """
    further: list[PlannedBoot] = []
    for boot in boots:
        planned = plan.boots[boot.boot]
        alike = [candidate for candidate in plan.boots if candidate.place == planned.place]
        if boot.end.outcome not in outcomes or planned is not alike[-1] or len(alike) > _FURTHER:
            continue
        begun = {record.trial for record in boot.records if isinstance(record, TrialStart)}
        rest = [trial for trial in planned.trials if trial.index not in begun]
        if begun and leave_out:
            failed = planned.trials[max(begun)]
            rest = [trial for trial in rest if not leave_out(trial, failed)]
        if begun and rest:
            trials = tuple(trial.model_copy(update={"index": n}) for n, trial in enumerate(rest))
            index = len(plan.boots) + len(further)
            further.append(planned.model_copy(update={"index": index, "trials": trials}))
    return tuple(further)


def plan_profile(
    measured: Plan,
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Sequence[str],
) -> Plan:
    """Return the plan of the profiled boots of ``kernels``, with the seeds of the first blocks.

    They are separate from the measured ones, because sampling costs time: their figures are not
    compared. Plan, records and consoles are in the folder ``profile`` of the run directory, which
    is kept and resumed like the run itself.

    For each workload and each set of the parameters other than that of the growth law, it has the
    smallest, the middle and the largest point with at least one object.
    """
    # With one CPU on the instruction clock every seed gives the same profile, or nearly.
    blocks = (
        1 if experiment.design.clock == "instructions" and measured.cpus == 1 else _PROFILED_BLOCKS
    )
    boots: list[PlannedBoot] = []
    for boot in measured.boots:
        if boot.block < blocks and boot.kernel in kernels:
            trials = _sampled(boot.trials, workloads)
            boots.append(boot.model_copy(update={"index": len(boots), "trials": trials}))
    return measured.model_copy(update={"boots": tuple(boots)})


def _block(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Sequence[str],
    block: int,
    first: int,
    rng: random.Random,
) -> list[PlannedBoot]:
    """Return one block: every kernel once on every machine, with one seed and the same trials.

    A script is run once in a boot, since what it leaves behind would be there at the next point:
    each of its points has boots of its own. ``first`` is the index of its first boot.
    """
    seed = rng.getrandbits(31) | 1  # 0 would turn the agent's perturbation off
    wall = experiment.design.clock == "wall"
    cpus = cpus_of(experiment, workloads)
    machines = experiment.machine.points()
    if wall and len(machines) > 1:
        rng.shuffle(machines)
    trials = _trials(experiment, workloads, rng)
    unscripted = [trial for trial in trials if trial.script is None]
    groups = [unscripted, *([trial] for trial in trials if trial.script is not None)]
    boots = [
        tuple(trial.model_copy(update={"index": index}) for index, trial in enumerate(group))
        for group in groups
        if group
    ]
    # Kernels on the same machine are compared with each other, so they are booted one after
    # another.
    order = [
        (kernel, machine, together)
        for machine in machines
        for together in boots
        for kernel in (rng.sample(kernels, len(kernels)) if wall else kernels)
    ]
    return [
        PlannedBoot(
            index=first + n,
            block=block,
            kernel=kernel,
            seed=seed,
            trials=_on(together, workloads, machine.get("cpus", cpus)),
            modules=modules_of(workloads[trial.workload] for trial in together),
            machine=machine,
        )
        for n, (kernel, machine, together) in enumerate(order)
    ]


def _on(
    trials: Iterable[PlannedTrial], workloads: Mapping[str, Workload], cpus: int
) -> tuple[PlannedTrial, ...]:
    """Return trials for a guest with ``cpus`` CPUs."""
    return tuple(
        trial.model_copy(
            update={"params": on_machine(trial.params, workloads[trial.workload], cpus)}
        )
        for trial in trials
    )


def _trials(
    experiment: Experiment, workloads: Mapping[str, Workload], rng: random.Random
) -> list[PlannedTrial]:
    """Return the trials of every point, in the order of one block."""
    design = experiment.design
    trials: list[PlannedTrial] = []
    for sweep in experiment.workloads:
        todo = sweep_points(sweep, workloads[sweep.workload])
        if sweep.shuffle:
            rng.shuffle(todo)
        for point in todo:
            trials.append(
                PlannedTrial(
                    index=len(trials),
                    workload=sweep.workload,
                    params=point,
                    warmup=design.warmup,
                    repetitions=design.repetitions,
                    script=script_of(workloads[sweep.workload]),
                )
            )
    return trials


def _sampled(
    trials: Iterable[PlannedTrial], workloads: Mapping[str, Workload]
) -> tuple[PlannedTrial, ...]:
    families: dict[tuple[object, ...], list[PlannedTrial]] = {}
    for trial in trials:
        law = workloads[trial.workload].law
        rest = sorted(pair for pair in trial.params.items() if pair[0] != law)
        if not law or trial.params.get(law):
            families.setdefault((trial.workload, *rest), []).append(trial)
    chosen: list[PlannedTrial] = []
    for family in families.values():
        law = workloads[family[0].workload].law
        family.sort(key=lambda trial: size_of(trial.params, law))
        chosen += {n: family[n] for n in (0, len(family) // 2, len(family) - 1)}.values()
    return tuple(
        trial.model_copy(
            update={
                "index": n,
                "repetitions": min(trial.repetitions, _PROFILED_REPETITIONS),
                "profile_ns": workloads[trial.workload].profile_ns,
            }
        )
        for n, trial in enumerate(chosen)
    )
