"""The order of boots, failures of guests, and further attempts, on a fake machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from kteardown.errors import LabError
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import BootStart, LostTime, TrialEnd, TrialStart
from kteardown.progress import SilentReporter
from kteardown.run.boot_job import guest_plan
from kteardown.run.execute import execute
from kteardown.run.guest_records import Reports
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.counting import trials as counted_trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm.job import BootJob
from unit.fake_machine import REPORTS, FakeBoot, FakeMachine

KERNELS = ("base", "broken", "fine")


def _plan(blocks: int) -> Plan:
    trial = PlannedTrial(
        index=0, workload="zombies", params={"zombies": 3}, warmup=0, repetitions=1
    )
    boots = tuple(
        PlannedBoot(
            index=block * len(KERNELS) + n, block=block, kernel=kernel, seed=7, trials=(trial,)
        )
        for block in range(blocks)
        for n, kernel in enumerate(KERNELS)
    )
    return Plan(boots=boots, cpus=1, memory_mb=64, silence_s=1)


def _lines(*records: Mapping[str, object]) -> tuple[bytes, ...]:
    return tuple(json.dumps(record).encode() for record in records)


START = {"type": "trial_start", "trial": 0, "workload": "zombies", "params": {"zombies": 3}}
END = {"type": "trial_end", "trial": 0, "status": "ok"}
GOOD = FakeBoot(lines=_lines(START, END))


@pytest.fixture
def lab(tmp_path: Path) -> Callable[[Callable[[BootJob], FakeBoot]], Lab]:
    agent = tmp_path / "agent"
    agent.write_bytes(b"agent")
    return lambda script: Lab(agent, "x86_64", "icount", REPORTS, machine=FakeMachine(script))


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir.create(tmp_path / "runs", "test")
    made.save(made.experiment_file, "{}")
    return made


def _execute(run: RunDir, lab: Lab, blocks: int = 2) -> None:
    kernels = {name: Bootable(Path(name)) for name in KERNELS}
    with open_writer(run) as log:
        execute(_plan(blocks), kernels, lab, log, SilentReporter())


def _kernels(run: RunDir) -> list[str]:
    return [record.kernel for record in run.records() if isinstance(record, BootStart)]


def test_every_boot_runs_in_the_order_of_the_plan(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    _execute(run, lab(lambda job: GOOD))
    assert _kernels(run) == [*KERNELS, *KERNELS]
    assert all(isinstance(boot.records[-1], TrialEnd) for boot in run.boots())


def test_a_failed_boot_is_recorded_and_after_two_its_kernel_is_skipped(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    panic = FakeBoot(outcome="panic", detail="Kernel panic")
    _execute(run, lab(lambda job: panic if job.image == Path("broken") else GOOD), blocks=4)
    assert _kernels(run).count("broken") == 2
    assert _kernels(run).count("base") == 4
    assert [boot.end.outcome for boot in run.boots() if boot.start.kernel == "broken"] == [
        "panic",
        "panic",
    ]


def test_a_boot_that_fails_because_of_the_host_is_attempted_again(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    answers = iter([FakeBoot(outcome="infrastructure-error"), GOOD])
    _execute(run, lab(lambda job: next(answers, GOOD)))
    first = run.boots()[0]
    assert (first.attempt, first.end.outcome) == (1, "ok")


def test_a_third_failure_because_of_the_host_is_an_error(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    with pytest.raises(LabError, match="3 times because of the host: no QEMU"):
        _execute(run, lab(lambda job: FakeBoot(outcome="infrastructure-error", detail="no QEMU")))


def test_an_interrupted_plan_is_finished_without_repeating_boots(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    answers = iter([GOOD, GOOD, FakeBoot(raises=KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        _execute(run, lab(lambda job: next(answers)))
    _execute(run, lab(lambda job: GOOD))
    assert _kernels(run) == ["base", "broken", "fine", "fine", *KERNELS]
    assert [boot.boot for boot in run.boots()] == list(range(6))


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (b"\xffnoise\x1b[2J\x07", "not a record: \\xffnoise"),
        (_lines({**END, "trial": 1})[0], "it belongs to no running trial: "),
        (_lines({"type": "boot_end", "outcome": "ok"})[0], "not a record: "),
    ],
)
def test_a_forged_record_voids_its_boot_and_says_why(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab], forged: bytes, why: str
) -> None:
    sample = {"type": "sample", "trial": 0, "repetition": 0, "metric": "freeze_user_ns", "value": 5}
    before = _lines(START, sample, END)
    _execute(run, lab(lambda job: FakeBoot(lines=(*before, forged))), blocks=1)
    for boot in run.boots():
        assert boot.records == ()
        assert (boot.end.outcome, boot.end.forged) == ("agent-error", True)
        assert boot.end.detail.startswith(f"forged record: {why}")


def test_a_swept_machine_is_booted_and_is_a_parameter_of_every_trial(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    jobs: list[BootJob] = []

    def script(job: BootJob) -> FakeBoot:
        jobs.append(job)
        return GOOD

    plan = _plan(1)
    boots = (plan.boots[0].model_copy(update={"machine": {"possible_cpus": 32}}), plan.boots[2])
    plan = plan.model_copy(update={"boots": boots, "numa_nodes": 1})
    with open_writer(run) as log:
        execute(
            plan,
            {name: Bootable(Path(name)) for name in KERNELS},
            lab(script),
            log,
            SilentReporter(),
        )
    assert [(job.cpus, job.possible_cpus, job.numa_nodes) for job in jobs] == [
        (1, 32, 1),
        (1, None, 1),
    ]
    params = [record.params for record in run.records() if isinstance(record, TrialStart)]
    assert params == [{"possible_cpus": 32, "zombies": 3}, {"zombies": 3}]


class _Host:
    """In place of the counters of the host: what each trial lost, in order."""

    lost: ClassVar[Iterator[float]]

    def vcpus(self, threads: Sequence[int]) -> None:
        return

    def begin(self) -> None:
        return

    def end(self) -> LostTime:
        return LostTime(elapsed_s=1, run_delay_s=next(self.lost))


def _two_trials(job: BootJob) -> FakeBoot:
    """Return a guest that runs the trials of its plan."""
    indices = re.findall(rb"^trial (\d+)", job.initramfs.read_bytes(), re.MULTILINE)
    started = [
        {"type": "trial_start", "trial": int(i), "workload": "zombies", "params": {}}
        for i in indices
    ]
    ended = [{"type": "trial_end", "trial": int(i), "status": "ok"} for i in indices]
    both = [line for pair in zip(started, ended, strict=True) for line in pair]
    return FakeBoot(lines=tuple(json.dumps(line).encode() for line in both))


def _on_the_wall_clock(
    run: RunDir, lab: Lab, lost: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> list[list[float | None]]:
    """Run one boot of two trials; return what the trials of each attempt lost."""
    monkeypatch.setattr(_Host, "lost", iter(lost), raising=False)
    monkeypatch.setattr("kteardown.run.execute.HostWatch", _Host)
    trials = tuple(
        PlannedTrial(index=n, workload="zombies", params={}, warmup=0, repetitions=1)
        for n in range(2)
    )
    boot = PlannedBoot(index=0, block=0, kernel="base", seed=7, trials=trials)
    plan = Plan(boots=(boot,), cpus=1, memory_mb=64, silence_s=1)
    with open_writer(run) as log:
        execute(plan, {"base": Bootable(Path("base"))}, lab, log, SilentReporter())
        assert log.finished().keys() == {0}
    found: dict[int, list[float | None]] = {}
    for record in run.records():
        if isinstance(record, TrialEnd):
            share = record.lost.share if record.lost else None
            found.setdefault(record.attempt, []).append(share)
    return list(found.values())


MakeLab = Callable[[Callable[[BootJob], FakeBoot]], Lab]


def test_only_the_trials_that_lost_too_much_run_again(
    run: RunDir, lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = replace(lab(_two_trials), acceleration="mttcg", lost_limit=0.05)
    lost = [0.01, 0.06, 0.2, 0.05]
    assert _on_the_wall_clock(run, limited, lost, monkeypatch) == [[0.01, 0.06], [0.2], [0.05]]
    (boot,) = run.boots()
    assert [(t.index, t.status) for t in counted_trials(boot.records)] == [(0, "ok"), (1, "ok")]


def test_a_trial_is_not_repeated_for_ever(
    run: RunDir, lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = replace(lab(_two_trials), acceleration="mttcg", lost_limit=0.05)
    assert _on_the_wall_clock(run, limited, [0.01, 0.5, 0.5, 0.5], monkeypatch) == [
        [0.01, 0.5],
        [0.5],
        [0.5],
    ]
    (boot,) = run.boots()
    assert [(t.index, t.status, t.detail) for t in counted_trials(boot.records)] == [
        (0, "ok", ""),
        (1, "disturbed", "other work of the host took more than 5% of its time"),
    ]


def test_without_a_limit_nothing_is_disturbed(
    run: RunDir, lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _on_the_wall_clock(
        run, replace(lab(_two_trials), acceleration="kvm"), [0.9, 0.9], monkeypatch
    ) == [[0.9, 0.9]]


def test_on_the_instruction_clock_the_host_is_not_watched(
    run: RunDir, lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = replace(lab(_two_trials), lost_limit=0.05)
    assert _on_the_wall_clock(run, limited, [], monkeypatch) == [[None, None]]


def _script(index: int, params: dict[str, int | str]) -> PlannedTrial:
    read = {"wait_ns": "printed wait"}
    return PlannedTrial(
        index=index, workload="mine", params=params, warmup=0, repetitions=1, script=read
    )


def test_the_plan_of_a_script_names_it_and_its_environment() -> None:
    trials = (_script(0, {}), _script(1, {"N": 5, "MODE": "fast"}), _plan(1).boots[0].trials[0])
    plan = guest_plan(
        PlannedBoot(index=0, block=0, kernel="base", seed=7, trials=trials), ["/modules/a.ko"]
    )
    assert plan.splitlines() == [
        "kteardown-plan 1",
        "seed 7",
        "module /modules/a.ko",
        "trial 0 script 0 1 script=mine environment=-",
        "trial 1 script 0 1 script=mine environment=N=5,MODE=fast",
        "trial 0 zombies 0 1 zombies=3",
    ]


def test_a_script_is_recorded_with_its_name_its_parameters_and_its_samples(
    run: RunDir, lab: Callable[[Callable[[BootJob], FakeBoot]], Lab]
) -> None:
    agents = {"script": "mine", "environment": "N=5"}
    lines = [
        {"type": "trial_start", "trial": 0, "workload": "script", "params": agents},
        {"type": "sample", "trial": 0, "repetition": 0, "metric": "whole_ns", "value": 9},
        {
            "type": "output",
            "trial": 0,
            "repetition": 0,
            "source": "script",
            "at_ns": 1,
            "text": "wait 3 us",
        },
        {"type": "ended", "trial": 0, "repetition": 0, "how": "exit", "code": 0, "dropped": 0},
        {
            "type": "check",
            "trial": 0,
            "repetition": 0,
            "name": "ended",
            "ok": True,
            "detail": "exit 0",
        },
        {"type": "trial_end", "trial": 0, "status": "ok"},
    ]
    boot = PlannedBoot(index=0, block=0, kernel="base", seed=7, trials=(_script(0, {"N": 5}),))
    plan = Plan(boots=(boot,), cpus=1, memory_mb=64, silence_s=1)
    job = FakeBoot(lines=_lines(*lines))
    with open_writer(run) as log:
        own = replace(
            lab(lambda _: job),
            reports={"mine": Reports(frozenset(("whole_ns",)), invariants=frozenset(("ended",)))},
        )
        execute(plan, {"base": Bootable(Path("base"))}, own, log, SilentReporter())
    (records,) = [boot.records for boot in run.boots()]
    (trial,) = counted_trials([record for record in records if getattr(record, "trial", 0) == 0])
    assert (trial.workload, trial.params, trial.status) == ("mine", {"N": 5}, "ok")
    assert trial.samples == {"whole_ns": [9], "wait_ns": [3000]}
