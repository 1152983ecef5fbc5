"""The checks of mails before they are sent. What a base brings along runs in the sandbox."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kteardown import sandbox, spawn
from kteardown.errors import InputError, LabError
from kteardown.flows.mail_series.letter import CoverLetter
from kteardown.flows.mail_series.person import Person
from kteardown.flows.mail_series.repository import BASE, SERIES, MailRepository
from kteardown.limits import ANALYSIS
from kteardown.progress import Reporter
from kteardown.sandbox import Mount, Sandbox

CHECKPATCH = "scripts/checkpatch.pl"
_TOTAL = re.compile(r"^total: \d+ errors, \d+ warnings", re.MULTILINE)
_FINDING = re.compile(r"^(?:ERROR|WARNING|CHECK):.*(?:\n#\d+: (?:FILE: (.*):|.*))?$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FLAG = re.compile(r"^  \S (?:perl: )?:?")
"""What b4 writes in front of a line of the script."""
_SUMMARY = re.compile(r"^Success: (\d+), Warning: (\d+), Error: (\d+)$", re.MULTILINE)
_IGNORED = "--ignore=UNKNOWN_COMMIT_ID,FILE_PATH_CHANGES"
"""A source of the cache has no history in which the script could look up a commit. Whether a new
file needs an entry in MAINTAINERS is a question to the person (``before_sending``)."""
_B4_OPTIONS = "-q --terse --no-summary --mailback --showfile"
"""With which b4 runs checkpatch.pl by default."""
_MOST_FINDINGS = 200


@dataclass(frozen=True)
class MailCheck:
    """What a check found. It passed if it found nothing."""

    name: str
    summary: str
    findings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.findings


def check_with_checkpatch(
    tree: Path, mails: Sequence[Path], reporter: Reporter, *, signed: bool
) -> MailCheck:
    """Run checkpatch.pl --strict of ``tree`` on each mail. Raises InputError, LabError."""
    if not (tree / CHECKPATCH).is_file():
        raise InputError(f"{tree} has no {CHECKPATCH}", hint="choose a base that is a kernel tree.")
    options = ["--strict", "--show-types", _IGNORED, *([] if signed else ["--no-signoff"])]
    findings: list[str] = []
    with reporter.task(f"Checking with {CHECKPATCH}", len(mails)) as task:
        for number, mail in enumerate(mails):
            task.update(number, mail.name)
            argv = ["perl", str(tree / CHECKPATCH), *options, str(mail)]
            printed = sandbox.capture(argv, [tree, mail], tree)
            if not _TOTAL.search(printed):
                raise LabError(
                    f"{CHECKPATCH} of {tree} did not come to an end",
                    hint="choose another base: the script of this one is damaged, or perl is.",
                )
            findings += [f"{mail.name[:4]}: {text}" for text in _findings(printed)]
    count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
    words = count if findings else "no finding"
    return MailCheck("checkpatch --strict", words, tuple(findings[:_MOST_FINDINGS]))


def _findings(printed: str) -> list[str]:
    """Return each finding on one line, with the place in the tree if it has one."""
    return [
        match[0].splitlines()[0] + (f" ({match[1]})" if match[1] else "")
        for match in _FINDING.finditer(printed)
    ]


def check_with_b4(
    tree: Path,
    repository: MailRepository,
    letter: CoverLetter,
    work: Path,
    sender: Person,
    reporter: Reporter,
    *,
    signed: bool,
) -> MailCheck:
    """Run ``b4 prep --check`` on the branch of the series, in a copy of ``repository`` in ``work``.

    The branch is first enrolled as ``b4 prep -e`` does it. b4 looks for checkpatch.pl at the top of
    the repository, which has only some files of the base: so the script is named to it. Without
    --no-tree it would look up the licence of a new file in that repository, which has no LICENSES.
    Raises LabError.
    """
    copy = work / "b4"
    repository.copy(copy)
    options = f"{_B4_OPTIONS} {_IGNORED} --no-tree" + ("" if signed else " --no-signoff")
    settings = {
        "user.name": sender.name,
        "user.email": sender.mail,
        "b4.prep-cover-strategy": "branch-description",
        "b4.prep-perpatch-check-cmd": f"perl {tree / CHECKPATCH} {options}",
    }
    if letter.prefix != "PATCH":
        settings["b4.send-prefixes"] = letter.prefix.replace("PATCH", "").strip()
    commands = [
        *(["git", "config", key, value] for key, value in settings.items()),
        [*_b4(), "prep", "-e", BASE],
        ["git", "config", f"branch.{SERIES}.description", f"{letter.title}\n\n{letter.text}"],
        [*_b4(), "prep", "--check"],
    ]
    with reporter.task("Checking with b4 prep --check"):
        printed = _COLOUR.sub("", _run_all(commands, tree, copy))
    match = _SUMMARY.search(printed)
    if match is None:
        last = (printed.strip().splitlines() or ["it printed nothing"])[-1]
        raise LabError(
            f"b4 prep --check did not come to an end: {last[:200]}",
            hint="run `b4 prep --check` by hand, on a branch to which you applied the mails.",
        )
    report = printed[: match.start()].partition("\n---\n")[2]
    lines = [_FLAG.sub("", line) for line in report.splitlines() if line.startswith("  ")]
    success, warnings, errors = map(int, match.groups())
    words = f"{success} of {success + warnings + errors} passed"
    found = lines if warnings or errors else []
    return MailCheck("b4 prep --check", words, tuple(found[:_MOST_FINDINGS]))


def _b4() -> list[str]:
    return [*spawn.python("-m", "b4.command"), "--no-interactive", "--no-stdin"]


_RUN = """
import json, subprocess, sys
for argv in json.load(open(sys.argv[1])):
    subprocess.run(argv, check=True)
"""


def _run_all(commands: Sequence[Sequence[str]], tree: Path, repository: Path) -> str:
    """Return what the commands print, one after the other, in the sandbox.

    They can write to ``repository``, of which nothing is used afterwards.
    """
    (repository / ".git" / "commands.json").write_text(json.dumps(commands))
    site = _site()
    mounts = [*sandbox.python_folders(), Mount(site, site), Mount(tree, tree)]
    mounts.append(Mount(repository, repository, writable=True))
    # A library of b4 wants certificates, though nothing is fetched.
    environment = {"SSL_CERT_DIR": "/tmp"}
    environment |= {} if site.is_relative_to(sys.prefix) else {"PYTHONPATH": str(site)}
    box = Sandbox(mounts, ANALYSIS, "the check with b4")
    argv = [*spawn.python("-c", _RUN), str(repository / ".git" / "commands.json")]
    with box.running(argv, environment, repository) as (_, lines):
        return "".join(lines)


def _site() -> Path:
    """Return the folder of Python's libraries that has b4."""
    found = find_spec("b4")
    return Path(found.origin).parents[1] if found and found.origin else Path(sys.prefix)


def check_with_git_am(
    repository: MailRepository, mails: Sequence[Path], reporter: Reporter
) -> MailCheck:
    """Apply the written mails to the base; the files must then be those of the series."""
    with reporter.task("Applying the mails with git am"):
        refused = repository.apply("mails", mails)
        if not refused and repository.tree_of("mails") != repository.tree_of(SERIES):
            refused = "the mails and the patches of the series do not make the same files"
    count = f"{len(mails)} patch{'es' if len(mails) > 1 else ''} applied"
    return MailCheck("git am", "refused" if refused else count, (refused,) if refused else ())
