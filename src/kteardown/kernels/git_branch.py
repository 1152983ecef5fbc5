"""Use a git branch as a series: the commits of BASE..TOPIC are its patches."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError
from kteardown.kernels import cache_folder, git
from kteardown.kernels.series import slug
from kteardown.progress import SilentReporter

_RANGE = re.compile(r"(?P<base>.+?)\.{2,3}(?P<topic>.*)")


@dataclass(frozen=True)
class Branch:
    """A branch as patches.

    ``base`` is a git revision, the commit at which the branch forked from BASE; ``folder`` is the folder of
    the patches, in the cache.
    """

    base: str
    folder: Path


def of_branch(text: str, repository: Path, cache_dir: Path) -> Branch:
    """Write the patches of the branch ``BASE..TOPIC`` of ``repository``. TOPIC is HEAD by default.

    The patches are the commits that are in TOPIC and not in BASE, oldest first, and the series is named
    after TOPIC. Raises InputError if git does not find such commits, or if one of them is a merge.
    """
    match = _RANGE.fullmatch(text)
    if not match:
        raise InputError(
            f"--branch {text}: expected BASE..TOPIC",
            hint="give two revisions with two dots, such as --branch v6.12..my-topic.",
        )
    base, topic = match["base"], match["topic"] or "HEAD"
    ends = {name: _commit(repository, name) for name in (base, topic)}
    fork = _git(repository, "merge-base", ends[base], ends[topic])
    if not fork:
        raise InputError(
            f"--branch {text}: {base} and {topic} have no commit in common",
            hint="give as BASE the tag or branch from which TOPIC was made.",
        )
    span = f"{fork}..{ends[topic]}"
    commits = _git(repository, "rev-list", span)
    if not commits:
        raise InputError(
            f"--branch {text}: this range contains no commits",
            hint="give BASE first and the branch with your commits second.",
        )
    if merge := _git(repository, "rev-list", "--merges", "--max-count=1", span):
        raise InputError(
            f"--branch {text}: {merge[:12]} is a merge commit, which is not a patch",
            hint="rebase the branch on its base: a series is a linear sequence of commits.",
        )
    name = topic if topic != "HEAD" else _git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    digest = hashlib.sha256(" ".join(commits.split()).encode()).hexdigest()[:16]
    # Absolute, because git runs in the folder of the repository.
    folder = cache_dir.absolute() / "series" / digest / slug(name)
    with cache_folder.locked(folder.parent, SilentReporter(), f"patches of {text}"):
        if not folder.is_dir():
            with cache_folder.published(folder.parent) as work:
                into = str(work / folder.name)
                _git(repository, "format-patch", "-q", "--binary", "--no-signature", "-o", into, span)
    return Branch(base if fork == ends[base] else fork, folder)


def _commit(repository: Path, name: str) -> str:
    if not repository.is_dir():
        raise InputError(
            f"{repository} is not a folder", hint="give the git tree of a kernel with --source git:PATH."
        )
    done = git.read(repository, "rev-parse", "--verify", f"{name}^{{commit}}")
    if not done.ok:
        raise InputError(
            f"{name!r} is not a commit of {repository.absolute()}: {done.said.strip()}",
            hint="run this in the git tree, or give the tree with --source git:PATH.",
        )
    return done.text


def _git(repository: Path, *argv: str) -> str:
    """Return the output of git; an empty string if it fails, as merge-base does without a common commit."""
    return git.read(repository, *argv).text
