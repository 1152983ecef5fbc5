"""Tables of the history: all lines with a small chart each, or the figures of one line."""

from collections.abc import Sequence

from kteardown.judge.metrics import name_of
from kteardown.report.chart_model import Axis, Mark, Plot, of_kernel
from kteardown.report.charts import markup, written
from kteardown.report.formatting import Scale, percent, point_text, scale
from kteardown.report.metrics import point_cells
from kteardown.report.table import Block, Table, Text
from kteardown_history.lines import UNPATCHED, History, Line, RunFigure, Shift, release_key

_TEXTS = ("kteardown_history", "texts")
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=+*#@"
_STRIP = 25
_DATE = len("2026-01-01T10:00")
_IN_DETAIL = 3


def tables_of(shown: History, *, plain: bool = False) -> list[tuple[list[Line], Table]]:
    """Return each table with its lines: the figures of few lines, or of many a row for each point.

    ``plain``: ASCII only.
    """
    if len(shown.lines) <= _IN_DETAIL:
        return [([line], detail(line, plain=plain)) for line in shown.lines]
    return [(lines, summary(lines, plain=plain)) for lines in _grouped(shown)]


def picture(lines: Sequence[Line]) -> str:
    """Return the markup of a chart of lines that differ only in their points, in the order of
    releases."""
    unit = scale(
        lines[0].unit, lines[0].clock, (figure.high for line in lines for figure in line.figures)
    )
    figures = {(figure.run, figure.kernel): figure for line in lines for figure in line.figures}
    ordered = sorted(
        figures.values(),
        key=lambda run_figure: (release_key(run_figure.release), run_figure.at, run_figure.kernel),
    )
    columns = {(figure.run, figure.kernel): number for number, figure in enumerate(ordered)}
    releases = [figure.release for figure in ordered]
    # A release is named below its first run.
    names = tuple("" if name in releases[:number] else name for number, name in enumerate(releases))

    def mark(line: Line, figure: RunFigure) -> Mark:
        text = f"{figure.release}, {when(figure)}: {_scale(line).text(figure.value)} ({figure.run})"
        value, low, high = (
            number / unit.divisor for number in (figure.value, figure.low, figure.high)
        )
        return Mark(columns[figure.run, figure.kernel], value, text, low, high)

    points = [point_text(line.point) or "all" for line in lines]
    series = [
        of_kernel(
            point,
            points,
            sorted((mark(line, figure) for figure in line.figures), key=lambda m: m.x),
        )
        for point, line in zip(points, lines, strict=True)
    ]
    return markup(
        Plot(Axis(names=names), Axis(f"{unit.unit}, {lines[0].better} is better"), tuple(series))
    )


def _grouped(history: History) -> list[list[Line]]:
    """Return the lines in groups that differ only in the point and are shown in the same unit."""
    groups: dict[tuple[object, ...], list[Line]] = {}
    for line in history.lines:
        # The unit after scaling: all rows of a table have the unit of its title.
        unit = _scale(line).unit
        question = (line.experiment, line.clock, line.workload, line.metric, unit, line.better)
        groups.setdefault((*question, line.kernel, line.cpus, line.host), []).append(line)
    return list(groups.values())


def worth_showing(history: History, *, every_metric: bool) -> History:
    """Return the lines with at least two figures, of headline metrics or, with ``every_metric``, of
    all."""
    lines = tuple(
        line for line in history.lines if len(line.figures) > 1 and (every_metric or line.headline)
    )
    return history.model_copy(update={"lines": lines})


def left_out(history: History, shown: History) -> list[str]:
    """Return what is in ``history`` and not in ``shown``, and which command shows it."""
    alone = sum(len(line.figures) == 1 for line in history.lines)
    others = len(history.lines) - len(shown.lines) - alone
    return written("left_out", history, alone, others, of=_TEXTS)


def detail(line: Line, *, plain: bool = False) -> Table:
    """Return the table of one line: a row for each figure, with its position and changes of
    level."""
    unit = _scale(line)
    shifts = {shift.index: shift for shift in line.shifts}
    # A dot for each figure at its position in the range of all figures, with a dash for its boots,
    # whose range is cut to that of the figures.
    dot, dash = ("o", "-") if plain else ("●", "─")
    values = [figure.value for figure in line.figures]
    least = min(values)
    span = max(values) - min(values)
    rows = []
    for index, figure in enumerate(line.figures):
        positions = [
            round((value - least) / span * (_STRIP - 1)) if span > 0 else _STRIP // 2
            for value in (figure.low, figure.value, figure.high)
        ]
        low, middle, high = (min(max(position, 0), _STRIP - 1) for position in positions)
        cells = [dash if low <= n <= high else " " for n in range(_STRIP)]
        cells[middle] = dot
        shift = shifts.get(index)
        level = (_change(shift), shift.verdict) if shift else ""
        before = line.figures[index - 1].value if index else 0.0
        step = percent(figure.value / before) if before > 0 and figure.value >= 0 else ""
        texts = (figure.release, when(figure), unit.text(figure.value), step, "".join(cells))
        rows.append((*texts, level, str(figure.boots), figure.run))
    columns = ("release", "when (UTC)", "figure", "step", "least to most", "level", "boots", "run")
    left = ("release", "when (UTC)", "run", "least to most", "level")
    where = point_text(line.point)
    heading = f"{title(line)}; {where}" if where else title(line)
    return Table(heading, Block.of(columns, rows, left), notes=tuple(explain(line)))


def title(line: Line) -> str:
    """Return the experiment, metric, kernel and host of a line, without its point."""
    host = f"; {line.host}" if line.host else ""
    cpus = f", {line.cpus} CPU{'s' if line.cpus != 1 else ''}{host}"
    unit = _scale(line).unit
    kernel = "unpatched kernels" if line.kernel == UNPATCHED else f"kernels with {line.kernel}"
    return (
        f"{line.experiment}, {line.workload}: {called(line)} of {kernel} in {unit}, "
        f"{line.better} is better{cpus}"
    )


def called(line: Line) -> str:
    """Return the name of the metric of a line, with its key, which options name it by."""
    return f"{line.name or name_of(line.metric, None)} ({line.metric})"


def explain(line: Line) -> list[str]:
    """Return a sentence for each change of level, with the recorded differences at that place."""
    return written("shifts", line, when, size, of=_TEXTS)


def size(line: Line, shift: Shift) -> str:
    """Return a change of level in figures: ``1,028 to 2,056 ns (+100.0%)``."""
    unit = _scale(line)
    change = "" if shift.ratio is None else f" ({percent(shift.ratio)})"
    return f"{unit.text(shift.before)} to {unit.text(shift.after)} {unit.unit}{change}"


def when(figure: RunFigure) -> str:
    """Return date and time to the minute."""
    return figure.at[:_DATE].replace("T", " ")


def spark(line: Line, *, plain: bool = False) -> str:
    """Return a chart with a bar for each figure of a line; the smallest figure has the lowest
    bar."""
    bars = _PLAIN_BARS if plain else _BARS
    values = [figure.value for figure in line.figures]
    least = min(values)
    span = max(values) - min(values)
    if span <= 0:
        return bars[len(bars) // 2] * len(values)
    return "".join(bars[round((value - least) / span * (len(bars) - 1))] for value in values)


def summary(lines: Sequence[Line], *, plain: bool = False) -> Table:
    """Return the table of lines that differ only in their points, with a row for each."""
    names, keys = point_cells([line.point for line in lines])
    rows: list[Sequence[Text]] = []
    for key, line in zip(keys, lines, strict=True):
        releases = list(dict.fromkeys(figure.release for figure in line.figures))
        shown = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        ends = [_scale(line).text(figure.value) for figure in (line.figures[0], line.figures[-1])]
        level: Text = None if line.unlooked else ("no change", "same")
        if line.shifts and not line.unlooked:
            level = (", ".join(map(_change, line.shifts)), line.shifts[-1].verdict)
        rows.append((*key, str(len(line.figures)), shown, spark(line, plain=plain), *ends, level))
    columns = (*names, "figures", "releases", "history", "first", "last", "level")
    notes = dict.fromkeys(
        f"not searched for changes: {line.unlooked}" for line in lines if line.unlooked
    )
    block = Block.of(columns, rows, left=("releases", "history", "level"))
    return Table(title(lines[0]), block, notes=tuple(notes))


def _change(shift: Shift) -> str:
    return f"{shift.verdict} {percent(shift.ratio)}" if shift.ratio is not None else shift.verdict


def _scale(line: Line) -> Scale:
    return scale(line.unit, line.clock, (figure.high for figure in line.figures))
