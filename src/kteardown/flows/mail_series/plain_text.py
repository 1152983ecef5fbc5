"""The text of a Markdown file as a mail has it: tables in columns, commands that are not too wide.

Prose is not wrapped: the cover letters of series have the width of a mail.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

WIDTH = 75
"""The columns of a line of prose, as checkpatch.pl wants them in a message."""
TABLE_WIDTH = 78
"""The columns of a table: 80 in an answer that quotes it."""
_INDENT = "  "
_GAP = "  "
_MOST_HEADING_LINES = 4
_LEAST_TEXT = 20
"""The columns of text at the beginning of a row are not made narrower than this."""
_RULE = re.compile(r"\|(?:[ ]*+:?-++:?[ ]*+\|)++")
_BAR = re.compile(r"(?<!\\)\|")
_MEASURED = re.compile(r"Measured with `([^`]++)` \((.++)")
"""What a program writes below a table: the command, and what it ran on in parentheses."""
_OPTION = re.compile(r" (?=--)")


@dataclass(frozen=True)
class Column:
    """A column of a table: the lines of its heading, and those of each cell.

    ``is_left``: it has text, and is aligned left.
    """

    heading: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    is_left: bool

    @property
    def width(self) -> int:
        return max(len(line) for lines in (self.heading, *self.cells) for line in (*lines, "-"))

    def with_heading(self, height: int) -> "Column":
        """Return the column with its heading on at most ``height`` lines, as narrow as that may
        be."""
        text = " ".join(self.heading)
        least = max(len(line) for lines in self.cells or ((),) for line in (*lines, "-"))
        for width in range(max(least, *map(len, ("-", *text.split()))), len(text)):
            if len(lines := _wrapped(text, width)) <= height:
                return replace(self, heading=lines)
        return replace(self, heading=(text,))

    def narrowed(self, width: int) -> "Column":
        """Return the column with its texts wrapped to ``width``, where their words permit it."""
        cells = tuple(_wrapped(" ".join(lines), width) for lines in self.cells)
        return replace(self, heading=_wrapped(" ".join(self.heading), width), cells=cells)

    def lines(self, heights: Sequence[int]) -> list[str]:
        """Return the heading, a rule and the cells, equally wide; ``heights`` are those of the
        rows."""
        top = [""] * (heights[0] - len(self.heading))
        texts = [*top, *self.heading, "-" * self.width]
        for lines, height in zip(self.cells, heights[1:], strict=True):
            texts += [*lines, *[""] * (height - len(lines))]
        return [
            text.ljust(self.width) if self.is_left else text.rjust(self.width) for text in texts
        ]


def as_plain_text(markdown: str) -> str:
    """Return Markdown as the text of a mail."""
    lines: list[str] = []
    for is_table, group in groupby(markdown.splitlines(), lambda line: line.startswith("|")):
        rows = [line.rstrip() for line in group]
        lines += plain_table(rows) if is_table else [text for row in rows for text in _plain(row)]
    return "\n".join(lines)


def plain_table(lines: Sequence[str]) -> list[str]:
    """Return the lines of a Markdown table as aligned columns, below their headings.

    Where it is too wide, the headings are wrapped. Where it still is, the table is divided: each
    part has the columns of text with which the rows begin. Lines that are no table are returned as
    they are.
    """
    if len(lines) < 2 or not _RULE.fullmatch(lines[1].rstrip()):
        return list(lines)
    headings, rules, *rows = (_cells(line) for line in lines)
    if any(len(row) != len(headings) for row in (rules, *rows)):
        return list(lines)
    cells = list(zip(*rows, strict=True)) or [()] * len(headings)
    columns = [
        Column((heading,), tuple((text,) for text in texts), not rule.endswith(":"))
        for heading, rule, texts in zip(headings, rules, cells, strict=True)
    ]
    for height in range(1, _MOST_HEADING_LINES + 1):
        wrapped = [column.with_heading(height) for column in columns]
        if _width(wrapped) <= TABLE_WIDTH:
            return _laid_out(wrapped)
    parts = [_laid_out(_fitted(part)) for part in _divided(columns)]
    return [line for part in parts for line in (*part, "")][:-1]


def _cells(line: str) -> list[str]:
    parts = _BAR.split(line.strip())
    return [part.strip().replace("\\|", "|") for part in parts[1 : len(parts) - (not parts[-1])]]


def _wrapped(text: str, width: int) -> tuple[str, ...]:
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return tuple(lines) or ("",)


def _divided(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Yield the columns of each part; all have the columns of text with which the rows begin."""
    first = next((n for n, column in enumerate(columns) if not column.is_left), len(columns))
    keys, others = columns[: max(first, 1)], columns[max(first, 1) :]
    size = _size_of_parts(keys, others)
    for start in range(0, max(len(others), 1), size):
        yield [*keys, *others[start : start + size]]


def _size_of_parts(keys: Sequence[Column], others: Sequence[Column]) -> int:
    """Return how many of ``others`` are in one part: as few parts as possible, equally large."""
    for size in range(len(others), 1, -1):
        starts = range(0, len(others), size)
        parts = ([*keys, *others[start : start + size]] for start in starts)
        narrow = [[column.with_heading(_MOST_HEADING_LINES) for column in part] for part in parts]
        if all(_width(part) <= TABLE_WIDTH for part in narrow):
            return -(-len(others) // len(starts))
    return 1


def _fitted(columns: Sequence[Column]) -> list[Column]:
    """Return the columns of a part: its headings wrapped, and its widest text if that is needed."""
    for height in range(1, _MOST_HEADING_LINES + 1):
        wrapped = [column.with_heading(height) for column in columns]
        if _width(wrapped) <= TABLE_WIDTH:
            return wrapped
    texts = [n for n, column in enumerate(wrapped) if column.is_left]
    if texts:
        widest = max(texts, key=lambda n: wrapped[n].width)
        left = wrapped[widest].width - (_width(wrapped) - TABLE_WIDTH)
        wrapped[widest] = wrapped[widest].narrowed(max(left, _LEAST_TEXT))
    return wrapped


def _width(columns: Sequence[Column]) -> int:
    gaps = len(_GAP) * (len(columns) - 1)
    return len(_INDENT) + gaps + sum(column.width for column in columns)


def _laid_out(columns: Sequence[Column]) -> list[str]:
    rows = zip(*(column.cells for column in columns), strict=True)
    heights = [max(len(column.heading) for column in columns)]
    heights += [max(map(len, row)) for row in rows]
    lines = zip(*(column.lines(heights) for column in columns), strict=True)
    return [f"{_INDENT}{_GAP.join(cells)}".rstrip() for cells in lines]


def _plain(line: str) -> list[str]:
    """Return a line that is not of a table; of a command that was measured, several lines."""
    match = _MEASURED.fullmatch(line)
    if match is None or len(line) <= WIDTH:
        return [line]
    about = match[2].rstrip(".").removesuffix(")")
    first = textwrap.wrap(f"Measured with this command ({about}):", WIDTH, break_long_words=False)
    return [*first, "", *_command(match[1])]


def _command(command: str) -> list[str]:
    """Return the lines of a shell command, which is divided in front of its options."""
    lines: list[str] = []
    for word in _OPTION.split(command):
        if lines and len(f"{lines[-1]} {word} \\") <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{_INDENT * (2 if lines else 1)}{word}")
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]
