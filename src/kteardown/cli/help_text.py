"""The help of a command, so that it can be read at 80 columns."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperOption


class Verb(TyperCommand):
    """A command whose help has short types, and paragraphs without the line breaks of the source."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.help = joined(self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters with short types."""
        return with_short_types(super().get_params(ctx), ctx)


def joined(text: str) -> str:
    """Return ``text`` with each paragraph on one line, and no empty line between indented lines."""
    paragraphs = [
        part if re.search("^ ", part, re.M) else " ".join(part.split()) for part in text.split("\n\n")
    ]
    return re.sub(r"(?m)^( .*)\n\n(?= )", r"\1\n", "\n\n".join(paragraphs))


def with_short_types(parameters: list[Any], ctx: Any) -> list[Any]:
    """Return ``parameters``; an option that does not name its value gets a short name for it.

    typer shows Python's types, as ``<list[str]>``, in a column that is as wide as the longest one. The texts
    then have less than half of 80 columns. An argument has a name, and its text says what it may be.
    """
    for option in parameters:
        if isinstance(option, TyperArgument):
            option.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        if isinstance(option, TyperOption) and option.metavar is None:
            option.metavar = _value(option, ctx)
    return parameters


def _value(option: TyperOption, ctx: Any) -> str:
    """Return what an option is followed by; a flag by nothing."""
    kind = option.type_descriptor
    if option.is_flag:
        return ""
    if kind.is_choice:
        return option.display_type(ctx).strip("<>")
    if kind.is_path:
        return "FILE"
    return "N" if kind.is_ranged else max(option.opts, key=len).lstrip("-").upper()
