"""The mails of a file, the patches in each as ``git mailinfo`` reads them, and the series that is meant.

Of a thread, that is the latest revision, without replies and duplicates.
"""

import email
import email.errors
import email.header
import email.utils
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import InputError, damaged
from kteardown.kernels import git

# Quilt, diff -urN, --no-prefix and diff.mnemonicPrefix leave other names and fewer lines than git.
_HEADER = re.compile(
    rb"^(?:diff --git (?P<old>[^\s\"]+) (?P<new>[^\s\"]+)$"
    rb"|(?:Index: .*\n=+\n|diff -(?!-).*\n)?"
    rb"--- (?P<before>[^\s\"]+).*\n\+\+\+ (?P<after>[^\s\"]+).*\n"
    rb"(?=@@ -(?P<from>[\d,]+) \+(?P<to>[\d,]+) @@))",
    re.MULTILINE,
)
_WRAPPED = re.compile(rb"^(diff --git a/(\S+))\n(?=b/\2\n)", re.MULTILINE)
_NULL = b"/dev/null"
_FOLDERS = frozenset(
    b"arch block certs crypto Documentation drivers fs include init io_uring ipc kernel lib LICENSES mm net "
    b"rust samples scripts security sound tools usr virt".split()
)
"""The top of a kernel tree: a name that begins with one of them has no prefix."""


def in_git_form(text: bytes) -> bytes:
    """Return a diff with ``diff --git a/NAME b/NAME`` before each file, and these prefixes.

    A diff that git wrote with its usual prefixes is returned as it is.
    """
    has_line = False

    def written(found: re.Match[bytes]) -> bytes:
        nonlocal has_line
        if found["old"]:
            has_line = True
            return b"diff --git a/%s b/%s" % _without_prefix(found["old"], found["new"])
        by_git, has_line = has_line, False
        created = found["before"] == _NULL or found["from"] == b"0,0"
        removed = found["after"] == _NULL or found["to"] == b"0,0"
        before, after = _without_prefix(found["before"], found["after"])
        if by_git:
            lines = []
        else:
            before = after = before if found["after"] == _NULL else after
            lines = [b"diff --git a/%s b/%s" % (before, after)]
            lines += [b"new file mode 100644"] if created else []
            lines += [b"deleted file mode 100644"] if removed else []
        lines.append(b"--- " + (_NULL if created else b"a/" + before))
        lines.append(b"+++ " + (_NULL if removed else b"b/" + after))
        return b"\n".join(lines) + b"\n"

    return _HEADER.sub(written, _WRAPPED.sub(rb"\1 ", text))


def _without_prefix(*names: bytes) -> tuple[bytes, bytes]:
    parts = [name.partition(b"/") for name in names if name != _NULL]
    keep = any(not rest for _, _, rest in parts) or all(first in _FOLDERS for first, _, _ in parts)
    one, *_, two = (name if keep or name == _NULL else name.partition(b"/")[2] for name in names)
    return one, two


_SUFFIXES = (".patch", ".diff", ".eml", ".mbox", ".mbx", ".mail", ".gz")
MOST_BYTES, _MOST_BYTES_OF_A_MAIL, _MOST_LINES_OF_A_MAIL = 128_000_000, 32_000_000, 1_000_000
"""Of a file, decompressed: a mail takes ten times its size in memory while it is read."""
DIFF_START = re.compile(rb"^(?:diff --git |--- \S[^\n]*\n\+\+\+ \S)", re.MULTILINE)
_DISPLACED = re.compile(
    r"^.{1,200}?(?:diff --git \S{1,300} \S{1,300}\s?$|--- \S.{0,300}\n.{0,200}?\+\+\+ \S)", re.MULTILINE
)
"""A diff that is indented, quoted, or behind other text."""
_CHANGED = re.compile(rb"^[+\-@].*", re.MULTILINE)
_TAGS = re.compile(r"(?:\s*\[[^\]]*\])+|\[?(?:RFC |RESEND )?PATCH\b[^][:]*?(?:\d/\d+[]:]?|\])")
"""The second is a subject that lost a bracket."""
_REPLY = re.compile(r"^\s*(?:re|aw|antw|sv|vs|fw|fwd|回复|答复)\s*(?:\[\d+\])?\s*[::]", re.IGNORECASE)
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
_MANY = 6
"""So many mails that were left out are named; of more, the number is given."""
_MOST = 1000
"""The largest number of patches, and of a revision."""
Group = tuple[tuple[int, int], int, str]
"""A revision, (3, 0) for v3, its number of patches, and the stable kernel that it is for, or ""."""


@dataclass(frozen=True)
class Diff:
    """One patch of a mail: its author, date and message, and the text from the first ``---`` or ``diff``."""

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
        found = _BASE.search(self.body)
        return found[1] if found else ""

    @property
    def moment(self) -> float:
        """The date of the mail in seconds, 0 if it has none that can be read."""
        with suppress(*_NO_DATE):
            return email.utils.parsedate_to_datetime(self.date).timestamp()
        return 0.0


def parse(raw: bytes, name: str, place: str = "") -> Mail:
    """Read one mail. ``name`` is its title if it has no subject, as a bare diff."""
    if b"\n" not in raw.replace(b"\r\n", b""):
        raw = raw.replace(b"\r\n", b"\n")
    first, _, rest = raw.partition(b"\n")
    message = email.message_from_bytes(rest if first.startswith(b"From ") else raw)
    subject = _decoded(message.get("Subject", ""))
    tag, title = _split_subject(subject)
    branch = _BRANCH.search(tag)
    count = _COUNT.search(tag)
    revision = _REVISION.search(tag.replace(branch[0], "") if branch else tag)
    fix = _FIX.search(tag)
    texts = list(_texts(message))
    diffs = tuple(_diffs(message, texts))
    is_posted = bool(_POSTED.search(tag))
    is_reply = bool(_REPLY.match(subject))
    if len(diffs) == 1 and (is_reply or not is_posted) and diffs[0].title != title:
        title, count = diffs[0].title, None  # Of a patch in a reply or a notice, with a header of its own.
    name = Path(name).stem
    alone = int(bool(diffs) or not is_posted)
    if not diffs and count and int(count[1][:9]) and "PATCHSET" in tag:
        count = None  # The cover letter of the third of seven series.
    sender_name, sender = email.utils.parseaddr(_decoded(message.get("From", "")))
    return Mail(
        subject=subject or name,
        title=title or name,
        sender=sender.lower(),
        sender_name=sender_name,
        message_id=str(message.get("Message-ID", "")).strip().strip("<>"),
        date=" ".join(str(message.get("Date", "")).split()),
        number=_number(count[1]) if count else alone,
        total=max(_number(count[2]), 1) if count else alone,
        revision=(_number(revision[1]), _number(revision[2] or "0")) if revision else (1, 0),
        branch=(branch[1] or branch[2]) if branch else "",
        fix=_number(fix[1] or "1") if fix else 0,
        is_reply=is_reply,
        is_posted=is_posted,
        body="\n".join(text.decode(errors="replace") for _, text in texts),
        diffs=diffs,
        place=place,
    )


def _split_subject(subject: str) -> tuple[str, str]:
    """Return the tags of a subject, with their brackets, and the rest. ``Re:`` is in neither."""
    bare = _REPLY.sub("", subject).strip()
    tags = _TAGS.match(bare)
    tag = tags[0] if tags else ""
    return tag, bare[len(tag) :].strip()


def _number(digits: str) -> int:
    return int(digits[:9])  # Python refuses to convert thousands of digits.


def _texts(message: Message) -> Iterator[tuple[Message, bytes]]:
    """Yield the parts of a mail that people read or apply, each with its decoded text."""
    for part in message.walk():
        named = str(part.get_filename() or "").endswith((".patch", ".diff", ".txt"))
        kind = part.get_content_type()
        if part.is_multipart() or not (named or kind in ("text/plain", "text/x-patch", "text/x-diff")):
            continue
        decoded = part.get_payload(decode=True)
        if isinstance(decoded, bytes):
            yield part, decoded


def _diffs(message: Message, texts: list[tuple[Message, bytes]]) -> Iterator[Diff]:
    """Yield the patches of a mail; one that is both in its text and attached is one patch."""
    seen: set[bytes] = set()
    for part, text in texts:
        if not DIFF_START.search(text.replace(b"\r\n", b"\n")):
            continue
        diff = _mailinfo(_as_mail(message, part, text))
        # Without the signature of a mail, "-- ".
        lines = hashlib.sha256()
        for line in _CHANGED.finditer(diff.text):
            if line[0].rstrip() not in (b"--", b"---"):
                lines.update(line[0].rstrip() + b"\n")
        if DIFF_START.search(diff.text) and lines.digest() not in seen:
            seen.add(lines.digest())
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
            done = git.run(*argv, cwd=Path(work), data=mail)
            if done.ok:
                break
        else:
            return Diff("", "", "", b"", b"")
        facts = dict(
            line.split(": ", 1) for line in done.out.decode(errors="replace").split("\n") if ": " in line
        )
        author = f"{facts.get('Author', '')} <{facts.get('Email', '')}>".strip()
        message, text = (Path(work, name).read_bytes() for name in ("message", "patch"))
        title = _split_subject(facts.get("Subject", ""))[1]
        author = "" if author == "<>" else author
        return Diff(author, facts.get("Date", ""), title, message, in_git_form(text))


def _decoded(value: object) -> str:
    """Return a header with its encoded words decoded, on one line."""
    text = str(value)
    with suppress(LookupError, ValueError, email.errors.HeaderParseError):
        text = str(email.header.make_header(email.header.decode_header(text)))
    return " ".join(text.encode(errors="surrogateescape").decode(errors="replace").split())


def day(date: str) -> str:
    """Return the date of a mail as 2026-11-22, or as it is if it cannot be read."""
    with suppress(*_NO_DATE):
        return datetime.date(email.utils.parsedate_to_datetime(date)).isoformat()
    return date


def mails_of(path: Path, name: str = "") -> list[Mail]:
    """Return the mails of a file, a folder of files, or a Maildir.

    ``name``: what the user calls the file, if not by its path. Raises InputError if there is no such file, if
    it cannot be read, or if a mail is damaged.
    """
    if path.is_dir():
        return [mail for file in mail_files(path) for mail in _mails_in(file, str(file))]
    if not path.is_file():
        raise InputError(
            f"there is no file {path}",
            hint="give a mail, an mbox, a folder of mails, lore:MESSAGE-ID or git:PATH@BASE..TOPIC.",
        )
    return _mails_in(path, name or str(path))


def mail_files(folder: Path) -> list[Path]:
    """Return the files of a folder of mails, or of a Maildir, in the order of their names."""
    files = [file for part in ("cur", "new") if (folder / part).is_dir() for file in _files(folder / part)]
    files = files or [file for file in _files(folder) if file.suffix in _SUFFIXES]
    inner = [one for one in folder.iterdir() if one.is_dir()]
    return mail_files(inner[0]) if not files and len(inner) == 1 else files


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


def _mails_in(file: Path, name: str) -> list[Mail]:
    texts, found = raw_mails(file), []
    for number, text in enumerate(texts, 1):
        place = f"{name}, mail {number} of {len(texts)}" if len(texts) > 1 else name
        with damaged(place, hint="save the mail again, as plain text."):
            found.append(parse(text, file.name, place))
    return found


def raw_mails(file: Path) -> list[bytes]:
    """Return the mails of a file, which may be compressed, as they are. Raises InputError."""
    try:
        with file.open("rb") as plain:
            packed = plain.peek(2).startswith(b"\x1f\x8b")
            with gzip.GzipFile(fileobj=plain) if packed else plain as stream:
                content = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{file}: cannot be read: {error}", hint="save it again, and name a file that you can read."
        ) from error
    texts = split_mbox(content.lstrip(b"\r\n")) if len(content) <= MOST_BYTES else [content]
    lines = max(text.count(b"\n") for text in texts)
    if max(map(len, texts)) > _MOST_BYTES_OF_A_MAIL or lines > _MOST_LINES_OF_A_MAIL:
        raise InputError(
            f"{file} is damaged: it is larger than {MOST_BYTES // 1_000_000} MB, or a mail of it than "
            f"{_MOST_BYTES_OF_A_MAIL // 1_000_000} MB or {_MOST_LINES_OF_A_MAIL:,} lines",
            hint="give the mails of one series only.",
        )
    return texts


@dataclass(frozen=True)
class ChosenMails:
    """The mails of one series in order, its cover letter, and what was left out, one sentence each."""

    patches: tuple[Mail, ...]
    cover: Mail | None
    missing: tuple[int, ...]
    notes: tuple[str, ...]


def choose(mails: Sequence[Mail], message_id: str = "", releases: Sequence[str] = ()) -> ChosenMails:
    """Return the series of ``mails``; with the ``message_id`` of one of its mails, that revision of it.

    Of several for stable kernels, that for the first of ``releases`` (6.12) is returned, or the newest. No
    patches if no mail has a diff. Raises InputError if there are too many.
    """
    notes: list[str] = []
    # Archives also have copies of a mail that a server sent on to the list, cut short.
    longest = {mail.message_id or id(mail): mail for mail in sorted(mails, key=lambda one: len(one.body))}
    mails = [mail for mail in mails if longest[mail.message_id or id(mail)] is mail]
    patches = _patches(mails, notes)
    covers = [mail for mail in mails if mail.is_cover]
    if not patches:
        notes += [
            f"the diff in {mail.subject!r} is not at the start of its lines: it is indented or after text"
            for mail in mails
            if _DISPLACED.search(mail.body)
        ][:_MANY]
        return ChosenMails((), covers[0] if covers else None, (), tuple(notes))
    # The named mail decides which series is meant, or else the first one.
    order = {id(mail): number for number, mail in enumerate(mails)}
    candidates = [*covers, *patches]
    named = (mail for mail in candidates if message_id and mail.message_id == message_id)
    lead = next(named, None) or min(candidates, key=lambda mail: order.get(id(mail), len(order)))
    exact = message_id and lead.message_id == message_id and any(m.group == lead.group for m in patches)
    group = lead.group if exact else _group(lead, patches, releases)
    # A patch without a number is a series of its own, even if the thread has others.
    alone = exact and lead.total == 1 and not lead.is_cover
    mine = [m for m in patches if m.group == group and (not alone or m.title == lead.title or m.fix)]
    if max(*group[0], group[1], len(mine)) > _MOST:
        raise InputError(
            f"{mine[0].place} is damaged: {mine[0].subject[:80]!r} has a number above {_MOST:,}",
            hint=f"give a series of at most {_MOST:,} patches, with a subject such as [PATCH v2 1/3].",
        )
    ids = {id(mail) for mail in mine}
    mine, missing = _completed(_without_duplicates(mine, notes), group, patches, notes)
    ids |= {id(mail) for mail in mine}
    left = [mail for mail in patches if id(mail) not in ids]
    branches = {mail.branch for mail in left if group[2]} - {"", group[2]}
    if branches:
        others = " and ".join(f"{branch}.y" for branch in sorted(branches, key=_release, reverse=True))
        notes.append(f"the series for {group[2]}.y is used; the mails have others for {others}")
        left = [mail for mail in left if mail.branch not in branches]
    for revision in dict.fromkeys(mail.revision for mail in left if mail.revision != group[0]):
        count = sum(mail.revision == revision for mail in left)
        notes.append(f"left out: {count} patch{'es' * (count != 1)} of revision {_version(revision)}")
    _note_left_out("of another series", [mail for mail in left if mail.revision == group[0]], notes)
    return ChosenMails(tuple(mine), _cover(covers, group, mine), missing, tuple(notes))


def _cover(covers: Sequence[Mail], group: Group, mine: Sequence[Mail]) -> Mail | None:
    """Return the latest cover letter of a series; it may be the only mail with the revision."""
    senders = {mail.sender for mail in mine}
    numbered = [mail for mail in covers if mail.group == group]
    others = [
        mail
        for mail in covers
        if mail.total in (0, group[1]) and group[0] in (mail.revision, (1, 0)) and mail.sender in senders
    ]
    return max(numbered or (others if group[1] > 1 else []), key=lambda mail: mail.moment, default=None)


def _patches(mails: Sequence[Mail], notes: list[str]) -> list[Mail]:
    """Return the mails that are patches: with a diff, and neither a reply nor a report about a patch."""
    with_diff = []
    for mail in mails:
        if mail.diffs and not mail.is_cover:
            # A subject without a number: that of its file's name (0002-x.patch).
            number = re.match(r"(?:v\d+-)?(\d{4})-", mail.title)
            with_diff.append(replace(mail, number=int(number[1])) if number and mail.total == 1 else mail)
    first = [mail for mail in with_diff if not mail.is_reply]
    posted = [mail for mail in first if mail.is_posted] or first or with_diff
    if posted and posted[0].is_reply:
        notes.append("the patch is from a reply, because no other mail has a diff")
    replies = [mail for mail in with_diff if mail.is_reply and mail not in posted]
    _note_left_out("in a reply", replies, notes)
    _note_left_out("without [PATCH]", [mail for mail in first if mail not in posted], notes)
    return posted


def _group(lead: Mail, patches: Sequence[Mail], releases: Sequence[str]) -> Group:
    """Return the latest revision of the series that ``lead`` is of, for the first of ``releases``."""
    mails: dict[Group, list[Mail]] = {}
    for mail in patches:
        mails.setdefault(mail.group, []).append(mail)
    related = [
        group
        for group, its in mails.items()
        if group[1] == lead.total
        or ((group[1] > 1 or lead.total == 1) and lead.sender in {mail.sender for mail in its})
    ]
    related = [group for group in related if bool(group[2]) == bool(lead.branch)] or related
    share = {group: len({mail.number for mail in its}) / group[1] for group, its in mails.items()}
    # The revision of a part (v3.1) or of few patches completes another one; see _completed.
    whole = [group for group in related if share[group] > 0.5] or related or list(share)
    titles = {mail.title for mail in mails.get(lead.group, ())}

    def rank(group: Group) -> tuple[object, ...]:
        revision, _, branch = group
        place = -releases.index(branch) if branch in releases else -len(releases)
        # The same revision, posted again: with another number of patches, but with some of the old ones.
        again = not titles or any(mail.title in titles for mail in mails[group])
        newest = max(mail.moment for mail in mails[group])
        return place, _release(branch), revision, again, newest, group == lead.group, share[group]

    return max(whole, key=rank)


def _release(branch: str) -> tuple[int, ...]:
    return tuple(map(_number, re.findall(r"\d+", branch)))


def _without_duplicates(mine: Sequence[Mail], notes: list[str]) -> list[Mail]:
    """Return the patches by number; of a numbered patch that was sent again, the latest mail.

    Fixes come after what they fix. Patches without numbers stay in the order of the mails.
    """
    chosen: dict[object, Mail] = {}
    for mail in mine:
        key = mail.number if mail.total > 1 and not mail.fix else (mail.number, mail.diffs)
        before = chosen.get(key)
        if before is not None:
            notes.append(f"{mail.subject!r} is there twice; the later mail is used")
        if before is None or mail.moment >= before.moment:
            chosen[key] = mail
    fixed = {mail.number for mail in mine if not mail.fix}  # [PATCH fix 1/2] can be a series.
    fixes = [mail for mail in chosen.values() if mail.fix and mail.number in fixed]
    notes += [f"{mail.subject!r} is applied after patch {mail.number}" for mail in fixes]
    return sorted(chosen.values(), key=lambda mail: (mail.number, mail.fix, mail.fix and mail.moment))


def _completed(
    mine: Sequence[Mail], group: Group, patches: Iterable[Mail], notes: list[str]
) -> tuple[list[Mail], tuple[int, ...]]:
    """Return the patches with those of a partial revision in their places, and the missing numbers."""
    by_number: dict[int, list[Mail]] = {}
    for mail in mine:
        by_number.setdefault(mail.number, []).append(mail)
    later = sorted(
        (mail for mail in patches if mail.total == group[1] > 1 and mail.revision > group[0]),
        key=lambda mail: mail.revision,
    )
    for mail in later:
        by_number[mail.number] = [mail]
        notes.append(f"patch {mail.number} is taken from revision {_version(mail.revision)}")
    missing = tuple(number for number in range(1, group[1] + 1) if number not in by_number)
    if missing:
        notes.append(f"the series is incomplete: patch {ranges(missing)} of {group[1]} is missing")
    return [mail for number in sorted(by_number) for mail in by_number[number]], missing


def ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers in words: ``1-32, 35``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, run)) for run in found)


def _note_left_out(why: str, mails: Sequence[Mail], notes: list[str]) -> None:
    if len(mails) > _MANY:
        notes.append(f"left out: {len(mails)} diffs {why}")
    else:
        notes += [
            f"left out: the diff {why}, {mail.subject!r} by {mail.sender or 'unknown'}" for mail in mails
        ]


def _version(revision: tuple[int, int]) -> str:
    return f"v{revision[0]}" + (f".{revision[1]}" if revision[1] else "")
