"""Progress on a terminal and in a file."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from kteardown.cli import terminal
from kteardown.cli.terminal import TerminalReporter, interim_table
from kteardown.inputs.load import load_workload
from kteardown.progress import InterimResult
from kteardown.report import result_file
from kteardown.report.forecast_text import interim_rows

ROWS = [
    InterimResult(
        metric="freeze_user_ns",
        point="zombies=15,000",
        base="1,028,528",
        variant=name,
        changed="323,616",
        change="-68.5% exact",
        verdict=verdict,
        others="5 better, 1 same",
    )
    for name, verdict in (("one", "better"), ("two", "worse"))
]

RECORDED = Path(__file__).parents[3] / "findings/results/freezer/result.json"


def console(**options: object) -> Console:
    return Console(file=io.StringIO(), width=160, **options)  # type: ignore[arg-type]


def written(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


class Looks:
    """Counts how often the comparisons so far are requested."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Sequence[InterimResult]:
        self.count += 1
        return ROWS


def work(reporter: TerminalReporter, looks: Looks) -> None:
    """Report a run as the pipeline reports it."""
    reporter.interim_results(looks)
    reporter.note("run directory: here")
    reporter.command(["qemu-system-x86_64", "-append", "a b"])
    with reporter.task("booting 6 guests, 2 at a time", total=6) as task:
        task.update(1, "base, seed 1: zombies zombies=0\none, seed 1: zombies zombies=0")
        reporter.interim_results(looks)
        task.update(2, "two, seed 1: zombies zombies=3000\nbase, seed 2: starting")
        reporter.interim_results(looks)


def test_a_terminal_shows_bars_guests_and_comparisons() -> None:
    screen, looks = console(force_terminal=True), Looks()
    work(TerminalReporter(screen), looks)
    text = written(screen)
    assert "booting 6 guests" in text
    assert "    base, seed 1: zombies zombies=0" in text
    assert "    one, seed 1: zombies zombies=0" in text
    assert "-68.5% exact" in text
    assert "qemu" not in text


def test_comparisons_stay_on_the_screen_in_the_next_stage() -> None:
    screen = console(force_terminal=True)
    reporter = TerminalReporter(screen)
    work(reporter, Looks())
    before = written(screen).count("-68.5% exact")
    with reporter.task("booting 2 more guests", total=2):
        pass
    assert written(screen).count("-68.5% exact") > before


def test_comparisons_are_not_requested_twice_in_five_seconds() -> None:
    looks = Looks()
    work(TerminalReporter(console(force_terminal=True)), looks)
    assert looks.count == 1


def test_the_next_request_waits_twenty_times_the_duration_of_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]

    def slow() -> Sequence[InterimResult]:
        now[0] += 3.0
        return looks()

    reporter, looks = TerminalReporter(console(force_terminal=True)), Looks()
    with reporter.task("booting", total=1):
        monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: now[0]))
        for at, expected in ((100.0, 1), (107.9, 1), (108.1, 2), (171.0, 2), (171.2, 3)):
            now[0] = at
            reporter.interim_results(slow)
            assert looks.count == expected


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_a_file_gets_plain_lines_and_no_comparisons(options: dict[str, object]) -> None:
    file, looks = console(**options), Looks()
    work(TerminalReporter(file), looks)
    assert written(file).splitlines() == [
        "run directory: here",
        "booting 6 guests, 2 at a time ...",
    ]
    assert looks.count == 0


def test_a_plain_line_has_all_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PLAIN_INTERVAL_S", 0.0)
    file = console()
    work(TerminalReporter(file), Looks())
    assert "33%" in written(file).splitlines()[-1]
    assert "two, seed 1: zombies zombies=3000; base, seed 2: starting" in written(file)


class Clock:
    """A clock that only the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: self.now))


def test_a_forecast_that_is_overrun_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, file = Clock(monkeypatch), console()
    # A build of 100 expected steps that has 300: kbuild gives the steps so far as the total then.
    with TerminalReporter(file).task("Building", total=100) as task:
        for step in range(1, 301):
            clock.now = step * 2.0
            task.update(step, "a.o", total=max(step, 100))
    lines = written(file).splitlines()
    assert lines[1] == "Building: 16 s, 8%, about 3 min left; a.o"
    assert lines[12] == "Building: 192 s, 96%, about 8 s left; a.o"
    assert lines[13:] == [
        f"Building: {seconds} s, longer than the forecast of 3 min; a.o"
        for seconds in range(208, 601, 16)
    ]


def test_a_part_that_takes_longer_than_expected_overruns_the_forecast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, file = Clock(monkeypatch), console()
    with TerminalReporter(file).task("booting 2 guests", total=2) as task:
        for clock.now, done in ((20.0, 0), (40.0, 1), (60.0, 1), (90.0, 1), (120.0, 2)):
            task.update(done)
        # More work came up: there is a forecast again.
        clock.now = 140.0
        task.update(2, total=4)
    assert [line.removeprefix("booting 2 guests: ") for line in written(file).splitlines()[1:]] == [
        "20 s",
        "40 s, 50%, about 40 s left",
        "60 s, 50%, about 20 s left",
        "90 s, 50%, longer than the forecast of 80 s",
        "120 s, longer than the forecast of 80 s",
        "140 s, 50%, about 2 min left",
    ]


def test_a_bar_whose_total_was_reached_goes_on_counting() -> None:
    now = [0.0]
    screen = console(force_terminal=True, color_system=None, get_time=lambda: now[0])
    reporter = TerminalReporter(screen)
    with reporter.task("Building", total=100) as task:
        for now[0], step in ((90.0, 50), (180.0, 100), (540.0, 130)):
            task.update(step, total=max(step, 100))
            assert reporter._display is not None
            reporter._display.live.refresh()
    text = written(screen)
    assert "0:01:30, about 90 s left" in text or "0:01:30, about 2 min left" in text
    assert "0:09:00, longer than the forecast of 3 min" in text
    assert "0:00:00, about" not in text and " 0 s left" not in text


def test_quiet_prints_nothing() -> None:
    screen, looks = console(force_terminal=True), Looks()
    work(TerminalReporter(screen, quiet=True), looks)
    assert (written(screen), looks.count) == ("", 0)


def test_verbose_shows_a_command_that_can_be_typed() -> None:
    file = console()
    work(TerminalReporter(file, verbose=True), Looks())
    assert "+ qemu-system-x86_64 -append 'a b'" in written(file)


def test_no_color_in_the_environment_turns_colours_off() -> None:
    for environment, coloured in (({"NO_COLOR": "1"}, False), ({"TERM": "xterm-256color"}, True)):
        screen = console(force_terminal=True, _environ=environment)
        screen.print(interim_table(ROWS))
        assert ("\x1b[32m" in written(screen)) is coloured


def test_base_is_printed_once_for_each_metric() -> None:
    screen = console()
    screen.print(interim_table(ROWS))
    assert written(screen).count("1,028,528") == 1
    assert written(screen).count("323,616") == 2


@pytest.mark.parametrize("width", [80, 100, 108, 120])
def test_the_live_table_cuts_no_word(width: int) -> None:
    result = result_file.loads(RECORDED.read_bytes())
    found = interim_rows(
        result, {c.workload: load_workload(c.workload) for c in result.comparisons}
    )
    screen = Console(file=io.StringIO(), width=width)
    screen.print(interim_table(found, width))
    text = written(screen)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    for row in found:
        assert f"{row.metric}, {row.point}: base {row.base}" in lines
        # A long name is broken at a hyphen, behind more letters than these.
        start = f"  {row.variant[:19]}"
        line = next(line for line in lines if line.startswith(start) and row.change in line)
        assert re.search(rf"  {row.verdict} +{row.others.split()[0]} ", line)
        assert (f" {row.changed} " in line) == (width >= 100)
        assert set(row.others.split()) <= set(text.split())


def test_the_live_table_breaks_a_long_name_at_a_hyphen() -> None:
    name = "sched-a-series-of-many-words-in-its-name on debian:7.3"
    row = InterimResult(
        "m", "n=1", "1", name, "2", "+100.0% [+99.9, +100.1]", "inconclusive", "1 inconclusive"
    )
    screen = Console(file=io.StringIO(), width=80)
    screen.print(interim_table([row], 80))
    parts = [
        part
        for line in written(screen).splitlines()[3:]
        for part in re.findall(r"^  (\S+(?: \S+)*)", line)
    ]
    assert "".join(parts).replace(" ", "") == name.replace(" ", "")
    assert all(part.endswith("-") or " " in part for part in parts[:-1])


def test_a_note_that_was_shown_is_not_shown_once_more() -> None:
    out = console()
    reporter = TerminalReporter(out)
    for say in (reporter.note_once, reporter.note_once, reporter.note):
        say("the same")
    assert written(out) == "the same\nthe same\n"
