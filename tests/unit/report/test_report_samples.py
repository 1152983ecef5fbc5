"""The parts of a report that support a verdict."""

from __future__ import annotations

import json

from kteardown.inputs.published import load_posting
from kteardown.model.kernel_facts import PatchSet
from kteardown.model.result import Outlier, Result, Stopping
from kteardown.report import result_file
from kteardown.report.formats import markdown
from kteardown.report.material import Material
from unit.report.on_terminal import first, printed, rows, with_comparisons
from unit.report.sections.test_ablation import ablated
from unit.simulation import WORKLOADS

STOPPING = Stopping(
    rule="verdict",
    looks=(4, 6, 8, 12, 40),
    stopped_at=12,
    confidence=0.989,
    alpha=0.021,
    done=True,
    reason="18 of 18 headline comparisons have a verdict",
)


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


def test_the_report_says_when_a_run_stopped_and_why(wall_result: Result) -> None:
    report = printed(wall_result.model_copy(update={"stopping": STOPPING}), 200)
    assert (
        "stopped after 12 of at most 40 boots: 18 of 18 headline comparisons have a verdict "
        "(until verdict; alpha spent: 0.021)" in report
    )
    going = STOPPING.model_copy(update={"done": False, "reason": "2 of 18 have"})
    assert "not finished, 12 of at most 40 boots: 2 of 18 have" in printed(
        wall_result.model_copy(update={"stopping": going})
    )
    level = with_comparisons(wall_result, confidence=0.9893)
    assert "change with 98.93% interval" in printed(level)


def outlier(kernel: str, block: int, value: float) -> Outlier:
    return Outlier(
        kernel=kernel,
        workload="zombies",
        metric="thaw_ns",
        statistic="median",
        point={"zombies": 3000},
        block=block,
        value=value,
        median=100.0,
        ranges=4.2,
    )


def test_outlier_boots_are_listed_the_farthest_first(wall_result: Result) -> None:
    found = (outlier("base", 3, 149.0), outlier("base", 3, 120.0), outlier("base-twin", 7, 50.0))
    report = printed(wall_result.model_copy(update={"outliers": found}))
    _, _, one, other, note = rows(report, "Outlier boots")
    assert one == ["base-twin", "7", "1", "0.50x", "thawing all tasks zombies=3,000"]
    assert other == ["base", "3", "2", "1.49x", "thawing all tasks zombies=3,000"]
    assert "they are included in all figures above" in note[0]
    many = tuple(outlier("base", block, 200.0 + block) for block in range(13))
    crowded = printed(wall_result.model_copy(update={"outliers": many}))
    assert "3 more boots in result.json" in crowded
    assert "Outlier boots" not in printed(wall_result.model_copy(update={"outliers": ()}))


def test_all_optional_fields_can_be_written_and_read(wall_result: Result) -> None:
    full = ablated(wall_result).model_copy(
        update={"stopping": STOPPING, "outliers": (outlier("base", 1, 2.0),)}
    )
    assert result_file.loads(result_file.dumps(full)) == full


def test_a_result_without_the_newer_fields_can_be_read(wall_result: Result) -> None:
    fields = json.loads(result_file.dumps(wall_result))
    for name in ("ablations", "outliers", "stopping"):
        del fields[name]
    for comparison in fields["comparisons"]:
        for name in ("statistic", "layout_ci", "p_holm", "p_rank", "p_same", "outliers"):
            del comparison[name]
        del comparison["base"]["percentile"]
    for law in fields["laws"]:
        del law["predictions"]
    old = result_file.loads(json.dumps(fields))
    assert old.comparisons[0].verdict == first(wall_result).verdict
    assert "nothing got measurably worse" in printed(old)
