"""The layout twin: base with a function that nobody calls, in every file that a series touches.

Moving code alone changes how fast a kernel runs: where loops and branches lie in cache lines and in the
predictor's tables decides as much as many patches do (T. Mytkowicz, A. Diwan, M. Hauswirth, P. Sweeney,
"Producing wrong data without doing anything obviously wrong!", ASPLOS 2009). What base does beside its
layout twin is what a series would show that moved code and did nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.errors import BuildError
from kteardown.kernels import apply_patches, backports, cache_folder
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.record import LAYOUT
from kteardown.progress import SilentReporter

_PREFIX = "kteardown_layout_"
_CONTEXT = 3
# 37 nops and the return: 48 bytes of x86 and about 160 of arm64 after alignment to 16, so that what
# follows keeps its alignment and does not keep its place in a cache line of 64.
_NOPS = 37


def request(
    base: KernelRequest, series: Sequence[KernelRequest], sources: Sources, *, unpack: bool = True
) -> KernelRequest | None:
    """The layout twin of ``base`` for these variants of it; None where they touch no .c file of it.

    Without ``unpack`` also None where its patch would have to be made from a source's tree first.
    Raises InputError for a file that is no patch, LabError where the source cannot be unpacked.
    """
    mine = [variant for variant in series if variant.source == base.source]
    source = (sources.identify if unpack else sources.known)(base.source) if mine else None
    if source is None:
        return None
    files = touched_files([backports.settle(variant, source, sources).patches for variant in mine])
    if not files:
        return None
    path = patch_path(sources.folder, source.id, files)
    if not path.is_file() and not (unpack and _write(path, files, sources.tree(source))):
        return None
    return replace(base, name=LAYOUT, patches=(path,), series=LAYOUT)


def touched_files(series: Iterable[Sequence[Path]]) -> tuple[str, ...]:
    """The .c files that are there before and after every series, and that one of them changes; sorted.

    Raises InputError for a file that is no patch.
    """
    changed: set[str] = set()
    made_or_gone: set[str] = set()
    for patches in series:
        for patch in patches:
            for name, stays in apply_patches.files_of(patch):
                (changed if stays else made_or_gone).add(name)
    return tuple(sorted(name for name in changed - made_or_gone if name.endswith(".c")))


def patch_path(cache_dir: Path, source_id: str, files: Sequence[str]) -> Path:
    """Where the patch for these files of this source is kept."""
    made_of = json.dumps([_function(""), source_id, list(files)]).encode()
    return cache_dir / "layout" / hashlib.sha256(made_of).hexdigest()[:16] / "layout-twin.patch"


def check(base: KernelImage, twin: KernelImage) -> None:
    """Hold the built twin against base: the functions are there, and what follows them moved.

    Raises BuildError where nothing did.
    """
    before, after = (_code(image.image.with_name("System.map")) for image in (base, twin))
    added = [index for index, (name, _) in enumerate(after) if name.startswith(_PREFIX)]
    behind = [after[index + 1] for index in added if index + 1 < len(after)]
    moved = [name for name, address in behind if dict(before).get(name, address) != address]
    if not moved:
        raise BuildError(
            "the layout twin lays nothing out differently: "
            + ("what follows its function did not move" if added else "the kernel has none of its functions"),
            hint="Check that the configuration compiles what the series changes.",
        )


def _write(path: Path, files: Sequence[str], tree: Path) -> bool:
    """Write the patch for those of ``files`` that ``tree`` has; False where it has none."""
    diffs = [_diff(tree / name, name) for name in files if (tree / name).is_file()]
    with cache_folder.locked(path.parent, SilentReporter(), "write the layout twin's patch"):
        if diffs and not path.is_file():
            with cache_folder.published(path.parent) as folder:
                (folder / path.name).write_text(_HEAD + "".join(diffs), encoding="latin-1", newline="\n")
    return bool(diffs)


def _function(file: str) -> str:
    name = _PREFIX + re.sub(r"\W", "_", file.removesuffix(".c"))
    # no_reorder: in front of the file's other code; the compiler orders functions as it likes else. With
    # underscores, since the kernel has macros of the plain words.
    return (
        f"static void __attribute__((__used__, __noinline__, __no_reorder__)) {name}(void)\n"
        "{\n"
        f'\tasm volatile(".rept {_NOPS}\\n\\tnop\\n\\t.endr");\n'
        "}\n"
    )


_HEAD = """\
Subject: a function that nobody calls, in every file that the series touches

The layout twin: base that does what base does, with its code elsewhere.
---
"""


def _diff(path: Path, name: str) -> str:
    with path.open(encoding="latin-1", newline="\n") as stream:
        context = [line for line, _ in zip(stream, range(_CONTEXT), strict=False)]
    added = _function(name).splitlines()
    head = f"--- a/{name}\n+++ b/{name}\n@@ -1,{len(context)} +1,{len(context) + len(added)} @@\n"
    kept = "".join(f" {line}" if line.endswith("\n") else f" {line}\n" + _NO_NEWLINE for line in context)
    return head + "".join(f"+{line}\n" for line in added) + kept


_NO_NEWLINE = "\\ No newline at end of file\n"


def _code(system_map: Path) -> list[tuple[str, str]]:
    """Names and addresses of code, in the order of the addresses."""
    lines = (line.split() for line in system_map.read_text().splitlines())
    return [(words[2], words[0]) for words in lines if len(words) == 3 and words[1] in "tT"]
