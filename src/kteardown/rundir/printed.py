"""What scripts printed and a reader of their figures should know."""

import re
from collections.abc import Iterable, Iterator

from kteardown.model.record import OutputLine, Record, ScriptEnd
from kteardown.rundir.counting import BootRecords

_ERROR = re.compile(
    r"\b(error|cannot|can't|couldn't|unable to|failed|failure|fatal|not found|no such|does not exist|invalid"
    r"|denied|not permitted|not supported|out of memory|segmentation fault|assertion|usage)\b",
    re.IGNORECASE,
)
_SHOWN = 3
_CHARACTERS = 160


def error_lines(records: Iterable[Record]) -> list[str]:
    """Return the lines of scripts that look like an error; a script can print one and end with 0."""
    lines = (one.text for one in records if isinstance(one, OutputLine) and one.source == "script")
    return [line[:_CHARACTERS] for line in dict.fromkeys(lines) if _ERROR.search(line)]


def printed_notes(boots: Iterable[BootRecords]) -> Iterator[str]:
    """Yield, of the first boot of each kernel, what its scripts printed that looks like an error."""
    seen: dict[tuple[str, ...], list[str]] = {}
    for kernel, boot in {boot.start.kernel: boot for boot in reversed([*boots])}.items():
        if lines := error_lines(boot.records):
            seen.setdefault(tuple(lines), []).append(kernel)
        dropped = sum(one.dropped for one in boot.records if isinstance(one, ScriptEnd))
        if dropped:
            yield f"{kernel}: {dropped:,} lines of the script and of the log are not kept"
    for found, kernels in seen.items():
        more = f", and {len(found) - _SHOWN} more lines" if len(found) > _SHOWN else ""
        yield f"on {', '.join(sorted(kernels))} the script printed: {'; '.join(found[:_SHOWN])}{more}"
