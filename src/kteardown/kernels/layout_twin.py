"""The layout twin: base with a function that is never called in each file that a series touches.

Moving code alone changes how fast a kernel runs: the placement of loops and branches in cache lines
and in the tables of the branch predictor matters as much as many patches do (T. Mytkowicz, A.
Diwan, M. Hauswirth, P. Sweeney, "Producing wrong data without doing anything obviously wrong!",
ASPLOS 2009). The difference between base and its layout twin is what a series would show that moves
code and does nothing else.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kteardown.errors import BuildError
from kteardown.kernels import apply_patches, build_plan, cache_folder
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.record import LAYOUT
from kteardown.paths import key_of
from kteardown.progress import SilentReporter

_PREFIX = "kteardown_layout_"
_CONTEXT = 3
# 37 nops and the return are 48 bytes on x86 and about 160 on arm64 after alignment to 16. The code
# that follows keeps its alignment, but not its offset in a cache line of 64 bytes.
_NOPS = 37


def request(
    base: KernelRequest, series: Sequence[KernelRequest], sources: Sources, *, unpack: bool = True
) -> KernelRequest | None:
    """Return the request for the layout twin of ``base`` for these variants; None if they touch no
    .c file.

    Without ``unpack``, also return None if the patch of the layout twin has not been written yet,
    which needs the source tree. Raises InputError for a file that is not a patch, LabError if the
    source cannot be unpacked.
    """
    variants = [variant for variant in series if variant.source == base.source]
    source = (
        (sources.identify if unpack else sources.identify_offline)(base.source)
        if variants
        else None
    )
    if source is None:
        return None
    files = touched_files(
        [build_plan.choose_backport(variant, source, sources).patches for variant in variants]
    )
    if not files:
        return None
    inputs = json.dumps([_function(""), source.id, list(files)]).encode()
    path = sources.folder / "layout" / key_of(inputs) / "layout-twin.patch"
    if not path.is_file() and not (unpack and _write(path, files, sources.tree(source))):
        return None
    cache_folder.hold(path.parent)
    return replace(base, name=LAYOUT, patches=(path,), series=LAYOUT)


def touched_files(series: Iterable[Sequence[Path]]) -> tuple[str, ...]:
    """Return the .c files, sorted, that some series changes and that no series creates or removes.

    Raises InputError for a file that is not a patch.
    """
    changed: set[str] = set()
    created_or_removed: set[str] = set()
    for patches in series:
        for patch in patches:
            for name, stays in apply_patches.files_in(patch):
                (changed if stays else created_or_removed).add(name)
    return tuple(sorted(name for name in changed - created_or_removed if name.endswith(".c")))


def check_moved(base: KernelImage, twin: KernelImage) -> None:
    """Check that the built twin contains the added functions and that the code after one of them
    moved.

    Raises BuildError if no code moved.
    """
    maps = (image.image.with_name("System.map").read_text().splitlines() for image in (base, twin))
    # Names and addresses of the functions, in the order of the addresses.
    before, after = (
        [
            (words[2], words[0])
            for words in map(str.split, lines)
            if len(words) == 3 and words[1] in "tT"
        ]
        for lines in maps
    )
    added = [index for index, (name, _) in enumerate(after) if name.startswith(_PREFIX)]
    following = [after[index + 1] for index in added if index + 1 < len(after)]
    moved = [name for name, address in following if dict(before).get(name, address) != address]
    if not moved:
        raise BuildError(
            "the layout twin did not move any code: "
            + (
                "the code after its functions is at the same addresses as in base"
                if added
                else "its functions are not in the kernel"
            ),
            hint="check that the configuration compiles the files that the series changes.",
        )


def _write(path: Path, files: Sequence[str], tree: Path) -> bool:
    """Write the patch for those of ``files`` that exist in ``tree``; return False if none of them
    exists."""
    diffs = [_diff(tree / name, name) for name in files if (tree / name).is_file()]
    with cache_folder.locked(path.parent, SilentReporter(), "write the layout twin's patch"):
        if diffs and not path.is_file():
            with cache_folder.published(path.parent) as folder:
                (folder / path.name).write_text(
                    _HEAD + "".join(diffs), encoding="latin-1", newline="\n"
                )
    return bool(diffs)


def _function(file: str) -> str:
    name = _PREFIX + re.sub(r"\W", "_", file.removesuffix(".c"))
    # no_reorder keeps the function in front of the other code of the file; the compiler would be
    # free to move it. The attributes have underscores because the kernel defines macros with the
    # plain names.
    return (
        f"static void __attribute__((__used__, __noinline__, __no_reorder__)) {name}(void)\n"
        "{\n"
        f'\tasm volatile(".rept {_NOPS}\\n\\tnop\\n\\t.endr");\n'
        "}\n"
    )


_HEAD = """\
Subject: add a function that is never called to each file that the series touches

This is the layout twin: it does what base does, with its code at other addresses.
---
"""


def _diff(path: Path, name: str) -> str:
    with path.open(encoding="latin-1", newline="\n") as stream:
        context = [line for line, _ in zip(stream, range(_CONTEXT), strict=False)]
    added = _function(name).splitlines()
    head = f"--- a/{name}\n+++ b/{name}\n@@ -1,{len(context)} +1,{len(context) + len(added)} @@\n"
    ends = ("" if line.endswith("\n") else "\n\\ No newline at end of file\n" for line in context)
    unchanged = "".join(f" {line}{end}" for line, end in zip(context, ends, strict=True))
    return head + "".join(f"+{line}\n" for line in added) + unchanged
