"""The positions of the marks in a chart of the history."""

from __future__ import annotations

import itertools

import pytest

from kteardown.serve.app import HEIGHT, WIDTH, picture
from unit.history.test_lines import boot, facts, kernel, lines


def test_marks_are_inside_the_chart_and_in_order() -> None:
    runs = {"t1": facts(), "t2": facts(), "t3": facts({"base": kernel("7.2.1")})}
    figures = [boot("t1", 900.0, boot=n) for n in range(2)]
    figures += [boot("t2", 1000.0), boot("t3", 3000.0, "7.2.1"), boot("t3", 5000.0, "7.2.1", boot=1)]
    (line,) = lines(figures, runs).lines
    drawn = picture(line)
    places = [x for x, *_ in drawn["dots"]]
    assert places == sorted(places)
    assert all(0 < x < WIDTH and 0 < top <= y <= low < HEIGHT for x, y, top, low, _ in drawn["dots"])
    # Larger values are higher on the screen, where y is smaller.
    assert drawn["dots"][2][1] < drawn["dots"][1][1] < drawn["dots"][0][1]
    assert [text for _, text in drawn["releases"]] == ["6.12.1", "7.2.1"]
    assert [text for _, text in drawn["scale"]] == ["900", "4,000"]
    (change,) = [x for x, verdict, _ in drawn["breaks"] if verdict == "worse"][-1:]
    assert places[1] < change < places[2]
    assert len(drawn["levels"]) == len(drawn["breaks"]) + 1


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_one_value_is_drawn_in_the_middle(value: float) -> None:
    (line,) = lines([boot("t1", value), boot("t2", value)], {"t1": facts(), "t2": facts()}).lines
    drawn = picture(line)
    assert len({y for _, y, *_ in drawn["dots"]}) == 1
    assert len(drawn["scale"]) == 1


def test_labels_of_many_releases_do_not_overlap() -> None:
    names = [f"6.{minor}.1" for minor in range(60)]
    figures = [boot(f"t{n:02}", 1.0, name) for n, name in enumerate(names)]
    runs = {f"t{n:02}": facts({"base": kernel(name)}) for n, name in enumerate(names)}
    (line,) = lines(figures, runs).lines
    at = [x for x, _ in picture(line)["releases"]]
    assert len(at) > 2
    assert min(b - a for a, b in itertools.pairwise(at)) >= 70
