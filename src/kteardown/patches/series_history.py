"""The history of a series on a tree: a commit for each patch, and what is said of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown.errors import BuildError
from kteardown.kernels import apply_patches, cache_folder, git

_IDENTITY = ("-c", "user.name=kteardown", "-c", "user.email=kteardown@localhost")


class Repository:
    """A scratch repository that has only the files that a series touches."""

    def __init__(
        self, folder: Path, repositories: Sequence[Path], tree: Path, patches: Sequence[Path]
    ) -> None:
        # Nothing of git is in the work tree, which has what the patches put there.
        self._git_dir, self._work, self._out = (folder / name for name in ("git", "tree", "out"))
        self._work.mkdir()
        self._tree = tree
        git.prepare(self._git_dir)
        self.git("init", "-q", "--template=")
        objects = [git.folders(repository)[1] / "objects" for repository in repositories]
        alternates = self._git_dir / "objects/info/alternates"
        alternates.write_text("".join(f"{path}\n" for path in objects))
        self.series = apply_patches.read_series(tree, patches)

    def git(self, *argv: str) -> git.Done:
        """Run git in the work tree."""
        work_tree = f"--work-tree={self._work}"
        return git.run(*_IDENTITY, work_tree, *argv, git_dir=self._git_dir, cwd=self._work)

    def commit(self, files: Mapping[str, Path]) -> None:
        """Commit exactly these files, whatever was there."""
        self.git("rm", "-rqf", "--ignore-unmatch", ".")
        apply_patches.copy_files(files, self._work)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", "base")

    def am(self, *how: str) -> bool:
        """Commit the patches until one does not apply, and return whether all do. Raises
        InputError."""
        for patch in self.series:
            if not self.git("am", "-q", *how, f"-p{patch.strip}", str(patch.path.absolute())).ok:
                return False
            apply_patches.check_links(self._work, patch)
        return True

    def fitted(self, how: str) -> list[tuple[str, bytes]] | None:
        """Apply the patches to the tree and return them as they then are; None if that fails."""
        self.commit(apply_patches.touched(self._tree, self.series))
        if not self.am(how):
            return None
        options = ("--no-signature", "--zero-commit", "--full-index")  # Equal for equal patches.
        written = self.git("format-patch", *options, "-o", str(self._out), f"-{len(self.series)}")
        return [(path.name, path.read_bytes()) for path in map(Path, written.text.splitlines())]


def history(patches: Sequence[Path], tree: Path, target: Path) -> tuple[Path, str, str]:
    """Commit a series on the files of ``tree`` that it touches, once, to a repository in
    ``target``.

    Return the git folder, the commit of base and the last one. Raises BuildError if a patch does
    not apply.
    """
    if not target.is_dir():
        with cache_folder.published(target) as work:
            repository = Repository(work, (), tree, patches)
            repository.commit(apply_patches.touched(tree, repository.series))
            if not repository.am():
                applied = len(repository.git("rev-list", "HEAD").text.splitlines()) - 1
                raise BuildError(
                    f"{patches[applied]} does not apply on top of the patches before it",
                    hint="name the source for which the series was made with --source.",
                )
            repository.git("config", "--unset", "core.worktree")  # The folder is renamed.
    first, *_, last = git.run(
        "rev-list", "--reverse", "HEAD", git_dir=target / "git"
    ).text.splitlines()
    return cache_folder.hold(target) / "git", first, last
