"""Kernels that are broken on purpose are called broken, first in every format; null changes are
not."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kteardown.kernels.source import Sources
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from outputs import result_in
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

FORMATS = ("cover", "markdown", "html", "comment", "junit", "json")
EVERYWHERE = {"panic-at-boot": ("panic", "broken on purpose")}
"""By broken series: the kind of the fault, and words of its message. This one never runs a
trial."""
OOPS = {"oops": ("panic", "NULL pointer dereference")}
WITH_MANY_ZOMBIES = {
    **OOPS,
    "warning": ("warning", "WARNING: "),
    "invariant": ("invariant", "freeze_completed"),
    "accounting": ("invariant", "elapsed_agrees"),
}
SLOW = {
    "hang": ("hang", "of the guest's clock"),
    "hang-irqs-off": ("hang", "try_to_freeze_tasks"),
    "leak-lock": ("hang", "no record"),
    "slow-oom": ("oom", "deadlocked on memory"),
}
NULLS = 20


def compare(
    runs: Path, variants: dict[str, Path], *more: str, expect: int, zombies: str = "0,6000"
) -> dict[str, Any]:
    """Compare variants with 6.12, and return the result. ``expect`` is the exit status."""
    options = [word for path in variants.values() for word in ("--series", str(path))]
    file = runs / "result.json"
    done = kteardown(
        *("compare", "zombies", "--source", "debian:6.12", *options, "--set", f"zombies={zombies}"),
        *("--clock", "instructions", "--seeds", "2", "--json", str(file), *more),
        runs=runs,
        expect=expect,
    )
    if expect:
        assert "is broken" in done.stderr or "BROKEN: " in done.stderr
    result = result_in(file.read_bytes())
    result["printed"] = done.stdout
    return result


def kteardown(*arguments: str, runs: Path, expect: int) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kteardown", *arguments],
        env={**os.environ, "KTEARDOWN_RUNS": str(runs), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done


def series(names: dict[str, tuple[str, str]]) -> dict[str, Path]:
    return {f"broken-{name}": lab.BROKEN / f"broken-{name}" for name in names}


def check(result: dict[str, Any], expected: dict[str, tuple[str, str]]) -> None:
    faults = {fault["kernel"]: fault for fault in reversed(result["faults"])}
    assert set(faults) == {f"broken-{name}" for name in expected}, result["faults"]
    printed = " ".join(result["printed"].split())
    for name, (kind, words) in expected.items():
        fault = faults[f"broken-{name}"]
        assert (fault["kind"], fault["status"]) == (kind, "broken"), fault
        assert words in fault["message"], fault["message"]
        assert f"BROKEN: broken-{name}: " in printed
    for comparison in result["comparisons"]:
        # Of a broken kernel nothing is claimed, also at the points at which it works.
        assert f"{comparison['variant']}: better" not in printed
        assert f"{comparison['variant']}: same" not in printed


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The run directories, and the result of a kernel that breaks with many zombies only."""
    runs = tmp_path_factory.mktemp("broken")
    return runs, compare(runs, series(OOPS), "--seeds", "1", expect=6)


def points_of(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By kernel: the points of its fault."""
    return {f["kernel"]: [place["point"] for place in f["points"]] for f in result["faults"]}


def lost_points(result: dict[str, Any]) -> set[tuple[str, int]]:
    """The kernels and numbers of zombies that could not be compared."""
    return {(lost["variant"], lost["point"]["zombies"]) for lost in result["uncompared"]}


def check_stack(result: dict[str, Any], name: str) -> None:
    (excerpt,) = (
        "\n".join(f["excerpt"]) for f in result["faults"] if f["kernel"] == f"broken-{name}"
    )
    line = r"try_to_freeze_tasks\+0x[0-9a-f]+/0x[0-9a-f]+ \(kernel/power/process\.c:5\d\)"
    assert re.search(line, excerpt), excerpt


def test_a_fault_has_its_points_its_words_and_a_stack_with_source_lines(
    quick: tuple[Path, dict[str, Any]],
) -> None:
    result = quick[1]
    check(result, OOPS)
    assert points_of(result) == {"broken-oops": [{"zombies": 6000}]}
    assert lost_points(result) == {("broken-oops", 6000)}
    check_stack(result, "oops")


@pytest.mark.full
def test_each_broken_kernel_is_broken_in_its_own_words(tmp_path: Path) -> None:
    result = compare(tmp_path, series(EVERYWHERE | WITH_MANY_ZOMBIES), expect=6)
    check(result, EVERYWHERE | WITH_MANY_ZOMBIES)
    points = points_of(result)
    assert points["broken-panic-at-boot"] == []
    assert points["broken-warning"] == points["broken-oops"] == [{"zombies": 6000}]
    lost = lost_points(result)
    assert {
        ("broken-panic-at-boot", 0),
        ("broken-panic-at-boot", 6000),
        ("broken-oops", 6000),
    } <= lost
    assert ("broken-oops", 0) not in lost and ("broken-warning", 6000) not in lost
    (at_6000,) = {
        c["verdict"]
        for c in result["comparisons"]
        if c["variant"] == "broken-warning" and c["point"] == {"zombies": 6000}
    }
    assert at_6000 == "broken"
    check_stack(result, "warning")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_it_first(
    quick: tuple[Path, dict[str, Any]], form: str, tmp_path: Path
) -> None:
    file = tmp_path / "report"
    kteardown("report", "last", "--format", form, "--output", str(file), runs=quick[0], expect=0)
    text = file.read_text()
    if form == "json":
        assert result_in(text)["faults"][0]["status"] == "broken"
    else:
        visible = re.sub(r"<[^>]*>", " ", text.partition("<main>")[2]) if form == "html" else text
        first = re.search(r"BROKEN: | is broken: ", visible)
        assert first and first.start() < 400


def test_the_gate_does_not_let_it_through(quick: tuple[Path, dict[str, Any]]) -> None:
    done = kteardown("report", "last", "--fail-on", "worse", runs=quick[0], expect=6)
    assert "BROKEN: broken-" in done.stderr and "--console" in done.stderr


@pytest.mark.full
def test_hangs_and_exhausted_memory(tmp_path: Path) -> None:
    result = compare(tmp_path, series(SLOW), expect=6)
    check(result, SLOW)
    excerpts = {fault["kernel"]: "\n".join(fault["excerpt"]) for fault in result["faults"]}
    for name in ("hang", "hang-irqs-off", "leak-lock"):
        assert "try_to_freeze_tasks" in excerpts[f"broken-{name}"], excerpts
        assert "kernel/power/process.c:" in excerpts[f"broken-{name}"]


@pytest.mark.full
def test_a_leak_is_found_by_kmemleak(tmp_path: Path) -> None:
    leak = {"leak": ("leak", "unreferenced objects")}
    result = compare(tmp_path, series(leak), "--config", "kmemleak", expect=6, zombies="0,300")
    check(result, leak)
    assert "try_to_freeze_tasks" in "\n".join(result["faults"][0]["excerpt"])


@pytest.mark.full
def test_lock_orders_and_leaked_locks_are_found_by_lockdep(tmp_path: Path) -> None:
    wrong = {
        "lockdep": ("lockdep", "possible circular locking"),
        "leak-lock": ("lockdep", "lock held"),
    }
    result = compare(tmp_path, series(wrong), "--config", "debug", expect=6, zombies="0,300")
    found = {(f["kernel"], f["kind"]) for f in result["faults"] if f["status"] == "broken"}
    assert {("broken-lockdep", "lockdep"), ("broken-leak-lock", "lockdep")} <= found, result[
        "faults"
    ]


@pytest.mark.full
def test_changes_that_change_nothing_break_nothing(tmp_path: Path) -> None:
    result = compare(tmp_path, null_series(tmp_path / "series"), expect=0, zombies="0,3000")
    assert (result["faults"], result["uncompared"]) == ([], [])
    assert len({c["variant"] for c in result["comparisons"]}) == NULLS


def null_series(folder: Path) -> dict[str, Path]:
    """Patches that change nothing: comments, functions that are never called, renamed local
    variables."""
    sources = Sources(cache_dir(), SilentReporter())
    name = "kernel/power/process.c"
    text = (sources.tree(sources.identify("debian:6.12")) / name).read_text()
    above = "static int try_to_freeze_tasks(bool user_only)\n"
    local = ("todo", "wakeup", "elapsed_msecs", "sleep_usecs", "end_time", "wq_busy", "what")
    found = {}
    for number in range(NULLS):
        kinds = (
            lambda n: text.replace(above, f"/* Comment {n}. */\n" * (1 + n // 3) + above),
            lambda n: text.replace(
                above, f"static int __used never_{n}(int a)\n{{\n\treturn a * {n};\n}}\n\n{above}"
            ),
            lambda n: re.sub(rf"\b{local[n // 3]}\b", f"renamed_{n}", text),
        )
        changed = kinds[number % len(kinds)](number)
        diff = difflib.unified_diff(
            text.splitlines(True), changed.splitlines(True), f"a/{name}", f"b/{name}"
        )
        patch = folder / f"null-{number:02}" / "0001.patch"
        patch.parent.mkdir(parents=True)
        patch.write_text(
            "From: kteardown developers <kteardown@localhost>\nSubject: [PATCH] change nothing\n\n"
            "Signed-off-by: kteardown developers "
            f"<kteardown@localhost>\n---\n{''.join(diff)}--\nkteardown\n"
        )
        found[patch.parent.name] = patch.parent
    return found
