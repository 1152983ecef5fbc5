"""Read what was posted, in whatever form it comes, as one series of patches that ``git am`` takes."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.header import Header
from pathlib import Path

from kteardown import paths
from kteardown.errors import InputError, damaged
from kteardown.kernels import apply_patches, cache_folder, git, series
from kteardown.kernels.git import of_branch
from kteardown.kernels.series import Selection, patches_in, slug
from kteardown.patches import lore
from kteardown.patches.latest_revision import ChosenMails, choose
from kteardown.patches.mailbox import raw_mails
from kteardown.patches.one_mail import DIFF_START, Diff, Mail, day, parse
from kteardown.progress import Reporter, SilentReporter

_NAME = 32
_RANGE = re.compile(r"git:(?:(?P<path>.*)@)?(?P<range>[^@]+\.\..*)")


@dataclass(frozen=True)
class PostedSeries:
    """A series as it was posted, and what was left out of the mails that it came in."""

    name: str
    """A short name, made from the title."""
    title: str
    revision: str
    """``v3``; empty for the first one."""
    message_id: str
    """Of the cover letter, or else of the first patch; empty if it was not a mail."""
    author: str
    date: str
    """As 2026-11-22."""
    base_commit: str
    """The commit that the mails name as their base; empty if they name none."""
    patches: tuple[Path, ...]
    """In the cache, in the order in which they apply, as ``git am`` takes them."""
    subjects: tuple[str, ...]
    cover: str
    """The text of the cover letter."""
    missing: tuple[int, ...] = ()
    """The numbers of the patches of an incomplete series that are not in the mails."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
    source: str = ""
    """Of a git range, the kernel source from which it was made; empty for mails."""

    @property
    def folder(self) -> Path:
        """The folder of the patches, whose name is that of the series."""
        return self.patches[0].parent


def resolve(
    name_or_path: str, *, cache_dir: Path | None = None, reporter: Reporter | None = None
) -> Selection:
    """Return the patches that ``name_or_path`` selects; see ``series.resolve`` for a part of a series.

    ``name_or_path`` is also the path of a patch or a mailbox, ``lore:MESSAGE-ID`` or a git range. Raises
    InputError if there is no such series, or if patches of it are missing; LabError.
    """
    whole, part = series.split_part(name_or_path)
    path = Path(whole).expanduser()
    if lore.message_id(whole) or whole.startswith("git:"):
        cache = cache_dir or paths.cache_dir()
        posted = read(whole, cache_dir=cache, reporter=reporter or SilentReporter())
        return series.select(posted.name, (posted.patches,), whole, part, posted.revision)
    if name_or_path and not path.is_file():
        return series.resolve(name_or_path)
    posted = read(whole, cache_dir=cache_dir or paths.cache_dir(), reporter=SilentReporter())
    if posted.missing and len(posted.patches) > 1:
        raise InputError(
            f"{whole} is incomplete: patch {', '.join(map(str, posted.missing))} is missing",
            hint="fetch the whole series again, for example with `b4 am`, or use `kteardown try`.",
        )
    return series.select(slug(path.stem), (posted.patches,), whole, part, posted.revision)


def read(what: str, *, cache_dir: Path, reporter: Reporter) -> PostedSeries:
    """Read a file (a mail, an mbox, also compressed), a folder of mails, ``lore:MESSAGE-ID`` or a git range.

    A git range is ``git:PATH@BASE..TOPIC``. Raises InputError if it contains no patch or a damaged one,
    LabError if the archive cannot be reached.
    """
    if not what:
        raise InputError("the name of the patches is empty", hint="give a file, a folder or lore:MESSAGE-ID.")
    span = _RANGE.fullmatch(what)
    if span:
        return _of_range(span["range"], Path(span["path"] or ".").expanduser(), cache_dir)
    message_id = lore.message_id(what)
    path = lore.fetch(message_id, cache_dir, reporter) if message_id else Path(what).expanduser()
    own_name = what if message_id else ""  # The user does not know the file in the cache.
    mails = []
    for raw in raw_mails(path):
        place = raw.place(own_name)
        with damaged(place, hint="save the mail again, as plain text."):
            mails.append(parse(raw.content, raw.file.name, place))
    chosen = choose(mails, message_id)
    if not chosen.patches:
        raise InputError(
            f"{what} contains no patch",
            hint="give a patch, an mbox, a folder of patches, or another mail of the thread.",
        )
    return _series(chosen, cache_dir)


def _series(chosen: ChosenMails, cache_dir: Path) -> PostedSeries:
    diffs = [(mail, diff) for mail in chosen.patches for diff in mail.diffs]
    texts = [as_patch(mail, diff, number, len(diffs)) for number, (mail, diff) in enumerate(diffs, 1)]
    first = chosen.cover or chosen.patches[0]
    name = slug(first.title)
    if len(name) > _NAME:  # It is the heading of a column.
        name = name[:_NAME].rpartition("-")[0] or name[:_NAME]
    files = [
        (f"{number:04}-{slug(diff.title or mail.title)[:60]}.patch", text)
        for number, ((mail, diff), text) in enumerate(zip(diffs, texts, strict=True), 1)
    ]
    patches = store(files, name, cache_dir)
    for (mail, _), patch in zip(diffs, patches, strict=True):
        apply_patches.files_in(patch, f"{mail.place} ({mail.subject!r})")
    bases = (mail.base_commit for mail in (*([chosen.cover] if chosen.cover else []), *chosen.patches))
    revision = first.revision[0]
    return PostedSeries(
        name=name,
        title=first.title,
        revision=f"v{revision}" if revision > 1 else "",
        message_id=first.message_id,
        author=diffs[0][1].author or first.sender,
        date=day(first.date),
        base_commit=next(filter(None, bases), ""),
        patches=patches,
        subjects=tuple(diff.title or mail.title for mail, diff in diffs),
        cover=chosen.cover.body if chosen.cover else "",
        missing=chosen.missing,
        notes=chosen.notes,
    )


def store(files: Sequence[tuple[str, bytes]], name: str, cache_dir: Path) -> tuple[Path, ...]:
    """Write patches, each a file name and a text, to the folder ``name`` in the cache, by their content."""
    digest = hashlib.sha256()
    for file, text in files:
        digest.update(f"{file}\n{len(text)}\n".encode() + text)
    # Absolute, because it becomes the name of a series.
    folder = cache_dir.absolute() / "series" / digest.hexdigest()[:16] / name
    with cache_folder.locked(folder.parent, SilentReporter(), f"patches of {name}"):
        if not folder.is_dir():
            with cache_folder.published(folder.parent) as work:
                (work / name).mkdir()
                for file, text in files:
                    (work / name / file).write_bytes(text)
    return patches_in(folder)


def as_patch(mail: Mail, diff: Diff, number: int, total: int) -> bytes:
    """Return one patch as a mail that ``git am`` and ``git apply`` take, equal for equal patches."""
    count = f" {number}/{total}" if total > 1 else ""
    headers = {
        "From": diff.author or "unknown <unknown@localhost>",
        "Date": diff.date,
        "Subject": f"[PATCH{count}] {diff.title or mail.title}",
        "Message-ID": f"<{mail.message_id}>" if mail.message_id else "",
    }
    lines = []
    for key, value in headers.items():
        plain = value if value.isascii() else Header(value, "utf-8", maxlinelen=10_000).encode()
        lines += [f"{key}: {plain}\n".encode()] if value else []
    separator = b"---\n" if DIFF_START.match(diff.text) else b""
    ending = b"" if diff.text.endswith(b"\n") else b"\n"
    body = b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n"
    return b"".join((*lines, body, diff.message.strip(b"\n"), b"\n", separator, diff.text, ending))


def _of_range(span: str, repository: Path, cache_dir: Path) -> PostedSeries:
    fork, folder = of_branch(span, repository, cache_dir)
    patches = patches_in(folder)
    mails = [parse(patch.read_bytes(), patch.name) for patch in patches]
    commit = git.read(repository, "rev-parse", "--verify", f"{fork}^{{commit}}").text
    return PostedSeries(
        name=folder.name,
        title=mails[0].title if len(mails) == 1 else span,
        revision="",
        message_id="",
        author=mails[0].diffs[0].author if mails[0].diffs else mails[0].sender,
        date=day(mails[-1].date),
        base_commit=commit,
        source=f"git:{repository.absolute()}@{commit}",
        patches=patches,
        subjects=tuple(mail.title for mail in mails),
        cover="",
    )
