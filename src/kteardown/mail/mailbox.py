"""Split a file or a folder into its mails."""

from __future__ import annotations

import gzip
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import InputError

_SUFFIXES = (".patch", ".diff", ".eml", ".mbox", ".mbx", ".mail", ".gz")


@dataclass(frozen=True)
class RawMail:
    """The text of a mail, and where it is: the ``number``-th of ``count`` mails of a file."""

    file: Path
    number: int
    count: int
    content: bytes

    def place(self, file: str = "") -> str:
        """Return where the mail is in words. ``file``: what the user calls the file, if not by its path."""
        file = file or str(self.file)
        return f"{file}, mail {self.number} of {self.count}" if self.count > 1 else file


def raw_mails(path: Path) -> list[RawMail]:
    """Return the mails of a file, a folder of files, or a Maildir.

    Raises InputError if there is no such file, or if it cannot be read.
    """
    if path.is_dir():
        files = [file for part in ("cur", "new") if (path / part).is_dir() for file in _files(path / part)]
        files = files or [file for file in _files(path) if file.suffix in _SUFFIXES]
        folders = [folder for folder in path.iterdir() if folder.is_dir()]
        if not files and len(folders) == 1:
            return raw_mails(folders[0])
        return [mail for file in files for mail in _split(file)]
    if not path.is_file():
        raise InputError(
            f"there is no file {path}",
            hint="give a mail, an mbox, a folder of mails, lore:MESSAGE-ID or git:PATH@BASE..TOPIC.",
        )
    return list(_split(path))


def split_mbox(content: bytes) -> list[bytes]:
    """Return the mails of an mbox in order; a file that does not begin with "From " is one mail."""
    if not content.startswith(b"From "):
        return [content]
    with TemporaryDirectory(prefix="kteardown-") as folder:
        argv = ["git", "mailsplit", "-d6", f"-o{folder}", "--mboxrd"]
        done = subprocess.run(argv, check=False, input=content, capture_output=True)
        parts = [file.read_bytes() for file in _files(Path(folder))]
    return parts if done.returncode == 0 and parts else [content]


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _split(file: Path) -> Iterator[RawMail]:
    try:
        content = file.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file}: cannot be read: {error}", hint="save it again, and name a file that you can read."
        ) from error
    mails = split_mbox(content.lstrip(b"\r\n"))
    for number, mail in enumerate(mails, 1):
        yield RawMail(file, number, len(mails), mail)
