"""Charts as image files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
import resvg_py
from PIL import Image, ImageColor

from kteardown.errors import InputError, LabError
from kteardown.report.charts import LIGHT, choose_charts, draw, svg_file
from kteardown.report.formats.html import all_charts
from unit.report.contexts import rich


def test_a_chart_is_chosen_by_its_name_or_a_prefix() -> None:
    charts = all_charts(rich())
    assert [c.name for c in choose_charts(charts, "growth-zombies-freeze_user_ns")] == [
        "growth-zombies-freeze_user_ns"
    ]
    assert {c.name.split("-")[0] for c in choose_charts(charts, "flame")} == {"flame"}
    assert choose_charts(charts, "") == charts
    with pytest.raises(InputError) as caught:
        choose_charts(charts, "nope")
    assert "forest-freezer-skip-exited" in str(caught.value.hint)
    assert "more" in str(caught.value.hint)


def test_svg_and_png_are_drawn(tmp_path: Path) -> None:
    kinds = ("forest", "growth", "samples", "patches", "flame", "tail")
    charts = [choose_charts(all_charts(rich()), kind)[0] for kind in kinds]
    for chart, file in zip(charts, draw(charts, "svg", tmp_path), strict=True):
        root = ET.parse(file).getroot()
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        assert texts[0] == chart.title
        (png,) = draw([chart], "png", tmp_path)
        head = png.read_bytes()[:24]
        assert head.startswith(b"\x89PNG")
        sides = [int.from_bytes(head[at : at + 4], "big") for at in (16, 20)]
        assert sides == [2 * round(float(root.attrib[side])) for side in ("width", "height")]


def test_a_png_has_the_texts_lines_and_symbols(tmp_path: Path) -> None:
    (file,) = draw(
        choose_charts(all_charts(rich()), "growth-zombies-freeze_user_ns")[:1], "png", tmp_path
    )
    picture = Image.open(file).convert("RGB")
    counts = {rgb: n for n, rgb in picture.getcolors(2**24) or []}
    for name in ("ink", "muted", "base", "kernel0", "kernel1", "panel", "grid"):
        assert counts.get(ImageColor.getrgb(LIGHT[name]), 0) > 20, name


def test_texts_from_outside_are_only_text() -> None:
    hostile = replace(all_charts(rich())[0], title='</text><script>alert("x")</script>\x1b[2J')
    root = ET.fromstring(svg_file(hostile))
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert any("<script>" in str(element.text) for element in root.iter())


def test_without_fonts_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = resvg_py.svg_to_bytes
    monkeypatch.setattr(
        resvg_py, "svg_to_bytes", lambda **options: draws(**options, skip_system_fonts=True)
    )
    with pytest.raises(LabError) as caught:
        draw(all_charts(rich())[:1], "png", tmp_path)
    assert "apt-get install fonts-dejavu-core" in str(caught.value.hint)


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot be written"):
        draw(all_charts(rich())[:1], "svg", tmp_path / "missing")
