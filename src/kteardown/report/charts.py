"""Charts: what they show, as plain data, and one drawing of it as SVG for pages and files, which
may be PNG.

A chart names its colours by their meaning, such as ``base`` or ``better``. Verdicts are blue and
vermillion; kernels are grey, green, purple, amber and sky blue. They follow the palette of M. Okabe
and K. Ito, "Color Universal Design" (2008), which people with any kind of colour blindness can
distinguish. No information is shown by colour alone.

Positions from left to right are percentages and those from top to bottom are pixels, so on a page
the text keeps its size on a phone and on paper. Colours are the properties of the page's theme, so
a picture follows it; a file has the colours of the light theme.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kteardown.door import Entry
from kteardown.errors import InputError, LabError, failing
from kteardown.judge.verdicts import VERDICTS
from kteardown.report.axis_scale import AxisScale, numeric
from kteardown.report.chart_model import Axis, Chart, Flame, Forest, Mark, Plot, PlotSeries
from kteardown.report.formatting import WORDS, number, probability, share
from kteardown.visible import on_one_line, visible

if TYPE_CHECKING:
    from jinja2 import Environment


_COLOURS = [
    line.split("\t")
    for line in files("kteardown.report").joinpath("colours.tsv").read_text().splitlines()
    if not line.startswith("#")
]
LIGHT: Mapping[str, str] = {name: light for name, light, _ in _COLOURS}
DARK: Mapping[str, str] = {name: dark for name, _, dark in _COLOURS}


def stylesheet() -> str:
    """Return both themes as CSS custom properties; the default is the theme of the system."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in theme.items()) for theme in (LIGHT, DARK)
    )
    return (
        f":root{{color-scheme:light;{light}}}\n"
        '@media (prefers-color-scheme:dark){:root:not([data-theme="light"])'
        f"{{color-scheme:dark;{dark}}}}}\n"
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
        f"@media print{{:root:not(#always){{color-scheme:light;{light}}}}}\n"
    )


_FRAME_PX = 18
_ROW_PX = 22
_LINE_PX = 16
_HEIGHT = 250
_LETTER_PX = 7.2
"""The width of a digit, and about that of the other letters."""
_EDGE_PX = 24
_WIDTH_PX = 1000
"""Of a file: the space around the chart, and the width of the part that is as wide as the place on
a page."""
FONT = "system-ui,'Segoe UI',Roboto,'DejaVu Sans','Liberation Sans','Noto Sans',Arial,sans-serif"
"""What draws PNG files has no other fonts than those that are named."""


def templates(
    package: str = "kteardown.report", folder: str = "page", **options: Any
) -> "Environment":
    """Return the templates of a folder of a package, and those of pages; ``options`` are those of
    jinja2."""
    # Imported here: tables, which import this module, need no templates.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader(
            [PackageLoader(package, folder), PackageLoader("kteardown.report", "page")]
        ),
        autoescape=lambda name: name is None or not name.endswith(".txt.j2"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        **options,
    )


@cache
def _macros(
    template: str,
    finalize: Callable[[Any], Any] | None = None,
    package: str = "kteardown.report",
    folder: str = "page",
) -> Any:
    environment = templates(package, folder, finalize=finalize)
    environment.globals |= {
        "words": WORDS,
        "number": number,
        "probability": probability,
        "share": share,
    }
    return environment.get_template(template).module


def draw_as(macro: str, *values: Any) -> str:
    """Return what a macro of ``page/charts.svg.j2`` draws of ``values``."""
    return str(getattr(_macros("charts.svg.j2"), macro)(*values))


def written(
    macro: str, *values: Any, of: tuple[str, str] = ("kteardown.report", "page")
) -> list[str]:
    """Return the lines that a macro of ``texts.txt.j2`` writes of ``values``, each value on one
    line.

    ``of``: the package and the folder of that file.
    """
    text = str(getattr(_macros("texts.txt.j2", _on_one_line, *of), macro)(*values))
    return [line for line in text.splitlines() if line]


def _on_one_line(value: Any) -> Any:
    return on_one_line(value) if isinstance(value, str) else value


def markup(drawn: Plot | Flame | Forest) -> str:
    """Return the markup of a chart in a page: an SVG with its axes, and the legend below it.

    A forest plot has none: its rows are elements of the page.
    """
    if isinstance(drawn, Forest):
        return ""
    return (
        draw_as("flame", drawn) if isinstance(drawn, tuple) else draw_as("plot", _Canvas.of(drawn))
    )


def svg_file(chart: Chart) -> str:
    """Return the chart as an SVG file with its title, which needs nothing of a page."""
    drawn = chart.drawn
    width = _WIDTH_PX + 2 * _EDGE_PX
    top = 2.5 * _EDGE_PX
    if isinstance(drawn, Plot):
        canvas = _Canvas.of(drawn)
        width += canvas.gutter
        height = top + _LINE_PX + _HEIGHT + canvas.below + 2 * _LINE_PX * bool(canvas.legend)
        body = draw_as("file_of_plot", canvas, top)
    elif isinstance(drawn, tuple):
        height = top + _FRAME_PX * (1 + max(frame.depth for frame in drawn))
        body = draw_as("file_of_flame", drawn, top)
    else:
        rows = [("", "ticks", drawn.labels, "")]
        for group, mine in drawn.metrics:
            of = f" ({group.workload})" if drawn.several else ""
            rows.append((f"{group.name}{of}, {group.better} is better", "ticks", "", ""))
            rows += [
                (r.label, "picture", drawn.lines + r.picture, f"{r.text} {r.verdict}") for r in mine
            ]
        height = top + _ROW_PX * len(rows)
        body = draw_as("file_of_forest", drawn, rows, top)
    assets = verdict_rules() + asset("charts.css"), asset("symbols.svg")
    whole = draw_as("file", chart.title, width, height + _EDGE_PX, FONT, *assets, body)
    return visible(
        re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: LIGHT.get(name[1], name[0]), whole)
    )


@dataclass(frozen=True)
class _Canvas:
    """A plot with its scales, and in ``gutter`` the room for the labels on the left, in pixels."""

    plot: Plot
    x: AxisScale
    y: AxisScale
    gutter: int
    height: int = _HEIGHT

    @classmethod
    def of(cls, plot: Plot) -> "_Canvas":
        marks = [mark for series in plot.series for mark in series.marks]
        heights = [mark.y for mark in marks] + [
            end for mark in marks for end in (mark.low, mark.high) if end is not None
        ]
        heights += [
            mark.base for series in plot.series if series.symbol == "bar" for mark in series.marks
        ]
        x = _scale(plot.x, [mark.x for mark in marks])
        y = _scale(plot.y, heights)
        return cls(
            plot, x, y, round(max((len(text) for _, text in y.ticks), default=1) * _LETTER_PX + 12)
        )

    @property
    def legend(self) -> list[PlotSeries]:
        return [series for series in self.plot.series if series.in_legend]

    @property
    def below(self) -> float:
        """Return the height of the labels and the title of the horizontal axis in a file, in
        pixels."""
        lines = max((name.count("\n") + 1 for name in self.plot.x.names), default=1)
        return _LINE_PX * lines + (_LINE_PX * 1.2 if self.plot.x.title else 0)

    def at(self, x: float) -> float:
        """Return the position of ``x``, in percent from the left."""
        return round(100 * self.x.share(x), 2)

    def down(self, y: float) -> float:
        """Return the position of ``y``, in pixels from the top."""
        return round(_HEIGHT * (1 - self.y.share(y)), 1)

    def groups(self) -> list[list[PlotSeries]]:
        """Return the series, those together that follow each other and look alike."""
        return [
            list(alike)
            for _, alike in groupby(
                self.plot.series, lambda series: (series.colour, series.variant)
            )
        ]

    def places(self, series: PlotSeries) -> list[str]:
        """Return the places of the marks for a path."""
        return [f"{10 * self.at(mark.x):g} {self.down(mark.y):g}" for mark in series.marks]

    def dots(self, series: PlotSeries) -> str:
        """Return all dots as a path in whole pixels, in which every place is relative to the one
        before."""
        at = [(round(10 * self.at(mark.x)), round(self.down(mark.y))) for mark in series.marks]
        return "".join(
            f"m{x - left}{y - top:+}h0" for (left, top), (x, y) in pairwise([(0, 0), *at])
        )

    def intervals(self, series: PlotSeries) -> str:
        return "".join(
            f"M{10 * self.at(mark.x):g} {self.down(mark.low):g}V{self.down(mark.high):g}"
            for mark in series.marks
            if mark.low is not None and mark.high is not None and mark.low < mark.high
        )

    def width(self, series: PlotSeries) -> float:
        """Return the width of a bar or a median, in thousandths."""
        return 1000 * (self.x.share(series.size) - self.x.share(0))

    def columns(self, series: PlotSeries) -> Iterator[tuple[int, float, float, float, Mark]]:
        """Yield the left end of each bar or median, its value, top and height, and its mark."""
        for mark in series.marks:
            y = self.down(mark.y)
            top, bottom = sorted((y, self.down(mark.base)))
            left = round(1000 * self.x.share(mark.x) - self.width(series) / 2)
            yield left, y, top, max(1.0, bottom - top), mark


def _scale(axis: Axis, values: Sequence[float]) -> AxisScale:
    """Return the scale of numbers, or of the columns 0, 1, 2, ..., which have equal room."""
    count = len(axis.names)
    if not count:
        return numeric(values, log=axis.log, zero=axis.zero)
    ticks = tuple(((n + 0.5) / count, text) for n, text in enumerate(axis.names))
    return AxisScale(lambda value: (value + 0.5) / count, ticks)


@cache
def asset(name: str) -> str:
    """Return a file of ``report/page``."""
    return (files("kteardown.report") / "page" / name).read_text(encoding="utf-8").strip()


@cache
def verdict_rules() -> str:
    """Return the rules of CSS for the verdicts, whose colours are in ``colours.tsv``."""
    rules = (
        f".{verdict}{{color:var(--{verdict})}}.answer.{verdict}{{border-color:var(--{verdict})}}"
        f".pill.{verdict}{{background:var(--{verdict}-soft)}}"
        for verdict in VERDICTS
    )
    return "".join(rules)


Form = Literal["svg", "png"]
_MAX_NAMES = 24
_PIXELS = 2
"""Those of a PNG for each CSS pixel, in both directions."""


def choose_charts(charts: Sequence[Chart], wanted: str) -> list[Chart]:
    """Return the charts whose names begin with ``wanted``, or the one with exactly this name; all
    if it is empty.

    Raises InputError with the names if there is no such chart.
    """
    exact = [chart for chart in charts if chart.name == wanted]
    matching = exact or [chart for chart in charts if chart.name.startswith(wanted)]
    if not matching:
        hint = (
            f"choose one of:\n  {names(charts)}"
            if charts
            else "choose a run that compares kernels."
        )
        raise InputError(f"there is no chart {wanted!r} in this report", hint=hint)
    return matching


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
    # Letters are missing silently without a font.
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    letter = empty.replace("></", f'><text y="8" style="font-family:{FONT}">x</text></')
    if form == "png" and _png(letter) == _png(empty):
        raise LabError(
            "PNG files need a font, and none is installed",
            hint="install one (Debian: apt-get install fonts-dejavu-core), or use --format svg.",
        )
    paths = []
    for chart in charts:
        svg = svg_file(chart)
        file = into / f"{chart.name}.{form}"
        with failing(f"{file}: cannot be written", hint="name another folder.", kind=LabError):
            Entry.of(file).replace(_png(svg) if form == "png" else svg, synced=False)
        paths.append(file)
    return paths


def _png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_PIXELS))
