"""Apply a series to copies of the files that it touches, never to a source tree.

A series that does not apply therefore changes nothing. A tree of hard links gets new files
that replace the old ones, so that the tree it was linked from does not change.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from kteardown.errors import BuildError, InputError
from kteardown.kernels.toolchain import capture

_FAILED_AT = re.compile(r"^error: patch failed: (.+):(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class PatchedFiles:
    """The outcome of a series: files changed or created, which are below ``folder``, and files removed."""

    folder: Path
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def changes_kconfig(self) -> bool:
        """Whether a Kconfig file was changed, created or removed."""
        return any(PurePosixPath(name).name.startswith("Kconfig") for name in (*self.changed, *self.removed))


def apply(tree: Path, patches: Sequence[Path], folder: Path, source: str) -> PatchedFiles:
    """Apply ``patches`` in order, without fuzz, to copies in the empty ``folder``.

    ``source`` names the tree in messages. Raises BuildError, which names the patch, the file and
    the hunk, if a patch does not apply, and InputError if a file is not a patch.
    """
    touched: dict[str, None] = {}
    for patch in patches:
        parsed = _parse(patch)
        for name in _names(parsed, str(patch)):
            if name not in touched and (tree / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree / name, folder / name)
                shutil.copymode(tree / name, folder / name)
            touched[name] = None
        _apply_one(patch, parsed, folder, source)
    changed = tuple(name for name in touched if (folder / name).is_file())
    removed = tuple(name for name in touched if name not in changed and (tree / name).exists())
    return PatchedFiles(folder, changed, removed)


def files_in(patch: Path, called: str = "") -> list[tuple[str, bool]]:
    """Return the name of each file that ``patch`` touches, and whether it exists both before and after.

    Raises InputError if ``patch`` is not a patch; the message has its path, or what it is ``called``.
    """
    called = called or str(patch)
    parsed = _parse(patch, called)
    stays = {file.path: file.is_modified_file for file in parsed}
    return [(name, stays.get(name, False)) for name in dict.fromkeys(_names(parsed, called))]


def hunks_of(patch: Path) -> dict[str, list[str]]:
    """Return the text of every hunk of ``patch`` by the name of its file. Raises InputError."""
    return {file.path: [str(hunk) for hunk in file] for file in _parse(patch)}


def added_by(patch: Path) -> list[str]:
    """Return the files that ``patch`` creates. Raises InputError."""
    return [file.path for file in _parse(patch) if file.is_added_file]


def _parse(patch: Path, called: str = "") -> list[PatchedFile]:
    try:
        # Latin-1 maps every byte to a character. This text is only inspected; git reads the file itself.
        parsed = list(PatchSet.from_filename(str(patch), encoding="latin-1", newline="\n"))
    except UnidiffParseError as error:
        raise InputError(
            f"{called or patch} is a damaged patch: {str(error).strip()}",
            hint="save the patch again, without line wrapping.",
        ) from error
    if not parsed:
        raise InputError(
            f"{called or patch} does not contain a diff",
            hint="give a patch in the format of `git format-patch`.",
        )
    return parsed


def _names(parsed: Sequence[PatchedFile], called: str) -> list[str]:
    names = []
    for file in parsed:
        for side in (file.source_file, file.target_file):
            if side == "/dev/null":
                continue
            name = re.sub(r"^[ab]/", "", side.split("\t")[0])
            if name.startswith("/") or ".." in PurePosixPath(name).parts:
                raise InputError(
                    f"{called} changes a file outside of the kernel tree: {name}",
                    hint="make the patch again with `git format-patch` at the top of the tree.",
                )
            names.append(name)
    return names


def _apply_one(patch: Path, parsed: Sequence[PatchedFile], folder: Path, source: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    # Inside a repository, git would take the paths as relative to its top and silently skip them.
    environment |= {"GIT_CEILING_DIRECTORIES": str(folder.parent), "LC_ALL": "C"}
    done = capture(["git", "apply", "--whitespace=nowarn", str(patch)], env=environment, cwd=folder)
    if done.returncode == 0:
        return
    lines = [f"{patch.name} does not apply to {source}:"]
    failures = [(name, int(line)) for name, line in _FAILED_AT.findall(done.stderr)]
    for name, line in failures:
        lines += _explain(parsed, name, line)
    if not failures:
        lines += [f"  {line.removeprefix('error: ')}" for line in done.stderr.strip().splitlines()]
    raise BuildError(
        "\n".join(lines),
        hint="port the patch to this source, or choose a source that it was written for.",
    )


def _explain(parsed: Sequence[PatchedFile], name: str, line: int) -> list[str]:
    """Return lines that name the file and the hunk at ``line``, and show the text that the hunk expects."""
    for file in parsed:
        if file.path != name:
            continue
        for number, hunk in enumerate(file, 1):
            if hunk.source_start == line:
                header = f"@@ -{hunk.source_start},{hunk.source_length} @@ {hunk.section_header}".rstrip()
                expected = [f"    {text.rstrip()}" for text in hunk.source[:12]]
                return [f"  {name}, hunk {number} of {len(file)} ({header}), expects:", *expected]
    return [f"  {name}, near line {line}"]
