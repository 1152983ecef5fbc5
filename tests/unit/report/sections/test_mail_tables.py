"""The figures of a run for a mail: few lines of 72 columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kteardown.model.experiment import MACHINE_PARAMETERS
from kteardown.model.judged import Comparison, Verdict
from kteardown.model.laws import Law
from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Parameter, Workload
from kteardown.report.sections import mail_tables
from kteardown.report.sections.mail_tables import (
    Figures,
    MailTable,
    chosen,
    definitions,
    figures,
    legend,
    other_metrics,
    table_of,
)
from unit.report.contexts import instructions

MATERIAL = instructions()
FIRST = figures(MATERIAL.result, MATERIAL.workloads)[0]


def of_points(
    points: Sequence[dict[str, ParamValue]], verdicts: Sequence[Verdict] = (), ratio: float = 0.5
) -> Figures:
    """Return figures with these points, which are better unless another verdict is given."""
    template = next(c for c in FIRST.rows if c.verdict == "better")
    rows = [
        template.model_copy(
            update={
                "point": point,
                "verdict": verdicts[n] if verdicts else "better",
                "ratio": ratio,
                "ci": (ratio * 0.9, ratio * 1.1),
            }
        )
        for n, point in enumerate(points)
    ]
    result = MATERIAL.result.model_copy(update={"laws": ()})
    return replace(FIRST, result=result, rows=tuple(rows), whole=None)


def cells(table: MailTable) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.block.rows]


def test_a_long_table_keeps_what_is_worse_and_the_last_rows() -> None:
    verdicts: list[Verdict] = ["better"] * 20
    verdicts[3] = "worse"
    verdicts[5] = "inconclusive"
    table = table_of(of_points([{"zombies": n} for n in range(20)], verdicts), 72, 4)
    assert [row[0] for row in cells(table)] == ["3", "17", "18", "19"]
    assert table.notes[0] == "16 more rows: 15 better (-50.0%), 1 inconclusive (-50.0%)."


def test_a_table_with_one_row_too_many_is_whole() -> None:
    assert len(cells(table_of(of_points([{"zombies": n} for n in range(5)]), 72, 4))) == 5


def test_a_parameter_that_does_not_vary_or_follows_another_has_no_column() -> None:
    points: list[dict[str, ParamValue]] = [
        {"mb": 16, "cpus": n, "processes": n, "sizes": sizes}
        for n in (2, 4)
        for sizes in ("one", "many")
    ]
    table = table_of(of_points(points), 72, 8)
    assert table.block.columns[:2] == ("cpus", "sizes")
    assert "(mb=16 processes=cpus)" in table.title


def test_without_room_the_changed_figure_goes() -> None:
    points: list[dict[str, ParamValue]] = [{"zombies": n} for n in range(3)]
    assert "changed" in table_of(of_points(points), 72, 8).block.columns
    width = table_of(of_points(points), 72, 8).block.width(2)
    narrow = table_of(of_points(points), width - 1, 8).block
    assert "changed" not in narrow.columns and "change" in narrow.columns


def test_large_changes_are_ratios() -> None:
    table = table_of(of_points([{"zombies": 1}, {"zombies": 2}], ratio=40.0), 72, 8)
    assert "changed / base" in table.block.columns
    assert cells(table)[0][-2] == "40.00 [36.00, 44.00]"
    assert "change" in table_of(of_points([{"zombies": 1}, {"zombies": 2}]), 72, 8).block.columns


def test_the_average_has_its_interval_and_its_verdict() -> None:
    (average,) = [text for text in table_of(FIRST, 72, 8).notes if text.startswith("On average")]
    assert FIRST.whole is not None
    assert "[" in average and average.endswith(f"{FIRST.whole.verdict}.")


def growing(kernel: str, model: str, **more: object) -> Law:
    template = next(law for law in MATERIAL.result.laws if law.metric == FIRST.group.metric)
    changed = {"kernel": kernel, "model": model, "per_unit": 100.0, **more}
    return template.model_copy(update=changed)


@pytest.mark.parametrize(("verdict", "is_told"), [("better", True), ("inconclusive", False)])
def test_the_growth_is_told_where_it_changed(verdict: str, is_told: bool) -> None:
    laws = (
        growing("base", "quadratic"),
        growing(FIRST.variant, "linear", verdict=verdict, ratio=0.5, ratio_ci=(0.4, 0.6)),
    )
    item = replace(FIRST, result=MATERIAL.result.model_copy(update={"laws": laws}))
    told = [text for text in table_of(item, 72, 8).notes if "Cost of one more (zombies)" in text]
    assert bool(told) == is_told
    assert not told or "base grows as N squared, changed grows linearly" in told[0]


def test_a_metric_has_the_tables_of_all_its_variants_or_none() -> None:
    found = figures(MATERIAL.result, MATERIAL.workloads)
    shown, others = chosen(found)
    assert len(shown) <= mail_tables.TABLES
    assert {item.group.key for item in shown}.isdisjoint(item.group.key for item in others)
    assert [*shown, *others] == found
    many = [replace(FIRST, variant=f"v{n}") for n in range(5)]
    assert chosen(many) == (many[:3], many[3:])


def test_every_parameter_of_the_machine_but_that_of_the_method_is_explained() -> None:
    points: list[dict[str, ParamValue]] = [{name: 1} for name in MACHINE_PARAMETERS]
    explained = " ".join(definitions([of_points(points)]))
    assert [name for name in MACHINE_PARAMETERS if f"{name}: " not in explained] == [
        "transfer_ticks"
    ]


def with_parameter(help_text: str, value: str) -> str:
    """Return what is said of a parameter with this help and this value."""
    choices = ("none", "file", "file-outside", "child")
    spec = Parameter(help=help_text, default="none", choices=choices)
    used: Workload = MATERIAL.workloads["zombies"].model_copy(
        update={"parameters": {"holder": spec}}
    )
    item = replace(of_points([{"holder": value}]), workload=used)
    return next(text for text in definitions([item]) if text.startswith("holder"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("none", "holder: what holds each. none: nothing"),
        ("file", "holder: what holds each. file: a page. It is in tmpfs"),
        ("file-outside", "holder: what holds each. ...-outside: the same elsewhere"),
    ],
)
def test_only_the_choices_that_are_used_are_explained(value: str, said: str) -> None:
    help_text = (
        "what holds each. none: nothing. file: a page. It is in tmpfs. child: a cgroup. "
        "...-outside: the same elsewhere"
    )
    assert with_parameter(help_text, value) == said


def test_an_explanation_that_cannot_be_divided_is_whole() -> None:
    help_text = "its holder (a page; child: a cgroup), if any"
    assert with_parameter(help_text, "file") == f"holder: {help_text}"


def test_a_name_is_not_said_twice() -> None:
    assert with_parameter("the holder: a page", "file") == "holder: a page"
    assert with_parameter("holder of a page: its kind", "file") == "holder of a page: its kind"


def test_the_legend_has_the_verdicts_that_occur() -> None:
    points: list[dict[str, ParamValue]] = [{"zombies": 1}]
    assert "mixed" not in legend([of_points(points)])
    assert "inconclusive" not in legend([of_points(points)])
    unsure = legend([of_points(points, ["inconclusive"])])
    assert unsure.index("better, worse: ") < unsure.index("same: ") < unsure.index("inconclusive")
    assert legend([]) == ""


def test_of_the_other_metrics_the_worse_ones_are_first() -> None:
    def turned(c: Comparison) -> Comparison:
        verdict = "worse" if c.variant == "freezer-skip-nofreeze" else "better"
        return c.model_copy(update={"verdict": verdict}) if c.metric == "thaw_ns" else c

    comparisons = tuple(map(turned, MATERIAL.result.comparisons))
    result = MATERIAL.result.model_copy(update={"comparisons": comparisons})
    said = other_metrics(result, MATERIAL.workloads, 1)
    assert said[0].startswith("freezer-skip-nofreeze: thawing all tasks (")
    assert said[0].endswith("worse") and said[1] == f"and {len(said) - 1} more"


@pytest.mark.parametrize(
    ("base", "changed", "said"),
    [(100.0, 0.0, ("100", "0")), (0.0, 100.0, ("0", "100")), (0.0, 0.0, ("0", "0"))],
)
def test_a_slope_of_zero_is_one(base: float, changed: float, said: tuple[str, str]) -> None:
    laws = (
        growing("base", "linear", per_unit=base),
        growing(FIRST.variant, "linear", per_unit=changed, verdict="better", ratio=None),
    )
    item = replace(FIRST, result=MATERIAL.result.model_copy(update={"laws": laws}))
    (text,) = [note for note in table_of(item, 72, 8).notes if "Cost of one more" in note]
    sides = re.search(r"base ([\d.]+), changed ([\d.]+)", text)
    assert sides is not None
    assert tuple(map(float, sides.groups())) == tuple(map(float, said))


def test_all_statistics_of_a_metric_have_one_explanation() -> None:
    percentiles = [
        replace(
            FIRST, group=replace(FIRST.group, statistic=name, name=f"{FIRST.group.name} ({name})")
        )
        for name in ("p50", "p99")
    ]
    assert definitions(percentiles) == definitions([FIRST])
