"""Split a file or a folder into its mails."""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import InputError
from kteardown.kernels import git

_SUFFIXES = (".patch", ".diff", ".eml", ".mbox", ".mbx", ".mail", ".gz")
_MOST_BYTES, _MOST_BYTES_OF_A_MAIL, _MOST_LINES_OF_A_MAIL = 128_000_000, 32_000_000, 1_000_000
"""Of a file, decompressed: a mail takes ten times its size in memory while it is read."""


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
    return _split(path)


def split_mbox(content: bytes) -> list[bytes]:
    """Return the mails of an mbox in order; a file that does not begin with "From " is one mail."""
    if not content.startswith(b"From "):
        return [content]
    with TemporaryDirectory(prefix="kteardown-") as folder:
        done = git.run("mailsplit", "-d6", f"-o{folder}", "--mboxrd", data=content)
        parts = [file.read_bytes() for file in _files(Path(folder))]
    return parts if done.ok and parts else [content]


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _split(file: Path) -> list[RawMail]:
    try:
        with file.open("rb") as plain:
            packed = plain.peek(2).startswith(b"\x1f\x8b")
            with gzip.GzipFile(fileobj=plain) if packed else plain as stream:
                content = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file}: cannot be read: {error}", hint="save it again, and name a file that you can read."
        ) from error
    if len(content) <= _MOST_BYTES:
        mails = split_mbox(content.lstrip(b"\r\n"))
        lines = max(mail.count(b"\n") for mail in mails)
        if max(map(len, mails)) <= _MOST_BYTES_OF_A_MAIL and lines <= _MOST_LINES_OF_A_MAIL:
            return [RawMail(file, number, len(mails), mail) for number, mail in enumerate(mails, 1)]
    raise InputError(
        f"{file} is damaged: it is larger than {_MOST_BYTES // 1_000_000} MB, or a mail of it than "
        f"{_MOST_BYTES_OF_A_MAIL // 1_000_000} MB or {_MOST_LINES_OF_A_MAIL:,} lines",
        hint="give the mails of one series only.",
    )
