"""The columns of a comparison (percentiles, twins, ranks, looks), and what must not influence
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kteardown.analysis.conclude import analyse, needs_layout_twin
from kteardown.inputs.counts import METRICS
from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.point import points_of
from kteardown.model.record import Sample
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Metric
from kteardown.rundir.counting import BootRecords
from unit.simulation import WORKLOADS, Noise, analysed, freezer, freezer_cost, simulate

POINTS = (0, 3000, 9000)
FACTS = dict.fromkeys(
    ("base", "freezer-skip-exited", "freezer-skip-nofreeze"),
    KernelFacts(release="", source="", arch="", compiler="", config_hash="", image_hash=""),
)


def analyse_with(experiment: Experiment, boots: list[BootRecords], **options: Any) -> Result:
    used = {"zombies": WORKLOADS["zombies"]}
    return analyse(
        experiment, used, boots, FACTS, {}, "", points=points_of(experiment, used), **options
    )


def test_every_declared_percentile_has_its_own_comparison() -> None:
    experiment = freezer("wall", boots=6, repetitions=20, zombies=POINTS)
    boots = simulate(experiment, noise=Noise(boot=0.02, sample=0.1))
    workload = WORKLOADS["zombies"]
    user = workload.metrics["freeze_user_ns"].model_copy(update={"percentiles": (50.0, 90.0, 99.9)})
    declared = workload.model_copy(update={"metrics": {**workload.metrics, "freeze_user_ns": user}})
    result = analyse(
        experiment,
        {"zombies": declared},
        boots,
        FACTS,
        {},
        "",
        points=points_of(experiment, {"zombies": declared}),
    )
    found = [c for c in result.comparisons if c.metric == "freeze_user_ns"]
    assert list(dict.fromkeys(c.statistic for c in found)) == ["median", "p90", "p99.9"]
    assert len(found) == 3 * 2 * len(POINTS)
    for c in found:
        assert (c.base.percentile is None) == (c.statistic == "median")
        assert c.ratio == pytest.approx(c.changed.compared / c.base.compared)
        assert c.statistic == "median" or c.base.compared > c.base.median
        assert c.null_ci is not None
    assert any("freeze_user_ns p99.9: a boot has too few samples" in note for note in result.notes)
    assert not any("p90" in note for note in result.notes)


def test_the_layout_twin_is_a_control_and_not_a_variant() -> None:
    """The change is 5% and moving code makes 6%: there is no claim, although A/A shows no
    change."""

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        factor = {"freezer-skip-exited": 0.95, "base-layout": 0.94}.get(kernel, 1.0)
        return factor * freezer_cost("base", metric, params)

    experiment = freezer("wall", boots=8, zombies=POINTS, variants=("freezer-skip-exited",))
    with_twin = experiment.model_copy(
        update={"design": experiment.design.model_copy(update={"layout_twin": True})}
    )
    boots = simulate(with_twin, cost, Noise(block=0.2, boot=0.005, sample=0.005))
    result = analysed(with_twin, boots)
    assert {c.variant for c in result.comparisons} == {"freezer-skip-exited"}
    for c in result.comparisons:
        assert c.layout_ci is not None
        assert c.layout_ci[0] < 0.94 < c.layout_ci[1]
        assert (c.verdict, c.reason) == (
            "inconclusive",
            "the layout twin differs from base by as much",
        )
    assert not needs_layout_twin(result, WORKLOADS)
    lost = [b for b in boots if (b.start.kernel, b.start.block) != ("base-layout", 3)]
    assert [(v.kernel, v.detail) for v in analysed(with_twin, lost).voids] == [
        ("base-layout", "not booted")
    ] * len(POINTS)
    bare = analysed(experiment, [boot for boot in boots if boot.start.kernel != "base-layout"])
    assert {(c.layout_ci, c.verdict) for c in bare.comparisons} == {(None, "better")}
    assert needs_layout_twin(bare, WORKLOADS)
    assert any("without a layout twin" in note for note in bare.notes)


def test_blocks_added_for_the_layout_twin_are_used_only_for_it() -> None:
    experiment = freezer("wall", boots=6, zombies=POINTS)
    noise = Noise(block=0.2, boot=0.03, sample=0.02)
    boots = simulate(experiment, noise=noise)
    design = experiment.design.model_copy(update={"layout_twin": True, "seed": 2})
    added = [
        replace(
            boot,
            boot=1000 + boot.boot,
            start=boot.start.model_copy(update={"block": boot.start.block + 6}),
        )
        for boot in simulate(experiment.model_copy(update={"design": design}), noise=noise, seed=2)
        if boot.start.kernel in ("base", "base-layout")
    ]
    before, after = analysed(experiment, boots), analysed(experiment, [*boots, *added])
    assert all(c.layout_ci is not None for c in after.comparisons)
    for one, other in zip(before.comparisons, after.comparisons, strict=True):
        assert (one.base, one.ratio, one.ci, one.null_ci) == (
            other.base,
            other.ratio,
            other.ci,
            other.null_ci,
        )
    assert (before.laws, before.voids) == (after.laws, after.voids)
    assert after.boots["ok"] == before.boots["ok"] + 12


@pytest.mark.parametrize("metric", ["thaw_ns", "slab_kb", "cycles_count", "zombies_count"])
def test_only_a_small_claim_of_a_time_on_the_wall_clock_needs_a_layout_twin(metric: str) -> None:
    workload = WORKLOADS["zombies"]
    objects = Metric(help="zombies", unit="count")
    metrics = {
        **workload.metrics,
        **METRICS,
        "slab_kb": Metric(help="slab", unit="kb"),
        "zombies_count": objects,
    }
    workloads = {"zombies": workload.model_copy(update={"metrics": metrics})}
    result = analysed(experiment := freezer("wall", zombies=POINTS), simulate(experiment))

    def needs(clock: Clock = "wall", **changed: object) -> bool:
        claim = {"metric": metric, "ratio": 0.95, "verdict": "better", "layout_ci": None, **changed}
        one = result.comparisons[0].model_copy(update=claim)
        return needs_layout_twin(
            result.model_copy(update={"clock": clock, "comparisons": (one,)}), workloads
        )

    assert needs() == needs(ratio=1.05, verdict="worse") == (metric in ("thaw_ns", "cycles_count"))
    assert not needs("instructions")
    assert not needs(ratio=0.89)
    assert not needs(ratio=1.11, verdict="worse")
    assert not needs(verdict="same")
    assert not needs(verdict="inconclusive")
    assert not needs(layout_ci=(0.99, 1.01))
    assert not needs(ratio=None)


@pytest.mark.parametrize("clock", ["wall", "instructions"])
def test_a_look_at_fewer_blocks_equals_a_run_that_ended_there(clock: Clock) -> None:
    experiment = freezer(clock, boots=8, zombies=POINTS)
    boots = simulate(experiment, noise=Noise(block=0.1, boot=0.03))
    look = analyse_with(experiment, boots, blocks=4)
    short = analysed(
        freezer(clock, boots=4, zombies=POINTS), [b for b in boots if b.start.block < 4]
    )
    assert (look.comparisons, look.boots, look.voids) == (
        short.comparisons,
        short.boots,
        short.voids,
    )
    assert (
        analyse_with(experiment, boots, blocks=99).comparisons
        == analysed(experiment, boots).comparisons
    )


def test_a_higher_confidence_widens_every_interval_and_decides_less() -> None:
    experiment = freezer("wall", boots=6, zombies=POINTS)
    boots = simulate(experiment, noise=Noise(boot=0.25, sample=0.02))
    usual, strict = analysed(experiment, boots), analyse_with(experiment, boots, confidence=0.999)
    for one, other in zip(usual.comparisons, strict.comparisons, strict=True):
        assert other.confidence == 0.999
        for inner, outer in ((one.ci, other.ci), (one.null_ci, other.null_ci)):
            assert inner is not None
            assert outer is not None
            assert outer[0] < inner[0] < inner[1] < outer[1]
        assert one.verdict != "inconclusive" or other.verdict == "inconclusive"
    assert "better" in {c.verdict for c in usual.comparisons}
    assert {c.verdict for c in strict.comparisons} == {"inconclusive"}


def test_on_the_wall_clock_every_comparison_has_a_rank_test_and_all_p_values() -> None:
    experiment = freezer("wall", boots=8, zombies=POINTS)
    boots = simulate(experiment, noise=Noise(block=0.2, boot=0.03, sample=0.02))
    result = analysed(experiment, boots)
    for c in result.comparisons:
        assert None not in (c.p, c.p_holm, c.p_rank, c.p_same)
        assert c.p is not None
        assert c.p_holm is not None
        assert c.p_holm >= c.p
    changed = next(c for c in result.comparisons if c.point == {"zombies": 9000})
    assert changed.p_rank == 2**-7
    assert changed.p_same is not None
    assert changed.p_same > 0.99
    exact = analysed(experiment := freezer(zombies=POINTS), simulate(experiment))
    assert {(c.p_rank, c.p_same) for c in exact.comparisons} == {(None, 0.0), (None, 1.0)}


def test_an_outlier_boot_is_reported_counted_and_kept() -> None:
    experiment = freezer("wall", boots=8, zombies=POINTS, variants=("freezer-skip-exited",))
    noise = Noise(boot=0.005, sample=0.005)
    quiet = simulate(experiment, noise=noise)
    slow = next(n for n, b in enumerate(quiet) if (b.start.kernel, b.start.block) == ("base", 3))
    records = tuple(
        r.model_copy(update={"value": 2 * r.value}) if isinstance(r, Sample) else r
        for r in quiet[slow].records
    )
    loud = [replace(b, records=records) if n == slow else b for n, b in enumerate(quiet)]
    result = analysed(experiment, loud)
    mine = [o for o in result.outliers if (o.kernel, o.block) == ("base", 3)]
    assert {(o.metric, o.point["zombies"]) for o in mine} == {
        (metric, n)
        for metric in ("freeze_user_ns", "freeze_remaining_ns", "thaw_ns")
        for n in POINTS
    }
    assert all(o.value / o.median == pytest.approx(2, rel=0.1) for o in mine)
    assert all(c.outliers >= 1 for c in result.comparisons)
    assert all(c.base.boots == 8 for c in result.comparisons)


def test_notes_of_the_environment_are_in_the_result() -> None:
    experiment = freezer(zombies=POINTS)
    said = "measured on differing machines: CPU model: A / B"
    assert said in analyse_with(experiment, simulate(experiment), environment_notes=[said]).notes


def test_summaries_are_over_paired_boots_if_one_side_lost_boots() -> None:
    experiment = freezer("wall", boots=6, zombies=POINTS, variants=("freezer-skip-exited",))
    boots = [
        boot
        for boot in simulate(experiment, noise=Noise(block=0.3, boot=0.01))
        if (boot.start.kernel, boot.start.block) != ("freezer-skip-exited", 2)
    ]
    for c in analysed(experiment, boots).comparisons:
        assert (c.base.boots, c.changed.boots) == (5, 5)
        assert c.ratio == pytest.approx(c.changed.median / c.base.median)


@pytest.mark.parametrize("factor", [4.0, 0.25])
def test_verdicts_do_not_depend_on_the_unit(factor: float) -> None:
    experiment = freezer("wall", boots=6, zombies=POINTS)
    boots = simulate(experiment, noise=Noise(block=0.2, boot=0.05, sample=0.02))
    scaled = [
        replace(
            boot,
            records=tuple(
                r.model_copy(update={"value": factor * r.value}) if isinstance(r, Sample) else r
                for r in boot.records
            ),
        )
        for boot in boots
    ]
    before, after = analysed(experiment, boots), analysed(experiment, scaled)
    for one, other in zip(before.comparisons, after.comparisons, strict=True):
        assert (one.verdict, one.reason, one.p_rank, one.outliers) == (
            other.verdict,
            other.reason,
            other.p_rank,
            other.outliers,
        )
        for name in ("ratio", "ci", "null_ci", "p", "p_same"):
            assert getattr(one, name) == pytest.approx(getattr(other, name)), name
    assert [o.block for o in before.outliers] == [o.block for o in after.outliers]


def test_swapping_base_and_variant_inverts_every_verdict() -> None:
    """With base and variant swapped, ratios invert, better becomes worse, and same stays same."""

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        # The smallest point does not change, the others do: better, same and all between.
        return 1e6 * (0.9 if kernel == "freezer-skip-exited" and params["zombies"] else 1)

    experiment = freezer("wall", boots=8, zombies=POINTS, variants=("freezer-skip-exited",))
    plain = [
        b
        for b in simulate(experiment, cost, Noise(block=0.2, boot=0.01))
        if "twin" not in b.start.kernel
    ]
    other_name = {"base": "freezer-skip-exited", "freezer-skip-exited": "base"}
    swapped = [
        replace(b, start=b.start.model_copy(update={"kernel": other_name[b.start.kernel]}))
        for b in plain
    ]
    before, after = analysed(experiment, plain), analysed(experiment, swapped)
    turned = {"better": "worse", "worse": "better"}
    assert {c.verdict for c in before.comparisons} > {"better"}
    for one, other in zip(before.comparisons, after.comparisons, strict=True):
        assert other.verdict == turned.get(one.verdict, one.verdict)
        assert one.ratio is not None
        assert one.ci is not None
        assert other.ratio == pytest.approx(1 / one.ratio)
        assert other.ci == pytest.approx((1 / one.ci[1], 1 / one.ci[0]))
        for name in ("p", "p_rank", "p_same"):
            assert getattr(one, name) == pytest.approx(getattr(other, name)), name


def printed(
    clock: Clock, resolution: float, saved: float, percentiles: tuple[float, ...] = ()
) -> Result:
    """Return the result for a variant that saves so much of a metric that is printed in steps."""
    experiment = freezer(
        clock, boots=6, zombies=(1000, 2000, 3000), variants=("freezer-skip-exited",)
    )
    name, workload = "freeze_user_ns", WORKLOADS["zombies"]
    spec = workload.metrics[name].model_copy(
        update={"resolution": resolution, "percentiles": percentiles}
    )
    used = {"zombies": workload.model_copy(update={"metrics": {name: spec}})}

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        if metric != name:
            return 1.0
        return int(params["zombies"]) * 10 * (1 - saved * (kernel == "freezer-skip-exited"))

    noise = Noise() if clock == "instructions" else Noise(boot=0.001, sample=0.001)
    boots = simulate(experiment, cost, noise)
    return analyse(experiment, used, boots, FACTS, {}, "", points=points_of(experiment, used))


STEP = "no more than one step of what is printed"


@pytest.mark.parametrize("clock", ["instructions", "wall"])
def test_a_change_of_one_step_of_what_is_printed_has_no_verdict(clock: Clock) -> None:
    result = printed(clock, resolution=20_000, saved=0.5, percentiles=(90,))
    found = [(c.verdict, c.reason) for c in [*result.comparisons, *result.metric_verdicts]]
    assert set(found) == {("inconclusive", STEP)} and len(found) == 2 * (3 + 1)
    changed = [law for law in result.laws if law.kernel != "base"]
    assert [(law.verdict, law.reason) for law in changed] == [("inconclusive", STEP)]


@pytest.mark.parametrize("clock", ["instructions", "wall"])
@pytest.mark.parametrize("resolution", [0, 100, 4000])
def test_a_change_of_more_than_a_step_has_one(clock: Clock, resolution: float) -> None:
    result = printed(clock, resolution, saved=0.5)
    assert {c.verdict for c in [*result.comparisons, *result.metric_verdicts]} == {"better"}
    assert [law.verdict for law in result.laws if law.kernel != "base"] == ["better"]


def test_only_the_points_that_are_coarse_have_no_verdict() -> None:
    result = printed("instructions", resolution=6_000, saved=0.5)
    assert [c.verdict for c in result.comparisons] == ["inconclusive", "better", "better"]
    assert [c.verdict for c in result.metric_verdicts] == ["better"]


def test_small_steps_leave_what_is_the_same() -> None:
    result = printed("instructions", resolution=1, saved=0.0)
    assert {c.verdict for c in [*result.comparisons, *result.metric_verdicts]} == {"same"}
    # Nothing says that printed values are the same if the margin is less than a step.
    result = printed("instructions", resolution=2_000, saved=0.0)
    assert {c.verdict for c in result.metric_verdicts} == {"inconclusive"}
