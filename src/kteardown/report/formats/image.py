"""Any chart as an SVG or PNG file: the figures of the page, drawn by plotly in Chromium (kaleido)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kteardown.errors import InputError, LabError
from kteardown.report.charts.figure import Chart, PlotlyFigure, resolve

Form = Literal["svg", "png"]
WIDTH = 1000
"""In CSS pixels; a PNG has twice as many."""
_TITLE_PX = 34
_MAX_NAMES = 24


def choose(charts: Sequence[Chart], wanted: str) -> list[Chart]:
    """Return the charts whose names begin with ``wanted``, or the one with exactly this name; all if it is
    empty.

    Raises InputError with the names if there is no such chart.
    """
    exact = [chart for chart in charts if chart.name == wanted]
    found = exact or [chart for chart in charts if chart.name.startswith(wanted)]
    if not found:
        hint = f"choose one of:\n  {names(charts)}" if charts else "choose a run that compares kernels."
        raise InputError(f"there is no chart {wanted!r} in this report", hint=hint)
    return found


def names(charts: Sequence[Chart]) -> str:
    """Return the names of the charts, one on each line, of many only the first ones."""
    lines = [chart.name for chart in charts[:_MAX_NAMES]]
    if len(charts) > _MAX_NAMES:
        lines.append(f"and {len(charts) - _MAX_NAMES} more with names like the last")
    return "\n  ".join(lines)


def draw(charts: Sequence[Chart], form: Form, into: Path) -> list[Path]:
    """Write each chart to ``into``/NAME.FORM and return the files.

    Raises LabError if there is no Chromium.
    """
    import kaleido
    from choreographer.errors import ChromeNotFoundError

    files = [into / f"{chart.name}.{form}" for chart in charts]
    jobs = [
        {
            "fig": figure_of(chart),
            "path": file,
            "opts": {
                "format": form,
                "width": WIDTH,
                "height": chart.height + _TITLE_PX,
                "scale": 2 if form == "png" else 1,
            },
        }
        for chart, file in zip(charts, files, strict=True)
    ]
    try:
        kaleido.write_fig_from_object_sync(jobs)
    except ChromeNotFoundError as error:
        raise LabError(
            "images are drawn by Chromium, which is not installed",
            hint="install it (Debian: apt-get install chromium), or use --format html, which any browser "
            "opens and whose charts can be saved.",
        ) from error
    return files


def figure_of(chart: Chart) -> PlotlyFigure:
    """Return the figure for an image file: light theme, with its title, and without WebGL traces."""
    figure = copy.deepcopy(resolve(chart.figure))
    for trace in figure["data"]:
        trace["type"] = trace["type"].removesuffix("gl")
    layout = figure["layout"]
    layout["title"] = {
        "text": f"<b>{chart.title}</b>",
        "x": 0.01,
        "xanchor": "left",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "pad": {"t": 12},
        "font": {"size": 15},
    }
    layout["height"] = chart.height + _TITLE_PX
    layout["margin"] = {**layout["margin"], "t": layout["margin"]["t"] + _TITLE_PX}
    return figure
