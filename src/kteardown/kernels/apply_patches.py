"""Apply a series to copies of the files that it touches, never to a source tree.

A series that does not apply therefore changes nothing. A tree of hard links gets new files
that replace the old ones, so that the tree it was linked from does not change.
"""

import errno
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from unidiff.patch import Hunk, PatchSet

from kteardown.errors import BuildError, InputError, damaged
from kteardown.kernels import git
from kteardown.kernels.hunk_places import Misplaced, misplaced

_MOST_BYTES = 64_000_000
_MOST_LINES = 1_000_000
_MOST_FILES = 20_000
_MOST_OUTSIDE = 200_000
_OUTSIDE = re.compile(rb"^[^ +\-\\@\n]", re.MULTILINE)
"""A line that is in no hunk."""
_LONG_LINE = re.compile(rb"^[^\n]{1000000}", re.MULTILINE)
_LONG_NUMBER = re.compile(rb"^@@ [^@\n]*\d{10}", re.MULTILINE)
# git looks for the name of a file at each space of the first line, up to its end, and keeps a name
# for each folder of the others.
_LONG_HEADER = re.compile(
    rb"^(?:diff --git (?:[^ \n]*+ ){20}"
    rb"|(?:diff --git|(?:rename|copy) (?:from|to)) [^\n]{4000}"
    rb"|(?:---|\+\+\+) (?:[^/\n]*+/){200})",
    re.MULTILINE,
)
_SENT_DAMAGED = (
    "If it was sent like this, the mail program of its author damaged it: ask the author for a "
    "branch or an attachment."
)
_SAVE_AGAIN = f"save the patch again, without line wrapping. {_SENT_DAMAGED}"
_CORRUPT = re.compile(r"corrupt patch at (?:line |\S*:)(\d+)")
_AS_SENT = (
    "text follows the diff too early, or lines were wrapped, cut or joined: give the mail as it "
    f"was sent (its source, or with `b4 mbox`), or put only its diff into a file. {_SENT_DAMAGED}"
)
_AT_THE_TOP = "make the patch again with `git format-patch` at the top of the tree."
_CREATED = re.compile(r"^ create (?:mode \d+ )?(.+)$", re.MULTILINE)
_DELETED = re.compile(r"^ delete (?:mode \d+ )?(.+)$", re.MULTILINE)
# Neither a file nor a symbolic link: a submodule, for example.
_SPECIAL = re.compile(r"^ (?:create mode|mode change \d+ =>) (?!100|120)\d+ ?(.*)$", re.MULTILINE)
_FAILED_AT = re.compile(r"^error: patch failed: (.+):(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class PatchedFiles:
    """The outcome of a series: files changed or created, which are below ``folder``, and files
    removed."""

    folder: Path
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def changes_kconfig(self) -> bool:
        """Whether a Kconfig file was changed, created or removed."""
        return any(
            PurePosixPath(name).name.startswith("Kconfig")
            for name in (*self.changed, *self.removed)
        )


def apply(tree: Path, patches: Sequence[Path], folder: Path, source: str) -> PatchedFiles:
    """Apply ``patches`` in order, without fuzz, to copies in the empty ``folder``.

    ``source`` names the tree in messages. Raises BuildError, which names the patch, the file and
    the hunk, if a patch does not apply, and InputError if a file is not a patch or makes an unsafe
    link.
    """
    series = read_series(tree, patches)
    names = touched(tree, series)
    copy_files(names, folder)  # Before any patch is applied, so that no link of a patch is there.
    for patch in series:
        result = git_apply(folder, patch, "--verbose")
        if not result.ok:
            raise _does_not_apply(patch, result.said, source)
        present = check_links(folder, patch)
        if wrong_places := misplaced_hunks(folder, patch, result.said):
            raise _belongs_elsewhere(patch, wrong_places[0], source)
        wrong = [*(present - names.keys()), *(set(patch.names) - patch.removed - present)]
        if wrong:
            raise _refused(patch.path, f"does not change {wrong[0]} in the way its header says")
    present = set(_links_of(folder))
    removed = tuple(name for name in names if name not in present and os.path.lexists(tree / name))
    return PatchedFiles(folder, tuple(name for name in names if name in present), removed)


@dataclass(frozen=True)
class ReadPatch:
    """A patch as git reads it: the names of its files, without their first ``strip`` parts."""

    path: Path
    strip: int
    names: tuple[str, ...]
    created: frozenset[str]
    """The names that do not exist before the patch."""
    removed: frozenset[str]
    """The names that do not exist after it, and those from which a file is copied."""

    def hunks(self) -> dict[str, list[Hunk]]:
        """Return the hunks by the name of their file. Raises InputError."""
        hunks_by_file: dict[str, list[Hunk]] = {}
        with damaged(str(self.path), hint=_SAVE_AGAIN):
            # This text is only printed; git reads the file itself.
            for file in PatchSet.from_filename(
                str(self.path), "utf-8", errors="replace", newline="\n"
            ):
                side = file.source_file if file.target_file == "/dev/null" else file.target_file
                name = unquoted(side).split("/", self.strip)[-1]
                hunks_by_file.setdefault(name, []).extend(file)
        return hunks_by_file


def read_patch(
    patch: Path, tree: Path | None = None, earlier: Collection[str] = (), called: str = ""
) -> ReadPatch:
    """Return what git finds in ``patch``.

    The first part of a name (``a/``) is stripped, whatever it is, unless the whole names are in
    ``tree`` or ``earlier``. Raises InputError if ``patch`` is not a patch, or if it has a file that
    a kernel tree cannot have; the message has its path, or what it is ``called``.
    """
    called = called or str(patch)
    with patch.open("rb") as stream:
        text = stream.read(_MOST_BYTES + 1)
    if too_large := _too_large(text):
        raise InputError(f"{called} is a damaged patch: it has {too_large}", hint=_SAVE_AGAIN)
    unstripped, listing = (_listed(text, patch, strip, called) for strip in (0, 1))
    if isinstance(unstripped, ReadPatch) and isinstance(listing, InputError):
        listing = unstripped
    elif isinstance(unstripped, ReadPatch) and isinstance(listing, ReadPatch) and tree:
        # The names of a rename have no prefix, so that they are the same in both.
        extra_names = set(unstripped.names) - set(listing.names)
        if any(_is_there(name, tree, earlier) for name in extra_names):
            listing = unstripped
    if isinstance(listing, InputError):
        raise listing
    for name in listing.names:
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts:
            raise _refused(called, f"changes a file outside of the kernel tree: {name}")
        too_long = any(len(os.fsencode(part)) > 255 for part in parts) or len(name) > 1000
        normal = name == str(PurePosixPath(*parts)) and name.isprintable()
        if too_long or not normal or ".git" in map(str.lower, parts):
            raise _refused(called, f"has a file name that a kernel tree cannot have: {name[:99]!r}")
    return listing


def _too_large(text: bytes) -> str:
    """Return what a patch has too much of, for git or for the parser of its hunks; empty:
    nothing."""
    if len(text) > _MOST_BYTES or text.count(b"\n") > _MOST_LINES or _LONG_NUMBER.search(text):
        limits = f"{_MOST_BYTES // 1_000_000} MB, {_MOST_LINES:,} lines or 9 digits in a number"
        return f"more than {limits}"
    if _LONG_LINE.search(text):
        return "a line of more than 1,000,000 bytes"
    # git sorts a file into those before it: the largest patch of Linux had 12,000.
    if max(text.count(b"\ndiff --git "), text.count(b"\n+++ ")) > _MOST_FILES:
        return f"more than {_MOST_FILES:,} files"
    # The parser tries a dozen expressions on each of these lines: a patch of 20,000 files has
    # 80,000.
    if sum(1 for _ in _OUTSIDE.finditer(text)) > _MOST_OUTSIDE:
        return f"more than {_MOST_OUTSIDE:,} lines outside of hunks"
    if _LONG_HEADER.search(text):
        return "a name of a file of more than 4,000 characters, 20 spaces or 200 folders"
    return ""


def read_series(tree: Path, patches: Sequence[Path]) -> list[ReadPatch]:
    """Return what git finds in each of ``patches``, which are for ``tree``. Raises InputError as
    ``read``."""
    series: list[ReadPatch] = []
    earlier: dict[str, None] = {}
    for path in patches:
        series.append(read_patch(path, tree, earlier))
        earlier |= dict.fromkeys(series[-1].names)
    folders = {above for name in earlier for above in _above(name)}
    links = {folder for folder in folders if (tree / folder).is_symlink()}
    for patch in series:
        for name in patch.names:
            if not links.isdisjoint(_above(name)):
                raise _refused(patch.path, f"changes {name}, which is behind a symbolic link")
            if name in folders or ((tree / name).is_dir() and not (tree / name).is_symlink()):
                raise _refused(patch.path, f"makes a file of {name}, which is a folder")
    return series


def touched(tree: Path, series: Sequence[ReadPatch]) -> dict[str, Path]:
    """Return the names of all files that a series touches, and where they are, or would be, in
    ``tree``."""
    return {name: tree / name for patch in series for name in patch.names}


def copy_files(files: Mapping[str, Path], folder: Path) -> None:
    """Copy those ``files`` that exist to their names in ``folder``. A symbolic link stays a
    link."""
    top = folder.resolve()
    for name, path in files.items():
        target = folder / name
        if not target.parent.resolve().is_relative_to(top):
            raise _refused(name, "is outside of the kernel tree")
        if not (path.is_symlink() or path.is_file()):
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target, follow_symlinks=False)
            shutil.copymode(path, target, follow_symlinks=False)
        except OSError as error:
            raise git.no_space(folder) if error.errno == errno.ENOSPC else error from error


def install(patched: PatchedFiles, tree: Path) -> None:
    """Make ``tree``, whose files may be hard links to others, the patched one."""
    for name in (*patched.changed, *patched.removed):
        (tree / name).unlink(missing_ok=True)
    for name in patched.changed:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy_patched(patched, name, tree / name)


def copy_patched(patched: PatchedFiles, name: str, target: Path) -> None:
    """Copy a patched file, or the link that it is, to ``target``, which does not exist; all may
    read it."""
    file = patched.folder / name
    shutil.copyfile(file, target, follow_symlinks=False)
    if not target.is_symlink():
        # Not a copy of its time: it must be newer than the objects compiled from the file before.
        target.chmod(0o755 if os.access(file, os.X_OK) else 0o644)


def misplaced_hunks(folder: Path, patch: ReadPatch, output: str) -> list[Misplaced]:
    """Return the hunks of ``patch`` that git put into another function than they are for.

    ``folder`` has the files after the patch, ``output`` is what ``git apply --verbose`` printed.
    """
    if "\nHunk #" not in output:
        return []
    with suppress(InputError):  # git reads patches that unidiff does not.
        return misplaced(folder, patch.hunks(), output)
    return []


def check_links(folder: Path, patch: ReadPatch) -> set[str]:
    """Return the names of all files in ``folder``. Raises InputError if a link leads out of the
    tree."""
    links = _links_of(folder)
    for name, target in links.items():
        inner = re.sub(r"^(?:\.\./)*", "", target)
        # In the middle, after another link, ".." could lead anywhere.
        climbs = target.count("../") > name.count("/")
        if climbs or inner.startswith("/") or ".." in inner.split("/"):
            raise _refused(
                patch.path, f"makes a symbolic link that leaves the tree: {name} -> {target!r}"
            )
    return set(links)


def git_apply(folder: Path, patch: ReadPatch, *options: str) -> git.Done:
    """Run ``git apply`` in ``folder``."""
    argv = (
        "apply",
        "--whitespace=nowarn",
        f"-p{patch.strip}",
        *options,
        str(patch.path.absolute()),
    )
    return git.run(*argv, cwd=folder)


def files_in(patch: Path, called: str = "", tree: Path | None = None) -> list[tuple[str, bool]]:
    """Return each name that ``patch`` touches, and whether it exists before and after. Raises as
    ``read``."""
    listing = read_patch(patch, tree, called=called)
    return [(name, name not in listing.created | listing.removed) for name in listing.names]


def unquoted(name: str) -> str:
    """Return a file name that git may have put in quotes."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    return name[1:-1].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")


@lru_cache(2000)  # A series is read for each source, three times. Git runs twice in each call.
def _listed(text: bytes, path: Path, strip: int, called: str) -> ReadPatch | InputError:
    argv = ("apply", "--numstat", "--summary", "-z", f"-p{strip}")
    sides = []
    for options in ((), ("--reverse",)):  # The names after the patch, and those before it.
        result = git.run(*argv, *options, data=text)
        if "No valid patches" in result.said or "nrecognized input" in result.said:
            hint = "give a patch in the format of `git format-patch`."
            return InputError(f"{called} does not contain a diff", hint=hint)
        if not result.ok:
            reason = result.said.strip().removeprefix("error: ").replace("\n", "; ")
            if corrupt := _CORRUPT.search(reason):
                reason = _where(text, int(corrupt[1]))
            hint = _AS_SENT if corrupt else _SAVE_AGAIN
            return InputError(f"{called} is a damaged patch: {reason}", hint=hint)
        *lines, summary = map(os.fsdecode, result.out.split(b"\0"))
        sides.append((dict.fromkeys(line.split("\t", 2)[2] for line in lines), summary))
    (new, summary), (old, _) = sides
    if special := _SPECIAL.search(summary):
        return _refused(called, f"makes {special[1]} a submodule or a special file")
    created = frozenset(_CREATED.findall(summary)) | (new.keys() - old.keys())
    removed = frozenset(_DELETED.findall(summary)) | (old.keys() - new.keys())
    return ReadPatch(path, strip, tuple(new | old), created, removed)


def _where(text: bytes, number: int) -> str:
    """Return which hunk of a patch ends at line ``number``, although it says that it is longer."""
    lines = [line.decode(errors="replace") for line in text.split(b"\n")]
    hunks = [line for line in lines[: number - 1] if line.startswith("@@ ")] or ["@@"]
    next_line = lines[number - 1] if number < len(lines) else ""
    following = f"there is {next_line[:60]!r}" if next_line else "the text ends"
    header = hunks[-1].partition(" @@")[0] + " @@"
    return (
        f"the hunk {header} has fewer lines than its header says: after its last line {following}"
    )


def _is_there(name: str, tree: Path, earlier: Collection[str]) -> bool:
    """Return whether ``name``, or for a new file its folder, is in the tree or in a series before
    it."""
    folder = name.rpartition("/")[0]
    exists = os.path.lexists(tree / name) or (bool(folder) and os.path.isdir(tree / folder))
    return exists or name in earlier or any(path.startswith(f"{folder}/") for path in earlier)


def _above(name: str) -> list[str]:
    """Return the folders that ``name`` is in, without the top."""
    return [str(parent) for parent in PurePosixPath(name).parents][:-1]


def _links_of(folder: Path) -> dict[str, str]:
    """Return the names of all files below ``folder``, with the target of each symbolic link."""
    targets: dict[str, str] = {}
    for base, folders, files in os.walk(folder):
        for path in (Path(base, entry) for entry in (*folders, *files)):
            if path.is_symlink() or not path.is_dir():
                targets[str(path.relative_to(folder))] = (
                    os.readlink(path) if path.is_symlink() else ""
                )
    return targets


def _refused(patch: Path | str, what: str) -> InputError:
    return InputError(f"{patch} {what}", hint=_AT_THE_TOP)


def _does_not_apply(patch: ReadPatch, output: str, source: str) -> BuildError:
    """Return an error that names each file and hunk that failed, and shows the text that the hunk
    expects."""
    lines = [f"{patch.path.name} does not apply to {source}:"]
    failures = [(name, int(line)) for name, line in _FAILED_AT.findall(output)]
    every = patch.hunks() if failures else {}
    for name, line in failures:
        hunks = every.get(name, [])
        at = next((number for number, hunk in enumerate(hunks, 1) if hunk.source_start == line), 0)
        if not at:
            lines.append(f"  {name}, near line {line}")
            continue
        hunk = hunks[at - 1]
        header = f"@@ -{line},{hunk.source_length} @@ {hunk.section_header}".rstrip()
        lines.append(f"  {name}, hunk {at} of {len(hunks)} ({header}), expects:")
        lines += [f"    {text.rstrip()}" for text in hunk.source[:12]]
    if not failures:
        lines += [f"  {line[7:]}" for line in output.splitlines() if line.startswith("error: ")]
    hint = "port the patch to this source, or choose a source that it was written for."
    return BuildError("\n".join(lines), hint=hint)


def _belongs_elsewhere(patch: ReadPatch, wrong: Misplaced, source: str) -> BuildError:
    return BuildError(
        f"{patch.path.name} does not apply to {source}: hunk {wrong.number} of {wrong.file} "
        f"{wrong.why}",
        hint="make the patch with more context: `git format-patch -U10`.",
    )


def failure(tree: Path, files: Sequence[Path], source: str) -> str:
    """Return why the patches ``files`` do not apply to ``tree``, or an empty string if they
    apply."""
    with TemporaryDirectory(prefix="kteardown-") as folder:
        try:
            apply(tree, files, Path(folder), source)
        except BuildError as error:
            return error.message
    return ""
