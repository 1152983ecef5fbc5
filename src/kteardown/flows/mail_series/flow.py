"""Write a series as mails on a base, and check them."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile as copy_file
from tempfile import TemporaryDirectory, mkdtemp

from kteardown import extras, sandbox
from kteardown.errors import InputError, LabError, failing
from kteardown.flows.mail_series import before_sending, checks
from kteardown.flows.mail_series.checks import CHECKPATCH, MailCheck
from kteardown.flows.mail_series.chosen_base import (
    ChosenBase,
    choose_base,
    fitting_backport,
    line_of,
    version_of,
)
from kteardown.flows.mail_series.letter import CoverLetter, letter_of
from kteardown.flows.mail_series.patch_text import (
    SentPatch,
    commits_in,
    new_files_in,
    sent_patch,
    with_base,
    with_notes,
)
from kteardown.flows.mail_series.person import NOBODY, Person
from kteardown.flows.mail_series.plain_text import as_plain_text
from kteardown.flows.mail_series.recipients import Recipients, find_recipients
from kteardown.flows.mail_series.repository import SERIES, MailRepository
from kteardown.kernels import git
from kteardown.kernels.series import Selection
from kteardown.kernels.source import Source, Sources
from kteardown.progress import Reporter


@dataclass(frozen=True)
class WrittenMails:
    """The mails of a series, which were written and not sent."""

    folder: Path
    files: tuple[str, ...]
    """The names of the mails, in order."""
    base: str
    """The line about the base at their end."""
    source: str
    backport: str
    author: Person | None
    """None for a draft."""
    recipients: Recipients
    checks: tuple[MailCheck, ...]
    todo: tuple[str, ...]
    """What a person has to do before they are sent."""


def check_folder(folder: Path) -> None:
    """Check that mails can be written to ``folder``. Raises InputError."""
    parent = folder.absolute().parent
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file", hint="name a new folder for the mails.")
    with failing(f"{folder}: cannot be read", hint="name a new folder for the mails."):
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(
                f"{folder} is not empty", hint="name a new folder, or empty this one first."
            )
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        why = "you cannot write there" if parent.is_dir() else f"there is no folder {parent}"
        raise InputError(
            f"{folder} cannot be made: {why}", hint="name a folder in one in which you can write."
        )


def write_mails(
    series: Selection,
    folder: Path,
    sources: Sources,
    *,
    base: str | None = None,
    backport: str | None = None,
    author: Person | None = None,
    reporter: Reporter,
) -> WrittenMails:
    """Write ``series`` as mails into ``folder``, which is new or empty, and check them.

    The folder has all of them or is not made. Without ``author`` the mails of a series by the
    placeholder are a draft. Raises InputError, BuildError if a patch does not apply to the base,
    and LabError.
    """
    check_folder(folder)
    extras.need("mail", "kteardown series --mail")
    if reason := sandbox.problem():
        raise LabError(
            f"{CHECKPATCH} of the base cannot be run, since there is no sandbox: {reason}",
            hint="install bubblewrap and permit user namespaces; `kteardown doctor` checks both.",
        )
    letter = letter_of(series)
    chosen = choose_base(series, letter, base, backport)
    with reporter.task(f"Applying {series.series} to {chosen.spec}"):
        source = sources.identify(chosen.spec)
        _note_version(chosen, source, reporter)
        tree = sources.tree(source)
        name, files = fitting_backport(chosen, sources, source)
    with TemporaryDirectory(prefix="kteardown-") as scratch:
        # Programs in the sandbox have another user number, if root started this one.
        Path(scratch).chmod(0o755)
        mails = _Mails(letter, files, tree, Path(scratch), author, line_of(source), reporter)
        mails.write()
        found = mails.check()
        todo = before_sending.steps(
            is_draft=mails.is_draft,
            is_of_git=source.kind == "git",
            failed=[check.name for check in found if not check.passed],
            commits=[commit for commit in mails.commits if not _is_known(commit, source)],
            new_files=mails.new_files,
        )
        mails.add_steps(todo)
        _publish(mails.out, folder)
    return WrittenMails(
        folder=folder,
        files=tuple(file.name for file in mails.files),
        base=line_of(source),
        source=source.id,
        backport=name,
        author=None if mails.is_draft else mails.sender,
        recipients=mails.recipients,
        checks=tuple(found),
        todo=tuple(todo),
    )


def _note_version(chosen: ChosenBase, source: Source, reporter: Reporter) -> None:
    if chosen.named and chosen.named.version != version_of(source):
        reporter.note(
            f"the cover letter names {chosen.named.name}; {chosen.spec} is now "
            f"v{version_of(source)}, which is used"
        )


def _is_known(commit: str, source: Source) -> bool:
    """Return whether the git tree of a source has a commit; without one, nothing is known."""
    if source.kind != "git":
        return False
    argv = ("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    return git.run_reading(Path(source.origin), *argv).ok


class _Mails:
    """The mails of one series while they are made, in ``scratch``."""

    def __init__(
        self,
        letter: CoverLetter,
        patches: Sequence[Path],
        tree: Path,
        scratch: Path,
        author: Person | None,
        base: str,
        reporter: Reporter,
    ) -> None:
        self.out = scratch / "mails"
        self.out.mkdir()
        self.files: list[Path] = []
        self.recipients = Recipients((), ())
        self._letter, self._tree, self._base = letter, tree, base
        self._scratch, self._reporter = scratch, reporter
        self._sent = [
            sent_patch(file, number, len(patches), author) for number, file in enumerate(patches, 1)
        ]
        authors = [patch.author for patch in self._sent]
        self.sender = author or (NOBODY if NOBODY in authors else authors[0])
        self._inputs = _written(self._sent, patches, scratch / "patches")
        folder = scratch / "repository"
        self._repository = MailRepository(folder, tree, self._inputs, self.sender)
        self._has_cover = len(patches) > 1 or letter.is_numbered

    @property
    def commits(self) -> list[str]:
        """Return the commits that the messages name."""
        return commits_in("\n".join(patch.message for patch in self._sent))

    @property
    def new_files(self) -> list[str]:
        """Return the files that the patches make."""
        return [name for patch in self._sent for name in new_files_in(patch.text)]

    @property
    def is_draft(self) -> bool:
        """Whether nobody answers for the series yet."""
        return self.sender == NOBODY

    @property
    def _patch_mails(self) -> list[Path]:
        return self.files[int(self._has_cover) :]

    def write(self) -> None:
        """Write the mails. Raises InputError, LabError."""
        inputs = self._inputs
        if refused := self._repository.apply(SERIES, inputs):
            raise InputError(
                f"git am refuses the series: {refused}",
                hint="write its patches again, with git format-patch.",
            )
        text = as_plain_text(self._letter.text)
        self.recipients = find_recipients(
            self._tree,
            inputs,
            [*(patch.message for patch in self._sent), text],
            self._letter.prefix,
            self.sender,
            self._reporter,
        )
        self.files = self._repository.write(SERIES, self.out, *self._options(text))
        notes = [patch.notes for patch in self._sent]
        if not self._has_cover:
            notes[0] = "\n\n".join(filter(None, (text, notes[0])))
        for file, note in zip(self._patch_mails, notes, strict=True):
            file.write_bytes(with_notes(file.read_bytes(), note))
        self.files[0].write_bytes(with_base(self.files[0].read_bytes(), self._base))

    def _options(self, text: str) -> list[str]:
        options = [f"--subject-prefix={self._letter.prefix}", "--no-numbered"]
        if self._has_cover:
            self._repository.describe(SERIES, f"{self._letter.title}\n\n{text}")
            options[1:] = ["--numbered", "--cover-letter", "--cover-from-description=subject"]
        if not self.is_draft:
            options += [f"--from={self.sender}"]
            options += [f"--to={address}" for address in self.recipients.to]
            options += [f"--cc={address}" for address in self.recipients.cc]
        return options

    def check(self) -> list[MailCheck]:
        """Return what each check found. Raises InputError, LabError."""
        mails = self._patch_mails
        signed = not self.is_draft
        return [
            checks.check_with_checkpatch(self._tree, mails, self._reporter, signed=signed),
            checks.check_with_b4(
                self._tree,
                self._repository,
                self._letter,
                self._scratch,
                self.sender,
                self._reporter,
                signed=signed,
            ),
            checks.check_with_git_am(self._repository, mails, self._reporter),
        ]

    def add_steps(self, todo: Sequence[str]) -> None:
        text = before_sending.as_mail(todo, self.recipients)
        (self.out / before_sending.FILE).write_text(text, encoding="utf-8")


def _written(patches: Sequence[SentPatch], names: Sequence[Path], folder: Path) -> list[Path]:
    folder.mkdir()
    files = [folder / f"{number:04}-{path.name}" for number, path in enumerate(names, 1)]
    for file, patch in zip(files, patches, strict=True):
        file.write_bytes(patch.text)
    return files


def _publish(mails: Path, folder: Path) -> None:
    """Copy the mails next to ``folder``, and then rename them to it, all at once."""
    target = folder.resolve()
    with (
        failing(
            f"{folder}: cannot be written",
            hint="free disk space, or name another folder.",
            kind=LabError,
        ),
        _beside(target) as copy,
    ):
        shutil.copytree(mails, copy, copy_function=copy_file)
        copy.rename(target)


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield a name for a folder in a hidden one beside ``target``, which is removed at the end."""
    hidden = Path(mkdtemp(prefix=f".{target.name[:100]}-", dir=target.parent))
    try:
        yield hidden / "mails"
    finally:
        with suppress(OSError):
            shutil.rmtree(hidden)
