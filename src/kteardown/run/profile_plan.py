"""The boots of a run's profile: boots of their own, sampled while they run.

Sampling costs time, so nothing that a profiled boot measures is compared with anything. Its plan, records
and consoles lie in the run directory's folder ``profile``, which is kept and resumed like the run itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.workload import Workload

_BLOCKS = 3
"""Boots of each kernel, where the order of tasks is another in every boot."""
_REPETITIONS = 10
"""Sampled executions at each point, at most."""


def plan_profile(
    measured: Plan, experiment: Experiment, workloads: Mapping[str, Workload], kernels: Sequence[str]
) -> Plan:
    """The boots to be sampled: of each of ``kernels``, with the seeds of the plan's first blocks.

    Of each workload with a law, and each set of its other parameters, the smallest, the middle and the
    largest point that has any object at all.
    """
    # One CPU on the instruction clock says the same with every seed, or nearly.
    blocks = 1 if experiment.design.clock == "instructions" and measured.cpus == 1 else _BLOCKS
    boots: list[PlannedBoot] = []
    for boot in measured.boots:
        if boot.block < blocks and boot.kernel in kernels:
            trials = _sampled(boot.trials, workloads)
            boots.append(boot.model_copy(update={"index": len(boots), "trials": trials}))
    return measured.model_copy(update={"boots": tuple(boots)})


def _sampled(trials: Iterable[PlannedTrial], workloads: Mapping[str, Workload]) -> tuple[PlannedTrial, ...]:
    families: dict[tuple[object, ...], list[PlannedTrial]] = {}
    for trial in trials:
        law = workloads[trial.workload].law
        rest = sorted(pair for pair in trial.params.items() if pair[0] != law)
        if not law or trial.params.get(law):
            families.setdefault((trial.workload, *rest), []).append(trial)
    chosen: list[PlannedTrial] = []
    for family in families.values():
        law = workloads[family[0].workload].law
        family.sort(key=lambda trial: _size(trial, law))
        chosen += {n: family[n] for n in (0, len(family) // 2, len(family) - 1)}.values()
    return tuple(
        trial.model_copy(
            update={
                "index": n,
                "repetitions": min(trial.repetitions, _REPETITIONS),
                "profile_ns": workloads[trial.workload].profile_ns,
            }
        )
        for n, trial in enumerate(chosen)
    )


def _size(trial: PlannedTrial, law: str) -> int:
    value = trial.params.get(law, 0)
    return value if isinstance(value, int) else 0
