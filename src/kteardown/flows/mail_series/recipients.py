"""Whom the mails of a series go to, by scripts/get_maintainer.pl of its base, in the sandbox.

To and Cc are those of ``b4 prep --auto-to-cc``: all people that the script names are in To, the
lists in Cc. Everybody gets the whole series, as ``b4 send`` does it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.charset import QP, Charset
from email.utils import formataddr, getaddresses
from pathlib import Path

from kteardown import sandbox
from kteardown.errors import InputError, LabError
from kteardown.flows.mail_series.patch_text import people_in
from kteardown.flows.mail_series.person import Person
from kteardown.progress import Reporter

SCRIPT = "scripts/get_maintainer.pl"
_OPTIONS = ("--nogit", "--nogit-fallback", "--nogit-chief-penguins", "--norolestats")
"""Those of b4: what git of this host knows does not matter."""
_STABLE_PREFIX = re.compile(r"\b\d+\.\d+")
STABLE = "stable@vger.kernel.org"
# Stated, since a program can change for all headers how UTF-8 is encoded, and b4 does.
_UTF_8 = Charset("utf-8")
_UTF_8.header_encoding = QP
_MOST = 500
"""Recipients: a series that changes all of Linux has fewer."""


@dataclass(frozen=True)
class Recipients:
    """Addresses as they are in a header, each once."""

    to: tuple[str, ...]
    cc: tuple[str, ...]


def find_recipients(
    tree: Path,
    patches: Sequence[Path],
    texts: Sequence[str],
    prefix: str,
    sender: Person,
    reporter: Reporter,
) -> Recipients:
    """Return whom the script of ``tree`` names for ``patches``, and whom the tags of ``texts`` do.
    Nothing is sent to the sender.

    With a ``prefix`` of a stable kernel, as PATCH 6.12, the list of the stable kernels is one.
    Raises InputError if the tree has no such script, LabError if it names nobody.
    """
    if not (tree / SCRIPT).is_file():
        raise InputError(f"{tree} has no {SCRIPT}", hint="choose a base that is a kernel tree.")
    to: dict[str, str] = {}
    cc: dict[str, str] = {}

    def add(names: Sequence[str], field: dict[str, str]) -> None:
        for name, mail in getaddresses(names):
            key = mail.lower()
            is_address = "@" in mail and f"{name}{mail}".isprintable()
            is_new = key not in to and key not in cc and mail != sender.mail
            if is_address and is_new and len(to) + len(cc) < _MOST:
                field[key] = formataddr((name, mail), _UTF_8)

    with reporter.task(f"Asking {SCRIPT} whom it concerns", len(patches)) as task:
        for number, patch in enumerate(patches):
            task.update(number, patch.name)
            add(_named(tree, patch, "--nol"), to)
            add(_named(tree, patch, "--nom"), cc)
    if not to and not cc:
        raise LabError(
            f"{SCRIPT} of {tree} names nobody",
            hint="choose another base: the script of this one is damaged, or its MAINTAINERS.",
        )
    add([name for text in texts for name in people_in(text)], cc)
    add([STABLE] if _STABLE_PREFIX.search(prefix) else [], cc)
    return Recipients(tuple(to.values()), tuple(cc.values()))


def _named(tree: Path, patch: Path, option: str) -> list[str]:
    argv = ["perl", str(tree / SCRIPT), *_OPTIONS, option, str(patch)]
    return sandbox.capture(argv, [tree, patch], tree).splitlines()
