"""The table of published means next to ours, with verdicts on both."""

from __future__ import annotations

import pytest

from kteardown.inputs.load import load_workload
from kteardown.inputs.published import load_posting
from kteardown.model.judged import Comparison, Summary, Verdict
from kteardown.model.kernel_facts import PatchSet
from kteardown.model.result import Result
from kteardown.report.formats import markdown
from kteardown.report.material import Material
from kteardown.report.sections.published import improvement, published_tables
from unit.simulation import WORKLOADS


def side(mean: float, sd: float) -> Summary:
    return Summary(median=mean, mean=mean, sd=sd, n=6, boots=6)


def comparison(threads: int, base: Summary, changed: Summary, verdict: Verdict) -> Comparison:
    return Comparison(
        workload="wakeups",
        variant="sched-task-throttle",
        metric="wakeup_p99_ns",
        unit="ns",
        better="lower",
        point={"threads": threads, "depth": 10},
        base=base,
        changed=changed,
        ratio=changed.mean / base.mean,
        ci=(0.9, 1.2),
        confidence=0.95,
        mde=0.1,
        verdict=verdict,
        same_within=0.02,
    )


def table_rows(result: Result, *comparisons: Comparison) -> list[list[str]]:
    """Return the rows of the table, each split into its cells."""
    result = result.model_copy(update={"comparisons": comparisons, "ablations": (), "laws": ()})
    report = markdown.report(
        Material("", result, {"wakeups": load_workload("wakeups")}, load_posting("throttle"))
    )
    name = "the 99th percentile of wakeup latency"
    title = f"**Published figures: {name}, posted in us: mean (standard deviation)**"
    lines = report.split(title)[1].splitlines()[2:]
    table = lines[: lines.index("")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_table_has_published_figures_ours_and_verdicts(wall_result: Result) -> None:
    header, _, *rows = table_rows(
        wall_result,
        comparison(1, side(15_000, 750), side(16_500, 800), "inconclusive"),
        comparison(63, side(90_000_000, 1_000_000), side(89_100_000, 900_000), "same"),
    )
    assert header[:5] == ["threads", "posted base", "posted changed", "change", "verdict"]
    assert header[5:] == ["here: base, us depth=10", "sched-task-throttle", "change", "verdict"]
    first, last = rows
    assert first[:5] == ["1", "15.00 (5.29)", "17.00 (1.00)", "-13.33%", "inconclusive"]
    assert first[5:] == ["15.00 (0.7500)", "16.50 (0.8000)", "-10.00%", "inconclusive"]
    assert last[:5] == ["63", "94,848.00 (0.00)", "94,336.00 (0.00)", "+0.54%", "same"]
    assert last[5:] == ["90,000 (1,000)", "89,100 (900.0)", "+1.00%", "same"]


def test_posted_rows_that_were_not_measured_are_counted_and_the_thread_is_linked(
    wall_result: Result,
) -> None:
    ours = comparison(1, side(15_000, 750), side(16_500, 800), "inconclusive")
    result = wall_result.model_copy(update={"comparisons": (ours,), "ablations": (), "laws": ()})
    posting = load_posting("throttle")
    assert posting is not None
    notes = [
        note
        for table in published_tables(Material("", result, {}, posting))
        for note in table.notes
    ]
    assert "6 posted rows are left out: their points were not measured here" in notes
    assert f"https://lore.kernel.org/all/{posting.source.message_id}/" in notes[-1]


@pytest.mark.parametrize(
    ("base", "changed", "lower", "higher"),
    [(15, 17, "-13.33%", "+13.33%"), (100, 82, "+18.00%", "-18.00%"), (3, 3, "+0.00%", "+0.00%")],
)
def test_positive_is_better(base: float, changed: float, lower: str, higher: str) -> None:
    assert improvement(base, changed, "lower") == lower
    assert improvement(base, changed, "higher") == higher


def test_zero_has_no_change() -> None:
    assert improvement(0, 3, "lower") == "-"


def test_a_posting_of_speedups_has_a_column_for_each_step_of_the_series(
    wall_result: Result,
) -> None:
    whole, step = wall_result.kernels["freezer-skip-exited"], "freezer-skip-exited@1"
    both = PatchSet(series="freezer-skip-exited", patches=(1, 2), total=2, subjects=("a", "b"))
    second = both.model_copy(update={"patches": (2,)})
    first_of = both.model_copy(update={"patches": (1,), "for_ablation": True})
    sets = {"freezer-skip-exited": both, step: first_of, "freezer-skip-exited@-1": second}
    kernels = {
        name: whole.model_copy(update={"patch_set": patches}) for name, patches in sets.items()
    }
    measured = [c for c in wall_result.comparisons if c.variant == "freezer-skip-exited"]
    ours = [
        c.model_copy(update={"variant": name, "ratio": 0.8, "ci": (0.5, 1.0)})
        for name in sets
        for c in measured
    ]
    result = wall_result.model_copy(
        update={
            "comparisons": tuple(ours),
            "kernels": {"base": wall_result.kernels["base"], **kernels},
        }
    )
    reference = load_posting("freezer")
    assert reference is not None
    figures = tuple(
        figure.model_copy(update={"speedup": True, "variant": ""}) for figure in reference.figures
    )
    report = markdown.report(
        Material("", result, WORKLOADS, reference.model_copy(update={"figures": figures}))
    )
    posted = report.split("Published figures")[1]
    columns = [
        c.strip() for line in posted.splitlines() if "| zombies" in line for c in line.split("|")
    ]
    assert [c for c in columns if "speedup" in c or "base," in c][:2] == [
        "posted speedup",
        "here: base, us",
    ]
    assert [c for c in columns if c[:1] in "f@" and c] == ["@&#8203;1", "freezer-skip-exited"]
    first_row = "".join(
        line for line in posted.splitlines() if line.replace(" ", "").startswith("|3,000|")
    )
    assert first_row.count("1.25x [1.00, 2.00]") == 2
