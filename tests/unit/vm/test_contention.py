"""What the plugin of the contention clock writes, and its rules of cache lines."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import SilentReporter
from kteardown.vm.contention import MovedLine, Mover, Moves, StretchReader, need_turns

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
    assert (stretch.elapsed_ticks, stretch.busy_ticks) == (100, {0: 100, 1: 65})


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


OTHER_QEMU = """\
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define PLUGIN "file="

/* Loads a plugin as QEMU does, and exports nothing that ends the turns of CPUs. */
int main(int argc, char **argv)
{
	const struct {
		const char *target;
		int lowest, newest;
	} info = {"x86_64", 2, 4};
	int (*install)(unsigned long id, const void *info, int argc, char **argv);
	void *plugin;

	if (strstr(argv[argc - 1], "coverage")) {
		fputs("the plugin needs a minimum version of 2\\n", stderr);
		return 1;
	}
	if (!strcmp(argv[argc - 1], "--version")) {
		puts("QEMU emulator version 99.1.2");
		return 0;
	}
	plugin = dlopen(argv[argc - 1] + strlen(PLUGIN), RTLD_LAZY);
	install = plugin ? dlsym(plugin, "qemu_plugin_install") : NULL;
	return install ? -install(1, &info, 0, NULL) : 2;
}
"""


def test_a_qemu_that_exports_too_little_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "other_qemu.c"
    source.write_text(OTHER_QEMU)
    program = tmp_path / "qemu-system-x86_64"
    subprocess.run(["gcc", "-o", program, source, "-ldl"], check=True)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(LabError, match=r"qemu-system-x86_64 99\.1\.2: .* current_cpu"):
        need_turns("x86_64", cache=tmp_path, reporter=SilentReporter())


def test_the_qemu_of_this_host_can_end_turns() -> None:
    need_turns("x86_64", cache=cache_dir(), reporter=SilentReporter())
