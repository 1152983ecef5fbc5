"""Write ``coverage/laws.json``: what one more object costs an unpatched kernel, by the results.

    scripts/laws.py make     writes it
    scripts/laws.py check    fails if it is not what the results give

It has a row for each metric of a shipped workload, parameter, release and point of the other
parameters. Of several results the one whose law has the most points counts.
``kteardown.coverage.laws`` reads it.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from generated import ROOT, main

FILE = ROOT / "coverage" / "laws.json"
SHIPPED = {
    path.stem: set(tomllib.loads(path.read_text()).get("metrics", {}))
    for path in (ROOT / "workloads").glob("*.toml")
}
"""The metrics of each shipped workload."""


def text(results: Path) -> str:
    """Return the content of the file."""
    found: dict[str, tuple[int, list[Any]]] = {}
    for path in sorted(results.glob("*/result.json")):
        result = json.loads(path.read_text())
        if result.get("clock") != "instructions":
            continue
        release = result["kernels"]["base"]["release"]
        for law in result["laws"]:
            of_base = law["kernel"] == "base" and law["metric"] in SHIPPED.get(law["workload"], ())
            if not of_base or law["model"] == "unknown" or law["per_unit"] is None:
                continue
            place = [law["workload"], law["metric"], law["param"], release, law.get("point", {})]
            row = [*place, law["model"], law["per_unit"], law.get("exponent")]
            key = json.dumps(place, sort_keys=True)
            if key not in found or found[key][0] < law["points"]:
                found[key] = law["points"], row
    rows = [found[key][1] for key in sorted(found)]
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


if __name__ == "__main__":
    sys.exit(main(FILE, text))
