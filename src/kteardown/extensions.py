"""The optional packages of kteardown that are installed. They are found by entry points.

A package names itself in the group ``kteardown.packages``. Its top module says what it adds, and
imports nothing for that. The core imports no package by its name.

- ``TITLE``: of its group of verbs in --help.
- ``VERBS``: ``MODULE:FUNCTION`` by verb; their texts are in the folder ``texts``.
- ``PLACES``: modules, as ``run.places`` says.
- ``LISTS``: ``MODULE:FUNCTION`` by what ``kteardown list`` lists.
- ``SECTIONS``: of the configuration.
- ``HOOKS``: ``MODULE:FUNCTION`` by what the core asks if it is there.

Each of these may be missing.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

GROUP = "kteardown.packages"


class Extension(NamedTuple):
    """What an optional package adds."""

    title: str
    """Of its group of verbs in --help."""
    verbs: Mapping[str, str]
    texts: Path
    places: Sequence[str]
    lists: Mapping[str, str]
    hooks: Mapping[str, str]
    sections: Sequence[str]


@cache
def extensions() -> tuple[Extension, ...]:
    """Return what the installed packages add, in the order of their names."""
    from importlib.metadata import (
        entry_points,
    )  # It takes longer than most of what imports this module.

    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return tuple(_of(import_module(point.value)) for point in points if _is_there(point.value))


def _is_there(module: str) -> bool:
    """Return whether a package is there: an entry may be of one that was removed, or left an empty
    folder."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def _of(module: ModuleType) -> Extension:
    assert module.__file__ is not None
    return Extension(
        getattr(module, "TITLE", module.__name__),
        getattr(module, "VERBS", {}),
        Path(module.__file__).parent / "texts",
        getattr(module, "PLACES", ()),
        getattr(module, "LISTS", {}),
        getattr(module, "HOOKS", {}),
        getattr(module, "SECTIONS", ()),
    )


def hook(name: str) -> Callable[..., Any] | None:
    """Return the function that a package has for ``name``; None if no installed package has one."""
    for extension in extensions():
        if name in extension.hooks:
            return function_of(extension.hooks[name])
    return None


def function_of(name: str) -> Callable[..., Any]:
    """Return the function that ``MODULE:FUNCTION`` names."""
    module, _, function = name.partition(":")
    loaded: Callable[..., Any] = getattr(import_module(module), function)
    return loaded
