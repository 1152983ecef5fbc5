"""Any chart as a picture, SVG or PNG: the figures of the page, drawn by plotly in Chromium (kaleido)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kteardown.errors import InputError, LabError
from kteardown.report.charts.figure import Chart, Figure, resolve

Form = Literal["svg", "png"]
WIDTH = 1000
"""CSS pixels; a PNG has twice as many."""
_TITLE_PX = 34
_NAMED = 24


def choose(charts: Sequence[Chart], wanted: str) -> list[Chart]:
    """The charts whose names begin with ``wanted``, an exact name before all; every one where it is empty.

    Raises InputError that lists the names where there is none.
    """
    exact = [chart for chart in charts if chart.name == wanted]
    found = exact or [chart for chart in charts if chart.name.startswith(wanted)]
    if not found:
        hint = f"it has these:\n  {names(charts)}" if charts else "nothing was compared, so it has none."
        raise InputError(f"there is no chart {wanted!r} in this report", hint=hint)
    return found


def names(charts: Sequence[Chart]) -> str:
    """The names of the charts, a line each; of many the first."""
    told = [chart.name for chart in charts[:_NAMED]]
    if len(charts) > _NAMED:
        told.append(f"and {len(charts) - _NAMED} more, named like the last")
    return "\n  ".join(told)


def draw(charts: Sequence[Chart], form: Form, into: Path) -> list[Path]:
    """Write each chart as ``into``/NAME.FORM; the files. Raises LabError where there is no Chromium."""
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
            "pictures are drawn by Chromium, and there is none here",
            hint="install it (Debian: apt-get install chromium), or take --format html, which any browser "
            "opens and whose charts can be saved.",
        ) from error
    return files


def figure_of(chart: Chart) -> Figure:
    """The figure for a picture: light, with its title in it, and in shapes instead of pixels."""
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
