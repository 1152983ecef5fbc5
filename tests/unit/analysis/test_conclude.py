"""From records to a Result: which records count, which do not, and that there is no other input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kteardown.model.experiment import MachineSpec
from kteardown.model.judged import Comparison
from kteardown.model.record import BootEnd, Check, Outcome, Record, Sample, TrialEnd, TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.rundir.counting import BootRecords
from unit.simulation import Noise, analysed, freezer, freezer_cost, simulate

POINTS = (0, 3000, 9000)


def one(result: Result, variant: str, metric: str, zombies: int) -> Comparison:
    (found,) = [
        c
        for c in result.comparisons
        if (c.variant, c.metric, c.point) == (variant, metric, {"zombies": zombies})
    ]
    return found


def ended(boot: BootRecords, outcome: Outcome, keep: int) -> BootRecords:
    """Return the boot as if it had ended after ``keep`` records."""
    end = BootEnd(outcome=outcome, duration_s=1, first_record_s=1, command=[], host_load=0)
    return replace(boot, end=end, records=boot.records[:keep])


def with_record(boot: BootRecords, index: int, record: Record) -> BootRecords:
    records = list(boot.records)
    records[index] = record
    return replace(boot, records=tuple(records))


def index_of(boot: BootRecords, kind: type, zombies_at: int) -> int:
    """Return the index of the ``zombies_at``-th record of a kind."""
    return [n for n, record in enumerate(boot.records) if isinstance(record, kind)][zombies_at]


def test_without_noise_every_number_is_exact_and_excludes_warm_ups() -> None:
    experiment = freezer(zombies=POINTS)
    result = analysed(experiment, simulate(experiment))
    found = one(result, "freezer-skip-exited", "freeze_user_ns", 9000)
    assert found.base.median == 24_000 + 205 * 9000
    assert (found.base.n, found.base.boots, found.base.sd) == (15, 5, 0)
    assert found.ratio == pytest.approx((24_000 + 205 * 9000 * 0.38) / (24_000 + 205 * 9000))
    assert (found.exact, found.verdict) == (True, "better")
    nothing = one(result, "freezer-skip-exited", "freeze_user_ns", 0)
    assert (nothing.ratio, nothing.ci, nothing.verdict, nothing.exact) == (1, (1, 1), "same", True)


def test_cross_checks_have_no_verdict_and_headline_metrics_are_first() -> None:
    result = analysed(experiment := freezer(zombies=POINTS), simulate(experiment))
    metrics = list(dict.fromkeys(c.metric for c in result.comparisons))
    assert metrics == ["freeze_user_ns", "freeze_remaining_ns", "thaw_ns"]


def test_the_laws_give_the_cost_of_one_zombie_for_every_kernel() -> None:
    experiment = freezer()
    result = analysed(experiment, simulate(experiment, noise=Noise(boot=0.002, sample=0.001)))
    found = {law.kernel: law for law in result.laws if law.metric == "freeze_user_ns"}
    assert list(found) == ["base", "freezer-skip-exited", "freezer-skip-nofreeze"]
    assert found["base"].model == "linear"
    assert found["base"].per_unit == pytest.approx(205, rel=0.01)
    assert found["freezer-skip-exited"].per_unit == pytest.approx(205 * 0.38, rel=0.01)


def test_the_same_records_give_the_same_result_in_any_order_and_at_any_time() -> None:
    experiment = freezer("wall", boots=4, zombies=POINTS)
    boots = simulate(experiment, noise=Noise(block=0.1, boot=0.05, sample=0.05))
    later = [
        replace(
            boot,
            start=boot.start.model_copy(update={"host_load": 8.0, "started_at": "2027"}),
            end=boot.end.model_copy(update={"duration_s": 99.0, "host_load": 9.0}),
        )
        for boot in reversed(boots)
    ]
    assert analysed(experiment, boots) == analysed(experiment, later)


def test_boots_are_counted_by_outcome() -> None:
    experiment = freezer(zombies=POINTS)
    boots = simulate(experiment)
    boots[1] = ended(boots[1], "panic", 1)
    result = analysed(experiment, boots[:-1])
    assert result.boots == {
        "ok": 13,
        "panic": 1,
        "hang": 0,
        "oom": 0,
        "agent-error": 0,
        "infrastructure-error": 0,
    }


def test_trials_that_a_boot_did_not_reach_are_missing_with_the_reason() -> None:
    experiment = freezer(zombies=POINTS, boots=2, variants=("freezer-skip-exited",))
    boots = simulate(experiment)
    second = index_of(boots[1], TrialEnd, 1)
    boots[1] = ended(boots[1], "hang", second + 1)
    result = analysed(experiment, boots[:-1])
    missing = [(v.kernel, v.point["zombies"], v.status, v.detail, v.count) for v in result.voids]
    assert missing == [
        ("freezer-skip-exited", 0, "missing", "not booted", 1),
        ("freezer-skip-exited", 3000, "missing", "not booted", 1),
        ("freezer-skip-exited", 9000, "missing", "boot: hang", 1),
        ("freezer-skip-exited", 9000, "missing", "not booted", 1),
    ]
    kept = one(result, "freezer-skip-exited", "freeze_user_ns", 3000)
    assert (kept.changed.boots, kept.verdict, kept.reason) == (
        1,
        "inconclusive",
        "one seed gives no interval",
    )
    assert not [c for c in result.comparisons if c.point == {"zombies": 9000}]


@pytest.mark.parametrize("how", ["void", "failed", "check"])
def test_unusable_trials_are_counted_and_not_used(how: str) -> None:
    experiment = freezer(zombies=POINTS, boots=3, variants=("freezer-skip-exited",))
    boots = simulate(experiment)
    if how == "check":
        place = index_of(boots[0], Sample, 0)
        bad: Record = Check(
            trial=0, repetition=0, name="all_zombies", ok=False, detail="2999 of 3000"
        )
        expected = ("void", "all_zombies: 2999 of 3000")
    else:
        place = index_of(boots[0], TrialEnd, 0)
        bad = TrialEnd.model_validate({"trial": 0, "status": how, "detail": "no memory"})
        expected = (how, "no memory")
    boots[0] = with_record(boots[0], place, bad)
    result = analysed(experiment, boots)
    (void,) = result.voids
    assert (void.kernel, void.workload, void.point, void.count) == (
        "base",
        "zombies",
        {"zombies": 0},
        1,
    )
    assert (void.status, void.detail) == expected
    assert one(result, "freezer-skip-exited", "freeze_user_ns", 0).base.boots == 2


def test_a_second_source_is_a_variant_like_any_other() -> None:
    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        return freezer_cost("base", metric, params) * (0.5 if kernel == "debian:7.2" else 1)

    experiment = freezer(zombies=POINTS, variants=("debian:7.2",))
    result = analysed(experiment, simulate(experiment, cost))
    assert {c.variant for c in result.comparisons} == {"debian:7.2"}
    assert {c.ratio for c in result.comparisons} == {0.5}


def test_metrics_of_zero_have_no_ratio() -> None:
    experiment = freezer("wall", zombies=POINTS)
    result = analysed(experiment, simulate(experiment, lambda kernel, metric, params: 0))
    assert {(c.ratio, c.ci, c.verdict) for c in result.comparisons} == {(None, None, "same")}
    assert result.laws == ()


def test_on_the_wall_clock_every_comparison_has_the_interval_of_the_twin() -> None:
    experiment = freezer("wall", boots=8, zombies=POINTS)
    result = analysed(
        experiment, simulate(experiment, noise=Noise(block=0.2, boot=0.03, sample=0.02))
    )
    found = one(result, "freezer-skip-exited", "freeze_user_ns", 9000)
    assert found.null_ci is not None
    assert found.null_ci[0] < 1 < found.null_ci[1]
    assert found.verdict == "better"
    assert {c.variant for c in result.comparisons} == {
        "freezer-skip-exited",
        "freezer-skip-nofreeze",
    }
    assert result.boots["ok"] == 32


def test_reports_of_no_change_are_rarely_wrong() -> None:
    """40 reports of 18 comparisons each, all of base with base: at most 5% of reports by design."""
    experiment = freezer("wall", boots=5, zombies=POINTS)
    wrong = 0
    for seed in range(40):
        boots = simulate(
            experiment,
            lambda kernel, metric, params: freezer_cost("base", metric, params),
            Noise(block=0.2, boot=0.1, sample=0.1),
            seed=seed,
        )
        result = analysed(experiment, boots)
        wrong += any(c.verdict in ("better", "worse") for c in result.comparisons)
    assert wrong <= 4


def test_undeclared_metrics_and_emulation_are_noted() -> None:
    experiment = freezer("wall", boots=2, zombies=POINTS)
    boots = simulate(experiment)
    place = index_of(boots[0], Sample, 4)
    odd = Sample(trial=0, repetition=1, metric="surprise_ns", value=1)
    start = boots[0].start.model_copy(update={"acceleration": "mttcg"})
    boots[0] = replace(with_record(boots[0], place, odd), start=start)
    notes = analysed(experiment, boots).notes
    assert notes[0].startswith("multi-threaded emulation, not hardware")
    assert "surprise_ns" in notes[1]


def test_a_run_with_few_records_has_a_result() -> None:
    experiment = freezer(zombies=POINTS, boots=2)
    result = analysed(experiment, [])
    assert result.comparisons == ()
    assert sum(void.count for void in result.voids) == 2 * 3 * 3


def test_each_swept_machine_has_its_own_points_and_boots() -> None:
    one = freezer(zombies=POINTS, boots=2, variants=("freezer-skip-exited",))
    experiment = one.model_copy(update={"machine": MachineSpec(possible_cpus=(2, 32))})
    boots = simulate(experiment)
    missing = next(n for n, boot in enumerate(boots) if machine_of(boot) == 32)
    result = analysed(experiment, boots[:missing] + boots[missing + 1 :])
    sizes = {
        (c.point["possible_cpus"], c.point["zombies"]): c.base.boots for c in result.comparisons
    }
    assert sizes == {(p, z): 2 if p == 2 else 1 for p in (2, 32) for z in POINTS}
    laws = {law.point["possible_cpus"] for law in result.laws}
    assert laws == {2, 32}
    assert {(v.point["possible_cpus"], v.status, v.count) for v in result.voids} == {
        (32, "missing", 1)
    }


def machine_of(boot: BootRecords) -> ParamValue:
    return next(r.params["possible_cpus"] for r in boot.records if isinstance(r, TrialStart))
