"""Check a range of commits that a user gave, so that an error says which part of it is wrong."""

import re
from pathlib import Path

from kteardown.errors import InputError, did_you_mean
from kteardown.kernels import git
from kteardown.patches.given import FORMS, CommitRange, diff_of

_SPAN = re.compile(r"(?P<base>.+?)\.{2,3}(?P<topic>.*)")
_CHECK_PATH = "check the path: git:PATH@BASE..TOPIC, as in git:~/linux@v6.12..my-topic."


def check(given: CommitRange) -> None:
    """Raise InputError, which names the range as it was typed, unless it has commits of a git
    tree."""
    repository = given.repository
    if not repository.is_dir():
        raise InputError(f"{given.typed}: {given.path} is not a folder", hint=_CHECK_PATH)
    _check_tree(given)
    match = _SPAN.fullmatch(given.span)
    if match is None:
        raise InputError(f"{given.typed} names no range of commits", hint=_CHECK_PATH)
    base = match["base"]
    topic = match["topic"] or "HEAD"
    base_commit, topic_commit = (_commit(given, name) for name in (base, topic))
    argv = ("rev-list", "--max-count=1", f"{base_commit}..{topic_commit}")
    if git.run_reading(repository, *argv).text:
        return
    if base_commit == topic_commit:
        raise InputError(
            f"{given.typed} contains no commits: {topic} is {base}",
            hint=(
                "commit your changes; or, to try those that are in no commit: "
                f"{diff_of(given.path)}"
            ),
        )
    raise InputError(
        f"{given.typed} contains no commits: {base} has all those of {topic}",
        hint="give first the commit before your own ones, and after the dots your branch.",
    )


def is_tree(folder: Path) -> bool:
    """Return whether ``folder`` is a git tree or a repository without one."""
    return (folder / ".git").exists() or (
        (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    )


def _check_tree(given: CommitRange) -> None:
    try:
        git.folders(given.repository)
    except InputError as error:
        if given.is_bare:
            raise InputError(
                f"there is no file {given.typed}, and the current folder is in no git tree",
                hint=FORMS,
            ) from error
        raise InputError(
            f"{given.typed}: {given.path} is not a git tree", hint=_CHECK_PATH
        ) from error


def _commit(given: CommitRange, name: str) -> str:
    """Return the id of the commit ``name``. Raises InputError with a name that is similar."""
    argv = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    result = git.run_reading(given.repository, *argv)
    if result.ok and result.text:
        return result.text
    listed = git.run_reading(
        given.repository,
        *("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes"),
    )
    no_such_file = f"there is no file {given.typed}, and" if given.is_bare else f"{given.typed}:"
    near = did_you_mean(name, listed.text.splitlines())
    raise InputError(
        f"{no_such_file} {name!r} is not a commit of {given.repository.absolute()}{near}",
        hint=(
            "name a branch, a tag or a commit; fetch it first if it is remote. In a shallow clone, "
            "run `git fetch --unshallow` first."
        ),
    )
