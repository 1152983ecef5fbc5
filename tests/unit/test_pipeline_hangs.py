"""Guests that hang: what is measured of them, and what is measured again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kteardown.errors import GuestError
from kteardown.model.record import BASE
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.vm.job import BootJob
from unit.fake_machine import FakeBoot
from unit.pipelines import VARIANT, booted, complete, guest, hanging, run_maker


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunDir]:
    return run_maker(tmp_path, monkeypatch)


def test_trials_that_ended_before_a_hang_are_reported(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing can be compared and no boot was ok, but the variant has a figure.
    script = lambda job: hanging(job, after=int(job.image.name == VARIANT))  # noqa: E731
    result, _ = complete(make_run(seeds=1), script, monkeypatch)
    assert (result.boots["hang"], result.comparisons) == (3, ())
    lost = Counter((void.kernel, void.detail) for void in result.voids)
    assert lost == {(BASE, "boot: hang"): 2, (VARIANT, "boot: hang"): 1}


def hung_at(
    zombies: int, kernels: tuple[str, ...] = (BASE, VARIANT)
) -> Callable[[BootJob], FakeBoot]:
    """Return guests of ``kernels`` that hang in the trial at this point."""

    def script(job: BootJob) -> FakeBoot:
        lines = guest(1.0, 0.0)(job).lines
        starts = [json.loads(line)["params"]["zombies"] for line in lines if b"trial_start" in line]
        hangs = zombies in starts and job.image.name in kernels
        return hanging(job, starts.index(zombies)) if hangs else FakeBoot(lines=lines)

    return script


POINTS = (0, 300, 600, 900)


@pytest.mark.parametrize("until", ["", "verdict"])
@pytest.mark.parametrize("clock", [{"seeds": 4}, {"clock": "wall", "boots": 4}])
def test_a_trial_that_hangs_loses_only_itself(
    make_run: Callable[..., RunDir],
    monkeypatch: pytest.MonkeyPatch,
    until: str,
    clock: dict[str, object],
) -> None:
    run = make_run(points=POINTS, until=until, **clock)
    result, notes = complete(run, hung_at(300), monkeypatch)
    compared = {row.point["zombies"] for row in result.comparisons}
    assert compared == {0, 600, 900}
    # Two boots in succession failed, so that the other blocks were skipped; each has its rest.
    assert booted(run)[BASE] == booted(run)[VARIANT] == 4
    assert all(row.base.boots == 2 for row in result.comparisons)
    assert {fault.status for fault in result.faults} == {"base", "base too"}
    assert {(len(fault.boots), fault.of) for fault in result.faults if fault.kernel == VARIANT} == {
        (2, 2)
    }
    assert any("without the trials before them" in note for note in result.notes)
    assert not result.unfinished
    assert any("hung guests did not reach" in note for note in notes)
    before = run.plan_file.path.read_bytes()
    complete(run, hung_at(300), monkeypatch)
    assert run.plan_file.path.read_bytes() == before


def test_a_variant_that_hangs_is_broken_as_before_and_keeps_its_other_figures(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(points=POINTS, seeds=1)
    result, _ = complete(run, hung_at(300, (VARIANT,)), monkeypatch)
    (fault,) = result.faults
    assert (fault.status, fault.points[0].point, fault.of, fault.base_of) == (
        "broken",
        {"zombies": 300},
        1,
        1,
    )
    assert {row.point["zombies"] for row in result.comparisons} == {0, 600, 900}
    assert [lost.point for lost in result.uncompared] == [{"zombies": 300}]


def test_a_run_that_is_killed_between_a_hang_and_the_rest_gives_the_same_result(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make_run(points=POINTS, seeds=2)
    complete(whole, hung_at(300), monkeypatch)
    boots = sum(booted(whole).values())
    assert boots > 4

    def killed(left: Iterator[int]) -> Callable[[BootJob], FakeBoot]:
        stop = FakeBoot(raises=KeyboardInterrupt())
        return lambda job: stop if next(left, None) is None else hung_at(300)(job)

    for killed_after in range(boots):
        run = make_run(points=POINTS, seeds=2)
        with pytest.raises(KeyboardInterrupt):
            complete(run, killed(iter(range(killed_after))), monkeypatch)
        complete(run, hung_at(300), monkeypatch)
        assert run.result_file.path.read_bytes() == whole.result_file.path.read_bytes()


def test_a_boot_that_hangs_again_and_again_has_three_further_boots(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(points=tuple(range(0, 3000, 300)), seeds=1)
    complete(run, lambda job: hanging(job, after=1), monkeypatch)
    assert booted(run) == {BASE: 4, VARIANT: 4}
    assert [len(boot.trials) for boot in load(run).plan.boots] == [10, 10, 8, 8, 6, 6, 4, 4]


def test_a_run_without_any_figure_has_no_report(
    make_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GuestError, match=r"no boot of .* was ok: 4 hang"):
        complete(make_run(seeds=1), lambda job: hanging(job, after=0), monkeypatch)
