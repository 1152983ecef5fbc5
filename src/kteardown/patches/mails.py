"""The mails of a file, and the patches in each as ``git mailinfo`` reads them."""

import email.errors
import email.header
import email.utils
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import InputError, damaged
from kteardown.kernels import git
from kteardown.patches import mime
from kteardown.patches.git_form import in_git_form
from kteardown.patches.given import no_file

_SUFFIXES = (".patch", ".diff", ".eml", ".mbox", ".mbx", ".mail", ".gz")
MOST_BYTES = 128_000_000
_MOST_MAILS = 20_000
"""Of a file, decompressed."""
_MOST_BYTES_OF_A_MAIL = 32_000_000
_MOST_LINES_OF_A_MAIL = 1_000_000
_MOST_TEXT = 1_000_000
"""So many bytes of the beginning of a text, and of its end, are kept for what people write in
it."""
_MOST_LETTERS = 8_000
"""Of an author, a title or a date, also where the text of a mail has them."""
DIFF_START = re.compile(rb"^(?:diff --git |--- \S[^\n]*\n\+\+\+ \S)", re.MULTILINE)
_CHANGED = re.compile(rb"^[+\-@].*", re.MULTILINE)
_TAGS = re.compile(r"(?:\s*\[[^\]]*\])+|\[?(?:RFC |RESEND )?PATCH\b[^][:]*?(?:\d/\d+[]:]?|\])")
"""The second is a subject that lost a bracket."""
_REPLY = re.compile(
    r"^\s*+(?:re|aw|antw|sv|vs|fw|fwd|回复|答复)\s*+(?:\[\d++\]\s*+)?[::]", re.IGNORECASE
)
_COUNT = re.compile(r"\b(\d+)/(\d+)\b")
_REVISION = re.compile(r"(?:\b|PATCH|RFC)v(\d+)(?:\.(\d+))?\b", re.IGNORECASE)
_BRANCH = re.compile(r"(?<![\d.])v?(\d+\.\d+)(?:\.y|-stable)\b|(?<![\w./-])(\d+\.\d+)(?![\w./-])")
"""The stable kernel for which a patch is, as in [PATCH 6.12.y] or [PATCH 6.12]."""
_FIX = re.compile(r"(?<![^\s\[])-?fix(?:up)?\b(?:\s+(\d+)/\d+)?", re.IGNORECASE)
_POSTED = re.compile(r"PATCH|RFC", re.IGNORECASE)
_BASE = re.compile(r"^base-commit: ([0-9a-f]{7,64})\s*$", re.MULTILINE)
_INNER = re.compile(rb"^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\r?\n(?=[A-Z])", re.MULTILINE)
"""A mail that git wrote, within the text of another."""
_NO_DATE = (TypeError, ValueError, IndexError, OverflowError)
_HEADERS = ("From", "Date", "Subject", "Message-ID")
Group = tuple[tuple[int, int], int, str]
"""A revision, (3, 0) for v3, its number of patches, and the stable kernel that it is for, or ""."""


@dataclass(frozen=True)
class Diff:
    """One patch of a mail: its author, date and message, and the text from the first ``---`` or
    ``diff``."""

    author: str
    date: str
    title: str
    """The subject without the tags in brackets; of an attached mail, its own."""
    message: bytes
    text: bytes


@dataclass(frozen=True)
class Mail:
    """One mail. ``number`` and ``total`` are those of [PATCH n/m].

    Without them they are 1 and 1 for a patch, and 0 and 0 for another mail.
    """

    subject: str
    title: str
    """The subject without the tags in brackets."""
    sender: str
    sender_name: str
    message_id: str
    date: str
    number: int
    total: int
    revision: tuple[int, int]
    """(3, 0) for [PATCH v3]."""
    branch: str
    """6.12 for [PATCH 6.12.y]; empty if it is for no stable kernel."""
    fix: int
    """Which fix of patch ``number`` this is, to be applied after it; 0 for the patch itself."""
    is_reply: bool
    is_posted: bool
    """Whether the tags have PATCH or RFC, as those of a patch that a person sends."""
    body: str
    """Of a long mail, the beginning and the end."""
    size: int
    """Bytes of the whole text."""
    diffs: tuple[Diff, ...]
    place: str = ""
    """The file that it is in, as the user knows it, and its number there."""

    @property
    def group(self) -> Group:
        """The series that it is of, within a thread."""
        return self.revision, self.total, self.branch

    @property
    def is_cover(self) -> bool:
        """Whether this is the cover letter of a series."""
        return self.number == 0 and self.is_posted and not self.is_reply

    @property
    def base_commit(self) -> str:
        """The commit that ``git format-patch --base`` named; empty if it named none."""
        match = _BASE.search(self.body)
        return match[1] if match else ""

    @property
    def moment(self) -> float:
        """The date of the mail in seconds, 0 if it has none that can be read."""
        with suppress(*_NO_DATE):
            return email.utils.parsedate_to_datetime(self.date).timestamp()
        return 0.0


def parse(raw: bytes, name: str, place: str = "") -> Mail:
    """Read one mail. ``name`` is its title if it has no subject, as a bare diff."""
    if raw.count(b"\n") == raw.count(b"\r\n"):
        raw = raw.replace(b"\r\n", b"\n")
    if raw.startswith(b"From "):
        raw = raw.partition(b"\n")[2]
    message, parts = mime.parts_of(raw)
    subject = _decoded(message.get("Subject", ""))
    tag, title = _split_subject(subject)
    branch = _BRANCH.search(tag)
    count = _COUNT.search(tag)
    revision = _REVISION.search(tag.replace(branch[0], "") if branch else tag)
    fix = _FIX.search(tag)
    texts = list(_texts(parts))
    diffs = tuple(_diffs(message, texts))
    is_posted = bool(_POSTED.search(tag))
    is_reply = bool(_REPLY.match(subject))
    if len(diffs) == 1 and (is_reply or not is_posted) and diffs[0].title != title:
        title, count = (
            diffs[0].title,
            None,
        )  # Of a patch in a reply or a notice, with a header of its own.
    name = Path(name).stem
    alone = int(bool(diffs) or not is_posted)
    if not diffs and count and int(count[1][:9]) and "PATCHSET" in tag:
        count = None  # The cover letter of the third of seven series.
    sender_name, sender = address(_decoded(message.get("From", "")))
    return Mail(
        subject=subject or name,
        title=title or name,
        sender=sender.lower(),
        sender_name=sender_name,
        message_id=str(message.get("Message-ID", "")).strip().strip("<>"),
        date=" ".join(str(message.get("Date", "")).split()),
        number=number_of(count[1]) if count else alone,
        total=max(number_of(count[2]), 1) if count else alone,
        revision=(number_of(revision[1]), number_of(revision[2] or "0")) if revision else (1, 0),
        branch=(branch[1] or branch[2]) if branch else "",
        fix=number_of(fix[1] or "1") if fix else 0,
        is_reply=is_reply,
        is_posted=is_posted,
        body="\n".join(_shortened(text).decode(errors="replace") for _, text in texts),
        size=sum(len(text) for _, text in texts),
        diffs=diffs,
        place=place,
    )


def _split_subject(subject: str) -> tuple[str, str]:
    """Return the tags of a subject, with their brackets, and the rest. ``Re:`` is in neither."""
    bare = _REPLY.sub("", subject).strip()
    tags = _TAGS.match(bare)
    tag = tags[0] if tags else ""
    return tag, bare[len(tag) :].strip()


def number_of(digits: str) -> int:
    return int(digits[:9])  # Python refuses to convert thousands of digits.


def _shortened(text: bytes) -> bytes:
    return text if len(text) <= 2 * _MOST_TEXT else text[:_MOST_TEXT] + b"\n" + text[-_MOST_TEXT:]


def _texts(parts: list[mime.MailPart]) -> Iterator[tuple[Message, bytes]]:
    """Yield the headers of the parts that people read or apply, each with its decoded text."""
    for part in parts:
        named = str(part.headers.get_filename() or "").endswith((".patch", ".diff", ".txt"))
        if named or part.headers.get_content_type() in (
            "text/plain",
            "text/x-patch",
            "text/x-diff",
        ):
            yield part.headers, part.text()


def _diffs(message: Message, texts: list[tuple[Message, bytes]]) -> Iterator[Diff]:
    """Yield the patches of a mail; one that is both in its text and attached is one patch."""
    digests: set[bytes] = set()
    for part, text in texts:
        if not DIFF_START.search(text):
            continue
        diff = _mailinfo(_as_mail(message, part, text))
        if len(texts) == 1:
            yield from [diff] if DIFF_START.search(diff.text) else []
            return
        # Without the signature of a mail, "-- ".
        lines = hashlib.sha256()
        for line in _CHANGED.finditer(diff.text):
            if line[0].rstrip() not in (b"--", b"---"):
                lines.update(line[0].rstrip() + b"\n")
        if DIFF_START.search(diff.text) and lines.digest() not in digests:
            digests.add(lines.digest())
            yield diff


def _as_mail(message: Message, part: Message, text: bytes) -> bytes:
    """Return a mail of one part with the decoded ``text``, and the headers of the whole mail."""
    if inner := _INNER.search(text):
        return text[inner.end() :]
    if part is not message and text.startswith((b"From ", b"From: ", b"Subject: ", b"Date: ")):
        return text.partition(b"\n")[2] if text.startswith(b"From ") else text  # An attached mail.
    lines = [f"{name}: {message[name]}" for name in _HEADERS if message[name]]
    # Its charset, and whether its lines are flowed. What was encoded for transfer is decoded.
    lines += [f"Content-Type: {part['Content-Type']}"] if part["Content-Type"] else []
    header = "\n".join(lines).encode(errors="surrogateescape")
    return header + b"\nContent-Transfer-Encoding: 8bit\n\n" + text


def _mailinfo(mail: bytes) -> Diff:
    """Return what ``git mailinfo`` makes of a mail with one part."""
    with TemporaryDirectory(prefix="kteardown-") as work:
        for recode in ("-u", "-n"):  # The second if the charset is unknown.
            argv = ("mailinfo", "-k", recode, "--quoted-cr=strip", "message", "patch")
            result = git.run(*argv, cwd=Path(work), data=mail)
            if result.ok:
                break
        else:
            return Diff("", "", "", b"", b"")
        facts = dict(
            line.split(": ", 1)
            for line in result.out.decode(errors="replace").split("\n")
            if ": " in line
        )
        # The text of a mail can have an author and a title of its own.
        if too_long := [name for name, value in facts.items() if len(value) > _MOST_LETTERS]:
            raise ValueError(
                f"its {too_long[0].lower()} has more than {_MOST_LETTERS:,} characters"
            )
        author = f"{facts.get('Author', '')} <{facts.get('Email', '')}>".strip()
        message, text = (Path(work, name).read_bytes() for name in ("message", "patch"))
        title = _split_subject(facts.get("Subject", ""))[1]
        author = "" if author == "<>" else author
        return Diff(author, facts.get("Date", ""), title, message, in_git_form(text))


def _decoded(value: object) -> str:
    """Return a header with its encoded words decoded, on one line."""
    text = str(value)
    with suppress(LookupError, ValueError, email.errors.MessageError):
        text = str(email.header.make_header(email.header.decode_header(text)))
    return " ".join(text.encode(errors="surrogateescape").decode(errors="replace").split())


def address(text: str) -> tuple[str, str]:
    """Return the name and the address of a person. Raises ValueError if they cannot be read."""
    try:
        return email.utils.parseaddr(text)
    except RecursionError as error:
        raise ValueError(f"{text[:40]!r} is not the address of a person") from error


def day(date: str) -> str:
    """Return the date of a mail as 2026-11-22, or as it is if it cannot be read."""
    with suppress(*_NO_DATE):
        return datetime.date(email.utils.parsedate_to_datetime(date)).isoformat()
    return date


def mails_of(path: Path, name: str = "") -> list[Mail]:
    """Return the mails of a file, a folder of files, or a Maildir.

    ``name``: what the user calls the file, if not by its path. Raises InputError if there is no
    such file, if it cannot be read, or if a mail is damaged.
    """
    if path.is_dir():
        return [mail for file in mail_files(path) for mail in _mails_in(file, str(file))]
    if not path.is_file():
        raise no_file(path)
    return _mails_in(path, name or str(path))


def mail_files(folder: Path) -> list[Path]:
    """Return the files of a folder of mails, or of a Maildir, in the order of their names."""
    files = [
        file
        for part in ("cur", "new")
        if (folder / part).is_dir()
        for file in _files(folder / part)
    ]
    files = files or [file for file in _files(folder) if file.suffix in _SUFFIXES]
    inner = [path for path in folder.iterdir() if path.is_dir()]
    return mail_files(inner[0]) if not files and len(inner) == 1 else files


def split_mbox(content: bytes) -> list[bytes]:
    """Return the mails of an mbox in order; a file that does not begin with "From " is one mail."""
    if not content.startswith(b"From "):
        return [content]
    with TemporaryDirectory(prefix="kteardown-") as folder:
        result = git.run("mailsplit", "-d6", f"-o{folder}", "--mboxrd", data=content)
        parts = [file.read_bytes() for file in _files(Path(folder))]
    return parts if result.ok and parts else [content]


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _mails_in(file: Path, name: str) -> list[Mail]:
    texts = raw_mails(file)
    mails = []
    count = len(texts)
    texts.reverse()
    for number in range(1, count + 1):
        place = f"{name}, mail {number} of {count}" if count > 1 else name
        with damaged(place, hint="save the mail again, as plain text."):
            mails.append(parse(texts.pop(), file.name, place))  # Each is freed when it was read.
    return mails


def raw_mails(file: Path) -> list[bytes]:
    """Return the mails of a file, which may be compressed, as they are. Raises InputError."""
    try:
        with file.open("rb") as plain:
            packed = plain.peek(2).startswith(b"\x1f\x8b")
            with gzip.GzipFile(fileobj=plain) if packed else plain as stream:
                content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file}: cannot be read: {error}",
            hint="save it again, and name a file that you can read.",
        ) from error
    count = 1 + content.count(b"\nFrom ")
    is_small = len(content) <= MOST_BYTES and count <= _MOST_MAILS
    texts = split_mbox(content.lstrip(b"\r\n")) if is_small else [content]
    lines = max(text.count(b"\n") for text in texts)
    if (
        not is_small
        or max(map(len, texts)) > _MOST_BYTES_OF_A_MAIL
        or lines > _MOST_LINES_OF_A_MAIL
    ):
        raise InputError(
            f"{file} is damaged: it is larger than {MOST_BYTES // 1_000_000} MB, or a mail of it "
            f"than {_MOST_BYTES_OF_A_MAIL // 1_000_000} MB or {_MOST_LINES_OF_A_MAIL:,} lines, or "
            f"it has more than {_MOST_MAILS:,} mails",
            hint="give the mails of one series only.",
        )
    return texts
