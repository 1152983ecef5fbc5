"""Unpack a commit. Files that another commit has, which is unpacked already, are hard links to those.

Nothing of the configuration and attributes of the repository has an effect, and no object is fetched.
"""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.kernels import git, toolchain
from kteardown.progress import SilentReporter
from kteardown.vm import seal

_MOST_ABSENT = 1 / 1000
"""Of the files of a tree; more are not a few large ones that a copy of the repository lacks."""
_MOST_CHANGED = 1 / 2
_MOST_TREES = 20
"""So many of the trees that were unpacked last are compared with the commit."""


def absent(repository: Path, commit: str) -> tuple[str, ...]:
    """Return the names of those files of ``commit`` that are not in ``repository``: at most a few.

    Takes 0.1 s for a kernel. Raises InputError if there are many, or if git cannot read the commit.
    """
    with git.view(repository) as git_dir:
        argv = ("rev-list", "--objects", "--no-walk", "--missing=print", commit)
        done = git.run(*argv, git_dir=git_dir)
        gone = {line[1:] for line in done.out.splitlines() if line.startswith(b"?")}
        if done.ok and not gone:
            return ()
        done, files = _files(git_dir, commit) if done.ok else (done, {})
    where = f"git:{repository}@{commit[:12]}"
    if not done.ok:
        raise InputError(
            f"{where} is incomplete or damaged: {git.first_line(done.said)}",
            hint=f"look at it with `git -C '{repository}' fsck`, and fetch it again; nothing was unpacked.",
        )
    names = [os.fsdecode(name) for name, blob in files.items() if blob in gone]
    if len(names) <= _MOST_ABSENT * len(files):
        return tuple(names)
    partial = git.configured(git.folders(repository)[1], r"^remote[.].*[.]promisor$") != [""]
    kind, hint = "", "fetch it again, or copy it whole"
    if partial:
        kind = ", a partial clone"
        hint = f"fetch them: git -C '{repository}' worktree add --detach DIR {commit[:12]}"
        hint += ", or those of all commits: git fetch --refetch --no-filter"
    raise InputError(
        f"{where}: {len(names):,} of its {len(files):,} files are not in the repository{kind}",
        hint=f"{hint}; nothing was unpacked.",
    )


def unpack(
    repository: Path, commit: str, folder: Path, gone: Collection[str] = (), unpacked: Iterable[Path] = ()
) -> None:
    """Write the files of ``commit`` but ``gone``, which are not in ``repository``, into the empty ``folder``.

    ``unpacked`` are trees in folders ``git-COMMIT``: the nearest is used. Raises LabError with what git says.
    """
    with git.view(repository) as git_dir:
        near = _nearest(git_dir, commit, unpacked)
        if near is not None:
            link(*near, folder, gone)
        work_tree = f"--work-tree={folder}"
        done = git.run(work_tree, "read-tree", commit, git_dir=git_dir, cwd=folder)
        if done.ok:  # Files that are there already remain.
            done = git.run(work_tree, "checkout-index", "-a", "-q", git_dir=git_dir, cwd=folder)
        wanted = len(_files(git_dir, commit)[1]) - len(gone)
    there = len(toolchain.capture(["find", str(folder), "!", "-type", "d", "-printf", "."]).stdout)
    if there != wanted:
        raise LabError(
            f"cannot unpack {commit[:12]} of {repository}: {git.first_line(done.said)}",
            hint=f"look at it with `git -C '{repository}' fsck`; nothing of it was kept.",
        )
    # Older than all objects that were compiled from this tree before it was unpacked again.
    touch = ["find", str(folder), "-type", "f", "-perm", "/222", "-exec", "touch", "-d", "@1", "{}", "+"]
    toolchain.capture(touch)


def _files(git_dir: Path, commit: str) -> tuple[git.Done, dict[bytes, bytes]]:
    """Return the end of the git command that lists the files of a commit, and their ids by their names."""
    done = git.run("ls-tree", "-r", "-z", "--full-tree", commit, git_dir=git_dir)
    entries = (entry.partition(b"\t") for entry in done.out.split(b"\0") if entry)
    # Not submodules.
    return done, {name: facts.split()[2] for facts, _, name in entries if b" blob " in facts}


def _nearest(git_dir: Path, commit: str, unpacked: Iterable[Path]) -> tuple[Path, list[bytes]] | None:
    """Return the tree with the fewest files that differ from those of ``commit``, and the names of these."""
    best: tuple[Path, list[bytes]] | None = None
    latest = sorted(unpacked, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_TREES]
    for tree in latest:
        short = tree.name.split("-")[1]
        other = git.run("rev-parse", "--verify", "-q", f"{short}^{{commit}}", git_dir=git_dir).text
        if not other.startswith(short):  # Unknown here, or a branch has this name.
            continue
        argv = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", other, commit)
        done = git.run(*argv, git_dir=git_dir)
        names = done.out.split(b"\0")[:-1]
        if done.ok and (best is None or len(names) < len(best[1])):
            best = tree, names
    if best is None or len(best[1]) > _MOST_CHANGED * len(_files(git_dir, commit)[1]):
        return None
    return best if seal.is_intact(best[0], SilentReporter()) else None


def link(tree: Path, changed: Iterable[bytes], folder: Path, gone: Iterable[str] = ()) -> None:
    """Make ``folder`` a tree of hard links to ``tree`` without the files ``changed`` and ``gone``."""
    toolchain.capture(["cp", "-al", f"{tree}/.", str(folder)])
    seal.keep_links(tree)
    for name in (*map(os.fsdecode, changed), *gone):
        path = folder / name
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            path.unlink()
        with suppress(OSError):  # The folders that are empty now.
            for parent in path.parents:
                parent.rmdir()
