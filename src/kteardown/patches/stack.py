"""Several series on top of each other: read them, and find the base of the last one."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kteardown.errors import BuildError, InputError, LabError
from kteardown.kernels.git import store
from kteardown.kernels.source import Sources
from kteardown.kernels.source_name import patched
from kteardown.patches.find_base import code_only, default_sources, find_base
from kteardown.patches.given import message_id
from kteardown.patches.posted import PostedSeries, read_series
from kteardown.patches.tried_source import Base
from kteardown.progress import Reporter

_MOST = 10
"""So many series below another are fetched."""
_NAMED_MOST = 3


@dataclass(frozen=True)
class PatchStack:
    """A series, and those that are applied before it, in order."""

    below: tuple[PostedSeries, ...]
    top: PostedSeries
    is_given: bool
    """Whether the user named those below; the mails of ``top`` do otherwise."""


def read_stack(
    whats: Sequence[str], *, cache_dir: Path, reporter: Reporter, sources: Sequence[str] = ()
) -> PatchStack:
    """Read one or more series, each made on top of those before it; files with parts of one are one
    series.

    One of the archive comes with those that its mails name, if they are in the archive. Raises as
    ``read``.
    """
    series = [
        read_series(what, cache_dir=cache_dir, reporter=reporter, sources=sources) for what in whats
    ]
    totals = {
        len(posted.patches) + len(posted.missing) if posted.missing else 0 for posted in series
    }
    if len(whats) > 1 and len(totals) == 1 and 0 not in totals:
        series = [
            read_series(
                whats[0], cache_dir=cache_dir, reporter=reporter, sources=sources, more=whats[1:]
            )
        ]
    *below, top = series
    fetched: dict[tuple[Path, ...], PostedSeries] = {}

    def add_needed(series: PostedSeries) -> PostedSeries:
        """Return ``series`` with what cannot be fetched of that which it is made on."""
        missing = []
        for name in series.made_on:
            needed = None
            if "@" in name and len(fetched) < _MOST:
                with suppress(InputError, LabError):
                    needed = read_series(f"lore:{name}", cache_dir=cache_dir, reporter=reporter)
            if needed is None:
                missing.append(name)
            elif needed.patches not in (*fetched, top.patches):
                fetched[needed.patches] = needed  # Two could name each other.
                add_needed(needed)
                fetched[needed.patches] = fetched.pop(needed.patches)
        return replace(series, made_on=tuple(missing))

    if len(whats) == 1 and message_id(whats[0]):
        top = add_needed(top)
    return PatchStack((*below, *fetched.values()), top, is_given=bool(below))


def base_of_stack(
    stack: PatchStack,
    sources: Sources,
    *,
    specs: Sequence[str] = (),
    fetch: bool = True,
    reporter: Reporter | None = None,
) -> tuple[PostedSeries, Base]:
    """Return the series on top with a note on each below it, and its base, to which these are
    applied.

    Without those below if no source takes them and the user did not name them. Raises as
    ``find_base``; the error of a series whose mails say what it is made on names that, if the user
    did not give it.
    """
    top = stack.top
    errors = []
    for below in (stack.below,) if stack.is_given or not stack.below else (stack.below, ()):
        try:
            base = _base(below, top, sources, specs, fetch=fetch, reporter=reporter)
        except BuildError as error:
            errors.append(error)
            continue
        notes = [f"applied before it: {series.title} ({series.author})" for series in below]
        left = [*top.made_on, *(series.message_id for series in stack.below if series not in below)]
        if left and not stack.is_given:
            notes.append(f"made on top of {_named(left)}, which is not applied")
        return replace(top, notes=(*notes, *top.notes)), base
    if top.made_on and not stack.is_given:
        needed = f"lore:{top.made_on[0]}" if "@" in top.made_on[0] else "THE-OTHER"
        raise BuildError(
            f"no known source takes this series: it is made on top of {_named(top.made_on)}",
            hint=f"give that series before this one: kteardown try {needed} SERIES.",
        ) from errors[0]
    raise _with_notes(errors[0], top)


def _with_notes(error: BuildError, series: PostedSeries) -> BuildError:
    """Return ``error`` with the series that it is about, and how that was chosen from the mails."""
    named = " ".join(filter(None, (series.title, series.revision)))
    author = f" by {series.author}" if series.author else ""
    date = f", {series.date}" if series.date else ""
    lines = [f"the series is {named!r}{author}{date}", *series.notes]
    return BuildError("\n".join((error.message, *(f"  {line}" for line in lines))), hint=error.hint)


def _base(
    below: Sequence[PostedSeries],
    top: PostedSeries,
    sources: Sources,
    specs: Sequence[str],
    *,
    fetch: bool,
    reporter: Reporter | None,
) -> Base:
    """Return the first source that takes the whole stack, and what remains of ``top`` on top of the
    rest."""
    keep = partial(store, name=top.name, cache_dir=sources.folder)
    every = [patch for series in (*below, top) for patch in series.patches]
    first = every[: len(every) - len(top.patches)]
    if first:  # The order of the names is that of the patches.
        names = (
            f"{number:04}-{patch.name.lstrip('-0123456789')}"
            for number, patch in enumerate(every, 1)
        )
        every = list(
            keep([(name, patch.read_bytes()) for name, patch in zip(names, every, strict=True)])
        )
    base = find_base(
        every,
        sources,
        keep,
        specs=specs or ([top.source] if top.source else default_sources(sources)),
        base_commit=top.base_commit,
        version=top.version,
        fetch=fetch,
        reporter=reporter,
    )
    count = len(code_only(every[: len(first)])[0]) if base.left_out else len(first)
    if not count:
        return base
    texts = [(patch.name, patch.read_bytes()) for patch in base.patches]
    source = patched(store(texts[:count], below[-1].name, sources.folder)[0].parent, base.source)
    attempts = tuple(replace(a, source=source) if a is base.chosen else a for a in base.attempts)
    name = sources.identify(source).id
    return replace(base, source=source, id=name, patches=keep(texts[count:]), attempts=attempts)


def _named(names: Sequence[str]) -> str:
    shown = [f"<{name}>" if "@" in name else name for name in names[:_NAMED_MOST]]
    more = [f"{len(names) - _NAMED_MOST} more"] if len(names) > _NAMED_MOST else []
    return ", ".join(shown + more)
