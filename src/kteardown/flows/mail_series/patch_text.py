"""The patches of a series as mails, and what is put into mails that git has written."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.errors import InputError, damaged
from kteardown.flows.mail_series.person import NOBODY, PLACEHOLDER, Person
from kteardown.patches.mails import DIFF_START, Diff, Mail, address, parse
from kteardown.patches.posted import as_patch

_SIGNED_OFF = "Signed-off-by: "
_OF_THE_LAB = re.compile(r"(?:SPDX-License-Identifier|Origin|Base): ")
"""Lines below --- that are only for this project."""
_OF_DIFFSTAT = re.compile(
    r" \S[^|]*+\| ++(?:\d++|Bin\b).*"
    r"| \d++ files? changed\b.*"
    r"| (?:create|delete) mode .*| mode change .*| (?:rename|copy|rewrite) .*"
)
_ANY_TAG = re.compile(r"[A-Z][\w-]*+: ")
_TAG = re.compile(r"^(?:[A-Z][a-z]++(?:-[a-z]++)*-by|Cc): (.{1,300})$", re.MULTILINE)
_COMMIT = re.compile(r"(?:\bcommit|^Fixes:)\s{1,3}([0-9a-f]{7,40})\b", re.MULTILINE | re.IGNORECASE)
_NEW_FILE = re.compile(r"^--- /dev/null\n\+\+\+ b/(\S{1,300})$", re.MULTILINE)
_CUT = b"\n---\n"
_SIGNATURE = b"\n-- \n"


@dataclass(frozen=True)
class SentPatch:
    """One patch with its message as it is sent, and what stands below its ---."""

    text: bytes
    """A mail for ``git am``."""
    author: Person
    message: str
    notes: str


def sent_patch(file: Path, number: int, total: int, author: Person | None) -> SentPatch:
    """Return a patch of a series with ``author`` in place of the placeholder.

    Without an author the placeholder remains the author, and signs nothing off. Raises InputError.
    """
    with damaged(str(file), hint="write the patch again, with git format-patch."):
        mail = parse(file.read_bytes(), file.name)
        diff = _diff_of(mail, file)
    message = _signed(diff.message.decode(errors="replace").rstrip(), author)
    is_placeholder = diff.author in ("", PLACEHOLDER)
    of_patch = (author or NOBODY) if is_placeholder else Person(*address(diff.author))
    named = replace(diff, author=str(of_patch), message=f"{message}\n".encode())
    text = as_patch(mail, named, number, total)
    return SentPatch(text, of_patch, message, notes_of(diff.text))


def _diff_of(mail: Mail, file: Path) -> Diff:
    if len(mail.diffs) != 1:
        raise InputError(
            f"{file} has {len(mail.diffs)} patches, not one", hint="put each patch into a file."
        )
    return mail.diffs[0]


def _signed(message: str, author: Person | None) -> str:
    """Return the message, signed off by ``author`` instead of the placeholder."""
    lines = [line.rstrip() for line in message.splitlines()]
    signed = [line for line in lines if line.startswith(_SIGNED_OFF)]
    nobody = f"{_SIGNED_OFF}{PLACEHOLDER}"
    own = f"{_SIGNED_OFF}{author}"
    if author is not None and own not in signed:
        if nobody not in signed:
            lines += [own] if lines and _ANY_TAG.match(lines[-1]) else ["", own]
        else:
            lines[lines.index(nobody)] = own
    return "\n".join(line for line in lines if line != nobody).rstrip()


def notes_of(text: bytes) -> str:
    """Return what stands between the --- of a patch and its diff, without the lines of the lab and
    the diffstat."""
    start = DIFF_START.search(text)
    above = text[: start.start() if start else 0].decode(errors="replace")
    lines = above.removeprefix("---\n").splitlines()
    kept = [
        line
        for line in lines
        if not (_OF_THE_LAB.match(line) or _OF_DIFFSTAT.fullmatch(line) or line == "---")
    ]
    return "\n".join(kept).strip("\n")


def people_in(text: str) -> list[str]:
    """Return whom the tags of a message or a cover letter name: Suggested-by, Cc and so on."""
    return _TAG.findall(text)


def commits_in(text: str) -> list[str]:
    """Return the ids of the commits that a message names."""
    return list(dict.fromkeys(_COMMIT.findall(text)))


def new_files_in(patch: bytes) -> list[str]:
    """Return the files that a patch makes."""
    return _NEW_FILE.findall(patch.decode(errors="replace"))


def with_notes(mail: bytes, notes: str) -> bytes:
    """Return a mail that git wrote with ``notes`` below its ---, above the diffstat."""
    head, cut, rest = mail.partition(_CUT)
    if not notes or not cut:
        return mail
    if not notes.isascii() and b"\nMIME-Version: " not in head:
        headers, blank, message = head.partition(b"\n\n")
        mime = b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        head = headers + b"\n" + mime + b"Content-Transfer-Encoding: 8bit" + blank + message
    return head + cut + notes.encode() + b"\n" + cut.lstrip(b"\n") + rest


def with_base(mail: bytes, line: str) -> bytes:
    """Return a mail that git wrote with the line about its base where git writes base-commit."""
    above, signature, below = mail.rpartition(_SIGNATURE)
    return above.rstrip(b"\n") + b"\n\n" + line.encode() + signature + below
