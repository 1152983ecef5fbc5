"""The source that a series is written for, and the backport whose patches apply to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import BuildError, InputError
from kteardown.flows.mail_series.letter import CoverLetter, NamedBase
from kteardown.kernels import apply_patches
from kteardown.kernels.series import Selection
from kteardown.kernels.source import Source, Sources
from kteardown.kernels.source_name import is_source, split

_KINDS = ("debian", "kernel.org", "git", "tar")


@dataclass(frozen=True)
class ChosenBase:
    """A source as the user or the cover letter names it, and the backports that may apply to it."""

    spec: str
    named: NamedBase | None
    """None for a source that the cover letter does not name."""
    backports: Mapping[str, tuple[Path, ...]]


def backports_of(series: Selection) -> dict[str, tuple[Path, ...]]:
    """Return the patches of each backport by its name, which is empty if the series has only one
    text."""
    if len(series.backports) == 1:
        return {"": series.files}
    return {files[0].parent.name: files for files in series.backports}


def choose_base(
    series: Selection, letter: CoverLetter, base: str | None, backport: str | None
) -> ChosenBase:
    """Return the base that the user names: one of the cover letter, or another source.

    By default it is the newest base of the cover letter, or of ``backport``. Raises InputError.
    """
    backports = backports_of(series)
    if backport is not None and (backport not in backports or not backport):
        names = [name for name in backports if name]
        raise InputError.unknown(
            f"{series.series} has no backport {backport!r}",
            backport,
            names,
            if_none="leave --backport out: the series has only one text.",
        )
    if base is not None:
        return _named_by_user(series, letter, base, backport)
    fitting = [named for named in letter.bases if backport in (None, named.backport)]
    if not fitting:
        raise InputError(
            f"the cover letter of {series.series} names no base"
            + (f" of the backport {backport}" if backport else ""),
            hint="name a source: --base debian:7.3, or --base git:PATH@REV.",
        )
    return _of_letter(fitting[-1], backports)


def _named_by_user(
    series: Selection, letter: CoverLetter, base: str, backport: str | None
) -> ChosenBase:
    backports = backports_of(series)
    named = next((one for one in letter.bases if one.is_called(base)), None)
    if named is not None:
        if backport not in (None, named.backport):
            raise InputError(
                f"the backport {backport} is not for {named.name}",
                hint=f"leave --backport out, or write --backport {named.backport}.",
            )
        return _of_letter(named, backports)
    if not is_source(base):
        raise InputError.unknown(
            f"--base {base}: neither a base of {series.series} nor a source",
            base,
            [one.name for one in letter.bases],
            if_none="name a source: --base debian:7.3, or --base git:PATH@REV.",
        )
    if split(base)[0] not in _KINDS:
        raise InputError(
            f"--base {base}: nobody else has this source",
            hint="name one that a reviewer can get, as git:PATH@REV or debian:7.3.",
        )
    return ChosenBase(
        base, None, backports if backport is None else {backport: backports[backport]}
    )


def _of_letter(named: NamedBase, backports: Mapping[str, tuple[Path, ...]]) -> ChosenBase:
    name = named.backport
    if name not in backports:
        raise InputError(
            f"the cover letter names the backport {name or 'without a name'} for {named.name}, "
            "which the series does not have",
            hint="correct the line `base:` at the end of the cover letter.",
        )
    return ChosenBase(named.source, named, {name: backports[name]})


def fitting_backport(
    chosen: ChosenBase, sources: Sources, source: Source
) -> tuple[str, tuple[Path, ...]]:
    """Return the name and the patches of the first backport that applies. Raises BuildError."""
    errors = []
    for name, files in chosen.backports.items():
        with TemporaryDirectory(prefix="kteardown-") as folder:
            try:
                apply_patches.apply(sources.tree(source), files, Path(folder), chosen.spec)
            except BuildError as error:
                errors.append(error)
                continue
        return name, files
    raise errors[0]


def line_of(source: Source) -> str:
    """Return the line about the base at the end of the mails, as git format-patch has one."""
    rest = source.id.partition(":")[2]
    if source.kind == "git":
        return f"base-commit: {rest.rpartition('@')[2]}"
    version = version_of(source)
    if source.kind == "debian":
        return f"base: v{version} (Debian linux-source-{'.'.join(version.split('.')[:2])})"
    return f"base: {rest}" if source.kind == "tar" else f"base: v{rest}"


def version_of(source: Source) -> str:
    """Return the version of a Debian package without that of its packaging."""
    return source.id.partition(":")[2].partition("-")[0].replace("~", "-")
