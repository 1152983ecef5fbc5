"""What readers of figures should know, as sentences: differences between environments, and errors
of scripts.

METHODOLOGY.md lists what cannot change one and is left out. Between hosts on the instruction clock
that is everything but QEMU; between guests also the memory, which is in the plan, and the clock
source before the timers have settled.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kteardown.extensions import hook
from kteardown.model.arch import arch_of_machine
from kteardown.model.record import Hello, Record, Settled
from kteardown.model.script_records import OutputLine, ScriptEnd
from kteardown.paths import shipped_table
from kteardown.rundir.counting import Attempt, BootRecords, contributing, repeats, where
from kteardown.rundir.directory import RunDir

_MEMORY_SHARE = 0.01
_UNKNOWN = "not recorded"
_WORDS = shipped_table("rundir/environment")
_GUEST_LABELS = _WORDS["guest"]
_OF_ONE_KERNEL = _WORDS["kernel"]
_OWN = ("kteardown.seed=", "kteardown.boot=")
"""Arguments of the kernel that every boot has for itself."""
_SHOWN = 5


def differences(
    a: Mapping[str, Any], b: Mapping[str, Any], *, arch: str | None = None, exact: bool = False
) -> list[str]:
    """Return the differences of two hosts, as read by ``vm.host.facts``: ``CPU model: one /
    other``.

    ``arch``: the architecture of the guests; None compares QEMU for every architecture. ``exact``:
    on the instruction clock, to which nothing but QEMU matters. A fact that only one of the two
    hosts has, because an older kteardown recorded the other, is left out.
    """
    first = _flat(a)
    second = _flat(b)
    # A single mitigation counts as present in both if both records have the table of mitigations.
    tables = tuple(f"{name}." for name in _WORDS["tables"] if name in a and name in b)
    return [
        f"{_label(name)}: {_word(first.get(name))} / {_word(second.get(name))}"
        for name in dict.fromkeys((*first, *second))
        if (name.startswith(tables) or (name in first and name in second))
        and name != "os"
        and (not exact or name.startswith("qemu."))
        and (arch is None or not name.startswith("qemu.") or name == f"qemu.{arch}")
        and first.get(name) != second.get(name)
        and not (name == "memory_kb" and _near(first[name], second[name]))
    ]


def environment_notes(run: RunDir, records: Sequence[Record]) -> list[str]:
    """Return notes on the environment that readers of the run's result need. Raises InputError."""
    # They come only from its ``records`` and ``environment.json``. The list is empty if every
    # session and every guest was the same, so that a run that was killed and resumed has the notes
    # of an unbroken one.
    tried = contributing(records)
    notes_of_run = hook("notes_of_run")
    return [
        *_sessions(run, [attempt for attempt in tried if not attempt.start.node]),
        *_nodes(run, [attempt for attempt in tried if attempt.start.node]),
        *(notes_of_run(run) if notes_of_run else ()),
        *dict.fromkeys(_unlike_guests(tried)),
        *_unlike_repeats(records, _agents(run)),
    ]


def guest_differences(a: RunDir, b: RunDir) -> list[str]:
    """Return the differences of the guests of two runs, for each kernel of both. Raises
    InputError."""
    guests_a, guests_b = (dict(reversed(_guests(contributing(run.records())))) for run in (a, b))
    labels = {**_GUEST_LABELS, **_OF_ONE_KERNEL}
    notes = [
        f"guest of {kernel}: {sentence}"
        for kernel, facts in reversed(guests_a.items())
        if kernel in guests_b
        for sentence in _spread([facts, guests_b[kernel]], labels)
    ]
    files_a = _files_of(a)
    files_b = _files_of(b)
    unlike = sorted(path for path in {*files_a, *files_b} if files_a.get(path) != files_b.get(path))
    if files_a and files_b and unlike:
        more = f" and {len(unlike) - _SHOWN} more" if len(unlike) > _SHOWN else ""
        notes.append(f"files of the guests differ: {', '.join(unlike[:_SHOWN])}{more}")
    return notes


def _files_of(run: RunDir) -> dict[str, str]:
    """Return the hashes of the files of a script in the guests; empty without."""
    files = None
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads(run.guest_file.content())
        files = kept.get("files") if isinstance(kept, Mapping) else None
    return files if isinstance(files, dict) else {}


def _agents(run: RunDir) -> list[str]:
    """Return the hash of the agent of each session; empty if it was not recorded."""
    return [session.get("agent_hash", "") for session in _sessions_of(run)]


def _sessions_of(run: RunDir) -> list[dict[str, Any]]:
    return run.environment().get("sessions", []) if run.environment_file.exists() else []


def _sessions(run: RunDir, tried: Sequence[Attempt]) -> Iterator[str]:
    """Yield a note for each session on a host that differs from that of the first session."""
    sessions = _sessions_of(run)
    first_boots: dict[int, Attempt] = {}
    for attempt in tried:
        if attempt.start.session < len(sessions):
            first_boots.setdefault(attempt.start.session, attempt)
    if not first_boots:
        return
    origin = sessions[min(first_boots)]["machine"]
    for number in sorted(first_boots)[1:]:
        attempt = first_boots[number]
        machine = sessions[number]["machine"]
        if unlike := differences(origin, machine, arch=_arch(tried), exact=attempt.exact):
            yield (
                f"measured on different machines from boot {attempt.boot} on: {'; '.join(unlike)}"
            )
    agents = _agents(run)
    recorded = {number: agents[number] for number in sorted(first_boots) if agents[number]}
    if len(set(recorded.values())) > 1:
        hashes = ", ".join(
            f"{digest[:10]} from boot {first_boots[n].boot} on" for n, digest in recorded.items()
        )
        yield f"measured with different agents: {hashes}"


def _nodes(run: RunDir, tried: Sequence[Attempt]) -> Iterator[str]:
    """Yield how many blocks each node of a cluster measured, and what differs between the nodes."""
    # On the instruction clock only QEMU counts, and a block may be on several nodes.
    facts = run.environment().get("nodes", {}) if tried else {}
    names = list(dict.fromkeys(attempt.start.node for attempt in tried))
    exact = all(attempt.exact for attempt in tried)
    if not exact:
        blocks = {
            name: len({a.start.block for a in tried if a.start.node == name}) for name in names
        }
        words = ", ".join(f"{name} {count}" for name, count in blocks.items())
        yield f"measured on nodes of a cluster, each block on one node; blocks per node: {words}"
    first = next(iter(names), "")
    for name in names[1:]:
        sides = facts.get(first, {}), facts.get(name, {})
        if unlike := differences(*sides, arch=_arch(tried), exact=exact):
            yield f"the nodes {first} and {name} differ: {'; '.join(unlike)}"


def _unlike_guests(tried: Sequence[Attempt]) -> Iterator[str]:
    """Yield how guests of one kernel differ, then those of different kernels, then what slows them
    down."""
    # Guests on different machines of the sweep differ by design.
    machines = dict.fromkeys(tuple(attempt.start.machine.items()) for attempt in tried)
    by_machine = [
        _guests(a for a in tried if tuple(a.start.machine.items()) == machine)
        for machine in machines
    ]
    for guests in by_machine:
        for kernel in dict.fromkeys(kernel for kernel, _ in guests):
            of_kernel = [facts for name, facts in guests if name == kernel]
            if unlike := _spread(of_kernel, {**_GUEST_LABELS, **_OF_ONE_KERNEL}):
                yield f"boots of {kernel} were not the same guest: {'; '.join(unlike)}"
    for guests in by_machine:
        firsts = dict(reversed(guests))
        for kernel in dict.fromkeys(kernel for kernel, _ in guests):
            if unlike := _spread([guests[0][1], firsts[kernel]], _GUEST_LABELS):
                yield f"the guests of {guests[0][0]} and {kernel} differ in: {'; '.join(unlike)}"
    aids: dict[str, dict[str, None]] = {}
    for kernel, facts in _guests(tried):
        for aid in facts["debug"]:
            aids.setdefault(aid, {})[kernel] = None
    for aid, kernels in aids.items():
        yield f"{aid}, which costs time everywhere, is on in {', '.join(kernels)}"


def _unlike_repeats(records: Sequence[Record], agents: Sequence[str]) -> Iterator[str]:
    for repeat in repeats(records):
        if not repeat.same:
            sessions = (repeat.cut.start.session, repeat.ended.start.session)
            first, second = (agents[number] if number < len(agents) else "" for number in sessions)
            reason = "the agent changed" if first != second else "this guest is not deterministic"
            yield (
                f"boot {repeat.cut.boot} of {repeat.cut.start.kernel} was run again after an "
                f"interruption and differed {where(repeat.trial)}: {reason}"
            )


def _guests(tried: Iterable[Attempt]) -> list[tuple[str, dict[str, Any]]]:
    """Return kernel and comparable facts of every guest that recorded all of them, in the order of
    boots."""
    result = []
    for attempt in tried:
        hello = next((record for record in attempt.records if isinstance(record, Hello)), None)
        # A record without a banner is from an older agent, which did not record all facts.
        if hello is not None and hello.banner:
            settled = next(
                (record for record in attempt.records if isinstance(record, Settled)), None
            )
            facts = {name: getattr(hello, name) for name in (*_GUEST_LABELS, *_OF_ONE_KERNEL)}
            words = [word for word in hello.cmdline.split() if not word.startswith(_OWN)]
            facts["command line"] = " ".join(words)
            if settled is not None:
                facts["clock source"] = settled.clocksource.removesuffix("-early")
                facts["timer resolution in ns"] = settled.resolution_ns
            facts |= {f"mitigation {name}": text for name, text in hello.mitigations.items()}
            result.append((attempt.start.kernel, facts))
    return result


def _arch(tried: Iterable[Attempt]) -> str | None:
    machines = (record.machine for a in tried for record in a.records if isinstance(record, Hello))
    machine = next(machines, None)
    return arch_of_machine(machine) if machine else None


def _spread(guests: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> list[str]:
    result = []
    for name in dict.fromkeys(name for facts in guests for name in facts):
        if name in _OF_ONE_KERNEL and name not in labels:
            continue
        values = list(dict.fromkeys(_word(facts.get(name)) for facts in guests))
        if len(values) > 1:
            result.append(f"{labels.get(name, name)}: {' / '.join(values)}")
    return result


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            result |= _flat(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result


def _near(a: object, b: object) -> bool:
    return isinstance(a, int) and isinstance(b, int) and abs(a - b) <= _MEMORY_SHARE * max(a, b)


def _label(name: str) -> str:
    head, _, rest = name.partition(".")
    label = _WORDS["host"].get(name, name)
    table = _WORDS["tables"].get(head)
    return f"{table} {rest}" if table and rest else label


def _word(value: object) -> str:
    if value is None or value == "":
        return _UNKNOWN
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    return str(value)


_ERROR = re.compile(
    r"\b(error|cannot|can't|couldn't|unable to|failed|failure|fatal|not found|no such"
    r"|does not exist|invalid|denied|not (permitted|supported)|filesystem type|out of memory"
    r"|segmentation fault|assertion|usage)\b",
    re.IGNORECASE,
)
_LINES = 3
_CHARACTERS = 160


def error_lines(records: Iterable[Record]) -> list[str]:
    """Return the lines of scripts that look like an error; a script can print one and end with
    0."""
    lines = (
        record.text
        for record in records
        if isinstance(record, OutputLine) and record.source == "script"
    )
    return [line[:_CHARACTERS] for line in dict.fromkeys(lines) if _ERROR.search(line)]


def printed_notes(boots: Iterable[BootRecords]) -> Iterator[str]:
    """Yield, of the first boot of each kernel, what its scripts printed that looks like an
    error."""
    kernels_by_lines: dict[tuple[str, ...], list[str]] = {}
    for kernel, boot in {boot.start.kernel: boot for boot in reversed([*boots])}.items():
        if lines := error_lines(boot.records):
            kernels_by_lines.setdefault(tuple(lines), []).append(kernel)
        dropped = sum(record.dropped for record in boot.records if isinstance(record, ScriptEnd))
        if dropped:
            yield f"{kernel}: {dropped:,} lines of the script and of the log are not kept"
    for printed, kernels in kernels_by_lines.items():
        more = f", and {len(printed) - _LINES} more lines" if len(printed) > _LINES else ""
        shown = "; ".join(printed[:_LINES])
        yield f"on {', '.join(sorted(kernels))} the script printed: {shown}{more}"
