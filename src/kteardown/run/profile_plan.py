"""Make the plan of the profiled boots, which are separate from the measured ones.

Sampling costs time, so the figures of a profiled boot are not compared. Its plan, records and consoles are
in the folder ``profile`` of the run directory, which is kept and resumed like the run itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.workload import Workload

_BLOCKS = 3
"""Boots of each kernel, if the order of tasks differs between boots."""
_REPETITIONS = 10
"""The maximum number of sampled repetitions in a trial."""


def plan_profile(
    measured: Plan, experiment: Experiment, workloads: Mapping[str, Workload], kernels: Sequence[str]
) -> Plan:
    """Return the plan of the profiled boots of ``kernels``, with the seeds of the first blocks.

    For each workload and each set of the parameters other than that of the growth law, it has the smallest,
    the middle and the largest point with at least one object.
    """
    # With one CPU on the instruction clock every seed gives the same profile, or nearly.
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
