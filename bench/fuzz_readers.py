"""Change bytes of small inputs at random, and read them: a reader may raise nothing but
KteardownError.

Each case is read in a process of its own. Its processor time and memory are measured, with those of
the programs that it starts. Some are made as long as a mail may be. The input of a case that
crashes, or takes more than 2 s or 300 MB, is kept. A case is made from the seed and its number, so
that ``--first`` goes on where another run ended.

Usage: PYTHONPATH=src python bench/fuzz_readers.py --seconds 600 [--seed N] [--first N] [TARGET ...]
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.coverage import call_paths, changed
from kteardown.coverage.direct_calls import DirectCalls
from kteardown.errors import KteardownError
from kteardown.kernels import apply_patches, object_changes, series, source_lines
from kteardown.patches import changed_lines, makefiles, renames
from kteardown.patches.failing_hunks import failing_hunks
from kteardown.patches.find_base import code_only
from kteardown.patches.merging import merge, with_less_context
from kteardown.patches.posted import read_series
from kteardown.patches.tried_source import TriedSource
from kteardown.progress import SilentReporter
from kteardown.script.elf import read_elf
from kteardown.vm import kernel_log
from kteardown_watch.archive import MOST_MAILS, as_mbox, numbers_of_threads

MAILS = sorted((Path(__file__).parents[1] / "tests" / "data" / "mail").iterdir())
PATCH = b"""\
From: A <a@example.org>
Subject: [PATCH v2 1/2] a: b

---
diff --git a/kernel/ours.c b/kernel/ours.c
--- a/kernel/ours.c
+++ b/kernel/ours.c
@@ -1,3 +1,3 @@
 one
-two
+2
 three
diff --git a/kernel/old.c b/include/link.h
similarity index 100%
rename from kernel/old.c
rename to include/link.h
diff --git "a/z\\303\\266.h" "b/z\\303\\266.h"
new file mode 120000
--- /dev/null
+++ "b/z\\303\\266.h"
@@ -0,0 +1 @@
+kernel/ours.c
"""
# What parsers look for; put in where random bytes seldom come.
WORDS = (
    b"99999999999999999999|-1|\0|\xff|\r|\n|\n\n|../|/|\\|a/|b/|@@ -1 +1 @@\n|--- |+++ "
    b"|/dev/null|diff --git |120000|160000|.git/|\x1b[2J|rename from |copy to |new file mode |GIT "
    b"binary patch\n|From |literal 3\n|=?utf-8?b?|boundary=|Content-Type: multipart/mixed; "
    b"|charset=|base64|[PATCH 0/3]|\x1f\x8b"
).split(b"|")


def read_mail(content: bytes, folder: Path) -> None:
    """Read a mail or a mailbox, and what is printed of its patches."""
    (folder / "mail").write_bytes(content)
    posted = read_series(
        str(folder / "mail"), cache_dir=folder / "cache", reporter=SilentReporter()
    )
    for patch in posted.patches:
        series.subject(patch)


def read_patch(content: bytes, folder: Path) -> None:
    """Apply a patch to a small tree, find the hunks that fail the second time, and merge it."""
    tree, work, patch = folder / "tree", folder / "work", folder / "0001-x.patch"
    for new in (tree / "kernel", work):
        new.mkdir(parents=True)
    for name in ("ours.c", "old.c"):
        (tree / "kernel" / name).write_text("one\ntwo\nthree\n")
    patch.write_bytes(content)
    apply_patches.files_in(patch)
    code_only([patch])
    failing_hunks(TriedSource("tree", "tree", "fails"), tree, [patch, patch])
    with_less_context([patch], tree)
    merge([patch], tree, [tree], [])
    apply_patches.apply(tree, [patch], work, "tree")


def read_archive(content: bytes, folder: Path) -> None:
    """Find the threads of a mailing list, of which each line "From " begins a mail."""
    mails = content.split(b"\nFrom ")[:MOST_MAILS]
    for thread in numbers_of_threads(mails):
        as_mbox([mails[number] for number in thread])


def read_console(content: bytes, folder: Path) -> None:
    """Find the problems that a guest's kernel reported."""
    kernel_log.problems(content.decode(errors="replace"))


def read_tree(content: bytes, folder: Path) -> None:
    """Find what a makefile builds, and what changed in a source file."""
    text = content.decode("latin-1")
    list(makefiles._parse(text[: makefiles._MOST_TEXT]))
    changed_lines.missing_symbols("", text, {})
    renames.edits(text[: len(text) // 2], text[len(text) // 2 :])
    changed.items(text)


def read_objects(content: bytes, folder: Path) -> None:
    """Read what objdump and addr2line print of an object."""
    text = content.decode(errors="replace")
    object_changes._ADDRESS.sub("", text)
    object_changes._FUNCTION.findall(text)
    list(call_paths._CALL.finditer(text))
    source_lines.parse_addr2line(text)


def read_headers(content: bytes, folder: Path) -> None:
    """Read the headers of a program and of a vmlinux."""
    (folder / "vmlinux").write_bytes(content)
    DirectCalls(folder / "vmlinux")
    read_elf(content, "a program")


CONSOLE = (
    b"[    1.0] BUG: KASAN: use-after-free in f+0x1/0x2\n[    1.1] CPU: 0 PID: 1 Comm: a [a:1]\n"
)
OBJECTS = (
    b"a.o:     file format elf64-x86-64\n\n0000 <f>:\n   0:\te8 00\tcall 5 <f+0x5>\n0x00\nf at "
    b"a.c:1\n"
)
TREE = (
    b"obj-$(CONFIG_A) += a.o b/\na-y := c.o $(B)/d.o\nifdef CONFIG_C\n#if defined(CONFIG_D)\nint "
    b"f(void) { }"
)
_MAIL = 32_000_000
_OTHER = 4_000_000
"""How long a mail may be; and how long a case of the other texts is at most, which are longer only
in sum."""
TARGETS: dict[str, tuple[Callable[[bytes, Path], None], Sequence[bytes], int]] = {
    "mail": (read_mail, [path.read_bytes() for path in MAILS if path.is_file()], _MAIL),
    "patch": (read_patch, [PATCH, PATCH[PATCH.index(b"diff") :]], _MAIL),
    "archive": (read_archive, [path.read_bytes() for path in MAILS if path.is_file()], _MAIL),
    "console": (read_console, [CONSOLE], _OTHER),
    "tree": (read_tree, [TREE], _OTHER),
    "objects": (read_objects, [OBJECTS], _OTHER),
    "headers": (read_headers, [Path("/bin/true").read_bytes()], _OTHER),
}
"""By name: what reads the bytes, the inputs that are changed, and the largest number of bytes."""
MOST_CPU_S = 2.0
MOST_MB = 300


def changed_bytes(content: bytes, chance: random.Random, longest: int = _MAIL) -> bytes:
    """Return ``content`` with up to five changes: words put in, and parts removed, repeated or
    altered.

    In one of five, a part is repeated until the text has up to ``longest`` bytes.
    """
    text = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + int(chance.expovariate(0.1)))
        part = bytes(text[start:end])
        word = chance.choice(WORDS) * chance.choice((1, 1, 1, 500))
        text[start:end] = chance.choice(
            (word, word + part, b"", part * 3, chance.randbytes(len(part)))
        )
    if chance.random() < 0.2:
        length = int(10 ** chance.uniform(4, 7.5))
        start = chance.randint(0, len(text))
        part = bytes(text[start : start + int(chance.expovariate(0.02))])
        unit = chance.choice(
            (chance.choice(WORDS), part, part + chance.choice(WORDS), b"a", b" ", b"--- a")
        )
        text[start:start] = (unit or b"(") * (length // max(len(unit), 1))
    return bytes(text[:longest])


@dataclass(frozen=True)
class Outcome:
    """The end of a case, the processor time and the memory of its process and the programs it
    started."""

    text: str
    cpu_s: float
    memory_mb: float


def outcome_of(name: str, content: bytes) -> Outcome:
    """Read ``content`` in a process of its own."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        text = "read"
        with TemporaryDirectory(prefix="kteardown-fuzz-") as folder:
            try:
                TARGETS[name][0](content, Path(folder))
            except KteardownError as error:
                text = type(error).__name__
            except BaseException:
                text = "crash\n" + traceback.format_exc(limit=-6)
        os.write(writable, text.encode(errors="replace")[:4000])
        os._exit(0)
    os.close(writable)
    with open(readable, "rb") as stream:
        text = stream.read().decode()
    _, status, used = os.wait4(child, 0)
    text = text or f"crash\nit ended with status {status}"
    return Outcome(text, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    """Read changed inputs until the time is over, and print the counts and each input that is a
    fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("--seconds", 60), ("--seed", 0), ("--first", 0)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    arguments = parser.parse_args()
    counts, worst = Counter[str](), {name: (0.0, 0.0) for name in arguments.targets}
    faults = 0
    number = arguments.first
    end = time.monotonic() + arguments.seconds
    shown = time.monotonic()
    while time.monotonic() < end:
        chance = random.Random(f"{arguments.seed}:{number}")
        name = chance.choice(arguments.targets)
        content = changed_bytes(chance.choice(TARGETS[name][1]), chance, TARGETS[name][2])
        outcome = outcome_of(name, content)
        counts[f"{name}: {outcome.text.splitlines()[0]}"] += 1
        worst[name] = max(worst[name][0], outcome.cpu_s), max(worst[name][1], outcome.memory_mb)
        too_much = outcome.cpu_s > MOST_CPU_S or outcome.memory_mb > MOST_MB
        if too_much or outcome.text.startswith("crash"):
            faults += 1
            kept = Path(f"crash-{name}-{number}")
            kept.write_bytes(content)
            print(f"seed {arguments.seed}, case {number}, {len(content):,} bytes, kept in {kept}:")
            print(f"{outcome.cpu_s:.1f} s, {outcome.memory_mb:.0f} MB: {outcome.text}", flush=True)
        number += 1
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(
                f"seed {arguments.seed}: {number - arguments.first} cases, next {number}",
                flush=True,
            )
    print("\n".join(f"{count:8} {what}" for what, count in sorted(counts.items())))
    for name, (cpu_s, memory_mb) in worst.items():
        print(f"{name}: at most {cpu_s:.2f} s and {memory_mb:.0f} MB for a case")
    print(
        f"seed {arguments.seed}, {number - arguments.first} cases, {faults} faults, the next is "
        f"{number}"
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
