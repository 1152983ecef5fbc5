"""From counts of lines at two sizes to executions for one object."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.coverage import executed as module
from kteardown.coverage.attribute import Counts, Entered, Executed, FunctionId
from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.executed import (
    Exercised,
    ExercisedFunction,
    PathCost,
    _at_default_size,
    _cost,
    _exercised,
    _function,
    _more,
)
from kteardown.errors import GuestError
from kteardown.inputs.load import load_workload
from kteardown.kernels.request import KernelImage
from kteardown.model.record import BootEnd
from kteardown.progress import SilentReporter
from kteardown.report.charts import written
from kteardown.run.boot_once import CountedBoot, CountedTrial
from kteardown.run.setting import Bootable
from kteardown.vm.qemu_library import CodeBlock, TrialBlocks
from unit.fake_machine import FakeBoot, FakeMachine

FILE = "mm/z.c"
FREE = FunctionId(FILE, "free")


def side(calls: int, **lines: int) -> Executed:
    counted = {(FILE, int(name[1:])): count for name, count in lines.items()}
    return Executed({FREE: Counts(calls, 10 * calls)}, counted, 100 * calls)


def test_the_slope_of_the_statement_that_is_executed_most() -> None:
    changed = ChangedFunction(FILE, "free", statements_after=((4, 5), (9, 9), (20, 20)))
    found = _function(changed, [side(10, l4=10, l9=1), side(30, l4=30, l9=1)], objects=10)
    assert found == ExercisedFunction(changed, 30, 2.0, entered=30)


def test_lines_that_are_not_executed() -> None:
    changed = ChangedFunction(FILE, "free", statements_after=((9, 9),))
    found = _function(changed, [side(10, l4=10), side(30, l4=30)], objects=10)
    assert (found.executions, found.entered) == (0, 30)
    exercised = Exercised("zombies", "zombies", (found,), 0.001)
    (sentence,) = written("executed", exercised, 3, "0.1%")
    assert sentence.startswith("zombies entered free() 30 times")
    assert "line 9 of the patched file" in sentence


def test_where_lines_are_only_removed_the_function_counts() -> None:
    changed = ChangedFunction(FILE, "free")
    found = _function(changed, [side(10), side(30)], objects=0)
    assert (found.executions, found.executions_per_object) == (30, None)


class _Info:
    """Debug information in which every address is an instruction of ``free`` in line 4."""

    def count(self, counts: dict[int, int]) -> Executed:
        total = sum(counts.values())
        return Executed({FREE: Counts(total, total)}, {(FILE, 4): total}, 4 * total)

    def instructions_in(self, counts: dict[int, int], functions: set[FunctionId]) -> int:
        return sum(counts.values()) if FREE in functions else 0


@pytest.mark.parametrize(("line", "exercised"), [(4, True), (9, False)])
def test_a_change_is_exercised_if_a_line_of_it_is(
    monkeypatch: pytest.MonkeyPatch, line: int, exercised: bool
) -> None:
    monkeypatch.setattr(module, "counts_of", lambda blocks, inside: {1: blocks.stretches})
    trials = [
        CountedTrial("zombies", {"zombies": size}, "ok", "", TrialBlocks(2 * size, ()))
        for size in (10, 20)
    ]
    changed = [
        ChangedFunction(FILE, "free", statements_after=((line, line),)),
        ChangedFunction(FILE, "LIMIT", "macro"),
        ChangedFunction(FILE, "gone", exists_after=False),
    ]
    done = _exercised(load_workload("zombies"), trials, changed, _Info())  # type: ignore[arg-type]
    assert [one.function.name for one in done.functions] == ["free"]
    assert done.exercised == exercised
    assert (done.objects, done.share) == ("zombies", 0.25)


def test_the_cost_is_that_of_one_more_object() -> None:
    workload, sizes = load_workload("zombies"), [{"zombies": 10}, {"zombies": 20}]
    found = _cost(workload, sizes, [[700, 701], [1380, 1391], [230, 230], [440, 450]])
    assert found == PathCost("zombies", (68, 69), (21, 22))
    # What is done once for all objects is the cost of the stretch.
    assert _cost(workload, sizes, [[700], [701], [230], [231]]) == PathCost("", (701,), (231,))
    assert _cost(workload, sizes[:1], [[700], [700], [230], [230]]) == PathCost("", (700,), (230,))


def test_what_is_done_later_is_compared_by_seed() -> None:
    counts = [[100, 120], [200, 225], [100, 119], [260, 284]]
    assert _more(counts, 10) == (6.0, 6.0)
    assert _more(counts, 0) == (60.0, 59.0)
    # One guest that does not become quiet says nothing of the others.
    assert _more([[100, 120], [200, None], [100, 119], [260, 284]], 10) == ()


def test_a_cost_that_grows_faster_than_the_rest_is_a_larger_part_of_a_larger_stretch() -> None:
    # Twice the share at twice the size, so five times the share at five times the size.
    assert _at_default_size([0.005], [0.01]) == pytest.approx(0.05)
    for small in (0.02, 0.01, 0):
        assert _at_default_size([small], [0.01]) == 0.01
    assert _at_default_size([0.2], [0.4]) == 1


def test_a_share_is_extrapolated_as_far_as_the_seeds_agree_that_it_grows() -> None:
    assert _at_default_size([0.01] * 3, [0.02] * 3) == pytest.approx(0.1)
    # Counted with pipechain, of which one seed differs from another by half.
    noisy = _at_default_size([0.081, 0.060, 0.082], [0.141, 0.117, 0.102])
    assert 0.117 < noisy < 0.15
    assert _at_default_size([0.10, 0.12, 0.13], [0.16, 0.12, 0.18]) == 0.16


END = BootEnd(outcome="ok", duration_s=1, first_record_s=0.5, command=["fake"], host_load=0)


def test_a_kernel_on_which_nothing_could_be_counted_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def boot(kernel: Bootable, *others: object, **options: object) -> CountedBoot:
        if kernel.image.name == "changed":
            raise GuestError("the guest ended with hang", hint="look at it")
        return CountedBoot(TrialBlocks(0, ()), (), (), END)

    monkeypatch.setattr(module, "boot_counted", boot)
    base, changed = (
        KernelImage(name, Path(name), "debian:6.12", "", "x86_64", "", "", "", "")
        for name in ("base", "changed")
    )
    machine = FakeMachine(lambda job: FakeBoot())
    with pytest.raises(GuestError, match=r"hang \(on changed\)"):
        module.executed(
            [base, changed],
            load_workload("zombies"),
            {"zombies": 300},
            [],
            SilentReporter(),
            machine=machine,
        )


class _Waiting(_Info):
    """Debug information of a kernel in which address 1 is synchronize_rcu() and 2 call_rcu()."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def learn(self, addresses: set[int]) -> None:
        pass

    def with_callees(self, counts: dict[int, int], functions: set[FunctionId]) -> float:
        return 0.0

    def entered(self, counts: dict[int, int], names: frozenset[str]) -> list[Entered]:
        functions = {1: "synchronize_rcu", 2: "call_rcu"}
        assert names >= set(functions.values())
        return [Entered(functions[at], frozenset(), count) for at, count in counts.items()]


def test_events_of_the_stretch_and_of_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    def boot(
        kernel: Bootable, workload: object, points: list[dict[str, int]], *_: object, **__: object
    ) -> CountedBoot:
        address = 1 if kernel.image.name == "base" else 2
        trials = tuple(
            CountedTrial(
                "zombies",
                dict(point),
                "ok",
                "",
                TrialBlocks(1, (CodeBlock(address, point["zombies"] + 2, 9, "1"),)),
                0,
                TrialBlocks(0, (CodeBlock(1, 0, 7, "1"),)),
            )
            for point in points
        )
        return CountedBoot(TrialBlocks(0, ()), trials, (), END)

    monkeypatch.setattr(module, "boot_counted", boot)
    monkeypatch.setattr(module, "DebugInfo", _Waiting)
    base, changed = (
        KernelImage(name, Path(name), "debian:6.12", "", "x86_64", "", "", "", "")
        for name in ("base", "changed")
    )
    machine = FakeMachine(lambda job: FakeBoot())
    done = module.executed(
        [base, changed],
        load_workload("zombies"),
        {"zombies": 300},
        [],
        SilentReporter(),
        seeds=2,
        machine=machine,
    )
    shown = [(e.event, e.objects, e.afterwards, e.base, e.changed) for e in done.events if e.shown]
    assert shown == [
        ("rcu", "zombies", False, (1, 1), (0, 0)),
        ("callbacks", "zombies", False, (0, 0), (1, 1)),
    ]
    # Afterwards, base and the variant do the same.
    assert [(e.event, e.base, e.differs) for e in done.events if e.afterwards] == [
        ("rcu", (7, 7), False)
    ]
