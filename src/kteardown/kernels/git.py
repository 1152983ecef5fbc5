"""Run git on what strangers wrote: patches, mails, repositories.

Git reads no configuration, attributes or hooks, neither of the user nor of a repository: they name programs
to execute, and change what git prints.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kteardown.errors import InputError, LabError
from kteardown.kernels import toolchain

COMMAND = ("git", "-c", f"core.attributesFile={os.devnull}")
# Above the attributes of the files: they can join conflicts, convert lines, and execute gpg (export-subst).
_ATTRIBUTES = "* !merge !filter !ident !text !eol !working-tree-encoding !export-subst\n"
_SHARED = ("objects", "refs", "packed-refs", "logs", "shallow")


class Done(NamedTuple):
    """The end of a git command: whether it succeeded, its output, also as text, and its error output."""

    ok: bool
    out: bytes
    text: str
    said: str


def run(*argv: str, git_dir: Path | str = os.devnull, cwd: Path | None = None, data: bytes = b"") -> Done:
    """Run git with ``data`` as its input. Without ``git_dir`` it is in no repository, wherever ``cwd`` is.

    Raises LabError if the disk is full.
    """
    command, variables = [*COMMAND, *argv], environment(git_dir)
    done = subprocess.run(command, check=False, capture_output=True, input=data, cwd=cwd, env=variables)
    said = done.stderr.decode(errors="replace")
    if "No space left" in said:
        raise no_space(cwd)
    return Done(done.returncode == 0, done.stdout, done.stdout.decode(errors="replace").strip(), said)


def environment(git_dir: Path | str) -> dict[str, str]:
    """Return the environment in which git reads no configuration but that of ``git_dir``."""
    inert = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    return _without_variables() | inert | {"GIT_DIR": str(git_dir), "LC_ALL": "C"}


def prepare(git_dir: Path) -> None:
    """Write into ``git_dir``, which is new, that the attributes of files have no effect."""
    (git_dir / "info").mkdir(parents=True)
    (git_dir / "info/attributes").write_text(_ATTRIBUTES)


def folders(repository: Path) -> tuple[Path, Path]:
    """Return the git folder of a work tree, and the one with the commits. Raises InputError."""
    argv = ["git", "-C", str(repository), "rev-parse", "--path-format=absolute"]
    # With the user's configuration: it lists the repositories of other users that are safe.
    done = toolchain.capture([*argv, "--git-dir", "--git-common-dir"], env=_without_variables())
    if done.returncode:
        hint = "write git:PATH@REV with the path of a git tree."
        raise InputError(f"{repository} is not a git tree: {done.stderr.strip()}", hint=hint)
    own, common = done.stdout.splitlines()
    return Path(own), Path(common)


@contextmanager
def view(repository: Path) -> Iterator[Path]:
    """Yield a git folder with the commits and the names of ``repository``. Raises InputError."""
    own, common = folders(repository)
    with tempfile.TemporaryDirectory(prefix="kteardown-") as name:
        folder = Path(name)
        prepare(folder)
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


def no_space(folder: Path | None) -> LabError:
    """Return the error for a full disk; without ``folder``, that of temporary files."""
    return LabError(
        f"there is no space left in {folder or tempfile.gettempdir()}",
        hint="free space there, or set TMPDIR, for temporary files, or KTEARDOWN_CACHE to another disk.",
    )


def _without_variables() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
