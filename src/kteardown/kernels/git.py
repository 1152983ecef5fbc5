"""Run git on what strangers wrote: patches, mails, repositories.

Git reads no configuration, attributes or hooks, neither of the user nor of a repository: they name programs
to execute, and change what git prints.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kteardown.errors import InputError, LabError
from kteardown.kernels import cache_folder, toolchain
from kteardown.kernels.series import patches_in, slug
from kteardown.progress import SilentReporter

# v6.16-rc1 is before v6.16.
_COMMAND = ("git", "-c", f"core.attributesFile={os.devnull}", "-c", "versionsort.suffix=-rc")
# Above the attributes of the files: they can join conflicts, convert lines, and execute a filter.
_ATTRIBUTES = "* !merge !filter !ident !text !eol !working-tree-encoding\n"
_SHARED = ("objects", "refs", "packed-refs", "reftable", "logs", "shallow")
# Without these, git cannot read the objects and names. No other key has an effect.
_FORMAT = re.compile(r"extensions\.(objectformat|refstorage)\n([a-z0-9]+)", re.I)
_RANGE = re.compile(r"(?P<base>.+?)\.{2,3}(?P<topic>.*)")


class Done(NamedTuple):
    """The end of a git command: whether it succeeded, its output, also as text, and its error output."""

    ok: bool
    out: bytes
    text: str
    said: str


def run(*argv: str, git_dir: Path | str = os.devnull, cwd: Path | None = None, data: bytes = b"") -> Done:
    """Run git with ``data`` as its input. Without ``git_dir`` it is in no repository, wherever ``cwd`` is.

    All may read the files that it writes. Raises LabError if the disk is full.
    """
    command, variables = [*_COMMAND, *argv], _environment() | {"GIT_DIR": str(git_dir)}
    done = subprocess.run(
        command, check=False, capture_output=True, input=data, cwd=cwd, env=variables, umask=0o022
    )
    said = done.stderr.decode(errors="replace")
    if "No space left" in said:
        raise no_space(cwd)
    return Done(done.returncode == 0, done.stdout, done.stdout.decode(errors="replace").strip(), said)


def prepare(git_dir: Path) -> None:
    """Write into ``git_dir``, which is new, that the attributes of files have no effect."""
    (git_dir / "info").mkdir(parents=True)
    (git_dir / "info/attributes").write_text(_ATTRIBUTES)


def folders(repository: Path) -> tuple[Path, Path]:
    """Return the git folder of a work tree, and the one with the commits. Raises InputError."""
    # Of any owner: nothing of its configuration is executed, here and in a view.
    argv = ["git", "-c", "safe.directory=*", "-C", str(repository), "rev-parse", "--path-format=absolute"]
    done = toolchain.capture([*argv, "--git-dir", "--git-common-dir"], env=_environment())
    if done.returncode:
        hint = "write git:PATH@REV with the path of a git tree."
        raise InputError(f"{repository} is not a git tree: {first_line(done.stderr)}", hint=hint)
    own, common = done.stdout.splitlines()
    return Path(own), Path(common)


def configured(git_dir: Path, pattern: str) -> list[str]:
    """Return each key of the configuration in ``git_dir`` that matches, with its value after a newline."""
    argv = ("config", "--file", str(git_dir / "config"), "--null", "--get-regexp", pattern)
    return run(*argv).text.split("\0")


@contextmanager
def view(repository: Path) -> Iterator[Path]:
    """Yield a git folder with the commits and the names of ``repository``. Raises InputError."""
    own, common = folders(repository)
    with tempfile.TemporaryDirectory(prefix="kteardown-") as name:
        folder = Path(name)
        prepare(folder)
        formats = map(_FORMAT.fullmatch, configured(common, "^extensions[.]"))
        lines = [f"{found[1]} = {found[2]}\n" for found in formats if found]
        version = f"[core]\nrepositoryformatversion = {int(bool(lines))}\n"
        (folder / "config").write_text(f"{version}[extensions]\n{''.join(lines)}")
        for part in _SHARED:
            (folder / part).symlink_to(common / part)
        for head in own.glob("*HEAD"):
            if head.is_file():
                shutil.copyfile(head, folder / head.name, follow_symlinks=False)
        yield folder


def read(repository: Path, *argv: str) -> Done:
    """Run a git command that only reads ``repository``; nothing of its configuration is executed."""
    with view(repository) as git_dir:
        return run(*argv, git_dir=git_dir)


def releases(repository: Path) -> list[str]:
    """Return the tags of releases and their candidates, newest first. Raises InputError."""
    return read(repository, "tag", "-l", "v[0-9]*", "--sort=-v:refname").text.split()


def no_space(folder: Path | None) -> LabError:
    """Return the error for a full disk; without ``folder``, that of temporary files."""
    return LabError(
        f"there is no space left in {folder or tempfile.gettempdir()}",
        hint="free space there, or set TMPDIR, for temporary files, or KTEARDOWN_CACHE to another disk.",
    )


def first_line(said: str) -> str:
    """Return what git printed first of its reasons."""
    line = next(iter(said.strip().splitlines()), "git printed no reason")
    return re.sub(r"^(?:fatal|error): ", "", line)


def _environment() -> dict[str, str]:
    """Return the environment in which git reads no configuration but that of the repository.

    Nor the objects that the repository has in place of others: equal ids are equal trees.
    """
    inert = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return own | inert | {"LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}


def of_branch(text: str, repository: Path, cache_dir: Path) -> tuple[str, Path]:
    """Write the patches of the branch ``BASE..TOPIC`` of ``repository``. TOPIC is HEAD by default.

    The patches are the commits that are in TOPIC and not in BASE, oldest first, and the series is named
    after TOPIC. Return the revision at which the branch forked from BASE, and the folder of the patches, in
    the cache. Raises InputError if git does not find such commits, or if one of them is a merge.
    """
    match = _RANGE.fullmatch(text)
    if not match:
        raise InputError(
            f"--branch {text}: expected BASE..TOPIC",
            hint="give two revisions with two dots, such as --branch v6.12..my-topic.",
        )
    base, topic = match["base"], match["topic"] or "HEAD"
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
    """Return the commit at which two revisions part. Raises InputError if they have none in common."""
    fork = _git(repository, "merge-base", commit(repository, base), commit(repository, topic))
    if not fork:
        raise InputError(
            f"{base} and {topic} have no commit in common",
            hint="name the tag or branch from which the other was made; in a shallow clone, `git fetch "
            "--unshallow` first.",
        )
    return fork


def as_patch(git_dir: Path, before: str, after: str, cache_dir: Path) -> Path | None:
    """Write all that differs between two commits as one patch; return its folder, None if nothing differs.

    Raises InputError if git cannot compare them, as where an object is missing.
    """
    done = run("diff", "--binary", "--full-index", before, after, git_dir=git_dir)
    if not done.ok:
        raise InputError(
            f"git cannot compare {before[:12]} with {after[:12]}: {first_line(done.said)}",
            hint="fetch what the repository lacks, such as with `git fetch --refetch`.",
        )
    diff = done.out
    name = f"c-{after[:12]}"
    return store([(f"0001-{name}.patch", diff)], name, cache_dir)[0].parent if diff else None


def store(files: Sequence[tuple[str, bytes]], name: str, cache_dir: Path) -> tuple[Path, ...]:
    """Write patches, each a file name and a text, to the folder ``name`` in the cache, by their content."""
    digest = hashlib.sha256()
    for file, text in files:
        digest.update(f"{file}\n{len(text)}\n".encode() + text)
    # Absolute, because it becomes the name of a series.
    folder = cache_dir.absolute() / "series" / digest.hexdigest()[:16] / name
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
            f"{repository} is not a folder", hint="give the git tree of a kernel with --source git:PATH."
        )
    done = read(repository, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
    if not done.ok:
        raise InputError(
            f"{name!r} is not a commit of {repository.absolute()}: {first_line(done.said)}",
            hint="name a tag, a branch or a commit of the git tree: that of --source git:PATH, or else the "
            "current folder.",
        )
    return done.text


def _git(repository: Path, *argv: str) -> str:
    """Return the output of git; an empty string if it fails, as merge-base does without a common commit."""
    return read(repository, *argv).text
