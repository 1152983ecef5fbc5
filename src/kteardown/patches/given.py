"""What a user gives as a series: a file, a folder, a mail of the archive or a range of commits.

No file is read here, so that a wrong name is found before anything else begins.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError

FORMS = (
    "give a patch, a diff, an mbox, a folder of patches, lore:MESSAGE-ID, or the commits of a "
    "branch: git:PATH@BASE..TOPIC, or BASE..TOPIC in the current folder."
)
_DOTS = r"(?<!/)\.{2,3}(?!/)"
_RANGE = re.compile(rf"git:(?:(?P<path>.*)@)?(?P<span>[^@]+{_DOTS}.*)")
_SPAN = re.compile(rf".+{_DOTS}.*")
_BARE_RANGE = re.compile(rf"(?![-/~.])[^\s:]+{_DOTS}[^\s:]*")
_URL = re.compile(
    r"https?://(?:lore|lkml|patch\.msgid)[\w.-]*/(?:r/|[\w.-]+/)?([^/\s@]+@[^/\s]+)/?+(?s:.*)"
)


@dataclass(frozen=True)
class CommitRange:
    """A range of commits, which is the series of a branch."""

    typed: str
    """``git:PATH@BASE..TOPIC``, or ``BASE..TOPIC``."""
    path: str
    """As it was typed; ``.`` if no path was."""
    span: str
    """``BASE..TOPIC``; TOPIC may be empty."""

    @property
    def repository(self) -> Path:
        return Path(self.path).expanduser()

    @property
    def is_bare(self) -> bool:
        """Whether it looks like the name of a file, too."""
        return not self.typed.startswith("git:")


def message_id(what: str) -> str:
    """Return the message id of ``lore:MESSAGE-ID`` or of an address of the archive; empty for a
    path."""
    if what.startswith("lore:"):
        what = what.removeprefix("lore:").strip().strip("<>")
        return message_id(what) or what
    match = _URL.fullmatch(what)
    return match[1] if match else ""


def commit_range(what: str) -> CommitRange | None:
    """Return the range of commits that ``what`` is: ``git:PATH@BASE..TOPIC``, or ``BASE..TOPIC`` of
    the current folder unless a file has this name.

    Raises InputError for a git tree without a range.
    """
    if found := _range_of_folder(what):
        return found
    if match := _RANGE.fullmatch(what):
        return CommitRange(what, match["path"] or ".", match["span"])
    if what.startswith("git:"):
        rest = what.removeprefix("git:")
        path, at, topic = rest.rpartition("@")
        example = f"git:{path if at else rest}@v6.12..{(at and topic) or 'my-topic'}"
        raise InputError(
            f"{what} names no range of commits",
            hint=(
                f"give the commit before your first one, and your branch, as in {example}; "
                "without a branch after the dots it is HEAD."
            ),
        )
    if _BARE_RANGE.fullmatch(what) and not Path(what).exists():
        return CommitRange(what, ".", what)
    return None


def _range_of_folder(what: str) -> CommitRange | None:
    """Return the range in a folder that exists; of several folders, that of the longest path.

    A path may have an @, and so may a name of git, such as ``@{u}``.
    """
    rest = what.removeprefix("git:")
    if rest == what:
        return None
    for at in [match.start() for match in re.finditer("@", rest)][::-1]:
        path = rest[:at]
        span = rest[at + 1 :]
        if path and _SPAN.fullmatch(span) and Path(path).expanduser().is_dir():
            return CommitRange(what, path, span)
    return None


def check(what: str) -> None:
    """Raise InputError if ``what`` is of no form, or names a file that does not exist."""
    if not what:
        raise InputError("the name of the patches is empty", hint=FORMS)
    path = Path(what).expanduser()
    if what == "-" or message_id(what) or commit_range(what):
        return
    if not path.is_file() and not path.is_dir():
        raise no_file(path)


def no_file(path: Path) -> InputError:
    return InputError(f"there is no file {path}", hint=FORMS)


def diff_of(path: str) -> str:
    """Return the command that tries the changes of a git tree that are in no commit."""
    tree = "" if path == "." else f"-C {path if path.startswith('~') else shlex.quote(path)} "
    return f"git {tree}diff HEAD | kteardown try -"
