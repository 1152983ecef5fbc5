"""The JSON that commands write, for tests of any kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def output_in(file: Path) -> dict[str, Any]:
    """Return the JSON of a command in a file."""
    output: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return output


def run_in(text: str | bytes) -> dict[str, Any]:
    """Return the only run in the JSON of a command."""
    (run,) = json.loads(text)["runs"]
    found: dict[str, Any] = run
    return found


def result_in(text: str | bytes) -> dict[str, Any]:
    """Return the only result in the JSON of a command, which measured on one clock."""
    (result,) = run_in(text)["results"].values()
    found: dict[str, Any] = result
    return found
