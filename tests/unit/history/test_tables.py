"""The history as tables and small charts."""

from __future__ import annotations

import io
import re

from rich.console import Console

from kteardown_history import tables
from kteardown_history.lines import History
from kteardown_history.verb import show
from unit.history.test_lines import boot, facts, kernel, lines

_RELEASES = {"t1": "7.2.1", "t2": "6.12.1", "t3": "6.12.1"}


def _three_runs() -> History:
    runs = {"t1": facts(), "t2": facts(), "t3": facts({"base": kernel("7.2.1")})}
    values = [("t1", 1000.0, "6.12.1"), ("t2", 1000.0, "6.12.1"), ("t3", 2000.0, "7.2.1")]
    return lines([boot(*value) for value in values], runs)


def test_the_detail_of_a_line_has_a_row_for_each_figure() -> None:
    table = tables.detail(_three_runs().lines[0])
    assert table.title == (
        "freezer, zombies: freeze user time (freeze_user_ns) of unpatched kernels in instructions, "
        "lower is better, 1 CPU; zombies=300"
    )
    steps = [(row[0].text, row[2].text, row[3].text, row[5].text) for row in table.keys.rows]
    assert steps == [
        ("6.12.1", "1,000", "", ""),
        ("6.12.1", "1,000", "+0.0%", ""),
        ("7.2.1", "2,000", "+100.0%", "worse +100.0%"),
    ]
    assert table.keys.rows[0][4].text.index("●") == 0
    assert table.keys.rows[2][4].text.index("●") == 24
    assert table.notes == (
        "worse since 7.2.1 of t3: 1,000 to 2,000 instructions (+100.0%); what differs: release: "
        "6.12.1 / 7.2.1; source: debian:6.12.1 / debian:7.2.1",
    )


def test_the_range_of_boots_is_drawn_inside_the_strip() -> None:
    figures = [boot("t1", value, boot=n) for n, value in enumerate((10.0, 20.0, 30.0))]
    (line,) = lines([*figures, boot("t2", 40.0)], {"t1": facts(), "t2": facts()}).lines
    strips = [row[4].text for row in tables.detail(line, plain=True).keys.rows]
    assert strips == ["o" + "-" * 12 + " " * 12, " " * 24 + "o"]


def test_lines_have_a_row_each_with_a_bar_for_each_figure() -> None:
    table = tables.summary(_three_runs().lines)
    (row,) = table.keys.rows
    assert [cell.text for cell in row] == [
        *("300", "3", "6.12.1 to 7.2.1", "▁▁█", "1,000", "2,000", "worse +100.0%")
    ]
    assert tables.spark(_three_runs().lines[0], plain=True) == "__@"


def test_a_constant_line_is_drawn_in_the_middle() -> None:
    (line,) = lines([boot("t1", 5), boot("t2", 5)], {"t1": facts(), "t2": facts()}).lines
    assert tables.spark(line) == "▅▅"
    assert tables.detail(line).keys.rows[0][4].text.index("●") == 12


def test_lines_that_are_not_shown_are_counted() -> None:
    runs = {"t1": facts(), "t2": facts()}
    figures = [
        boot(run, 1, metric=metric) for run in runs for metric in ("freeze_user_ns", "thaw_ns")
    ]
    alone = boot("t1", 1, params=(("zombies", 600),))
    found = lines([*figures, alone], runs).model_copy(update={"unread": ("t0",)})
    shown = tables.worth_showing(found, every_metric=False)
    assert [line.metric for line in shown.lines] == ["freeze_user_ns"]
    assert list(tables.left_out(found, shown)) == [
        "1 lines with a single figure are not shown: there is nothing to compare "
        "(`kteardown history --json` has them)",
        "1 lines of other metrics are not shown: `kteardown history --metric NAME` shows them",
        "t0 cannot be read and is not shown",
    ]


def test_few_lines_are_shown_in_detail_and_many_have_a_row_for_each_point() -> None:
    runs = {"t1": facts(), "t2": facts()}
    few = [boot(run, 1, params=(("zombies", n),)) for run in runs for n in range(3)]
    many = [*few, *(boot(run, 1, params=(("zombies", 3),)) for run in runs)]
    shapes = [
        [(len(of), len(table.keys.rows)) for of, table in tables.tables_of(lines(figures, runs))]
        for figures in (few, many)
    ]
    assert shapes == [[(1, 2)] * 3, [(4, 4)]]


def test_a_picture_has_each_figure_in_the_order_of_releases() -> None:
    runs = {"t1": facts({"base": kernel("7.2.1")}), "t2": facts(), "t3": facts()}
    figures = [
        boot(run, n * 1000.0, release) for n, (run, release) in enumerate(_RELEASES.items(), 1)
    ]
    figures += [boot(run, 4000.0, "6.12.1", params=(("zombies", 9),)) for run in ("t2", "t3")]
    figures.append(boot("t2", 2500.0, boot=1))
    found = lines(figures, runs).lines
    drawn = tables.picture(found)
    assert re.findall(r"<title>(.*?)</title>", drawn) == [
        "6.12.1, t2: 4,000 (t2)",
        "6.12.1, t3: 4,000 (t3)",
        "6.12.1, t2: 2,250 (t2)",
        "6.12.1, t3: 3,000 (t3)",
        "7.2.1, t1: 1,000 (t1)",
    ]
    assert re.findall(r"<span>(.*?)</span>", drawn) == ["6.12.1", "", "7.2.1"]
    places = [float(x) for x in re.findall(r'<use href="#m-[^"]*" x="([0-9.]+)%"', drawn)]
    assert places == [16.67, 50.0, 16.67, 50.0, 83.33]
    assert all(
        name in drawn for name in ("zombies=9", "zombies=300", "instructions, lower is better")
    )


def test_a_terminal_without_unicode_gets_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show(_three_runs(), Console(file=stream, width=160), every_metric=False)
    stream.flush()
    stream.seek(0)
    text = stream.read()
    assert "o" + " " * 24 in text and "worse +100.0%" in text
