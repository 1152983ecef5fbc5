"""Effects of patches in an ablation: exact where possible, otherwise with an interval, or
refused."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from kteardown.analysis.conclude import analyse
from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment
from kteardown.model.kernel_facts import KernelFacts, PatchSet, Unavailable
from kteardown.model.point import points_of
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Ablation, Result
from kteardown.rundir.counting import BootRecords
from unit.simulation import WORKLOADS, Noise, freezer, simulate

FACTORS = {1: 0.9, 2: 0.5, 3: 0.8}
"""What each patch multiplies the cost by."""
WHOLE = math.log(0.9 * 0.5 * 0.8)
SUBJECTS = ("count exited tasks", "skip them", "forget them")
PARTS = {"s": (1, 2, 3), "s@1": (1,), "s@2": (1, 2), "s@-1": (2, 3), "s@-2": (1, 3)}
"""Without the third patch is the prefix of two."""


def patch_set(patches: tuple[int, ...], *, asked: bool = False) -> PatchSet:
    subjects = tuple(SUBJECTS[n - 1] for n in patches)
    return PatchSet(series="s", patches=patches, total=3, subjects=subjects, for_ablation=not asked)


def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
    zombies = int(params["zombies"])
    return 1_000_000 * (1 + zombies) * math.prod(FACTORS[n] for n in PARTS.get(kernel, ()))


def experiment_of(clock: Clock, boots: int = 5, zombies: tuple[int, ...] = (3000,)) -> Experiment:
    return freezer(clock, boots=boots, zombies=zombies, variants=tuple(PARTS))


def facts_of(name: str, source: str = "") -> KernelFacts:
    patches = patch_set(PARTS[name], asked=name == "s") if name in PARTS else None
    return KernelFacts(
        release="",
        source=source,
        arch="",
        compiler="",
        config_hash="",
        image_hash="",
        patch_set=patches,
    )


def analysed(
    experiment: Experiment,
    boots: list[BootRecords],
    *,
    without: tuple[str, ...] = (),
    unavailable: tuple[Unavailable, ...] = (),
    more: Mapping[str, KernelFacts] | None = None,
) -> Result:
    kernels = {name: facts_of(name) for name in ("base", *PARTS) if name not in without} | dict(
        more or {}
    )
    used = {"zombies": WORKLOADS["zombies"]}
    return analyse(
        experiment,
        used,
        boots,
        kernels,
        {},
        "",
        points=points_of(experiment, used),
        unavailable=unavailable,
    )


def first(result: Result) -> Ablation:
    found = [a for a in result.ablations if a.metric == "freeze_user_ns"]
    return found[-1]


def test_the_series_on_another_source_has_no_part_in_it() -> None:
    experiment = experiment_of("instructions")
    boots = simulate(experiment, cost)
    elsewhere = {"s on debian:7.2": facts_of("s", "debian:7.2")}
    assert (
        analysed(experiment, boots, more=elsewhere).ablations
        == analysed(experiment, boots).ablations
    )


def test_on_the_instruction_clock_the_shares_are_exact_and_add_up() -> None:
    experiment = experiment_of("instructions", zombies=(0, 3000))
    result = analysed(experiment, simulate(experiment, cost))
    assert [(a.metric, a.point["zombies"]) for a in result.ablations] == [
        ("freeze_user_ns", 0),
        ("freeze_user_ns", 3000),
        ("freeze_remaining_ns", 0),
        ("freeze_remaining_ns", 3000),
    ]
    found = first(result)
    assert found.ratio == pytest.approx(0.36)
    assert [p.subject for p in found.patches] == list(SUBJECTS)
    for patch in found.patches:
        for part in (patch.step, patch.leave_out):
            assert part.exact
            assert part.ratio == pytest.approx(FACTORS[patch.patch])
            assert part.share == pytest.approx(math.log(FACTORS[patch.patch]) / WHOLE)
            assert part.share_ci == (part.share, part.share)
    assert sum(p.step.share or 0 for p in found.patches) == pytest.approx(1)


def test_a_patch_that_adds_cost_has_a_negative_share() -> None:
    experiment = experiment_of("instructions")

    def dearer(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        return cost(kernel, metric, params) * (2 if 1 in PARTS.get(kernel, ()) else 1)

    found = first(analysed(experiment, simulate(experiment, dearer)))
    assert found.patches[0].step.share == pytest.approx(math.log(1.8) / math.log(0.72))
    assert found.patches[0].step.ratio == pytest.approx(1.8)
    assert sum(p.step.share or 0 for p in found.patches) == pytest.approx(1)


def test_dependent_patches_have_a_larger_share_when_left_out() -> None:
    """Patches two and three have no effect alone: the last step and each left-out patch have all of
    it."""

    def together(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        return 500_000 if {2, 3} <= set(PARTS.get(kernel, ())) else 1_000_000

    experiment = experiment_of("instructions")
    found = first(analysed(experiment, simulate(experiment, together)))
    assert [p.step.share for p in found.patches] == [0, 0, 1]
    assert [p.leave_out.share for p in found.patches] == [0, 1, 1]


@pytest.mark.parametrize("clock", ["instructions", "wall"])
def test_there_are_no_shares_of_an_insignificant_change(clock: Clock) -> None:
    experiment = experiment_of(clock, boots=6)
    noise = Noise(block=0.1, boot=0.02, sample=0.01)
    found = first(analysed(experiment, simulate(experiment, lambda k, m, p: 1_000_000, noise)))
    for patch in found.patches:
        assert (patch.step.share, patch.step.share_ci) == (None, None)
        assert patch.step.reason == "the change of the whole series is not significant"
        assert patch.step.ratio == pytest.approx(1, abs=0.1)


def test_missing_kernels_are_reported_and_the_others_are_analysed() -> None:
    experiment = experiment_of("instructions")
    missing = Unavailable(
        kernel="s@-1", patch_set=patch_set((2, 3)), reason="patch 2 does not apply"
    )
    boots = [boot for boot in simulate(experiment, cost) if boot.start.kernel != "s@2"]
    result = analysed(experiment, boots, without=("s@-1", "s@-2"), unavailable=(missing,))
    found = first(result)
    assert found.unavailable == (missing,)
    one, two, three = found.patches
    assert one.step.share == pytest.approx(math.log(0.9) / WHOLE)
    assert (one.leave_out.share, one.leave_out.reason) == (None, "patch 2 does not apply")
    assert two.leave_out.reason == "not built"
    assert {two.step.reason, three.step.reason, three.leave_out.reason} == {
        "s@2 has no samples at this point"
    }


def test_a_series_without_partial_kernels_has_no_ablation() -> None:
    experiment = experiment_of("instructions")
    parts = tuple(name for name in PARTS if name != "s")
    assert analysed(experiment, simulate(experiment, cost), without=parts).ablations == ()


@pytest.mark.parametrize("factor", [2.0, 0.25])
def test_shares_do_not_depend_on_the_unit(factor: float) -> None:
    experiment = experiment_of("wall", boots=6)
    noise = Noise(block=0.1, boot=0.02)

    def scaled(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        return factor * cost(kernel, metric, params)

    one, other = (
        first(analysed(experiment, simulate(experiment, c, noise))) for c in (cost, scaled)
    )
    for before, after in zip(one.patches, other.patches, strict=True):
        assert before.step.share == pytest.approx(after.step.share, abs=1e-6)
        assert before.step.share_ci == pytest.approx(after.step.share_ci, abs=1e-6)


def test_a_block_missing_for_one_kernel_is_used_for_none() -> None:
    experiment = experiment_of("wall", boots=6)
    boots = simulate(experiment, cost, Noise(block=0.5, boot=0.01))
    lost = [boot for boot in boots if (boot.start.kernel, boot.start.block) != ("s@1", 2)]
    without = [boot for boot in boots if boot.start.block != 2]
    some, none = (first(analysed(experiment, kept)) for kept in (lost, without))
    assert [p.step.share for p in some.patches] == [p.step.share for p in none.patches]


def test_the_interval_of_a_share_covers() -> None:
    """60 equal runs of five shares each: 95% coverage for each, 90% allows for two standard errors
    of all."""
    experiment = experiment_of("wall", boots=8)
    inside = total = 0
    for seed in range(60):
        boots = simulate(experiment, cost, Noise(block=0.2, boot=0.04, sample=0.02), seed=seed)
        found = first(analysed(experiment, boots))
        for patch in found.patches:
            for part in (patch.step, patch.leave_out):
                truth = math.log(FACTORS[patch.patch]) / WHOLE
                assert part.share_ci is not None
                assert part.share is not None
                assert part.share_ci[0] <= part.share <= part.share_ci[1]
                inside += part.share_ci[0] <= truth <= part.share_ci[1]
                total += 1
    assert inside / total >= 0.9
