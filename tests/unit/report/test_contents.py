"""The report on terminals of 80 and 120 columns, with and without colours, and as Markdown."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from kteardown.inputs.published import load_posting
from kteardown.model.faults import VoidTrials
from kteardown.model.record import BootEnd
from kteardown.model.result import Result
from kteardown.report import contents
from kteardown.report.formats import markdown, text
from kteardown.report.formatting import Scale, number, percent, scale
from kteardown.report.material import Material
from kteardown.report.table import Block, Cell, Table
from unit.simulation import WORKLOADS, analysed, freezer, simulate

GOLDEN = Path(__file__).parent / "golden"


def printed(result: Result, width: int = 120, *, colours: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, legacy_windows=False)
    text.report(Material("", result, WORKLOADS, load_posting("freezer")), console)
    return out.getvalue()


def lines(report: str) -> str:
    """Remove the spaces that pad cells at the ends of lines."""
    return "\n".join(line.rstrip() for line in report.splitlines()) + "\n"


def test_the_report_at_80_columns_equals_the_golden_file(freezer_result: Result) -> None:
    assert lines(printed(freezer_result, 80)) == (GOLDEN / "freezer-80.txt").read_text()


def test_the_markdown_equals_the_golden_file(wall_result: Result) -> None:
    report = markdown.report(Material("", wall_result, WORKLOADS, load_posting("freezer")))
    assert report == (GOLDEN / "wall.md").read_text()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(
    freezer_result: Result, wall_result: Result, width: int
) -> None:
    for result in (freezer_result, wall_result):
        too_wide = [
            line for line in lines(printed(result, width)).splitlines() if len(line) > width
        ]
        assert [line for line in too_wide if not line.startswith("  kteardown")] == []


@pytest.mark.parametrize("width", [80, 120])
def test_cells_are_complete_at_every_width(freezer_result: Result, width: int) -> None:
    report = printed(freezer_result, width)
    for comparison in freezer_result.comparisons:
        if comparison.metric == "freeze_user_ns":
            assert f"{comparison.changed.median:,.0f}" in report


def test_variants_are_side_by_side_if_the_width_allows_it(freezer_result: Result) -> None:
    wide = [
        line for line in printed(freezer_result, 120).splitlines() if line.startswith("zombies ")
    ]
    narrow = [
        line for line in printed(freezer_result, 80).splitlines() if line.startswith("zombies ")
    ]
    assert any("skip-exited" in line and "skip-nofreeze" in line for line in wide)
    assert not any("skip-exited" in line and "skip-nofreeze" in line for line in narrow)


def test_verdicts_are_coloured_and_no_color_is_respected(
    freezer_result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[32mbetter" in printed(freezer_result, colours=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", printed(freezer_result, colours=True))


def test_the_report_begins_with_the_verdict_and_ends_with_the_command(
    freezer_result: Result,
) -> None:
    report = printed(freezer_result).splitlines()
    assert report[0].startswith(
        "With freezer-skip-exited, freezing user space takes 58% fewer instructions"
    )
    assert any(
        line.startswith("With freezer-skip-nofreeze, freezing user space takes")
        for line in report[:4]
    )
    assert report[-1] == f"  {freezer_result.command}"


def test_the_report_says_what_the_clock_does_not_show(
    freezer_result: Result, wall_result: Result
) -> None:
    assert "does not show seconds, caches" in printed(freezer_result, 200)
    assert (
        "zombies: freezing user space (freeze_user_ns) in instructions, lower is better"
        in printed(freezer_result)
    )
    assert "base twice (A/A)" in printed(wall_result, 200)
    assert "A/A" in printed(wall_result)
    assert "smallest detectable change (80% power)" in printed(wall_result)


def test_published_figures_are_shown_with_their_source(freezer_result: Result) -> None:
    for report in (
        printed(freezer_result, 200),
        markdown.report(Material("", freezer_result, WORKLOADS, load_posting("freezer"))),
    ):
        assert "PM / Freezer: Skip zombie/dead processes" in report
        assert "0.043" in report
        assert "-62.8%" in report
    assert "posting" not in markdown.report(Material("", freezer_result, WORKLOADS))


def test_the_modules_that_a_script_has_are_listed(freezer_result: Result) -> None:
    def with_modules(**modules: dict[str, tuple[str, ...]]) -> str:
        kernels = {
            name: facts.model_copy(update={"script_modules": modules.get(name, {})})
            for name, facts in freezer_result.kernels.items()
        }
        result = freezer_result.model_copy(update={"kernels": kernels})
        return " ".join(contents.kernels_table(result).notes)

    assert "modules" not in with_modules()
    ext4 = {"fs-ext4": ("jbd2", "ext4"), "crypto": ("jbd2",), "zram": ("zram",)}
    every = with_modules(**dict.fromkeys(freezer_result.kernels, ext4))
    assert every.endswith("loaded before the script: jbd2, ext4, zram")
    assert "of base, loaded before" in with_modules(base=ext4)


def test_missing_trials_are_listed() -> None:
    experiment = freezer(zombies=(0, 3000), boots=2)
    boots = simulate(experiment)
    end = BootEnd(outcome="panic", duration_s=1, first_record_s=1, command=[], host_load=0)
    boots = [b if b.start.kernel == "base" else replace(b, end=end, records=()) for b in boots]
    report = printed(analysed(experiment, boots), 200)
    assert "BROKEN: freezer-skip-exited: it panics, in 2 of 2 boots, outside of a trial" in report
    assert (
        "freezer-skip-exited: 2 of 2 points could not be compared: the boot ended in a panic"
        in report
    )
    assert "2 ok, 4 panic" in report
    assert (
        "freezer-skip-exited: 4 trials lost at 2 points of zombies: the boot ended in a panic"
        in report
    )


def test_a_run_of_base_alone_has_a_report() -> None:
    experiment = freezer(variants=())
    report = printed(analysed(experiment, simulate(experiment)))
    assert "nothing was measured" not in report
    assert "for one more zombies" in report
    assert "205.0" in report


def test_an_empty_run_has_a_report() -> None:
    experiment = freezer()
    result = analysed(experiment, [])
    for report in (printed(result), markdown.report(Material("", result, WORKLOADS))):
        assert "nothing could be compared: no boot has ended" in report


def test_a_run_without_comparisons_says_what_is_missing() -> None:
    result = analysed(freezer(), [])
    void = VoidTrials(
        kernel="base", workload="zombies", point={}, status="void", detail="check", count=3
    )
    lost = result.model_copy(update={"boots": {"ok": 1, "hang": 1}, "voids": (void,)})
    assert contents.verdicts(Material("", lost, WORKLOADS))[0].text == (
        "nothing could be compared: 1 of 2 boots failed, and 3 trials could not be used"
    )
    sound = result.model_copy(update={"boots": {"ok": 4}, "voids": ()})
    assert (
        contents.verdicts(Material("", sound, WORKLOADS))[0].text
        == "nothing was compared, and nothing failed"
    )
    assert contents.verdicts(Material("", sound, {}))[0].text == (
        "nothing was compared, and nothing failed: the workloads have no metric that is compared"
    )


def test_markdown_of_a_wide_table_is_cut_not_wrapped(freezer_result: Result) -> None:
    report = markdown.report(Material("", freezer_result, WORKLOADS, load_posting("freezer")))
    rows = [line for line in report.splitlines() if line.startswith("|")]
    assert max(map(len, rows)) <= 100
    assert all(line.endswith("|") for line in rows)


def test_a_bar_in_a_name_does_not_end_a_cell() -> None:
    table = Table("t", Block(("a|b",), ((Cell("c|d"),),)))
    assert r"a\|b" in markdown.layout(table)
    assert r"c\|d" in markdown.layout(table)


@pytest.mark.parametrize(
    ("value", "expected_text"),
    [
        (0, "0"),
        (0.04, "0.04000"),
        (205.04, "205.0"),
        (1234.5, "1,234"),
        (9_876_543, "9,876,543"),
        (-77.951, "-77.95"),
    ],
)
def test_numbers_have_four_digits_and_separators(value: float, expected_text: str) -> None:
    assert number(value) == expected_text


def test_percents_have_no_negative_zero() -> None:
    assert [percent(r) for r in (0.39, 1.0, 0.9999, 12.5)] == [
        "-61.0%",
        "+0.0%",
        "+0.0%",
        "+1,150.0%",
    ]


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("ns", 900, Scale(1, "ns")),
        ("ns", 2e6, Scale(1e3, "us")),
        ("ns", 2e9, Scale(1e6, "ms")),
        ("ns", 2e11, Scale(1e9, "s")),
        ("kb", 5, Scale(1, "kB")),
        ("share", 1, Scale(0.01, "%")),
    ],
)
def test_wall_times_are_scaled(unit: str, largest: float, expected: Scale) -> None:
    assert scale(unit, "wall", [1, largest]) == expected


def test_instructions_are_counted_not_scaled() -> None:
    assert scale("ns", "instructions", [2e11]).text(2857000123) == "2,857,000,123"
