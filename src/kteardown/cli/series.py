"""``kteardown series``: show a series of patches, or write it as mails that a person can send."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kteardown.cli import complete, options
from kteardown.cli.rows import Fields, table_of
from kteardown.errors import GateError, InputError, did_you_mean
from kteardown.flows.mail_series.chosen_base import choose_base
from kteardown.flows.mail_series.letter import CoverLetter, letter_of
from kteardown.flows.mail_series.person import parse_person
from kteardown.kernels.apply_patches import read_patch
from kteardown.kernels.series import Selection, known_series, resolve, subject
from kteardown.paths import cache_dir
from kteardown.visible import echo

if TYPE_CHECKING:
    from rich.console import Console

    from kteardown.flows.mail_series.flow import WrittenMails


def series(
    name: Annotated[str, typer.Argument(autocompletion=complete.series)],
    mail: Annotated[Path | None, typer.Option("--mail", metavar="FOLDER")] = None,
    base: str | None = None,
    backport: str | None = None,
    author: Annotated[str | None, typer.Option("--author", metavar="'NAME <MAIL>'")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    quiet: options.QuietOption = False,
) -> None:
    chosen = _series(name)
    person = parse_person(author) if author is not None else None
    if mail is None:
        if person is not None:
            raise InputError("--author is about mails", hint="add --mail FOLDER.")
        _show(chosen, base, backport, as_json=as_json)
        return
    # What it needs takes most of a second to import.
    from kteardown.flows.mail_series.flow import write_mails
    from kteardown.kernels.source import Sources

    reporter = options.reporter(verbose=False, quiet=quiet)
    written = write_mails(
        chosen,
        mail,
        Sources(cache_dir(), reporter),
        base=base,
        backport=backport,
        author=person,
        reporter=reporter,
    )
    if as_json:
        echo(json.dumps(_json(written), indent=1))
    else:
        _print(written, options.output())
    if failed := [check.name for check in written.checks if not check.passed]:
        raise GateError(
            f"{', '.join(failed)} found something in {chosen.series}",
            hint="the mails are written: correct the series, and write them anew.",
        )


def _series(name: str) -> Selection:
    """Return the series, whole. Raises InputError."""
    names = [known.name for known in known_series(Path.cwd())]
    if name not in names and not Path(name).is_dir():
        raise InputError(
            f"there is no series called {name!r}{did_you_mean(name, names)}",
            hint="choose one of `kteardown list series`, or give the path of a folder.",
        )
    return resolve(name)


def _show(chosen: Selection, base: str | None, backport: str | None, *, as_json: bool) -> None:
    letter = letter_of(chosen)
    patches, bases = _patches(chosen), _bases(chosen, letter, base, backport)
    if as_json:
        fields = {"name": chosen.series, "title": letter.title, "prefix": letter.prefix}
        echo(json.dumps({**fields, "patches": patches, "bases": bases}, indent=1))
        return
    out = options.output()
    out.print(f"{chosen.series}: {letter.title}", style="bold", soft_wrap=True)
    bases = [{**row, "used": "by --mail" if row["used"] else None} for row in bases]
    for rows in filter(None, (patches, bases)):
        out.print()
        out.print(table_of(rows, list(rows[0])))
    out.print()
    out.print(f"write the mails: kteardown series {chosen.series} --mail FOLDER", soft_wrap=True)


def _patches(chosen: Selection) -> list[Fields]:
    """Return a row for each patch, by the first backport."""
    rows: list[Fields] = []
    for number, file in enumerate(chosen.files, 1):
        hunks = read_patch(file).hunks()
        every = [hunk for of_file in hunks.values() for hunk in of_file]
        rows.append(
            {
                "number": number,
                "subject": subject(file),
                "files": len(hunks),
                "lines_added": sum(hunk.added for hunk in every),
                "lines_removed": sum(hunk.removed for hunk in every),
            }
        )
    return rows


def _bases(
    chosen: Selection, letter: CoverLetter, base: str | None, backport: str | None
) -> list[Fields]:
    """Return a row for each base, newest first, and mark the one that --mail would use."""
    used = None
    if letter.bases or base is not None or backport is not None:
        used = choose_base(chosen, letter, base, backport)
    rows: list[Fields] = [
        {
            "base": named.name,
            "source": named.source,
            "backport": named.backport or None,
            "used": used is not None and used.named == named,
        }
        for named in reversed(letter.bases)
    ]
    if used is not None and used.named is None:
        names = [name for name in used.backports if name]
        rows.insert(
            0,
            {
                "base": used.spec,
                "source": used.spec,
                "backport": " or ".join(names) or None,
                "used": True,
            },
        )
    return rows


def _json(written: "WrittenMails") -> Fields:
    return {
        "folder": str(written.folder.absolute()),
        "mails": list(written.files),
        "base": written.base,
        "source": written.source,
        "backport": written.backport or None,
        "author": str(written.author) if written.author else None,
        "to": list(written.recipients.to),
        "cc": list(written.recipients.cc),
        "checks": [{**asdict(check), "passed": check.passed} for check in written.checks],
        "before_sending": list(written.todo),
    }


def _print(written: "WrittenMails", out: "Console") -> None:
    """Print where the mails are, what the checks found, and what is left to do."""
    named = f", backport {written.backport}" if written.backport else ""
    count = f"{len(written.files)} mail{'s' if len(written.files) > 1 else ''}"
    kind = f"{count} of {written.author}" if written.author else f"a draft of {count}"
    out.print(
        f"wrote {kind} to {written.folder} ({written.base}{named})",
        style="bold",
        soft_wrap=True,
    )
    out.print()
    rows: list[Fields] = [
        {"check": check.name, "result": "pass" if check.passed else "FAIL", "found": check.summary}
        for check in written.checks
    ]
    out.print(table_of(rows, list(rows[0])))
    for check in written.checks:
        for finding in check.findings:
            out.print(f"  {check.name}: {finding}", soft_wrap=True)
    out.print()
    to = len(written.recipients.to)
    out.print(
        f"To: {to}, Cc: {len(written.recipients.cc)}"
        + ("" if written.author else "; a draft has neither"),
        soft_wrap=True,
    )
    out.print()
    out.print("Nothing was sent. Before you send it:", style="bold")
    for number, text in enumerate(written.todo, 1):
        out.print(f"  {number}. {text}", soft_wrap=True)
