"""Kernel releases by their first two numbers: which measured ones are nearest to that of a
machine."""

import re
from collections.abc import Iterable

_NUMBERS = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


def version_of(release: str) -> tuple[int, int] | None:
    """Return the first two numbers of a release, such as (6, 12) of ``6.12.117+deb12-amd64``; None
    if it does not begin with them."""
    match = _NUMBERS.match(release)
    return (int(match[1]), int(match[2])) if match else None


def nearest(release: str, measured: Iterable[str]) -> tuple[str, ...]:
    """Return the measured releases that stand for ``release``: the same one, or else the next older
    and the next newer one, as far as there are any.

    All are returned if ``release`` says no version.
    """
    by_version = {version_of(name): name for name in measured}
    versions = sorted(version for version in by_version if version)
    wanted = version_of(release)
    if wanted is None:
        return tuple(by_version[version] for version in versions)
    if wanted in by_version:
        return (by_version[wanted],)
    older = [version for version in versions if version < wanted][-1:]
    newer = [version for version in versions if version > wanted][:1]
    return tuple(by_version[version] for version in (*older, *newer))


def newer_than(release: str, measured: Iterable[str]) -> tuple[str, ...]:
    """Return the measured releases that are newer than ``release``, oldest first."""
    wanted = version_of(release)
    known = {name: version_of(name) for name in measured}
    return tuple(
        sorted(
            (name for name, version in known.items() if wanted and version and version > wanted),
            key=lambda name: known[name] or (0, 0),
        )
    )
