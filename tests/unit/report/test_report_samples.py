"""The parts of a report that support a verdict."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from kteardown.inputs.published import load_posting
from kteardown.model.judged import Comparison
from kteardown.model.kernel_facts import PatchSet, Unavailable
from kteardown.model.laws import Prediction
from kteardown.model.result import Ablation, Outlier, Part, PatchParts, Result, Stopping
from kteardown.report import result_file
from kteardown.report.formats import markdown, text
from kteardown.report.formatting import (
    change_of,
    detectable,
    detectable_span,
    portion,
    probability,
    share,
)
from kteardown.report.material import Material
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


def printed(result: Result, width: int = 120, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    text.report(Material("", result, WORKLOADS), Console(file=stream, width=width))
    stream.flush()
    stream.seek(0)
    return stream.read()


def rows(report: str, title: str) -> list[list[str]]:
    """Return the table that begins under ``title``, each row split at two or more spaces."""
    lines = report.split(title, 1)[1].splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("─"))
    end = next((n for n in range(first, len(lines)) if not lines[n].strip()), len(lines))
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in lines[first - 1 : end]
    ]


def with_comparisons(result: Result, **changed: Any) -> Result:
    return result.model_copy(
        update={"comparisons": tuple(c.model_copy(update=changed) for c in result.comparisons)}
    )


def first(result: Result) -> Comparison:
    return result.comparisons[0]


def test_on_the_wall_clock_the_twins_mde_and_rank_test_are_next_to_the_verdict(
    wall_result: Result,
) -> None:
    report = printed(with_comparisons(wall_result, layout_ci=(0.93, 1.01)))
    header, _, row, *_ = rows(report, "zombies: freezing user space (freeze_user_ns) in ")
    assert header == [
        "zombies",
        "base",
        "A/A",
        "layout",
        "changed",
        "freezer-skip-exited",
        "mde",
        "rank p",
        "verdict",
    ]
    assert row[3] == "[-7.0, +1.0]"
    found = first(wall_result)
    assert row[6:] == [share(found.mde), probability(found.p_rank), found.verdict]
    assert "layout: base against itself with its code moved" in " ".join(report.split())


def test_the_instruction_clock_has_no_empty_columns(freezer_result: Result) -> None:
    report = printed(freezer_result)
    header, *_ = rows(report, "zombies: freezing user space (freeze_user_ns) in ")
    assert header[:5] == ["zombies", "base", "changed", "freezer-skip-exited", "verdict"]
    assert not {"A/A", "layout", "mde", "rank p"} & set(header)


@pytest.mark.parametrize("width", [80, 100])
def test_the_twins_are_shown_at_a_small_width(wall_result: Result, width: int) -> None:
    report = printed(with_comparisons(wall_result, layout_ci=(0.93, 1.01)), width)
    assert "[-7.0, +1.0]" in report
    assert "rank p" in report
    assert max(map(len, report.splitlines())) <= width


def test_equivalence_has_the_p_value_of_its_test(wall_result: Result) -> None:
    same = with_comparisons(
        wall_result, verdict="same", reason="within 2%", p_same=0.0123, exact=False
    )
    assert "6 same: within 2% (TOST p <= 0.012)" in printed(same)


def test_a_rank_test_that_disagrees_is_noted_under_the_table(wall_result: Result) -> None:
    doubted = with_comparisons(
        wall_result, verdict="better", reason="the rank test does not find a change"
    )
    assert "6 better: the rank test does not find a change" in printed(doubted)


def test_a_percentile_has_its_own_table_and_sentence(wall_result: Result) -> None:
    base = first(wall_result).base.model_copy(update={"percentile": 123e6})
    high = [
        c.model_copy(update={"statistic": "p99", "base": base})
        for c in wall_result.comparisons
        if c.metric == "freeze_user_ns"
    ]
    report = printed(
        wall_result.model_copy(update={"comparisons": (*wall_result.comparisons, *high)})
    )
    assert "better: freeze_user_ns p99" in report or "freezing user space (p99)" in report
    title = "zombies: freezing user space (p99) (freeze_user_ns p99) in ms, lower is better"
    assert f"{title}; change with 95% interval" in report
    assert rows(report, title)[2][1] == "123.0"
    posted = markdown.report(Material("", wall_result, WORKLOADS, load_posting("freezer")))
    both = wall_result.model_copy(update={"comparisons": (*wall_result.comparisons, *high)})
    again = markdown.report(Material("", both, WORKLOADS, load_posting("freezer")))
    assert posted.split("Published figures")[1] == again.split("Published figures")[1]


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


def test_a_law_has_a_prediction_or_the_reason_for_its_refusal(wall_result: Result) -> None:
    ahead = Prediction(at=900_000, value=31e9, low=28e9, high=35e9)
    refused = Prediction(at=900_000, refused="3 points are too few for a growth law")
    laws = tuple(
        law.model_copy(update={"predictions": (ahead if law.kernel == "base" else refused,)})
        for law in wall_result.laws
    )
    report = printed(wall_result.model_copy(update={"laws": laws}))
    header, _, base, other, *_ = rows(report, "zombies: growth of freezing user space")
    assert header[-1] == "s at 900,000"
    assert base[-1] == "31.00 (28.00 to 35.00)"
    assert other[-1] == "-"
    assert (
        "no prediction at 900,000 for freezer-skip-exited, freezer-skip-nofreeze: 3 points are too "
        "few for "
        "a growth law" in report
    )
    none = tuple(law.model_copy(update={"predictions": (refused,)}) for law in wall_result.laws)
    assert "no prediction at 900,000 for any kernel" in printed(
        wall_result.model_copy(update={"laws": none})
    )


def test_an_unknown_law_has_its_reason_below_the_table(wall_result: Result) -> None:
    """The cost of one more object is printed all the same: it does not depend on the law."""
    laws = tuple(
        law.model_copy(update={"model": "linear" if law.kernel == "base" else "unknown"})
        for law in wall_result.laws
    )
    report = printed(wall_result.model_copy(update={"laws": laws}))
    header, _, base, other, *_ = rows(report, "zombies: growth of freezing user space")
    column = header.index("law")
    assert (base[column], other[column]) == ("linear", "unknown")
    assert other[column - 1] != "-"
    assert (
        "law of freezer-skip-exited, freezer-skip-nofreeze unknown: too few points, or too much "
        "noise, "
        "to show one" in report
    )


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


def part(share_of: float) -> Part:
    return Part(
        ratio=0.8, ci=(0.75, 0.85), share=share_of, share_ci=(share_of - 0.05, share_of + 0.05)
    )


MISSING = Unavailable(
    kernel="freezer-skip-exited@-1",
    patch_set=PatchSet(series="freezer-skip-exited", patches=(2,), total=2),
    reason="patch 2 does not apply without patch 1",
)


def ablated(result: Result) -> Result:
    """Return the result with an ablation of the first variant at two points, and a kernel built for
    it."""
    whole = [
        c
        for c in result.comparisons
        if c.variant == "freezer-skip-exited" and c.metric == "freeze_user_ns"
    ]
    parts = [c.model_copy(update={"variant": "freezer-skip-exited@1"}) for c in whole]
    patches = (
        PatchParts(
            patch=1, subject="freezer: a" + "b" * 60, step=part(-0.1), leave_out=Part(reason="gone")
        ),
        PatchParts(patch=2, subject="freezer: skip", step=part(1.1), leave_out=part(0.5)),
    )
    ablations = tuple(
        Ablation(
            workload="zombies",
            variant="freezer-skip-exited",
            series="freezer-skip-exited",
            metric="freeze_user_ns",
            unit="ns",
            better="lower",
            point={"zombies": zombies},
            ratio=0.4,
            ci=(0.35, 0.45),
            confidence=0.95,
            patches=patches,
            unavailable=(MISSING,),
        )
        for zombies in (30000, 3000)
    )
    only = PatchSet(series="freezer-skip-exited", patches=(1,), total=2, for_ablation=True)
    kernel = result.kernels["base"].model_copy(update={"patch_set": only})
    return result.model_copy(
        update={
            "ablations": ablations,
            "kernels": {**result.kernels, "freezer-skip-exited@1": kernel},
            "comparisons": (*result.comparisons, *parts),
        }
    )


def test_an_ablation_shows_the_effect_of_each_patch_at_the_largest_point(
    wall_result: Result,
) -> None:
    report = printed(ablated(wall_result), 150)
    assert (
        "freezer-skip-exited: patch 2 of 2 accounts for 110.0% [105.0, 115.0] of the change of "
        "freezing user space at zombies=30,000" in report
    )
    assert report.count("effect of each patch") == 1
    header, _, one, two, *notes = rows(
        report, "effect of each patch on freezing user space at zombies=30,000"
    )
    assert header == ["patch", "added", "share", "left out", "share"]
    assert one == ["1", "-20.0% [-25.0, -15.0]", "-10.0% [-15.0, -5.0]", "-", "-"]
    assert two[1:4] == ["-20.0% [-25.0, -15.0]", "110.0% [105.0, 115.0]", "█" * 10]
    assert notes[:2] == [["1: freezer: a" + "b" * 60], ["2: freezer: skip"]]
    assert notes[-1] == ["1 left out: gone"]


def test_bars_are_drawn_only_if_they_fit_and_can_be_displayed(wall_result: Result) -> None:
    result = ablated(wall_result)
    assert "█" in printed(result, 110)
    assert "█" not in printed(result, 60)
    assert "█" not in printed(result, 130, encoding="ascii")
    assert "█" not in markdown.report(Material("", result, WORKLOADS))


def test_a_kernel_built_for_an_ablation_is_in_no_other_table(wall_result: Result) -> None:
    before, after = printed(wall_result, 130), printed(ablated(wall_result), 130)
    assert "freezer-skip-exited@1" in after
    kernels = after.split("Kernels")[1]
    assert after.count("freezer-skip-exited@1") == kernels.count("freezer-skip-exited@1") == 1
    for title in (
        "zombies: freezing user space (freeze_user_ns) in",
        "zombies: growth of freezing user space",
        "Other metrics",
    ):
        assert rows(before, title) == rows(after, title)


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


@pytest.mark.parametrize(
    ("mdes", "text"),
    [
        ([0.0], "<0.05%"),
        ([0.0003, 0.0, 0.0004], "<0.05%"),
        ([0.032, 0.0, 0.01], "<0.05% to 3.2%"),
        ([0.031, 0.012], "1.2% to 3.1%"),
        ([0.0121, 0.0122], "1.2%"),
        ([0.05, 12.0], "5.0% to >1,000%"),
        ([11.0, 12.0], ">1,000%"),
    ],
)
def test_the_smallest_detectable_changes_of_a_table_are_one_statement(
    mdes: list[float], text: str
) -> None:
    assert detectable_span(mdes) == text


def test_texts_of_probabilities_and_shares() -> None:
    assert [probability(p) for p in (None, 0.0004, 0.0312, 1.0)] == [
        "-",
        "<0.001",
        "0.031",
        "1.000",
    ]
    assert [share(value) for value in (None, 0.0612, 1.5, 12.0)] == [
        "-",
        "6.1%",
        "150.0%",
        ">1,000%",
    ]
    assert [share(value) for value in (0.0, 0.0004, 0.0005)] == ["0.0%", "<0.05%", "0.1%"]
    assert [detectable(mde) for mde in (None, 0.0, 0.0004, 0.012)] == [
        "-",
        "<0.05%",
        "<0.05%",
        "1.2%",
    ]
    assert portion(Part(reason="why")) == "-"
    assert portion(Part(share=0.651, share_ci=(0.651, 0.651), exact=True)) == "65.1% exact"
    assert portion(Part(share=-0.0001, share_ci=(-0.0002, 0.0001))) == "0.0% [0.0, 0.0]"
    assert change_of(0.5, (0.4, 0.6)) == "-50.0% [-60.0, -40.0]"
