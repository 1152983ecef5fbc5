"""Which kernels are broken: what counts, and what a fault of base, chance and lost boots do to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kteardown.analysis.both_clocks import both_clocks
from kteardown.model.record import BootEnd, Check, KernelProblem, Outcome, TrialStart
from kteardown.model.result import PatchSet, Result
from kteardown.report.context import Material, side_by_side
from kteardown.report.formats import cover
from kteardown.report.sections.both_clocks_table import clock_sentences
from kteardown.report.sections.fault_lines import broken_message, fault_lines, uncompared_sentences
from kteardown.report.summary import claims
from kteardown.rundir.counting import BootRecords
from unit.simulation import WORKLOADS, analysed, freezer, simulate

VARIANT = "freezer-skip-exited"
Change = Callable[[BootRecords], BootRecords]
WARNING = "WARNING: CPU: 0 PID: 1 at kernel/power/process.c:52 try_to_freeze_tasks+0x2f9/0x300"


def end(outcome: Outcome, *problems: KernelProblem) -> BootEnd:
    return BootEnd(
        outcome=outcome,
        detail="" if outcome == "ok" else f"it was a {outcome}",
        duration_s=1,
        first_record_s=1,
        command=[],
        host_load=0,
        problems=problems,
        last_lines=("the last line",),
    )


def crash(outcome: Outcome, trial: int) -> Change:
    """A boot that ends inside trial ``trial``."""

    def change(boot: BootRecords) -> BootRecords:
        starts = [n for n, record in enumerate(boot.records) if isinstance(record, TrialStart)]
        return replace(boot, end=end(outcome), records=boot.records[: starts[trial] + 1])

    return change


def warns(*trials: int) -> Change:
    def change(boot: BootRecords) -> BootRecords:
        problem = KernelProblem(kind="warning", line=WARNING, trials=trials, excerpt=(WARNING, "Call Trace:"))
        return replace(boot, end=end("ok", problem))

    return change


def fails(name: str) -> Change:
    """The last trial of the boot fails an invariant."""

    def change(boot: BootRecords) -> BootRecords:
        *records, last = boot.records
        trial = getattr(last, "trial", None)
        assert trial is not None
        check = Check(trial=trial, repetition=1, name=name, ok=False, detail="7 of 9")
        return replace(boot, records=(*records, check, last))

    return change


def result(
    changes: dict[tuple[str, int], Change], clock: str = "instructions", boots: int = 3, **more: object
) -> Result:
    experiment = freezer(clock, boots=boots, zombies=(0, 6000), variants=(VARIANT,))  # type: ignore[arg-type]
    records = []
    for boot in simulate(experiment):
        change = changes.get((boot.start.kernel, boot.start.block))
        records.append(change(boot) if change else boot)
    return analysed(experiment, records)


def test_nothing_is_broken_in_a_good_run() -> None:
    found = result({})
    assert (found.faults, found.uncompared, fault_lines(found), broken_message(found)) == ((), (), [], "")


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
    assert "in 1 of 3 boots" in line.text and "base in 0 of 3" in line.text and fault.message in line.text


def test_a_kernel_that_never_reaches_a_trial_is_broken_and_its_points_are_counted() -> None:
    changes: dict[tuple[str, int], Change] = {
        (VARIANT, block): lambda boot: replace(boot, end=end("panic"), records=()) for block in range(3)
    }
    found = result(changes)
    (fault,) = found.faults
    assert (fault.status, fault.points) == ("broken", ())
    assert uncompared_sentences(found) == [
        f"{VARIANT}: 2 of 2 points could not be compared: {VARIANT}: boot: panic (2)"
    ]


def test_a_warning_and_an_invariant_are_faults_of_boots_that_end_ok() -> None:
    found = result({(VARIANT, 0): warns(1), (VARIANT, 2): fails("all_zombies")})
    assert [(f.kind, f.status) for f in found.faults] == [("warning", "broken"), ("invariant", "broken")]
    assert found.faults[0].excerpt == (WARNING, "Call Trace:")
    assert found.faults[1].message == "all_zombies: 7 of 9"


def test_all_metrics_of_a_broken_variant_are_broken() -> None:
    found = result({(VARIANT, 0): warns(1)})
    assert {m.verdict for m in found.metric_verdicts if m.variant == VARIANT} == {"broken"}


def test_a_fault_on_one_clock_is_first_where_both_are_side_by_side() -> None:
    good, bad = result({}), result({(VARIANT, n): crash("hang", 1) for n in range(4)}, "wall", boots=4)
    first, *_ = clock_sentences(both_clocks(good, bad), WORKLOADS)
    assert first.text.startswith(f"the wall clock: BROKEN: {VARIANT}: it hangs, in 4 of 4 boots")
    assert first.tone == "broken"


def test_what_base_does_too_is_not_the_fault_of_the_variant() -> None:
    everywhere: dict[tuple[str, int], Change] = {
        (kernel, block): warns(0, 1) for kernel in ("base", VARIANT) for block in range(3)
    }
    found = result(everywhere)
    assert {(f.kernel, f.status) for f in found.faults} == {(VARIANT, "base too"), ("base", "base")}
    assert not broken_message(found)
    assert all(c.verdict != "broken" for c in found.comparisons)


def test_a_warning_that_is_printed_once_may_move_to_another_point() -> None:
    changes: dict[tuple[str, int], Change] = {("base", n): warns(0) for n in range(3)}
    found = result({**changes, **{(VARIANT, n): warns(1) for n in range(3)}})
    assert [f.status for f in found.faults if f.kernel == VARIANT] == ["base too"]


def test_a_crash_at_a_point_where_base_has_none_is_proof() -> None:
    found = result({("base", 0): crash("panic", 0), (VARIANT, 1): crash("panic", 1)})
    assert [f.status for f in found.faults if f.kernel == VARIANT] == ["broken"]


def test_a_broken_part_of_an_ablation_does_not_break_the_series() -> None:
    found = result({(VARIANT, 0): warns(1)})
    part = PatchSet(series=VARIANT, patches=(1,), total=2, for_ablation=True)
    facts = found.kernels[VARIANT].model_copy(update={"patch_set": part})
    found = found.model_copy(update={"kernels": {**found.kernels, VARIANT: facts}})
    assert not broken_message(found)
    assert fault_lines(found)[0].text.startswith("a part of an ablation")


def test_a_variant_that_is_broken_on_one_clock_has_no_claim_on_the_other() -> None:
    good = result({}, "wall", boots=4)
    bad = result({(VARIANT, 1): crash("panic", 1)})
    exact, wall = (Material("x", one, WORKLOADS) for one in (bad, good))
    both = side_by_side("x", exact, wall)
    assert [claim.verdict for claim in claims(both.wall)] == ["broken"]
    assert "on the instruction clock: it was a panic" in claims(both.wall)[0].text
    assert all("agree" not in line.text for line in clock_sentences(both.both, WORKLOADS))
    assert "| the last line" in cover.render_both(both)


@pytest.mark.parametrize(("bad", "status"), [(1, "suspected"), (4, "broken")])
def test_on_the_wall_clock_the_counts_decide(bad: int, status: str) -> None:
    found = result({(VARIANT, block): crash("hang", 1) for block in range(bad)}, "wall", boots=4)
    (fault,) = found.faults
    assert (fault.status, fault.of, fault.base_of) == (status, 4, 8)
    assert fault.p is not None and (fault.p < 0.05) == (status == "broken")
    assert bool(broken_message(found)) == (status == "broken")
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
    assert not broken_message(found)
