"""Write the man pages, kteardown(1) and one for each command, from the help of the command line.

The only argument is the output folder. click-man formats the pages.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path
from typing import Any

from click_man.man import ManPage
from typer.main import get_command

import kteardown.cli


def page(context: Any) -> str:
    """Return the page of one command, in roff. ``context`` is that of the command without
    arguments."""
    command = context.command
    text = cleandoc(command.help or "")
    first, _, rest = text.partition("\n\n")
    made = ManPage(context.command_path.replace(" ", "-"))
    made.version = version("kteardown")
    made.short_help = _roff(" ".join(first.split()).rstrip("."))
    made.synopsis = " ".join(command.collect_usage_pieces(context))
    made.description = _roff("\n\n".join(part for part in (first, rest, command.epilog) if part))
    records = (parameter.get_help_record(context) for parameter in command.params)
    made.options = [(_plain(name), _roff(_plain(what))) for name, what in filter(None, records)]
    made.commands = [
        (name, _roff(_short(verb))) for name, verb in getattr(command, "commands", {}).items()
    ]
    return str(made)


def pages(context: Any) -> dict[str, str]:
    """Return every page by its name without ``.1``."""
    texts = {context.command_path.replace(" ", "-"): page(context)}
    for name, verb in getattr(context.command, "commands", {}).items():
        if not verb.hidden:
            texts |= pages(verb.make_context(name, [], parent=context, resilient_parsing=True))
    return texts


def _short(command: Any) -> str:
    return " ".join(cleandoc(command.help or "").split("\n\n")[0].split())


def _plain(text: str) -> str:
    return " ".join(text.split())


def _roff(text: str) -> str:
    """Escape what has a meaning in roff."""
    escaped = text.replace("\\", r"\e").replace("--", r"\-\-")
    escaped = re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)
    # The lines of an example are not joined.
    return re.sub(r"^(  .*)$", r".nf\n\1\n.fi", escaped, flags=re.MULTILINE)


def main(folder: Path) -> None:
    """Write the pages into ``folder``."""
    command = get_command(kteardown.cli.app)
    folder.mkdir(parents=True, exist_ok=True)
    context = command.make_context("kteardown", ["doctor"], resilient_parsing=True)
    for name, text in pages(context).items():
        (folder / f"{name}.1").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
