"""Read what was posted, in whatever form it comes, as one series of patches that ``git am`` takes.

Threads of the public archives are fetched with b4, with its configuration and its cache.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from email.header import Header
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter

from kteardown import paths
from kteardown.errors import InputError, LabError
from kteardown.extras import EXTRAS, install_command
from kteardown.kernels import apply_patches, cache_folder, git, series, toolchain
from kteardown.kernels.git import of_branch, store
from kteardown.kernels.series import Selection, patches_in, slug
from kteardown.patches import git_range, given, reading
from kteardown.patches.choice import ChosenMails, choose_series, ranges
from kteardown.patches.given import CommitRange, message_id
from kteardown.patches.mails import (
    DIFF_START,
    MOST_BYTES,
    Diff,
    Mail,
    address,
    day,
    mails_of,
    parse,
)
from kteardown.patches.warnings import release_of
from kteardown.progress import Reporter, SilentReporter

_NAME = 32
_NEEDED = re.compile(
    r"^(?:prerequisite-(?:message-id|(change-id|patch-id))|based-on|depends-on):\s*(\S+)",
    re.I | re.M,
)
_MOST_TEXT = 100_000
_MOST_LINKS = 20
_ID = r"<(?=[^\s<>@\d]{0,250}\d)[^\s<>@]{1,250}@[^\s<>]{1,250}>"
_LINK = re.compile(rf"(https?://\S+|{_ID})|\[(\d{{1,3}})\]")
_NEEDED_LINK = re.compile(
    r"\b(?:depend(?:s|ing)? (?:up)?on|on top of)\b"
    r"(?:(?!\n\s*\n|\n---|\n\W*v\d|\.\s|discuss|suggest).){0,120}?"
    rf"(?:{_LINK.pattern})",
    re.I | re.S,
)
_NEEDED_LIST = re.compile(r"^depends on:[ \t]*\n((?:.{1,200}\n){1,20})", re.I | re.M)


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
    made_on: tuple[str, ...] = ()
    """What the mails name as needed before it: message ids, or ``change-id NAME:v2`` and ``patch-id
    ID``."""
    version: str = ""
    """The stable kernel that the subjects name: ``6.12``; empty if they name none."""
    source: str = ""
    """Of a git range, the kernel source from which it was made; empty for mails."""

    @property
    def folder(self) -> Path:
        """The folder of the patches, whose name is that of the series."""
        return self.patches[0].parent


_FORM = TypeAdapter(PostedSeries)


def resolve(
    name_or_path: str, *, cache_dir: Path | None = None, reporter: Reporter | None = None
) -> Selection:
    """Return the patches that ``name_or_path`` selects; see ``series.resolve`` for a part of a
    series.

    ``name_or_path`` is also the path of a patch or a mailbox, ``lore:MESSAGE-ID`` or a git range.
    Raises InputError if there is no such series, or if patches of it are missing; LabError.
    """
    spec, part = series.split_part(name_or_path)
    path = Path(spec).expanduser()
    fetched = bool(message_id(spec)) or spec.startswith("git:")
    if name_or_path and not fetched and not path.is_file():
        return series.resolve(name_or_path)
    posted = read_series(
        spec, cache_dir=cache_dir or paths.cache_dir(), reporter=reporter or SilentReporter()
    )
    if posted.missing and len(posted.patches) > 1 and not fetched:
        raise InputError(
            f"{spec} is incomplete: patch {ranges(posted.missing)} is missing",
            hint="fetch the whole series again, for example with `b4 am`, or use `kteardown try`.",
        )
    name = posted.name if fetched else slug(path.stem)
    return series.select(name, (posted.patches,), spec, part, posted.revision)


def read_series(
    what: str,
    *,
    cache_dir: Path,
    reporter: Reporter,
    sources: Sequence[str] = (),
    more: Sequence[str] = (),
) -> PostedSeries:
    """Read a file (a mail, an mbox, also compressed), a folder of mails, ``lore:MESSAGE-ID`` or a
    git range.

    A git range is ``git:PATH@BASE..TOPIC``, or ``BASE..TOPIC`` in the current folder; ``-`` is the
    standard input; ``more`` are files with other mails of the thread. Of series for several stable
    kernels, that for the first of ``sources`` is returned. Raises InputError if it contains no
    patch or a damaged one, LabError if the archive cannot be reached.
    """
    given.check(what)
    commits = given.commit_range(what)
    named = message_id(what)
    releases = list(filter(None, map(release_of, sources)))
    with TemporaryDirectory(prefix="kteardown-") as folder:
        if named:
            # The user does not know the file in the cache.
            file = fetch(named, cache_dir, reporter)
            called = what
        elif what == "-":
            file = Path(folder, "standard-input")
            called = "standard input"
            file.write_bytes(sys.stdin.buffer.read(MOST_BYTES + 1))
        else:
            file = Path(what).expanduser()
            called = ""

        def series() -> PostedSeries:
            if commits:
                return _of_range(commits, cache_dir)
            mails = mails_of(file, called)
            mails += [mail for extra in more for mail in mails_of(Path(extra).expanduser())]
            chosen = choose_series(mails, named, releases)
            if not chosen.patches and git_range.is_tree(file):
                raise InputError(
                    f"{what} is a git tree, not a folder of patches",
                    hint=(
                        f"give a range of its commits: git:{what}@BASE..TOPIC; or, for changes "
                        f"that are in no commit: {given.diff_of(what)}"
                    ),
                )
            if not chosen.patches:
                raise InputError(
                    ": ".join((f"{what} contains no patch", *chosen.notes)),
                    hint=(
                        "give a patch, an mbox, a folder of patches, or another mail of the thread."
                    ),
                )
            return _series(chosen, cache_dir)

        return reading.limited(called or what, series, _FORM)


def fetch(message_id: str, cache_dir: Path, reporter: Reporter) -> Path:
    """Return the mbox of the thread of ``message_id``, which is fetched once.

    Raises InputError if the archive has no such mail, LabError if b4 is not installed or the
    archive cannot be reached.
    """
    if message_id.startswith("-"):
        raise InputError(
            f"{message_id!r} is not a message id",
            hint="give it as lore:MESSAGE-ID, without < and >.",
        )
    name = paths.key_of(message_id.encode())
    target = cache_dir / "mail" / name
    with cache_folder.locked(target, reporter, f"fetch {message_id}"):
        if not target.is_dir():
            with reporter.task(f"Fetching {message_id}"), cache_folder.published(target) as work:
                _b4(message_id, work, reporter)
    return cache_folder.hold(target) / "thread.mbx"


def _b4(message_id: str, work: Path, reporter: Reporter) -> None:
    beside = Path(sys.executable).with_name("b4")
    program = str(beside) if beside.is_file() else shutil.which("b4")
    if program is None:
        raise LabError(
            "b4, which fetches mails from the archive, is not installed",
            hint=f"install it: {install_command(EXTRAS['mail'])}; or give the mail as a file.",
        )
    argv = [program, "--no-interactive", "--no-stdin", "mbox"]
    argv += ["-o", str(work), "-n", "thread.mbx", "--", message_id]
    reporter.command(argv)
    # b4 reads the configuration of the git tree in which it runs.
    result = toolchain.capture(argv)
    if (work / "thread.mbx").is_file():
        return
    printed = [line for line in (result.stderr + result.stdout).splitlines() if line.strip()]
    if any("not found" in line or "404" in line for line in printed):
        raise InputError(
            f"the archive has no mail {message_id}",
            hint="check the message id: it has an @, but no < or >.",
        )
    unresolved = re.search(r"Failed to resolve '[^']+'", result.stderr + result.stdout)
    reason = (
        unresolved[0]
        if unresolved
        else printed[-1].strip()[:160]
        if printed
        else "b4 printed nothing"
    )
    raise LabError(
        f"the archive of the mailing lists cannot be reached: {reason}",
        hint="check the network, or give the mail as a file.",
    )


def _series(chosen: ChosenMails, cache_dir: Path) -> PostedSeries:
    diffs = [(mail, diff) for mail in chosen.patches for diff in mail.diffs]
    # A mail may have several diffs, and a fix has the number of the patch that it fixes.
    total = max(mail.total for mail in chosen.patches)
    is_numbered = total > 1 and all(mail.total == total for mail in chosen.patches)
    texts = [
        as_patch(mail, diff, mail.number, total)
        if is_numbered
        else as_patch(mail, diff, number, len(diffs))
        for number, (mail, diff) in enumerate(diffs, 1)
    ]
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
    bases = (
        mail.base_commit for mail in (*([chosen.cover] if chosen.cover else []), *chosen.patches)
    )
    revision = first.revision[0]
    return PostedSeries(
        name=name,
        title=first.title,
        revision=f"v{revision}" if revision > 1 else "",
        message_id=first.message_id,
        author=_author(first, [diff.author for _, diff in diffs if diff.author]),
        date=day(first.date),
        base_commit=next(filter(None, bases), ""),
        patches=patches,
        subjects=tuple(diff.title or mail.title for mail, diff in diffs),
        cover=chosen.cover.body if chosen.cover else "",
        missing=chosen.missing,
        notes=chosen.notes,
        version=chosen.patches[0].branch,
        made_on=_made_on([*([chosen.cover] if chosen.cover else []), *chosen.patches]),
    )


def _author(first: Mail, authors: Sequence[str]) -> str:
    """Return the author of the ``first`` mail of a series, as its patches write it if they do."""
    same = [
        author for author in authors if (name := address(author)[0]) and name in first.sender_name
    ]
    if not same and first.is_cover and first.sender_name:
        return f"{first.sender_name} <{first.sender}>"
    return next(iter((*same, *authors)), first.sender)


def _made_on(mails: Sequence[Mail]) -> tuple[str, ...]:
    """Return what the mails say is needed before them, message ids first; see
    ``PostedSeries.made_on``."""
    ids: dict[str, None] = {}
    other_names: dict[str, None] = {}
    for mail in mails:
        for kind, name in _NEEDED.findall(mail.body):
            if kind:
                other_names[f"{kind.lower()} {name}"] = None
            else:
                ids[message_id(name) or name.strip("<>,")] = None
        text = mail.body.partition("\ndiff --git ")[0][:_MOST_TEXT]
        links = chain(
            _NEEDED_LINK.finditer(text), _LINK.finditer("".join(_NEEDED_LIST.findall(text)))
        )
        for link, number in (match.groups() for match in islice(links, _MOST_LINKS)):
            note = re.search(rf"^[ \t]*\[{number}\]:?[ \t]*(\S+)", text, re.M) if number else None
            name = (note[1] if note else link or "").strip("<>().,;")
            ids[message_id(name) or name] = None
    own_ids = {mail.message_id for mail in mails}
    message_ids = [
        name for name in ids if re.fullmatch(r"[^\s/@]+@[^\s/]+", name) and name not in own_ids
    ]
    named = [name for name in other_names if name.startswith("change-id")]
    return tuple(message_ids or named or other_names)


def as_patch(mail: Mail, diff: Diff, number: int, total: int) -> bytes:
    """Return one patch as a mail that ``git am`` and ``git apply`` take, equal for equal
    patches."""
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
    body = (
        b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: "
        b"8bit\n\n"
    )
    return b"".join((*lines, body, diff.message.strip(b"\n"), b"\n", separator, diff.text, ending))


def _of_range(commits: CommitRange, cache_dir: Path) -> PostedSeries:
    git_range.check(commits)
    span = commits.span
    repository = commits.repository
    try:
        fork, folder = of_branch(span, repository, cache_dir)
    except InputError as error:
        typed = error.message.replace(f"--branch {span}", commits.typed)
        raise InputError(typed, hint=error.hint) from error
    patches = patches_in(folder)
    mails = [parse(patch.read_bytes(), patch.name) for patch in patches]
    commit = git.run_reading(repository, "rev-parse", "--verify", f"{fork}^{{commit}}").text
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
