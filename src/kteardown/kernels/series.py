"""Patch series: by the name of a shipped one, or as a patch, a folder or a mailbox of a user's own."""

from __future__ import annotations

import email
import email.policy
import hashlib
import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from email.message import EmailMessage
from pathlib import Path

from kteardown import paths
from kteardown.errors import InputError
from kteardown.kernels import cache_folder
from kteardown.model.experiment import Series
from kteardown.model.result import PatchSet
from kteardown.progress import SilentReporter

# The line between two mails of an mbox, told from prose that begins with "From " by its date.
_MAIL_START = re.compile(rb"^From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) .*\d{4}[ \t]*\r?$", re.MULTILINE)
_DIFF_START = re.compile(rb"^(?:diff --git |--- (?:a/|/dev/null))", re.MULTILINE)
_SUBJECT = re.compile(r"^\s*\[([^\]]*)\]\s*(.*)$", re.DOTALL)
_COUNT = re.compile(r"\b(\d+)/(\d+)\b")
_PART = re.compile(r"(.+)@(?=[\d-])(\d+)?(?:-(\d+))?")


@dataclass(frozen=True)
class Mail:
    """One patch of a mailbox. ``number`` and ``total`` are those of [PATCH n/m], 1/1 without."""

    number: int
    total: int
    title: str
    content: bytes
    """The body, decoded, with the subject above it: what ``git apply`` reads."""


@dataclass(frozen=True)
class Selection:
    """A series, or some of its patches: ``NAME@2`` the first two, ``NAME@-1`` all but the first.

    ``label`` names it, and is read by ``resolve`` where the series is a shipped one.
    """

    label: str
    series: str
    editions: tuple[tuple[Path, ...], ...]
    """Every patch of the series, in each of its editions; most have one."""
    numbers: tuple[int, ...]
    """Those that are chosen, in their order, counted from 1."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every patch of the first edition."""
        return self.editions[0]

    @property
    def patches(self) -> tuple[Path, ...]:
        """The chosen patches in the order in which they apply."""
        return tuple(self.files[number - 1] for number in self.numbers)

    @property
    def patch_set(self) -> PatchSet:
        """What the result says of it."""
        subjects = tuple(map(subject, self.patches))
        return PatchSet(series=self.series, patches=self.numbers, total=len(self.files), subjects=subjects)


def resolve(name_or_path: str, *, cache_dir: Path | None = None) -> Selection:
    """The patches that ``name_or_path`` means, in the order in which they apply.

    ``name_or_path``: a folder of ``series/``, or the path of a patch, a folder of patches or a
    mailbox; ``@2`` at its end takes the first two patches, ``@-2`` all but the second, ``@3-2`` the
    first three but the second. The patches of a mailbox are written below ``cache_dir``.
    Raises InputError where there is no such series or patch.
    """
    whole, match = name_or_path, _PART.fullmatch(name_or_path)
    if match and not Path(name_or_path).exists():
        whole = match[1]
    else:
        match = None
    series, editions = _find(whole, cache_dir or paths.cache_dir())
    files = editions[0] if editions else ()
    if not files:
        raise InputError(
            f"{whole} has no patches", hint="A patch is a file NNNN-*.patch, or a mail with a diff."
        )
    first = int(match[2]) if match and match[2] else len(files)
    without = int(match[3]) if match and match[3] else None
    for number in (first, without or 1):
        if number > len(files):
            raise InputError(
                f"{whole} has {len(files)} patches, not {number}", hint=f"Write {whole}@{len(files)}."
            )
    numbers = tuple(number for number in range(1, first + 1) if number != without)
    if not numbers or without == 0:
        raise InputError(f"{name_or_path} takes no patches", hint=f"Write {whole}@1 or more.")
    return Selection(series + name_or_path.removeprefix(whole), series, editions, numbers)


def parts(whole: Selection) -> list[Selection]:
    """What an ablation builds beside ``whole``: every prefix, then every patch left out, each once.

    To leave out the last patch is the longest prefix. None where there is one patch.
    """
    many = len(whole.files)
    chosen = [(f"@{k}", tuple(range(1, k + 1))) for k in range(1, many)]
    for left_out in range(1, many):
        chosen.append((f"@-{left_out}", tuple(n for n in range(1, many + 1) if n != left_out)))
    return [replace(whole, label=whole.series + tail, numbers=numbers) for tail, numbers in chosen]


def subject(patch: Path) -> str:
    """The subject of a patch without its ``[PATCH n/m]``; the file's name where it has none."""
    message = email.message_from_bytes(patch.read_bytes(), policy=email.policy.default)
    text = " ".join(str(message.get("Subject", "")).split())
    match = _SUBJECT.match(text)
    return (match[2] if match else text) or patch.stem


def known_series(own: Path | None = None) -> list[Series]:
    """The series that come with the lab, and those in the folder ``series`` of ``own``, by name."""
    found = [(name, editions_of(_folder(name))) for name in _names(own)]
    return [Series(name=name, patches=editions[0] if editions else ()) for name, editions in found]


def editions_of(folder: Path) -> tuple[tuple[Path, ...], ...]:
    """The patches of a folder; of each folder in it, by name, where it has none itself.

    Raises InputError where these are not equally many.
    """
    own = of_folder(folder)
    found = [own] if own else [of_folder(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    editions = tuple(files for files in found if files)
    if len({len(files) for files in editions}) > 1:
        counts = ", ".join(f"{files[0].parent.name} {len(files)}" for files in editions)
        raise InputError(
            f"{folder}: its editions have different numbers of patches: {counts}",
            hint="An edition is the same series for another kernel, patch by patch.",
        )
    return editions


def of_folder(folder: Path) -> tuple[Path, ...]:
    """The patches of a folder by number, the cover letter (0000-*) left out."""
    patches = [path for path in folder.iterdir() if path.suffix in (".patch", ".diff") and path.is_file()]

    def order(path: Path) -> tuple[int, str]:
        number = re.match(r"(?:v\d+-)?(\d+)", path.name)
        return (int(number[1]) if number else 1, path.name)

    return tuple(sorted((p for p in patches if order(p)[0] != 0), key=order))


def split_mailbox(content: bytes, where: str) -> list[Mail]:
    """The patches of an mbox in order: no cover letter, no replies, no older revision.

    Raises InputError where one of [PATCH n/m] is missing or there twice.
    """
    starts = [match.start() for match in _MAIL_START.finditer(content)] or [0]
    ends = [*starts[1:], len(content)]
    mails = [_mail(content[start:end]) for start, end in zip(starts, ends, strict=True)]
    patches = [(revision, mail) for revision, mail in mails if mail is not None]
    latest = max((revision for revision, _ in patches), default=1)
    chosen = sorted((mail for revision, mail in patches if revision == latest), key=lambda mail: mail.number)
    total = max((mail.total for mail in chosen), default=0)
    numbers = [mail.number for mail in chosen]
    if len(chosen) > 1 and numbers != list(range(1, total + 1)):
        raise InputError(
            f"{where}: patches {', '.join(map(str, numbers))} are there, 1 to {total} were expected",
            hint="Fetch the whole series again, for example with `b4 am`.",
        )
    return chosen


def _names(own: Path | None) -> list[str]:
    folders = [paths.data_dir("series"), *([own / "series"] if own else [])]
    return sorted(
        {path.name for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_dir()}
    )


def _folder(name: str) -> Path:
    """The folder of a series by its name: shipped, or else one of ``./series``."""
    shipped = paths.data_dir("series") / name
    return shipped if shipped.is_dir() else Path.cwd() / "series" / name


def _find(name_or_path: str, cache_dir: Path) -> tuple[str, tuple[tuple[Path, ...], ...]]:
    if "/" not in name_or_path and _folder(name_or_path).is_dir():
        return name_or_path, editions_of(_folder(name_or_path))
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return slug(path.absolute().name), editions_of(path.absolute())
    if path.is_file():
        return slug(path.stem), (_of_file(path, cache_dir),)
    known = _names(Path.cwd())
    close = get_close_matches(name_or_path, known, 1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    raise InputError(
        f"there is no series or file {name_or_path!r}",
        hint=f"{hint}Known series: {', '.join(known) or 'none'}.",
    )


def _of_file(path: Path, cache_dir: Path) -> tuple[Path, ...]:
    content = path.read_bytes()
    if (
        not content.startswith(b"From ")
        and _DIFF_START.search(content)
        and not content.startswith(b"Return-Path")
    ):
        return (path.absolute(),)
    mails = split_mailbox(content, str(path))
    if not mails:
        raise InputError(f"{path} has no patch in it", hint="Name a patch, a folder of patches or an mbox.")
    folder = cache_dir / "series" / hashlib.sha256(content).hexdigest()[:16]
    with cache_folder.locked(folder, SilentReporter(), f"split {path}"):
        if not folder.is_dir():
            with cache_folder.published(folder) as work:
                for number, mail in enumerate(mails, 1):
                    (work / f"{number:04}-{slug(mail.title)[:60]}.patch").write_bytes(mail.content)
    return of_folder(folder)


def _mail(raw: bytes) -> tuple[int, Mail | None]:
    """Revision (of [PATCH v3]) and patch of one mail; None where it has none."""
    first, _, rest = raw.partition(b"\n")
    message = email.message_from_bytes(
        rest if first.startswith(b"From ") else raw, policy=email.policy.default
    )
    subject = " ".join(str(message.get("Subject", "")).split())
    body = _body(message)
    match = _SUBJECT.match(subject)
    tag, title = (match[1], match[2]) if match else ("", subject)
    revision = re.search(r"\bv(\d+)\b", tag, re.IGNORECASE)
    count = _COUNT.search(tag)
    number, total = (int(count[1]), int(count[2])) if count else (1, 1)
    if number == 0 or body is None or subject.lower().startswith("re:"):
        return 1, None
    content = b"Subject: " + subject.encode() + b"\n\n" + body
    return int(revision[1]) if revision else 1, Mail(number, total, title or "patch", content)


def _body(message: EmailMessage) -> bytes | None:
    for part in message.walk():
        if part.get_content_maintype() == "text":
            decoded = part.get_payload(decode=True)
            if isinstance(decoded, bytes) and _DIFF_START.search(decoded):
                # Quoted-printable mails carry the line ends of mail.
                return (
                    decoded.replace(b"\r\n", b"\n") if b"\n" not in decoded.replace(b"\r\n", b"") else decoded
                )
    return None


def slug(text: str) -> str:
    """A name of lower-case letters, digits and dashes that begins with a letter."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return re.sub(r"^(?:v\d+-)?[\d-]+", "", words) or "patch"
