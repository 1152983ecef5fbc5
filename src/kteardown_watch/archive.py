"""The new series of a mailing list: from its archive, a git repository of public-inbox, or saved
mails."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import Message
from itertools import accumulate
from pathlib import Path

from pydantic import TypeAdapter

from kteardown.errors import InputError, KteardownError, LabError
from kteardown.kernels import cache_folder, git
from kteardown.patches import mime, reading
from kteardown.patches.mails import mail_files, raw_mails
from kteardown.paths import replace_text
from kteardown.progress import Reporter

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_ARCHIVE = "https://lore.kernel.org"
_ID = re.compile(r"<([^<>\s]+)>")
_POSTED = re.compile(r"\s*+\[(?=[^\]]*?(?:PATCH|RFC))[^\]]*+\]", re.IGNORECASE)
MOST_MAILS = 20_000
_MOST_BYTES = 500_000_000
_MOST_EPOCHS = 100
_NUMBERS = TypeAdapter(list[list[int]])
_KEPT = 50_000
"""So many message ids of series that were seen are kept."""


def mails_of_list(where: str, days: float, cache: Path, reporter: Reporter) -> list[bytes]:
    """Return the mails in ``where``; of a list or a git repository, those of the last ``days``
    days.

    ``where`` is the name of a list in the archive of kernel.org, a git repository of public-inbox,
    or a file or folder of mails. Raises InputError, LabError.
    """
    path = Path(where).expanduser()
    since = datetime.now(UTC) - timedelta(days=days)
    if not path.exists():
        if not _NAME.fullmatch(where):
            raise InputError(
                f"there is no file or folder {where}",
                hint=(
                    "give the name of a list (cgroups), a git repository of public-inbox, or an "
                    "mbox."
                ),
            )
        path = _fetched(where, since, cache, reporter)
    if (path / ".git").exists() or (path / "HEAD").is_file():
        return list(_of_repository(path, since))
    files = mail_files(path) if path.is_dir() else [path]
    return [mail for file in files for mail in raw_mails(file)]


def _fetched(name: str, since: datetime, cache: Path, reporter: Reporter) -> Path:
    """Fetch the mails of a list, of which the archive has a repository for each epoch, into the
    cache."""
    base = os.environ.get("KTEARDOWN_ARCHIVE") or _ARCHIVE
    base = str(Path(base).absolute()) if Path(base).is_dir() else base
    target = cache / "archive" / name
    with cache_folder.locked(target, reporter, f"fetch {name}"), reporter.task(f"Fetching {name}"):
        if not target.is_dir():
            with cache_folder.published(target) as work:
                git.prepare(work)
                git.run("init", "-q", "--bare", git_dir=work)
        epochs: list[str] = []
        while len(epochs) < _MOST_EPOCHS:
            done = git.run("ls-remote", "--heads", f"{base}/{name}/{len(epochs)}", git_dir=target)
            if not done.ok or not done.text:
                break
            epochs.append(f"{base}/{name}/{len(epochs)}")
        if not epochs:
            raise LabError(
                f"the list {name} cannot be fetched from {base}: "
                f"{done.said.strip()[-200:] or 'it is empty'}",
                hint="check the name and the network, or give a file or folder of mails.",
            )
        for epoch in epochs[-2:]:  # The newest may have begun a moment ago.
            heads = f"+refs/heads/*:refs/heads/{epoch.rpartition('/')[2]}/*"
            git.run(
                "fetch", "-q", f"--shallow-since={since:%Y-%m-%d}", epoch, heads, git_dir=target
            )
    return cache_folder.hold(target)


def _of_repository(repository: Path, since: datetime) -> Iterator[bytes]:
    """Yield the mails that the commits of a repository added, the oldest first: the file ``m`` of
    each.

    Of more than may be in memory, the newest.
    """
    arguments = [
        "log",
        "--all",
        f"--since={since.isoformat()}",
        f"--max-count={MOST_MAILS}",
        "--format=%H:m",
    ]
    names = git.run_reading(repository, *arguments).out
    with git.view(repository) as git_dir:
        form = "--batch-check=%(objectname) %(objectsize) %(objecttype)"
        listed = git.run("cat-file", form, git_dir=git_dir, data=names).text.splitlines()
        mails = [
            (fields[0], int(fields[1]))
            for fields in map(str.split, listed)
            if fields[2:] == ["blob"]
        ]
        totals = accumulate(size for _, size in mails)
        kept = [mail for mail, total in zip(mails, totals, strict=True) if total <= _MOST_BYTES][
            ::-1
        ]
        text = "".join(f"{name}\n" for name, _ in kept).encode()
        out = git.run("cat-file", "--batch", git_dir=git_dir, data=text).out
    place = 0
    for name, size in kept:
        place += len(f"{name} blob {size}\n")
        yield out[place : place + size]
        place += size + 1


def threads(mails: Sequence[bytes]) -> list[list[bytes]]:
    """Return the posted patches and cover letters of ``mails`` by their threads, the oldest first.

    A mail with headers that no mail has is left out. Raises InputError if the mails cannot be read.
    """
    numbers = reading.limited("the mails", lambda: numbers_of_threads(mails), _NUMBERS)
    return [[mails[number] for number in thread] for thread in numbers]


def numbers_of_threads(mails: Sequence[bytes]) -> list[list[int]]:
    """Return the places of the posted patches in ``mails`` by their threads; see ``threads``."""
    parent: dict[str, str] = {}
    posted: dict[str, int] = {}
    for number, raw in enumerate(mails):
        with suppress(ValueError):
            head, _ = mime.headers_of(raw)
            message_id = next(iter(_ids(head, "Message-ID")), "")
            above = _ids(head, "References") or _ids(head, "In-Reply-To")
            if above:
                parent[message_id] = above[0]
            if message_id and _POSTED.match(str(head["Subject"] or "")):
                posted.setdefault(message_id, number)
    by_root: dict[str, list[int]] = {}
    for message_id, number in posted.items():
        by_root.setdefault(_root(message_id, parent), []).append(number)
    return list(by_root.values())


def _root(name: str, parent: dict[str, str]) -> str:
    """Return the first mail of a thread; after that each mail on the way has it as its parent."""
    way = {name: None}
    while (above := parent.get(name)) is not None and above not in way:
        name = above
        way[name] = None
    parent.update((mail, name) for mail in way if mail != name)
    return name


def _ids(head: Message, name: str) -> list[str]:
    return _ID.findall(str(head[name] or ""))


def as_mbox(mails: Sequence[bytes]) -> bytes:
    """Return mails, each with or without the first line of an mbox, as one mbox (mboxrd)."""
    plain = (re.sub(rb"\AFrom .*\n", b"", mail).rstrip(b"\n") for mail in mails)
    quoted = (re.sub(rb"^(>*From )", rb">\1", mail, flags=re.M) for mail in plain)
    return b"".join(b"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + mail + b"\n\n" for mail in quoted)


class Seen:
    """The series of a list that were looked at before, by their message ids, in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ids: list[str] = []
        with suppress(OSError, ValueError, KteardownError):
            ids = json.loads(file.read_bytes())
            self._ids = (
                [message_id for message_id in ids if isinstance(message_id, str)]
                if isinstance(ids, list)
                else []
            )

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._ids

    def add(self, message_id: str) -> None:
        """Add a series, and write the file. Raises OSError."""
        self._ids = [*self._ids, message_id][-_KEPT:]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        replace_text(self._file, json.dumps(self._ids, indent=0))
