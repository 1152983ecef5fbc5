from __future__ import annotations

from kteardown.kernels.make import errors_of

LOG = """  CC      kernel/fork.o
  CC      kernel/power/process.o
../kernel/power/process.c: In function 'freeze':
../kernel/power/process.c:42:5: error: expected ';' before '}' token
make[4]: *** [../scripts/Makefile.build:229: kernel/power/process.o] Error 1
make[3]: *** [../scripts/Makefile.build:478: kernel/power] Error 2
  CC      kernel/exit.o
"""


def test_the_compilers_errors_are_told_without_makes_summary() -> None:
    assert errors_of(LOG) == ["../kernel/power/process.c:42:5: error: expected ';' before '}' token"]


def test_makes_own_errors_are_told_where_there_are_no_others() -> None:
    log = "make[2]: *** No rule to make target 'x.o', needed by 'built-in.a'.  Stop.\n"
    assert errors_of(log) == [log.strip()]


def test_a_log_without_errors_gives_its_end() -> None:
    assert errors_of("\n".join(f"  CC      {number}.o" for number in range(30)), 2) == [
        "  CC      28.o",
        "  CC      29.o",
    ]
