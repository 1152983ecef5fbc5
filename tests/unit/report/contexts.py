"""Materials of reports with a known truth: simulated runs, an ablation of three patches, a
profile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kteardown.analysis.conclude import analyse
from kteardown.analysis.evidence import gather
from kteardown.inputs.contention import designed, with_contention
from kteardown.inputs.load import load_workload
from kteardown.inputs.published import load_posting
from kteardown.model.clock import BOTH
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.laws import Distribution
from kteardown.model.point import points_of
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Ablation, Part, PatchParts
from kteardown.model.samples import Evidence, Stacks
from kteardown.report.material import Material
from kteardown.rundir.directory import RunDir, new_folder
from kteardown.rundir.find import RunFolder, mark_both_clocks
from unit.run_dirs import fill
from unit.simulation import WORKLOADS, Cost, Noise, analysed, freezer, freezer_cost, simulate

ENTRY = "entry_SYSCALL_64"


@cache
def instructions() -> Material:
    """The freezer on the instruction clock: eleven points, two variants, five seeds of three
    samples."""
    return simulated(freezer(cgroup=True), Noise(boot=0.002, sample=0.001))


@cache
def wall() -> Material:
    """The same in real time on a noisy machine, with the A/A twin."""
    experiment = freezer("wall", boots=10, zombies=(3000, 15000, 30000))
    return simulated(experiment, Noise(block=0.2, boot=0.05, sample=0.05))


@cache
def rich() -> Material:
    """The material of ``instructions`` with an ablation, a histogram and a profile."""
    plain = instructions()
    result = plain.result.model_copy(
        update={"ablations": (ablation(),), "distributions": distributions()}
    )
    evidence = Evidence(plain.evidence.samples, stacks())
    return Material(plain.name, result, plain.workloads, plain.reference, evidence)


@cache
def contention() -> Material:
    """Swap that is freed on 1 to 8 CPUs by as many processes, on the contention clock.

    The first variant moves more lines, the second one fewer, and neither does so on one CPU.
    """
    used = {"swapfree": with_contention(load_workload("swapfree"))}
    variants = ("zsmalloc-lockless-free", "other")
    plain = Experiment(
        name="swapfree",
        question="Do processes that free swap wait for each other?",
        source="debian:6.12",
        variants=variants,
        workloads=(Sweep(workload="swapfree", params={"mb": (4, 16), "processes": ("cpus",)}),),
        design=Design(clock="contention", seeds=4, repetitions=1, warmup=0),
    )
    machine = plain.machine.model_copy(update={"cpus": (1, 2, 4, 8)})
    experiment = designed(plain.model_copy(update={"machine": machine}))
    boots = simulate(experiment, shared_swap, Noise(boot=0.05), workloads=used)
    points = points_of(experiment, used)
    evidence = gather(experiment, used, points, boots, (), variants)
    facts = KernelFacts(
        release="6.12.117",
        source="simulated",
        arch="x86_64",
        compiler="simulated",
        config_hash="",
        image_hash="",
    )
    kernels = dict.fromkeys(("base", *variants), facts)
    command = "kteardown run swapfree --clock contention"
    result = analyse(experiment, used, boots, kernels, {}, command, points=points)
    return Material("20260301-123059-swapfree", result, used, None, evidence)


def shared_swap(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
    """Return the counts for one page on a number of CPUs: one CPU moves no line."""
    others = int(params["cpus"]) - 1
    by_metric = {"line_moves_count": 1000.0 * others, "spins_count": 200.0 * others**2}
    factor = {"zsmalloc-lockless-free": 1.2, "other": 0.7}.get(kernel, 1.0)
    return factor * by_metric.get(metric, 14_000.0)


def distributions() -> tuple[Distribution, ...]:
    """Latency distributions of base and of the variant."""
    return tuple(
        Distribution(
            workload="zombies",
            kernel=kernel,
            metric="wakeup_ns",
            unit="ns",
            point={"zombies": 30000},
            n=1234,
            percentiles={"50": low, "99.9": high},
            error=0.002,
        )
        for kernel, low, high in (("base", 2000, 90000), ("freezer-skip-exited", 1000, 80000))
    )


def ablation() -> Ablation:
    """Patch 1 halves the cost, patch 2 may have no effect, patch 3 adds a tenth."""
    sizes = ((0.5, (0.49, 0.51)), (0.98, (0.9, 1.07)), (1.1, (1.09, 1.11)))
    parts = [Part(ratio=ratio, ci=ci, share=0.3, share_ci=(0.2, 0.4)) for ratio, ci in sizes]
    return Ablation(
        workload="zombies",
        variant="freezer-skip-exited",
        series="freezer-skip-exited",
        metric="freeze_user_ns",
        unit="ns",
        better="lower",
        point={"zombies": 30000},
        ratio=0.539,
        ci=(0.5, 0.58),
        confidence=0.95,
        patches=tuple(
            PatchParts(patch=n, subject=f"part {n}", step=part, leave_out=part)
            for n, part in enumerate(parts, start=1)
        ),
    )


def stacks() -> tuple[Stacks, ...]:
    """Base spends half its time in the freezer; the variant does not, and spends a little more
    elsewhere."""
    of = {
        "base": {
            (ENTRY, "freeze_task"): 500.0,
            (ENTRY, "do_wait"): 400.0,
            (ENTRY,): 99.0,
            ("tiny",): 1.0,
        },
        "freezer-skip-exited": {(ENTRY, "do_wait"): 450.0, (ENTRY,): 50.0},
    }
    return tuple(
        Stacks(kernel, "zombies", "zombies", {"zombies": 30000}, ns) for kernel, ns in of.items()
    )


def write_both(root: Path) -> RunFolder:
    """Write what measuring the freezer on both clocks would produce: two variants at three
    points."""
    folder = new_folder(root, "freezer")
    for clock, boots in zip(BOTH, (3, 6), strict=True):
        write_run(root, freezer(clock, zombies=(0, 3000, 15000), boots=boots), folder / clock)
    return mark_both_clocks(folder)


def write_run(
    root: Path,
    experiment: Experiment | None = None,
    at: Path | None = None,
    cost: Cost = freezer_cost,
    started: str = "2026-03-01",
) -> RunDir:
    """Write the run directory that measuring ``experiment`` would produce: two variants at three
    points.

    It is a new folder of ``root``, or ``at``.
    """
    wanted = experiment or freezer(zombies=(0, 3000, 15000), boots=3)
    run = RunDir.create_at(at) if at else RunDir.create(root, wanted.name)
    facts = dict.fromkeys(("source", "compiler", "config_hash", "image_hash"), "simulated")
    image = {**facts, "release": "6.12.117", "arch": "x86_64", "image": "bzImage", "modules": []}
    environment = {"command": "kteardown run freezer", "machine": {"cpu": {"model": "simulated"}}}
    fill(
        run, wanted, wanted.variants, dict.fromkeys(("base", *wanted.variants), image), environment
    )
    with run.records_file.path.open("w", encoding="utf-8") as stream:
        for boot in simulate(wanted, cost, Noise(boot=0.002, sample=0.001)):
            start = boot.start.model_copy(update={"started_at": f"{started}T12:30:59.000+00:00"})
            for record in (start, *boot.records, boot.end):
                stamped = record.model_copy(update={"boot": boot.boot, "attempt": 0})
                stream.write(stamped.model_dump_json() + "\n")
    return run


def simulated(experiment: Experiment, noise: Noise) -> Material:
    """Return the material of a simulated run of ``experiment``."""
    boots = simulate(experiment, noise=noise)
    used = {sweep.workload: WORKLOADS[sweep.workload] for sweep in experiment.workloads}
    evidence = gather(experiment, used, points_of(experiment, used), boots, (), experiment.variants)
    reference = load_posting("freezer")
    return Material(
        "20260301-123059-freezer", analysed(experiment, boots), used, reference, evidence
    )
