"""Make a git repository of a kernel with hundreds of commits, some of which make the freezer
slower.

    python bench/bisect_history.py SOURCE REPOSITORY --seed 1 --commits 320 --nops 27,4
    python bench/bisect_history.py SOURCE REPOSITORY --branch wall-1 --culprits 2 --delay 20

Most commits only rewrite kernel/freezer.c and kernel/power/process.c: comments, the form of an
expression, the name of a variable. Three do not build, one panics when processes are frozen, and a
side branch of three commits is merged after each forty (``--merges 0``: none). ``--nops``: how many
instructions for a process each culprit adds; ``--delay``: how many microseconds; ``--culprits``:
the seed of where they are. What was made is printed as JSON. Each ``--branch`` of a repository
begins at the tag ``base``.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

FREEZER = "kernel/freezer.c"
PROCESS = "kernel/power/process.c"
FORMS = {
    "product": (PROCESS, "sleep_usecs *= 2;", "sleep_usecs = sleep_usecs * 2;"),
    "sleep": (PROCESS, "int sleep_usecs = USEC_PER_MSEC;", "int sleep_usecs = 1000;"),
    "name": (PROCESS, "elapsed_msecs", "elapsed_ms"),
    "negation": (PROCESS, "if (!user_only)\n\t\tfreeze_w", "if (user_only == false)\n\t\tfreeze_w"),
    "return": (FREEZER, "return false;\n\t}\n\n\tif (!(p", "return 0;\n\t}\n\n\tif (!(p"),
    "flag": (FREEZER, "if (!(p->flags & PF_KTHREAD))", "if ((p->flags & PF_KTHREAD) == 0)"),
    "test": (
        FREEZER,
        "if (!freezing(p) || frozen(p) ||",
        "if (freezing(p) == false || frozen(p) ||",
    ),
}
_LOCK = "\tspin_lock_irqsave(&freezer_lock, flags);\n\tif ("
_EACH = "\t\t\tif (p == current || !freeze_task(p))"
_START = "\tstart = ktime_get_boottime();"


@dataclass(frozen=True)
class State:
    """What a commit has: the forms that are rewritten, a comment's number, and what is wrong with
    it."""

    forms: frozenset[str] = frozenset()
    comments: tuple[int, int] = (0, 0)
    nops: int = 0
    delay: int = 0
    wrong: str = ""

    def texts(self, base: dict[str, str]) -> dict[str, str]:
        """Return both files."""
        files = dict(base)
        for name, (file, before, after) in FORMS.items():
            assert before in files[file], name
            files[file] = files[file].replace(before, after if name in self.forms else before)
        if self.nops:
            files[FREEZER] = files[FREEZER].replace(
                _LOCK, f'\tasm volatile(".rept {self.nops}; nop; .endr");\n{_LOCK}', 1
            )
        if self.delay:
            files[PROCESS] = files[PROCESS].replace(
                _EACH, f"\t\t\tudelay({self.delay});\n{_EACH}", 1
            )
        if self.wrong == "panics":
            files[PROCESS] = files[PROCESS].replace(_START, f"\tBUG_ON(user_only);\n{_START}", 1)
        if self.wrong == "does not build":
            files[FREEZER] += "this does not compile\n"
        for file, number in zip((FREEZER, PROCESS), self.comments, strict=True):
            files[file] += f"/* Reviewed {number} times. */\n" if number else ""
        return files


@dataclass
class Stream:
    """The input of ``git fast-import``: commits, whose marks are their numbers from 2 on."""

    base: dict[str, str]
    branch: str
    count: int = 1
    out: list[bytes] = field(default_factory=list)

    def commit(self, subject: str, state: State, *parents: int) -> int:
        """Add a commit, and return its mark."""
        self.count += 1
        lines = [f"commit refs/heads/{self.branch}", f"mark :{self.count}"]
        lines += [f"committer A Developer <a@localhost> {1_700_000_000 + self.count} +0000"]
        lines += [f"data {len(subject)}", subject]
        lines += [
            f"{'merge' if n else 'from'} {f':{m}' if m else self.branch_base}"
            for n, m in enumerate(parents)
        ]
        text = "\n".join(lines).encode() + b"\n"
        for path, content in state.texts(self.base).items():
            data = content.encode()
            text += f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
        self.out.append(text)
        return self.count

    branch_base: str = ""
    """The commit from which all begins; its mark is 0."""


def rewritten(rng: random.Random, state: State, forms: list[str]) -> tuple[State, str]:
    """Return a state with one form or comment changed, and the subject of the commit."""
    name = rng.choice([*forms, "comment", "comment"])
    if name != "comment":
        return replace(state, forms=state.forms ^ {name}), f"freezer: rewrite the {name}"
    file = rng.randrange(2)
    counts = list(state.comments)
    counts[file] += 1
    return replace(
        state, comments=(counts[0], counts[1])
    ), f"freezer: review {counts[file]} of part {file}"


def events(options: argparse.Namespace) -> dict[int, tuple[str, int]]:
    """Return what happens at which commit of the main line: what changes, and by how much."""
    changes = [("nops", value) for value in options.nops] + [
        ("delay", value) for value in options.delay
    ]
    wrong = [("does not build", 0)] * 3 + [("panics", 0)]
    # Side branches have a tenth of all commits.
    rng = random.Random(options.culprits)
    where = rng.sample(range(2, options.commits * 9 // 10), len(changes) + len(wrong))
    return dict(zip(where, changes + wrong, strict=True))


def commits(stream: Stream, options: argparse.Namespace) -> Iterator[tuple[int, str]]:
    """Add all commits; yield the mark and the subject of each culprit."""
    state, last, happens, main, side = State(), 0, events(options), list(FORMS)[:4], list(FORMS)[4:]
    number = 0
    while stream.count <= options.commits:
        number += 1
        # Of its own, so that other culprits leave everything else as it is.
        rng = random.Random(f"{options.seed} {number}")
        before = state
        state, subject = rewritten(rng, state, main)
        what, by = happens.get(number, ("", 0))
        if what in ("nops", "delay"):
            more = {what: getattr(state, what) + by}
            # What is rewritten here elsewhere comes with the next commit, so that this one can be
            # reverted.
            last = stream.commit(f"freezer: count {what}, {by} more", replace(before, **more), last)
            state = replace(state, **more)
            yield last, f"{what} {by}"
        elif what:
            last = stream.commit(f"freezer: {what}", replace(state, wrong=what), last)
        elif options.merges and number % options.merges == 0:
            branch, head = before, last
            for _ in range(3):
                branch = replace(branch, forms=branch.forms ^ {rng.choice(side)})
                head = stream.commit("freezer: rewrite a part aside", branch, head)
            last = stream.commit(subject, state, last)
            state = replace(state, forms=(state.forms - set(side)) | (branch.forms & set(side)))
            last = stream.commit("Merge a side branch", state, last, head)
        else:
            last = stream.commit(subject, state, last)


def main() -> int:
    numbers = lambda text: [int(number) for number in text.split(",") if number]  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--branch", default="main")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--culprits", type=int, default=1)
    parser.add_argument("--merges", type=int, default=40)
    parser.add_argument("--commits", type=int, default=320)
    parser.add_argument("--nops", type=numbers, default=[])
    parser.add_argument("--delay", type=numbers, default=[])
    options = parser.parse_args()
    git = [
        "git",
        "-C",
        str(options.repository),
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@localhost",
    ]
    if not options.repository.is_dir():
        subprocess.run(["git", "init", "-q", "--bare", str(options.repository)], check=True)
        there = [*git, "--work-tree", str(options.source.absolute())]
        subprocess.run([*there, "add", "-A", "-f"], check=True)
        tree = subprocess.check_output([*git, "write-tree"], text=True).strip()
        base = subprocess.check_output(
            [*git, "commit-tree", tree, "-m", "The tree as it is"], text=True
        )
        subprocess.run([*git, "tag", "base", base.strip()], check=True)
    files = {path: (options.source / path).read_text() for path in (FREEZER, PROCESS)}
    base = subprocess.check_output([*git, "rev-parse", "base"], text=True).strip()
    stream = Stream(files, options.branch, branch_base=base)
    culprits = [{"mark": mark, "change": what} for mark, what in commits(stream, options)]
    marks = options.repository / "marks"
    imported = [*git, "fast-import", "--quiet", "--force", f"--export-marks={marks.absolute()}"]
    subprocess.run(imported, input=b"".join(stream.out), check=True)
    ids = dict(line.split() for line in marks.read_text().splitlines())
    for culprit in culprits:
        culprit["commit"] = ids[f":{culprit['mark']}"]
    print(
        json.dumps(
            {"base": base, "branch": options.branch, "commits": len(ids), "culprits": culprits},
            indent=1,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
