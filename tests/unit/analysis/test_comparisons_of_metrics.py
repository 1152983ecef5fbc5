"""The verdict of a metric over all its points, and what it does to the verdicts of the points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment, Sweep
from kteardown.model.judged import MetricVerdict
from kteardown.model.kernel_facts import KernelFacts, PatchSet
from kteardown.model.record import BootEnd, Sample, TrialEnd
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from unit.simulation import WORKLOADS, Cost, Noise, analysed, freezer, simulate
from unit.validation import ruled
from unit.worlds import WORLDS, World, experiment, normal

SIZES = (1000, 2000, 3000, 4000)
ONE = "freezer-skip-exited"
LOUD = Noise(boot=0.05, sample=0.1)


def costs(ratios: Mapping[int, float], metric: str = "freeze_user_ns") -> Cost:
    """Return costs that change by ``ratios`` for one metric at sizes, and not elsewhere."""

    def cost(kernel: str, of: str, params: Mapping[str, ParamValue]) -> float:
        size = int(params["zombies"])
        return 1e6 * (ratios.get(size, 1.0) if kernel != "base" and of == metric else 1.0)

    return cost


def made(
    ratios: Mapping[int, float],
    noise: Noise | None = None,
    *,
    boots: int = 3,
    clock: Clock = "instructions",
    zombies: tuple[int, ...] = SIZES,
) -> Result:
    wanted = freezer(clock, boots=boots, repetitions=1, zombies=zombies, variants=(ONE,))
    return analysed(wanted, simulate(wanted, costs(ratios), noise))


def of(result: Result, metric: str = "freeze_user_ns") -> MetricVerdict:
    (found,) = [m for m in result.metric_verdicts if m.metric == metric]
    return found


def at_points(result: Result, metric: str = "freeze_user_ns") -> list[str]:
    return [c.verdict for c in result.comparisons if c.metric == metric]


def test_only_headline_metrics_have_one() -> None:
    result = made(dict.fromkeys(SIZES, 0.5))
    assert [m.metric for m in result.metric_verdicts] == ["freeze_user_ns", "freeze_remaining_ns"]
    assert (of(result).verdict, of(result).exact) == ("better", True)
    assert of(result).ratio == pytest.approx(0.5)
    assert of(result, "freeze_remaining_ns").verdict == "same"


def test_three_seeds_decide_a_metric_whose_points_they_cannot_decide() -> None:
    result = made(dict.fromkeys(SIZES, 0.2), Noise(boot=0.02, sample=0.3))
    assert of(result).verdict == "better"
    assert "inconclusive" in at_points(result)


def test_opposite_points_are_mixed_and_not_a_mean() -> None:
    result = made({1000: 2.0, 2000: 0.5, 3000: 0.5, 4000: 0.5})
    assert (of(result).verdict, of(result).reason) == (
        "mixed",
        "the changes at its points are opposite",
    )
    assert at_points(result) == ["worse", "better", "better", "better"]


def test_changes_that_cancel_are_mixed_with_noise_too() -> None:
    result = made({1000: 2.0, 2000: 0.5}, Noise(boot=0.002, sample=0.002), boots=6)
    assert of(result).verdict == "mixed"
    assert at_points(result)[:2] == ["worse", "better"]


def test_a_mean_within_the_margin_does_not_hide_a_point() -> None:
    result = made({1000: 1.05})
    assert of(result).ratio == pytest.approx(1.05**0.25)
    assert (of(result).verdict, of(result).reason) == (
        "mixed",
        "the mean is the same, single points are not",
    )


def test_a_point_with_an_opposite_change_inside_the_margin_does_not_make_it_mixed() -> None:
    assert of(made({1000: 1.01, 2000: 0.5, 3000: 0.5, 4000: 0.5})).verdict == "better"


def test_a_metric_with_one_point_is_that_point() -> None:
    result = made({1000: 0.8}, LOUD, boots=6, clock="wall", zombies=(1000,))
    (point,) = [c for c in result.comparisons if c.metric == "freeze_user_ns"]
    found = of(result)
    assert (found.ratio, found.ci, found.p, found.verdict) == (
        point.ratio,
        point.ci,
        point.p,
        point.verdict,
    )
    assert found.p_corrected == point.p_holm


def test_the_twin_can_explain_the_change_of_a_metric() -> None:
    wanted = freezer("wall", boots=8, repetitions=1, zombies=SIZES, variants=(ONE,))

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        return 1e6 * {"base": 1.0, "base-twin": 1.3}.get(kernel, 1.2)

    result = analysed(wanted, simulate(wanted, cost, Noise(boot=0.01, sample=0.01)))
    assert of(result).verdict == "inconclusive"
    assert of(result).reason == "the A/A twin differs from base by as much"
    assert of(result).null_ci is not None


def test_a_missing_point_is_counted_and_a_boot_without_it_does_not_count() -> None:
    wanted = freezer(boots=4, repetitions=1, zombies=SIZES, variants=(ONE,))
    boots = simulate(wanted, costs(dict.fromkeys(SIZES, 0.5)), Noise(boot=0.01, sample=0.01))
    end = BootEnd(outcome="panic", duration_s=1, first_record_s=1, command=[], host_load=0)

    def cut(number: int) -> Result:
        """Return the result if the first boots of the variant end before their last point."""
        kept = list(boots)
        for place in [n for n, boot in enumerate(boots) if boot.start.kernel == ONE][:number]:
            ends = [n for n, r in enumerate(boots[place].records) if isinstance(r, TrialEnd)]
            kept[place] = replace(
                boots[place], end=end, records=boots[place].records[: ends[-2] + 1]
            )
        return analysed(wanted, kept)

    assert (of(cut(1)).points, of(cut(1)).planned, of(cut(1)).boots) == (4, 4, 3)
    assert (of(cut(3)).points, of(cut(3)).planned, of(cut(3)).boots) == (3, 4, 4)
    assert (of(cut(4)).points, of(cut(4)).planned) == (3, 4)


def test_a_point_that_cannot_have_the_metric_is_not_a_missing_one() -> None:
    """At the first point no kernel records the metric, although it records others."""
    wanted = freezer(boots=3, repetitions=1, zombies=SIZES, variants=(ONE,))
    boots = simulate(wanted, costs(dict.fromkeys(SIZES, 0.5)))
    kept = [
        replace(
            boot,
            records=tuple(
                r
                for r in boot.records
                if not (isinstance(r, Sample) and r.trial == 0 and r.metric == "freeze_user_ns")
            ),
        )
        for boot in boots
    ]
    found = of(analysed(wanted, kept))
    assert (found.points, found.planned, found.verdict) == (3, 3, "better")
    assert of(analysed(wanted, kept), "freeze_remaining_ns").planned == 4


def test_weights_of_points_decide_the_mean() -> None:
    wanted = freezer(boots=3, repetitions=1, zombies=SIZES, variants=(ONE,))
    sweep = wanted.workloads[0].model_copy(
        update={"weights": {"zombies": {"1000": 2.0, "2000": 0.0}}}
    )
    wanted = wanted.model_copy(update={"workloads": (sweep,)})
    result = analysed(wanted, simulate(wanted, costs({1000: 0.5, 2000: 0.9})))
    assert of(result).ratio == pytest.approx(0.5**0.5)


def test_other_metrics_and_kernels_of_an_ablation_do_not_weaken_a_headline_metric() -> None:
    """The corrected p-value of a headline metric is the same with and without them."""
    wanted = freezer(boots=3, repetitions=1, zombies=SIZES, variants=(ONE, "part"))
    boots = simulate(wanted, costs(dict.fromkeys(SIZES, 0.9)), LOUD)
    from kteardown.analysis.conclude import analyse
    from kteardown.model.point import points_of

    used = {"zombies": WORKLOADS["zombies"]}
    facts = KernelFacts(
        release="", source="", arch="x86_64", compiler="", config_hash="", image_hash=""
    )
    part = facts.model_copy(
        update={"patch_set": PatchSet(series="s", patches=(1,), total=2, for_ablation=True)}
    )
    points = points_of(wanted, used)
    alone = analyse(wanted, used, boots, {"base": facts, ONE: facts}, {}, "", points=points)
    both = analyse(
        wanted, used, boots, {"base": facts, ONE: facts, "part": part}, {}, "", points=points
    )
    assert alone.metric_verdicts == both.metric_verdicts
    few = {"zombies": used["zombies"].model_copy(update={"metrics": dict(used["zombies"].metrics)})}
    del few["zombies"].metrics["thaw_ns"]
    less = analyse(wanted, few, boots, {"base": facts, ONE: facts}, {}, "", points=points)
    assert less.metric_verdicts == alone.metric_verdicts


def test_percentiles_of_a_headline_metric_have_a_verdict_of_their_own() -> None:
    spec = (
        WORKLOADS["zombies_cgroup"]
        .metrics["freeze_cgroup_ns"]
        .model_copy(update={"percentiles": (90.0,)})
    )
    workload = WORKLOADS["zombies_cgroup"].model_copy(
        update={"metrics": {"freeze_cgroup_ns": spec}}
    )
    from kteardown.analysis.conclude import analyse
    from kteardown.model.point import points_of

    wanted: Experiment = experiment(4, points=2, clock="instructions")
    used = {"zombies_cgroup": workload}
    facts = KernelFacts(
        release="", source="", arch="x86_64", compiler="", config_hash="", image_hash=""
    )
    kernels = {"base": facts, "variant-0": facts}
    result = analyse(
        wanted, used, simulate(wanted, noise=LOUD), kernels, {}, "", points=points_of(wanted, used)
    )
    assert [m.statistic for m in result.metric_verdicts] == ["median", "p90"]
    assert isinstance(wanted.workloads[0], Sweep)


SEEDS = World(name="seeds", shifts=normal(0.1), jitter=normal(0.1), repetitions=1)


@pytest.mark.parametrize(
    "but", [{}, {0: 0.3, 1: 0.3}], ids=["nothing changed", "half of the points changed"]
)
def test_false_verdicts_are_rare_at_points_and_metrics_that_did_not_change(
    but: dict[int, float],
) -> None:
    for world, boots, clock in ((SEEDS, 3, "instructions"), (WORLDS[4], 4, "wall")):
        wanted = experiment(boots, points=4, variants=2, repetitions=2, clock=clock)  # type: ignore[arg-type]
        assert ruled(world, wanted, 60, but=but).false <= 0.05 + 3 * (0.05 * 0.95 / 60) ** 0.5


def test_a_quick_design_finds_what_one_correction_of_all_comparisons_does_not() -> None:
    loud = World(name="loud", shifts=normal(0.05), jitter=normal(0.4), repetitions=1)
    wanted = experiment(3, points=8, variants=2, repetitions=1, clock="instructions")
    found = ruled(loud, wanted, 40, but=dict.fromkeys(range(8), 0.15))
    assert found.metric >= 0.9
    assert found.all_any <= 0.5


def test_one_unchanged_point_rarely_makes_an_improvement_mixed() -> None:
    wanted = experiment(4, points=8, repetitions=2)
    assert (
        ruled(WORLDS[1], wanted, 60, but=dict.fromkeys(range(7), 0.5)).mixed
        <= 0.05 + 3 * (0.05 / 60) ** 0.5
    )
