"""Why no source takes a series, and what to do about it."""

from collections.abc import Sequence
from pathlib import Path

from kteardown.errors import BuildError, LabError
from kteardown.kernels.source import Sources
from kteardown.kernels.source_name import with_short_commit
from kteardown.patches.failing_hunks import differs_in_blanks
from kteardown.patches.tried_source import TriedSource
from kteardown.patches.warnings import release_of

ABSENT = "is not on this machine"
"""The reason of a source that is not fetched."""
USUAL_MB = 160
TREE_GB = 1.8
"""The download of a source, if nothing says its size before, and its tree, both of 7.3."""
_SHOWN = 30
"""Lines of failing hunks that a message has; all of them are in a file."""


class NoSourceError(LabError):
    """None of the sources is on this machine, so that the series was compared with nothing."""


def no_source(attempts: Sequence[TriedSource], version: str) -> NoSourceError:
    """Return the error for ``attempts`` of which none has a tree: that of a dry run, or why nothing
    could be fetched."""
    if any(attempt.reason != ABSENT for attempt in attempts):
        return NoSourceError(
            "\n  ".join(("no kernel source can be used:", *(a.sentence() for a in attempts))),
            hint="check the network and the space on the disk, or give your own tree: --source "
            "git:~/linux.",
        )
    named = [attempt.source for attempt in attempts]
    first = next((spec for spec in named if version and release_of(spec) == version), named[0])
    none = f"none of {', '.join(named)} is" if len(named) > 1 else f"{first} is not"
    return NoSourceError(
        f"--dry-run fetches no kernel source, and {none} on this machine",
        hint=(
            f"leave out --dry-run, so that kteardown fetches {first} (about {USUAL_MB} MB, "
            f"{TREE_GB} GB when unpacked), or give your own tree: --source git:~/linux."
        ),
    )


def advice(
    patches: Sequence[Path],
    attempts: Sequence[TriedSource],
    sources: Sources,
    base_commit: str,
    version: str,
) -> str:
    """Return what to do if no source takes a series, of which the mails name ``base_commit``."""
    having = [a for a in attempts if a.how == "already there" or a.present or a.has_most]
    if version and version not in {a.version for a in attempts}:
        having = []
    if having:
        nearest = max(
            having,
            key=lambda a: (a.version == version, a.how == "already there", a.present_hunks),
        )
        older = f"name the older tree for which the series was made with --source{_such(version)}"
        if version and nearest.how == "already there":
            return (
                f"{nearest.source} already has this change for {version}: name a release before it "
                f"with --source{_such(version)}."
            )
        if not nearest.present or nearest.how == "already there":
            return f"{nearest.source} already has the change: {older}."
        return (
            f"{nearest.source} already has a part of the series: {older}; or give only the other "
            "patches, to measure what they change there."
        )
    tried = [a for a in attempts if a.how == "fails"]
    damaged = [a for a in tried if len(patches) == 1 and len(a.same) == a.files > 0]
    for attempt in tried:
        if differs_in_blanks(sources.tree(sources.identify(attempt.source)), patches):
            damaged.append(attempt)
    if damaged:
        return (
            "a mail program changed the diff, as some do that forward or copy a mail: it lost its "
            "tabs or has blanks for them, or its lines are wrapped. Give the mail as it was sent "
            "(lore:MESSAGE-ID, its source, or an attachment). If it was sent like this, ask its "
            "author for a branch or an attachment."
        )
    if version and version not in {a.version for a in attempts}:
        return f"the subject says that it is for {version}: name that source{_such(version)}."
    return _tree_to_name(tried or attempts, base_commit)


def _such(version: str) -> str:
    return f" (--source kernel.org:{version}, or git:~/linux@v{version})" if version else ""


def _tree_to_name(tried: Sequence[TriedSource], base_commit: str) -> str:
    """Return which git tree to name; if there are any, that on which the fewest hunks fail."""
    trees = [attempt for attempt in tried if attempt.source.startswith("git:")]
    if not trees:
        return (
            "name a git tree of Linux (--source git:~/linux): kteardown finds the release there "
            "for which the series was made."
        )
    nearest = min(trees, key=lambda attempt: len(attempt.failing)).source
    tree, at, _ = nearest.rpartition("@")
    tree = tree if at else nearest
    if base_commit:
        commit = base_commit[:12]
        return (
            f"the mails say that the series is made from {commit}: fetch that commit, and name "
            f"{tree}@{commit}."
        )
    return (
        "fetch the branch for which the series was made, and name its commit: --source "
        f"{tree}@COMMIT."
    )


def nothing_takes_it(
    patches: Sequence[Path],
    attempts: Sequence[TriedSource],
    from_releases: Sequence[str],
    hint: str,
) -> BuildError:
    lines = ["no known source takes this series:", *(f"  {a.sentence()}" for a in attempts)]
    lines += [f"  {line}" for line in from_releases]
    tried = [a for a in attempts if a.how == "fails"]
    has_it = any(a.how == "already there" for a in attempts)
    if has_it or not any(a.failing for a in tried):
        return BuildError("\n".join(lines), hint=hint)
    best = min((a for a in tried if a.failing), key=lambda a: len(a.failing))
    text = [line for hunk in best.failing for line in hunk.lines()]
    lines += [
        f"hunks that fail on {with_short_commit(best.id)}:",
        *(f"  {line}" for line in text[:_SHOWN]),
    ]
    file = patches[0].parents[1] / "failing-hunks.txt"
    file.write_text(
        "".join(
            f"{a.sentence()}\n"
            + "".join(f"{line}\n" for h in a.failing for line in h.lines())
            + "\n"
            for a in tried
        )
    )
    lines.append(f"  all failing hunks: {file}")
    return BuildError("\n".join(lines), hint=hint)
