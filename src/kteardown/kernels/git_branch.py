"""A git branch as a series: the commits of BASE..TOPIC become its patches."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError
from kteardown.kernels import cache_folder, toolchain
from kteardown.kernels.series import slug
from kteardown.progress import SilentReporter

_RANGE = re.compile(r"(?P<base>.+?)\.{2,3}(?P<topic>.*)")
# What the user's own configuration of git would change in a patch.
_PLAIN = ("--src-prefix=a/", "--dst-prefix=b/", "--no-ext-diff", "--no-textconv", "--no-color", "--binary")
_MAIL = ("--no-attach", "--no-thread", "--no-signature", "--no-cover-letter", "--no-base")


@dataclass(frozen=True)
class Branch:
    """``base``: where the branch left BASE, as a name that git knows. ``folder``: its patches, cached."""

    base: str
    folder: Path


def of_branch(text: str, repository: Path, cache_dir: Path) -> Branch:
    """The branch ``BASE..TOPIC`` of ``repository``; no TOPIC is what is checked out.

    The patches are those of the commits that are in TOPIC and not in BASE, oldest first, and the series is
    called after TOPIC. Raises InputError where git knows no such commits, or a merge is among them.
    """
    match = _RANGE.fullmatch(text)
    if not match:
        raise InputError(f"--branch {text}: expected BASE..TOPIC", hint="as in --branch v6.12..my-topic")
    base, topic = match["base"], match["topic"] or "HEAD"
    ends = {name: _commit(repository, name) for name in (base, topic)}
    left = _git(repository, "merge-base", ends[base], ends[topic])
    if not left:
        raise InputError(
            f"--branch {text}: {base} and {topic} have no commit in common",
            hint="name the tag or branch that TOPIC was made from.",
        )
    commits = _git(repository, "rev-list", f"{left}..{ends[topic]}").split()
    _check(text, repository, commits, f"{left}..{ends[topic]}")
    name = topic if topic != "HEAD" else _git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    folder = _folder(cache_dir, commits) / slug(name)
    with cache_folder.locked(folder.parent, SilentReporter(), f"patches of {text}"):
        if not folder.is_dir():
            with cache_folder.published(folder.parent) as work:
                span = f"{left}..{ends[topic]}"
                into = str(work / folder.name)
                _git(repository, "format-patch", "-q", *_PLAIN, *_MAIL, "-o", into, span)
    return Branch(base if left == ends[base] else left, folder)


def _check(text: str, repository: Path, commits: list[str], span: str) -> None:
    if not commits:
        raise InputError(
            f"--branch {text}: no commit is in it",
            hint="name BASE first and the branch with your commits second.",
        )
    merge = _git(repository, "rev-list", "--merges", "--max-count=1", span)
    if merge:
        raise InputError(
            f"--branch {text}: {merge[:12]} is a merge, which is no patch",
            hint="rebase the branch on its base; a series is commits in a row.",
        )


def _folder(cache_dir: Path, commits: list[str]) -> Path:
    # Git runs in the tree, wherever the cache is seen from.
    return cache_dir.absolute() / "series" / hashlib.sha256(" ".join(commits).encode()).hexdigest()[:16]


def _commit(repository: Path, name: str) -> str:
    if not repository.is_dir():
        raise InputError(f"{repository} is no folder", hint="write --source git:PATH, a kernel's git tree.")
    done = toolchain.capture(["git", "-C", str(repository), "rev-parse", "--verify", f"{name}^{{commit}}"])
    if done.returncode:
        raise InputError(
            f"{name!r} is no commit of {repository.absolute()}: {done.stderr.strip()}",
            hint="run this in the git tree, or name the tree with --source git:PATH.",
        )
    return done.stdout.strip()


def _git(repository: Path, *argv: str) -> str:
    """What git says; nothing where it fails, as it does where there is nothing to say."""
    return toolchain.capture(["git", "-C", str(repository), *argv]).stdout.strip()
