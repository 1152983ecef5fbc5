"""The skipped boots of a failing kernel are the same after any interruption and with any number of
jobs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import Outcome
from kteardown.progress import SilentReporter
from kteardown.run.execute import execute
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.completeness import GivenUp
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm.job import BootJob
from unit.fake_machine import FakeBoot, FakeMachine

BOOTS = tuple(
    PlannedBoot(index=2 * block + n, block=block, kernel=kernel, seed=block, trials=())
    for block in range(6)
    for n, kernel in enumerate(("base", "broken"))
)
PLAN = Plan(boots=BOOTS, cpus=1, memory_mb=64, silence_s=1)


def booted(folder: Path, fails: tuple[bool, ...], jobs: int, dies_after: int) -> dict[int, Outcome]:
    """Return the outcomes of a run that is interrupted once, after ``dies_after`` boots, and
    resumed."""
    left = [dies_after]

    def script(job: BootJob) -> FakeBoot:
        left[0] -= 1
        if left[0] == -1:
            return FakeBoot(raises=KeyboardInterrupt())
        failed = job.image == Path("broken") and fails[job.seed]
        return FakeBoot(outcome="panic" if failed else "ok")

    agent = folder / "agent"
    agent.write_bytes(b"agent")
    run = RunDir.create(folder, "test")
    kernels = {name: Bootable(Path(name)) for name in ("base", "broken")}
    for _ in range(2):
        try:
            with open_writer(run) as log:
                lab = Lab(agent, "x86_64", "icount", machine=FakeMachine(script), jobs=jobs)
                execute(PLAN, kernels, lab, log, SilentReporter())
        except KeyboardInterrupt:
            continue
    return {boot.boot: boot.end.outcome for boot in run.boots()}


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("dies_after", [1, 3, 5, 99])
def test_the_same_boots_are_skipped(tmp_path: Path, jobs: int, dies_after: int) -> None:
    found = booted(tmp_path, (True, False, True, True, False, False), jobs, dies_after)
    assert [index for index in found if index % 2] == [1, 3, 5, 7]
    assert [index for index in found if not index % 2] == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize(
    ("ended", "decided"),
    [
        ({}, None),
        ({1: "ok"}, False),
        ({3: "ok"}, False),
        ({1: "panic"}, None),
        ({1: "panic", 3: "ok"}, False),
        ({1: "panic", 3: "hang"}, True),
        ({0: "panic", 2: "panic", 1: "ok", 3: "panic"}, False),
    ],
)
def test_a_third_boot_is_decided_when_the_first_two_ended(
    ended: dict[int, Outcome], decided: bool | None
) -> None:
    assert GivenUp(PLAN).decide(BOOTS[5], ended) is decided


def _one_by_one(boot: PlannedBoot, ended: dict[int, Outcome]) -> bool | None:
    """Return the same from the definition: try both outcomes of every boot that has not ended."""
    before = [
        other.index for other in BOOTS if other.kernel == boot.kernel and other.index < boot.index
    ]
    answers = set()
    for guess in itertools.product(("ok", "panic"), repeat=len(before)):
        if all(
            ended.get(index, outcome) == outcome
            for index, outcome in zip(before, guess, strict=True)
        ):
            answers.add("panic panic" in " ".join(guess))
    return answers.pop() if len(answers) == 1 else None


@given(
    st.permutations(range(6)), st.lists(st.sampled_from(["ok", "panic"]), min_size=6, max_size=6)
)
def test_each_decision_is_that_of_the_definition(order: list[int], outcomes: list[Outcome]) -> None:
    given_up, ended = GivenUp(PLAN), dict[int, Outcome]()
    for block in order:
        ended[2 * block + 1] = outcomes[block]
        for boot in BOOTS[1::2]:
            expected = _one_by_one(boot, ended)
            assert given_up.decide(boot, ended) is (True if expected else expected)
