"""The text formats: cover letter, CSV, and the layouts of MMTests and benchstat."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from kteardown.model.experiment import Clock
from kteardown.report.context import Material
from kteardown.report.formats import benchstat, cover, mmtests
from kteardown.report.formats.registry import TEXTS
from kteardown.report.formatting import scale
from kteardown.report.summary import claims, limits
from unit.report.contexts import instructions, rich, wall

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "material"),
    [("cover", "wall"), ("mmtests", "wall"), ("benchstat", "wall"), ("cover", "instructions")],
)
def test_the_text_equals_the_golden_file(name: str, material: str) -> None:
    made = TEXTS[name]({"wall": wall, "instructions": instructions}[material]())
    assert made == (GOLDEN / f"{material}.{name}").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_every_format_ends_with_a_newline_and_accepts_an_empty_result(name: str) -> None:
    plain = instructions()
    assert TEXTS[name](plain).endswith("\n")
    empty = plain.result.model_copy(update={"comparisons": (), "laws": ()})
    assert TEXTS[name](Material(plain.name, empty, plain.workloads)).endswith("\n")


@pytest.mark.parametrize("make", [instructions, rich, wall])
def test_a_cover_letter_has_72_columns_of_plain_text(make: object) -> None:
    text = cover.render({instructions: instructions, rich: rich, wall: wall}[make]())  # type: ignore[index]
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= cover.WIDTH


def test_a_table_that_is_too_wide_is_laid_out_as_paragraphs() -> None:
    plain = instructions()
    long = {"a_parameter_with_a_long_name": "and-a-value-that-is-as-long-as-the-name"}
    comparisons = tuple(c.model_copy(update={"point": {**long, **c.point}}) for c in plain.result.comparisons)
    other = {"another_parameter": 12, "a_third_parameter": "three"}
    comparisons += tuple(
        c.model_copy(update={"point": {**long, **other, **c.point}}) for c in plain.result.comparisons
    )
    text = cover.render(
        Material("x", plain.result.model_copy(update={"comparisons": comparisons}), plain.workloads)
    )
    assert "* " in text
    assert max(map(len, text.splitlines())) <= cover.WIDTH


def test_claims_give_size_points_and_intervals() -> None:
    first = claims(instructions())[0]
    assert re.fullmatch(
        r"With freezer-skip-exited, freeze_user_ns is 57\.\d% lower \(interval -58\.\d% to -57\.\d%\) over "
        r"all 11 points: 5\d\.\d% to 6\d\.\d% lower \(intervals from -6\d\.\d% "
        r"to -\d\d\.\d%\) at 10 of 11 points \(zombies=3,000 to 30,000\); and the same \(within 2%\) at "
        r"zombies=0\.",
        first.text,
    )
    assert first.verdict == "better"


def test_an_inconclusive_metric_is_not_significantly_different() -> None:
    plain = wall()
    unsure = tuple(c.model_copy(update={"verdict": "inconclusive"}) for c in plain.result.comparisons)
    whole = tuple(m.model_copy(update={"verdict": "inconclusive"}) for m in plain.result.metric_verdicts)
    update = {"comparisons": unsure, "metric_verdicts": whole}
    found = claims(Material("x", plain.result.model_copy(update=update), plain.workloads))
    assert all("not significantly different" in claim.text and "%" not in claim.text for claim in found)


def test_limits_name_the_clock_the_boots_and_the_failures() -> None:
    counted = " ".join(limits(instructions().result))
    assert "5 boots of each kernel with a seed each" in counted
    assert "does not show seconds, caches" in counted
    assert "The wall clock would add whether the change shows in real time" in counted
    assert "would add" not in " ".join(limits(instructions().result, alone=False))
    timed = " ".join(limits(wall().result.model_copy(update={"boots": {"ok": 9, "panic": 2}})))
    assert "10 boots of each kernel in randomized blocks" in timed
    assert "2 panic" in timed


def test_the_csv_holds_every_comparison_with_all_digits() -> None:
    result = wall().result
    rows = list(csv.DictReader(io.StringIO(TEXTS["csv"](wall()))))
    assert len(rows) == len(result.comparisons)
    for row, c in zip(rows, result.comparisons, strict=True):
        assert (float(row["ratio"]), float(row["base_median"])) == (c.ratio, c.base.median)
        assert (row["variant"], row["verdict"], row["zombies"]) == (
            c.variant,
            c.verdict,
            str(c.point["zombies"]),
        )
        assert (float(row["ci_low"]), float(row["ci_high"])) == c.ci


def test_the_json_is_the_result() -> None:
    assert json.loads(TEXTS["json"](wall()))["comparisons"][0]["metric"] == "freeze_user_ns"


def test_gains_of_mmtests_are_positive_if_better_and_starred_if_significant() -> None:
    rows = [
        line for line in mmtests.render(instructions()).splitlines() if line.startswith("Amean     30000")
    ]
    base, changed, _ = re.findall(r"([\d.]+) [(*] *(-?[\d.]+)%([)*])", rows[0])
    gain = 100 * (1 - float(changed[0]) / float(base[0]))
    assert float(changed[1]) == pytest.approx(gain, abs=0.01)
    assert (base[1:], changed[2]) == (("0.00", ")"), "*")


def test_a_higher_rate_is_a_gain() -> None:
    assert mmtests._gain(10, 12, less_is_better=False) == "20.00%"
    assert mmtests._gain(10, 12, less_is_better=True) == "-20.00%"
    assert mmtests._gain(0, 12, less_is_better=True) == "-"
    assert mmtests._hmean([1.0, 1.0, 4.0]) == pytest.approx(3 / 2.25)


def test_benchstat_has_a_tilde_for_insignificant_changes() -> None:
    text = benchstat.render(instructions())
    zero = next(line for line in text.splitlines() if line.startswith("Zombies/zombies=0 "))
    assert "~ (p=" in zero
    assert re.search(
        r"Zombies/zombies=30000 +6\.\d{3}M ± \d% +2\.\d{3}M ± \d% +-61\.\d\d% \(p=0\.000 n=5\)", text
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0.000"),
        (0.0000123456, "12.35µ"),
        (9999.6, "10.00k"),
        (999.96, "1.000k"),
        (5e15, "5000.0T"),
        (1, "1.000"),
    ],
)
def test_benchstat_values_have_four_digits(value: float, expected: str) -> None:
    assert benchstat._value(value) == expected


@pytest.mark.parametrize(
    ("unit", "clock", "value", "text"),
    [
        ("ns", "instructions", 1_042_311.0, "1,042,311 instructions"),
        ("us", "instructions", 1_500.0, "1,500,000 instructions"),
        ("per_s", "instructions", 279.0, "279 per 1e9 instructions"),
        ("kb", "instructions", 64.5, "64.50 kB"),
        ("us", "wall", 1_500.0, "1,500 us"),
        ("per_s", "wall", 279.0, "279 1/s"),
    ],
)
def test_no_time_is_printed_for_instructions(unit: str, clock: Clock, value: float, text: str) -> None:
    found = scale(unit, clock, [value])
    assert f"{found.text(value)} {found.unit}" == text
