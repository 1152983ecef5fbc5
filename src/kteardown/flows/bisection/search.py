"""Find the commits that made a difference, with git bisect on each part of it that is not
explained.

Bisection finds one change. Where several commits share a difference, or a later one takes a part of
it back, what remains on either side of the first one is searched in the same way. With noise, each
step has an error, and each commit a probability.
"""

import math
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import special

from kteardown.analysis.sequential import FIRST_LOOK
from kteardown.errors import InputError
from kteardown.kernels import git
from kteardown.report.chart_model import Axis, Chart, Mark, Plot, PlotSeries

MOST_BOOTS = 80
"""The most blocks for a commit, unless --boots gives another number."""
RISK = 0.05
"""The probability that some step of a bisection decides wrongly."""
_POWER = 0.99
"""Of a step. A step that is not decided is skipped, and the answer is then several commits."""


class BlockMean(NamedTuple):
    """What blocks of one commit showed: the mean logarithm of its ratio to the good one, and its
    error."""

    mean: float
    error: float


def confidence_of_step(commits: int) -> float:
    """Return the confidence of each step of a bisection of ``commits``, and of the comparison of
    its ends."""
    return 1 - RISK / (1 + steps_of(commits))


def steps_of(commits: int) -> int:
    """Return how many of ``commits`` a bisection measures to find one."""
    return math.ceil(math.log2(max(commits, 2)))


def boots_needed(size: float, spread: float, confidence: float) -> int:
    """Return after how many blocks a change of the logarithm by ``size`` is decided in 99 of 100
    cases.

    ``spread`` is the standard deviation of a block, ``confidence`` that of the step.
    """
    errors = float(special.ndtri((1 + confidence) / 2) + special.ndtri(_POWER))
    return max(FIRST_LOOK, math.ceil((errors * spread / size) ** 2))


def posterior(
    commits: Sequence[str],
    within: Mapping[str, frozenset[str]],
    means: Mapping[str, BlockMean],
    size: float,
) -> dict[str, float]:
    """Return for each of ``commits`` the probability that it made the difference ``size``.

    ``within`` has the commits that each commit of ``means`` contains, itself included. Each commit
    was equally probable before, and the means are normal around zero or ``size``.
    """
    logs = np.zeros(len(commits))
    for commit, (mean, error) in means.items():
        bad = np.array([candidate in within[commit] for candidate in commits])
        logs -= np.where(bad, (mean - size) ** 2, mean**2) / (2 * max(error, 1e-9) ** 2)
    shares = np.exp(logs - logs.max())
    return dict(zip(commits, (shares / shares.sum()).tolist(), strict=True))


Value = Callable[[str], float | None]
"""The value of a commit; None if it has none, as one that does not build."""
_FOUND = re.compile(r"^[0-9a-f]{40,64} is the first '?bad'? commit$", re.MULTILINE)
"""What git says at the end, and not what the subject of the next commit says, which it prints too.

Git 2.55 puts the word in quotes.
"""
_SKIPPED = re.compile(r"^There are only 'skip'ped commits left to test", re.MULTILINE)
_LEAST = 0.05
"""A smaller part of the whole difference is not searched for: the layout of the code makes as
much."""


@dataclass(frozen=True)
class Change:
    """A difference that one of ``commits`` made: one, unless those between could not be
    measured."""

    commits: tuple[str, ...]
    before: float
    after: float

    @property
    def by(self) -> float:
        """The difference."""
        return self.after - self.before


class Walk:
    """The commits of a repository between two of them, in a git folder of its own.

    Nothing is written into the repository, and nothing of its configuration is executed.
    """

    def __init__(
        self,
        repository: Path,
        folder: Path,
        paths: Sequence[str] = (),
        *,
        first_parent: bool = False,
    ) -> None:
        self.git_dir = folder
        self._options = ["--first-parent"] if first_parent else []
        self._paths = ["--", *paths] if paths else []
        common = git.folders(repository)[1]
        # A git that was killed has left its locks, or half a folder.
        shutil.rmtree(folder, ignore_errors=True)
        git.prepare(folder)
        git.run("init", "-q", "--bare", git_dir=folder)
        (folder / "objects/info").mkdir(parents=True, exist_ok=True)
        (folder / "objects/info/alternates").write_text(f"{common.resolve() / 'objects'}\n")
        shallow = common / "shallow"
        if (
            shallow.is_file() and not shallow.is_symlink()
        ):  # A link could lead to any file of the user.
            shutil.copyfile(shallow, folder / "shallow")

    def changes(self, good: str, bad: str, value: Value) -> list[Change]:
        """Return the commits that made the difference between two commits, in their order.

        Raises InputError if git cannot bisect between them, or if one of the two has no value.
        """
        return list(self._changes(good, bad, value, self._difference(good, bad, value)))

    def _difference(self, good: str, bad: str, value: Value) -> float:
        before = value(good)
        after = value(bad)
        if before is None or after is None:
            raise InputError(
                f"{(good if before is None else bad)[:12]} cannot be measured",
                hint="name another commit that builds and boots.",
            )
        return after - before

    def _changes(self, good: str, bad: str, value: Value, whole: float) -> Iterator[Change]:
        start = value(good)
        gap = self._difference(good, bad, value)
        if good == bad or start is None or abs(gap) <= _LEAST * abs(whole):
            return

        def is_bad(commit: str) -> bool | None:
            measured = value(commit)
            return None if measured is None else (measured - start) / gap > 0.5

        bad_commits = self.first_bad(good, bad, is_bad)
        # Of several, the first has the last commit before the change as its parent.
        before = self.parent(bad_commits[-1])
        if len(bad_commits) > 1 and value(before) is None:
            before = bad_commits[-1]
        old = value(before)
        new = value(bad_commits[0])
        if new is None:
            return
        if (
            old is None
        ):  # As at a merge whose parents were skipped: nothing before it can be separated.
            before = good
            old = start
        yield from self._changes(good, before, value, whole)
        if abs(new - old) > _LEAST * abs(whole):
            yield Change(tuple(reversed(bad_commits)), old, new)
        yield from self._changes(bad_commits[0], bad, value, whole)

    def first_bad(self, good: str, bad: str, is_bad: Callable[[str], bool | None]) -> list[str]:
        """Return the first bad commit; several, newest first, if commits without a verdict lie
        between.

        Raises InputError if git refuses.
        """
        (self.git_dir / "HEAD").write_text(f"{bad}\n")
        answer = self._bisect("start", "--no-checkout", *self._options, bad, good, *self._paths)
        judged: set[str] = set()
        while not _FOUND.search(answer):
            if _SKIPPED.search(answer):
                words = (line.strip() for line in answer.splitlines())
                left = {word for word in words if len(word) in (40, 64)}
                return [
                    candidate
                    for candidate in self._ask("rev-list", f"{good}..{bad}").split()
                    if candidate in left
                ]
            commit = self._ask("rev-parse", "BISECT_HEAD")
            if commit in judged:
                hint = "report this with the version of git."
                raise InputError(
                    f"git bisect asks again for {commit}: {answer.strip()[-300:]}", hint=hint
                )
            judged.add(commit)
            verdict = is_bad(commit)
            term = "skip" if verdict is None else "bad" if verdict else "good"
            answer = self._bisect(term, commit)
        return [self._ask("rev-parse", "refs/bisect/bad")]

    def parent(self, commit: str) -> str:
        """Return the first parent. Raises InputError if git cannot read it."""
        return self._ask("rev-parse", f"{commit}^")

    def without(self, commits: Sequence[str], last: str) -> str | None:
        """Return the tree of ``last`` with ``commits`` reverted, oldest first; None if git cannot
        do that."""
        undo = git.run(
            "diff", "--binary", "--full-index", commits[-1], f"{commits[0]}^", git_dir=self.git_dir
        )
        steps = (("read-tree", last), ("apply", "--cached", "--3way"), ("write-tree",))
        results = [git.run(*step, git_dir=self.git_dir, data=undo.out) for step in steps if undo.ok]
        return results[-1].text if results and all(result.ok for result in results) else None

    @property
    def log(self) -> str:
        """What `git bisect replay` needs to do the last bisection again."""
        return git.run("bisect", "log", git_dir=self.git_dir).text

    def _bisect(self, *argv: str) -> str:
        result = git.run("bisect", *argv, git_dir=self.git_dir)
        answer = f"{result.text}\n{result.said}"
        if not result.ok and not _SKIPPED.search(answer):
            raise InputError(
                f"git cannot bisect: {answer.strip()[-300:]}",
                hint="the good commit must come before the bad one.",
            )
        return answer

    def _ask(self, *argv: str) -> str:
        result = git.run(*argv, git_dir=self.git_dir)
        if not result.ok:
            raise InputError(
                f"git: {result.said.strip()[-300:]}", hint="check the repository with `git fsck`."
            )
        return result.text


_WIDTH = 72
_KINDS = (
    ("good", False, "better", "circle"),
    ("bad", True, "worse", "square"),
    ("no value, or uncertain", None, "inconclusive", "x"),
)


class CommitValue(NamedTuple):
    """A tested commit: its place in the history after the good one, its value also in words, its
    subject."""

    at: int
    is_bad: bool | None
    value: float | None
    ci: tuple[float, float] | None
    figures: str
    text: str


def line(tested: Iterable[CommitValue], last: int, left: Iterable[int]) -> str:
    """Return the history up to the place ``last`` on one line.

    A tested commit is ``o`` if it is good, ``#`` if it is bad, and ``?`` without a value. The
    change may be at the places ``left``, which are ``=``.
    """
    letters = ["-"] * _WIDTH
    marks = [(at, "=") for at in left]
    marks += [(commit.at, {False: "o", True: "#", None: "?"}[commit.is_bad]) for commit in tested]
    for at, letter in marks:
        letters[round(at * (_WIDTH - 1) / max(last, 1))] = letter
    return "".join(letters)


def chart(tested: Sequence[CommitValue], title: str, unit: str) -> Chart:
    """Return the chart of values, which are in ``unit``, with their intervals."""
    least = min((commit.value for commit in tested if commit.value is not None), default=0.0)
    series = []
    for name, is_bad, colour, symbol in _KINDS:
        marks = [
            Mark(
                commit.at,
                least if commit.value is None else commit.value,
                f"{commit.figures} {commit.text}",
                *(commit.ci or ()),
            )
            for commit in tested
            if commit.is_bad is is_bad
        ]
        series += [PlotSeries(name, colour, tuple(marks), symbol)] if marks else []
    plot = Plot(Axis("commits after the good one"), Axis(unit), tuple(series))
    return Chart("commits", title, f"{len(tested)} tested commits with their values.", plot)
