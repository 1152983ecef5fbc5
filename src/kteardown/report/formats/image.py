"""Any chart as an SVG or PNG file: the drawings of the page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kteardown.errors import InputError, LabError
from kteardown.report.charts.drawing import FONT, svg_file
from kteardown.report.charts.figure import Chart

Form = Literal["svg", "png"]
_MAX_NAMES = 24
_PIXELS = 2
"""Those of a PNG for each CSS pixel, in both directions."""


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

    Raises LabError if a file cannot be written, or for PNG if there are no fonts.
    """
    if form == "png":
        _need_font()
    files = []
    for chart in charts:
        svg, file = svg_file(chart), into / f"{chart.name}.{form}"
        try:
            file.write_bytes(_png(svg) if form == "png" else svg.encode())
        except OSError as error:
            raise LabError(
                f"{file}: cannot be written: {error.strerror}", hint="name another folder."
            ) from error
        files.append(file)
    return files


def _png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_PIXELS))


def _need_font() -> None:
    """Check that letters are drawn, which are missing silently without a font."""
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    letter = empty.replace("></", f'><text y="8" style="font-family:{FONT}">x</text></')
    if _png(letter) == _png(empty):
        raise LabError(
            "PNG files need a font, and none is installed",
            hint="install one (Debian: apt-get install fonts-dejavu-core), or use --format svg.",
        )
