"""Small threads of mails, and the file to which their patches apply."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from kteardown.kernels import apply_patches
from kteardown.patches.posted import PostedSeries, read_series
from kteardown.progress import SilentReporter

AUTHOR = "A. Author <author@example.org>"


def hunk(number: int) -> str:
    return (
        f"@@ -{4 * number + 1},3 +{4 * number + 1},3 @@\n \tint before_{number};\n-\tint "
        f"old_{number};\n"
        f"+\tint new_{number};\n \tint after_{number};\n"
    )


def diff(number: int, old: str = "a/kernel/ours.c", new: str = "b/kernel/ours.c") -> str:
    return f"diff --git {old} {new}\n--- {old}\n+++ {new}\n{hunk(number)}"


def mail(
    subject: str,
    text: str,
    *,
    day: int = 1,
    month: str = "May",
    sender: str = AUTHOR,
    name: str = "",
) -> str:
    text = re.sub("^From ", ">From ", text, flags=re.MULTILINE)
    name = name or f"{abs(hash((subject, day, month)))}@example.org"
    return (
        f"From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: {sender}\nDate: {day} {month} 2026 "
        "10:00:00 +0000\n"
        f"Subject: {subject}\nMessage-ID: <{name}>\nContent-Type: text/plain; "
        f"charset=UTF-8\n\n{text}\n"
    )


def patch(subject: str, number: int, **more: int | str) -> str:
    return mail(subject, f"Why.\n---\n{diff(number)}-- \n2.50\n", **more)  # type: ignore[arg-type]


def posted(mails: Sequence[str] | str, folder: Path, sources: Sequence[str] = ()) -> PostedSeries:
    file = folder / "given.mbox"
    file.write_bytes("".join(mails).encode())
    return read_series(
        str(file), cache_dir=folder / "cache", reporter=SilentReporter(), sources=sources
    )


def tree_below(tmp_path: Path) -> Path:
    """The file to which every ``diff`` applies."""
    tree = tmp_path / "tree"
    (tree / "kernel").mkdir(parents=True)
    lines = [
        f"\tint {word}_{n};\n" for n in range(40) for word in ("before", "old", "after", "between")
    ]
    (tree / "kernel" / "ours.c").write_text("".join(lines))
    (tree / "Documentation").mkdir()
    (tree / "Documentation" / "ours.rst").write_text("one\ntwo\nthree\n")
    return tree


def applied(series: PostedSeries, tree: Path, out: Path) -> tuple[str, ...]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    return apply_patches.apply(tree, series.patches, out, "here").changed


def numbers(series: PostedSeries) -> list[str]:
    return [subject.removeprefix("ours: ") for subject in series.subjects]
