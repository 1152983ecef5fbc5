"""What a reader should know of a series on a source: what is already there, or not yet."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kteardown.kernels import git
from kteardown.kernels.series import subject
from kteardown.kernels.source import Source
from kteardown.kernels.source_name import with_short_commit

_MOST_TEXT = 100_000
_FIXES = re.compile(r"^Fixes: *([0-9a-f]{8,40})\b *(\(.{1,150}\))?", re.MULTILINE)
_STABLE = re.compile(
    r"^Cc: .{0,99}stable@(?:vger\.)?kernel\.org.{0,20}#.{0,20}?\bv?(\d+)\.(\d+)", re.M | re.I
)
_MAKEFILE = re.compile(r"^VERSION *= *(\d{1,4})\nPATCHLEVEL *= *(\d{1,4})$", re.MULTILINE)
_RELEASE = re.compile(r"(?<![\d.])\d{1,4}\.\d{1,4}")
_VERSION = re.compile(r"(?<!\d)(\d++)\.(\d+)")


def warnings(
    patches: Sequence[Path], source: Source, tree: Path, meant: str = ""
) -> tuple[str, ...]:
    """Return, in sentences, which of ``patches`` say that they are not for ``source``.

    ``meant`` is the version for which the subjects say that the series is; it may be empty.

    Of a git tree, its history says whether it has the change that a patch fixes; of others, the
    versions of the stable kernels that the patch names are compared with that of the tree.
    """
    sentences = (
        [line for patch in patches for line in _history(patch, source)]
        if source.kind == "git"
        else []
    )
    version = version_of(tree)
    if meant and version and meant != version:
        sentences.append(
            f"NOT FOR THIS VERSION: the subject says that it is for {meant}, and "
            f"{with_short_commit(source.id)} is {version} (--source kernel.org:{meant})"
        )
    for patch in patches if version else ():
        versions = [(int(major), int(minor)) for major, minor in _STABLE.findall(_head(patch))]
        if versions and min(versions) > _numbers(version):
            first = ".".join(map(str, min(versions)))
            sentences.append(
                f'NOT FOR THIS VERSION: "{subject(patch)}" is for {first} and newer '
                f"(Cc: stable), and "
                f"{with_short_commit(source.id)} is {version}"
            )
    return tuple(sentences)


def version_of(tree: Path) -> str:
    """Return the version of a source tree by its makefile, such as 6.12; empty without one."""
    makefile = _MAKEFILE.search(_head(tree / "Makefile"))
    return f"{int(makefile[1])}.{int(makefile[2])}" if makefile else ""


def release_of(spec: str) -> str:
    """Return the version that the name of a source has, such as 6.12; empty without one."""
    match = _RELEASE.search(spec.rpartition("/")[2])
    return match[0] if match else ""


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


def _history(patch: Path, source: Source) -> list[str]:
    """Return a sentence for each change that ``patch`` fixes and that the history of ``source``
    lacks."""
    lines = []
    with git.view(Path(source.origin)) as git_dir:
        complete = git.run("rev-parse", "--is-shallow-repository", git_dir=git_dir).text == "false"
        for fixed, title in _FIXES.findall(_head(patch)) if complete else ():
            what = f'"{subject(patch)}" fixes {fixed[:12]} {title}'.rstrip()
            fixed_commit = git.run(
                "rev-parse", "--verify", "-q", f"{fixed}^{{commit}}", git_dir=git_dir
            ).text
            if not fixed_commit.startswith(fixed):
                lines.append(f"{what}; {source.origin} has no such commit to compare with")
                continue
            commit = source.id.rpartition("@")[2]
            if not git.run("merge-base", "--is-ancestor", fixed_commit, commit, git_dir=git_dir).ok:
                lines.append(
                    f"FIXES WHAT IS NOT THERE: {what}, which is not in the history of {commit[:12]}"
                )
    return lines


def _head(file: Path) -> str:
    """Return the text before the diff of a patch, or the beginning of another file; empty without
    it."""
    if not file.is_file():
        return ""
    with file.open(errors="replace") as stream:
        return stream.read(_MOST_TEXT).partition("\ndiff --git ")[0]


def made_between(same: Mapping[str, Collection[str]], files: int) -> str:
    """Return which releases have the files from which a series was made, in words; empty if none
    has any.

    ``same`` has by the name of each release, newest first, those of the ``files`` that are exactly
    these.
    """
    names = list(same)
    places = [
        [number for number, name in enumerate(names) if file in same[name]]
        for file in sorted({file for matching in same.values() for file in matching})
    ]
    if not places:
        return ""
    oldest = max(map(min, places))
    newest = min(map(max, places))
    if oldest <= newest:  # All files that any release has are in one.
        return (
            f"{len(places)} of the {files} files that it was made from are those of {names[oldest]}"
        )
    return (
        f"the files that it was made from are between those of {names[oldest]} and {names[newest]}"
    )


def by_version(names: Sequence[str]) -> list[str]:
    """Return those of ``names`` that have a version, the newest first."""
    versions = {
        name: tuple(map(int, match.groups())) for name in names if (match := _VERSION.search(name))
    }
    return sorted(versions, key=lambda name: versions[name], reverse=True)
