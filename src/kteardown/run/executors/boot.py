"""Attempt one boot, and write every record as it arrives."""

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from kteardown.kernels.source_lines import SourceLines
from kteardown.model.plan import PlannedBoot
from kteardown.model.record import AgentError, BootEnd, BootStart, Record, TrialEnd, TrialStart, parse
from kteardown.run.executors.port import Setting
from kteardown.rundir.counting import EXACT
from kteardown.vm.host import load_average
from kteardown.vm.host_watch import HostWatch
from kteardown.vm.initramfs import pack
from kteardown.vm.job import Acceleration, BootJob, BootResult
from kteardown.vm.kernel_log import plain_line

# How much longer than on hardware a guest may be silent under each acceleration before its outcome is
# `hang`. Workloads write a record every few seconds even with mttcg; the factor is for a loaded host, which
# does not matter to icount: its limit is on the guest's own clock.
SILENCE_FACTOR: Mapping[Acceleration, float] = {"kvm": 1.0, "mttcg": 5.0, "icount": 0.5}


def attempt_boot(boot: PlannedBoot, attempt: int, setting: Setting) -> BootResult:
    """Run one attempt at ``boot`` and write its records to the log. Raises InputError, LabError."""
    lab, log, watch = setting.lab, setting.log, setting.watch
    kernel = setting.kernels[boot.kernel]

    def keep(record: Record) -> None:
        log.append(record, boot=boot.index, attempt=attempt)

    # On the instruction clock nothing that the host does reaches a figure.
    host = None if lab.acceleration == EXACT else HostWatch()

    def on_line(raw: bytes) -> None:
        record = _completed(raw, boot, host, began, lab.lost_limit)
        if isinstance(record, TrialEnd):
            watch.done(boot, record.trial)
        elif isinstance(record, TrialStart):
            watch.trial(boot, record.trial)
        keep(record)

    console = log.console_path(boot.index, attempt)
    # In the run directory, so that a killed kteardown leaves no file elsewhere.
    initramfs = console.with_suffix(".cpio")
    modules = kernel.modules_of(boot)
    done = log.completed(boot.index)
    left = boot.model_copy(update={"trials": tuple(t for t in boot.trials if t.index not in done)})
    try:
        pack(
            initramfs,
            agent=lab.agent,
            plan=guest_plan(left, [f"/modules/{path.name}" for path in modules]),
            modules=modules,
            programs=lab.programs,
        )
        keep(
            BootStart(
                kernel=boot.kernel,
                block=boot.block,
                seed=boot.seed,
                acceleration=lab.acceleration,
                host_load=load_average(),
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                machine=boot.machine,
                lost_limit=lab.lost_limit if host else None,
            )
        )
        began = time.monotonic()
        result = lab.machine.boot(_job(boot, setting, console, initramfs, host), on_line)
    finally:
        initramfs.unlink(missing_ok=True)
    result = _with_source_lines(result, kernel.source_lines(lab.arch))
    keep(_end(result))
    return result


def guest_plan(boot: PlannedBoot, modules: Sequence[str] = ()) -> str:
    """Return the plan of one boot as the agent reads it; docs/formats.md has the format."""
    lines = ["kteardown-plan 1", f"seed {boot.seed}"]
    lines += [f"module {path}" for path in modules]
    profile_ns = 0
    for trial in boot.trials:
        if trial.profile_ns != profile_ns:
            profile_ns = trial.profile_ns
            lines.append(f"profile {profile_ns}")
        params = "".join(f" {name}={value}" for name, value in trial.params.items())
        lines.append(f"trial {trial.index} {trial.workload} {trial.warmup} {trial.repetitions}{params}")
    return "\n".join(lines) + "\n"


def _completed(
    raw: bytes, boot: PlannedBoot, host: HostWatch | None, began: float, limit: float | None
) -> Record:
    """Return a line of the agent as a record with what the lab adds; an unparsable one is an AgentError.

    The host is watched from start to end of a trial.
    """
    try:
        record: Record = parse(raw)
    except ValidationError:
        _, text = plain_line(raw[:200].decode(errors="backslashreplace"))
        return AgentError(detail=f"not a record: {text}")
    if isinstance(record, TrialStart):
        if host:
            host.begin()
        return record.model_copy(update={"params": {**boot.machine, **record.params}})
    if isinstance(record, TrialEnd):
        lost = host.end() if host else None
        disturbed = ""
        if record.status == "ok" and lost is not None and limit is not None and lost.share > limit:
            disturbed = f"other work of the host took more than {limit * 100:g}% of its time"
        at_s = round(time.monotonic() - began, 3)
        return record.model_copy(update={"at_s": at_s, "lost": lost, "disturbed": disturbed})
    return record


def _end(result: BootResult) -> BootEnd:
    return BootEnd(
        outcome=result.outcome,
        detail=result.detail,
        duration_s=result.duration_s,
        first_record_s=result.first_record_s,
        command=list(result.command),
        host_load=load_average(),
        peak_rss_kb=result.peak_rss_kb,
        problems=result.problems,
        last_lines=result.last_lines,
        placed=result.placed,
    )


def _with_source_lines(result: BootResult, source: SourceLines) -> BootResult:
    """Return ``result`` with the source lines of what the kernel printed."""
    texts = [(result.detail,), result.last_lines, *(problem.excerpt for problem in result.problems)]
    flat = source.annotate([line for text in texts for line in text])
    found = iter(flat)
    (detail,), last, *excerpts = (tuple(itertools.islice(found, len(text))) for text in texts)
    return replace(
        result,
        detail=detail,
        last_lines=last,
        problems=tuple(
            problem.model_copy(update={"excerpt": excerpt})
            for problem, excerpt in zip(result.problems, excerpts, strict=True)
        ),
    )


def _job(
    boot: PlannedBoot, setting: Setting, console: Path, initramfs: Path, host: HostWatch | None
) -> BootJob:
    plan, lab = setting.plan, setting.lab
    return BootJob(
        image=setting.kernels[boot.kernel].image,
        initramfs=initramfs,
        arch=lab.arch,
        acceleration=lab.acceleration,
        cpus=boot.machine.get("cpus", plan.cpus),
        memory_mb=plan.memory_mb,
        seed=boot.seed,
        console=console,
        silence_s=plan.silence_s * SILENCE_FACTOR[lab.acceleration],
        kernel_args=lab.kernel_args,
        possible_cpus=boot.machine.get("possible_cpus", plan.possible_cpus),
        numa_nodes=boot.machine.get("numa_nodes", plan.numa_nodes),
        on_vcpus=host.vcpus if host else None,
    )
