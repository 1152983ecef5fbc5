"""The recording of the demo in README.md: a run in a terminal, sped up, as an animated SVG.

    recording.py record FILE.cast [COMMAND...]   run the command (the demo if none is given) in a
                                                 terminal
    recording.py draw FILE.cast FILE.svg         speed the recording up, cut it at one screen, and
                                                 draw it

A recording is in the format of asciinema, version 2, so that other programs can play it. It is
drawn by termtosvg, which uv fetches into an environment of its own. `make recording` does both.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

Event = tuple[float, str]
"""Seconds since the start, and what was written to the terminal."""

_PART = (
    "--variant",
    "freezer-skip-exited",
    "--workload",
    "zombies",
    "--set",
    "zombies=0,3000,6000",
)
DEMO = ("kteardown", "run", "freezer", "--quick", *_PART)
"""What `make demo` runs."""
COLUMNS = 118
ROWS = 36
"""The table of the headline metrics fits in the columns, and what is kept of the report in the
rows."""
PLAYED_S = 14.0
"""How long the recording plays, without its last screen."""
LAST_MS = 7000
_DRAWN_BY = "termtosvg==1.1.0"
_TYPED_S = 0.045
_LEAST_S = 0.12
"""Shorter frames are joined with the next."""
_QUIET_S = 1.5
"""The part of a pause that is kept before the playing time is set."""
_SHOWN = "\x1b[?25h"
"""Shows the cursor again: the end of the progress, after which the report is printed."""
PARAGRAPHS = 3
"""Of the report: the lines of the result, the question, and the table of the headline metrics."""


def record(file: Path, command: Sequence[str]) -> int:
    """Run the command in a terminal; write what it prints to ``file``, and return its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
        try:
            os.execvp(command[0], list(command))
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    started = time.monotonic()
    with file.open("w", encoding="utf-8") as out:
        print(json.dumps(_header(command)), file=out)
        for text in _output(terminal):
            print(
                json.dumps([round(time.monotonic() - started, 3), "o", text]), file=out, flush=True
            )
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _header(command: Sequence[str]) -> dict[str, object]:
    return {"version": 2, "width": COLUMNS, "height": ROWS, "title": shlex.join(command)}


def _output(terminal: int) -> Iterator[str]:
    while True:
        try:
            content = os.read(terminal, 65536)
        except OSError:  # The program ended.
            return
        if not content:
            return
        # The home folder is that of one machine.
        yield content.decode("utf-8", "replace").replace(str(Path.home()), "~")


def read(file: Path) -> tuple[str, list[Event]]:
    """Return the command of a recording and its events."""
    header, *lines = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return str(header["title"]), [(float(at), str(text)) for at, _, text in lines]


def cut(events: Sequence[Event], paragraphs: int = PARAGRAPHS) -> list[Event]:
    """Return the events up to the report, and of the report the first paragraphs."""
    last = max((n for n, (_, text) in enumerate(events) if _SHOWN in text), default=-1)
    before = list(events[: last + 1])
    report = "".join(text for _, text in events[last + 1 :])
    if before:
        # The report may begin in the same event.
        at, text = before[-1]
        end = text.rindex(_SHOWN) + len(_SHOWN)
        before[-1], report = (at, text[:end]), text[end:] + report
    begin = "\r\n\r\n".join(report.split("\r\n\r\n")[:paragraphs])
    return [*before, (events[-1][0], begin)]


def hasten(events: Sequence[Event], played_s: float = PLAYED_S) -> list[Event]:
    """Return the events in ``played_s`` seconds; long pauses are shortened more than short ones."""
    times, at, last = [], 0.0, 0.0
    for now, _ in events:
        at += min(now - last, _QUIET_S)
        last = now
        times.append(at)
    factor = played_s / at if at else 1.0
    hastened: list[Event] = []
    for when, (_, text) in zip(times, events, strict=True):
        scaled = when * factor
        if hastened and scaled - hastened[-1][0] < _LEAST_S:
            hastened[-1] = (hastened[-1][0], hastened[-1][1] + text)
        else:
            hastened.append((scaled, text))
    return hastened


def typed(command: str) -> list[Event]:
    """Return the events of the command being typed."""
    return [(0.0, "$ "), *((0.5 + _TYPED_S * n, letter) for n, letter in enumerate(command))]


def draw(source: Path, target: Path) -> None:
    """Draw a recording as an animated SVG."""
    command, events = read(source)
    first = typed(command)
    begin = first[-1][0] + 0.5
    played = [*first, (begin, "\r\n"), *((begin + at, text) for at, text in hasten(cut(events)))]
    with tempfile.TemporaryDirectory() as folder:
        cast = Path(folder) / "demo.cast"
        lines = [_header(shlex.split(command)), *([round(at, 3), "o", text] for at, text in played)]
        cast.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        tool = (
            sys.executable,
            "-P",
            "-m",
            "uv",
            "tool",
            "run",
            "--from",
            _DRAWN_BY,
            "--with",
            "setuptools<80",
        )
        options = ("-t", "window_frame", "-D", str(LAST_MS))
        subprocess.run([*tool, "termtosvg", "render", str(cast), str(target), *options], check=True)


def main(arguments: list[str]) -> int:
    """Run one of the two commands."""
    match arguments:
        case ["record", file, *command]:
            return record(Path(file), command or DEMO)
        case ["draw", source, target]:
            draw(Path(source), Path(target))
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
