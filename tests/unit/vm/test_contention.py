"""What the plugin of the contention clock writes, and its rules of cache lines."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

from kteardown.paths import data_dir
from kteardown.vm.contention import MovedLine, Mover, Moves, StretchReader

STRETCH = b"""\
stretch 0 0
cpu 0 100 60 3 0
cpu 1 90 40 2 25
count kernel 5 2 7 1 9
count programs 1 0 0 0 0
site ffffffff81000010 4 0 7
site ffffffff81000010 1 0 0
line ffffffff82000040 5 1 2 3 620 ffffffff81000010:ffffffff81000200:0:4 401000:0:24:1
end
"""


def test_a_stretch_is_read_whole() -> None:
    (stretch,) = StretchReader(io.BytesIO(STRETCH)).of_trial(0)
    assert (stretch.trial, stretch.instructions) == (0, 100)
    assert stretch.kernel == Moves(5, 2, 7, 1, 9)
    assert stretch.programs == Moves(moves=1)
    # The same instruction with and without a lock.
    assert stretch.sites == {0xFFFFFFFF81000010: Moves(moves=5, locked=7)}
    movers = (Mover(0xFFFFFFFF81000010, 0xFFFFFFFF81000200, 0, 4), Mover(0x401000, 0, 24, 1))
    assert stretch.lines == [MovedLine(0xFFFFFFFF82000040, 5, 2, 3, 620, movers)]
    # A CPU that slept was not busy.
    assert (stretch.elapsed_ticks, stretch.busy_ticks) == (100, 165)


class Growing(io.RawIOBase):
    """A file that grows by one part for each time that it is read."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = list(parts)

    def read(self, size: int = -1) -> bytes:
        return self._parts.pop(0) if self._parts else b""


def test_a_reader_that_is_late_loses_nothing() -> None:
    next_one = STRETCH.replace(b"stretch 0 0", b"stretch 1 0")
    last = STRETCH.replace(b"stretch 0 0", b"stretch 2 0")
    # At the end of the first trial, the second one is there, and half of the third.
    reader = StretchReader(Growing(STRETCH + next_one + last[:50], last[50:]))  # type: ignore[arg-type]
    assert [stretch.trial for stretch in reader.of_trial(0)] == [0]
    assert [stretch.trial for stretch in reader.of_trial(1)] == [1]
    (third,) = reader.of_trial(2)
    assert third.kernel == Moves(5, 2, 7, 1, 9)
    assert reader.of_trial(3) == []


def test_the_rules_of_cache_lines(tmp_path: Path) -> None:
    plugins = data_dir("plugins")
    program = tmp_path / "test"
    sources = [plugins / "tests" / "test_contention.c"]
    sources += [plugins / "contention" / name for name in ("callers.c", "lines.c", "x86.c")]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    subprocess.run(["gcc", *flags, "-o", program, *sources], check=True)
    subprocess.run([program], check=True)
