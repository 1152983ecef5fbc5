"""Bisections of random histories by git itself, with values that are known."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.flows.bisection.search import CommitValue, Walk, chart, line
from kteardown.report.chart_model import Plot
from kteardown.report.charts import svg_file

HISTORIES = 8
COMMITS = 120


@dataclass(frozen=True)
class History:
    """A repository: its commits, oldest first, and of each the parents' numbers."""

    folder: Path
    ids: list[str]
    parents: list[tuple[int, ...]]

    def values(self, effects: dict[int, float], start: float = 100) -> list[float]:
        """The value of each commit: ``start`` and the effects of all that it contains."""
        within: list[frozenset[int]] = []
        for number, parents in enumerate(self.parents):
            within.append(frozenset({number}).union(*(within[parent] for parent in parents)))
        return [start + sum(effects.get(one, 0) for one in each) for each in within]


def history(folder: Path, parents: Sequence[tuple[int, ...]]) -> History:
    """Make a repository in which commit n, which touches file a or b, has these parents."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    stream = []
    for number, above in enumerate(parents):
        stream += [f"commit refs/heads/main\nmark :{number + 1}"]
        stream += [f"committer A <a@localhost> {number + 1000} +0000\ndata 0"]
        stream += [f"{'merge' if n else 'from'} :{one + 1}" for n, one in enumerate(above)]
        stream += [f"M 100644 inline {'ab'[number % 2]}\ndata {len(str(number))}\n{number}"]
    text = "\n".join(stream) + "\n"
    marks = folder / ".git/marks"
    argv = ["git", "-C", str(folder), "fast-import", "--quiet", f"--export-marks={marks}"]
    subprocess.run(argv, input=text.encode(), check=True)
    found = dict(line.split() for line in marks.read_text().splitlines())
    return History(folder, [found[f":{n + 1}"] for n in range(len(parents))], list(parents))


def straight(count: int) -> list[tuple[int, ...]]:
    return [(number - 1,) if number else () for number in range(count)]


def with_merges(rng: random.Random, count: int) -> list[tuple[int, ...]]:
    """Branches of a few commits beside the main line, merged back."""
    parents: list[tuple[int, ...]] = [()]
    main = 0
    while len(parents) < count:
        if len(parents) < 5 or rng.random() < 0.6:
            parents.append((main,))
        else:
            tip = rng.randrange(max(0, main - 3), main + 1)
            for _ in range(rng.randint(1, 4)):
                parents.append((tip,))
                tip = len(parents) - 1
            parents.append((main, tip))
        main = len(parents) - 1
    return parents


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_every_commit_that_made_a_part_of_the_difference_is_found(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    shape = with_merges(rng, COMMITS) if seed % 2 else straight(COMMITS)
    made = history(tmp_path / "linux", shape)
    singles = [n for n in range(1, len(shape) - 1) if len(shape[n]) == 1]
    effects = {n: float(rng.choice((5, 8, 40))) for n in rng.sample(singles, rng.choice((1, 2, 3)))}
    values = made.values(effects)
    absent = {n for n in range(1, len(shape) - 1) if n not in effects and rng.random() < 0.05}
    absent -= {parent for n in effects for parent in shape[n]}
    asked: list[str] = []

    def value(commit: str) -> float | None:
        asked.append(commit)
        number = made.ids.index(commit)
        return None if number in absent else values[number]

    found = Walk(made.folder, tmp_path / "git").changes(made.ids[0], made.ids[-1], value)
    assert {(made.ids.index(one.commits[0]), one.by) for one in found} == set(effects.items())
    assert len(set(asked)) < COMMITS / 2


def test_a_later_commit_that_takes_a_part_back_is_found(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(60))
    values = made.values({20: 40.0, 45: -25.0})
    walk = Walk(made.folder, tmp_path / "git")
    found = walk.changes(made.ids[0], made.ids[-1], lambda one: values[made.ids.index(one)])
    assert [(made.ids.index(one.commits[0]), one.before, one.after) for one in found] == [
        (20, 100, 140),
        (45, 140, 115),
    ]


def test_commits_without_a_value_beside_the_change_are_named_with_it(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(30))
    values = made.values({15: 10.0})

    def value(commit: str) -> float | None:
        number = made.ids.index(commit)
        return None if 12 <= number < 15 else values[number]

    (found,) = Walk(made.folder, tmp_path / "git").changes(made.ids[0], made.ids[-1], value)
    assert [made.ids.index(one) for one in found.commits] == [12, 13, 14, 15]
    assert found.by == 10


@pytest.mark.parametrize("seed", [5012, 5047, 5086, 5111])
def test_a_change_behind_skipped_commits_at_a_merge_is_not_dropped(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    made = history(tmp_path / "linux", with_merges(rng, 40))
    singles = [n for n in range(1, 39) if len(made.parents[n]) == 1]
    change = rng.choice(singles)
    values = made.values({change: 10.0})
    absent = {n for n in range(1, 39) if rng.random() < 0.3}

    def value(commit: str) -> float | None:
        number = made.ids.index(commit)
        return None if number in absent else values[number]

    found = Walk(made.folder, tmp_path / "git").changes(made.ids[0], made.ids[-1], value)
    assert sum(one.by for one in found) == 10
    assert change in {made.ids.index(one) for each in found for one in each.commits}


def test_only_commits_that_touch_a_path_are_tested(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(40))
    values = made.values({21: 10.0})
    asked: list[int] = []

    def value(commit: str) -> float:
        asked.append(made.ids.index(commit))
        return values[asked[-1]]

    (found,) = Walk(made.folder, tmp_path / "git", ["b"]).changes(made.ids[0], made.ids[-1], value)
    assert made.ids.index(found.commits[0]) == 21
    assert all(number % 2 for number in asked if number not in (0, 20, 39))


def test_the_repository_is_not_touched_and_nothing_of_it_is_executed(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(8))
    hook = made.folder / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    hook.chmod(0o755)
    config = made.folder / ".git/config"
    config.write_text(f"{config.read_text()}\n[core]\n\tfsmonitor = touch {tmp_path}/executed\n")
    before = {path: path.stat().st_mtime_ns for path in made.folder.rglob("*")}
    values = made.values({5: 10.0})
    walk = Walk(made.folder, tmp_path / "git")
    walk.changes(made.ids[0], made.ids[-1], lambda one: values[made.ids.index(one)])
    assert {path: path.stat().st_mtime_ns for path in made.folder.rglob("*")} == before
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("left", ["refs/bisect/bad.lock", "packed-refs.lock", "index.lock", "HEAD"])
def test_a_walk_goes_on_after_its_git_was_killed(tmp_path: Path, left: str) -> None:
    made = history(tmp_path / "linux", straight(16))
    values = made.values({11: 10.0})
    folder = tmp_path / "git"
    Walk(made.folder, folder)
    (folder / left).parent.mkdir(parents=True, exist_ok=True)
    # As git leaves its locks. Without a HEAD, which is written last, a folder is no repository.
    (folder / left).unlink() if left == "HEAD" else (folder / left).touch()
    walk = Walk(made.folder, folder)
    (found,) = walk.changes(made.ids[0], made.ids[-1], lambda one: values[made.ids.index(one)])
    assert found.commits == (made.ids[11],)
    assert walk.without([made.ids[15]], made.ids[-1])


def test_git_takes_over_with_the_log(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(16))
    values = made.values({11: 10.0})
    walk = Walk(made.folder, tmp_path / "git")
    walk.changes(made.ids[0], made.ids[-1], lambda one: values[made.ids.index(one)])
    log = tmp_path / "log"
    log.write_text(walk.log + "\n")
    subprocess.run(["git", "-C", str(made.folder), "checkout", "-q", "-f", "main"], check=True)
    argv = ["git", "-C", str(made.folder), "bisect", "replay", str(log)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    # Git 2.55 puts the word in quotes.
    assert re.search(rf"{made.ids[11]} is the first '?bad'? commit", done.stdout)


def test_a_commit_is_reverted_at_the_end_if_what_followed_leaves_that(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(6))
    walk = Walk(made.folder, tmp_path / "git")
    # Each second commit rewrites the same file.
    assert walk.without([made.ids[3]], made.ids[-1]) is None
    tree = walk.without([made.ids[5]], made.ids[-1])
    argv = ["git", "-C", str(made.folder), "rev-parse", f"{made.ids[4]}^{{tree}}"]
    assert tree == subprocess.check_output(argv, text=True).strip()
    assert walk.without(made.ids[3:], made.ids[-1])
    assert walk.parent(made.ids[3]) == made.ids[2]


def test_ends_in_the_wrong_order_are_an_error(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(8))
    values = made.values({5: 10.0})
    walk = Walk(made.folder, tmp_path / "git")
    with pytest.raises(InputError, match="git cannot bisect"):
        walk.changes(made.ids[-1], made.ids[0], lambda one: values[made.ids.index(one)])
    with pytest.raises(InputError, match=f"{made.ids[0][:12]} cannot be measured"):
        walk.changes(made.ids[0], made.ids[-1], lambda one: None)


def test_what_the_subject_of_a_commit_says_does_not_end_the_search(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    for subject in (
        "this is the first bad commit",
        "There are only 'skip'ped commits left to test",
    ):
        for _ in range(8):
            subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
    argv = [*git, "rev-list", "--reverse", "HEAD"]
    ids = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    walk = Walk(tmp_path, tmp_path / "bisect")
    for culprit in (1, 5, 9, 14):
        bad = set(ids[culprit:])
        assert walk.first_bad(ids[0], ids[-1], bad.__contains__) == [ids[culprit]]


def test_a_link_in_the_repository_brings_no_file_of_the_user(tmp_path: Path) -> None:
    made = history(tmp_path / "linux", straight(8))
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    (made.folder / ".git/shallow").symlink_to(secret)
    Walk(made.folder, tmp_path / "git")
    assert not (tmp_path / "git/shallow").exists()


TESTED = [
    CommitValue(0, False, 68.0, None, "68", "good"),
    CommitValue(30, False, 70.0, (65.0, 75.0), "70 [65, 75]", "a <b> of another"),
    CommitValue(50, None, None, None, "no value", "does not build"),
    CommitValue(71, True, 115.0, (110.0, 120.0), "115 [110, 120]", "bad"),
]


def test_the_history_is_on_one_line() -> None:
    found = line(TESTED, 71, range(31, 72))
    assert found == "o" + "-" * 29 + "o" + "=" * 19 + "?" + "=" * 20 + "#"
    assert line(TESTED[:1], 0, ())[0] == "o"
    assert len(line(TESTED, 100_000, [99_999])) == len(found)


def test_each_commit_has_its_value_and_interval_in_the_chart() -> None:
    drawn = chart(TESTED, "cost", "instructions")
    assert isinstance(drawn.drawn, Plot)
    marks = {one.name: one.marks for one in drawn.drawn.series}
    assert [(mark.x, mark.y, mark.low, mark.high) for mark in marks["good"]] == [
        (0, 68, None, None),
        (30, 70, 65, 75),
    ]
    assert [mark.y for mark in marks["bad"]] == [115]
    assert [mark.y for mark in marks["no value, or uncertain"]] == [68]
    svg = svg_file(drawn)
    assert "70 [65, 75] a &lt;b&gt; of another" in svg
    assert svg.count('class="ends') == 2
