"""What a series changes by the headers of its hunks, where no source tree says more."""

import re
from collections.abc import Sequence
from pathlib import Path

from kteardown.coverage.changed import ChangedFunction, function_name
from kteardown.kernels.hunk_places import named_function

_FILE = re.compile(r"\+\+\+ b/(\S+)")
_HEADER = re.compile(r"@@ -\d[\d,]* \+\d[\d,]* @@ ?(.*)")
_WORD = re.compile(r"\w+|[^\w\s]")
_C_FILES = (".c", ".h")


def functions_by_headers(patches: Sequence[Path]) -> list[ChangedFunction]:
    """Return the functions in which the hunks begin, in order; none for hunks that do not say it.

    A hunk that changes several functions has only the first of them.
    """
    functions: dict[ChangedFunction, None] = {}
    for patch in patches:
        file = ""
        header: str | None = None
        before: list[str] = []
        for line in patch.read_text(errors="replace").splitlines():
            if match := _FILE.match(line):
                file = match[1]
                header = None
            elif match := _HEADER.match(line):
                header = match[1]
                before = []
            elif header is not None and line[:1] in ("+", "-"):
                begins = named_function(header, before, line[1:])
                name = function_name(_WORD.findall(begins or ""))
                if name and file.endswith(_C_FILES):
                    functions[ChangedFunction(file, name)] = None
                header = None
            elif header is not None:
                before.append(line[1:])
    return list(functions)
