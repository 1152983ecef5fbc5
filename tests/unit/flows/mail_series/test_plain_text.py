"""Markdown as the text of a mail: no figure is lost, and lines fit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.flows.mail_series.plain_text import (
    TABLE_WIDTH,
    WIDTH,
    as_plain_text,
    plain_table,
)

WORD = st.text("abcXYZ0123456789,.%+-()[]/_é", min_size=1, max_size=12)
CELL = st.lists(WORD, min_size=1, max_size=4).map(" ".join)


def markdown(rows: list[list[str]], lefts: int) -> list[str]:
    rule = ["---" if n < lefts else "---:" for n in range(len(rows[0]))]
    return [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]


@st.composite
def tables(draw: st.DrawFn, columns: int = 9) -> tuple[list[list[str]], int]:
    """Draw the rows of a table, the first of which are headings, and how many columns have text."""
    width = draw(st.integers(1, columns))
    rows = draw(st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=2, max_size=6))
    return rows, draw(st.integers(0, width))


@given(tables())
def test_a_table_keeps_every_word_of_every_cell(table: tuple[list[list[str]], int]) -> None:
    rows, lefts = table
    words = " ".join(plain_table(markdown(rows, lefts))).split()
    for word in (word for row in rows for cell in row for word in cell.split()):
        assert word in words


@given(tables(columns=3))
def test_a_narrow_table_has_a_line_for_each_row(table: tuple[list[list[str]], int]) -> None:
    rows, lefts = table
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = plain_table(markdown(rows, lefts))
    if sum(widths) + 2 * len(widths) > TABLE_WIDTH:
        return
    cells = [re.split(r" {2,}", line.strip()) for line in lines]
    assert cells == [rows[0], ["-" * width for width in widths], *rows[1:]]


@given(tables())
def test_the_columns_of_a_table_stand_below_each_other(
    table: tuple[list[list[str]], int],
) -> None:
    rows, lefts = table
    lines = plain_table(markdown(rows, lefts))
    for at, line in enumerate(lines):
        if set(line) <= {"-", " "} and "-" in line:
            gaps = [match.start() + 1 for match in re.finditer(r"-  -", line)]
            below = lines[at + 1 :]
            part = below[: below.index("")] if "" in below else below
            assert all(text[gap : gap + 2].strip() == "" for text in part for gap in gaps)


def test_numbers_are_aligned_right_and_texts_left() -> None:
    lines = ["|   | base | series |", "| - | ---: | -----: |", "| any one | 1,000 | 1 |"]
    assert plain_table(lines) == [
        "            base  series",
        "  -------  -----  ------",
        "  any one  1,000       1",
    ]


def test_headings_are_wrapped_before_a_table_is_divided() -> None:
    rows = [["N", *(f"processes at the size {n}" for n in (1, 2, 3, 4))], ["any", *["1"] * 4]]
    lines = plain_table(markdown(rows, 1))
    assert max(map(len, lines)) <= TABLE_WIDTH
    assert [line for line in lines if "any" in line] == lines[-1:]


def test_a_table_that_is_too_wide_is_divided_into_equal_parts() -> None:
    figures = [f"{n}00,000,000,000,000" for n in range(1, 7)]
    rows = [["kind", *(f"N{n}" for n in range(1, 7))], ["any", *figures]]
    lines = plain_table(markdown(rows, 1))
    assert max(map(len, lines)) <= TABLE_WIDTH
    assert [line.split() for line in lines if "any" in line] == [
        ["any", *figures[:3]],
        ["any", *figures[3:]],
    ]
    assert lines.count("") == 1


def test_a_long_text_at_the_beginning_of_a_row_is_wrapped() -> None:
    text = "files without a lock, while another process has many POSIX locks of it"
    rows = [["closed", "instructions of a close"], [text, "105,329 / 73,233 / 1,261"]]
    lines = plain_table(markdown(rows, 1))
    assert max(map(len, lines)) <= TABLE_WIDTH
    assert "105,329 / 73,233 / 1,261" in lines[2]


@pytest.mark.parametrize(
    "lines",
    [
        ["| only a line |"],
        ["| a | b |", "| no | rule |"],
        ["| a | b |", "| - | - |", "| one cell |"],
        ["|", "|"],
    ],
)
def test_lines_that_are_no_table_stay(lines: list[str]) -> None:
    assert plain_table(lines) == lines


def test_a_bar_may_be_in_a_cell() -> None:
    assert plain_table([r"| a\|b | c |", "| - | - |", r"| d | e\|f |"])[-1] == "  d    e|f"


def test_the_command_of_a_measurement_can_be_copied() -> None:
    options = "--set processes=1,2,3,4,5,6 --set kind=any --set work=spin,syscall --seeds 3"
    command = f"kteardown run exits --quick {options}"
    lines = as_plain_text(f"Measured with `{command}` (6.12.117, 3 seeds).").splitlines()
    assert lines[:2] == ["Measured with this command (6.12.117, 3 seeds):", ""]
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(" ".join(lines[2:]).replace("\\", "").split()) == command
    assert all(line.endswith(" \\") for line in lines[2:-1])
    short = "Measured with `kteardown run exits` (6.12.117)."
    assert as_plain_text(short) == short


@given(st.lists(st.text(st.characters(exclude_characters="|", exclude_categories=["C", "Z"]))))
def test_prose_stays_as_it_is(lines: list[str]) -> None:
    text = "\n".join(lines).rstrip("\n")
    assert as_plain_text(text) == text
