"""A find as one C file that needs nothing else, and as the text of a report to a mailing list."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown.hunt.limits import PREDICTED_AT_MOST, RAISED
from kteardown.hunt.result import Find, HuntResult, OwnersResult, Rate, predicted_time
from kteardown.paths import data_dir

_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)
_SYSCTL = re.compile(r"[a-z]+(?:\.[a-z0-9_-]+)+")
_SPDX = re.compile(r"^(// SPDX.*|/\* SPDX.*\*/)\n")
_USERS = {"root": "root", "ordinary": "an ordinary user"}
_COSTS = {"sync": "releasing", "deferred": "the deferred work for", "make": "making", "held": "holding"}
_WAYS = {
    "exit": "their owner is killed",
    "call": "one call releases all of them",
    "oldest": "they are released one by one, the oldest first",
    "youngest": "they are released one by one, the youngest first",
    "random": "they are released one by one, in random order",
}


def program(kind: str, own: Sequence[Path] = ()) -> str:
    """Return a C program that makes and releases the objects of a kind, and prints how long that takes.

    ``own``: the files of the user's own kinds. It is built by ``gcc -O2 -o PROGRAM FILE``.
    """
    files = {path.name: path for path in own}
    folder = data_dir("agent")
    first = files.get(f"{kind}.c", folder / "hunt" / "kinds" / f"{kind}.c")
    seen: set[Path] = set()
    parts = [_inlined(path, folder, files, seen) for path in (first, folder / "hunt/owner.c")]
    parts.append(_inlined(folder / "hunt/reproducer.c", folder, files, seen))
    how = f"/* gcc -O2 -o {kind} {kind}.c && ./{kind} 1000 */\n"
    return "// SPDX-License-Identifier: GPL-2.0\n" + how + "\n".join(parts)


def report_text(find: Find, result: HuntResult) -> str:
    """Return a report of a find in plain text, with its figures."""
    growth, way = find.growth, _way(find, result)
    if growth is None:
        return (
            f"Subject: {find.kind}: {find.failed.brief if find.failed else 'a guest failed'}\n\n"
            f"On {result.release}, a guest failed when it released objects of the kind {find.kind}\n"
            f"({find.object}); {way}:\n\n    {find.failure}\n"
        )
    each = [(n, cost / n) for n, cost in zip(growth.sizes, growth.costs, strict=True) if cost is not None]
    # It prints the times of making and release, and no others.
    shows = f"shows it without any other file, run as {_USERS[find.user]}"
    if find.cost not in ("sync", "make"):
        shows = f"makes and releases the objects, run as {_USERS[find.user]}; this cost it does not measure"
    unit = "kB" if find.cost == "held" else "instructions"
    # The program makes so many objects, then twice and four times as many.
    objects = max(1, growth.sizes[-1] // 4)
    what = _COSTS[find.cost or "sync"]
    also = [f"The same function makes this cost grow in other kinds and ways, too: {find.others}."]
    lines = [
        f"Subject: {find.kind}: the cost of {what} N objects grows with N^{growth.exponent:.1f}",
        "",
        f"Object: {find.object}.",
        f"Release: {way}.",
        f"Measured on {result.release}, one CPU, counting the guest's instructions ({result.command}).",
        "",
        f"{'objects':>10}  {unit + ' for each':>24}",
        *(f"{n:>10,}  {value:>24,.0f}" for n, value in each),
        "",
        *_cause(find),
        *_locks(find, result),
        *_delays(find, result),
        *_at_the_limit(find, result.rate),
        *(also if find.also else ()),
        *(
            f"On {source}, with one seed: {other.verdict}, {other.costs[-1] or 0:,.0f} {unit} at "
            f"{other.sizes[-1]:,}."
            for source, other in find.elsewhere.items()
        ),
        *(
            f"On {source}: {failed.brief}: {failed.detail}."
            for source, failed in find.failed_elsewhere.items()
        ),
        "",
        f"The program {find.kind}.c {shows}:",
        "",
        f"    gcc -O2 -o {find.kind} {find.kind}.c && ./{find.kind} {objects} {find.way}",
        "",
        *_limit(find, 4 * objects),
    ]
    return "\n".join(lines)


def waiting_text(one: OwnersResult, result: HuntResult) -> str:
    """Return a report, in plain text, of processes that wait for each other when they release at once."""
    times = f"{one.ratio:.2f} times as long"
    program = f"./{one.kind} {one.objects} {one.way}"
    lines = [
        f"Subject: {one.kind}: {one.owners} processes that release at once take {times}",
        "",
        f"Release: {_way(one, result)}.",
        f"Measured on {result.release}, on the wall clock ({result.command}).",
        f"{one.owners} processes, each on a CPU of its own and with {one.objects:,} objects of its own, take",
        f"{times} as one of them alone (95% interval {one.ci[0]:.2f} to {one.ci[1]:.2f}, {one.boots} boots).",
        f"The cost of the release by one process is {one.alone or 'unknown'}.",
        "",
        f"The program {one.kind}.c makes and releases the objects and prints the times. Run it alone, then",
        f"{one.owners} of it at once, as {_USERS[one.user]}:",
        "",
        f"    gcc -O2 -o {one.kind} {one.kind}.c",
        f"    {program}",
        f"    {' & '.join([program] * one.owners)} & wait",
        "",
    ]
    return "\n".join(lines)


def _inlined(path: Path, folder: Path, own: Mapping[str, Path], seen: set[Path]) -> str:
    """Return the text of a file with each of the project's headers in it once, where it is first included."""
    seen.add(path)

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        places = (own.get(Path(name).name), path.parent / name, folder / name)
        header = next(place for place in places if place is not None and place.is_file())
        return "" if header in seen else _inlined(header, folder, own, seen)

    return _INCLUDE.sub(replace, _SPDX.sub("", path.read_text()))


def _cause(find: Find) -> list[str]:
    function = find.function
    if function is None:
        return []
    chain = [f"{name}()" for name in (function.name, *function.callers)]
    at, off = chain.index(function.place), function.no_interrupts > 0.5
    callers = f", called by {', '.join(chain[at + 1 :])}," if chain[at + 1 :] else ""
    of = {"make": "making", "deferred": "deferred work"}.get(find.cost or "", "release")
    number = f" of {find.growth.sizes[-1]:,} objects" if find.growth else ""
    where = f", taken in {chain[0]}" if at and not off else ""
    text = f"{function.place}{callers} has {function.share:.0%} of the samples of the {of}{number}{where}"
    if function.exponent is not None:
        text += f"; this time grows with the exponent {function.exponent:.1f}"
    enabled = f" Interrupts were off; such samples are taken where they are enabled, in {chain[0]}."
    return [f"{text}.{enabled if off else ''}"]


def _locks(find: Find, result: HuntResult) -> list[str]:
    when = {
        "sync": "While the objects are released",
        "deferred": "During the deferred work",
        "make": "While the objects are made",
    }
    return [
        f"{when[find.cost or 'sync']}, {lock.name} is held {'shared ' if lock.reading else ''}for "
        f"{lock.share:.0%} of the time, and at once for up to {lock.longest_ns:,.0f} instructions "
        f"({result.locks} with CONFIG_LOCK_STAT)."
        for lock in find.locks
    ]


def _delays(find: Find, result: HuntResult) -> list[str]:
    """Return how long the release kept others waiting; making and memory have no such figures."""
    case = result.case_of(find)
    found = {} if case is None else case.bystanders
    irqs, realtime, probe = (found.get(name) for name in ("irqs_off_ns", "realtime_ns", "probe_ns"))
    if find.cost not in ("sync", "deferred") or irqs is None or realtime is None or probe is None:
        return []
    return [
        f"During the release of {found['objects_count']:,.0f} objects and shortly after it, interrupts are "
        f"off for up to {irqs:,.0f} instructions; a real-time task waits for up to {realtime:,.0f}, and an "
        f"ordinary task for up to {probe:,.0f}, before it runs."
    ]


def _at_the_limit(find: Find, rate: Rate | None) -> list[str]:
    found = find.prediction
    if found is None:
        return []
    most = found.limit.replace(", ", " and ")
    allow = f"allow{'' if ',' in found.limit else 's'}"
    limit = f"{most} {allow} more" if found.objects == PREDICTED_AT_MOST else f"as many as {most} {allow}"
    cost = f"{found.instructions[1] / 1e9:,.0f} thousand million instructions"
    if rate:
        of = "" if rate.acceleration == "kvm" else "of an emulated CPU "
        cost += f", {predicted_time(found, rate)} {of}on the host that was used"
    return [f"For {found.objects:,} objects ({limit}) that is {cost}, if the cost goes on growing as it did."]


def _limit(find: Find, objects: int) -> list[str]:
    """Return which sysctl must allow so many objects, if one limits them that the program does not raise."""
    limit = find.prediction.limit if find.prediction else ""
    if limit in RAISED or not _SYSCTL.search(limit):
        return []
    raised = "raise each of them first if it" if "," in limit else "raise it first if it"
    return [
        f"The number of objects is limited by {limit.replace(', ', ' and ')}: {raised} is lower than "
        f"{objects:,}.",
        "",
    ]


def _way(of: Find | OwnersResult, result: HuntResult) -> str:
    """Return how the objects are released, with the call that does it where the result has it."""
    case = result.case_of(of)
    return _WAYS[of.way] + (f": {case.call}" if case and case.call else "")
