"""The verbs: those of the core, and those of the optional packages that are installed.

Of the core nothing else is looked for, so that a verb of the core does not wait for the packages.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kteardown.extensions import extensions, function_of

TEXTS = Path(__file__).parent / "texts"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Measure": ("try", "compare", "measure", "run", "gate"),
    "Plan and build": ("plan", "build", "bisect", "queue", "series"),
    "Results": ("report", "show", "diff", "analyse", "list"),
    "This host": ("doctor", "selftest", "prune", "new"),
}
"""The verbs of the core, in the order of --help."""
_FUNCTIONS = {
    "try": "try_patch:try_patch",
    "list": "listing:listing",
    "compare": "run:compare",
    "analyse": "diff:analyse",
    "build": "plan:build",
}
"""The functions whose module or name is not that of their verb."""


@dataclass(frozen=True)
class VerbText:
    """A verb with its help. `kteardown --help` has the first paragraph, under the title of its
    group."""

    name: str
    help: str
    group: str
    where: str
    """``MODULE:FUNCTION``."""
    texts: Path

    @property
    def function(self) -> Callable[..., Any]:
        """Return the function of the verb, which is imported for that."""
        return function_of(self.where)

    @property
    def options(self) -> dict[str, str]:
        """Return the texts of its options: those that several verbs share, and its own."""
        tables = _options(TEXTS)
        return {**tables["shared"], **_options(self.texts).get(self.name, {})}


@cache
def help_texts(folder: Path) -> dict[str, str]:
    """Return the texts of ``help.txt`` by name. A paragraph is on one line, unless it is
    indented."""
    text = folder.joinpath("help.txt").read_text(encoding="utf-8")
    return {
        name: "\n\n".join(
            part if part.startswith(" ") else " ".join(part.split())
            for part in text.strip().split("\n\n")
        )
        for name, text in re.findall(r"(?ms)^# ([\w-]+)$(.*?)(?=^# |\Z)", text)
    }


@cache
def _options(folder: Path) -> dict[str, dict[str, str]]:
    tables: dict[str, dict[str, str]] = tomllib.loads(
        folder.joinpath("options.toml").read_text(encoding="utf-8")
    )
    return tables


@cache
def core() -> dict[str, VerbText]:
    """Return the verbs of the core by name."""
    texts = help_texts(TEXTS)
    return {
        name: VerbText(
            name,
            texts[name],
            group,
            f"kteardown.cli.{_FUNCTIONS.get(name, f'{name}:{name}')}",
            TEXTS,
        )
        for group, names in GROUPS.items()
        for name in names
    }


@cache
def every() -> dict[str, VerbText]:
    """Return all verbs by name, those of the optional packages last."""
    more = {
        name: VerbText(
            name, help_texts(extension.texts)[name], extension.title, where, extension.texts
        )
        for extension in extensions()
        for name, where in extension.verbs.items()
    }
    return {**core(), **{name: verb for name, verb in more.items() if name not in core()}}


def verb(name: str) -> VerbText:
    """Return a verb. Raises KeyError if there is none."""
    return core()[name] if name in core() else every()[name]


class Commands(Mapping[str, Any]):
    """The command of each verb, made when it is used."""

    def __init__(self, command: Callable[[VerbText], Any]) -> None:
        self._command = command

    def __getitem__(self, name: str) -> Any:
        return self._command(verb(name))

    def __iter__(self) -> Iterator[str]:
        return iter(every())

    def __len__(self) -> int:
        return len(every())
