"""The folder of a site: which folders it may be, and how its files are written."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kteardown import version
from kteardown.cli import options
from kteardown.errors import InputError, LabError, failing
from kteardown.paths import read_or_empty, replace_text
from kteardown.report.formats.html import page
from kteardown.visible import visible

_TEMPLATES = ("kteardown_history", "texts")
_MARK = ".kteardown-site"
"""The file in a folder that was made as a site."""


@dataclass(frozen=True)
class SiteFolder:
    """A folder into which pages may be written. ``links`` are the pages that each of them names,
    with their addresses."""

    path: Path
    links: Sequence[tuple[str, str]]
    is_of_this_version: bool
    """Whether this version of kteardown wrote what is there."""

    @classmethod
    def begin(cls, to: Path, links: Sequence[tuple[str, str]]) -> "SiteFolder":
        """Make the folder.

        Raises InputError if it has files that are not of a site, LabError.
        """
        if to.exists() and not to.is_dir():
            raise InputError(f"--to {to}: not a folder", hint="name a folder.")
        with failing(f"--to {to}: cannot be read", hint="name another folder."):
            foreign = to.is_dir() and not (to / _MARK).is_file() and any(to.iterdir())
        if foreign:
            raise InputError(
                f"--to {to}: the folder has files, and `kteardown site` did not make it",
                hint="name a new or an empty folder, or one that `kteardown site` made.",
            )
        options.need_writable(to / "index.html" if to.is_dir() else to)
        with failing(f"--to {to}: cannot be created", hint="name another folder.", kind=LabError):
            to.mkdir(exist_ok=True)
        mark = f"`kteardown site` {version()} writes the pages of this folder.\n"
        folder = cls(to, links, read_or_empty(to / _MARK) == mark)
        folder.save(_MARK, mark)
        return folder

    def save(self, name: str, text: str) -> None:
        """Write a file; a symbolic link is replaced and not followed. Raises LabError."""
        file = self.path / name
        hint = "free disk space, or name another folder."
        with failing(f"{file}: cannot be written", hint=hint, kind=LabError):
            replace_text(file, visible(text))

    def save_page(self, name: str, **values: Any) -> None:
        """Write one of the pages that each site has once, such as ``index``. Raises LabError."""
        about = {"version": version(), "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}"}
        text = page(f"{name}.html.j2", of=_TEMPLATES, links=self.links, **about, **values)
        self.save(f"{name}.html", text)

    def save_data(self, name: str, value: Any) -> None:
        """Write ``value`` as JSON for programs, and as a script for pages. Raises LabError.

        A browser lets no page of a local file read JSON, but it lets it load a script.
        """
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        self.save(f"{name}.json", f"{text}\n")
        self.save(f"{name}.js", f"kteardownData({json.dumps(name)},{text});\n")

    def is_current(self, name: str, time_ns: int) -> bool:
        """Return whether a file is at least as new as ``time_ns``, and of this version."""
        file = self.path / name
        is_there = file.is_file() and not file.is_symlink()
        return self.is_of_this_version and is_there and file.stat().st_mtime_ns >= time_ns

    def set_time(self, name: str, time_ns: int) -> None:
        """Give a file the time of what it was made from."""
        os.utime(self.path / name, ns=(time_ns, time_ns), follow_symlinks=False)
