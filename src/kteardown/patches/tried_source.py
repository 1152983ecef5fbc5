"""What became of a series on each source that was tried, and the source that takes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kteardown.kernels.source_name import with_short_commit
from kteardown.patches.choice import counted

How = Literal[
    "exactly", "with offsets", "merged", "with less context", "already there", "fails", "not here"
]


@dataclass(frozen=True)
class FailingHunk:
    """One hunk that a source does not take; ``number`` is 0 if the whole file is not as it should
    be."""

    patch: str
    file: str
    number: int
    text: str

    def lines(self) -> list[str]:
        """Return the hunk under the name of its patch and file."""
        number = f", hunk {self.number}" if self.number else ""
        return [
            f"{self.patch}: {self.file}{number}",
            *(f"  {line}" for line in self.text.splitlines()),
        ]


@dataclass(frozen=True)
class TriedSource:
    """What became of the series on one source."""

    source: str
    """As it was named: debian:7.2."""
    id: str
    how: How
    failing: tuple[FailingHunk, ...] = ()
    hunks: int = 0
    same: tuple[str, ...] = ()
    """Which of the files that the series changes are exactly those that it was made from."""
    files: int = 0
    present: tuple[int, ...] = ()
    """The numbers of the patches that the source has already, if the series does not apply."""
    present_hunks: int = 0
    """How many of all hunks the source has already."""
    merged: tuple[str, ...] = ()
    """Files that the series adds, and that the source has: a version of the series was merged
    there."""
    reason: str = ""
    version: str = ""
    """Of the source, by its makefile: 7.2. Empty if it was not looked at."""

    @property
    def has_most(self) -> bool:
        """Whether most of the series is in the source, perhaps in another form."""
        return 2 * self.present_hunks > self.hunks

    def sentence(self) -> str:
        """Return the outcome in words."""
        merged = (
            f"; it has {', '.join(self.merged[:2])}, which the series adds" if self.merged else ""
        )
        same = f"; {len(self.same)} of {self.files} files are those from which it was made"
        words: dict[How, str] = {
            "fails": f"{len(self.failing)} of {self.hunks} hunks fail{merged}{self._present()}",
            "exactly": "applies exactly: the files are those from which the patch was made",
            "with offsets": f"applies, in files that differ elsewhere{same if self.files else ''}",
            "merged": "DOES NOT APPLY AS POSTED; merged (three-way) without conflicts",
            "with less context": (
                "DOES NOT APPLY AS POSTED; applies if one line of context is compared, not three"
            ),
            "already there": self.reason or "has this change already",
            "not here": self.reason,
        }
        return f"{with_short_commit(self.id or self.source)}: {words[self.how]}"

    def _present(self) -> str:
        """Return what the source has already of a series that does not apply, in words."""
        if not self.present_hunks and not self.present:
            return ""
        share = f"{self.present_hunks} of {self.hunks} hunks"
        if self.present:
            return f"; it has {counted('patch', self.present)} already, {share}"
        if self.has_most:
            return f"; most of it is there in another form: {share} apply in reverse"
        return f"; it has {share} already"


@dataclass(frozen=True)
class Base:
    """The source that takes the series, and the patches as they apply to it."""

    source: str
    id: str
    how: How
    patches: tuple[Path, ...]
    attempts: tuple[TriedSource, ...]
    left_out: tuple[str, ...] = ()
    """Files of the series that no kernel is built from, and that keep it from applying."""
    warnings: tuple[str, ...] = ()
    """Why the series may not be for this source, though it applies, and for which it is, in
    sentences."""

    @property
    def chosen(self) -> TriedSource:
        """The attempt that succeeded."""
        return next(a for a in self.attempts if a.source == self.source and a.how == self.how)
