"""Change bytes of small inputs at random, and read them: a reader may raise nothing but KteardownError.

Usage: PYTHONPATH=src python bench/fuzz_readers.py --seconds 600 [--seed N] [TARGET ...]
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import KteardownError
from kteardown.kernels import apply_patches, series
from kteardown.patches.find_base import TriedSource, code_only, failing_hunks, merge, with_less_context
from kteardown.patches.posted import read
from kteardown.progress import SilentReporter

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
    b"99999999999999999999|-1|\0|\xff|\r|\n|\n\n|../|/|\\|a/|b/|@@ -1 +1 @@\n|--- |+++ |/dev/null|"
    b"diff --git |120000|160000|.git/|\x1b[2J|rename from |copy to |new file mode |GIT binary patch\n|From |"
    b"literal 3\n|=?utf-8?b?|boundary=|Content-Type: multipart/mixed; |charset=|base64|[PATCH 0/3]|\x1f\x8b"
).split(b"|")


def read_mail(content: bytes, folder: Path) -> None:
    """Read a mail or a mailbox, and what is printed of its patches."""
    (folder / "mail").write_bytes(content)
    found = read(str(folder / "mail"), cache_dir=folder / "cache", reporter=SilentReporter())
    for patch in found.patches:
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


TARGETS: dict[str, tuple[Callable[[bytes, Path], None], Sequence[bytes]]] = {
    "mail": (read_mail, [path.read_bytes() for path in MAILS if path.is_file()]),
    "patch": (read_patch, [PATCH, PATCH[PATCH.index(b"diff") :]]),
}
"""By name: what reads the bytes, with a new folder for its files, and the inputs that are changed."""


def changed(content: bytes, chance: random.Random) -> bytes:
    """Return ``content`` with up to five changes: words put in, and parts removed, repeated or altered."""
    text = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + int(chance.expovariate(0.1)))
        part = bytes(text[start:end])
        word = chance.choice(WORDS) * chance.choice((1, 1, 1, 500))
        text[start:end] = chance.choice((word, word + part, b"", part * 3, chance.randbytes(len(part))))
    return bytes(text)


def main() -> None:
    """Read changed inputs until the time is over, and print the counts and the first input that crashes."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in (("--seconds", 60), ("--seed", 0)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    chance, counts, end = random.Random(arguments.seed), Counter[str](), time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        name = chance.choice(arguments.targets)
        function, inputs = TARGETS[name]
        content = changed(chance.choice(inputs), chance)
        outcome = "read"
        with TemporaryDirectory(prefix="kteardown-fuzz-") as folder:
            try:
                function(content, Path(folder))
            except KteardownError as error:
                outcome = type(error).__name__
            except Exception:
                Path(f"crash-{name}").write_bytes(content)
                print(f"the input is in crash-{name}")
                raise
        counts[f"{name}: {outcome}"] += 1
    print("\n".join(f"{count:8} {what}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
