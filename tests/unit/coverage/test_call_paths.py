"""The calls in a program lead back to the system call that a function is reached from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kteardown.coverage.attribute import FunctionId
from kteardown.coverage.call_paths import call_paths

SOURCE = """\
#define NOINLINE __attribute__((noinline))
volatile int n;
static NOINLINE void leaf(int a) { n = a; n = a + 1; n = a + 2; }
static inline __attribute__((always_inline)) void middle(int a) { leaf(a); n = a; }
NOINLINE void worker(int a) { middle(a); middle(a + 1); n = 3; }
NOINLINE void __do_sys_kill(int a) { worker(a); n = 1; }
static NOINLINE void behind(int a) { n = a; n = a - 1; n = a - 2; }
NOINLINE void method(int a) { behind(a); n = 2; }
void (*volatile pointer)(int) = method;
int main(void) { __do_sys_kill(1); pointer(2); return 0; }
"""


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(SOURCE)
    flags = ["-g1", "-O2", "-no-pie", "-fno-optimize-sibling-calls", "-fno-ipa-cp"]
    flags += [f"-fdebug-prefix-map={tmp_path}=."]
    subprocess.run(["gcc", *flags, "-o", "vmlinux", "p.c"], cwd=tmp_path, check=True)
    symbols = subprocess.run(
        ["nm", "vmlinux"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    (tmp_path / "System.map").write_text(symbols.stdout)
    wanted = [FunctionId("p.c", name) for name in ("leaf", "middle", "behind", "method")]
    found = call_paths(wanted, tmp_path)
    assert [str(found[one]) for one in wanted[:3]] == [
        "kill(2) -> __do_sys_kill -> worker -> middle -> leaf",
        "kill(2) -> __do_sys_kill -> worker -> middle",
        "a call through a pointer -> method -> behind",
    ]
    assert wanted[3] not in found
