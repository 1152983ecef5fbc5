"""Threads of the public archives, fetched with b4: its configuration, its cache."""

import hashlib
import re
import shutil
import sys
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.extras import EXTRAS, install_command
from kteardown.kernels import cache_folder, toolchain
from kteardown.progress import Reporter

_URL = re.compile(r"https?://(?:lore|lkml|patch\.msgid)[\w.-]*/(?:r/|[\w.-]+/)?([^/\s]+@[^/\s]+)/?.*")


def message_id(what: str) -> str:
    """Return the message id of ``lore:MESSAGE-ID`` or of an address of the archive; empty for a path."""
    if what.startswith("lore:"):
        what = what.removeprefix("lore:").strip().strip("<>")
        return message_id(what) or what
    found = _URL.fullmatch(what)
    return found[1] if found else ""


def fetch(message_id: str, cache_dir: Path, reporter: Reporter) -> Path:
    """Return the mbox of the thread of ``message_id``, which is fetched once.

    Raises InputError if the archive has no such mail, LabError if b4 is not installed or the archive cannot
    be reached.
    """
    if message_id.startswith("-"):
        raise InputError(
            f"{message_id!r} is not a message id", hint="give it as lore:MESSAGE-ID, without < and >."
        )
    name = hashlib.sha256(message_id.encode()).hexdigest()[:16]
    target = cache_dir / "mail" / name
    with cache_folder.locked(target, reporter, f"fetch {message_id}"):
        if not target.is_dir():
            with reporter.task(f"Fetching {message_id}"), cache_folder.published(target) as work:
                _b4(message_id, work, reporter)
    return target / "thread.mbx"


def _b4(message_id: str, work: Path, reporter: Reporter) -> None:
    beside = Path(sys.executable).with_name("b4")
    program = str(beside) if beside.is_file() else shutil.which("b4")
    if program is None:
        raise LabError(
            "b4 is not installed, which fetches mails from the archive",
            hint=f"install it: {install_command(EXTRAS['mail'])}; or give the mail as a file.",
        )
    argv = [program, "--no-interactive", "--no-stdin", "mbox"]
    argv += ["-o", str(work), "-n", "thread.mbx", "--", message_id]
    reporter.command(argv)
    # Not in the current folder, whose git configuration could be that of a foreign repository.
    done = toolchain.capture(argv, cwd=work)
    if (work / "thread.mbx").is_file():
        return
    said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    if any("not found" in line or "404" in line for line in said):
        raise InputError(
            f"the archive has no mail {message_id}", hint="check the message id: it has an @, and no < and >."
        )
    unresolved = re.search(r"Failed to resolve '[^']+'", done.stderr + done.stdout)
    reason = unresolved[0] if unresolved else said[-1].strip()[:160] if said else "b4 printed nothing"
    raise LabError(
        f"the archive of the mailing lists cannot be reached: {reason}",
        hint="check the network, or give the mail as a file.",
    )
