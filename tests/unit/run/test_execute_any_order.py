"""Whichever boots a cluster runs first, the same ones count as one after another on this
machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import Outcome
from kteardown.progress import SilentReporter
from kteardown.run.execute import execute
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from unit.fake_machine import FakeBoot, FakeMachine
from unit.run.fake_executor import FakeExecutor

BLOCKS = 8
BOOTS = tuple(
    PlannedBoot(index=2 * block + n, block=block, kernel=kernel, seed=block, trials=())
    for block in range(BLOCKS)
    for n, kernel in enumerate(("base", "broken"))
)
PLAN = Plan(boots=BOOTS, cpus=1, memory_mb=64, silence_s=1)


def one_after_another(fails: list[bool]) -> list[int]:
    """Return the boots that count: a kernel is given up after two failures in succession."""
    counted, row = [], 0
    for boot in BOOTS:
        if boot.kernel == "base":
            counted.append(boot.index)
        elif row < 2:
            counted.append(boot.index)
            row = row + 1 if fails[boot.block] else 0
    return counted


@given(st.lists(st.booleans(), min_size=BLOCKS, max_size=BLOCKS), st.data())
def test_the_same_boots_count_in_any_order(fails: list[bool], data: st.DataObject) -> None:
    def outcome(boot: PlannedBoot) -> Outcome:
        return "panic" if boot.kernel == "broken" and fails[boot.block] else "ok"

    executor = FakeExecutor(
        outcome,
        lambda running: data.draw(st.integers(0, running - 1)),
        room=data.draw(st.integers(1, 2 * BLOCKS)),
    )
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir.create(Path(folder), "test")
        machine = FakeMachine(lambda job: FakeBoot())
        lab = Lab(Path("agent"), "x86_64", "icount", machine=machine, executor=executor)
        kernels = {name: Bootable(Path(name)) for name in ("base", "broken")}
        with open_writer(run) as log:
            execute(PLAN, kernels, lab, log, SilentReporter())
        assert [boot.boot for boot in run.boots()] == one_after_another(fails)
        assert len(set(executor.submitted)) == len(executor.submitted)
