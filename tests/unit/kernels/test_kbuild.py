from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kteardown.errors import BuildError, LabError
from kteardown.kernels.kbuild import Tree, compile_tree, error_lines, time_share
from kteardown.progress import SilentReporter, Task

LOG = """  CC      kernel/fork.o
  CC      kernel/power/process.o
../kernel/power/process.c: In function 'freeze':
../kernel/power/process.c:42:5: error: expected ';' before '}' token
make[4]: *** [../scripts/Makefile.build:229: kernel/power/process.o] Error 1
make[3]: *** [../scripts/Makefile.build:478: kernel/power] Error 2
  CC      kernel/exit.o
"""


def test_the_compilers_errors_are_shown_without_those_of_make() -> None:
    assert error_lines(LOG) == [
        "../kernel/power/process.c:42:5: error: expected ';' before '}' token"
    ]


def test_errors_of_make_are_shown_if_there_are_no_others() -> None:
    log = "make[2]: *** No rule to make target 'x.o', needed by 'built-in.a'.  Stop.\n"
    assert error_lines(log) == [log.strip()]


def test_the_end_of_the_log_is_shown_if_it_has_no_errors() -> None:
    assert error_lines("\n".join(f"  CC      {number}.o" for number in range(30)), 2) == [
        "  CC      28.o",
        "  CC      29.o",
    ]


def fake_tree(tmp_path: Path, recipe: str) -> Tree:
    """Make a folder that tuxmake accepts as a kernel tree, whose Makefile runs ``recipe``."""
    tree = Tree(tmp_path, None, tmp_path / "logs", "x86_64")
    tree.build.mkdir(parents=True)
    tree.logs.mkdir()
    for name in ("Kconfig", "Kbuild"):
        (tree.path / name).touch()
    (tree.build / ".config").touch()
    (tree.path / "Makefile").write_text(f"all:\n\t@{recipe}\n%config:\n\t@true\n")
    return tree


def test_steps_are_counted(tmp_path: Path) -> None:
    recipe = (
        "echo '  CC      a.o'; echo '  LD [M]  a.ko'; echo 'note: not a step'; echo '  VDSO2C  b.c'"
    )
    assert compile_tree(fake_tree(tmp_path, recipe), "x", 3, 3, SilentReporter()) == 3


class Totals(SilentReporter, Task):
    """Records each update."""

    def __init__(self) -> None:
        self.totals: list[float | None] = []
        self.completed: list[float] = []

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        self.totals.append(total)
        yield self

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        self.totals.append(total)
        self.completed.append(completed)


def test_the_total_becomes_that_of_a_whole_kernel_after_the_expected_steps(tmp_path: Path) -> None:
    reporter = Totals()
    recipe = 'for i in 1 2 3 4 5; do echo "  CC      $$i.o"; done'
    assert compile_tree(fake_tree(tmp_path, recipe), "x", 2, 4, reporter) == 5
    assert reporter.totals == [2, 2, 2, 4, 4, 5]
    # A variant is not compiled from the beginning, so its steps are not those of a whole kernel.
    assert reporter.completed == [1, 2, 3, 4, 5]


def test_the_progress_of_a_whole_kernel_is_the_share_of_its_time(tmp_path: Path) -> None:
    reporter = Totals()
    recipe = 'for i in $$(seq 100); do echo "  CC      $$i.o"; done'
    assert compile_tree(fake_tree(tmp_path, recipe), "x", 100, 100, reporter) == 100
    assert reporter.completed == sorted(reporter.completed)
    assert [reporter.completed[steps - 1] for steps in (10, 50, 100)] == pytest.approx([7, 63, 100])


BUILDS = {
    "6.12, idle, 2 jobs": (
        435,
        {0.2: 81, 0.3: 150, 0.4: 220, 0.5: 274, 0.6: 317, 0.7: 348, 0.8: 392},
    ),
    "7.2, busy, 2 jobs": (763, {0.3: 320, 0.4: 429, 0.5: 507, 0.6: 591, 0.7: 652, 0.8: 708}),
}
"""How many seconds builds took, and after how many which share of their steps was done."""


@pytest.mark.parametrize("build", BUILDS)
def test_the_time_of_a_build_is_forecast_within_30_percent(build: str) -> None:
    whole, seconds = BUILDS[build]
    forecasts = {share: taken / time_share(share) for share, taken in seconds.items()}
    assert all(0.7 * whole < forecast < 1.3 * whole for forecast in forecasts.values()), forecasts
    assert (time_share(0.0), time_share(1.0)) == (0.0, 1.0)


def test_a_failed_build_reports_the_errors(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path, "echo 'a.c:1:2: error: no good'; false")
    with pytest.raises(BuildError, match=r"a\.c:1:2: error: no good"):
        compile_tree(tree, "x", 3, 3, SilentReporter())
    assert "no good" in (tree.logs / "default" / "build.log").read_text()


def test_a_full_disk_is_not_a_build_error(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path, "echo 'as: a.o: No space left on device'; false")
    with pytest.raises(LabError, match="disk filled up"):
        compile_tree(tree, "x", 3, 3, SilentReporter())


def test_an_interrupt_leaves_no_compiler_running(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path, f"echo $$$$ > {tmp_path}/pid; sleep 1000; true")
    code = (
        "import sys; from pathlib import Path; from kteardown.kernels.kbuild import Tree, "
        "compile_tree;from kteardown.progress import SilentReporter;tree = "
        f"Tree(Path({str(tmp_path)!r}), None, Path({str(tree.logs)!r}), "
        "'x86_64');compile_tree(tree, 'x', 3, 3, SilentReporter())"
    )
    lab = subprocess.Popen([sys.executable, "-P", "-c", code], stderr=subprocess.DEVNULL)
    pid = tmp_path / "pid"
    while not pid.is_file() or not pid.read_text().strip():
        assert lab.poll() is None
        time.sleep(0.02)
    os.kill(lab.pid, signal.SIGINT)
    lab.wait()
    process = int(pid.read_text())
    deadline = time.monotonic() + 60
    while _runs(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(process)
    assert lab.returncode != 0


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("wanted", "have", "calls"),
    [
        ("", ("gcc", "x86_64-linux-gnu-gcc"), "x86_64-linux-gnu-gcc"),
        ("", ("gcc",), "gcc"),
        ("gcc-14", ("gcc", "gcc-14", "x86_64-linux-gnu-gcc"), "gcc-14"),
        ("gcc-14", ("gcc", "gcc-14"), "gcc-14"),
        ("clang-19", ("gcc", "clang-19"), "clang-19"),
    ],
)
def test_the_chosen_compiler_compiles(
    wanted: str, have: tuple[str, ...], calls: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is called by the name that tuxmake gives to make, on a host with or without prefixed
    names."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in have:
        (programs / name).write_text(f"#!/bin/sh\necho {name} is called\n")
        (programs / name).chmod(0o755)
    # All programs of this host but its compilers.
    for place in Path("/usr/bin").iterdir():
        if not re.search("gcc|clang|cc$", place.name):
            (programs / place.name).symlink_to(place)
    monkeypatch.setenv("PATH", str(programs))
    for module in ("kbuild", "toolchain"):
        monkeypatch.setattr(f"kteardown.kernels.{module}.host_arch", lambda: "x86_64")
    messages = tmp_path / "messages"
    tree = replace(fake_tree(tmp_path, f"$(CC) > {messages}"), compiler=wanted)
    makefile = tree.path / "Makefile"
    makefile.write_text("CC = $(CROSS_COMPILE)gcc\n" + makefile.read_text())
    compile_tree(tree, "x", 3, 3, SilentReporter())
    assert messages.read_text() == f"{calls} is called\n"


def test_ccache_is_not_called_where_it_comes_first_in_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it keeps, and its configuration, could be those that a makefile of another patch has
    written."""
    messages = tmp_path / "messages"
    for folder in ("first", "bin"):
        (tmp_path / folder).mkdir()
    for name in ("ccache", "gcc"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho {name} is called\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "first" / "gcc").symlink_to(tmp_path / "bin" / "ccache")
    monkeypatch.setenv(
        "PATH", f"{tmp_path}/first{os.pathsep}{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"
    )
    compile_tree(fake_tree(tmp_path, f"gcc > {messages}"), "x", 3, 3, SilentReporter())
    assert messages.read_text() == "gcc is called\n"


def test_a_kernel_that_is_too_old_for_its_compiler_is_said_to_be(tmp_path: Path) -> None:
    said = 'include/linux/stddef.h:11:9: error: cannot use keyword "false" as enumeration constant'
    tree = fake_tree(tmp_path, f"{{ echo '{said}' >&2; false; }}")
    with pytest.raises(BuildError, match="cannot use keyword") as caught:
        compile_tree(tree, "x", 3, 3, SilentReporter())
    assert "--compiler NAME" in caught.value.hint
