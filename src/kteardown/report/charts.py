"""Charts: what they show, as plain data, and one drawing of it as SVG for pages and files, which may be PNG.

A chart names its colours by their meaning, such as ``base`` or ``better``. Verdicts are blue and vermillion;
kernels are grey, green, purple, amber and sky blue. They follow the palette of M. Okabe and K. Ito, "Color
Universal Design" (2008), which people with any kind of colour blindness can distinguish. No information is
shown by colour alone.

Positions from left to right are percentages and those from top to bottom are pixels, so on a page the text
keeps its size on a phone and on paper. Colours are the properties of the page's theme, so a picture follows
it; a file has the colours of the light theme.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kteardown.door import Entry
from kteardown.errors import InputError, LabError, failing
from kteardown.judge.metrics import Group
from kteardown.judge.verdicts import VERDICTS
from kteardown.model.judged import Verdict
from kteardown.report.formatting import WORDS, number, probability, share
from kteardown.visible import on_one_line, visible

if TYPE_CHECKING:
    from jinja2 import Environment

KERNEL_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
DASHES = ("", "", "7 4", "7 3 2 3", "12 5")
DOTTED = "1.5 4"
_VARIANTS = 5


@dataclass(frozen=True)
class Mark:
    """A value, with the ends of its interval and the text that is shown when the pointer is on it.

    ``x`` is a number, or that of a column. ``base`` is where a bar begins, which ends at ``y``.
    """

    x: float
    y: float
    text: str = ""
    low: float | None = None
    high: float | None = None
    base: float = 0.0


@dataclass(frozen=True)
class PlotSeries:
    """Marks of one colour.

    ``symbol`` is a symbol of ``page/symbols.svg`` with or without ``-open``, ``dot`` for very many marks,
    ``bar``, ``median`` for a short line, or empty. ``size`` is the width of a bar or a median, as a part of
    the column, or the diameter of dots in CSS pixels. ``dash`` has the lengths of dashes and gaps of the line
    that connects the marks, in CSS pixels: empty for a solid line, None for no line.
    """

    name: str
    colour: str
    marks: tuple[Mark, ...]
    symbol: str = ""
    dash: str | None = None
    width: float = 2
    size: float = 0.0
    variant: str = ""
    in_legend: bool = True


@dataclass(frozen=True)
class Axis:
    """An axis of numbers, or of columns if there are ``names``, whose lines are separated by newlines.

    With ``zero`` the axis begins at zero, unless it is logarithmic.
    """

    title: str = ""
    log: bool = False
    zero: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """Series in one system of axes. Those drawn later are above those drawn before."""

    x: Axis
    y: Axis
    series: tuple[PlotSeries, ...]

    def logarithmic(self) -> "Plot | None":
        """Return the plot with logarithmic axes, which have only positive numbers; None if no number is.

        Its marks have no texts, which the plot with linear axes has.
        """
        x, y = (replace(axis, title=f"{axis.title}, logarithmic", log=True) for axis in (self.x, self.y))
        series = [
            replace(
                one, marks=tuple(replace(mark, text="") for mark in one.marks if mark.x > 0 and mark.y > 0)
            )
            for one in self.series
        ]
        return Plot(x, y, tuple(series)) if any(one.marks for one in series) else None


@dataclass(frozen=True)
class FlameFrame:
    """A function in a flame graph: its place in percent of the width, and its depth.

    ``more`` is from -1 to 1: by how much more time was in it than on base.
    """

    left: float
    width: float
    depth: int
    label: str
    text: str
    more: float


Flame = tuple[FlameFrame, ...]
"""A flame graph, with the outermost function at the top."""


class Row(NamedTuple):
    """A row of a forest plot: its picture in SVG, and ``reason`` why its verdict is no other."""

    label: str
    picture: str
    text: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Forest:
    """Every change of one variant: on a page its rows are elements of the page, in a file they are drawn.

    ``lines`` and ``labels`` are those of the axis, in SVG.
    """

    variant: str
    lines: str
    labels: str
    metrics: tuple[tuple[Group, list[Row]], ...]
    verdicts: list[Verdict]
    twins: list[tuple[str, str]]
    """The twins that have intervals, each with its description."""
    several: bool
    """Whether the metrics are of several workloads."""


@dataclass(frozen=True)
class Chart:
    """One chart. ``about`` describes it for screen readers; ``notes`` are shown below it."""

    name: str
    title: str
    about: str
    drawn: Plot | Flame | Forest
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gallery:
    """Charts of one kind, of which the page shows the one that the selected options name.

    ``charts`` has the charts by their options, one for each of ``labels``. ``first`` is the initial
    selection.
    """

    name: str
    labels: tuple[str, ...]
    charts: Mapping[tuple[str, ...], Chart]
    first: tuple[str, ...]
    metric: str = ""

    @property
    def choices(self) -> list[tuple[int, str, list[str]]]:
        """Return the position in the keys, the label and the options, where there is more than one."""
        every = [
            (n, label, list(dict.fromkeys(key[n] for key in self.charts)))
            for n, label in enumerate(self.labels)
        ]
        return [choice for choice in every if len(choice[2]) > 1]

    @property
    def ordered(self) -> list[tuple[str, Chart]]:
        """Return the charts, the initial one first, each with the numbers of its options in ``choices``."""
        choices = self.choices
        every = sorted(self.charts.items(), key=lambda chart: chart[0] != self.first)
        return [(" ".join(str(options.index(key[n])) for n, _, options in choices), c) for key, c in every]


def of_kernel(kernel: str, kernels: Sequence[str], marks: Sequence[Mark], name: str = "") -> PlotSeries:
    """Return the line of a kernel in its colour, with its symbol and its dashes."""
    at = 0 if kernel == "base" else 1 + _position(kernel, kernels)
    return PlotSeries(
        name=name or kernel,
        colour=colour(kernel, kernels),
        marks=tuple(marks),
        symbol=KERNEL_SYMBOLS[at and 1 + (at - 1) % (len(KERNEL_SYMBOLS) - 1)],
        dash=DASHES[at and 1 + (at - 1) % (len(DASHES) - 1)],
        variant=kernel,
    )


def colour(kernel: str, kernels: Sequence[str]) -> str:
    """Return the colour of a kernel: grey for base and its twins, by position in ``kernels`` for variants."""
    if kernel == "base":
        return "base"
    if kernel.startswith("base-"):
        return "twin"
    return f"kernel{_position(kernel, kernels) % _VARIANTS}"


def _position(kernel: str, kernels: Sequence[str]) -> int:
    variants = [name for name in kernels if name != "base" and not name.startswith("base-")]
    return variants.index(kernel) if kernel in variants else 0


def slug(*words: str) -> str:
    """Return a name for a file or an anchor, with dashes instead of special characters."""
    text = "-".join(word for word in words if word).replace(",", "")
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-")


_COLOURS = [
    line.split("\t")
    for line in files("kteardown.report").joinpath("colours.tsv").read_text().splitlines()
    if not line.startswith("#")
]
LIGHT: Mapping[str, str] = {name: light for name, light, _ in _COLOURS}
DARK: Mapping[str, str] = {name: dark for name, _, dark in _COLOURS}


def stylesheet() -> str:
    """Return both themes as CSS custom properties; the default is the theme of the system."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{color-scheme:dark;{dark}}}}}\n'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
        f"@media print{{:root:not(#always){{color-scheme:light;{light}}}}}\n"
    )


_ROOM = 0.04
"""Free space at each end, as a part of the axis."""
_MOST_TICKS = 7
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_LONG = 1e5
"""An axis to this value or beyond has suffixes; a shorter one has labels as in tables: ``15,000``."""
_MOST_PLACES = 2
"""A label with more decimals is not shorter with a suffix than without."""
_NOTHING = 1e-12
"""Numbers this near to each other are one number on an axis, and so near to 0 they are 0."""


@dataclass(frozen=True)
class AxisScale:
    """``share`` returns the place of a value, from 0 to 1; ``ticks`` are places with their labels."""

    share: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def numeric(values: Sequence[float], *, log: bool = False, zero: bool = False) -> AxisScale:
    """Return an axis of numbers that has all ``values``, and 0 too with ``zero``."""
    finite = [float(value) for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if zero and not log:
        low, high = min(low, 0.0), max(high, 0.0)
    if log:
        low, high = math.log10(low), math.log10(high)
    if math.isclose(low, high, rel_tol=1e-9, abs_tol=_NOTHING):
        half = 0.5 * abs(low) if abs(low) > _NOTHING else 0.5
        low, high = low - half, high + half
    room = _ROOM * (high - low)
    start, end = (low if zero and low == 0 else low - room), high + room

    def share(value: float) -> float:
        place = (math.log10(value) if value > 0 else start) if log else float(value)
        return min(1.0, max(0.0, (place - start) / (end - start)))

    decades = _decades(start, end) if log else []
    marks = decades
    if not decades:
        # Round values at equal distances: steps of 1, 2 or 5 of a power of ten.
        least, most = (10**start, 10**end) if log else (start, end)
        rough = (most - least) / _MOST_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
        marks = [n * step for n in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1)]
    # Those of a logarithmic axis have all sizes, so each has a suffix of its own: ``0.5``, ``5k``, ``1M``.
    texts = [text for mark in marks for text in _labels([mark], long=0)] if decades else _labels(marks)
    return AxisScale(share, tuple(zip(map(share, marks), texts, strict=True)))


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two exponents, with twice and five times them where there is room.

    Empty if there are fewer than two.
    """
    times = (1,) if high - low > 3 else (1, 2, 5)
    found = [
        by * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for by in times
        if low <= math.log10(by) + power <= high
    ]
    return found[:: 1 + len(found) // (_MOST_TICKS + 2)] if len(found) > 1 else []


def _labels(marks: Sequence[float], long: float = _LONG) -> list[str]:
    """Return labels in one style: as in tables, or from ``long`` all with the suffix of the largest."""
    largest = max(map(abs, marks), default=0.0)
    fitting = [one for one in _SUFFIXES if largest >= max(one[0], long)]
    by, suffix = fitting[0] if fitting else (1.0, "")
    step = min((after - before for before, after in pairwise(marks)), default=largest)
    if _places(step / by) > _MOST_PLACES:
        by, suffix = 1.0, ""
    places = _places(step / by)
    texts = [f"{mark / by:,.{places}f}" for mark in marks]
    short = [text.rstrip("0").rstrip(".") if places else text for text in texts]
    return [text + suffix if mark else "0" for text, mark in zip(short, marks, strict=True)]


def _places(step: float) -> int:
    """Return how many decimals a multiple of a round step has."""
    return max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0


_FRAME_PX = 18
_ROW_PX = 22
_LINE_PX = 16
_HEIGHT = 250
_LETTER_PX = 7.2
"""The width of a digit, and about that of the other letters."""
_EDGE_PX = 24
_WIDTH_PX = 1000
"""Of a file: the space around the chart, and the width of the part that is as wide as the place on a page."""
FONT = "system-ui,'Segoe UI',Roboto,'DejaVu Sans','Liberation Sans','Noto Sans',Arial,sans-serif"
"""What draws PNG files has no other fonts than those that are named."""


def templates(package: str = "kteardown.report", folder: str = "page", **options: Any) -> "Environment":
    """Return the templates of a folder of a package, and those of pages; ``options`` are those of jinja2."""
    # Imported here: tables, which import this module, need no templates.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(package, folder), PackageLoader("kteardown.report", "page")]),
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
    environment.globals |= {"words": WORDS, "number": number, "probability": probability, "share": share}
    return environment.get_template(template).module


def draw_as(macro: str, *values: Any) -> str:
    """Return what a macro of ``page/charts.svg.j2`` draws of ``values``."""
    return str(getattr(_macros("charts.svg.j2"), macro)(*values))


def written(macro: str, *values: Any, of: tuple[str, str] = ("kteardown.report", "page")) -> list[str]:
    """Return the lines that a macro of ``texts.txt.j2`` writes of ``values``, each value on one line.

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
    return draw_as("flame", drawn) if isinstance(drawn, tuple) else draw_as("plot", _Canvas.of(drawn))


def svg_file(chart: Chart) -> str:
    """Return the chart as an SVG file with its title, which needs nothing of a page."""
    drawn, width, top = chart.drawn, _WIDTH_PX + 2 * _EDGE_PX, 2.5 * _EDGE_PX
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
            rows += [(r.label, "picture", drawn.lines + r.picture, f"{r.text} {r.verdict}") for r in mine]
        height = top + _ROW_PX * len(rows)
        body = draw_as("file_of_forest", drawn, rows, top)
    assets = verdict_rules() + asset("charts.css"), asset("symbols.svg")
    whole = draw_as("file", chart.title, width, height + _EDGE_PX, FONT, *assets, body)
    return visible(re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: LIGHT.get(name[1], name[0]), whole))


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
        marks = [mark for one in plot.series for mark in one.marks]
        heights = [mark.y for mark in marks] + [
            end for mark in marks for end in (mark.low, mark.high) if end is not None
        ]
        heights += [mark.base for one in plot.series if one.symbol == "bar" for mark in one.marks]
        x, y = _scale(plot.x, [mark.x for mark in marks]), _scale(plot.y, heights)
        return cls(plot, x, y, round(max((len(text) for _, text in y.ticks), default=1) * _LETTER_PX + 12))

    @property
    def legend(self) -> list[PlotSeries]:
        return [one for one in self.plot.series if one.in_legend]

    @property
    def below(self) -> float:
        """Return the height of the labels and the title of the horizontal axis in a file, in pixels."""
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
        return [list(alike) for _, alike in groupby(self.plot.series, lambda one: (one.colour, one.variant))]

    def places(self, one: PlotSeries) -> list[str]:
        """Return the places of the marks for a path."""
        return [f"{10 * self.at(mark.x):g} {self.down(mark.y):g}" for mark in one.marks]

    def dots(self, one: PlotSeries) -> str:
        """Return all dots as a path in whole pixels, in which every place is relative to the one before."""
        at = [(round(10 * self.at(mark.x)), round(self.down(mark.y))) for mark in one.marks]
        return "".join(f"m{x - left}{y - top:+}h0" for (left, top), (x, y) in pairwise([(0, 0), *at]))

    def intervals(self, one: PlotSeries) -> str:
        return "".join(
            f"M{10 * self.at(mark.x):g} {self.down(mark.low):g}V{self.down(mark.high):g}"
            for mark in one.marks
            if mark.low is not None and mark.high is not None and mark.low < mark.high
        )

    def width(self, one: PlotSeries) -> float:
        """Return the width of a bar or a median, in thousandths."""
        return 1000 * (self.x.share(one.size) - self.x.share(0))

    def columns(self, one: PlotSeries) -> Iterator[tuple[int, float, float, float, Mark]]:
        """Yield the left end of each bar or median, its value, top and height, and its mark."""
        for mark in one.marks:
            y = self.down(mark.y)
            top, bottom = sorted((y, self.down(mark.base)))
            left = round(1000 * self.x.share(mark.x) - self.width(one) / 2)
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
    # Letters are missing silently without a font.
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    letter = empty.replace("></", f'><text y="8" style="font-family:{FONT}">x</text></')
    if form == "png" and _png(letter) == _png(empty):
        raise LabError(
            "PNG files need a font, and none is installed",
            hint="install one (Debian: apt-get install fonts-dejavu-core), or use --format svg.",
        )
    files = []
    for chart in charts:
        svg, file = svg_file(chart), into / f"{chart.name}.{form}"
        with failing(f"{file}: cannot be written", hint="name another folder.", kind=LabError):
            Entry.of(file).replace(_png(svg) if form == "png" else svg, synced=False)
        files.append(file)
    return files


def _png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_PIXELS))
