"""Run git on what strangers wrote: patches, mails, repositories.

Git reads no configuration, attributes or hooks, neither of the user nor of a repository: they name
programs to execute, and change what git prints. Of a commit that is unpacked, files that another
one has, which is unpacked already, are hard links to those; no object is fetched.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from kteardown import spawn
from kteardown.errors import InputError, LabError
from kteardown.kernels import cache_folder, toolchain
from kteardown.kernels.series import patches_in, slug
from kteardown.paths import key_of
from kteardown.progress import SilentReporter
from kteardown.vm import seal

# v6.16-rc1 is before v6.16.
_SETTINGS = (
    f"core.attributesFile={os.devnull}",
    "versionsort.suffix=-rc",
    # It would go on in the background, in a folder that is moved or removed.
    "maintenance.auto=false",
)
_COMMAND = ("git", *(word for setting in _SETTINGS for word in ("-c", setting)))
# Above the attributes of the files: they can join conflicts, convert lines, and execute a filter.
_ATTRIBUTES = "* !merge !filter !ident !text !eol !working-tree-encoding\n"
_SHARED = ("objects", "refs", "packed-refs", "reftable", "logs", "shallow")
# Without these, git cannot read the objects and names. No other key has an effect.
_FORMAT = re.compile(r"extensions\.(objectformat|refstorage)\n([a-z0-9]+)", re.I)
# git shows the text that a hunk expects: the source of a program that reports a full disk, maybe.
_NO_SPACE = re.compile(r"^(?:error|fatal|warning): .*No space left on device$", re.MULTILINE)
_RANGE = re.compile(r"(?P<base>.+?)\.{2,3}(?P<topic>.*)")


class Done(NamedTuple):
    """The end of a git command: whether it succeeded, its output, also as text, and its error
    output."""

    ok: bool
    out: bytes
    text: str
    said: str


def run(
    *argv: str, git_dir: Path | str = os.devnull, cwd: Path | None = None, data: bytes = b""
) -> Done:
    """Run git with ``data`` as its input. Without ``git_dir`` it is in no repository, wherever
    ``cwd`` is.

    All may read the files that it writes. Raises LabError if the disk is full.
    """
    command = [*_COMMAND, *argv]
    variables = _environment() | {"GIT_DIR": str(Path(git_dir).absolute())}
    process = spawn.run(
        command, check=False, capture_output=True, input=data, cwd=cwd, env=variables, umask=0o022
    )
    errors = process.stderr.decode(errors="replace")
    if _NO_SPACE.search(errors):
        raise no_space(cwd)
    return Done(
        process.returncode == 0,
        process.stdout,
        process.stdout.decode(errors="replace").strip(),
        errors,
    )


def prepare(git_dir: Path) -> None:
    """Write into ``git_dir``, which is new, that the attributes of files have no effect."""
    (git_dir / "info").mkdir(parents=True)
    (git_dir / "info/attributes").write_text(_ATTRIBUTES)


def folders(repository: Path) -> tuple[Path, Path]:
    """Return the git folder of a work tree, and the one with the commits. Raises InputError."""
    # Of any owner: nothing of its configuration is executed, here and in a view.
    argv = [
        "git",
        "-c",
        "safe.directory=*",
        "-C",
        str(repository.absolute()),
        "rev-parse",
        "--path-format=absolute",
    ]
    process = toolchain.capture([*argv, "--git-dir", "--git-common-dir"], env=_environment())
    if process.returncode:
        hint = "write git:PATH@REV with the path of a git tree."
        raise InputError(f"{repository} is not a git tree: {first_line(process.stderr)}", hint=hint)
    git_dir, common = process.stdout.splitlines()
    return Path(git_dir), Path(common)


def configured(git_dir: Path, pattern: str) -> list[str]:
    """Return each key of the configuration in ``git_dir`` that matches, with its value after a
    newline."""
    argv = ("config", "--file", str(git_dir / "config"), "--null", "--get-regexp", pattern)
    return run(*argv).text.split("\0")


@contextmanager
def view(repository: Path) -> Iterator[Path]:
    """Yield a git folder with the commits and the names of ``repository``. Raises InputError."""
    git_dir, common = folders(repository)
    with tempfile.TemporaryDirectory(prefix="kteardown-") as name:
        folder = Path(name)
        prepare(folder)
        formats = map(_FORMAT.fullmatch, configured(common, "^extensions[.]"))
        lines = [f"{match[1]} = {match[2]}\n" for match in formats if match]
        version = f"[core]\nrepositoryformatversion = {int(bool(lines))}\n"
        (folder / "config").write_text(f"{version}[extensions]\n{''.join(lines)}")
        for part in _SHARED:
            (folder / part).symlink_to(common / part)
        for head in git_dir.glob("*HEAD"):
            if head.is_file():
                shutil.copyfile(head, folder / head.name, follow_symlinks=False)
        yield folder


def run_reading(repository: Path, *argv: str) -> Done:
    """Run a git command that only reads ``repository``; nothing of its configuration is
    executed."""
    with view(repository) as git_dir:
        return run(*argv, git_dir=git_dir)


def releases(repository: Path) -> list[str]:
    """Return the tags of releases and their candidates, newest first. Raises InputError."""
    return run_reading(repository, "tag", "-l", "v[0-9]*", "--sort=-v:refname").text.split()


def no_space(folder: Path | None) -> LabError:
    """Return the error for a full disk; without ``folder``, that of temporary files."""
    return LabError(
        f"there is no space left in {folder or tempfile.gettempdir()}",
        hint=(
            "free space there, or set TMPDIR, for temporary files, or KTEARDOWN_CACHE to another "
            "disk."
        ),
    )


def first_line(errors: str) -> str:
    """Return what git printed first of its reasons."""
    line = next(iter(errors.strip().splitlines()), "git printed no reason")
    return re.sub(r"^(?:fatal|error): ", "", line)


def _environment() -> dict[str, str]:
    """Return the environment in which git reads no configuration but that of the repository.

    Nor the objects that the repository has in place of others: equal ids are equal trees.
    """
    inert = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return inherited | inert | {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}


def of_branch(text: str, repository: Path, cache_dir: Path) -> tuple[str, Path]:
    """Write the patches of the branch ``BASE..TOPIC`` of ``repository``. TOPIC is HEAD by default.

    The patches are the commits that are in TOPIC and not in BASE, oldest first, and the series is
    named after TOPIC. Return the revision at which the branch forked from BASE, and the folder of
    the patches, in the cache. Raises InputError if git does not find such commits, or if one of
    them is a merge.
    """
    match = _RANGE.fullmatch(text)
    if not match:
        raise InputError(
            f"--branch {text}: expected BASE..TOPIC",
            hint="give two revisions with two dots, such as --branch v6.12..my-topic.",
        )
    base = match["base"]
    topic = match["topic"] or "HEAD"
    ends = {name: commit(repository, name) for name in (base, topic)}
    fork = forked_at(repository, base, topic)
    span = f"{fork}..{ends[topic]}"
    if merge := _git(repository, "rev-list", "--merges", "--max-count=1", span):
        raise InputError(
            f"--branch {text}: {merge[:12]} is a merge commit, which is not a patch",
            hint="rebase the branch on its base: a series is a linear sequence of commits.",
        )
    name = topic if topic != "HEAD" else _git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    with tempfile.TemporaryDirectory(prefix="kteardown-") as work:
        _git(repository, "format-patch", "-q", "--binary", "--no-signature", "-o", work, span)
        files = [(path.name, path.read_bytes()) for path in sorted(Path(work).iterdir())]
    if not files:
        raise InputError(
            f"--branch {text}: this range contains no commits",
            hint="give BASE first and the branch with your commits second.",
        )
    return base if fork == ends[base] else fork, store(files, slug(name), cache_dir)[0].parent


def forked_at(repository: Path, base: str, topic: str) -> str:
    """Return the commit at which two revisions part. Raises InputError if they have none in
    common."""
    fork = _git(repository, "merge-base", commit(repository, base), commit(repository, topic))
    if not fork:
        raise InputError(
            f"{base} and {topic} have no commit in common",
            hint=(
                "name the tag or branch from which the other was made; in a shallow clone, run "
                "`git fetch --unshallow` first."
            ),
        )
    return fork


def as_patch(git_dir: Path, before: str, after: str, cache_dir: Path) -> Path | None:
    """Write all that differs between two commits as one patch; return its folder, None if nothing
    differs.

    Raises InputError if git cannot compare them, as where an object is missing.
    """
    result = run("diff", "--binary", "--full-index", before, after, git_dir=git_dir)
    if not result.ok:
        raise InputError(
            f"git cannot compare {before[:12]} with {after[:12]}: {first_line(result.said)}",
            hint="fetch the missing objects, for example with `git fetch --refetch`.",
        )
    diff = result.out
    name = f"c-{after[:12]}"
    return store([(f"0001-{name}.patch", diff)], name, cache_dir)[0].parent if diff else None


def store(files: Sequence[tuple[str, bytes]], name: str, cache_dir: Path) -> tuple[Path, ...]:
    """Write patches, each a file name and a text, to the folder ``name`` in the cache, by their
    content."""
    content = b"".join(f"{file}\n{len(text)}\n".encode() + text for file, text in files)
    # Absolute, because it becomes the name of a series. With the name: the same patches under
    # another one replace nothing.
    folder = cache_dir.absolute() / "series" / key_of(f"{name}\n".encode() + content) / name
    with cache_folder.locked(folder.parent, SilentReporter(), f"patches of {name}"):
        if not folder.is_dir():
            with cache_folder.published(folder.parent) as work:
                (work / name).mkdir()
                for file, text in files:
                    (work / name / file).write_bytes(text)
    cache_folder.hold(folder.parent)
    return patches_in(folder)


def commit(repository: Path, name: str) -> str:
    """Return the id of a commit that is called ``name``. Raises InputError."""
    if not repository.is_dir():
        raise InputError(
            f"{repository} is not a folder",
            hint="give the git tree of a kernel with --source git:PATH.",
        )
    result = run_reading(
        repository, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}"
    )
    if not result.ok:
        raise InputError(
            f"{name!r} is not a commit of {repository.absolute()}: {first_line(result.said)}",
            hint=(
                "name a tag, a branch or a commit of the git tree: that of --source git:PATH, or "
                "else the current folder. In a shallow clone, run `git fetch --unshallow` first."
            ),
        )
    return result.text


def _git(repository: Path, *argv: str) -> str:
    """Return the output of git; an empty string if it fails, as merge-base does without a common
    commit."""
    return run_reading(repository, *argv).text


_MOST_ABSENT = 1 / 1000
"""Of the files of a tree; more are not a few large ones that a copy of the repository lacks."""
_MOST_CHANGED = 1 / 2
_MOST_TREES = 20
"""So many of the trees that were unpacked last are compared with the commit."""


def absent(repository: Path, commit: str) -> tuple[str, ...]:
    """Return the names of those files of ``commit`` that are not in ``repository``: at most a few.

    Takes 0.1 s for a kernel. Raises InputError if there are many, or if git cannot read the commit.
    """
    with view(repository) as git_dir:
        argv = ("rev-list", "--objects", "--no-walk", "--missing=print", commit)
        result = run(*argv, git_dir=git_dir)
        gone = {line[1:] for line in result.out.splitlines() if line.startswith(b"?")}
        if result.ok and not gone:
            return ()
        result, files = _files(git_dir, commit) if result.ok else (result, {})
    where = f"git:{repository}@{commit[:12]}"
    if not result.ok:
        raise InputError(
            f"{where} is incomplete or damaged: {first_line(result.said)}",
            hint=(
                f"check the repository with `git -C '{repository}' fsck`, and fetch the commit "
                "again; nothing was unpacked."
            ),
        )
    names = [os.fsdecode(name) for name, blob in files.items() if blob in gone]
    if len(names) <= _MOST_ABSENT * len(files):
        return tuple(names)
    partial = configured(folders(repository)[1], r"^remote[.].*[.]promisor$") != [""]
    kind = ""
    advice = "fetch the repository again, or copy all of it"
    if partial:
        kind = ", a partial clone"
        advice = f"fetch the files: git -C '{repository}' worktree add --detach DIR {commit[:12]}"
        advice += ", or those of all commits: git fetch --refetch --no-filter"
    raise InputError(
        f"{where}: {len(names):,} of its {len(files):,} files are not in the repository{kind}",
        hint=f"{advice}; nothing was unpacked.",
    )


def unpack(
    repository: Path,
    commit: str,
    folder: Path,
    gone: Collection[str] = (),
    unpacked: Iterable[Path] = (),
) -> None:
    """Write the files of ``commit`` but ``gone``, which are not in ``repository``, into the empty
    ``folder``.

    ``unpacked`` are trees in folders ``git-COMMIT``: the nearest is used. Raises LabError with what
    git says.
    """
    with view(repository) as git_dir:
        near = _nearest(git_dir, commit, unpacked)
        if near is not None:
            link(*near, folder, gone)
        work_tree = f"--work-tree={folder}"
        result = run(work_tree, "read-tree", commit, git_dir=git_dir, cwd=folder)
        if result.ok:  # Files that are there already remain.
            result = run(work_tree, "checkout-index", "-a", "-q", git_dir=git_dir, cwd=folder)
        expected = len(_files(git_dir, commit)[1]) - len(gone)
    present = len(
        toolchain.capture(["find", str(folder), "!", "-type", "d", "-printf", "."]).stdout
    )
    if present != expected:
        raise LabError(
            f"cannot unpack {commit[:12]} of {repository}: {first_line(result.said)}",
            hint=f"check the repository with `git -C '{repository}' fsck`; no file was kept.",
        )
    # Older than all objects that were compiled from this tree before it was unpacked again.
    touch = [
        "find",
        str(folder),
        "-type",
        "f",
        "-perm",
        "/222",
        "-exec",
        "touch",
        "-d",
        "@1",
        "{}",
        "+",
    ]
    toolchain.capture(touch)


def _files(git_dir: Path, commit: str) -> tuple[Done, dict[bytes, bytes]]:
    """Return the end of the git command that lists the files of a commit, and their ids by their
    names."""
    result = run("ls-tree", "-r", "-z", "--full-tree", commit, git_dir=git_dir)
    entries = (entry.partition(b"\t") for entry in result.out.split(b"\0") if entry)
    # Not submodules.
    return result, {name: facts.split()[2] for facts, _, name in entries if b" blob " in facts}


def _nearest(
    git_dir: Path, commit: str, unpacked: Iterable[Path]
) -> tuple[Path, list[bytes]] | None:
    """Return the tree with the fewest files that differ from those of ``commit``, and the names of
    these."""
    best: tuple[Path, list[bytes]] | None = None
    latest = sorted(unpacked, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST_TREES]
    for tree in latest:
        short = tree.name.split("-")[1]
        tree_commit = run(
            "rev-parse", "--verify", "-q", f"{short}^{{commit}}", git_dir=git_dir
        ).text
        if not tree_commit.startswith(short):  # Unknown here, or a branch has this name.
            continue
        argv = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", tree_commit, commit)
        result = run(*argv, git_dir=git_dir)
        names = result.out.split(b"\0")[:-1]
        if result.ok and (best is None or len(names) < len(best[1])):
            best = tree, names
    if best is None or len(best[1]) > _MOST_CHANGED * len(_files(git_dir, commit)[1]):
        return None
    return best if seal.is_intact(best[0], SilentReporter()) else None


def link(tree: Path, changed: Iterable[bytes], folder: Path, gone: Iterable[str] = ()) -> None:
    """Make ``folder`` a tree of hard links to ``tree`` without the files ``changed`` and
    ``gone``."""
    toolchain.capture(["cp", "-al", f"{tree}/.", str(folder)])
    seal.keep_links(tree)
    for name in (*map(os.fsdecode, changed), *gone):
        path = folder / name
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            path.unlink()
        with suppress(OSError):  # The folders that are empty now.
            for parent in path.parents:
                parent.rmdir()
