"""Which kernels are broken: what counts, and what a fault of base, chance and lost boots do to
it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kteardown.analysis.both_clocks import both_clocks
from kteardown.model.experiment import MachineSpec
from kteardown.model.kernel_facts import PatchSet
from kteardown.model.record import Outcome
from kteardown.report.contents import limits
from kteardown.report.formats import cover
from kteardown.report.material import Material, side_by_side
from kteardown.report.sections.both_clocks_table import clock_faults, clock_summary
from kteardown.report.sections.fault_lines import fault_lines, fault_sentence, uncompared_sentences
from kteardown.report.sentence import lines
from kteardown.rundir.counting import BootRecords
from unit.analysis.faulty import (
    VARIANT,
    WARNING,
    Change,
    crash,
    end,
    fails,
    fails_at,
    has_cpus,
    is_broken,
    of_variant,
    result,
    warns,
)
from unit.simulation import WORKLOADS, analysed, freezer, simulate


def test_nothing_is_broken_in_a_good_run() -> None:
    found = result({})
    assert (found.faults, found.uncompared, fault_lines(found), is_broken(found)) == (
        (),
        (),
        [],
        False,
    )


@pytest.mark.parametrize("outcome", ["panic", "hang", "oom", "agent-error"])
def test_one_crash_where_base_passed_is_proof_on_the_instruction_clock(outcome: Outcome) -> None:
    found = result({(VARIANT, 1): crash(outcome, 1)})
    (fault,) = found.faults
    assert (fault.kernel, fault.kind, fault.status, fault.p) == (VARIANT, outcome, "broken", None)
    assert (len(fault.boots), fault.of, fault.base_boots, fault.base_of) == (1, 3, 0, 3)
    assert len(fault.points) == 1
    broken = [c for c in found.comparisons if c.verdict == "broken"]
    assert broken and all(c.point == fault.points[0].point for c in broken)
    (line,) = fault_lines(found)
    assert line.text.startswith(f"BROKEN: {VARIANT}: ")
    assert (
        "in 1 of 3 boots" in line.text
        and "base in 0 of 3" in line.text
        and fault.message in line.text
    )


def test_a_kernel_that_never_reaches_a_trial_is_broken_and_its_points_are_counted() -> None:
    changes: dict[tuple[str, int], Change] = {
        (VARIANT, block): lambda boot: replace(boot, end=end("panic"), records=())
        for block in range(3)
    }
    found = result(changes)
    (fault,) = found.faults
    assert (fault.status, fault.points) == ("broken", ())
    assert uncompared_sentences(found) == [
        f"{VARIANT}: 2 of 2 points could not be compared: the boot ended in a panic (2)"
    ]
    basis, *_ = limits(found)
    assert (
        basis == "Base is Linux 6.12.117 (debian:6.12.117-1, x86_64); nothing was compared with it."
    )


def test_a_lost_base_is_named_where_a_variant_is_not_compared() -> None:
    found = result({("base", block): crash("panic", 0) for block in range(3)})
    (text,) = uncompared_sentences(found)
    assert ": base: the boot ended in a panic" in text


def test_the_points_of_a_fault_are_named_in_their_order() -> None:
    found = result(of_variant(0, 1, 2, change=warns(0, 1)))
    orders = [
        fault.model_copy(update={"points": fault.points[::step]})
        for fault in found.faults
        for step in (1, -1)
    ]
    assert len(orders) == 2
    assert all(
        "at zombies=0 and zombies=6,000 of zombies" in fault_sentence(fault) for fault in orders
    )


def test_a_warning_and_an_invariant_are_faults_of_boots_that_end_ok() -> None:
    found = result({(VARIANT, 0): warns(1), (VARIANT, 2): fails("all_zombies")})
    assert [(f.kind, f.status) for f in found.faults] == [
        ("warning", "broken"),
        ("invariant", "broken"),
    ]
    assert found.faults[0].excerpt == (WARNING, "Call Trace:")
    assert found.faults[1].message == "all_zombies: 7 of 9"


def test_all_metrics_of_a_broken_variant_are_broken() -> None:
    found = result({(VARIANT, 0): warns(1)})
    assert {m.verdict for m in found.metric_verdicts if m.variant == VARIANT} == {"broken"}


def test_a_fault_on_one_clock_is_first_where_both_are_side_by_side() -> None:
    good, bad = (
        result({}),
        result({(VARIANT, n): crash("hang", 1) for n in range(4)}, "wall", boots=4),
    )
    first, *_ = clock_faults(both_clocks(good, bad))
    assert first.text.startswith(f"the wall clock: BROKEN: {VARIANT}: it hangs, in 4 of 4 boots")
    assert first.tone == "broken"


def forges(boot: BootRecords) -> BootRecords:
    forged = end("agent-error").model_copy(
        update={"forged": True, "detail": "forged record: it belongs to no running trial"}
    )
    return replace(boot, end=forged, records=())


def test_a_forged_record_is_the_first_fault_also_of_base() -> None:
    broken = of_variant(0, 1, 2, change=warns(1))
    found = result({**broken, ("base", 1): forges})
    assert [(fault.kind, fault.status) for fault in found.faults] == [
        ("forged record", "base"),
        ("warning", "broken"),
    ]
    assert fault_lines(found)[0].text == (
        "base itself fails: its guest forges records, so nothing of the boot counts, in 1 of 3 "
        "boots: forged record: it belongs to no running trial"
    )
    (fault,) = result(of_variant(1, change=forges)).faults
    assert (fault.kind, fault.status, fault.boots) == ("forged record", "broken", (3,))


def test_what_base_does_too_is_not_the_fault_of_the_variant() -> None:
    everywhere: dict[tuple[str, int], Change] = {
        (kernel, block): warns(0, 1) for kernel in ("base", VARIANT) for block in range(3)
    }
    found = result(everywhere)
    assert {(f.kernel, f.status) for f in found.faults} == {(VARIANT, "base too"), ("base", "base")}
    assert not is_broken(found)
    assert all(c.verdict != "broken" for c in found.comparisons)


def test_a_warning_that_is_printed_once_may_move_to_another_point() -> None:
    changes: dict[tuple[str, int], Change] = {("base", n): warns(0) for n in range(3)}
    found = result({**changes, **{(VARIANT, n): warns(1) for n in range(3)}})
    assert [f.status for f in found.faults if f.kernel == VARIANT] == ["base too"]


@pytest.mark.parametrize(("cpus", "status"), [(1, "broken"), (4, "base too")])
def test_a_crash_at_a_point_where_base_has_none_is_proof_with_one_cpu(
    cpus: int, status: str
) -> None:
    found = result({("base", 0): crash("panic", 0), (VARIANT, 1): crash("panic", 1)}, cpus=cpus)
    assert [f.status for f in found.faults if f.kernel == VARIANT] == [status]


@pytest.mark.parametrize(
    "change", [fails("none_left"), warns(1), crash("hang", 1), crash("oom", 1)]
)
def test_what_some_boots_of_several_cpus_do_is_no_proof(change: Change) -> None:
    found = result(of_variant(1, change=change), cpus=4)
    (fault,) = found.faults
    assert (fault.status, len(fault.boots), fault.of, fault.base_boots, fault.base_of) == (
        *("suspected", 1, 3),
        *(0, 3),
    )
    assert fault.p == pytest.approx(0.5)
    assert not is_broken(found)
    (line, *_) = fault_lines(found)
    assert (
        line.text.startswith(f"suspected to be broken: {VARIANT}: ") and "more boots" in line.text
    )


@pytest.mark.parametrize(
    "change",
    [
        crash("panic", 1),
        warns(1, kind="lockdep"),
        warns(1, kind="oops"),
        warns(1, kind="corruption"),
    ],
)
def test_what_no_order_of_the_cpus_excuses_is_proof_once(change: Change) -> None:
    (fault,) = result(of_variant(1, change=change), cpus=4).faults
    assert (fault.status, fault.p, len(fault.boots)) == ("broken", None, 1)


@pytest.mark.parametrize(
    "change", [fails("none_left"), warns(1), crash("hang", 1), crash("hang", 0)]
)
def test_what_all_boots_of_several_cpus_do_is_proof(change: Change) -> None:
    (fault,) = result(of_variant(0, 1, 2, change=change), cpus=4).faults
    assert (fault.status, fault.p) == ("broken", None)


def test_all_boots_of_several_cpus_are_at_least_three() -> None:
    statuses = [
        result(of_variant(*range(boots), change=fails("none_left")), boots=boots, cpus=cpus)
        .faults[0]
        .status
        for boots, cpus in ((1, 1), (1, 4), (2, 4), (3, 4))
    ]
    assert statuses == ["broken", "suspected", "suspected", "broken"]


def test_a_report_in_all_boots_may_be_at_another_point_in_each() -> None:
    changes = {(VARIANT, block): warns(block % 2) for block in range(3)}
    assert [f.status for f in result(changes, cpus=4).faults] == ["broken"]


def test_what_base_does_in_one_boot_of_several_cpus_needs_the_odds() -> None:
    bad = fails("none_left")
    found = result({("base", 0): bad, **of_variant(0, 1, 2, change=bad)}, cpus=4)
    assert [(f.kernel, f.status) for f in found.faults] == [(VARIANT, "base too"), ("base", "base")]


def test_faults_of_base_count_in_the_odds() -> None:
    """Of 12 boots 4 are bad: that 3 or 4 of these are among the 4 of the variant has the odds of
    33/495."""
    bad = fails("none_left")
    found = result({("base", 0): bad, **of_variant(0, 1, 2, change=bad)}, "wall", boots=4)
    (fault,) = [one for one in found.faults if one.kernel == VARIANT]
    assert (fault.status, fault.base_boots, fault.base_of) == ("base too", 1, 8)
    assert fault.p == pytest.approx(33 / 495)


def test_faults_at_other_points_are_not_in_all_boots_of_a_point() -> None:
    """Base fails at the point of two boots of the variant, so only that of the third could be
    proof."""
    changes = {
        ("base", 0): fails_at(0),
        (VARIANT, 2): fails_at(6000),
        **of_variant(0, 1, change=fails_at(0)),
    }
    assert [f.status for f in result(changes, cpus=4).faults if f.kernel == VARIANT] == ["base too"]
    changes |= of_variant(0, 1, change=fails_at(6000))
    assert [f.status for f in result(changes, cpus=4).faults if f.kernel == VARIANT] == ["broken"]


@pytest.mark.parametrize(("bad", "status"), [(3, "suspected"), (4, "broken")])
def test_the_odds_decide_with_several_cpus(bad: int, status: str) -> None:
    (fault,) = result(of_variant(*range(bad), change=fails("none_left")), boots=9, cpus=4).faults
    assert fault.status == status
    assert fault.p is not None and (fault.p < 0.05) == (status == "broken")


def test_one_cpu_of_a_sweep_is_repeatable_where_several_are_not() -> None:
    experiment = freezer(boots=3, zombies=(6000,), variants=(VARIANT,))
    experiment = experiment.model_copy(update={"machine": MachineSpec(cpus=(1, 4))})

    def statuses(cpus: int) -> list[str]:
        records = []
        for boot in simulate(experiment):
            made = has_cpus(boot, boot.start.machine["cpus"])
            bad = (boot.start.kernel, boot.start.block, boot.start.machine["cpus"]) == (
                VARIANT,
                1,
                cpus,
            )
            records.append(fails("none_left")(made) if bad else made)
        return [fault.status for fault in analysed(experiment, records).faults]

    assert (statuses(1), statuses(4)) == (["broken"], ["suspected"])


def test_a_broken_part_of_an_ablation_does_not_break_the_series() -> None:
    found = result({(VARIANT, 0): warns(1)})
    part = PatchSet(series=VARIANT, patches=(1,), total=2, for_ablation=True)
    facts = found.kernels[VARIANT].model_copy(update={"patch_set": part})
    found = found.model_copy(update={"kernels": {**found.kernels, VARIANT: facts}})
    assert not is_broken(found)
    assert fault_lines(found)[0].text.startswith("a part of an ablation")


def test_a_variant_that_is_broken_on_one_clock_has_no_claim_on_the_other() -> None:
    good = result({}, "wall", boots=4)
    bad = result({(VARIANT, 1): crash("panic", 1)})
    exact, wall = (Material("x", one, WORKLOADS) for one in (bad, good))
    both = side_by_side("x", exact, wall)
    assert [line.tone for line in lines(both.clocks[1].result, WORKLOADS)] == ["broken"]
    (line,) = lines(both.both, WORKLOADS)
    how = "panic in 1 of 3 boots (base in 0 of 3) on the instruction clock"
    assert line == ("broken", f"{VARIANT} is broken: {how}.")
    assert clock_summary(both.both, WORKLOADS) is None
    assert "| the last line" in cover.of_run(both)


@pytest.mark.parametrize(("bad", "status"), [(1, "suspected"), (4, "broken")])
def test_on_the_wall_clock_the_counts_decide(bad: int, status: str) -> None:
    found = result({(VARIANT, block): crash("hang", 1) for block in range(bad)}, "wall", boots=4)
    (fault,) = found.faults
    assert (fault.status, fault.of, fault.base_of) == (status, 4, 8)
    assert fault.p is not None and (fault.p < 0.05) == (status == "broken")
    assert is_broken(found) == (status == "broken")
    assert any(line.text.startswith(("BROKEN", "suspected")) for line in fault_lines(found))


def test_a_fault_of_the_twin_is_a_fault_of_base() -> None:
    found = result({("base-twin", 1): crash("panic", 0)}, "wall", boots=4)
    (fault,) = found.faults
    assert (fault.kernel, fault.status, fault.of) == ("base", "base", 8)
    assert fault_lines(found)[0].text.startswith("base itself fails: it panics, in 1 of 8 boots")


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["base", "base-twin"]), st.integers(0, 3)),
        st.sampled_from([crash("panic", 0), crash("hang", 1), warns(0), fails("x")]),
    )
)
def test_no_fault_of_base_alone_breaks_a_variant(changes: dict[tuple[str, int], Change]) -> None:
    found = result(changes, "wall", boots=4)
    assert all(f.kernel == "base" for f in found.faults)
    assert not is_broken(found)
