"""Charts as image files, drawn in Chromium."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from choreographer.browsers.chromium import Chromium

from kteardown.errors import InputError, LabError
from kteardown.report.formats.html import all_charts
from kteardown.report.formats.image import WIDTH, choose, draw, figure_of
from unit.report.contexts import rich


def test_a_chart_is_chosen_by_its_name_or_a_prefix() -> None:
    charts = all_charts(rich())
    assert [c.name for c in choose(charts, "growth-zombies-freeze_user_ns")] == [
        "growth-zombies-freeze_user_ns"
    ]
    assert {c.name.split("-")[0] for c in choose(charts, "flame")} == {"flame"}
    assert choose(charts, "") == charts
    with pytest.raises(InputError) as caught:
        choose(charts, "nope")
    assert "forest-freezer-skip-exited" in str(caught.value.hint)
    assert "more" in str(caught.value.hint)


def test_an_image_has_its_title_and_real_colours() -> None:
    for chart in all_charts(rich()):
        figure = figure_of(chart)
        assert chart.title in figure["layout"]["title"]["text"]
        assert "'$" not in str(figure)
        assert not any(trace["type"].endswith("gl") for trace in figure["data"])


def test_svg_and_png_are_drawn(tmp_path: Path) -> None:
    charts = [choose(all_charts(rich()), kind)[0] for kind in ("growth", "flame")]
    for file in draw(charts, "svg", tmp_path):
        assert ET.parse(file).getroot().get("width") == str(WIDTH)
    assert b"freezer-skip-exited" in (tmp_path / f"{charts[0].name}.svg").read_bytes()
    (png,) = draw(charts[:1], "png", tmp_path)
    head = png.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert int.from_bytes(head[16:20], "big") == 2 * WIDTH


def test_without_chromium_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Chromium, "find_browser", lambda *_, **__: None)
    with pytest.raises(LabError) as caught:
        draw(all_charts(rich())[:1], "svg", tmp_path)
    assert "apt-get install chromium" in str(caught.value.hint)
