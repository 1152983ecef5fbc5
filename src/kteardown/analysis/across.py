"""A kernel of one run compared with a kernel of another."""

from collections.abc import Iterator
from dataclasses import replace

from kteardown.analysis.conclude import analyse
from kteardown.errors import InputError
from kteardown.inputs.load import load_workloads
from kteardown.model.experiment import Experiment
from kteardown.model.point import points_of
from kteardown.model.record import BASE, NOT_VARIANTS
from kteardown.model.result import Result
from kteardown.rundir.counting import BootRecords
from kteardown.rundir.environment import differences, guest_differences
from kteardown.rundir.snapshot import Snapshot

_CONDITIONS = ("clock", "seed", "seeds", "repetitions", "warmup")


def across(kept: Snapshot, new: Snapshot) -> Result:
    """Return the variant of ``new`` (or its base) compared with the kernel of that name in
    ``kept``.

    If ``kept`` has no such kernel, it is compared with its base. Raises InputError if both were not
    measured in the same way.
    """
    variant = next((name for name in new.kernels if name not in NOT_VARIANTS), BASE)
    reference = variant if variant in kept.kernels else BASE
    check_alike(kept, new.experiment, last_agent(new))
    name = variant if variant != BASE else new.kernels[BASE].source
    boots = [*_called(kept, reference, BASE), *_called(new, variant, name)]
    facts = {
        BASE: kept.kernels[reference],
        name: new.kernels[variant].model_copy(update={"unchanged": False}),
    }
    environment = new.run.environment()
    machines = kept.run.environment()["machine"], environment["machine"]
    unlike = differences(*machines, arch=facts[BASE].arch, exact=True)
    compilers = [facts[kernel].compiler for kernel in (BASE, name)]
    unlike += [f"compiler: {' / '.join(compilers)}"] * (compilers[0] != compilers[1])
    return analyse(
        new.experiment.model_copy(update={"variants": (name,)}),
        new.workloads,
        boots,
        facts,
        environment["machine"],
        environment["command"],
        points=new.plan.points,
        environment_notes=[
            f"base is {reference} of {kept.run.name}, which is not booted again",
            *(
                f"both runs differ: {text}"
                for text in (*unlike, *guest_differences(kept.run, new.run))
            ),
        ],
    )


def last_agent(snapshot: Snapshot) -> str:
    """Return the hash of the agent of the last session of a run; empty if it was not recorded."""
    sessions = snapshot.run.environment().get("sessions", [])
    return str(sessions[-1].get("agent_hash", "")) if sessions else ""


def _called(snapshot: Snapshot, kernel: str, name: str) -> Iterator[BootRecords]:
    for boot in snapshot.boots:
        if boot.start.kernel == kernel:
            yield replace(boot, start=boot.start.model_copy(update={"kernel": name}))


def check_alike(kept: Snapshot, experiment: Experiment, agent: str) -> None:
    """Raise InputError if an experiment does not measure in the same way as a kept run.

    ``agent``: the hash of its agent. The instructions of the agent count too, so the counts of two
    agents are not compared; `kteardown diff` compares changes, of which each has one agent. Empty
    if not known.
    """
    ours = kept.experiment
    design = experiment.design
    workloads = load_workloads(experiment)
    unlike = [
        f"{name} is {getattr(ours.design, name)} / {getattr(design, name)}"
        for name in _CONDITIONS
        if getattr(ours.design, name) != getattr(design, name)
    ]
    unlike += ["the agent, whose instructions count too"] * (
        len({last_agent(kept), agent} - {""}) > 1
    )
    unlike += ["the machine of the guests"] * (ours.machine != experiment.machine)
    alike = [name for name, workload in workloads.items() if kept.workloads.get(name) == workload]
    unlike += [
        f"the workload {name}" for name in workloads if name in kept.workloads and name not in alike
    ]
    places = {(point.workload, point.full) for point in kept.plan.points}
    if not any(
        (point.workload, point.full) in places for point in points_of(experiment, workloads)
    ):
        unlike.append("no point is in both")
    if unlike:
        raise InputError(
            f"{kept.run.name} was measured in another way: {'; '.join(unlike)}",
            hint=(
                "measure the reference again with kteardown run and the same options, or give a "
                "branch (--against REV), whose kernel kteardown boots alongside."
            ),
        )
