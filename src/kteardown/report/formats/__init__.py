"""The formats of what a command says: one module each, which has ``render(publication)``.

A module may have ``NEEDS``, the fields of a publication without which it has nothing to write, and
``IS_RAW``: control characters are part of the format, as the ends of lines of CSV are.
"""

from collections.abc import Collection, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from kteardown.errors import InputError
from kteardown.visible import visible

if TYPE_CHECKING:
    from kteardown.report.publication import Publication


class Format(NamedTuple):
    """``option``: whether every command that measures has ``--NAME FILE`` (its text:
    ``NAME_file``)."""

    option: bool = False


FORMATS: Mapping[str, Format] = {
    "json": Format(option=True),
    "markdown": Format(option=True),
    "comment": Format(option=True),
    "junit": Format(option=True),
    "html": Format(),
    "cover": Format(),
    "reply": Format(),
    "bugreport": Format(),
}
"""By name, which is that of the module."""
_WORDS = {"answers": "verdicts", "material": "single run", "page": "page"}
ALL: Collection[str] = ("answers", "material", "page")
"""What a publication may have, of what a format may need."""


def check_formats(names: Collection[str], offered: Collection[str], command: str) -> None:
    """Raise InputError if a command does not offer what one of these formats needs."""
    for name in names:
        if missing := _needs(_module(name)) - {*offered}:
            able = [
                other
                for other in FORMATS
                if FORMATS[other].option and not set(_needs(_module(other))) - {*offered}
            ]
            lacks = " and no ".join(_WORDS[part] for part in sorted(missing))
            raise InputError(
                f"--{name}: {command} has no {lacks}, which this format shows",
                hint=f"use {' or '.join(f'--{other}' for other in able)}.",
            )


def render(name: str, publication: "Publication") -> str:
    """Return the whole file in a format."""
    module = _module(name)
    text: str = module.render(publication)
    return text if getattr(module, "IS_RAW", False) else visible(text)


def _module(name: str) -> ModuleType:
    # A format is imported when it is used: scipy and jinja take longer than most commands.
    return import_module(f"kteardown.report.formats.{name}")


def _needs(module: ModuleType) -> set[str]:
    return set(getattr(module, "NEEDS", ()))
