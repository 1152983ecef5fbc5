"""The temporary repository in which git applies a series and writes it as mails.

It has only the files that the series changes: to add a whole tree takes minutes and gigabytes.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from kteardown.errors import LabError
from kteardown.flows.mail_series.person import Person
from kteardown.kernels import apply_patches, git
from kteardown.patches.series_history import Repository

BASE = "base"
SERIES = "series"
"""The branch with the patches. Its name is not in the mails."""


class MailRepository(Repository):
    """A repository in the new ``folder``; ``committer`` is in its commits."""

    def __init__(
        self, folder: Path, tree: Path, patches: Sequence[Path], committer: Person
    ) -> None:
        """Commit those files of ``tree`` that ``patches`` change. Raises InputError, LabError."""
        folder.mkdir()
        self._committer = committer
        super().__init__(folder, (), tree, patches)
        self.commit(apply_patches.touched(tree, self.series))
        self._checked("branch", "-M", BASE)

    def git(self, *argv: str) -> git.Done:
        """Run git in the work tree, as the committer."""
        identity = (f"user.name={self._committer.name}", f"user.email={self._committer.mail}")
        return super().git(*(word for value in identity for word in ("-c", value)), *argv)

    def apply(self, branch: str, mails: Sequence[Path]) -> str:
        """Make ``branch`` of base and ``mails``; return why git refuses one, or an empty text."""
        self._checked("checkout", "-q", "-B", branch, BASE)
        done = self.git("am", "-q", "--no-gpg-sign", *map(str, mails))
        if not done.ok:
            self.git("am", "--abort")
            return git.first_line(done.said or done.text)
        return ""

    def tree_of(self, branch: str) -> str:
        """Return the hash of all files of ``branch``."""
        return self._checked("rev-parse", f"{branch}^{{tree}}")

    def describe(self, branch: str, text: str) -> None:
        """Set the description of ``branch``, from which git makes a cover letter."""
        self._checked("config", f"branch.{branch}.description", text)

    def write(self, branch: str, folder: Path, *options: str) -> list[Path]:
        """Write the patches of ``branch`` as mails into ``folder``; return their files in order."""
        self._checked(
            "format-patch",
            "-q",
            "--zero-commit",  # The commits are of this repository alone.
            "--abbrev=12",
            "-o",
            str(folder),
            *options,
            f"{BASE}..{branch}",
        )
        return sorted(folder.glob("*.patch"))

    def copy(self, folder: Path) -> None:
        """Copy the repository to ``folder`` as an ordinary one, on the branch of the series."""
        self._checked("checkout", "-q", SERIES)
        shutil.copytree(self._work, folder, symlinks=True)
        shutil.copytree(self._git_dir, folder / ".git")
        config = str(folder / ".git" / "config")
        git.run("config", "--file", config, "--unset", "core.worktree")

    def _checked(self, *argv: str) -> str:
        """Return the output of git. Raises LabError."""
        done = self.git(*argv)
        if not done.ok:
            raise LabError(
                f"git {argv[0]} failed: {git.first_line(done.said)}",
                hint="use git 2.30 or newer.",
            )
        return done.text
